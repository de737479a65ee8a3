#include "extender/commands/audit/audit_report.h"

#include <stdarg.h>
#include <string.h>

void audit_report_init(struct audit_report *report)
{
    *report = (struct audit_report){.has_failed = false};
    arena_init(&report->arena, SIZE_MAX / 2);
    findings_init(&report->findings, audit_rules, "audit", &report->arena);
    report->findings.are_of_objects = true;
}

void audit_report_dispose(struct audit_report *report)
{
    findings_dispose(&report->findings);
    arena_dispose(&report->arena);
}

void audit_list(struct audit_report *report, struct slice *list, struct slice word)
{
    *list = arena_printf(&report->arena, "%.*s%s%.*s", SLICE_ARG(*list), list->len == 0 ? "" : ", ",
                         SLICE_ARG(word));
    report->has_failed |= list->ptr == NULL || word.ptr == NULL;
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

/* ---- ignored rules ---- */

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

bool audit_is_entry(struct slice text)
{
    struct ignore_entry entry, other;
    bool has_rule;

    return next_entry(&text, &entry) && !next_entry(&text, &other) && entry.reason.len != 0 &&
           are_codes(entry.codes, NULL, &has_rule);
}

/* The reason for which the entries ignore the rule; empty: they do not. */
static struct slice ignore_reason(struct slice rest, const struct rule *rule)
{
    struct ignore_entry entry;
    bool has_rule;

    while (next_entry(&rest, &entry))
        if (are_codes(entry.codes, rule, &has_rule) && has_rule && entry.reason.len != 0)
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
        report->last_ignore.reason = ignore_reason(slice_of(record->ignore), rule);
        if (report->last_ignore.reason.len == 0)
            report->last_ignore.reason = ignore_reason(report->ignore, rule);
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
            audit_report_add(report, RULE_BAD_IGNORE, LEVEL_ERROR, place,
                             "to ignore \"%.*s\": that is no code of a rule",
                             SLICE_ARG(entry.codes));
        else if (entry.reason.len == 0)
            audit_report_add(report, RULE_BAD_IGNORE, LEVEL_ERROR, place,
                             "to ignore %.*s needs a reason, so it is not ignored",
                             SLICE_ARG(entry.codes));
    }
}

void audit_report_ignores(struct audit_report *report, const struct inventory *inventory)
{
    for (int kind = 0; kind < KIND_NAMED_COUNT; kind++)
        for (const struct record *at = inventory->first[kind]; at != NULL; at = at->next)
            if (at->ignore != NULL)
                report_entries(report, at);
}

/* ---- findings ---- */

/* Pods, what creates them, then what they use. */
static uint32_t order_of(const struct record *record)
{
    return record->kind == KIND_POD || !kind_is_stored((enum kind)record->kind)
               ? record->kind
               : (uint32_t)record->kind + KIND_NAMED_COUNT;
}

static bool is_wanted(const struct audit_report *report, const struct record *record)
{
    struct slice ns = record->ns.len == 0 ? report->ns : record->ns;

    return report->ns.len == 0 ||
           (kind_is_namespaced((enum kind)record->kind) && slice_equal(ns, report->ns));
}

static struct location location_of(const struct audit_place *place)
{
    const struct record *record = place->record;

    return (struct location){.file = place->spot.path,
                             .line = place->spot.line,
                             .column = place->spot.column,
                             .kind_order = order_of(record),
                             .kind = kind_text((enum kind)record->kind),
                             .ns = record->ns,
                             .name = record->name};
}

bool audit_report_add(struct audit_report *report, enum audit_rule_index index, enum level level,
                      struct audit_place place, const char *format, ...)
{
    va_list arguments;

    if (!is_wanted(report, place.record))
        return false;
    va_start(arguments, format);
    struct finding *finding =
        finding_vadd(&report->findings, index, location_of(&place), format, arguments);
    va_end(arguments);
    if (finding == NULL)
        return false;
    finding->level = level;
    finding->subject = place.subject;
    finding->ignored = known_reason(report, place.record, finding->rule);
    return true;
}
