#include "extender/report/render.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "config/base/buf.h"
#include "config/base/printable.h"
#include "extender/report/explain.h"

enum {
    COLUMNS_MAX = 8,
    RESULT_BYTES_MAX = 1 << 30,
};

struct row {
    char *cells[COLUMNS_MAX]; /* up to a NULL */
};

struct sheet {
    struct row *rows; /* the first is the heading */
    size_t count;
};

struct render {
    enum output_format format;
    bool is_list;
    bool ok;
    size_t count;               /* results */
    size_t schedulable;         /* of them */
    struct sheet pods, volumes; /* volumes: what is decided about deferFSMount */
    yaml_emitter_t emitter;
    struct buf text; /* of one result as JSON */
};

static const char *const headings[] = {
    "NAMESPACE", "POD", "SCHEDULABLE", "VERDICT", "PREEMPTION", "REASON", NULL,
};
static const char *const volume_headings[] = {
    "NAMESPACE", "POD", "VOLUME", "DEFER", "ENTRY", "REASON", NULL,
};
static const char *const wide_headings[] = {
    "NAMESPACE", "POD", "SCHEDULABLE", "VERDICT", "NODES", "CLAIMS", "PREEMPTION", "REASON", NULL,
};

bool output_format_parse(enum output_format *out, const char *word)
{
    static const char *const words[] = {"table", "wide", "json", "yaml"};

    for (int i = 0; i < 4; i++) {
        if (strcmp(word, words[i]) == 0) {
            *out = (enum output_format)i;
            return true;
        }
    }
    return false;
}

/* ---- YAML ---- */

static void emit(struct render *render, int initialized, yaml_event_t *event)
{
    render->ok = render->ok && initialized && yaml_emitter_emit(&render->emitter, event);
}

static void emit_scalar(struct render *render, const char *text, bool is_string)
{
    yaml_event_t event;
    /* a string is quoted, so that no reader takes it for a number or a boolean */
    yaml_scalar_style_t style =
        is_string ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_PLAIN_SCALAR_STYLE;

    emit(render,
         yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text,
                                      (int)strlen(text), !is_string, is_string, style),
         &event);
}

static void emit_start(struct render *render, bool is_object)
{
    yaml_event_t event;

    emit(render,
         is_object
             ? yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_ANY_MAPPING_STYLE)
             : yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, YAML_ANY_SEQUENCE_STYLE),
         &event);
}

static void emit_end(struct render *render, bool is_object)
{
    yaml_event_t event;

    emit(render,
         is_object ? yaml_mapping_end_event_initialize(&event)
                   : yaml_sequence_end_event_initialize(&event),
         &event);
}

/* NOLINTNEXTLINE(misc-no-recursion): results are four levels deep */
static void emit_value(struct render *render, const json_t *value)
{
    char number[32];
    const char *key;
    json_t *member;
    size_t i;

    switch (json_typeof(value)) {
    case JSON_OBJECT:
        emit_start(render, true);
        json_object_foreach ((json_t *)(uintptr_t)value, key, member) {
            emit_scalar(render, key, false);
            emit_value(render, member);
        }
        emit_end(render, true);
        break;
    case JSON_ARRAY:
        emit_start(render, false);
        json_array_foreach (value, i, member)
            emit_value(render, member);
        emit_end(render, false);
        break;
    case JSON_STRING: emit_scalar(render, json_string_value(value), true); break;
    case JSON_INTEGER:
        (void)snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
        emit_scalar(render, number, false);
        break;
    default: emit_scalar(render, json_is_true(value) ? "true" : "false", false); break;
    }
}

static void yaml_begin(struct render *render)
{
    yaml_event_t event;

    render->ok = yaml_emitter_initialize(&render->emitter) != 0;
    yaml_emitter_set_output_file(&render->emitter, stdout);
    yaml_emitter_set_width(&render->emitter, -1);
    yaml_emitter_set_unicode(&render->emitter, 1);
    emit(render, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING), &event);
    emit(render, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1), &event);
    if (render->is_list)
        emit_start(render, false);
}

static void yaml_finish(struct render *render)
{
    yaml_event_t event;

    if (render->is_list)
        emit_end(render, false);
    emit(render, yaml_document_end_event_initialize(&event, 1), &event);
    emit(render, yaml_stream_end_event_initialize(&event), &event);
}

/* ---- tables ---- */

static const char *string_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

static size_t passing_nodes(const json_t *nodes)
{
    size_t count = 0, i;
    json_t *node;

    json_array_foreach (nodes, i, node)
        count += strcmp(string_at(node, "code"), "Success") == 0;
    return count;
}

/* Texts one behind the other with a separator; the caller frees. */
static char *append_text(char *text, const char *separator, const char *more)
{
    char *joined = NULL;

    if (text == NULL || more == NULL ||
        asprintf(&joined, "%s%s%s", text, *text == '\0' ? "" : separator, more) < 0)
        joined = NULL;
    free(text);
    return joined;
}

static char *reasons_cell(const json_t *prefilter)
{
    char *cell = strdup("");
    json_t *reason;
    size_t i;

    json_array_foreach (json_object_get(prefilter, "reasons"), i, reason)
        cell = append_text(cell, "; ", json_string_value(reason));
    return append_text(cell, "", cell != NULL && *cell == '\0' ? "-" : "");
}

/* "evict db-0", or why not. */
static char *preemption_cell(const json_t *result)
{
    const json_t *preemption = json_object_get(result, "preemption");
    char *cell = strdup("");
    json_t *victim;
    size_t i;

    if (json_is_true(json_object_get(result, "schedulable")))
        return append_text(cell, "", "-");
    if (!json_is_true(json_object_get(preemption, "helps")))
        return append_text(cell, "", "no help");
    json_array_foreach (json_object_get(preemption, "victims"), i, victim)
        cell = append_text(cell, ", ", string_at(victim, "name"));
    char *named = NULL;
    if (cell != NULL && asprintf(&named, "evict %s", cell) < 0)
        named = NULL;
    free(cell);
    return named;
}

/* "data (exclusive, held by db-0), logs" */
static char *claims_cell(const json_t *result)
{
    char *cell = strdup("");
    json_t *claim, *holder;
    size_t i, j;

    json_array_foreach (json_object_get(result, "claims"), i, claim) {
        const json_t *holders = json_object_get(claim, "heldBy");
        cell = append_text(cell, ", ", string_at(claim, "name"));
        if (!json_is_true(json_object_get(claim, "found")))
            cell = append_text(cell, " ", "(missing)");
        else if (json_is_true(json_object_get(claim, "exclusive")))
            cell = append_text(cell, " ",
                               json_array_size(holders) == 0 ? "(exclusive, free)"
                                                             : "(exclusive, held by");
        if (!json_is_true(json_object_get(claim, "exclusive")))
            continue;
        json_array_foreach (holders, j, holder) {
            cell = append_text(cell, j == 0 ? " " : " and ", string_at(holder, "name"));
            if (j + 1 == json_array_size(holders))
                cell = append_text(cell, "", ")");
        }
    }
    return append_text(cell, "", cell != NULL && *cell == '\0' ? "-" : "");
}

static char *nodes_cell(const json_t *result)
{
    const json_t *nodes = json_object_get(result, "nodes");
    char *cell = NULL;

    if (asprintf(&cell, "%zu/%zu", passing_nodes(nodes), json_array_size(nodes)) < 0)
        return NULL;
    return cell;
}

static struct row *add_row(struct render *render, struct sheet *sheet)
{
    struct row *grown = realloc(sheet->rows, (sheet->count + 1) * sizeof *grown);

    if (grown == NULL) {
        render->ok = false;
        return NULL;
    }
    sheet->rows = grown;
    grown[sheet->count] = (struct row){{NULL}};
    return &grown[sheet->count++];
}

/* A row of copies of these texts, up to a NULL. */
static void add_texts(struct render *render, struct sheet *sheet, const char *const *texts)
{
    struct row *row = add_row(render, sheet);

    for (size_t i = 0; row != NULL && texts[i] != NULL; i++) {
        row->cells[i] = strdup(texts[i]);
        render->ok = render->ok && row->cells[i] != NULL;
    }
}

/* The decisions about the pod's volumes. */
static void volumes_put(struct render *render, const json_t *result)
{
    const json_t *pod = json_object_get(result, "pod");
    json_t *decision;
    size_t i;

    json_array_foreach (json_object_get(result, "deferFSMount"), i, decision) {
        const char *entry = string_at(decision, "entry");
        const char *const texts[] = {
            string_at(pod, "namespace"),
            string_at(pod, "name"),
            string_at(decision, "volume"),
            json_is_true(json_object_get(decision, "defer")) ? "yes" : "no",
            entry[0] == '\0' ? "-" : entry,
            string_at(decision, "reason"),
            NULL,
        };
        if (render->volumes.count == 0)
            add_texts(render, &render->volumes, volume_headings);
        add_texts(render, &render->volumes, texts);
    }
}

static void table_put(struct render *render, const json_t *result)
{
    const json_t *pod = json_object_get(result, "pod"),
                 *prefilter = json_object_get(result, "preFilter");
    struct row *row = add_row(render, &render->pods);
    size_t i = 0;

    if (row == NULL)
        return;
    row->cells[i++] = strdup(string_at(pod, "namespace"));
    row->cells[i++] = strdup(string_at(pod, "name"));
    row->cells[i++] = strdup(json_is_true(json_object_get(result, "schedulable")) ? "yes" : "no");
    row->cells[i++] = strdup(string_at(prefilter, "code"));
    if (render->format == OUTPUT_WIDE) {
        row->cells[i++] = nodes_cell(result);
        row->cells[i++] = claims_cell(result);
    }
    row->cells[i++] = preemption_cell(result);
    row->cells[i++] = reasons_cell(prefilter);
    for (size_t j = 0; j < i; j++)
        render->ok = render->ok && row->cells[j] != NULL;
    volumes_put(render, result);
}

static void sheet_print(const struct render *render, const struct sheet *sheet)
{
    size_t widths[COLUMNS_MAX] = {0};

    for (size_t r = 0; r < sheet->count; r++)
        for (size_t c = 0; c < COLUMNS_MAX && sheet->rows[r].cells[c] != NULL; c++) {
            make_printable(sheet->rows[r].cells[c]);
            if (strlen(sheet->rows[r].cells[c]) > widths[c])
                widths[c] = strlen(sheet->rows[r].cells[c]);
        }
    for (size_t r = 0; r < sheet->count && render->ok; r++) {
        for (size_t c = 0; c < COLUMNS_MAX && sheet->rows[r].cells[c] != NULL; c++) {
            bool is_last = c + 1 == COLUMNS_MAX || sheet->rows[r].cells[c + 1] == NULL;
            (void)printf("%-*s%s", is_last ? 0 : (int)widths[c], sheet->rows[r].cells[c],
                         is_last ? "\n" : "  ");
        }
    }
}

static void sheet_free(struct sheet *sheet)
{
    for (size_t r = 0; r < sheet->count; r++)
        for (size_t c = 0; c < COLUMNS_MAX; c++)
            free(sheet->rows[r].cells[c]);
    free(sheet->rows);
}

static void sheets_finish(const struct render *render)
{
    sheet_print(render, &render->pods);
    if (render->volumes.count != 0)
        (void)puts("\nWhat is decided about deferFSMount:\n");
    sheet_print(render, &render->volumes);
    (void)printf("\n%zu %s: %zu schedulable, %zu not. Judged by claimguard's policies "
                 "(ReadWriteOncePod),\nnot by the scheduler's own (resources, taints, affinity).\n",
                 render->count, render->count == 1 ? "pod" : "pods", render->schedulable,
                 render->count - render->schedulable);
    if (render->schedulable > 1)
        (void)puts("Each by itself: of several that want one free claim, one gets it.");
}

/* ---- JSON ---- */

/* Through memory: jansson gives its text in pieces of a few bytes. */
static void put_json(struct render *render, const json_t *result)
{
    struct error err;
    json_t *borrowed = json_incref((json_t *)(uintptr_t)result);

    buf_reset(&render->text, SIZE_MAX);
    int rc = explain_write(borrowed, JSON_INDENT(2), &render->text, &err);
    render->ok = render->ok && rc == 0 && !render->text.failed &&
                 fwrite(render->text.bytes, 1, render->text.len, stdout) == render->text.len;
}

/* ---- all formats ---- */

struct render *render_new(enum output_format format, bool is_list)
{
    struct render *render = calloc(1, sizeof *render);

    if (render == NULL)
        return NULL;
    render->format = format;
    render->is_list = is_list;
    render->ok = true;
    buf_init(&render->text, RESULT_BYTES_MAX);
    if (format == OUTPUT_YAML)
        yaml_begin(render);
    else if (format == OUTPUT_JSON && is_list)
        (void)fputs("[", stdout);
    else if (format != OUTPUT_JSON)
        add_texts(render, &render->pods, format == OUTPUT_WIDE ? wide_headings : headings);
    return render;
}

bool render_put(struct render *render, const json_t *result)
{
    if (render->format == OUTPUT_JSON) {
        if (render->is_list)
            (void)fputs(render->count == 0 ? "\n" : ",\n", stdout);
        put_json(render, result);
    } else if (render->format == OUTPUT_YAML) {
        emit_value(render, result);
    } else {
        table_put(render, result);
    }
    render->count++;
    render->schedulable += json_is_true(json_object_get(result, "schedulable"));
    return render->ok;
}

bool render_finish(struct render *render)
{
    if (render->format == OUTPUT_YAML)
        yaml_finish(render);
    else if (render->format == OUTPUT_JSON)
        (void)fputs(render->is_list ? (render->count == 0 ? "]\n" : "\n]\n") : "\n", stdout);
    else
        sheets_finish(render);
    bool ok = render->ok && fflush(stdout) == 0 && !ferror(stdout);
    render_discard(render);
    return ok;
}

void render_discard(struct render *render)
{
    sheet_free(&render->pods);
    sheet_free(&render->volumes);
    buf_dispose(&render->text);
    if (render->format == OUTPUT_YAML)
        yaml_emitter_delete(&render->emitter);
    free(render);
}
