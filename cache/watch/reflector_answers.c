/*
 * The answers: to a watch, or to a streamed list, one event per line; to a list in pages, or to the
 * probe, one list.
 */
#include "cache/json/pull_fields.h"
#include "cache/watch/reflector_internal.h"
#include "config/base/clock.h"
#include "config/base/log.h"

enum { PROBE_BYTES = 8192 }; /* metadata before the items of a list is shorter */

/* ---- statuses ---- */

/* A metav1.Status, in an ERROR event or the body of a failed request; a BOOKMARK has metadata. */
struct status_details {
    struct slice version, message, reason, initial_events_end;
    int64_t code, retry_after_s;
};

static bool status_details_read(struct slice text, struct arena *arena, struct status_details *out)
{
    static const struct pull_field annotations[] = {
        PULL_FIELD("k8s.io/initial-events-end", PULL_STRING, status_details, initial_events_end)};
    static const struct pull_field meta[] = {
        PULL_FIELD("resourceVersion", PULL_STRING, status_details, version),
        PULL_NESTED("annotations", annotations),
    };
    static const struct pull_field details[] = {
        PULL_FIELD("retryAfterSeconds", PULL_INTEGER, status_details, retry_after_s)};
    static const struct pull_field fields[] = {
        PULL_NESTED("metadata", meta),
        PULL_NESTED("details", details),
        PULL_FIELD("code", PULL_INTEGER, status_details, code),
        PULL_FIELD("reason", PULL_STRING, status_details, reason),
        PULL_FIELD("message", PULL_STRING, status_details, message),
    };

    *out = (struct status_details){0};
    return pull_fields_of(text, fields, PULL_FIELD_COUNT(fields), arena, out);
}

/* Whether the requested version is still to come: the server's history ends before what we have
 * seen. */
static bool status_is_too_large(const struct status_details *details)
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

/* ---- versions, and what lists begin and end ---- */

/* Whether the version is older than one that was seen. */
static bool is_older(const struct reflector *reflector, struct slice version)
{
    uint64_t number = version_of(version);
    return number != 0 && number < reflector->number;
}

/* Stores the last version that was seen. */
static void see_version(struct reflector *reflector, struct slice version)
{
    if (version.len == 0 || version.len >= sizeof reflector->version ||
        slice_equal(version, slice_of(reflector->version)))
        return;
    reflector_advanced(reflector);
    memcpy(reflector->version, version.ptr, version.len);
    reflector->version[version.len] = '\0';
    reflector->number = version_of(version);
}

/* A list has begun, if it had not. */
static void begin_list(struct reflector *reflector)
{
    if (reflector->has_begun)
        return;
    reflector->has_begun = true;
    reflector->sink.begin(reflector->sink.context, reflector->kind, reflector->overrides,
                          reflector->list_started_ns);
}

/* The list is complete at that version: the watch follows. */
static void end_list(struct reflector *reflector, struct slice version)
{
    begin_list(reflector); /* a streamed list may be empty */
    see_version(reflector, version);
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

static bool is_of_kind(const struct reflector *reflector, const struct type *type)
{
    return kind_of_any(slice_of(type->api_version), slice_of(type->kind)) == reflector->kind;
}

/* Removes the first bytes of the window. */
static void consume(struct reflector *reflector, size_t count)
{
    struct buf *window = &reflector->window;

    if (count == 0)
        return;
    memmove(window->bytes, window->bytes + count, window->len - count);
    window->len -= count;
}

/* ---- watches, and streamed lists ---- */

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
    if (is_older(reflector, details.version))
        return reflector_give_up(reflector, RESTART_OLDER_HISTORY, true);
    if (reflector->phase == PHASE_WATCH)
        see_version(reflector, details.version);
    else if (details.initial_events_end.len != 0)
        end_list(reflector, details.version);
    return count_news(reflector) && !reflector->is_done;
}

/* After an event about an object. Returns whether the answer continues. */
static bool advance(struct reflector *reflector, struct slice version)
{
    if (reflector->phase != PHASE_WATCH)
        return true; /* objects of a list are sorted by name, not by version */
    if (is_older(reflector, version))
        return reflector_give_up(reflector, RESTART_OLDER_HISTORY, true);
    see_version(reflector, version);
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
        !is_of_kind(reflector, &type) || !identity_is_complete(&identity, reflector->kind) ||
        version_of(identity.version) == 0)
        return reflector_give_up(reflector, RESTART_MALFORMED, false);
    if (reflector->phase == PHASE_STREAM)
        begin_list(reflector);
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
        PULL_FIELD("type", PULL_STRING, event, type),
        PULL_READER("object", event, object, read_event_object),
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
    if (!is_of_kind(reflector, &event.object.type) ||
        (!is_bookmark && !read_change(event.type, &change)))
        return reflector_give_up(reflector, RESTART_MALFORMED, false);
    if (is_bookmark)
        return take_bookmark(reflector, event.object.extent);
    if (reflector->phase == PHASE_STREAM)
        begin_list(reflector);
    return reflector_take_object(reflector, change, event.object.extent, &version) &&
           advance(reflector, version) && count_news(reflector);
}

/* Reads the complete lines in the window. Returns whether the answer continues. */
static bool take_lines(struct reflector *reflector)
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
    consume(reflector, taken);
    reflector->scanned = window->len;
    return continues;
}

/* ---- lists in pages, and the probe ---- */

/* Whether this is the list that was requested. All before its items has been read. */
static bool is_list(const struct reflector *reflector)
{
    static const struct type none;
    const struct document *document = &reflector->document;
    struct type item = type_of_item(&none, &document->type);

    return document->has_items && is_of_kind(reflector, &item) &&
           version_of(slice_of(reflector->meta.version)) != 0;
}

/* Returns whether the answer continues. */
static bool begin_page(struct reflector *reflector)
{
    struct slice version = slice_of(reflector->meta.version);

    if (!is_list(reflector))
        return reflector_give_up(reflector, RESTART_MALFORMED, false);
    if (is_older(reflector, version) && !reflector->overrides) {
        atomic_fetch_add(&reflector->status->restarts[RESTART_OLDER_HISTORY], 1);
        reflector->overrides = true;
    }
    begin_list(reflector);
    return true;
}

/* Whether the next page would be this one again (a cache in between that ignores the query), or
 * there are too many. */
static bool is_endless(const struct reflector *reflector)
{
    const char *next = reflector->meta.continue_token;

    return *next != '\0' && (reflector->pages == PAGES_MAX || strcmp(next, reflector->page) == 0);
}

/* The page is complete. Without a continue token, so is the list. Returns whether the
 * answer continues. */
static bool end_page(struct reflector *reflector)
{
    reflector->pages++;
    if (is_endless(reflector))
        return reflector_give_up(reflector, RESTART_MALFORMED, true);
    reflector->is_established = true;
    reflector->news++;
    memcpy(reflector->page, reflector->meta.continue_token, sizeof reflector->page);
    if (reflector->page[0] == '\0')
        end_list(reflector, slice_of(reflector->meta.version));
    return true;
}

static bool take_item(struct reflector *reflector)
{
    const struct document *document = &reflector->document;
    struct type type = type_of_item(&document->item, &document->type);
    struct slice version;

    if (!is_of_kind(reflector, &type))
        return reflector_give_up(reflector, RESTART_MALFORMED, false);
    return reflector_take_object(reflector, CHANGE_PUT, document->extent, &version);
}

/* The same for the complete items. */
static bool take_page(struct reflector *reflector)
{
    struct buf *window = &reflector->window;
    struct document *document = &reflector->document;
    size_t taken = 0;
    bool continues = true;

    while (continues && !reflector->is_page_whole) {
        struct pull json;
        bool is_start = document->depth == 0;
        arena_reset(&reflector->arena);
        if (!document_step(document, &json,
                           (struct slice){window->bytes + taken, window->len - taken},
                           &reflector->arena)) {
            continues = json.is_truncated || reflector_give_up(reflector, RESTART_MALFORMED, false);
            break;
        }
        taken += (size_t)(json.at - json.start);
        continues =
            (!is_start || begin_page(reflector)) && (!document->has_value || take_item(reflector));
        reflector->is_page_whole = continues && document->depth == 0;
    }
    consume(reflector, taken);
    reflector->has_read = taken != 0;
    return continues && (!reflector->is_page_whole || end_page(reflector));
}

int reflector_check_probe(struct reflector *reflector, unsigned status)
{
    struct slice text = buf_slice(&reflector->window);
    struct status_details details;
    struct pull json;

    arena_reset(&reflector->arena);
    if (status != 200) {
        bool is_refused =
            status_details_read(text, &reflector->arena, &details) && status_is_too_large(&details);
        return is_refused ? RESTART_OLDER_HISTORY : (int)reflector_status_reason(status);
    }
    if (!document_step(&reflector->document, &json, text, &reflector->arena) || !is_list(reflector))
        return RESTART_MALFORMED;
    return is_older(reflector, slice_of(reflector->meta.version)) ? RESTART_OLDER_HISTORY : -1;
}

/* ---- an answer of any kind ---- */

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
    bool continues = reflector->phase == PHASE_PAGES ? take_page(reflector) : take_lines(reflector);
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
