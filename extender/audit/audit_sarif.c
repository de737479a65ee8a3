/* A report as SARIF 2.1.0, with what GitHub's code scanning needs: a region, a path that is
 * relative to the repository, and fingerprints that stay when lines move. */
#include <inttypes.h>
#include <stdio.h>

#include "extender/audit/audit_output.h"
#include "extender/report/value.h"
#include "extender/version.h"

enum { URI_BYTES_MAX = 16 << 20 };

/* ---- rules ---- */

/* The text in one line. NULL: no memory. */
static json_t *one_line(const char *text)
{
    struct buf line;

    buf_init(&line, URI_BYTES_MAX);
    for (const char *p = text; *p != '\0'; p++)
        buf_put(&line, *p == '\n' ? SLICE(" ") : (struct slice){p, 1});
    json_t *value = line.failed ? NULL : json_stringn(line.bytes, line.len);
    buf_dispose(&line);
    return value;
}

static const char *severity_of(enum level level)
{
    return level == LEVEL_NOTE ? "recommendation" : level_text(level);
}

static json_t *help_json(const struct rule *rule)
{
    struct buf markdown, text;

    buf_init(&markdown, URI_BYTES_MAX);
    buf_init(&text, URI_BYTES_MAX);
    buf_printf(&text, "%s %s", rule->why, rule->mend);
    buf_printf(&markdown, "**When.** %s\n\n**Why.** %s\n\n**What to do.** %s\n", rule->what,
               rule->why, rule->mend);
    json_t *json = NULL;
    if (buf_text(&text) != NULL && buf_text(&markdown) != NULL)
        json = json_pack("{so ss}", "text", one_line(text.bytes), "markdown", markdown.bytes);
    buf_dispose(&text);
    buf_dispose(&markdown);
    return json;
}

static json_t *rule_json(const struct rule *rule)
{
    return json_pack("{ss s{ss} s{so} so ss s{ss} s{ss s[ss]}}", "id", rule->code,
                     "shortDescription", "text", rule->title, "fullDescription", "text",
                     one_line(rule->what), "help", help_json(rule), "helpUri", rule->link,
                     "defaultConfiguration", "level", level_text(rule->level), "properties",
                     "problem.severity", severity_of(rule->level), "tags", "kubernetes", "storage");
}

static json_t *driver_json(void)
{
    json_t *list = json_array();
    bool ok = list != NULL;

    for (size_t i = 0; i < RULE_COUNT && ok; i++)
        ok = json_array_append_new(list, rule_json(&audit_rules[i])) == 0;
    json_t *driver =
        json_pack("{ss ss so}", "name", "claimguard", "version", CLAIMGUARD_VERSION, "rules", list);
    if (!ok) {
        json_decref(driver);
        return NULL;
    }
    return driver;
}

/* ---- results ---- */

/* Appends a path with what a URI does not allow as %XX. */
static void put_uri_path(struct buf *out, const char *path)
{
    for (const char *p = path; *p != '\0'; p++) {
        bool is_plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                        (*p >= '0' && *p <= '9') || strchr("/-._~", *p) != NULL;
        if (is_plain)
            buf_put(out, (struct slice){p, 1});
        else
            buf_printf(out, "%%%02X", (unsigned char)*p);
    }
}

/* The file; of a live cluster, a path of its own for each object. */
static json_t *uri_json(const struct audit_finding *finding)
{
    const char *path = finding->spot.path;
    struct buf uri, object;

    buf_init(&uri, URI_BYTES_MAX);
    buf_init(&object, URI_BYTES_MAX);
    if (path == NULL) {
        buf_printf(&object, "kubernetes/%s/%.*s/%.*s",
                   record_kind_text((enum record_kind)finding->record->kind),
                   SLICE_ARG(finding->record->ns.len == 0 ? SLICE("-") : finding->record->ns),
                   SLICE_ARG(finding->record->name));
        path = buf_text(&object);
    } else if (strcmp(path, "<stdin>") == 0) {
        path = "stdin";
    } else {
        while (strncmp(path, "./", 2) == 0)
            path += 2;
        buf_put(&uri, path[0] == '/' ? SLICE("file://") : SLICE(""));
    }
    if (path != NULL)
        put_uri_path(&uri, path);
    json_t *value = path == NULL || uri.failed ? NULL : json_stringn(uri.bytes, uri.len);
    buf_dispose(&object);
    buf_dispose(&uri);
    return value;
}

static uint64_t hash_more(uint64_t hash, struct slice text)
{
    for (size_t i = 0; i <= text.len; i++) { /* FNV-1a, with a NUL after each text */
        hash ^= i == text.len ? 0 : (unsigned char)text.ptr[i];
        hash *= 0x100000001b3ULL;
    }
    return hash;
}

/* What stays the same when lines are added above the finding. */
static json_t *fingerprint_json(const struct audit_finding *finding)
{
    uint64_t hash = 0xcbf29ce484222325ULL;
    char text[32];

    hash = hash_more(hash, slice_of(finding->rule->code));
    hash = hash_more(hash, slice_of(finding->spot.path));
    hash = hash_more(hash, slice_of(record_kind_text((enum record_kind)finding->record->kind)));
    hash = hash_more(hash, finding->record->ns);
    hash = hash_more(hash, finding->record->name);
    hash = hash_more(hash, finding->subject);
    (void)snprintf(text, sizeof text, "%016" PRIx64 ":1", hash);
    return json_pack("{ss}", "primaryLocationLineHash", text);
}

static json_t *location_json(const struct audit_finding *finding)
{
    json_int_t line = finding->spot.line == 0 ? 1 : finding->spot.line;
    json_int_t column = finding->spot.column == 0 ? 1 : finding->spot.column;
    struct buf object;

    buf_init(&object, URI_BYTES_MAX);
    audit_put_object(finding->record, &object);
    json_t *name = object.failed ? NULL : value_text(buf_slice(&object));
    buf_dispose(&object);
    return json_pack("{s{s{so} s{sI sI}} s[{so ss}]}", "physicalLocation", "artifactLocation",
                     "uri", uri_json(finding), "region", "startLine", line, "startColumn", column,
                     "logicalLocations", "fullyQualifiedName", name, "kind", "resource");
}

static json_t *result_json(const void *context, size_t index)
{
    const struct audit_report *report = context;
    const struct audit_finding *finding = &report->findings[index];
    json_t *json =
        json_pack("{ss si ss s{so} s[o] so}", "ruleId", finding->rule->code, "ruleIndex",
                  (int)(finding->rule - audit_rules), "level", level_text(finding->level),
                  "message", "text", value_text(finding->message), "locations",
                  location_json(finding), "partialFingerprints", fingerprint_json(finding));

    if (json != NULL && finding->ignored.len != 0)
        (void)json_object_set_new(json, "suppressions",
                                  json_pack("[{ss so}]", "kind", "inSource", "justification",
                                            value_text(finding->ignored)));
    return json;
}

bool audit_sarif(const struct audit_report *report)
{
    const struct render_items results = {"results", report->count, result_json, report};
    json_t *notes = json_array();
    bool ok = notes != NULL;

    for (size_t i = 0; i < report->gap_count && ok; i++)
        ok = json_array_append_new(notes, json_pack("{ss s{so}}", "level", "note", "message",
                                                    "text", value_text(report->gaps[i]))) == 0;
    json_t *json =
        json_pack("{ss ss s[{s{so} ss s[{sb so}] s[]}]}", "$schema",
                  "https://json.schemastore.org/sarif-2.1.0.json", "version", "2.1.0", "runs",
                  "tool", "driver", driver_json(), "columnKind", "unicodeCodePoints", "invocations",
                  "executionSuccessful", 1, "toolExecutionNotifications", notes, "results");
    ok = ok && json != NULL && render_stream(OUTPUT_JSON, json, &results);
    json_decref(json);
    return ok;
}
