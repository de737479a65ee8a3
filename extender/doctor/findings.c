#include "extender/doctor/findings.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/yaml_node.h"

enum { TEXT_BYTES = 1024 };

struct location finding_place(const struct yaml_node *node)
{
    struct yaml_mark at = node->key.len != 0 ? node->key_at : node->at;

    return (struct location){.file = node->path, .line = at.line, .column = at.column};
}

struct location finding_object(struct findings *findings, const char *kind, struct slice ns,
                               struct slice name)
{
    struct slice text = arena_printf(findings->arena, "%s %.*s%s%.*s", kind, SLICE_ARG(ns),
                                     ns.len == 0 ? "" : "/", SLICE_ARG(name));

    findings->has_failed = findings->has_failed || text.ptr == NULL;
    return (struct location){.name = text};
}

/* A text of at most TEXT_BYTES - 1 bytes, in the arena. */
__attribute__((format(printf, 2, 0))) static struct slice keep_text(struct findings *findings,
                                                                    const char *format,
                                                                    va_list args)
{
    char text[TEXT_BYTES];

    (void)vsnprintf(text, sizeof text, format, args);
    struct slice kept = arena_copy(findings->arena, slice_of(text));
    findings->has_failed = findings->has_failed || kept.ptr == NULL;
    return kept;
}

struct finding *finding_add(struct findings *findings, const char *code, struct location place,
                            const char *change, const char *format, ...)
{
    const struct rule *rule = rule_find(doctor_rules, slice_of(code));
    va_list args;

    assert(rule != NULL);
    if (findings->count == FINDINGS_MAX) {
        findings->dropped++;
        return NULL;
    }
    struct finding *grown =
        arena_grow(findings->arena, findings->items, findings->count, sizeof *grown);
    findings->has_failed = findings->has_failed || grown == NULL;
    if (grown == NULL)
        return NULL;
    findings->items = grown;
    struct finding *finding = &grown[findings->count++];
    *finding = (struct finding){
        .rule = rule, .level = rule->level, .place = place, .change = slice_of(change)};
    va_start(args, format);
    finding->what = keep_text(findings, format, args);
    va_end(args);
    return finding;
}

void finding_lower(struct finding *finding, enum level level)
{
    if (finding != NULL)
        finding->level = level;
}

void finding_unread(struct findings *findings, const char *format, ...)
{
    struct slice *grown = arena_grow(findings->arena, findings->unread, findings->unread_count,
                                     sizeof *findings->unread);
    va_list args;

    findings->has_failed = findings->has_failed || grown == NULL;
    if (grown == NULL)
        return;
    findings->unread = grown;
    va_start(args, format);
    grown[findings->unread_count++] = keep_text(findings, format, args);
    va_end(args);
}

bool findings_reach(const struct findings *findings, enum level level)
{
    for (size_t i = 0; i < findings->count; i++)
        if (findings->items[i].level >= level)
            return true;
    return false;
}

static int compare_places(const struct location *a, const struct location *b)
{
    int order = slice_compare(slice_of(a->file), slice_of(b->file));

    if (order == 0)
        order = (a->line > b->line) - (a->line < b->line);
    if (order == 0)
        order = (a->column > b->column) - (a->column < b->column);
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
