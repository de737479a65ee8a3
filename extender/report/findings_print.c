/* Findings as a table, as JSON and as YAML. */
#include "extender/report/findings.h"
#include "extender/report/sheet.h"

void finding_put_object(struct buf *out, const struct location *place)
{
    if (place->kind != NULL)
        buf_printf(out, "%s %.*s%s", place->kind, SLICE_ARG(place->ns),
                   place->ns.len == 0 ? "" : "/");
    buf_put(out, place->kind == NULL && place->name.len == 0 ? slice_of(place->file) : place->name);
}

void finding_put_place(struct buf *out, const struct location *place, struct slice otherwise)
{
    if (place->file == NULL)
        buf_put(out, otherwise);
    else
        buf_printf(out, "%s:%u:%u", place->file, place->line, place->column);
}

/* Counts the findings of each level that are not ignored. Returns how many are. */
static size_t count_levels(const struct findings *findings, size_t counts[static LEVEL_NEVER])
{
    size_t ignored = 0;

    for (int level = LEVEL_NOTE; level < LEVEL_NEVER; level++)
        counts[level] = 0;
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        ignored += finding->ignored.len != 0;
        counts[finding->level] += finding->ignored.len == 0;
    }
    return ignored;
}

/* ---- JSON and YAML ---- */

/* What --explain prints. */
static void put_rule(struct fields *out, const struct rule *rule)
{
    fields_open(out, NULL, '{');
    fields_text(out, "code", slice_of(rule->code));
    fields_text(out, "level", slice_of(level_text(rule->level)));
    fields_text(out, "title", slice_of(rule->title));
    fields_text(out, "what", slice_of(rule->what));
    fields_text(out, "why", slice_of(rule->why));
    fields_text(out, "mend", slice_of(rule->mend));
    fields_text(out, "link", slice_of(rule->link));
    fields_close(out);
}

/* The rules that have findings. */
static void put_rules(struct fields *out, const struct findings *findings)
{
    uint64_t found = 0;

    for (size_t i = 0; i < findings->count; i++)
        found |= GAP_RULE(findings->items[i].rule - findings->rules);
    fields_open(out, "rules", '[');
    for (size_t i = 0; findings->rules[i].code != NULL; i++)
        if ((found & GAP_RULE(i)) != 0)
            put_rule(out, &findings->rules[i]);
    fields_close(out);
}

static void put_line(struct fields *out, const struct location *place)
{
    fields_text(out, "file", slice_of(place->file));
    fields_number(out, "line", place->line);
    fields_number(out, "column", place->column);
}

/* The finding of a command whose findings are about objects. */
static void put_of_object(struct fields *out, const struct finding *finding)
{
    const struct location *place = &finding->place;

    fields_text(out, "title", slice_of(finding->rule->title));
    fields_open(out, "object", '{');
    fields_text(out, "kind", slice_of(place->kind));
    fields_text(out, "namespace", place->ns);
    fields_text(out, "name", place->name);
    fields_close(out);
    fields_text(out, "message", finding->what);
    if (place->file != NULL) {
        fields_open(out, "location", '{');
        put_line(out, place);
        fields_close(out);
    }
    fields_text_if(out, "ignored", finding->ignored);
}

/* The others. */
static void put_of_place(struct fields *out, const struct finding *finding)
{
    const struct location *place = &finding->place;
    struct buf where;

    buf_init(&where, FINDING_BYTES_MAX);
    finding_put_place(&where, place, place->name);
    fields_buf(out, "where", &where);
    fields_text(out, "title", slice_of(finding->rule->title));
    fields_text(out, "finding", finding->what);
    fields_text(out, "change", finding->change);
    if (place->file != NULL)
        put_line(out, place);
}

static void put_findings(struct fields *out, const struct findings *findings)
{
    fields_open(out, "findings", '[');
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        fields_open(out, NULL, '{');
        fields_text(out, "code", slice_of(finding->rule->code));
        fields_text(out, "level", slice_of(level_text(finding->level)));
        if (findings->are_of_objects)
            put_of_object(out, finding);
        else
            put_of_place(out, finding);
        fields_close(out);
    }
    fields_close(out);
}

static void put_counts(struct fields *out, const struct findings *findings)
{
    size_t counts[LEVEL_NEVER], ignored = count_levels(findings, counts);

    fields_open(out, "summary", '{');
    for (int level = LEVEL_ERROR; level >= LEVEL_NOTE; level--)
        fields_number(out, level_text((enum level)level), (int64_t)counts[level]);
    fields_number(out, "ignored", (int64_t)ignored);
    fields_close(out);
    fields_open(out, "objects", '{');
    fields_number(out, "read", (int64_t)findings->objects);
    fields_number(out, "skipped", (int64_t)findings->skipped);
    fields_close(out);
}

void findings_put(struct fields *out, const struct findings *findings)
{
    put_findings(out, findings);
    if (findings->are_of_objects)
        put_rules(out, findings);
    gaps_put(out, "notChecked", &findings->gaps);
    if (findings->are_of_objects)
        put_counts(out, findings);
    else
        fields_number(out, "findingsNotShown", (int64_t)findings->dropped);
}

static bool print_data(const struct findings *findings, enum output_format format)
{
    struct fields out;

    fields_begin(&out, format, stdout);
    fields_open(&out, NULL, '{');
    findings_put(&out, findings);
    return fields_end(&out);
}

/* ---- a table ---- */

static bool add_change(struct sheet *sheet, const struct finding *finding)
{
    struct buf change;

    buf_init(&change, FINDING_BYTES_MAX);
    buf_printf(&change, "change: %.*s", SLICE_ARG(finding->change));
    const char *const texts[] = {"", "", "", buf_text(&change), NULL};
    bool ok = texts[3] != NULL && sheet_add(sheet, texts);
    buf_dispose(&change);
    return ok;
}

static bool add_finding(struct sheet *sheet, const struct findings *findings,
                        const struct finding *finding)
{
    const struct location *place = &finding->place;
    bool is_of_object = findings->are_of_objects;
    struct row row = {.count = 0};

    row_text(&row, slice_of(finding->ignored.len != 0 ? "ignored" : level_text(finding->level)));
    row_text(&row, slice_of(finding->rule->code));
    if (is_of_object)
        finding_put_object(row_cell(&row), place);
    finding_put_place(row_cell(&row), place, is_of_object ? SLICE("-") : place->name);
    row_text(&row, finding->what);
    return row_end(&row, sheet) && (finding->change.len == 0 || add_change(sheet, finding));
}

/* The heading, or the finding before that index. False without memory. */
static bool add_row(struct sheet *sheet, const void *context, size_t index)
{
    static const char *const with_object[] = {"LEVEL", "CODE", "OBJECT", "WHERE", "FINDING", NULL};
    static const char *const headings[] = {"LEVEL", "CODE", "WHERE", "FINDING", NULL};
    const struct findings *findings = context;

    return index != 0 ? add_finding(sheet, findings, &findings->items[index - 1])
                      : sheet_add(sheet, findings->are_of_objects ? with_object : headings);
}

/* The rule of the first finding of the highest level. */
static const struct rule *gravest(const struct findings *findings)
{
    const struct finding *found = &findings->items[0];

    for (size_t i = 1; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        bool is_graver =
            finding->ignored.len == 0 && (found->ignored.len != 0 || finding->level > found->level);
        found = is_graver ? finding : found;
    }
    return found->rule;
}

static void print_summary_of_objects(const struct findings *findings)
{
    size_t counts[LEVEL_NEVER], ignored = count_levels(findings, counts);

    if (findings->objects == 0) { /* what was not read is an error */
        gaps_print(&findings->gaps, "Note: ", ".", stdout);
        return;
    }
    (void)fputs(findings->count == 0 ? "No findings" : "\n", stdout);
    if (findings->count != 0)
        level_print_counts(counts, stdout);
    if (ignored != 0)
        (void)printf("; %zu ignored", ignored);
    (void)printf(". Objects: %zu read, %zu of other kinds skipped.\n", findings->objects,
                 findings->skipped);
    if (findings->count != 0)
        (void)printf("\"claimguard %s --explain %s\" says why, and what to do.\n",
                     findings->command, gravest(findings)->code);
    gaps_print(&findings->gaps, "Note: ", ".", stdout);
}

static void print_summary(const struct findings *findings)
{
    size_t counts[LEVEL_NEVER];

    (void)count_levels(findings, counts);
    level_print_counts(counts, stdout);
    (void)fputs(".", stdout);
    if (findings->count != 0)
        (void)printf(" \"claimguard %s --explain CODE\" says what breaks.", findings->command);
    if (findings->dropped != 0)
        (void)printf(" %zu more findings are not shown.", findings->dropped);
    (void)fputs("\n", stdout);
    gaps_print(&findings->gaps, "Not checked: ", "", stdout);
}

static bool print_table(const struct findings *findings)
{
    const struct sheet_rows rows = {findings->count + 1, add_row, findings};
    const struct sheet_style style = sheet_style(stdout);
    bool ok = findings->count == 0 || sheet_stream(&rows, &style, stdout);

    if (findings->are_of_objects)
        print_summary_of_objects(findings);
    else
        print_summary(findings);
    return ok && fflush(stdout) == 0 && !ferror(stdout);
}

bool findings_print(const struct findings *findings, enum output_format format)
{
    switch (format) {
    case OUTPUT_JSON:
    case OUTPUT_YAML: return print_data(findings, format);
    case OUTPUT_SARIF: return findings_sarif(findings);
    case OUTPUT_JUNIT: return findings_junit(findings);
    default: return print_table(findings);
    }
}
