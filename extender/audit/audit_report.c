#include "extender/audit/audit_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGE_BYTES_MAX = 1024 };

void audit_report_init(struct audit_report *report)
{
    *report = (struct audit_report){.findings = NULL};
    arena_init(&report->arena, SIZE_MAX / 2);
}

void audit_report_dispose(struct audit_report *report)
{
    free(report->findings);
    arena_dispose(&report->arena);
}

struct slice audit_name(struct audit_report *report, struct slice ns, struct slice name)
{
    struct slice text =
        ns.len == 0 ? name
                    : arena_printf(&report->arena, "%.*s/%.*s", SLICE_ARG(ns), SLICE_ARG(name));

    report->has_failed |= text.ptr == NULL;
    return text;
}

struct audit_place audit_place(const struct record *record, uint32_t line, uint32_t column,
                               struct slice subject)
{
    struct audit_place place = {record, record->spot, subject};

    if (line != 0) {
        place.spot.line = line;
        place.spot.column = column;
    }
    return place;
}

/* ---- ignore annotations ---- */

static struct slice trim(struct slice text)
{
    while (text.len != 0 && (text.ptr[0] == ' ' || text.ptr[0] == '\t' || text.ptr[0] == '\r'))
        text = (struct slice){text.ptr + 1, text.len - 1};
    while (text.len != 0 && (text.ptr[text.len - 1] == ' ' || text.ptr[text.len - 1] == '\t' ||
                             text.ptr[text.len - 1] == '\r'))
        text.len--;
    return text;
}

/* Removes what is before the next of the separators from *rest, and it. */
static struct slice cut(struct slice *rest, const char *separators)
{
    size_t i = 0;

    while (i < rest->len && strchr(separators, rest->ptr[i]) == NULL)
        i++;
    struct slice piece = trim((struct slice){rest->ptr, i});
    *rest = i < rest->len ? (struct slice){rest->ptr + i + 1, rest->len - i - 1} : SLICE("");
    return piece;
}

/* An entry: "CG102,CG104: reason". */
struct ignore_entry {
    struct slice codes, reason;
};

/* Removes the next entry from *rest. False: there is none. */
static bool next_entry(struct slice *rest, struct ignore_entry *out)
{
    while (rest->len != 0) {
        struct slice entry = cut(rest, ";\n");
        if (entry.len == 0)
            continue;
        out->codes = cut(&entry, ":");
        out->reason = trim(entry);
        return true;
    }
    return false;
}

/* Whether all of the codes are of rules; and whether one is that rule's. */
static bool are_codes(struct slice codes, const struct rule *rule, bool *has_rule)
{
    bool are_good = codes.len != 0;

    *has_rule = false;
    while (codes.len != 0) {
        const struct rule *found = rule_find(audit_rules, cut(&codes, ","));
        are_good = are_good && found != NULL;
        *has_rule |= found != NULL && found == rule;
    }
    return are_good;
}

/* The reason for which the object ignores the rule; empty: it does not. */
static struct slice ignore_reason(const struct record *record, const struct rule *rule)
{
    struct slice rest = slice_of(record->ignore);
    struct ignore_entry entry;
    bool has_rule;

    while (next_entry(&rest, &entry))
        if (are_codes(entry.codes, rule, &has_rule) && has_rule)
            return entry.reason;
    return SLICE("");
}

/* As ignore_reason, which is called once for all findings of one rule about one object. */
static struct slice known_reason(struct audit_report *report, const struct record *record,
                                 const struct rule *rule)
{
    if (report->last_ignore.record != record || report->last_ignore.rule != rule) {
        report->last_ignore.record = record;
        report->last_ignore.rule = rule;
        report->last_ignore.reason = ignore_reason(record, rule);
    }
    return report->last_ignore.reason;
}

static void report_entries(struct audit_report *report, const struct record *record)
{
    struct slice rest = slice_of(record->ignore);
    struct ignore_entry entry;
    bool has_rule;

    while (next_entry(&rest, &entry)) {
        struct audit_place place = audit_place(record, 0, 0, entry.codes);
        if (!are_codes(entry.codes, NULL, &has_rule))
            audit_report_add(report, RULE_BAD_IGNORE, LEVEL_WARNING, place,
                             "claimguard.io/audit-ignore: \"%.*s\" is no code of a rule",
                             SLICE_ARG(entry.codes));
        else if (entry.reason.len == 0)
            audit_report_add(report, RULE_BAD_IGNORE, LEVEL_WARNING, place,
                             "claimguard.io/audit-ignore: %.*s has no reason, so it is not ignored",
                             SLICE_ARG(entry.codes));
    }
}

void audit_report_ignores(struct audit_report *report, const struct inventory *inventory)
{
    for (int kind = 0; kind < RECORD_KIND_COUNT; kind++)
        for (const struct record *at = inventory->first[kind]; at != NULL; at = at->next)
            if (at->ignore != NULL)
                report_entries(report, at);
}

/* ---- findings ---- */

/* A place for one more; NULL: no memory. */
static struct audit_finding *grow(struct audit_report *report)
{
    if (report->count == report->capacity) {
        size_t capacity = report->capacity == 0 ? 64 : report->capacity * 2;
        struct audit_finding *grown =
            realloc(report->findings, capacity * sizeof *report->findings);
        if (grown == NULL)
            return NULL;
        report->findings = grown;
        report->capacity = capacity;
    }
    return &report->findings[report->count++];
}

__attribute__((format(printf, 2, 0))) static struct slice print(struct audit_report *report,
                                                                const char *format,
                                                                va_list arguments)
{
    char text[MESSAGE_BYTES_MAX];
    int length = vsnprintf(text, sizeof text, format, arguments);
    size_t len = length < 0 ? 0 : (size_t)length;

    if (len >= sizeof text) /* cut before a character */
        for (len = sizeof text - 1; len != 0 && ((unsigned char)text[len] & 0xc0) == 0x80;)
            len--;
    struct slice kept =
        arena_copy(&report->arena, (struct slice){text, len < sizeof text ? len : sizeof text - 1});

    report->has_failed |= kept.ptr == NULL;
    return kept;
}

static bool is_wanted(const struct audit_report *report, const struct record *record)
{
    struct slice ns = record->ns.len == 0 ? report->ns : record->ns;

    return report->ns.len == 0 || (record->kind < RECORD_VOLUME && slice_equal(ns, report->ns));
}

bool audit_report_add(struct audit_report *report, enum audit_rule_index index, enum level level,
                      struct audit_place place, const char *format, ...)
{
    const struct rule *rule = &audit_rules[index];
    va_list arguments;

    if (report->is_disabled[index] || !is_wanted(report, place.record))
        return false;
    struct audit_finding *finding = grow(report);
    if (finding == NULL) {
        report->has_failed = true;
        return false;
    }
    va_start(arguments, format);
    struct slice message = print(report, format, arguments);
    va_end(arguments);
    *finding = (struct audit_finding){.rule = rule,
                                      .level = level,
                                      .record = place.record,
                                      .spot = place.spot,
                                      .subject = place.subject,
                                      .message = message,
                                      .ignored = known_reason(report, place.record, rule)};
    if (finding->ignored.len != 0)
        report->ignored++;
    else
        report->levels[level]++;
    return true;
}

void audit_report_gap(struct audit_report *report, const char *format, ...)
{
    va_list arguments;

    if (report->gap_count == AUDIT_GAPS_MAX)
        return;
    va_start(arguments, format);
    report->gaps[report->gap_count++] = print(report, format, arguments);
    va_end(arguments);
}

static int compare_spots(const struct spot *a, const struct spot *b)
{
    int order = strcmp(a->path == NULL ? "" : a->path, b->path == NULL ? "" : b->path);

    if (order != 0)
        return order;
    if (a->path == NULL || a->line == b->line)
        return 0;
    return a->line < b->line ? -1 : 1;
}

static int compare_findings(const void *a, const void *b)
{
    const struct audit_finding *x = a, *y = b;
    int order = compare_spots(&x->spot, &y->spot);

    if (order == 0)
        order = slice_compare(x->record->ns, y->record->ns);
    if (order == 0)
        order = (x->record->kind > y->record->kind) - (x->record->kind < y->record->kind);
    if (order == 0)
        order = slice_compare(x->record->name, y->record->name);
    if (order == 0)
        order = strcmp(x->rule->code, y->rule->code);
    return order != 0 ? order : slice_compare(x->message, y->message);
}

void audit_report_sort(struct audit_report *report)
{
    if (report->count != 0)
        qsort(report->findings, report->count, sizeof *report->findings, compare_findings);
}
