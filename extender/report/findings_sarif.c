/* Findings as SARIF 2.1.0, with what GitHub's code scanning needs: a region, a path that is
 * relative to the repository, and fingerprints that stay when lines move. */
#include <inttypes.h>

#include "extender/report/findings.h"
#include "extender/version.h"

/* An object with one text, as SARIF has them for all that people read. */
static void put_message(struct fields *out, const char *key, struct slice text)
{
    fields_open(out, key, '{');
    fields_text(out, "text", text);
    fields_close(out);
}

/* ---- rules ---- */

/* Appends the text in one line. */
static void put_line(struct buf *out, const char *text)
{
    for (; *text != '\0'; text++)
        buf_put(out, *text == '\n' ? SLICE(" ") : (struct slice){text, 1});
}

static void put_help(struct fields *out, const struct rule *rule)
{
    struct buf text, markdown;

    buf_init(&text, FINDING_BYTES_MAX);
    buf_init(&markdown, FINDING_BYTES_MAX);
    put_line(&text, rule->why);
    buf_put(&text, SLICE(" "));
    put_line(&text, rule->mend);
    if (rule->what != NULL)
        buf_printf(&markdown, "**When.** %s\n\n", rule->what);
    buf_printf(&markdown, "**Why.** %s\n\n**What to do.** %s\n", rule->why, rule->mend);
    fields_open(out, "help", '{');
    fields_buf(out, "text", &text);
    fields_buf(out, "markdown", &markdown);
    fields_close(out);
}

static void put_properties(struct fields *out, enum level level)
{
    fields_open(out, "properties", '{');
    fields_text(out, "problem.severity",
                level == LEVEL_NOTE ? SLICE("recommendation") : slice_of(level_text(level)));
    fields_open(out, "tags", '[');
    fields_text(out, NULL, SLICE("kubernetes"));
    fields_text(out, NULL, SLICE("storage"));
    fields_close_several(out, 2);
}

static void put_rule(struct fields *out, const struct rule *rule)
{
    struct buf what;

    buf_init(&what, FINDING_BYTES_MAX);
    put_line(&what, rule->what == NULL ? rule->title : rule->what);
    fields_open(out, NULL, '{');
    fields_text(out, "id", slice_of(rule->code));
    put_message(out, "shortDescription", slice_of(rule->title));
    fields_open(out, "fullDescription", '{');
    fields_buf(out, "text", &what);
    fields_close(out);
    put_help(out, rule);
    fields_text_if(out, "helpUri", slice_of(rule->link));
    fields_open(out, "defaultConfiguration", '{');
    fields_text(out, "level", slice_of(level_text(rule->level)));
    fields_close(out);
    put_properties(out, rule->level);
    fields_close(out);
}

static void put_tool(struct fields *out, const struct rule *rules)
{
    fields_open(out, "tool", '{');
    fields_open(out, "driver", '{');
    fields_text(out, "name", SLICE("claimguard"));
    fields_text(out, "version", SLICE(CLAIMGUARD_VERSION));
    fields_open(out, "rules", '[');
    for (; rules->code != NULL; rules++)
        put_rule(out, rules);
    fields_close_several(out, 3);
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

/* Of what is in no file, a path of its own for each object. */
static void put_object_path(struct buf *out, const struct location *place)
{
    struct buf path;

    buf_init(&path, FINDING_BYTES_MAX);
    buf_put(&path, SLICE("kubernetes/"));
    if (place->kind != NULL)
        buf_printf(&path, "%s/%.*s/", place->kind,
                   SLICE_ARG(place->ns.len == 0 ? SLICE("-") : place->ns));
    buf_put(&path, place->name);
    const char *text = buf_text(&path);
    put_uri_path(out, text == NULL ? "" : text);
    out->failed = out->failed || text == NULL;
    buf_dispose(&path);
}

static void put_uri(struct fields *out, const struct location *place)
{
    const char *path = place->file;
    struct buf uri;

    buf_init(&uri, FINDING_BYTES_MAX);
    if (path == NULL) {
        put_object_path(&uri, place);
    } else if (strcmp(path, "<stdin>") == 0) {
        buf_put(&uri, SLICE("stdin"));
    } else {
        while (strncmp(path, "./", 2) == 0)
            path += 2;
        buf_put(&uri, path[0] == '/' ? SLICE("file://") : SLICE(""));
        put_uri_path(&uri, path);
    }
    fields_buf(out, "uri", &uri);
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
static void put_fingerprint(struct fields *out, const struct finding *finding)
{
    uint64_t hash = 0xcbf29ce484222325ULL;
    char text[32];

    hash = hash_more(hash, slice_of(finding->rule->code));
    hash = hash_more(hash, slice_of(finding->place.file));
    hash = hash_more(hash, slice_of(finding->place.kind));
    hash = hash_more(hash, finding->place.ns);
    hash = hash_more(hash, finding->place.name);
    hash = hash_more(hash, finding->subject);
    (void)snprintf(text, sizeof text, "%016" PRIx64 ":1", hash);
    fields_open(out, "partialFingerprints", '{');
    fields_text(out, "primaryLocationLineHash", slice_of(text));
    fields_close(out);
}

static void put_place(struct fields *out, const struct location *place)
{
    fields_open(out, "physicalLocation", '{');
    fields_open(out, "artifactLocation", '{');
    put_uri(out, place);
    fields_close(out);
    fields_open(out, "region", '{');
    fields_number(out, "startLine", place->line == 0 ? 1 : place->line);
    fields_number(out, "startColumn", place->column == 0 ? 1 : place->column);
    fields_close_several(out, 2);
}

static void put_locations(struct fields *out, const struct location *place)
{
    struct buf object;

    buf_init(&object, FINDING_BYTES_MAX);
    finding_put_object(&object, place);
    fields_open(out, "locations", '[');
    fields_open(out, NULL, '{');
    put_place(out, place);
    fields_open(out, "logicalLocations", '[');
    fields_open(out, NULL, '{');
    fields_buf(out, "fullyQualifiedName", &object);
    fields_text(out, "kind", SLICE("resource"));
    fields_close_several(out, 4);
}

static void put_what(struct fields *out, const struct finding *finding)
{
    struct buf text;

    buf_init(&text, FINDING_BYTES_MAX);
    buf_put(&text, finding->what);
    if (finding->change.len != 0)
        buf_printf(&text, "; change: %.*s", SLICE_ARG(finding->change));
    fields_open(out, "message", '{');
    fields_buf(out, "text", &text);
    fields_close(out);
}

static void put_suppression(struct fields *out, const struct finding *finding)
{
    if (finding->ignored.len == 0)
        return;
    fields_open(out, "suppressions", '[');
    fields_open(out, NULL, '{');
    fields_text(out, "kind", finding->is_known ? SLICE("external") : SLICE("inSource"));
    fields_text(out, "justification", finding->ignored);
    fields_close_several(out, 2);
}

static void put_result(struct fields *out, const struct findings *findings,
                       const struct finding *finding)
{
    fields_open(out, NULL, '{');
    fields_text(out, "ruleId", slice_of(finding->rule->code));
    fields_number(out, "ruleIndex", finding->rule - findings->rules);
    fields_text(out, "level", slice_of(level_text(finding->level)));
    put_what(out, finding);
    put_locations(out, &finding->place);
    put_fingerprint(out, finding);
    put_suppression(out, finding);
    fields_close(out);
}

/* What was not checked. */
static void put_notes(struct fields *out, const struct findings *findings)
{
    fields_open(out, "invocations", '[');
    fields_open(out, NULL, '{');
    fields_flag(out, "executionSuccessful", !findings->is_incomplete);
    fields_open(out, "toolExecutionNotifications", '[');
    for (size_t i = 0; i < findings->gaps.count; i++) {
        fields_open(out, NULL, '{');
        fields_text(out, "level",
                    findings->gaps.items[i].rules == UINT64_MAX ? SLICE("error") : SLICE("note"));
        put_message(out, "message", findings->gaps.items[i].text);
        fields_close(out);
    }
    fields_close_several(out, 3);
}

bool findings_sarif(const struct findings *findings)
{
    struct fields out;

    fields_begin(&out, OUTPUT_JSON, stdout);
    fields_open(&out, NULL, '{');
    fields_text(&out, "$schema", SLICE("https://json.schemastore.org/sarif-2.1.0.json"));
    fields_text(&out, "version", SLICE("2.1.0"));
    fields_open(&out, "runs", '[');
    fields_open(&out, NULL, '{');
    put_tool(&out, findings->rules);
    fields_text(&out, "columnKind", SLICE("unicodeCodePoints"));
    put_notes(&out, findings);
    fields_open(&out, "results", '[');
    for (size_t i = 0; i < findings->count; i++)
        put_result(&out, findings, &findings->items[i]);
    return fields_end(&out);
}
