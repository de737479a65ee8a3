#include "extender/doctor/report.h"

#include <stdio.h>

#include "config/base/printable.h"

enum { PLACE_BYTES = 1024, TEXT_BYTES = 1200 };

static const char *place_text(const struct location *place, char text[PLACE_BYTES])
{
    if (place->file == NULL)
        (void)snprintf(text, PLACE_BYTES, "%.*s", SLICE_ARG(place->name));
    else
        (void)snprintf(text, PLACE_BYTES, "%s:%zu:%zu", place->file, place->line, place->column);
    return text;
}

static size_t count_level(const struct findings *findings, enum finding_level level)
{
    size_t count = 0;

    for (size_t i = 0; i < findings->count; i++)
        count += findings->items[i].level == level;
    return count;
}

/* ---- a table ---- */

static void print_line(const char *format, int width, const char *level, const char *code,
                       const char *where, struct slice what)
{
    char text[TEXT_BYTES], place[PLACE_BYTES];

    (void)snprintf(text, sizeof text, "%.*s", SLICE_ARG(what));
    (void)snprintf(place, sizeof place, "%s", where);
    make_printable(text);
    make_printable(place);
    (void)printf("%-7s  %-5s  %-*s  %s%s\n", level, code, width, place, format, text);
}

static int count_text(char *out, size_t size, size_t count, const char *what)
{
    return snprintf(out, size, "%zu %s%s", count, what, count == 1 ? "" : "s");
}

static void print_summary(const struct findings *findings)
{
    static const char *const words[] = {"note", "warning", "error"};
    char counts[3][40];

    for (int level = 0; level < 3; level++)
        (void)count_text(counts[level], sizeof counts[level],
                         count_level(findings, (enum finding_level)level), words[level]);
    (void)printf("%s, %s, %s.", counts[FINDING_ERROR], counts[FINDING_WARNING],
                 counts[FINDING_NOTE]);
    if (findings->count != 0)
        (void)printf(" \"claimguard doctor --explain CODE\" says what breaks.");
    if (findings->dropped != 0)
        (void)printf(" %zu more findings are not shown.", findings->dropped);
    (void)printf("\n");
    for (size_t i = 0; i < findings->unread_count; i++)
        (void)printf("Not checked: %.*s\n", SLICE_ARG(findings->unread[i]));
}

static void print_table(const struct findings *findings)
{
    char where[PLACE_BYTES];
    int width = (int)strlen("WHERE");

    for (size_t i = 0; i < findings->count; i++) {
        int len = (int)strlen(place_text(&findings->items[i].place, where));
        width = len > width ? len : width;
    }
    if (findings->count != 0)
        print_line("", width, "LEVEL", "CODE", "WHERE", SLICE("FINDING"));
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        print_line("", width, finding_level_text(finding->level), finding->rule->code,
                   place_text(&finding->place, where), finding->what);
        if (finding->change.len != 0)
            print_line("change: ", width, "", "", "", finding->change);
    }
    print_summary(findings);
}

/* ---- JSON and YAML ---- */

static json_t *text_value(struct slice text)
{
    return json_stringn(text.len == 0 ? "" : text.ptr, text.len);
}

static json_t *finding_value(const struct finding *finding)
{
    char where[PLACE_BYTES];
    json_t *value =
        json_pack("{s:s,s:s,s:s,s:s,s:o,s:o}", "code", finding->rule->code, "level",
                  finding_level_text(finding->level), "where", place_text(&finding->place, where),
                  "title", finding->rule->title, "finding", text_value(finding->what), "change",
                  text_value(finding->change));

    if (value != NULL && finding->place.file != NULL)
        (void)json_object_update_new(value, json_pack("{s:s,s:I,s:I}", "file", finding->place.file,
                                                      "line", (json_int_t)finding->place.line,
                                                      "column", (json_int_t)finding->place.column));
    return value;
}

static json_t *result_value(const struct findings *findings)
{
    json_t *items = json_array(), *unread = json_array();

    for (size_t i = 0; i < findings->count; i++)
        (void)json_array_append_new(items, finding_value(&findings->items[i]));
    for (size_t i = 0; i < findings->unread_count; i++)
        (void)json_array_append_new(unread, text_value(findings->unread[i]));
    if (json_array_size(items) != findings->count ||
        json_array_size(unread) != findings->unread_count) {
        json_decref(items);
        json_decref(unread);
        return NULL;
    }
    return json_pack("{s:o,s:o,s:I}", "findings", items, "notChecked", unread, "findingsNotShown",
                     (json_int_t)findings->dropped);
}

static bool print_value(const struct findings *findings, enum output_format format)
{
    json_t *value = result_value(findings);
    struct render *render = value == NULL ? NULL : render_new(format, false);
    bool ok = render != NULL && render_put(render, value);

    if (render != NULL)
        ok = render_finish(render) && ok;
    json_decref(value);
    return ok;
}

bool doctor_report(const struct findings *findings, enum output_format format)
{
    if (format != OUTPUT_TABLE)
        return print_value(findings, format);
    print_table(findings);
    return fflush(stdout) == 0 && !ferror(stdout);
}
