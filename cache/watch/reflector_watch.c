/*
 * The answer to a watch, or to a streamed list: one event per line.
 */
#include "cache/json/pull_fields.h"
#include "cache/watch/reflector_internal.h"
#include "config/base/log.h"

/* Counts a valid event. An event of the version from which the watch was requested is not news: a
 * server that sends nothing else does not advance. Returns true: the answer continues. */
static bool count_news(struct reflector *reflector)
{
    bool is_news = reflector->phase != PHASE_WATCH || reflector->has_advanced;

    reflector->is_established = reflector->is_established || is_news;
    reflector->news += is_news;
    return true;
}

/* Any number of seconds from the server, as milliseconds from 0 to RETRY_AFTER_MS_MAX. */
static int64_t retry_after_ms(int64_t seconds)
{
    if (seconds <= 0)
        return 0;
    return seconds < RETRY_AFTER_MS_MAX / 1000 ? seconds * 1000 : RETRY_AFTER_MS_MAX;
}

static bool take_error(struct reflector *reflector, struct slice text)
{
    struct status_details details;

    if (!status_details_read(text, &reflector->arena, &details))
        return reflector_give_up(reflector, RESTART_MALFORMED, false);
    log_info("the API server ended a watch with an error",
             LOG_STR("resource", reflector_resource(reflector)),
             LOG_SLICE("reason", details.reason), LOG_SLICE("message", details.message));
    reflector->retry_after_ms = retry_after_ms(details.retry_after_s);
    if (reflector_refuses_streaming(reflector, details.code)) {
        reflector->can_stream = false;
        return reflector_give_up(reflector, RESTART_FALLBACK, true);
    }
    if (status_is_too_large(&details))
        return reflector_give_up(reflector, RESTART_OLDER_HISTORY, true);
    bool is_expired = details.code == 410 || slice_equal(details.reason, SLICE("Expired"));
    return reflector_give_up(
        reflector, is_expired ? RESTART_EXPIRED : reflector_status_reason((unsigned)details.code),
        is_expired);
}

static bool take_bookmark(struct reflector *reflector, struct slice text)
{
    struct status_details details;

    if (!status_details_read(text, &reflector->arena, &details) || version_of(details.version) == 0)
        return reflector_give_up(reflector, RESTART_MALFORMED, false);
    if (reflector_is_older(reflector, details.version))
        return reflector_give_up(reflector, RESTART_OLDER_HISTORY, true);
    if (reflector->phase == PHASE_WATCH)
        reflector_see_version(reflector, details.version);
    else if (details.initial_events_end.len != 0)
        reflector_end_list(reflector, details.version);
    return count_news(reflector) && !reflector->is_done;
}

/* After an event about an object. Returns whether the answer continues. */
static bool advance(struct reflector *reflector, struct slice version)
{
    if (reflector->phase != PHASE_WATCH)
        return true; /* objects of a list are sorted by name, not by version */
    if (reflector_is_older(reflector, version))
        return reflector_give_up(reflector, RESTART_OLDER_HISTORY, true);
    reflector_see_version(reflector, version);
    return true;
}

/* The type of an event about an object; false: it is another event. */
static bool read_change(struct slice type, enum watch_change *out)
{
    *out = slice_equal(type, SLICE("DELETED")) ? CHANGE_DELETE : CHANGE_PUT;
    return *out == CHANGE_DELETE || slice_equal(type, SLICE("ADDED")) ||
           slice_equal(type, SLICE("MODIFIED"));
}

/* A line that is not JSON. It may have been damaged on its way, so it is requested again. The third
 * time it is skipped, if it identifies its object. */
static bool take_broken_line(struct reflector *reflector, struct slice line, const char *problem)
{
    struct type type = {.kind = ""};
    enum watch_change change;

    arena_reset(&reflector->arena);
    struct identity identity = identity_read(line, true, &reflector->arena);
    type_put(type.kind, identity.kind);
    type_put(type.api_version, identity.api_version);
    if (reflector->refusals + 1 < REFUSED_MAX || !read_change(identity.type, &change) ||
        !reflector_is_of_kind(reflector, &type) ||
        !identity_is_complete(&identity, reflector->kind) || version_of(identity.version) == 0)
        return reflector_give_up(reflector, RESTART_MALFORMED, false);
    if (reflector->phase == PHASE_STREAM)
        reflector_begin_list(reflector);
    reflector_skip(reflector, change, &identity, line, problem);
    return advance(reflector, identity.version);
}

struct event_object {
    struct type type;
    struct slice extent;
};

struct event {
    struct slice type;
    struct event_object object;
};

static bool read_event_object(struct pull *json, struct arena *arena, void *field)
{
    struct event_object *object = field;
    return document_object(json, arena, &object->type, &object->extent);
}

static bool read_event(struct pull *json, struct arena *arena, struct event *out)
{
    static const struct pull_field fields[] = {
        {.key = "type", .type = PULL_STRING, .offset = offsetof(struct event, type)},
        {.key = "object",
         .type = PULL_READ,
         .offset = offsetof(struct event, object),
         .read = read_event_object},
    };

    *out = (struct event){.type = {NULL, 0}};
    return pull_fields(json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields), arena, out) &&
           pull_finish(json);
}

static bool take_event(struct reflector *reflector, struct slice line)
{
    struct slice version = {NULL, 0};
    struct event event;
    struct pull json;
    enum watch_change change;

    arena_reset(&reflector->arena);
    pull_init(&json, line);
    if (!read_event(&json, &reflector->arena, &event))
        return take_broken_line(reflector, line, json.problem);
    if (slice_equal(event.type, SLICE("ERROR")))
        return take_error(reflector, event.object.extent);
    bool is_bookmark = slice_equal(event.type, SLICE("BOOKMARK"));
    if (!reflector_is_of_kind(reflector, &event.object.type) ||
        (!is_bookmark && !read_change(event.type, &change)))
        return reflector_give_up(reflector, RESTART_MALFORMED, false);
    if (is_bookmark)
        return take_bookmark(reflector, event.object.extent);
    if (reflector->phase == PHASE_STREAM)
        reflector_begin_list(reflector);
    return reflector_take_object(reflector, change, event.object.extent, &version) &&
           advance(reflector, version) && count_news(reflector);
}

bool reflector_take_lines(struct reflector *reflector)
{
    struct buf *window = &reflector->window;
    size_t taken = 0;
    bool continues = true;

    while (continues) {
        size_t from = taken > reflector->scanned ? taken : reflector->scanned;
        const char *end =
            from == window->len ? NULL : memchr(window->bytes + from, '\n', window->len - from);
        if (end == NULL)
            break;
        struct slice line = {window->bytes + taken, (size_t)(end - window->bytes) - taken};
        taken += line.len + 1;
        const char *text_end = line.ptr + line.len;
        if (json_text_space(line.ptr, text_end) == text_end)
            continue;
        continues = take_event(reflector, line);
        reflector->has_read = true;
    }
    reflector_consume(reflector, taken);
    reflector->scanned = window->len;
    return continues;
}
