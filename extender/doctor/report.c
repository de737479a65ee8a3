#include "extender/doctor/report.h"

#include <stdio.h>

#include "extender/report/sheet.h"
#include "extender/report/value.h"

enum { PLACE_BYTES = 1024, TEXT_BYTES = 1200 };

static const char *place_text(const struct location *place, char text[PLACE_BYTES])
{
    if (place->file == NULL)
        (void)snprintf(text, PLACE_BYTES, "%.*s", SLICE_ARG(place->name));
    else
        (void)snprintf(text, PLACE_BYTES, "%s:%zu:%zu", place->file, place->line, place->column);
    return text;
}

static size_t count_level(const struct findings *findings, enum level level)
{
    size_t count = 0;

    for (size_t i = 0; i < findings->count; i++)
        count += findings->items[i].level == level;
    return count;
}

/* ---- a table ---- */

static void print_summary(const struct findings *findings)
{
    size_t counts[LEVEL_NEVER];

    for (int level = LEVEL_NOTE; level < LEVEL_NEVER; level++)
        counts[level] = count_level(findings, (enum level)level);
    level_print_counts(counts, stdout);
    (void)printf(".");
    if (findings->count != 0)
        (void)printf(" \"claimguard doctor --explain CODE\" says what breaks.");
    if (findings->dropped != 0)
        (void)printf(" %zu more findings are not shown.", findings->dropped);
    (void)printf("\n");
    for (size_t i = 0; i < findings->unread_count; i++)
        (void)printf("Not checked: %.*s\n", SLICE_ARG(findings->unread[i]));
}

static bool add_finding(struct sheet *sheet, const struct finding *finding)
{
    char where[PLACE_BYTES], what[TEXT_BYTES], change[TEXT_BYTES];
    const char *const texts[] = {level_text(finding->level), finding->rule->code,
                                 place_text(&finding->place, where), what, NULL};
    const char *const below[] = {"", "", "", change, NULL};

    (void)snprintf(what, sizeof what, "%.*s", SLICE_ARG(finding->what));
    (void)snprintf(change, sizeof change, "change: %.*s", SLICE_ARG(finding->change));
    return sheet_add(sheet, texts) && (finding->change.len == 0 || sheet_add(sheet, below));
}

static bool print_table(const struct findings *findings)
{
    static const char *const headings[] = {"LEVEL", "CODE", "WHERE", "FINDING", NULL};
    const struct sheet_style style = sheet_style(stdout);
    struct sheet sheet = {.rows = NULL};
    bool ok = findings->count == 0 || sheet_add(&sheet, headings);

    for (size_t i = 0; i < findings->count && ok; i++)
        ok = add_finding(&sheet, &findings->items[i]);
    ok = ok && sheet_print(&sheet, &style, stdout);
    sheet_dispose(&sheet);
    print_summary(findings);
    return ok;
}

/* ---- JSON and YAML ---- */

static json_t *finding_value(const struct finding *finding)
{
    const struct location *place = &finding->place;
    char where[PLACE_BYTES];
    json_t *value =
        json_pack("{s:s,s:s,s:o,s:s,s:o,s:o}", "code", finding->rule->code, "level",
                  level_text(finding->level), "where",
                  value_text(slice_of(place_text(place, where))), "title", finding->rule->title,
                  "finding", value_text(finding->what), "change", value_text(finding->change));

    if (value != NULL && place->file != NULL)
        (void)json_object_update_new(
            value, json_pack("{s:o,s:I,s:I}", "file", value_text(slice_of(place->file)), "line",
                             (json_int_t)place->line, "column", (json_int_t)place->column));
    return value;
}

static json_t *result_value(const struct findings *findings)
{
    json_t *items = json_array(), *unread = json_array();

    for (size_t i = 0; i < findings->count; i++)
        (void)json_array_append_new(items, finding_value(&findings->items[i]));
    for (size_t i = 0; i < findings->unread_count; i++)
        (void)json_array_append_new(unread, value_text(findings->unread[i]));
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
    bool ok = render_value(value, format);

    json_decref(value);
    return ok;
}

bool doctor_report(const struct findings *findings, enum output_format format)
{
    if (format != OUTPUT_TABLE)
        return print_value(findings, format);
    return print_table(findings) && fflush(stdout) == 0 && !ferror(stdout);
}
