/*
 * json_fields: writes JSON objects field by field, with the commas between them. A field without a
 * value (an empty text, false) is left out.
 *
 *     struct buf out;
 *     buf_init(&out, 4096);
 *     json_begin(&out, NULL, '{');
 *     json_text(&out, "name", name);
 *     json_begin(&out, "claims", '[');
 *     json_text(&out, NULL, SLICE("data"));
 *     json_end(&out, ']');
 *     json_end(&out, '}');
 *
 * Errors: the buffer's. Threads: one at a time.
 */
#ifndef EXTENDER_ZPAGES_JSON_FIELDS_H
#define EXTENDER_ZPAGES_JSON_FIELDS_H

#include "config/base/buf.h"

/* A comma, unless this is the first field or item; then the key, unless that is NULL (an item). An
 * item behind a line feed has no comma either. */
static inline void json_key(struct buf *out, const char *key)
{
    char last = out->len == 0 ? '\n' : out->bytes[out->len - 1];

    if (key == NULL) {
        buf_put(out, last == '[' || last == '\n' ? SLICE("") : SLICE(","));
        return;
    }
    buf_put(out, last == '{' ? SLICE("\"") : SLICE(",\""));
    buf_put(out, slice_of(key));
    buf_put(out, SLICE("\":"));
}

static inline void json_begin(struct buf *out, const char *key, char bracket)
{
    json_key(out, key);
    buf_put(out, (struct slice){&bracket, 1});
}

static inline void json_end(struct buf *out, char bracket)
{
    buf_put(out, (struct slice){&bracket, 1});
}

static inline void json_text(struct buf *out, const char *key, struct slice text)
{
    if (text.len == 0)
        return;
    json_key(out, key);
    buf_json(out, text);
}

/* The value, as JSON. */
static inline void json_value(struct buf *out, const char *key, struct slice value)
{
    json_key(out, key);
    buf_put(out, value);
}

static inline void json_flag(struct buf *out, const char *key, bool is_set)
{
    if (is_set)
        json_value(out, key, SLICE("true"));
}

static inline void json_number(struct buf *out, const char *key, int64_t number)
{
    json_key(out, key);
    buf_printf(out, "%lld", (long long)number);
}

/* A field of which only the presence counts. */
static inline void json_presence(struct buf *out, const char *key, bool is_present)
{
    if (is_present)
        json_value(out, key, SLICE("{}"));
}

#endif
