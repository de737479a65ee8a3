#include "extender/audit/audit_output.h"

#include <stdio.h>

#include "extender/report/sheet.h"
#include "extender/report/value.h"

enum { TEXT_BYTES_MAX = 16 << 20 /* nobody has checked the length of a name in a file */ };

bool audit_format_parse(enum audit_format *out, const char *word)
{
    static const char *const words[] = {"table", "json", "yaml", "sarif", "junit"};

    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i]) == 0) {
            *out = (enum audit_format)i;
            return true;
        }
    }
    return false;
}

void audit_put_object(const struct record *record, struct buf *out)
{
    buf_printf(out, "%s %.*s%s%.*s", record_kind_text((enum record_kind)record->kind),
               SLICE_ARG(record->ns), record->ns.len == 0 ? "" : "/", SLICE_ARG(record->name));
}

void audit_put_spot(const struct spot *spot, struct buf *out)
{
    if (spot->path == NULL)
        buf_put(out, SLICE("-"));
    else
        buf_printf(out, "%s:%u:%u", spot->path, spot->line, spot->column);
}

/* ---- JSON ---- */

/* {"code", "level", "title", ...}: what --explain prints. */
static json_t *rule_json(const struct rule *rule)
{
    return json_pack("{ss ss ss ss ss ss ss}", "code", rule->code, "level", level_text(rule->level),
                     "title", rule->title, "what", rule->what, "why", rule->why, "mend", rule->mend,
                     "link", rule->link);
}

static json_t *object_json(const struct record *record)
{
    return json_pack("{ss so so}", "kind", record_kind_text((enum record_kind)record->kind),
                     "namespace", value_text(record->ns), "name", value_text(record->name));
}

static json_t *finding_json(const void *context, size_t index)
{
    const struct audit_report *report = context;
    const struct audit_finding *finding = &report->findings[index];
    const struct spot *spot = &finding->spot;
    json_t *json = json_pack("{ss ss ss so so}", "code", finding->rule->code, "level",
                             level_text(finding->level), "title", finding->rule->title, "object",
                             object_json(finding->record), "message", value_text(finding->message));

    if (json != NULL && spot->path != NULL)
        (void)json_object_set_new(json, "location",
                                  json_pack("{so sI sI}", "file", value_text(slice_of(spot->path)),
                                            "line", (json_int_t)spot->line, "column",
                                            (json_int_t)spot->column));
    if (json != NULL && finding->ignored.len != 0)
        (void)json_object_set_new(json, "ignored", value_text(finding->ignored));
    return json;
}

/* The rules that have findings. NULL: no memory. */
static json_t *rules_json(const struct audit_report *report)
{
    bool has_finding[RULE_COUNT] = {false};
    json_t *list = json_array();
    bool ok = list != NULL;

    for (size_t i = 0; i < report->count; i++)
        has_finding[report->findings[i].rule - audit_rules] = true;
    for (size_t i = 0; i < RULE_COUNT && ok; i++)
        ok = !has_finding[i] || json_array_append_new(list, rule_json(&audit_rules[i])) == 0;
    if (!ok) {
        json_decref(list);
        return NULL;
    }
    return list;
}

bool audit_json(const struct audit_report *report, enum output_format format)
{
    const struct render_items findings = {"findings", report->count, finding_json, report};
    json_t *gaps = json_array();
    bool ok = gaps != NULL;

    for (size_t i = 0; i < report->gap_count && ok; i++)
        ok = json_array_append_new(gaps, value_text(report->gaps[i])) == 0;
    json_t *json = json_pack(
        "{s[] so so s{sI sI sI sI} s{sI sI}}", "findings", "rules", rules_json(report),
        "notChecked", gaps, "summary", "error", (json_int_t)report->levels[LEVEL_ERROR], "warning",
        (json_int_t)report->levels[LEVEL_WARNING], "note", (json_int_t)report->levels[LEVEL_NOTE],
        "ignored", (json_int_t)report->ignored, "objects", "read", (json_int_t)report->objects,
        "skipped", (json_int_t)report->skipped);
    ok = ok && json != NULL && render_stream(format, json, &findings);
    json_decref(json);
    return ok;
}

/* ---- table ---- */

/* False without memory. */
static bool add_finding(struct sheet *sheet, const struct audit_finding *finding)
{
    struct buf object, spot, message;

    buf_init(&object, TEXT_BYTES_MAX);
    buf_init(&spot, TEXT_BYTES_MAX);
    buf_init(&message, TEXT_BYTES_MAX);
    audit_put_object(finding->record, &object);
    audit_put_spot(&finding->spot, &spot);
    buf_put(&message, finding->message);
    const char *level = finding->ignored.len != 0 ? "ignored" : level_text(finding->level);
    const char *const texts[] = {level,           finding->rule->code, buf_text(&object),
                                 buf_text(&spot), buf_text(&message),  NULL};
    bool ok = texts[2] != NULL && texts[3] != NULL && texts[4] != NULL && sheet_add(sheet, texts);
    buf_dispose(&object);
    buf_dispose(&spot);
    buf_dispose(&message);
    return ok;
}

/* The heading, or the finding before that index. False without memory. */
static bool add_row(struct sheet *sheet, const void *context, size_t index)
{
    static const char *const headings[] = {"LEVEL", "CODE", "OBJECT", "WHERE", "FINDING", NULL};
    const struct audit_report *report = context;

    return index == 0 ? sheet_add(sheet, headings)
                      : add_finding(sheet, &report->findings[index - 1]);
}

/* The rule of the first finding of the highest level. */
static const struct rule *gravest(const struct audit_report *report)
{
    const struct audit_finding *found = &report->findings[0];

    for (size_t i = 1; i < report->count; i++) {
        const struct audit_finding *finding = &report->findings[i];
        bool is_graver =
            finding->ignored.len == 0 && (found->ignored.len != 0 || finding->level > found->level);
        found = is_graver ? finding : found;
    }
    return found->rule;
}

static void print_summary(const struct audit_report *report)
{
    if (report->count == 0)
        (void)printf("No findings");
    if (report->count != 0) {
        (void)printf("\n");
        level_print_counts(report->levels, stdout);
    }
    if (report->ignored != 0)
        (void)printf("; %zu ignored", report->ignored);
    (void)printf(". Objects: %zu read, %zu of other kinds skipped.\n", report->objects,
                 report->skipped);
    if (report->count != 0)
        (void)printf("\"claimguard audit --explain %s\" says why, and what to do.\n",
                     gravest(report)->code);
    for (size_t i = 0; i < report->gap_count; i++)
        (void)printf("Note: %.*s.\n", SLICE_ARG(report->gaps[i]));
}

bool audit_table(const struct audit_report *report)
{
    const struct sheet_rows rows = {report->count + 1, add_row, report};
    struct sheet_style style = sheet_style(stdout);
    bool ok = report->count == 0 || sheet_stream(&rows, &style, stdout);

    print_summary(report);
    return ok;
}

/* ---- all formats ---- */

bool audit_print(const struct audit_report *report, enum audit_format format)
{
    switch (format) {
    case AUDIT_JSON: return audit_json(report, OUTPUT_JSON);
    case AUDIT_YAML: return audit_json(report, OUTPUT_YAML);
    case AUDIT_SARIF: return audit_sarif(report);
    case AUDIT_JUNIT: return audit_junit(report);
    default: return audit_table(report);
    }
}
