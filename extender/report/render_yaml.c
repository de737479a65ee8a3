/* Results as YAML, with libyaml. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "extender/report/render_internal.h"

static void emit(struct render *render, int initialized, yaml_event_t *event)
{
    render->ok = render->ok && initialized && yaml_emitter_emit(&render->emitter, event);
}

static void emit_scalar(struct render *render, const char *text, bool is_string)
{
    yaml_event_t event;
    /* a string is quoted, so that a reader does not read it as a number or a boolean */
    yaml_scalar_style_t style =
        is_string ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_PLAIN_SCALAR_STYLE;

    emit(render,
         yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text,
                                      (int)strlen(text), !is_string, is_string, style),
         &event);
}

void render_yaml_start(struct render *render, bool is_object)
{
    yaml_event_t event;

    emit(render,
         is_object
             ? yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_ANY_MAPPING_STYLE)
             : yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, YAML_ANY_SEQUENCE_STYLE),
         &event);
}

void render_yaml_end(struct render *render, bool is_object)
{
    yaml_event_t event;

    emit(render,
         is_object ? yaml_mapping_end_event_initialize(&event)
                   : yaml_sequence_end_event_initialize(&event),
         &event);
}

void render_yaml_key(struct render *render, const char *key)
{
    emit_scalar(render, key, false);
}

/* NOLINTNEXTLINE(misc-no-recursion): results are four levels deep */
void render_yaml_put(struct render *render, const json_t *value)
{
    char number[32];
    const char *key;
    json_t *member;
    size_t i;

    switch (json_typeof(value)) {
    case JSON_OBJECT:
        render_yaml_start(render, true);
        json_object_foreach ((json_t *)(uintptr_t)value, key, member) {
            render_yaml_key(render, key);
            render_yaml_put(render, member);
        }
        render_yaml_end(render, true);
        break;
    case JSON_ARRAY:
        render_yaml_start(render, false);
        json_array_foreach (value, i, member)
            render_yaml_put(render, member);
        render_yaml_end(render, false);
        break;
    case JSON_STRING: emit_scalar(render, json_string_value(value), true); break;
    case JSON_INTEGER:
        (void)snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
        emit_scalar(render, number, false);
        break;
    default: emit_scalar(render, json_is_true(value) ? "true" : "false", false); break;
    }
}

void render_yaml_begin(struct render *render)
{
    yaml_event_t event;

    render->ok = yaml_emitter_initialize(&render->emitter) != 0;
    yaml_emitter_set_output_file(&render->emitter, stdout);
    yaml_emitter_set_width(&render->emitter, -1);
    yaml_emitter_set_unicode(&render->emitter, 1);
    emit(render, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING), &event);
    emit(render, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1), &event);
    if (render->is_list)
        render_yaml_start(render, false);
}

void render_yaml_finish(struct render *render)
{
    yaml_event_t event;

    if (render->is_list)
        render_yaml_end(render, false);
    emit(render, yaml_document_end_event_initialize(&event, 1), &event);
    emit(render, yaml_stream_end_event_initialize(&event), &event);
}

void render_yaml_dispose(struct render *render)
{
    yaml_emitter_delete(&render->emitter);
}
