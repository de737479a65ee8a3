#include "extender/serving/zpages/zpages.h"

#include <stdio.h>
#include <unistd.h>

#include "cache/cluster/allowance.h"
#include "config/base/log.h"
#include "extender/serving/bind/agreement.h"
#include "extender/serving/bind/deferral.h"
#include "extender/serving/http/tls.h"
#include "extender/serving/verbs/verbs.h"
#include "extender/version.h"

enum { ORPHANS_BYTES_MAX = 64 * 1024, GIVEN_UP_SHOWN_MAX = 20 };

static const char json_type[] = "application/json";
static const char text_type[] = "text/plain; charset=utf-8";

/* Writes one page, as zpages_answer does. */
typedef struct zpages_answer show_function(struct state *state,
                                           const struct zpages_request *request, struct buf *out);

/* Makes a page in pieces. */
typedef struct pieces *make_function(struct state *state, struct quota_share *share);

static struct zpages_answer text_answer(unsigned status)
{
    return (struct zpages_answer){status, text_type, NULL};
}

static struct zpages_answer show_live(struct state *state, const struct zpages_request *request,
                                      struct buf *out)
{
    unsigned seconds;
    const char *stuck = watchdog_find(&state->watchdog, monotonic_ns(), &seconds);

    (void)request;
    if (stuck == NULL) {
        buf_put(out, SLICE("ok\n"));
        return text_answer(200);
    }
    log_error("a thread is stuck", LOG_STR("thread", stuck));
    buf_printf(out, "[-] %s has worked on one task for %u s\n", stuck, seconds);
    return text_answer(500);
}

/* Writes the line of a resource, if it is not ready or is_verbose. Returns whether it is ready. */
static bool put_ready(struct buf *out, enum kind kind, const struct resource_status *status,
                      bool is_verbose)
{
    bool is_synced = atomic_load(&status->is_synced);
    bool is_good = is_synced && !atomic_load(&status->is_stalled);

    if (is_verbose || !is_good)
        buf_printf(out, "[%c] %s %s\n", is_good ? '+' : '-', kind_resource(kind),
                   !is_synced                        ? "not synced"
                   : !is_good                        ? "does not advance"
                   : atomic_load(&status->is_absent) ? "not served by this API server"
                                                     : "synced");
    return is_good;
}

/* Writes a line about what claimguards agree on, if there is an agreement to follow. */
static bool put_agreement(struct buf *out, const struct state *state, bool is_verbose)
{
    bool is_ready = state->agreed == NULL || agreement_is_ready(state);

    if (state->agreed != NULL && (is_verbose || !is_ready))
        buf_printf(out, "[%c] agreement %s\n", is_ready ? '+' : '-',
                   is_ready ? "known" : "not read: the log says why");
    return is_ready;
}

/* Writes a line about the certificates that claimguard keeps itself, if it has none yet. */
static bool put_certificates(struct buf *out, const struct state *state)
{
    bool is_ready = tls_is_ready(state->tls) && tls_is_ready(state->admission_tls);

    if (!is_ready)
        buf_put(out, SLICE("[-] certificates not there: the log says why\n"));
    return is_ready;
}

static struct zpages_answer show_ready(struct state *state, const struct zpages_request *request,
                                       struct buf *out)
{
    bool is_draining = atomic_load(&state->is_draining);
    bool is_good = true;

    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        if (state_needs(state, (enum kind)kind))
            is_good &= put_ready(out, (enum kind)kind, &state->status[kind], request->is_verbose);
    is_good &= put_agreement(out, state, request->is_verbose);
    is_good &= put_certificates(out, state);
    if (request->is_verbose)
        buf_printf(out, "[%c] not shutting down\n", is_draining ? '-' : '+');
    buf_put(out, is_draining ? SLICE("shutting down\n")
                 : !is_good  ? SLICE("not ready\n")
                             : SLICE("ok\n"));
    return text_answer(is_draining || !is_good ? 503 : 200);
}

static struct zpages_answer show_metrics(struct state *state, const struct zpages_request *request,
                                         struct buf *out)
{
    struct pieces *rest = scrape_new(state, request->wants_open_metrics);

    if (rest == NULL) {
        buf_put(out, SLICE("no memory\n"));
        return text_answer(503);
    }
    return (struct zpages_answer){
        200,
        request->wants_open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                    : "text/plain; version=0.0.4; charset=utf-8",
        rest,
    };
}

/* Writes the line of a resource. Its restarts do not count watches that ended at their timeout,
 * which is normal. */
static void put_status(struct buf *out, struct state *state, enum kind kind)
{
    const struct resource_status *status = &state->status[kind];
    int64_t last_ms = atomic_load(&status->last_event_ms);
    unsigned long long restarts = 0;
    char age[24] = "never";

    for (int reason = 0; reason < RESTART_COUNT; reason++)
        if (reason != RESTART_TIMEOUT)
            restarts += atomic_load(&status->restarts[reason]);
    if (last_ms != 0)
        (void)snprintf(age, sizeof age, "%llds ago", (long long)((now_ms() - last_ms) / 1000));
    buf_printf(out, "%-24s %10zu  %-10s  %10s  %8llu\n", kind_resource(kind),
               state->cluster.counts[kind],
               atomic_load(&status->is_stalled)  ? "stalled"
               : atomic_load(&status->is_absent) ? "not served"
               : atomic_load(&status->is_synced) ? "yes"
                                                 : "no",
               age, restarts);
}

/* Writes how deferrals are written, and the pods to restart before a downgrade. */
static void put_deferral(struct buf *out, const struct state *state, const struct survey *survey,
                         struct slice orphans)
{
    buf_printf(out, "%-24s %s\n", "deferFSMount", defer_support_text(state));
    buf_printf(
        out, "%-24s %zu%s\n", "orphaned deferrals", survey->orphans,
        survey->orphans == 0 ? "" : ": pods whose entry is gone; restart them before a downgrade");
    buf_put(out, orphans);
    if (survey->orphans > SURVEY_ORPHANS_SHOWN_MAX)
        buf_printf(out, "... and %zu more\n", survey->orphans - SURVEY_ORPHANS_SHOWN_MAX);
    buf_put(out, SLICE("\n"));
}

static void put_certificate(struct buf *out, const struct state *state)
{
    int64_t left_s = tls_not_after(state->tls) - now_ms() / 1000;

    if (!tls_is_ready(state->tls))
        buf_printf(out, "%-24s WAITS: the log says why\n", "certificate");
    else if (state->tls != NULL)
        buf_printf(out, "%-24s %s %lldd%02lldh\n", "certificate",
                   left_s > 0 ? "ends in" : "HAS ENDED", (long long)(left_s / 86400),
                   (long long)(left_s / 3600 % 24));
    else
        buf_printf(out, "%-24s none: the scheduler's port is plain text\n", "certificate");
}

static void put_permission(struct buf *out, const struct state *state)
{
    struct error err = {0};

    if (state->agreed != NULL)
        buf_printf(out, "%-24s %s%s\n", "agreement",
                   agreement_permits(state, &err) == 0 ? "in force" : "WAITS: ", err.message);
}

/* Writes which resources a new configuration waits for, if one does. */
static void put_waiting(struct buf *out, const struct state *state)
{
    const char *before = "new configuration        waits for ";

    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        if (state_watches(state, (enum kind)kind) && !state_needs(state, (enum kind)kind)) {
            buf_printf(out, "%s%s", before, kind_resource((enum kind)kind));
            before = ", ";
        }
    buf_put(out, before[0] == ',' ? SLICE("\n") : SLICE(""));
}

/* Writes the namespaces that are given up (allowance.h), if there are some. */
static void put_given_up(struct buf *out, const struct cluster *cluster)
{
    struct table_walk walk = {.at = 0};
    struct slice ns;
    unsigned shown = 0;

    if (cluster->namespaces_given_up == 0)
        return;
    buf_printf(out, "%-24s %u:", "namespaces given up", cluster->namespaces_given_up);
    while (shown < GIVEN_UP_SHOWN_MAX && (ns = allowance_next(cluster, &walk)).ptr != NULL)
        buf_printf(out, "%s %.*s", shown++ == 0 ? "" : ",", SLICE_ARG(ns));
    buf_put(out, shown < cluster->namespaces_given_up ? SLICE(", ...\n") : SLICE("\n"));
}

/* Writes the part of /statusz about the cluster. */
static void put_cluster(struct buf *out, struct state *state)
{
    SCOPED_BUF(orphans, ORPHANS_BYTES_MAX);
    struct survey survey = survey_take(state, &orphans);

    SCOPED_READ_LOCK(&state->lock);
    buf_printf(out, "%-24s %s\n", "source", state->source);
    buf_printf(out, "%-24s %s\n", "configuration",
               atomic_load(&state->metrics.is_config_refused)
                   ? "AS BEFORE: the file has an error, which is in the log"
                   : "in force");
    put_permission(out, state);
    buf_printf(out, "%-24s %u\n", "reservations", state->cluster.reserved.count);
    buf_printf(out, "%-24s %zu\n", "violations", state->cluster.violations + survey.violations);
    put_given_up(out, &state->cluster);
    put_certificate(out, state);
    put_waiting(out, state);
    put_deferral(out, state, &survey, buf_slice(&orphans));
    buf_printf(out, "%-24s %10s  %-10s  %10s  %8s\n", "RESOURCE", "OBJECTS", "SYNCED", "LAST EVENT",
               "RESTARTS");
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        if (state_watches(state, (enum kind)kind))
            put_status(out, state, (enum kind)kind);
}

static struct zpages_answer show_status(struct state *state, const struct zpages_request *request,
                                        struct buf *out)
{
    int64_t uptime = (now_ms() - state->started_ms) / 1000;

    (void)request;
    buf_printf(out, "claimguard %s (%s)\n\n", CLAIMGUARD_VERSION, CLAIMGUARD_REVISION);
    buf_printf(out, "%-24s %d\n%-24s %lldh%02lldm%02llds\n", "process", (int)getpid(), "uptime",
               (long long)(uptime / 3600), (long long)(uptime / 60 % 60), (long long)(uptime % 60));
    put_cluster(out, state);
    return text_answer(200);
}

/* Begins a page of debug endpoints, if they are on. */
static struct zpages_answer show_debug(struct state *state, const struct zpages_request *request,
                                       struct buf *out, make_function *make)
{
    (void)pthread_rwlock_rdlock(&state->lock);
    bool is_on = state->config->server.debug_endpoints;
    (void)pthread_rwlock_unlock(&state->lock);
    if (!is_on) {
        verb_write_failure(out, "this page is off: set server.debugEndpoints to true");
        return (struct zpages_answer){404, json_type, NULL};
    }
    struct pieces *rest = make(state, request->share);
    if (rest != NULL)
        return (struct zpages_answer){200, json_type, rest};
    verb_write_failure(out, "no memory");
    return (struct zpages_answer){503, json_type, NULL};
}

static const struct page {
    const char *path;
    show_function *show;
    make_function *make; /* instead, of a debug endpoint */
} pages[] = {
    {"/livez", show_live, NULL},
    {"/healthz", show_live, NULL},
    {"/readyz", show_ready, NULL},
    {"/metrics", show_metrics, NULL},
    {"/statusz", show_status, NULL},
    {"/debug/cache", NULL, debug_cache_new},
    {"/debug/snapshot", NULL, debug_snapshot_new},
};

static const struct page *find_page(struct slice path)
{
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        if (slice_equal(path, slice_of(pages[i].path)))
            return &pages[i];
    return NULL;
}

bool zpages_exists(struct slice path)
{
    return find_page(path) != NULL;
}

struct zpages_answer zpages_answer(struct state *state, const struct zpages_request *request,
                                   struct buf *out)
{
    const struct page *page = find_page(request->path);

    if (page == NULL)
        return text_answer(404);
    return page->make != NULL ? show_debug(state, request, out, page->make)
                              : page->show(state, request, out);
}
