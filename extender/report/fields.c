#include "extender/report/fields.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "config/base/text.h"

enum { INDENT = 2, PIECE_BYTES = 64 * 1024, BYTES_MAX = 1 << 30 };

bool output_format_parse(enum output_format *out, const char *word, unsigned formats)
{
    static const char *const words[] = {"table", "wide", "json", "yaml", "sarif", "junit"};

    *out = OUTPUT_TABLE;
    for (unsigned i = 0; word != NULL && i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0) {
            *out = (enum output_format)i;
            return (formats & 1U << i) != 0;
        }
    return word == NULL;
}

/* ---- texts ---- */

static bool is_utf8(struct slice text)
{
    int length = 1;

    for (size_t i = 0; i < text.len && length > 0; i += (size_t)length)
        length = utf8_length(text.ptr + i, text.len - i);
    return length > 0;
}

/* The text; with U+FFFD for each byte that is not UTF-8. Valid until the next call. */
static struct slice clean(struct fields *fields, struct slice text)
{
    if (is_utf8(text))
        return text;
    buf_reset(&fields->clean, PIECE_BYTES);
    for (size_t i = 0; i < text.len;) {
        int length = utf8_length(text.ptr + i, text.len - i);
        size_t taken = length > 0 ? (size_t)length : 1;
        buf_put(&fields->clean,
                length > 0 ? (struct slice){text.ptr + i, taken} : SLICE("\xef\xbf\xbd"));
        i += taken;
    }
    fields->has_failed = fields->has_failed || fields->clean.failed;
    return buf_slice(&fields->clean);
}

/* ---- JSON ---- */

static void put_escaped(struct buf *out, char c)
{
    static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *found = c == '\0' ? NULL : strchr(escaped, c);

    if (found != NULL)
        buf_printf(out, "\\%c", letters[found - escaped]);
    else
        buf_printf(out, "\\u%04X", (unsigned)c);
}

/* As jansson writes it. text: UTF-8. */
static void put_json(struct buf *out, struct slice text)
{
    size_t plain = 0; /* the begin of what needs no escape */

    buf_put(out, SLICE("\""));
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if ((unsigned char)c >= 0x20 && c != '"' && c != '\\')
            continue;
        buf_put(out, (struct slice){text.ptr + plain, i - plain});
        put_escaped(out, c);
        plain = i + 1;
    }
    if (text.len != 0)
        buf_put(out, (struct slice){text.ptr + plain, text.len - plain});
    buf_put(out, SLICE("\""));
}

static void put_line(struct fields *fields)
{
    size_t levels = fields->depth - (fields->is_list && fields->depth != 0 ? 1 : 0);

    if (fields->file == NULL)
        return;
    buf_put(fields->out, SLICE("\n"));
    for (size_t i = 0; i < levels * INDENT; i++)
        buf_put(fields->out, SLICE(" "));
}

/* What is between the item before and the value: a comma, a line, the key. */
static void put_key(struct fields *fields, const char *key)
{
    if (fields->depth == 0)
        return;
    if (fields->has_items)
        buf_put(fields->out, SLICE(","));
    put_line(fields);
    fields->has_items = true;
    if (key == NULL)
        return;
    put_json(fields->out, slice_of(key));
    buf_put(fields->out, fields->file == NULL ? SLICE(":") : SLICE(": "));
}

/* Prints what the buffer has. */
static void flush(struct fields *fields, size_t least)
{
    struct buf *out = fields->out;

    if (fields->file == NULL || out->len < least || out->len == 0 || fields->has_failed)
        return;
    fields->has_failed = out->failed || fwrite(out->bytes, 1, out->len, fields->file) != out->len;
    buf_reset(out, SIZE_MAX);
}

/* ---- YAML ---- */

static void emit(struct fields *fields, int is_initialized, yaml_event_t *event)
{
    bool ok = !fields->has_failed && is_initialized && yaml_emitter_emit(fields->yaml, event);

    fields->has_failed = !ok;
}

static void emit_scalar(struct fields *fields, struct slice text, bool is_string)
{
    yaml_event_t event;
    /* a string is quoted, so that a reader does not read it as a number or a boolean */
    yaml_scalar_style_t style =
        is_string ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_PLAIN_SCALAR_STYLE;
    const char *bytes = text.len == 0 ? "" : text.ptr;

    emit(fields,
         yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)bytes,
                                      (int)strnlen(bytes, text.len), !is_string, is_string, style),
         &event);
}

static void emit_open(struct fields *fields, char bracket)
{
    yaml_event_t event;

    emit(fields,
         bracket == '{'
             ? yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_ANY_MAPPING_STYLE)
             : yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, YAML_ANY_SEQUENCE_STYLE),
         &event);
}

static void emit_close(struct fields *fields, char bracket)
{
    yaml_event_t event;

    emit(fields,
         bracket == '{' ? yaml_mapping_end_event_initialize(&event)
                        : yaml_sequence_end_event_initialize(&event),
         &event);
}

static void emit_begin(struct fields *fields)
{
    yaml_event_t event;

    fields->yaml = calloc(1, sizeof *fields->yaml);
    fields->has_failed = fields->yaml == NULL || yaml_emitter_initialize(fields->yaml) == 0;
    if (fields->has_failed)
        return;
    yaml_emitter_set_output_file(fields->yaml, fields->file);
    yaml_emitter_set_width(fields->yaml, -1);
    yaml_emitter_set_unicode(fields->yaml, 1);
    emit(fields, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING), &event);
    emit(fields, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1), &event);
}

static void emit_end(struct fields *fields)
{
    yaml_event_t event;

    emit(fields, yaml_document_end_event_initialize(&event, 1), &event);
    emit(fields, yaml_stream_end_event_initialize(&event), &event);
}

/* ---- all formats ---- */

void fields_begin(struct fields *fields, enum output_format format, FILE *file)
{
    *fields = (struct fields){.file = file};
    fields->out = &fields->own;
    buf_init(&fields->own, BYTES_MAX);
    buf_init(&fields->clean, BYTES_MAX);
    if (format == OUTPUT_YAML)
        emit_begin(fields);
}

void fields_begin_compact(struct fields *fields, struct buf *out)
{
    fields_begin(fields, OUTPUT_JSON, NULL);
    fields->out = out;
}

bool fields_end(struct fields *fields)
{
    while (fields->depth != 0)
        fields_close(fields);
    if (fields->yaml != NULL)
        emit_end(fields);
    else if (fields->file != NULL)
        buf_put(fields->out, SLICE("\n"));
    flush(fields, 0);
    bool ok = !fields->has_failed && !fields->out->failed &&
              (fields->file == NULL || (fflush(fields->file) == 0 && !ferror(fields->file)));
    fields_discard(fields);
    return ok;
}

void fields_discard(struct fields *fields)
{
    if (fields->yaml != NULL)
        yaml_emitter_delete(fields->yaml);
    free(fields->yaml);
    fields->yaml = NULL;
    buf_dispose(&fields->own);
    buf_dispose(&fields->clean);
}

static void put_name(struct fields *fields, const char *key)
{
    if (fields->yaml == NULL)
        put_key(fields, key);
    else if (key != NULL)
        emit_scalar(fields, slice_of(key), false);
}

void fields_open(struct fields *fields, const char *key, char bracket)
{
    put_name(fields, key);
    if (fields->yaml == NULL)
        buf_put(fields->out, (struct slice){&bracket, 1});
    else
        emit_open(fields, bracket);
    assert(fields->depth < FIELDS_DEPTH_MAX);
    fields->brackets[fields->depth++] = bracket;
    fields->has_items = false;
}

void fields_open_results(struct fields *fields)
{
    fields_open(fields, NULL, '[');
    fields->is_list = true;
}

void fields_close(struct fields *fields)
{
    char bracket = fields->brackets[--fields->depth];

    if (fields->yaml != NULL) {
        emit_close(fields, bracket);
        return;
    }
    if (fields->has_items)
        put_line(fields);
    buf_put(fields->out, bracket == '{' ? SLICE("}") : SLICE("]"));
    fields->has_items = true;
    flush(fields, PIECE_BYTES);
}

void fields_text(struct fields *fields, const char *key, struct slice text)
{
    put_name(fields, key);
    if (fields->yaml == NULL)
        put_json(fields->out, clean(fields, text));
    else
        emit_scalar(fields, clean(fields, text), true);
}

void fields_buf(struct fields *fields, const char *key, struct buf *text)
{
    fields_text(fields, key, buf_slice(text));
    fields->has_failed = fields->has_failed || text->failed;
    buf_dispose(text);
}

/* A value that is no text. */
static void put_plain(struct fields *fields, const char *key, struct slice text)
{
    put_name(fields, key);
    if (fields->yaml == NULL)
        buf_put(fields->out, text);
    else
        emit_scalar(fields, text, false);
}

void fields_number(struct fields *fields, const char *key, int64_t number)
{
    char text[32];
    int length = snprintf(text, sizeof text, "%lld", (long long)number);

    put_plain(fields, key, (struct slice){text, (size_t)length});
}

void fields_flag(struct fields *fields, const char *key, bool flag)
{
    put_plain(fields, key, flag ? SLICE("true") : SLICE("false"));
}
