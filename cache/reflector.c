#include "cache/reflector.h"

#include <stdio.h>

#include "cache/json_text.h"
#include "cache/pull_fields.h"
#include "config/base/log.h"

enum {
    PROBE_BYTES = 4096,
    LOGGED_FAILURES = 10,
    REFLECTOR_ARENA_BYTES_MAX = 32 << 20,
    WINDOW_KEEP_BYTES = 256 * 1024
};

#define MS UINT64_C(1000000) /* nanoseconds */

const char *restart_text(enum restart restart)
{
    static const char *const texts[RESTART_COUNT] = {
        "timeout",   "expired",      "connection", "silent",        "throttled", "unauthorized",
        "forbidden", "server_error", "malformed",  "older_history", "fallback"};
    return texts[restart];
}

void reflector_init(struct reflector *reflector, enum kind kind, const struct reflector_sink *sink,
                    struct resource_status *status, uint32_t seed)
{
    *reflector = (struct reflector){.kind = kind,
                                    .phase = PHASE_STREAM,
                                    .sink = *sink,
                                    .status = status,
                                    .can_stream = true,
                                    .failure = -1,
                                    .random = seed | 1};
    buf_init(&reflector->window, OBJECT_BYTES_MAX);
    arena_init(&reflector->arena, REFLECTOR_ARENA_BYTES_MAX);
}

void reflector_dispose(struct reflector *reflector)
{
    buf_dispose(&reflector->window);
    arena_dispose(&reflector->arena);
}

/* xorshift32: spreads retries, nothing more. */
static uint32_t next_random(struct reflector *reflector)
{
    reflector->random ^= reflector->random << 13;
    reflector->random ^= reflector->random >> 17;
    reflector->random ^= reflector->random << 5;
    return reflector->random;
}

/* ---- requests ---- */

static void put_escaped(struct buf *path, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        bool is_plain = (c >= '0' && c <= '9') || ((c | 0x20U) >= 'a' && (c | 0x20U) <= 'z') ||
                        c == '-' || c == '.' || c == '_' || c == '~';
        if (is_plain)
            buf_put(path, (struct slice){text.ptr + i, 1});
        else
            buf_printf(path, "%%%02X", c);
    }
}

void object_path(struct buf *path, enum kind kind, struct slice namespace, struct slice name)
{
    buf_put(path, slice_of(kind_api_path(kind)));
    if (namespace.len != 0 && kind_is_namespaced(kind)) {
        buf_put(path, SLICE("/namespaces/"));
        put_escaped(path, namespace);
    }
    buf_printf(path, "/%s/", kind_resource(kind));
    put_escaped(path, name);
}

void reflector_request(struct reflector *reflector, uint64_t now_ns, struct buf *path)
{
    /* only pods that take part: one that finishes is told as DELETED (design fact 13) */
    const char *selector =
        reflector->kind == KIND_POD
            ? "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed&"
            : "";
    unsigned seconds = WATCH_SECONDS - next_random(reflector) % (WATCH_SECONDS / 4);

    reflector->started_ns = now_ns;
    reflector->deadline_ns = now_ns + LIST_SILENT_MS * MS;
    reflector->failure = -1;
    reflector->restarts_list = reflector->is_renewal = false;
    reflector->is_established = reflector->is_page_whole = false;
    reflector->retry_after_ms = 0;
    buf_reset(&reflector->window, WINDOW_KEEP_BYTES);
    reflector->scanned = 0;
    reflector->meta.version[0] = reflector->meta.continue_token[0] = '\0';
    reflector->document = (struct document){.meta = &reflector->meta};
    buf_printf(path, "%s/%s?%s", kind_api_path(reflector->kind), kind_resource(reflector->kind),
               selector);
    if (reflector->phase == PHASE_PROBE) {
        buf_put(path, SLICE("limit=1&resourceVersionMatch=NotOlderThan&resourceVersion="));
        put_escaped(path, slice_of(reflector->version));
        return;
    }
    if (reflector->phase == PHASE_WATCH) {
        reflector->deadline_ns = now_ns + (seconds * UINT64_C(1000) + SILENT_MS) * MS;
        buf_printf(path,
                   "watch=1&allowWatchBookmarks=true&timeoutSeconds=%u&resourceVersion=", seconds);
        put_escaped(path, slice_of(reflector->version));
        return;
    }
    if (reflector->phase == PHASE_STREAM) {
        buf_printf(path,
                   "watch=1&allowWatchBookmarks=true&sendInitialEvents=true"
                   "&resourceVersionMatch=NotOlderThan&timeoutSeconds=%d",
                   STREAMED_LIST_SECONDS);
    } else {
        buf_printf(path, "limit=%d", PAGE_OBJECTS);
        if (reflector->page[0] != '\0') {
            buf_put(path, SLICE("&continue="));
            put_escaped(path, slice_of(reflector->page));
            return;
        }
    }
    reflector->list_started_ns = now_ns; /* a list from its start */
    reflector->has_begun = false;
}

/* ---- what comes ---- */

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
    reflector->expirations = 0;
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

/* What an ERROR event and a failed request's body say: metav1.Status. A BOOKMARK has metadata. */
struct event_details {
    struct slice version, message, reason, initial_events_end;
    int64_t code, retry_after_s;
};

#define DETAIL(key_, type_, member_) \
    { \
        .key = (key_), .type = (type_), .offset = offsetof(struct event_details, member_) \
    }

static bool read_details(struct slice text, struct arena *arena, struct event_details *out)
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

/* Asked for a version that is still to come: the server's history ends before what we have seen. */
static bool is_too_large(const struct event_details *details)
{
    static const char text[] = "Too large resource version";
    return memmem(details->message.ptr, details->message.len, text, sizeof text - 1) != NULL;
}

static enum restart reason_of(unsigned status)
{
    switch (status) {
    case 401: return RESTART_UNAUTHORIZED;
    case 403: return RESTART_FORBIDDEN;
    case 410: return RESTART_EXPIRED;
    case 429: return RESTART_THROTTLED;
    default: return RESTART_SERVER_ERROR;
    }
}

/* Whether this says that the server cannot stream lists: it does not know the parameters, or its
 * etcd cannot tell how far it is. */
static bool refuses_streaming(const struct reflector *reflector, int64_t code)
{
    return reflector->phase == PHASE_STREAM && (code == 400 || code == 405 || code == 422);
}

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

/* ---- how it ends ---- */

static uint64_t backoff_ns(struct reflector *reflector, int64_t retry_after_ms)
{
    unsigned doublings = reflector->failures < 8 ? reflector->failures : 8;
    uint64_t ms = (uint64_t)RETRY_MS_MIN << doublings;

    if (ms > RETRY_MS_MAX)
        ms = RETRY_MS_MAX;
    ms = ms / 2 + next_random(reflector) % (ms / 2 + 1);
    if (retry_after_ms > RETRY_AFTER_MS_MAX)
        retry_after_ms = RETRY_AFTER_MS_MAX;
    if (retry_after_ms > 0 && ms < (uint64_t)retry_after_ms)
        ms = (uint64_t)retry_after_ms;
    reflector->failures++;
    return ms * MS;
}

/* After an older version was seen, in pages: the first one tells how old the history is before any
 * object is read. */
static void start_list(struct reflector *reflector, enum restart reason)
{
    bool streams = reflector->can_stream && reason != RESTART_OLDER_HISTORY;

    reflector->phase = streams ? PHASE_STREAM : PHASE_PAGES;
    reflector->page[0] = '\0';
}

/* Kinds that an API server may lack; one without the others is none. */
static bool may_be_absent(const struct reflector *reflector)
{
    return reflector->kind >= KIND_STORAGE_CLASS && (!atomic_load(&reflector->status->is_synced) ||
                                                     atomic_load(&reflector->status->is_absent));
}

static void be_absent(struct reflector *reflector, uint64_t now_ns)
{
    if (!atomic_load(&reflector->status->is_absent))
        log_info("the API server does not serve a resource: it is left out",
                 LOG_STR("resource", kind_resource(reflector->kind)));
    atomic_store(&reflector->status->is_absent, true);
    atomic_store(&reflector->status->is_synced, true);
    start_list(reflector, RESTART_SERVER_ERROR);
    reflector->is_done = reflector->is_list_only;
    reflector->due_ns = now_ns + ABSENT_RETRY_MS * MS;
}

static bool is_refused_probe(struct reflector *reflector)
{
    struct event_details details;

    arena_reset(&reflector->arena);
    return read_details(buf_slice(&reflector->window), &reflector->arena, &details) &&
           is_too_large(&details);
}

/* What ended the answer, and whether a list has to start anew for it; -1: nothing is wrong. */
static int judge_ending(struct reflector *reflector, const struct reflector_ending *ending)
{
    if (reflector->failure >= 0)
        return reflector->failure;
    if (ending->is_silent)
        return reflector->is_renewal ? RESTART_TIMEOUT : RESTART_SILENT;
    if (ending->status == 0)
        return RESTART_CONNECTION;
    if (reflector->is_page_whole ||
        (reflector->phase == PHASE_PROBE && ending->status == 200 && !ending->is_cut))
        return -1;
    if (reflector->phase == PHASE_PROBE && is_refused_probe(reflector)) {
        reflector->restarts_list = true;
        return RESTART_OLDER_HISTORY;
    }
    if (ending->status == 200)
        return reflector->phase == PHASE_WATCH && !ending->is_cut ? RESTART_TIMEOUT
                                                                  : RESTART_CONNECTION;
    if (refuses_streaming(reflector, ending->status)) {
        reflector->can_stream = false;
        reflector->restarts_list = true;
        return RESTART_FALLBACK;
    }
    /* a continue token that is expired, or that nobody understands: the list starts anew */
    bool is_bad_continue =
        reflector->phase == PHASE_PAGES && ending->status == 400 && reflector->page[0] != '\0';
    reflector->restarts_list = ending->status == 410 || is_bad_continue;
    return (int)(is_bad_continue ? RESTART_EXPIRED : reason_of(ending->status));
}

static void log_ending(const struct reflector *reflector, enum restart reason,
                       const struct reflector_ending *ending)
{
    char status[16];

    if (reason == RESTART_TIMEOUT || reflector->failures % LOGGED_FAILURES != 0)
        return; /* while an API server is away, not every attempt is news */
    (void)snprintf(status, sizeof status, "%u", ending->status);
    log_info(
        "list or watch starts again", LOG_STR("resource", kind_resource(reflector->kind)),
        LOG_STR("reason", restart_text(reason)), LOG_STR("status", status),
        LOG_STR("error", ending->error == NULL || reflector->failure >= 0 ? "" : ending->error));
}

void reflector_end(struct reflector *reflector, const struct reflector_ending *ending,
                   uint64_t now_ns)
{
    reflector->deadline_ns = 0;
    if (ending->status == 404 && may_be_absent(reflector)) {
        be_absent(reflector, now_ns);
        return;
    }
    int reason = judge_ending(reflector, ending);
    if (reflector->is_established)
        reflector->failures = 0;
    if (reason < 0) { /* a page is read: the next one, or the watch; a probe is passed: the watch */
        if (reflector->phase == PHASE_PROBE)
            reflector->phase = PHASE_WATCH;
        reflector->due_ns = now_ns;
        return;
    }
    atomic_fetch_add(&reflector->status->restarts[reason], 1);
    log_ending(reflector, (enum restart)reason, ending);
    if (reflector->restarts_list || reflector->phase == PHASE_STREAM)
        start_list(reflector, (enum restart)reason);
    else if (reflector->phase == PHASE_WATCH)
        reflector->phase = PHASE_PROBE;
    /* else the same page again, by its continue token, or the same probe */
    if (reason == RESTART_EXPIRED && reflector->phase != PHASE_WATCH)
        reflector->expirations++;
    int64_t retry_after_ms = reflector->retry_after_ms > ending->retry_after_ms
                                 ? reflector->retry_after_ms
                                 : ending->retry_after_ms;
    bool is_at_once =
        (reason == RESTART_TIMEOUT && now_ns - reflector->started_ns > UINT64_C(1000) * MS) ||
        reason == RESTART_FALLBACK || reason == RESTART_OLDER_HISTORY ||
        (reason == RESTART_EXPIRED && reflector->expirations < PAGES_FAILED_MAX);
    reflector->due_ns = is_at_once ? now_ns : now_ns + backoff_ns(reflector, retry_after_ms);
}
