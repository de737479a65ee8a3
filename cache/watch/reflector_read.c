/*
 * What an API server answers, as it arrives: the lines of a watch, or the pages of a list.
 */
#include "cache/json/json_text.h"
#include "cache/json/pull_fields.h"
#include "cache/watch/reflector_internal.h"
#include "config/base/clock.h"
#include "config/base/log.h"

enum { PROBE_BYTES = 8192 }; /* what stands before the items is shorter */

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
    if (version.len == 0 || version.len >= sizeof reflector->version ||
        slice_equal(version, slice_of(reflector->version)))
        return;
    reflector_moved(reflector);
    memcpy(reflector->version, version.ptr, version.len);
    reflector->version[version.len] = '\0';
    reflector->number = version_of(version);
}

/* The event was what it should be. One that a watch repeats, of the version that it was asked to go
 * on from, is none: whoever sends nothing else has not begun. True, for reflector_take to return.
 */
static bool note_news(struct reflector *reflector)
{
    bool is_news = reflector->phase != PHASE_WATCH || reflector->has_moved;

    reflector->is_established = reflector->is_established || is_news;
    reflector->news += is_news;
    return true;
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
static void end_list(struct reflector *reflector, struct slice version)
{
    begin_list(reflector); /* a streamed list may be empty */
    see_version(reflector, version);
    reflector_moved(reflector);
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

static bool is_of_kind(const struct type *type, enum kind kind)
{
    return kind_of(slice_of(type->api_version), slice_of(type->kind)) == kind;
}

/* ---- objects ---- */

/* One object's JSON: decoded and handed on, or passed over. */
static bool take_object(struct reflector *reflector, enum watch_change change, struct slice text,
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
    arena_reset(&reflector->arena); /* it may be what was too small */
    struct identity identity = read_identity(text, false, &reflector->arena);
    *version = identity.version;
    reflector_pass_over(reflector, change, &identity, text, err.message);
    return true;
}

/* ---- events ---- */

/* The server may write any number. */
static int64_t retry_after_ms(int64_t seconds)
{
    if (seconds <= 0)
        return 0;
    return seconds < RETRY_AFTER_MS_MAX / 1000 ? seconds * 1000 : RETRY_AFTER_MS_MAX;
}

static bool take_error(struct reflector *reflector, struct slice text)
{
    struct event_details details;

    if (!read_details(text, &reflector->arena, &details))
        return give_up(reflector, RESTART_MALFORMED, false);
    log_info("the API server ended a watch with an error",
             LOG_STR("resource", kind_resource(reflector->kind)),
             LOG_SLICE("reason", details.reason), LOG_SLICE("message", details.message));
    reflector->retry_after_ms = retry_after_ms(details.retry_after_s);
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

static bool take_bookmark(struct reflector *reflector, struct slice text)
{
    struct event_details details;

    if (!read_details(text, &reflector->arena, &details) || version_of(details.version) == 0)
        return give_up(reflector, RESTART_MALFORMED, false);
    if (is_older(reflector, details.version))
        return give_up(reflector, RESTART_OLDER_HISTORY, true);
    if (reflector->phase == PHASE_WATCH)
        see_version(reflector, details.version);
    else if (details.initial_events_end.len != 0)
        end_list(reflector, details.version);
    return note_news(reflector) && !reflector->is_done;
}

/* Behind an event about an object. */
static bool move_on(struct reflector *reflector, struct slice version)
{
    if (reflector->phase != PHASE_WATCH)
        return true; /* the objects of a list come in the order of their names */
    if (is_older(reflector, version))
        return give_up(reflector, RESTART_OLDER_HISTORY, true);
    see_version(reflector, version);
    return true;
}

/* "ADDED" and the like; false for what is not about an object. */
static bool change_of(struct slice type, enum watch_change *out)
{
    *out = slice_equal(type, SLICE("DELETED")) ? CHANGE_DELETE : CHANGE_PUT;
    return *out == CHANGE_DELETE || slice_equal(type, SLICE("ADDED")) ||
           slice_equal(type, SLICE("MODIFIED"));
}

/* A line that is no JSON: on the way it may have been damaged, so it is asked for again first. */
static bool take_broken_line(struct reflector *reflector, struct slice line, const char *problem)
{
    struct type type = {.kind = ""};
    enum watch_change change;

    arena_reset(&reflector->arena);
    struct identity identity = read_identity(line, true, &reflector->arena);
    type_put(type.kind, identity.kind);
    type_put(type.api_version, identity.api_version);
    if (reflector->refusals + 1 < REFUSED_MAX || !change_of(identity.type, &change) ||
        !is_of_kind(&type, reflector->kind) || !identity_is_whole(&identity, reflector->kind) ||
        version_of(identity.version) == 0)
        return give_up(reflector, RESTART_MALFORMED, false);
    if (reflector->phase == PHASE_STREAM)
        begin_list(reflector);
    reflector_pass_over(reflector, change, &identity, line, problem);
    return move_on(reflector, identity.version);
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
    if (!is_of_kind(&event.object.type, reflector->kind) ||
        (!is_bookmark && !change_of(event.type, &change)))
        return give_up(reflector, RESTART_MALFORMED, false);
    if (is_bookmark)
        return take_bookmark(reflector, event.object.extent);
    if (reflector->phase == PHASE_STREAM)
        begin_list(reflector);
    return take_object(reflector, change, event.object.extent, &version) &&
           move_on(reflector, version) && note_news(reflector);
}

/* Forgets the first bytes of the window. */
static void consume(struct buf *window, size_t count)
{
    if (count == 0)
        return;
    memmove(window->bytes, window->bytes + count, window->len - count);
    window->len -= count;
}

static bool take_lines(struct reflector *reflector)
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
        if (json_text_space(line.ptr, text_end) == text_end)
            continue;
        goes_on = take_event(reflector, line);
        reflector->has_read = true;
    }
    consume(window, taken);
    reflector->scanned = window->len;
    return goes_on;
}

/* What stands before the items has been read: whether this is the list that was asked for. */
static bool is_list(const struct reflector *reflector)
{
    static const struct type none;
    const struct document *document = &reflector->document;
    struct type items = type_of_item(&none, &document->type);

    return document->has_items && is_of_kind(&items, reflector->kind) &&
           version_of(slice_of(reflector->meta.version)) != 0;
}

/* False: this is not the list that was asked for. */
static bool begin_page(struct reflector *reflector)
{
    struct slice version = slice_of(reflector->meta.version);

    if (!is_list(reflector))
        return give_up(reflector, RESTART_MALFORMED, false);
    if (is_older(reflector, version) && !reflector->overrides) {
        atomic_fetch_add(&reflector->status->restarts[RESTART_OLDER_HISTORY], 1);
        reflector->overrides = true;
    }
    begin_list(reflector);
    return true;
}

/* The page is whole: the next one is to be asked for, or the list is whole, too. */
static void end_page(struct reflector *reflector)
{
    reflector->is_established = true;
    reflector->news++;
    memcpy(reflector->page, reflector->meta.continue_token, sizeof reflector->page);
    if (reflector->page[0] == '\0')
        end_list(reflector, slice_of(reflector->meta.version));
}

static bool take_item(struct reflector *reflector)
{
    const struct document *document = &reflector->document;
    struct type type = type_of_item(&document->item, &document->type);
    struct slice version;

    if (!is_of_kind(&type, reflector->kind))
        return give_up(reflector, RESTART_MALFORMED, false);
    return take_object(reflector, CHANGE_PUT, document->extent, &version);
}

static bool take_page(struct reflector *reflector)
{
    struct buf *window = &reflector->window;
    struct document *document = &reflector->document;
    size_t taken = 0;
    bool goes_on = true;

    while (goes_on && !reflector->is_page_whole) {
        struct pull json;
        bool is_start = document->depth == 0;
        arena_reset(&reflector->arena);
        if (!document_step(document, &json,
                           (struct slice){window->bytes + taken, window->len - taken},
                           &reflector->arena)) {
            goes_on = json.is_truncated || give_up(reflector, RESTART_MALFORMED, false);
            break;
        }
        taken += (size_t)(json.at - json.start);
        goes_on =
            (!is_start || begin_page(reflector)) && (!document->has_value || take_item(reflector));
        reflector->is_page_whole = goes_on && document->depth == 0;
    }
    consume(window, taken);
    reflector->has_read = taken != 0;
    if (goes_on && reflector->is_page_whole)
        end_page(reflector);
    return goes_on;
}

int evaluate_probe(struct reflector *reflector, unsigned status)
{
    struct slice text = buf_slice(&reflector->window);
    struct event_details details;
    struct pull json;

    arena_reset(&reflector->arena);
    if (status != 200) {
        bool is_refused = read_details(text, &reflector->arena, &details) && is_too_large(&details);
        return is_refused ? RESTART_OLDER_HISTORY : (int)reason_of(status);
    }
    if (!document_step(&reflector->document, &json, text, &reflector->arena) || !is_list(reflector))
        return RESTART_MALFORMED;
    return is_older(reflector, slice_of(reflector->meta.version)) ? RESTART_OLDER_HISTORY : -1;
}

bool reflector_take(struct reflector *reflector, unsigned status, struct slice bytes,
                    uint64_t now_ns)
{
    if (reflector->phase == PHASE_PROBE && reflector->window.len < PROBE_BYTES)
        buf_put(&reflector->window, bytes);
    if (status != 200 || reflector->is_page_whole || reflector->phase == PHASE_PROBE)
        return true; /* status and window are looked at when it is whole */
    buf_put(&reflector->window, bytes);
    if (reflector->window.failed)
        return give_up(reflector, RESTART_MALFORMED, false);
    bool was_streaming = reflector->phase == PHASE_STREAM;
    reflector->now_ns = now_ns;
    reflector->has_read = false;
    bool goes_on = reflector->phase == PHASE_PAGES ? take_page(reflector) : take_lines(reflector);
    if (reflector->phase != PHASE_WATCH && reflector->has_read)
        reflector->deadline_ns = now_ns + LIST_SILENT_MS * NS_PER_MS;
    else if (reflector->phase == PHASE_WATCH &&
             was_streaming) { /* it was asked for a list, and for longer than a watch may last */
        reflector->is_renewal = true;
        reflector->deadline_ns = now_ns + (uint64_t)WATCH_SECONDS * 1000 * NS_PER_MS;
    }
    return goes_on;
}
