#include "watch_as_go.h"

#include <string.h>

#include "as_go.h"

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

/* What stands there is a string, or nothing, and shorter than that. */
static bool is_short(const json_t *object, const char *key, size_t size)
{
    const json_t *value = json_object_get(object, key);
    return value == NULL || json_is_null(value) ||
           (json_is_string(value) && json_string_length(value) < size);
}

static bool is_of_kind(const json_t *object, enum kind kind, const char *suffix)
{
    struct slice name = slice_of(text_of(object, "kind")), end = slice_of(suffix);

    return slice_ends_with(name, end) &&
           kind_of(slice_of(text_of(object, "apiVersion")),
                   (struct slice){name.ptr, name.len - end.len}) == kind;
}

/* Its kind and apiVersion are no longer than what is read of them. The reader counts bytes as they
 * come; decoded, as here, a damaged one is U+FFFD, which has three. */
static bool is_named_shortly(const json_t *object)
{
    return is_short(object, "kind", 64) && is_short(object, "apiVersion", 64);
}

static bool has_version(const json_t *object)
{
    const json_t *meta = json_object_get(object, "metadata");
    return json_is_object(meta) && is_short(meta, "resourceVersion", 32) &&
           version_of(slice_of(text_of(meta, "resourceVersion"))) != 0;
}

/* Of the list that was asked for: the page. */
static bool is_list(const json_t *page, enum kind kind)
{
    const json_t *items = json_object_get(page, "items");

    return is_of_kind(page, kind, "List") && has_version(page) &&
           (json_is_array(items) || json_is_null(items));
}

/* Whether the page says what it is before its items; jansson keeps the order. */
static bool comes_first(json_t *page)
{
    const char *key;
    json_t *value;
    unsigned seen = 0;

    json_object_foreach (page, key, value) {
        if (strcmp(key, "items") == 0)
            break;
        seen += strcmp(key, "kind") == 0 || strcmp(key, "apiVersion") == 0 ||
                strcmp(key, "metadata") == 0;
    }
    return seen == 3;
}

/* ... and there is nothing in it that is to be refused. */
static bool is_good_list(json_t *page, enum kind kind)
{
    const json_t *item, *list = json_object_get(page, "items");
    size_t i;

    if (!is_list(page, kind) || !is_named_shortly(page) || !comes_first(page) ||
        !is_short(json_object_get(page, "metadata"), "continue", 4096))
        return false;
    json_array_foreach (list, i, item)
        if (!json_is_object(item) || json_object_get(item, "kind") != NULL ||
            json_object_get(item, "apiVersion") != NULL)
            return false;
    return true;
}

/* What one line of a watch says. */
struct line {
    bool is_event;  /* nothing about it is to be refused */
    bool ends_list; /* the bookmark behind the initial events */
    bool deletes;
};

static struct line read_line(struct slice text, enum kind kind)
{
    json_t *event = load_as_go(text, JSON_REJECT_DUPLICATES, NULL);
    json_t *loose = event == NULL ? load_as_go(text, 0, NULL) : json_incref(event);
    const char *type = text_of(loose, "type");
    const json_t *object = json_object_get(loose, "object");
    const json_t *meta = json_object_get(object, "metadata");
    bool is_right = is_of_kind(object, kind, "");
    bool is_bookmark = strcmp(type, "BOOKMARK") == 0;
    const json_t *annotations = json_object_get(meta, "annotations");
    struct line line = {
        .ends_list = loose == NULL || (is_right && is_bookmark && has_version(object) &&
                                       text_of(annotations, "k8s.io/initial-events-end")[0] != 0),
        /* damaged lines may be deletions, too */
        .deletes = loose == NULL || (is_right && strcmp(type, "DELETED") == 0),
        .is_event = event != NULL && is_right && is_named_shortly(object) &&
                    (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0 ||
                     strcmp(type, "DELETED") == 0 || (is_bookmark && has_version(object))),
    };

    json_decref(event);
    json_decref(loose);
    return line;
}

struct watch_reading watch_read_lines(struct slice answer, enum kind kind)
{
    struct watch_reading reading = {.is_good = true};

    while (answer.len != 0) {
        const char *feed = memchr(answer.ptr, '\n', answer.len);
        size_t len = feed == NULL ? answer.len : (size_t)(feed - answer.ptr);
        struct slice text = {answer.ptr, len};
        struct line line = read_line(text, kind);
        reading.ends += line.ends_list;
        reading.deletions += line.deletes;
        reading.is_good &= line.is_event;
        len += feed != NULL;
        answer = (struct slice){answer.ptr + len, answer.len - len};
    }
    return reading;
}

struct watch_reading watch_read_page(struct slice answer, enum kind kind)
{
    json_t *page = load_as_go(answer, JSON_DISABLE_EOF_CHECK, NULL);
    json_t *strict = load_as_go(answer, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, NULL);
    struct watch_reading reading = {
        .ends = page == NULL || is_list(page, kind),
        .is_good = strict != NULL && is_good_list(strict, kind),
    };

    json_decref(page);
    json_decref(strict);
    return reading;
}
