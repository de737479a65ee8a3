#include "extender/commands/audit/comments.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { COMMENT_LINE_BYTES = 1024 }; /* what is behind them is not read */

struct comments_reading {
    struct comments *out;
    struct arena *arena;
    size_t line;
    size_t content; /* the last line of the document that is no comment; 0: none */
    size_t waiting; /* comments up to here know their line */
    size_t block;   /* deeper lines are a text (| or >); 0: none */
};

static bool is_separator(const char *line)
{
    return (strncmp(line, "---", 3) == 0 || strncmp(line, "...", 3) == 0) &&
           strchr(" \t\r\n", line[3]) != NULL;
}

/* Where the comment of the line begins; its end: there is none. A quote begins a text only before a
 * value. *has_braces: "{{" stands before it, outside of quotes. */
static const char *find_comment(const char *line, bool *has_braces)
{
    char quote = '\0';

    *has_braces = false;
    for (const char *at = line; *at != '\0'; at++) {
        bool begins = at == line || strchr(" \t[{,:", at[-1]) != NULL;
        bool is_escape = quote == '"' ? *at == '\\' && at[1] != '\0'
                                      : quote == '\'' && *at == '\'' && at[1] == '\'';
        if (is_escape)
            at++;
        else if (quote != '\0')
            quote = *at == quote ? '\0' : quote;
        else if (begins && (*at == '"' || *at == '\''))
            quote = *at;
        else if (at[0] == '{' && at[1] == '{')
            *has_braces = true;
        else if (*at == '#' && (at == line || strchr(" \t", at[-1]) != NULL))
            return at;
    }
    return line + strlen(line);
}

/* What is behind "# claimguard:ignore"; NULL: the line has none. */
static const char *find_mark(const char *line)
{
    static const char mark[] = "claimguard:ignore";
    const char *comment = find_comment(line, &(bool){false});

    if (*comment == '\0')
        return NULL;
    const char *word = comment + 1 + strspn(comment + 1, " \t");
    return strncmp(word, mark, strlen(mark)) == 0 && strchr(" \t\r\n", word[strlen(mark)]) != NULL
               ? word + strlen(mark)
               : NULL;
}

/* The column that a text in the lines below is deeper than: that of its key, or of its "-". */
static size_t column_of(const char *line)
{
    size_t column = strspn(line, " "), before = column;

    while (line[column] == '-' && line[column + 1] == ' ') {
        before = column;
        column += 1 + strspn(line + column + 1, " ");
    }
    return line[column] == '|' || line[column] == '>' ? before : column;
}

/* Whether the value of the line is a text in the lines below: "key: |", "- >-", "key: |2". */
static bool begins_block(const char *line, bool *has_braces)
{
    size_t end = (size_t)(find_comment(line, has_braces) - line);

    while (end != 0 && strchr(" \t\r\n", line[end - 1]) != NULL)
        end--;
    while (end != 0 && strchr("+-123456789", line[end - 1]) != NULL)
        end--;
    return end >= 2 && strchr("|>", line[end - 1]) != NULL && line[end - 2] == ' ';
}

/* Whether the line is of a text that began above. */
static bool is_of_block(struct comments_reading *reading, const char *line)
{
    bool is_empty = line[strspn(line, " \t\r\n")] == '\0', has_braces = false;

    if (reading->block != 0 && (is_empty || strspn(line, " ") + 1 > reading->block))
        return true;
    reading->block = begins_block(line, &has_braces) ? column_of(line) + 1 : 0;
    reading->out->has_braces |= has_braces;
    return false;
}

/* "CG103 reason" is "CG103: reason" of an annotation, in which ";" would begin another entry. */
static struct slice entry_of(const char *text, struct arena *arena)
{
    text += strspn(text, " \t");
    size_t codes = strcspn(text, " \t\r\n:"), end = strcspn(text, "\r\n");
    const char *reason = text + codes + strspn(text + codes, " \t:");
    size_t reason_bytes = reason < text + end ? (size_t)(text + end - reason) : 0;
    struct slice entry =
        arena_printf(arena, "%.*s: %.*s", (int)codes, text, (int)reason_bytes, reason);

    for (char *p = (char *)entry.ptr; p != NULL && (p = strchr(p, ';')) != NULL; p++)
        *p = ',';
    return entry;
}

static int add(struct comments_reading *reading, const char *text, struct error *err)
{
    struct comments *out = reading->out;
    struct comment *grown = arena_grow(reading->arena, out->items, out->count, sizeof *grown);
    struct slice entry = entry_of(text, reading->arena);

    if (grown == NULL || entry.ptr == NULL)
        return error_no_memory(err);
    out->items = grown;
    grown[out->count++] = (struct comment){0, entry};
    return 0;
}

/* All comments that wait for their line have found it. */
static void settle(struct comments_reading *reading, size_t line)
{
    for (; line != 0 && reading->waiting < reading->out->count; reading->waiting++)
        reading->out->items[reading->waiting].line = line;
}

static int take_line(struct comments_reading *reading, const char *line, struct error *err)
{
    const char *first = line + strspn(line, " \t\r\n");
    const char *mark = is_of_block(reading, line) ? NULL : find_mark(line);
    bool is_content = *first != '\0' && *first != '#' && !is_separator(line);

    if (is_separator(line)) {
        settle(reading, reading->content);
        reading->content = 0;
    }
    if (mark != NULL && add(reading, mark, err) < 0)
        return err->code;
    if (is_content) {
        reading->content = reading->line;
        settle(reading, reading->line);
    }
    return 0;
}

int comments_read(struct comments *out, const char *path, struct arena *arena, struct error *err)
{
    struct comments_reading reading = {.out = out, .arena = arena};
    char line[COMMENT_LINE_BYTES];
    struct stat status;
    bool begins_line = true;
    int rc = 0;

    *out = (struct comments){.count = 0};
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) ||
        slice_ends_with(slice_of(path), SLICE(".json")))
        return 0;
    FILE *file = fopen(path, "re");
    while (file != NULL && rc == 0 && fgets(line, sizeof line, file) != NULL) {
        reading.line += begins_line;
        if (begins_line)
            rc = take_line(&reading, line, err);
        begins_line = strchr(line, '\n') != NULL;
    }
    settle(&reading, reading.content);
    if (file != NULL)
        (void)fclose(file); /* read only: nothing is lost */
    return rc;
}

struct slice comments_between(const struct comments *comments, size_t first, size_t last,
                              struct arena *arena)
{
    struct slice entries = SLICE("");

    for (size_t i = 0; i < comments->count; i++) {
        const struct comment *comment = &comments->items[i];
        if (comment->line >= first && comment->line <= last &&
            !(arena_append(arena, &entries, comment->entry) &&
              arena_append(arena, &entries, SLICE("\n"))))
            return (struct slice){NULL, 0};
    }
    return entries;
}
