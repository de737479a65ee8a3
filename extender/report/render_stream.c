/* Objects with one long array, whose items are made and printed one by one. */
#include <stdint.h>
#include <stdio.h>

#include "extender/report/explain.h"
#include "extender/report/render_internal.h"

enum { TEXT_BYTES_MAX = 1 << 30, INDENT = 2 };

static void put(struct render *render, const char *bytes, size_t count)
{
    render->ok = render->ok && fwrite(bytes, 1, count, stdout) == count;
}

/* The value as text, in render->text. Borrows the value. */
static void dump(struct render *render, const json_t *value)
{
    json_t *borrowed = json_incref((json_t *)(uintptr_t)value);
    struct error err;

    buf_reset(&render->text, SIZE_MAX);
    int rc = explain_write(borrowed, JSON_INDENT(INDENT), &render->text, &err);
    render->ok = render->ok && rc == 0 && !render->text.failed;
}

/* ---- JSON ---- */

/* Where the empty array is in the text, as "[]" in a line of its own, which begins with so many
 * spaces. Strings have no line break in them. */
struct hole {
    size_t begin, indent;
};

static bool find_hole(const struct buf *text, const char *key, struct hole *out)
{
    char wanted[64];
    int length = snprintf(wanted, sizeof wanted, "\"%s\": []", key);

    for (size_t at = 0; at < text->len;) {
        const char *line = text->bytes + at, *end = memchr(line, '\n', text->len - at);
        size_t len = end == NULL ? text->len - at : (size_t)(end - line), indent = 0;
        while (indent < len && line[indent] == ' ')
            indent++;
        if (len - indent >= (size_t)length && memcmp(line + indent, wanted, (size_t)length) == 0) {
            *out = (struct hole){at + indent + (size_t)length - 1, indent};
            return true;
        }
        at += len + 1;
    }
    return false;
}

/* The item, with so many spaces before each line. */
static void put_item(struct render *render, const json_t *item, size_t indent)
{
    dump(render, item);
    for (size_t at = 0; at < render->text.len && render->ok;) {
        const char *line = render->text.bytes + at;
        const char *end = memchr(line, '\n', render->text.len - at);
        size_t len = end == NULL ? render->text.len - at : (size_t)(end - line) + 1;
        (void)printf("%*s", (int)indent, "");
        put(render, line, len);
        at += len;
    }
}

static void put_items(struct render *render, const struct render_items *items, size_t indent)
{
    for (size_t i = 0; i < items->count && render->ok; i++) {
        json_t *item = items->make(items->context, i);
        (void)fputs(i == 0 ? "\n" : ",\n", stdout);
        render->ok = item != NULL;
        if (item != NULL)
            put_item(render, item, indent + INDENT);
        json_decref(item);
    }
    if (items->count != 0)
        (void)printf("\n%*s", (int)indent, "");
}

static void stream_json(struct render *render, const json_t *object,
                        const struct render_items *items)
{
    struct buf whole;
    struct hole hole;

    dump(render, object);
    whole = render->text;
    buf_init(&render->text, TEXT_BYTES_MAX);
    if (render->ok && find_hole(&whole, items->key, &hole)) {
        put(render, whole.bytes, hole.begin);
        put_items(render, items, hole.indent);
        put(render, whole.bytes + hole.begin, whole.len - hole.begin);
    } else {
        render->ok = false;
    }
    buf_dispose(&whole);
}

/* ---- YAML ---- */

static void stream_yaml(struct render *render, const json_t *object,
                        const struct render_items *items)
{
    const char *key;
    json_t *member;

    render_yaml_start(render, true);
    json_object_foreach ((json_t *)(uintptr_t)object, key, member) {
        render_yaml_key(render, key);
        if (strcmp(key, items->key) != 0) {
            render_yaml_put(render, member);
            continue;
        }
        render_yaml_start(render, false);
        for (size_t i = 0; i < items->count && render->ok; i++) {
            json_t *item = items->make(items->context, i);
            render->ok = item != NULL;
            if (item != NULL)
                render_yaml_put(render, item);
            json_decref(item);
        }
        render_yaml_end(render, false);
    }
    render_yaml_end(render, true);
}

bool render_stream(enum output_format format, const json_t *object,
                   const struct render_items *items)
{
    struct render *render = render_new(format, false);

    if (render == NULL)
        return false;
    if (format == OUTPUT_YAML)
        stream_yaml(render, object, items);
    else
        stream_json(render, object, items);
    return render_finish(render);
}
