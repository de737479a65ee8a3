#include "extender/report/render.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/report/explain.h"
#include "extender/report/render_internal.h"

enum { RESULT_BYTES_MAX = 1 << 30 };

bool render_format_parse(enum output_format *out, const char *word)
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

/* ---- JSON ---- */

/* Collects the text first, because jansson writes pieces of a few bytes. */
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
        render_yaml_begin(render);
    else if (format == OUTPUT_JSON && is_list)
        (void)fputs("[", stdout);
    else if (format != OUTPUT_JSON)
        render_table_begin(render);
    return render;
}

bool render_put(struct render *render, const json_t *result)
{
    if (render->format == OUTPUT_JSON) {
        if (render->is_list)
            (void)fputs(render->count == 0 ? "\n" : ",\n", stdout);
        put_json(render, result);
    } else if (render->format == OUTPUT_YAML) {
        render_yaml_put(render, result);
    } else {
        render_table_put(render, result);
    }
    render->count++;
    render->schedulable += json_is_true(json_object_get(result, "schedulable"));
    return render->ok;
}

bool render_finish(struct render *render)
{
    if (render->format == OUTPUT_YAML)
        render_yaml_finish(render);
    else if (render->format == OUTPUT_JSON)
        (void)fputs(render->is_list ? (render->count == 0 ? "]\n" : "\n]\n") : "\n", stdout);
    else
        render_table_finish(render);
    bool ok = render->ok && fflush(stdout) == 0 && !ferror(stdout);
    render_discard(render);
    return ok;
}

void render_discard(struct render *render)
{
    render_table_dispose(render);
    buf_dispose(&render->text);
    if (render->format == OUTPUT_YAML)
        render_yaml_dispose(render);
    free(render);
}

bool render_value(const json_t *value, enum output_format format)
{
    struct render *render = value == NULL ? NULL : render_new(format, false);

    if (render == NULL)
        return false;
    bool is_put = render_put(render, value);
    return render_finish(render) && is_put;
}
