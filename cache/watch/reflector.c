#include <stdio.h>

#include "cache/client/api_path.h"
#include "cache/json/json_text.h"
#include "cache/watch/reflector_internal.h"
#include "config/base/clock.h"
#include "config/base/log.h"

enum { LOGGED_FAILURES = 3, REFLECTOR_ARENA_BYTES_MAX = 32 << 20, WINDOW_KEEP_BYTES = 256 * 1024 };

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

/* A new answer is to come. */
static void reset_answer(struct reflector *reflector, uint64_t now_ns)
{
    reflector->started_ns = now_ns;
    reflector->deadline_ns = now_ns + LIST_SILENT_MS * NS_PER_MS;
    reflector->failure = -1;
    reflector->restarts_list = reflector->is_renewal = false;
    reflector->is_established = reflector->is_page_whole = reflector->has_moved = false;
    reflector->retry_after_ms = 0;
    buf_reset(&reflector->window, WINDOW_KEEP_BYTES);
    reflector->scanned = 0;
    reflector->meta.version[0] = reflector->meta.continue_token[0] = '\0';
    reflector->document = (struct document){.meta = &reflector->meta};
}

void reflector_request(struct reflector *reflector, uint64_t now_ns, struct buf *path)
{
    /* only pods that take part: one that finishes is told as DELETED (design fact 13) */
    const char *selector =
        reflector->kind == KIND_POD
            ? "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed&"
            : "";
    unsigned seconds = WATCH_SECONDS - next_random(reflector) % (WATCH_SECONDS / 4);

    reset_answer(reflector, now_ns);
    buf_printf(path, "%s/%s?%s", kind_api_path(reflector->kind), kind_resource(reflector->kind),
               selector);
    if (reflector->phase == PHASE_PROBE) {
        buf_put(path, SLICE("limit=1&resourceVersionMatch=NotOlderThan&resourceVersion="));
        api_path_escape(path, slice_of(reflector->version));
        return;
    }
    if (reflector->phase == PHASE_WATCH) {
        reflector->deadline_ns = now_ns + (seconds * UINT64_C(1000) + SILENT_MS) * NS_PER_MS;
        buf_printf(path,
                   "watch=1&allowWatchBookmarks=true&timeoutSeconds=%u&resourceVersion=", seconds);
        api_path_escape(path, slice_of(reflector->version));
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
            api_path_escape(path, slice_of(reflector->page));
            return;
        }
    }
    reflector->list_started_ns = now_ns; /* a list from its start */
    reflector->has_begun = false;
}

/* ---- how it ends ---- */

/* is_relist: a list was whole, and what followed it has failed. */
static uint64_t backoff_ns(struct reflector *reflector, int64_t retry_after_ms, bool is_relist)
{
    unsigned times = is_relist && reflector->relists > reflector->failures ? reflector->relists
                                                                           : reflector->failures;
    uint64_t ms = (uint64_t)RETRY_MS_MIN << (times < 9 ? times : 9);
    uint64_t max = is_relist ? RELIST_MS_MAX : RETRY_MS_MAX;

    if (ms > max)
        ms = max;
    ms = ms / 2 + next_random(reflector) % (ms / 2 + 1);
    if (retry_after_ms > RETRY_AFTER_MS_MAX)
        retry_after_ms = RETRY_AFTER_MS_MAX;
    if (retry_after_ms > 0 && ms < (uint64_t)retry_after_ms)
        ms = (uint64_t)retry_after_ms;
    reflector->failures++;
    return ms * NS_PER_MS;
}

/* In pages after an older version was seen, since the first one tells how old the history is before
 * any object is read; and where nothing comes of streams. */
static void start_list(struct reflector *reflector, enum restart reason)
{
    bool streams = reflector->can_stream && reason != RESTART_OLDER_HISTORY &&
                   reflector->refusals < REFUSED_MAX;

    reflector->phase = streams ? PHASE_STREAM : PHASE_PAGES;
    reflector->page[0] = '\0';
}

/* Kinds that an API server may lack; one without the others is none. */
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
        log_info("the API server does not serve a resource: it is left out",
                 LOG_STR("resource", kind_resource(reflector->kind)));
    atomic_store(&reflector->status->is_absent, true);
    atomic_store(&reflector->status->is_synced, true);
    reflector_moved(reflector);
    start_list(reflector, RESTART_SERVER_ERROR);
    reflector->is_done = reflector->is_list_only;
    reflector->due_ns = now_ns + ABSENT_RETRY_MS * NS_PER_MS;
}

/* Whether the answer is over, and what came of it last is not whole. */
static bool ends_inside(const struct reflector *reflector, const struct reflector_ending *ending)
{
    struct slice left = buf_slice(&reflector->window);

    if (ending->is_cut)
        return false;
    return reflector->phase == PHASE_PAGES ||
           (left.len != 0 && json_text_space(left.ptr, left.ptr + left.len) != left.ptr + left.len);
}

/* What ended the answer, and whether a list has to start anew for it; -1: nothing is wrong. */
static int evaluate_ending(struct reflector *reflector, const struct reflector_ending *ending)
{
    if (reflector->failure >= 0)
        return reflector->failure;
    if (ending->is_silent)
        return reflector->is_renewal ? RESTART_TIMEOUT : RESTART_SILENT;
    if (ending->status == 0)
        return RESTART_CONNECTION;
    if (reflector->phase == PHASE_PROBE && (ending->status != 200 || !ending->is_cut)) {
        int reason = evaluate_probe(reflector, ending->status);
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
    const char *resource = kind_resource(reflector->kind), *text = restart_text(reason);
    const char *error = ending->error == NULL || reflector->failure >= 0 ? "" : ending->error;
    char status[16];

    if (reason == RESTART_TIMEOUT || reflector->failures % LOGGED_FAILURES != 0)
        return; /* while an API server is away, not every attempt is news */
    (void)snprintf(status, sizeof status, "%u", ending->is_silent ? 0 : ending->status);
    if (reflector->failures == 0)
        log_info("list or watch starts again", LOG_STR("resource", resource),
                 LOG_STR("reason", text), LOG_STR("status", status), LOG_STR("error", error));
    else
        log_warn("a list or watch fails again and again", LOG_STR("resource", resource),
                 LOG_STR("reason", text), LOG_STR("status", status), LOG_STR("error", error));
}

/* ---- whether it gets anywhere ---- */

void reflector_moved(struct reflector *reflector)
{
    if (atomic_exchange(&reflector->status->is_stalled, false))
        log_info("a resource advances again", LOG_STR("resource", kind_resource(reflector->kind)));
    reflector->refusals = 0;
    reflector->has_moved = true;
}

/* Whether the API server answered, and nothing came of it. */
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

/* One more refusal. Whether the list is to be read anew for it: not where it would be refused for
 * the same reason. */
static bool note_refusal(struct reflector *reflector, enum restart reason, uint64_t now_ns)
{
    if (reflector->refusals++ == 0)
        reflector->refused_since_ns = now_ns;
    if (now_ns - reflector->refused_since_ns >= STALLED_MS * NS_PER_MS &&
        !atomic_exchange(&reflector->status->is_stalled, true))
        log_error("a resource does not advance: what is known of it gets old",
                  LOG_STR("resource", kind_resource(reflector->kind)),
                  LOG_STR("version", reflector->version), LOG_STR("reason", restart_text(reason)));
    return reflector->refusals >= REFUSED_MAX && reason != RESTART_UNAUTHORIZED &&
           reason != RESTART_FORBIDDEN;
}

static void restart(struct reflector *reflector, enum restart reason,
                    const struct reflector_ending *ending, bool has_lasted, uint64_t now_ns)
{
    bool was_refused = is_refused(reflector, reason, ending, has_lasted);
    bool starts_list = was_refused && note_refusal(reflector, reason, now_ns);
    bool is_relist = reason == RESTART_EXPIRED || reason == RESTART_OLDER_HISTORY;
    bool was_listed = reflector->phase == PHASE_WATCH || reflector->phase == PHASE_PROBE;

    if (reason == RESTART_TIMEOUT && has_lasted)
        reflector_moved(reflector);
    if (!was_refused)
        reflector->refused_since_ns = now_ns; /* it may have been away all the time */
    if (reflector->has_moved || (reflector->is_established && !was_refused))
        reflector->failures = 0;
    atomic_fetch_add(&reflector->status->restarts[reason], 1);
    log_ending(reflector, reason, ending);
    if (starts_list || reflector->restarts_list || reflector->phase == PHASE_STREAM)
        start_list(reflector, reason);
    else if (reflector->phase == PHASE_WATCH)
        reflector->phase = PHASE_PROBE;
    /* else the same page again, by its continue token, or the same probe */
    reflector->relists += is_relist || (starts_list && was_listed);
    int64_t retry_after_ms = reflector->retry_after_ms > ending->retry_after_ms
                                 ? reflector->retry_after_ms
                                 : ending->retry_after_ms;
    bool is_at_once = (reason == RESTART_TIMEOUT && has_lasted) || reason == RESTART_FALLBACK ||
                      (is_relist && reflector->relists < RELISTS_AT_ONCE_MAX);
    reflector->due_ns = is_at_once ? now_ns
                                   : now_ns + backoff_ns(reflector, retry_after_ms,
                                                         was_listed && (is_relist || starts_list));
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
    if (reason < 0) { /* a page is read: the next one, or the watch; a probe is passed: the watch */
        if (reflector->phase == PHASE_PROBE)
            reflector->phase = PHASE_WATCH;
        else
            reflector->failures = 0;
        reflector->due_ns = now_ns;
        return;
    }
    atomic_fetch_add(&reflector->status->early_ends, reason == RESTART_TIMEOUT && is_early);
    restart(reflector, (enum restart)reason, ending, has_lasted, now_ns);
}
