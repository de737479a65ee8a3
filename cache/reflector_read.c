/*
 * What an API server answers, as it arrives: the lines of a watch, or the pages of a list.
 */
#include "cache/json_text.h"
#include "cache/pull_fields.h"
#include "cache/reflector_internal.h"
#include "config/base/log.h"

enum { PROBE_BYTES = 4096 };

#define MS UINT64_C(1000000) /* nanoseconds */

/* ---- what is said beside the objects ---- */

#define DETAIL(key_, type_, member_) \
    { \
        .key = (key_), .type = (type_), .offset = offsetof(struct event_details, member_) \
    }

bool read_details(struct slice text, struct arena *arena, struct event_details *out)
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

    *out = (struct event_details){0};
    pull_init(&json, text);
    return pull_fields(&json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields), arena, out);
}

bool is_too_large(const struct event_details *details)
{
    return slice_has(details->message, SLICE("Too large resource version"));
}

enum restart reason_of(unsigned status)
{
    switch (status) {
    case 401: return RESTART_UNAUTHORIZED;
    case 403: return RESTART_FORBIDDEN;
    case 410: return RESTART_EXPIRED;
    case 429: return RESTART_THROTTLED;
    default: return RESTART_SERVER_ERROR;
    }
}

bool refuses_streaming(const struct reflector *reflector, int64_t code)
{
    return reflector->phase == PHASE_STREAM && (code == 400 || code == 405 || code == 422);
}

/* ---- lists and events ---- */

/* The answer is of no use any more. False, for reflector_take to return. */
static bool give_up(struct reflector *reflector, enum restart reason, bool restarts_list)
{
    reflector->failure = (int)reason;
    reflector->restarts_list = restarts_list;
    return false;
}

static void see_version(struct reflector *reflector, struct slice version)
{
    if (version.len == 0 || version.len >= sizeof reflector->version)
        return;
    memcpy(reflector->version, version.ptr, version.len);
    reflector->version[version.len] = '\0';
    reflector->number = version_of(version);
}

static bool is_older(const struct reflector *reflector, struct slice version)
{
    uint64_t number = version_of(version);
    return number != 0 && number < reflector->number;
}

static void begin_list(struct reflector *reflector)
{
    if (reflector->has_begun)
        return;
    reflector->has_begun = true;
    reflector->sink.begin(reflector->sink.context, reflector->kind, reflector->overrides);
}

/* The list is whole. */
static void end_list(struct reflector *reflector, struct slice version, uint64_t now_ns)
{
    begin_list(reflector); /* an empty list begins and ends */
    see_version(reflector, version);
    reflector->sink.end(reflector->sink.context, reflector->kind, reflector->number);
    reflector->phase = PHASE_WATCH;
    reflector->overrides = reflector->has_begun = false;
    reflector->page[0] = '\0';
    atomic_store(&reflector->status->list_ns, (int64_t)(now_ns - reflector->list_started_ns));
    atomic_store(&reflector->status->is_absent, false);
    atomic_store(&reflector->status->is_synced, true);
    reflector->is_done = reflector->is_list_only;
}

/* One object's JSON: decoded and handed on. An object that cannot be decoded is said and passed
 * over: no one who may create objects may stop the cache with one. */
static bool take_object(struct reflector *reflector, enum change change, struct slice text,
                        struct slice *version)
{
    struct object object;
    struct error err = {0};
    struct pull json;

    pull_init(&json, text);
    int rc = object_read(&json, reflector->kind, &reflector->arena, &object)
                 ? 0
                 : pull_fail(&json, kind_resource(reflector->kind), (struct place){1, 1}, &err);
    if (rc == 0) {
        *version = object.meta.resource_version;
        rc = reflector->sink.take(reflector->sink.context, change, &object, text, &err);
    }
    if (rc == 0)
        return true;
    if (rc != ERROR_INVALID && rc != ERROR_TOO_BIG) {
        log_error("an object cannot be kept", LOG_STR("resource", kind_resource(reflector->kind)),
                  LOG_STR("error", err.message));
        return give_up(reflector, RESTART_MALFORMED, true);
    }
    atomic_fetch_add(&reflector->status->skipped, 1);
    log_warn("an object is passed over: it cannot be decoded", LOG_STR("error", err.message));
    return true;
}

struct event {
    struct slice type, object;
};

static bool take_error(struct reflector *reflector, struct slice text)
{
    struct event_details details;

    if (!read_details(text, &reflector->arena, &details))
        return give_up(reflector, RESTART_MALFORMED, false);
    log_info("the API server ended a watch with an error",
             LOG_STR("resource", kind_resource(reflector->kind)),
             LOG_SLICE("reason", details.reason), LOG_SLICE("message", details.message));
    reflector->retry_after_ms = details.retry_after_s * 1000;
    if (refuses_streaming(reflector, details.code)) {
        reflector->can_stream = false;
        return give_up(reflector, RESTART_FALLBACK, true);
    }
    if (is_too_large(&details))
        return give_up(reflector, RESTART_OLDER_HISTORY, true);
    bool is_expired = details.code == 410 || slice_equal(details.reason, SLICE("Expired"));
    return give_up(reflector, is_expired ? RESTART_EXPIRED : reason_of((unsigned)details.code),
                   is_expired);
}

static bool take_bookmark(struct reflector *reflector, struct slice text, uint64_t now_ns)
{
    struct event_details details;

    if (!read_details(text, &reflector->arena, &details) || details.version.len == 0)
        return give_up(reflector, RESTART_MALFORMED, false);
    if (is_older(reflector, details.version))
        return give_up(reflector, RESTART_OLDER_HISTORY, true);
    if (reflector->phase == PHASE_WATCH)
        see_version(reflector, details.version);
    else if (details.initial_events_end.len != 0)
        end_list(reflector, details.version, now_ns);
    return !reflector->is_done;
}

static bool take_event(struct reflector *reflector, struct slice line, uint64_t now_ns)
{
    static const struct pull_field fields[] = {
        {.key = "type", .type = PULL_STRING, .offset = offsetof(struct event, type)},
        {.key = "object", .type = PULL_RAW, .offset = offsetof(struct event, object)},
    };
    struct event event = {{NULL, 0}, {NULL, 0}};
    struct slice version = {NULL, 0};
    struct pull json;

    arena_reset(&reflector->arena);
    pull_init(&json, line);
    if (!pull_fields(&json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields), &reflector->arena,
                     &event) ||
        !pull_finish(&json) || event.object.len == 0)
        return give_up(reflector, RESTART_MALFORMED, false);
    if (slice_equal(event.type, SLICE("ERROR")))
        return take_error(reflector, event.object);
    reflector->is_established = true;
    if (slice_equal(event.type, SLICE("BOOKMARK")))
        return take_bookmark(reflector, event.object, now_ns);
    bool is_deletion = slice_equal(event.type, SLICE("DELETED"));
    if (!is_deletion && !slice_equal(event.type, SLICE("ADDED")) &&
        !slice_equal(event.type, SLICE("MODIFIED")))
        return give_up(reflector, RESTART_MALFORMED, false);
    if (reflector->phase == PHASE_STREAM)
        begin_list(reflector);
    if (!take_object(reflector, is_deletion ? CHANGE_DELETE : CHANGE_PUT, event.object, &version))
        return false;
    if (reflector->phase != PHASE_WATCH)
        return true; /* the objects of a list come in the order of their names */
    if (is_older(reflector, version))
        return give_up(reflector, RESTART_OLDER_HISTORY, true);
    see_version(reflector, version);
    return true;
}

/* Forgets the first bytes of the window. */
static void consume(struct buf *window, size_t count)
{
    if (count == 0)
        return;
    memmove(window->bytes, window->bytes + count, window->len - count);
    window->len -= count;
}

static bool take_lines(struct reflector *reflector, uint64_t now_ns)
{
    struct buf *window = &reflector->window;
    size_t taken = 0;
    bool goes_on = true;

    while (goes_on) {
        size_t from = taken > reflector->scanned ? taken : reflector->scanned;
        const char *end =
            from == window->len ? NULL : memchr(window->bytes + from, '\n', window->len - from);
        if (end == NULL)
            break;
        struct slice line = {window->bytes + taken, (size_t)(end - window->bytes) - taken};
        taken += line.len + 1;
        const char *text_end = line.ptr + line.len;
        if (json_text_space(line.ptr, text_end) != text_end)
            goes_on = take_event(reflector, line, now_ns);
    }
    consume(window, taken);
    reflector->scanned = window->len;
    return goes_on;
}

/* The first page tells the list's version before its items. */
static void begin_page(struct reflector *reflector)
{
    if (is_older(reflector, slice_of(reflector->meta.version)) && !reflector->overrides) {
        atomic_fetch_add(&reflector->status->restarts[RESTART_OLDER_HISTORY], 1);
        reflector->overrides = true;
    }
    reflector->is_established = true;
    begin_list(reflector);
}

/* The page is whole: the next one is to be asked for, or the list is whole, too. */
static void end_page(struct reflector *reflector, uint64_t now_ns)
{
    begin_page(reflector);
    memcpy(reflector->page, reflector->meta.continue_token, sizeof reflector->page);
    if (reflector->page[0] == '\0')
        end_list(reflector, slice_of(reflector->meta.version), now_ns);
}

static bool take_page(struct reflector *reflector, uint64_t now_ns)
{
    struct buf *window = &reflector->window;
    struct document *document = &reflector->document;
    size_t taken = 0;
    struct slice version;
    bool goes_on = true;

    while (goes_on && !reflector->is_page_whole) {
        struct pull json;
        arena_reset(&reflector->arena);
        if (!document_step(document, &json,
                           (struct slice){window->bytes + taken, window->len - taken},
                           &reflector->arena)) {
            goes_on = json.is_truncated || give_up(reflector, RESTART_MALFORMED, false);
            break;
        }
        taken += (size_t)(json.at - json.start);
        if (document->has_value) {
            begin_page(reflector);
            goes_on = take_object(reflector, CHANGE_PUT, document->extent, &version);
        }
        reflector->is_page_whole = document->depth == 0;
    }
    consume(window, taken);
    if (goes_on && reflector->is_page_whole)
        end_page(reflector, now_ns);
    return goes_on;
}

bool reflector_take(struct reflector *reflector, unsigned status, struct slice bytes,
                    uint64_t now_ns)
{
    if (reflector->phase == PHASE_PROBE && reflector->window.len < PROBE_BYTES)
        buf_put(&reflector->window, bytes);
    if (status != 200 || reflector->is_page_whole || reflector->phase == PHASE_PROBE)
        return true; /* the status says enough */
    buf_put(&reflector->window, bytes);
    if (reflector->window.failed)
        return give_up(reflector, RESTART_MALFORMED, false);
    bool was_streaming = reflector->phase == PHASE_STREAM;
    bool goes_on = reflector->phase == PHASE_PAGES ? take_page(reflector, now_ns)
                                                   : take_lines(reflector, now_ns);
    if (reflector->phase != PHASE_WATCH)
        reflector->deadline_ns = now_ns + LIST_SILENT_MS * MS;
    else if (was_streaming) { /* it was asked for a list, and for longer than a watch may last */
        reflector->is_renewal = true;
        reflector->deadline_ns = now_ns + (uint64_t)WATCH_SECONDS * 1000 * MS;
    }
    return goes_on;
}
