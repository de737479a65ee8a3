#include "extender/report/findings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/base/text.h"

enum { TEXT_BYTES = 1024, PAGES_BYTES_MAX = 1 << 20 };

/* ---- rules ---- */

static const char *const level_words[] = {"note", "warning", "error", "never"};

const char *level_text(enum level level)
{
    return level_words[level];
}

void level_print_counts(const size_t *counts, FILE *file)
{
    for (int level = LEVEL_ERROR; level >= LEVEL_NOTE; level--)
        (void)fprintf(file, "%zu %s%s%s", counts[level], level_words[level],
                      counts[level] == 1 ? "" : "s", level == LEVEL_NOTE ? "" : ", ");
}

bool level_parse(enum level *out, const char *word)
{
    for (int level = LEVEL_NOTE; level <= LEVEL_NEVER; level++)
        if (strcmp(word, level_words[level]) == 0) {
            *out = (enum level)level;
            return true;
        }
    return false;
}

const struct rule *rule_find(const struct rule *rules, struct slice code)
{
    for (; rules->code != NULL; rules++)
        if (slice_equal_fold(slice_of(rules->code), code))
            return rules;
    return NULL;
}

static void put_rule(const struct rule *rule, struct buf *out)
{
    buf_printf(out, "## %s: %s\n\nLevel: %s.\n\n", rule->code, rule->title,
               level_text(rule->level));
    if (rule->what != NULL)
        buf_printf(out, "**When.**\n%s\n\n**Why.**\n", rule->what);
    buf_printf(out, "%s\n\n**What to do.**\n%s\n", rule->why, rule->mend);
    if (rule->link != NULL)
        buf_printf(out, "\n<%s>\n", rule->link);
}

static void put_rules(const struct rule *rules, struct buf *out)
{
    buf_put(out, SLICE("| code | level | finding |\n|---|---|---|\n"));
    for (const struct rule *rule = rules; rule->code != NULL; rule++)
        buf_printf(out, "| %s | %s | %s |\n", rule->code, level_text(rule->level), rule->title);
    for (const struct rule *rule = rules; rule->code != NULL; rule++) {
        buf_put(out, SLICE("\n"));
        put_rule(rule, out);
    }
}

int rules_explain(const struct rule *rules, const char *code, struct error *err)
{
    const struct rule *rule = rule_find(rules, slice_of(code));
    struct buf page;

    if (rule == NULL && strcmp(code, "all") != 0)
        return error_set(err, ERROR_NOT_FOUND,
                         "--explain %s: there is no such rule (--explain all lists them)", code);
    buf_init(&page, PAGES_BYTES_MAX);
    if (rule == NULL)
        put_rules(rules, &page);
    else
        put_rule(rule, &page);
    bool ok = !page.failed && fwrite(page.bytes, 1, page.len, stdout) == page.len;
    buf_dispose(&page);
    return ok ? 0 : error_system(err, errno == 0 ? EIO : errno, "standard output");
}

/* ---- gaps ---- */

void gaps_add(struct gaps *gaps, uint64_t rules, const char *format, ...)
{
    struct gap *grown = arena_grow(gaps->arena, gaps->items, gaps->count, sizeof *grown);
    va_list arguments;

    va_start(arguments, format);
    struct slice text = arena_vprintf(gaps->arena, format, arguments);
    va_end(arguments);
    gaps->has_failed = gaps->has_failed || grown == NULL || text.ptr == NULL;
    if (gaps->has_failed)
        return;
    gaps->items = grown;
    grown[gaps->count++] = (struct gap){rules, text};
}

void gaps_put(struct fields *out, const char *key, const struct gaps *gaps)
{
    fields_open(out, key, '[');
    for (size_t i = 0; i < gaps->count; i++)
        fields_text(out, NULL, gaps->items[i].text);
    fields_close(out);
    out->has_failed = out->has_failed || gaps->has_failed;
}

void gaps_print(const struct gaps *gaps, const char *before, const char *after, FILE *file)
{
    for (size_t i = 0; i < gaps->count; i++)
        (void)fprintf(file, "%s%.*s%s\n", before, SLICE_ARG(gaps->items[i].text), after);
}

/* ---- findings ---- */

void findings_init(struct findings *findings, const struct rule *rules, const char *command,
                   struct arena *arena)
{
    *findings = (struct findings){.rules = rules,
                                  .command = command,
                                  .arena = arena,
                                  .most = SIZE_MAX,
                                  .gaps = {.arena = arena},
                                  .fail_on = LEVEL_WARNING};
}

void findings_dispose(struct findings *findings)
{
    free(findings->items);
}

/* ---- adding ---- */

/* A place for one more; NULL: no memory. */
static struct finding *grow(struct findings *findings)
{
    struct finding *grown = array_grow(findings->items, findings->count, sizeof *grown);

    if (grown == NULL)
        return NULL;
    findings->items = grown;
    return &grown[findings->count++];
}

/* A text of at most TEXT_BYTES - 1 bytes, in the arena. A longer one is cut before a character. */
__attribute__((format(printf, 2, 0))) static struct slice keep_text(struct findings *findings,
                                                                    const char *format,
                                                                    va_list arguments)
{
    char text[TEXT_BYTES];

    (void)vsnprintf(text, sizeof text, format, arguments);
    struct slice kept = arena_copy(findings->arena, utf8_whole(slice_of(text)));
    findings->has_failed = findings->has_failed || kept.ptr == NULL;
    return kept;
}

struct finding *finding_vadd(struct findings *findings, unsigned rule, struct location place,
                             const char *format, va_list arguments)
{
    if ((findings->disabled & GAP_RULE(rule)) != 0)
        return NULL;
    if (findings->count >= findings->most) {
        findings->dropped++;
        return NULL;
    }
    struct finding *finding = grow(findings);
    findings->has_failed = findings->has_failed || finding == NULL;
    if (finding != NULL)
        *finding = (struct finding){.rule = &findings->rules[rule],
                                    .level = findings->rules[rule].level,
                                    .place = place,
                                    .what = keep_text(findings, format, arguments)};
    return finding;
}

struct finding *finding_add(struct findings *findings, unsigned rule, struct location place,
                            const char *change, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    struct finding *finding = finding_vadd(findings, rule, place, format, arguments);
    va_end(arguments);
    if (finding != NULL) {
        finding->change = slice_of(change);
        finding->subject = finding->what;
    }
    return finding;
}

void finding_lower(struct finding *finding, enum level level)
{
    if (finding != NULL)
        finding->level = level;
}

bool findings_fail(const struct findings *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        if (finding_fails(findings, &findings->items[i]))
            return true;
    return false;
}

/* ---- their order ---- */

static int compare_places(const struct location *a, const struct location *b)
{
    int order = slice_compare(slice_of(a->file), slice_of(b->file));

    if (order == 0)
        order = (a->line > b->line) - (a->line < b->line);
    if (order == 0)
        order = (a->column > b->column) - (a->column < b->column);
    if (order == 0)
        order = slice_compare(a->ns, b->ns);
    if (order == 0)
        order = (a->kind_order > b->kind_order) - (a->kind_order < b->kind_order);
    return order == 0 ? slice_compare(a->name, b->name) : order;
}

static int compare_findings(const void *a, const void *b)
{
    const struct finding *x = a, *y = b;
    int order = compare_places(&x->place, &y->place);

    if (order == 0)
        order = strcmp(x->rule->code, y->rule->code);
    return order == 0 ? slice_compare(x->what, y->what) : order;
}

void findings_sort(struct findings *findings)
{
    if (findings->count != 0)
        qsort(findings->items, findings->count, sizeof *findings->items, compare_findings);
}
