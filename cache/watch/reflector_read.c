/*
 * What watches and lists have in common: versions, the beginning and the end of a list, objects.
 */
#include "cache/json/pull_fields.h"
#include "cache/watch/reflector_internal.h"
#include "config/base/clock.h"
#include "config/base/log.h"

enum { PROBE_BYTES = 8192 }; /* metadata before the items of a list is shorter */

#define DETAIL(key_, type_, member_) \
    { \
        .key = (key_), .type = (type_), .offset = offsetof(struct status_details, member_) \
    }

bool status_details_read(struct slice text, struct arena *arena, struct status_details *out)
{
    static const struct pull_field annotations[] = {
        DETAIL("k8s.io/initial-events-end", PULL_STRING, initial_events_end)};
    static const struct pull_field meta[] = {
        DETAIL("resourceVersion", PULL_STRING, version),
        {.key = "annotations", .type = PULL_OBJECT, PULL_MEMBERS(annotations)},
    };
    static const struct pull_field details[] = {
        DETAIL("retryAfterSeconds", PULL_INTEGER, retry_after_s)};
    static const struct pull_field fields[] = {
        {.key = "metadata", .type = PULL_OBJECT, PULL_MEMBERS(meta)},
        {.key = "details", .type = PULL_OBJECT, PULL_MEMBERS(details)},
        DETAIL("code", PULL_INTEGER, code),
        DETAIL("reason", PULL_STRING, reason),
        DETAIL("message", PULL_STRING, message),
    };
    struct pull json;

    *out = (struct status_details){0};
    pull_init(&json, text);
    return pull_fields(&json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields), arena, out);
}

bool status_is_too_large(const struct status_details *details)
{
    return slice_has(details->message, SLICE("Too large resource version"));
}

enum restart reflector_status_reason(unsigned status)
{
    switch (status) {
    case 401: return RESTART_UNAUTHORIZED;
    case 403: return RESTART_FORBIDDEN;
    case 410: return RESTART_EXPIRED;
    case 429: return RESTART_THROTTLED;
    default: return RESTART_SERVER_ERROR;
    }
}

bool reflector_refuses_streaming(const struct reflector *reflector, int64_t code)
{
    return reflector->phase == PHASE_STREAM && (code == 400 || code == 405 || code == 422);
}

bool reflector_give_up(struct reflector *reflector, enum restart reason, bool restarts_list)
{
    reflector->failure = (int)reason;
    reflector->restarts_list = restarts_list;
    return false;
}

void reflector_see_version(struct reflector *reflector, struct slice version)
{
    if (version.len == 0 || version.len >= sizeof reflector->version ||
        slice_equal(version, slice_of(reflector->version)))
        return;
    reflector_advanced(reflector);
    memcpy(reflector->version, version.ptr, version.len);
    reflector->version[version.len] = '\0';
    reflector->number = version_of(version);
}

bool reflector_is_older(const struct reflector *reflector, struct slice version)
{
    uint64_t number = version_of(version);
    return number != 0 && number < reflector->number;
}

void reflector_begin_list(struct reflector *reflector)
{
    if (reflector->has_begun)
        return;
    reflector->has_begun = true;
    reflector->sink.begin(reflector->sink.context, reflector->kind, reflector->overrides);
}

void reflector_end_list(struct reflector *reflector, struct slice version)
{
    reflector_begin_list(reflector); /* a streamed list may be empty */
    reflector_see_version(reflector, version);
    reflector_advanced(reflector);
    reflector->sink.end(reflector->sink.context, reflector->kind, reflector->number);
    reflector->phase = PHASE_WATCH;
    reflector->overrides = reflector->has_begun = false;
    reflector->page[0] = '\0';
    atomic_store(&reflector->status->list_ns,
                 (int64_t)(reflector->now_ns - reflector->list_started_ns));
    atomic_store(&reflector->status->is_absent, false);
    atomic_store(&reflector->status->is_synced, true);
    reflector->is_done = reflector->is_list_only;
}

bool reflector_is_of_kind(const struct reflector *reflector, const struct type *type)
{
    if (reflector->kind == KIND_OTHER)
        return strcmp(type->kind, reflector->texts->kind) == 0 &&
               strcmp(type->api_version, reflector->texts->api_version) == 0;
    return kind_of(slice_of(type->api_version), slice_of(type->kind)) == reflector->kind;
}

/* An object without fields, of a kind that is not stored. */
static int read_object(struct reflector *reflector, struct slice text, struct object *out,
                       struct error *err)
{
    struct pull json;

    *out = (struct object){.kind = KIND_OTHER};
    if (reflector->kind == KIND_OTHER)
        return 0;
    pull_init_checked(&json, text); /* document_object has read it to its end */
    return object_read(&json, reflector->kind, &reflector->arena, out)
               ? 0
               : pull_fail(&json, reflector_resource(reflector), (struct place){1, 1}, err);
}

bool reflector_take_object(struct reflector *reflector, enum watch_change change, struct slice text,
                           struct slice *version)
{
    struct object object;
    struct error err = {0};
    int rc = read_object(reflector, text, &object, &err);

    if (rc == 0) {
        *version = object.meta.resource_version;
        rc = reflector->sink.take(reflector->sink.context, change, &object, text, &err);
    }
    if (rc == 0)
        return true;
    if ((rc != ERROR_INVALID && rc != ERROR_TOO_BIG) || reflector->kind == KIND_OTHER) {
        log_error("an object cannot be stored", LOG_STR("resource", reflector_resource(reflector)),
                  LOG_STR("error", err.message));
        return reflector_give_up(reflector, RESTART_MALFORMED, true);
    }
    arena_reset(&reflector->arena); /* it may be full */
    struct identity identity = identity_read(text, false, &reflector->arena);
    *version = identity.version;
    reflector_skip(reflector, change, &identity, text, err.message);
    return true;
}

void reflector_consume(struct reflector *reflector, size_t count)
{
    struct buf *window = &reflector->window;

    if (count == 0)
        return;
    memmove(window->bytes, window->bytes + count, window->len - count);
    window->len -= count;
}

bool reflector_take(struct reflector *reflector, unsigned status, struct slice bytes,
                    uint64_t now_ns)
{
    if (reflector->phase == PHASE_PROBE && reflector->window.len < PROBE_BYTES)
        buf_put(&reflector->window, bytes);
    if (status != 200 || reflector->is_page_whole || reflector->phase == PHASE_PROBE)
        return true; /* reflector_end reads them */
    buf_put(&reflector->window, bytes);
    if (reflector->window.failed)
        return reflector_give_up(reflector, RESTART_MALFORMED, false);
    bool was_streaming = reflector->phase == PHASE_STREAM;
    reflector->now_ns = now_ns;
    reflector->has_read = false;
    bool continues = reflector->phase == PHASE_PAGES ? reflector_take_page(reflector)
                                                     : reflector_take_lines(reflector);
    if (reflector->phase != PHASE_WATCH && reflector->has_read)
        reflector->deadline_ns = now_ns + LIST_SILENT_MS * NS_PER_MS;
    else if (reflector->phase == PHASE_WATCH && was_streaming) {
        /* the answer to a streamed list became a watch, but it may last longer than a watch should
         */
        reflector->is_renewal = true;
        reflector->deadline_ns = now_ns + (uint64_t)WATCH_SECONDS * 1000 * NS_PER_MS;
    }
    return continues;
}
