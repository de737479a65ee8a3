#include "extender/report/rules.h"

#include <errno.h>

enum { PAGES_BYTES_MAX = 1 << 20 };

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

void rule_put(const struct rule *rule, struct buf *out)
{
    buf_printf(out, "## %s: %s\n\nLevel: %s.\n\n", rule->code, rule->title,
               level_text(rule->level));
    if (rule->what != NULL)
        buf_printf(out, "**When.**\n%s\n\n", rule->what);
    buf_printf(out, "**Why.**\n%s\n\n**What to do.**\n%s\n", rule->why, rule->mend);
    if (rule->link != NULL)
        buf_printf(out, "\n<%s>\n", rule->link);
}

void rules_put(const struct rule *rules, struct buf *out)
{
    buf_put(out, SLICE("| code | level | finding |\n|---|---|---|\n"));
    for (const struct rule *rule = rules; rule->code != NULL; rule++)
        buf_printf(out, "| %s | %s | %s |\n", rule->code, level_text(rule->level), rule->title);
    for (const struct rule *rule = rules; rule->code != NULL; rule++) {
        buf_put(out, SLICE("\n"));
        rule_put(rule, out);
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
        rules_put(rules, &page);
    else
        rule_put(rule, &page);
    bool ok = !page.failed && fwrite(page.bytes, 1, page.len, stdout) == page.len;
    buf_dispose(&page);
    return ok ? 0 : error_system(err, errno == 0 ? EIO : errno, "standard output");
}
