#include <stdio.h>

#include "cache/client/api_path.h"
#include "cache/json/json_text.h"
#include "cache/watch/reflector_internal.h"
#include "config/base/clock.h"
#include "config/base/log.h"

enum {
    LOGGED_FAILURES = 3, /* every third failure is logged */
    REFLECTOR_ARENA_BYTES_MAX = 32 << 20,
    WINDOW_KEEP_BYTES = 256 * 1024,
};

/* Finished pods hold no claim, so only commands read them. A pod that finishes leaves the watch:
 * the API server reports it as DELETED. */
#define UNFINISHED_PODS "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed&"

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

/* Before a new request. */
static void reset_answer(struct reflector *reflector, uint64_t now_ns)
{
    reflector->started_ns = now_ns;
    reflector->deadline_ns = now_ns + LIST_SILENT_MS * NS_PER_MS;
    reflector->failure = -1;
    reflector->restarts_list = reflector->is_renewal = false;
    reflector->is_established = reflector->is_page_whole = reflector->has_advanced = false;
    reflector->retry_after_ms = 0;
    buf_reset(&reflector->window, WINDOW_KEEP_BYTES);
    reflector->scanned = 0;
    reflector->meta.version[0] = reflector->meta.continue_token[0] = '\0';
    reflector->document = (struct document){.meta = &reflector->meta};
}

/* The queries of https://kubernetes.io/docs/reference/using-api/api-concepts/, by phase. */

/* A streamed list, and the watch that follows it in the same answer. */
static void put_stream_query(struct buf *path)
{
    buf_printf(path,
               "watch=1&allowWatchBookmarks=true&sendInitialEvents=true"
               "&resourceVersionMatch=NotOlderThan&timeoutSeconds=%d",
               STREAMED_LIST_SECONDS);
}

static void put_page_query(const struct reflector *reflector, struct buf *path)
{
    buf_printf(path, "limit=%d", PAGE_OBJECTS);
    if (reflector->page[0] == '\0')
        return;
    buf_put(path, SLICE("&continue="));
    api_path_escape(path, slice_of(reflector->page));
}

static void put_probe_query(const struct reflector *reflector, struct buf *path)
{
    buf_put(path, SLICE("limit=1&resourceVersionMatch=NotOlderThan&resourceVersion="));
    api_path_escape(path, slice_of(reflector->version));
}

static void put_watch_query(const struct reflector *reflector, unsigned seconds, struct buf *path)
{
    buf_printf(path,
               "watch=1&allowWatchBookmarks=true&timeoutSeconds=%u&resourceVersion=", seconds);
    api_path_escape(path, slice_of(reflector->version));
}

/* A watch without events shows only at its end that the resource advances, so while the resource is
 * stalled, it is as short as counts. */
static unsigned watch_seconds(struct reflector *reflector)
{
    if (atomic_load(&reflector->status->is_stalled))
        return QUIET_MS_MIN / 1000 + 1;
    return WATCH_SECONDS - next_random(reflector) % (WATCH_SECONDS / 4);
}

void reflector_request(struct reflector *reflector, uint64_t now_ns, struct buf *path)
{
    enum reflector_phase phase = reflector->phase;
    unsigned seconds = watch_seconds(reflector);

    reset_answer(reflector, now_ns);
    if (phase == PHASE_WATCH)
        reflector->deadline_ns = now_ns + (seconds * UINT64_C(1000) + SILENT_MS) * NS_PER_MS;
    if (phase == PHASE_STREAM || (phase == PHASE_PAGES && reflector->page[0] == '\0')) {
        reflector->list_started_ns = now_ns;
        reflector->pages = 0;
        reflector->has_begun = false;
    }
    api_path_put(path, reflector->kind, reflector->ns);
    buf_put(path, SLICE("?"));
    if (reflector->kind == KIND_POD && !reflector->reads_finished)
        buf_put(path, SLICE(UNFINISHED_PODS));
    switch (phase) {
    case PHASE_STREAM: put_stream_query(path); break;
    case PHASE_PAGES: put_page_query(reflector, path); break;
    case PHASE_PROBE: put_probe_query(reflector, path); break;
    case PHASE_WATCH: put_watch_query(reflector, seconds, path); break;
    }
}

/* ---- the end of an answer ---- */

/* The pause before the next request. retry_after_ms: what the HTTP answer asked for; 0: nothing.
 * is_relist: a list was complete, and has to be read again. */
static uint64_t backoff_ns(struct reflector *reflector, int64_t retry_after_ms, bool is_relist)
{
    unsigned times = is_relist && reflector->relists > reflector->failures ? reflector->relists
                                                                           : reflector->failures;
    uint64_t ms = (uint64_t)RETRY_MS_MIN << (times < 9 ? times : 9);
    uint64_t max = is_relist ? RELIST_MS_MAX : RETRY_MS_MAX;

    if (ms > max)
        ms = max;
    ms = ms / 2 + next_random(reflector) % (ms / 2 + 1);
    if (retry_after_ms < reflector->retry_after_ms)
        retry_after_ms = reflector->retry_after_ms;
    if (retry_after_ms > RETRY_AFTER_MS_MAX)
        retry_after_ms = RETRY_AFTER_MS_MAX;
    if (retry_after_ms > 0 && ms < (uint64_t)retry_after_ms)
        ms = (uint64_t)retry_after_ms;
    reflector->failures++;
    return ms * NS_PER_MS;
}

/* The next request is a new list. It is in pages if the server cannot stream, if streams were
 * refused repeatedly, or after an older version was seen: the first page says how old the history
 * is before any object is read. */
static void start_list(struct reflector *reflector, enum restart reason)
{
    bool streams = reflector->can_stream && reason != RESTART_OLDER_HISTORY &&
                   reflector->refusals < REFUSED_MAX;

    reflector->phase = streams ? PHASE_STREAM : PHASE_PAGES;
    reflector->page[0] = '\0';
}

/* Kinds that an older API server does not serve. */
static bool may_lack(enum kind kind)
{
    return kind >= KIND_STORAGE_CLASS;
}

static bool may_be_absent(const struct reflector *reflector)
{
    return may_lack(reflector->kind) && (!atomic_load(&reflector->status->is_synced) ||
                                         atomic_load(&reflector->status->is_absent));
}

static void be_absent(struct reflector *reflector, uint64_t now_ns)
{
    if (!atomic_load(&reflector->status->is_absent))
        log_info("the API server does not serve a resource, so it is ignored",
                 LOG_STR("resource", reflector_resource(reflector)));
    reflector->sink.unserved(reflector->sink.context, reflector->kind);
    atomic_store(&reflector->status->is_absent, true);
    atomic_store(&reflector->status->is_synced, true);
    reflector_advanced(reflector);
    start_list(reflector, RESTART_SERVER_ERROR);
    reflector->is_done = reflector->is_list_only;
    reflector->due_ns = now_ns + ABSENT_RETRY_MS * NS_PER_MS;
}

/* Whether the server ended the answer inside a page, or inside a line. */
static bool ends_inside(const struct reflector *reflector, const struct reflector_ending *ending)
{
    struct slice left = buf_slice(&reflector->window);

    if (ending->is_cut)
        return false;
    return reflector->phase == PHASE_PAGES ||
           (left.len != 0 && json_text_space(left.ptr, left.ptr + left.len) != left.ptr + left.len);
}

/* Why the answer ended; -1: it is complete. Sets restarts_list if a new list is needed. */
static int evaluate_ending(struct reflector *reflector, const struct reflector_ending *ending)
{
    if (reflector->failure >= 0)
        return reflector->failure;
    if (ending->is_silent)
        return reflector->is_renewal ? RESTART_TIMEOUT : RESTART_SILENT;
    if (ending->status == 0)
        return RESTART_CONNECTION;
    if (reflector->phase == PHASE_PROBE && (ending->status != 200 || !ending->is_cut)) {
        int reason = reflector_check_probe(reflector, ending->status);
        reflector->restarts_list = reason == RESTART_OLDER_HISTORY || ending->status == 410;
        return reason;
    }
    if (reflector->is_page_whole)
        return -1;
    if (ending->status == 200 && ends_inside(reflector, ending))
        return RESTART_MALFORMED;
    if (ending->status == 200)
        return reflector->phase == PHASE_WATCH && !ending->is_cut ? RESTART_TIMEOUT
                                                                  : RESTART_CONNECTION;
    if (reflector_refuses_streaming(reflector, ending->status)) {
        reflector->can_stream = false;
        reflector->restarts_list = true;
        return RESTART_FALLBACK;
    }
    /* the server does not accept the continue token: a new list is needed */
    bool is_bad_continue =
        reflector->phase == PHASE_PAGES && ending->status == 400 && reflector->page[0] != '\0';
    reflector->restarts_list = ending->status == 410 || is_bad_continue;
    return (int)(is_bad_continue ? RESTART_EXPIRED : reflector_status_reason(ending->status));
}

static void log_ending(const struct reflector *reflector, enum restart reason,
                       const struct reflector_ending *ending)
{
    const char *resource = reflector_resource(reflector), *text = restart_text(reason);
    const char *error = ending->error == NULL || reflector->failure >= 0 ? "" : ending->error;
    char status[16];

    if (reason == RESTART_TIMEOUT || reflector->failures % LOGGED_FAILURES != 0)
        return; /* an API server that is away would fill the log */
    (void)snprintf(status, sizeof status, "%u", ending->is_silent ? 0 : ending->status);
    if (reflector->failures == 0)
        log_info("list or watch starts again", LOG_STR("resource", resource),
                 LOG_STR("reason", text), LOG_STR("status", status), LOG_STR("error", error));
    else
        log_warn("a list or watch fails repeatedly", LOG_STR("resource", resource),
                 LOG_STR("reason", text), LOG_STR("status", status), LOG_STR("error", error));
}

/* ---- progress ---- */

void reflector_advanced(struct reflector *reflector)
{
    if (atomic_exchange(&reflector->status->is_stalled, false))
        log_info("a resource advances again", LOG_STR("resource", reflector_resource(reflector)));
    reflector->refusals = 0;
    reflector->has_advanced = true;
}

/* Whether the API server has answered, but the answer was useless. */
static bool is_refused(const struct reflector *reflector, enum restart reason,
                       const struct reflector_ending *ending, bool has_lasted)
{
    switch (reason) {
    case RESTART_TIMEOUT:
    case RESTART_CONNECTION:
        return ending->status == 200 && !has_lasted && !reflector->is_established;
    case RESTART_SILENT:
    case RESTART_THROTTLED:
    case RESTART_FALLBACK: return false;
    case RESTART_SERVER_ERROR:
        return ending->status <= 500 && !(ending->status == 404 && may_lack(reflector->kind));
    default: return true;
    }
}

/* Counts a useless answer. Returns whether a new list is needed: there were several at one version,
 * and a list would not be refused for the same reason. */
static bool count_refusal(struct reflector *reflector, enum restart reason, uint64_t now_ns)
{
    if (reflector->refusals++ == 0)
        reflector->refused_since_ns = now_ns;
    if (now_ns - reflector->refused_since_ns >= STALLED_MS * NS_PER_MS &&
        !atomic_exchange(&reflector->status->is_stalled, true))
        log_error("a resource does not advance: its cached objects get old",
                  LOG_STR("resource", reflector_resource(reflector)),
                  LOG_STR("version", reflector->version), LOG_STR("reason", restart_text(reason)));
    return reflector->refusals >= REFUSED_MAX && reason != RESTART_UNAUTHORIZED &&
           reason != RESTART_FORBIDDEN;
}

/* The phase of the next request, after one that has failed. */
static void choose_phase(struct reflector *reflector, enum restart reason, bool starts_list)
{
    static const enum reflector_phase retries[] = {
        [PHASE_PAGES] = PHASE_PAGES, /* the same page, by its continue token */
        [PHASE_PROBE] = PHASE_PROBE,
        [PHASE_WATCH] = PHASE_PROBE,
    };

    if (starts_list || reflector->phase == PHASE_STREAM)
        start_list(reflector, reason);
    else
        reflector->phase = retries[reflector->phase];
}

static void restart(struct reflector *reflector, enum restart reason,
                    const struct reflector_ending *ending, bool has_lasted, uint64_t now_ns)
{
    bool was_refused = is_refused(reflector, reason, ending, has_lasted);
    bool is_stuck = was_refused && count_refusal(reflector, reason, now_ns);
    bool is_outdated = reason == RESTART_EXPIRED || reason == RESTART_OLDER_HISTORY;
    bool was_listed = reflector->phase == PHASE_WATCH || reflector->phase == PHASE_PROBE;

    if (reason == RESTART_TIMEOUT && has_lasted)
        reflector_advanced(reflector);
    if (!was_refused)
        reflector->refused_since_ns = now_ns; /* refusals before an outage do not count */
    if (reflector->has_advanced || (reflector->is_established && !was_refused))
        reflector->failures = 0;
    atomic_fetch_add(&reflector->status->restarts[reason], 1);
    log_ending(reflector, reason, ending);
    choose_phase(reflector, reason, is_stuck || reflector->restarts_list);
    reflector->relists += is_outdated || (is_stuck && was_listed);
    bool is_at_once = (reason == RESTART_TIMEOUT && has_lasted) || reason == RESTART_FALLBACK ||
                      (is_outdated && reflector->relists < RELISTS_AT_ONCE_MAX);
    reflector->due_ns = now_ns;
    if (!is_at_once)
        reflector->due_ns +=
            backoff_ns(reflector, ending->retry_after_ms, was_listed && (is_outdated || is_stuck));
}

void reflector_end(struct reflector *reflector, const struct reflector_ending *ending,
                   uint64_t now_ns)
{
    bool is_early = now_ns + (SILENT_MS + 1000) * NS_PER_MS < reflector->deadline_ns;

    reflector->deadline_ns = 0;
    if (ending->status == 404 && may_be_absent(reflector)) {
        be_absent(reflector, now_ns);
        return;
    }
    int reason = evaluate_ending(reflector, ending);
    bool is_quiet = reason == RESTART_TIMEOUT && !reflector->is_established;
    bool has_lasted = now_ns - reflector->started_ns > (is_quiet ? QUIET_MS_MIN : 1000) * NS_PER_MS;
    if (reflector->is_established && has_lasted && reflector->phase == PHASE_WATCH)
        reflector->relists = 0;
    if (reason < 0) { /* after a page the next page, or the watch; after a probe the watch */
        if (reflector->phase == PHASE_PROBE)
            reflector->phase = PHASE_WATCH;
        else if (reflector->refusals == 0) /* else the pages of an endless list would reset it */
            reflector->failures = 0;
        reflector->due_ns = now_ns;
        return;
    }
    atomic_fetch_add(&reflector->status->early_ends, reason == RESTART_TIMEOUT && is_early);
    restart(reflector, (enum restart)reason, ending, has_lasted, now_ns);
}
