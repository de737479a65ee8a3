#include <stdio.h>
#include <stdlib.h>

#include "config/base/log.h"
#include "extender/live/events.h"
#include "extender/live/nomination.h"
#include "extender/live/requeue.h"
#include "extender/metrics/process_metrics.h"
#include "extender/version.h"
#include "extender/zpages/scrape_internal.h"

/* ---- samples ---- */

void scrape_put_count(const struct scrape *scrape, uint64_t value)
{
    buf_printf(scrape->out, "%s %llu\n", scrape->name, (unsigned long long)value);
}

void scrape_put_for(const struct scrape *scrape, const char *label, const char *text,
                    uint64_t value)
{
    buf_printf(scrape->out, "%s{%s=\"%s\"} %llu\n", scrape->name, label, text,
               (unsigned long long)value);
}

void scrape_put_label(const struct scrape *scrape, const char *key, struct slice value)
{
    buf_printf(scrape->out, "%s=\"", key);
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] == '\n')
            buf_put(scrape->out, SLICE("\\n"));
        else if (value.ptr[i] == '"' || value.ptr[i] == '\\')
            buf_printf(scrape->out, "\\%c", value.ptr[i]);
        else
            buf_put(scrape->out, (struct slice){value.ptr + i, 1});
    }
    buf_put(scrape->out, SLICE("\""));
}

static void put_histogram(const struct scrape *scrape, const char *label, const char *text,
                          struct histogram *histogram)
{
    uint64_t total = 0;

    for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        double bound = histogram_bounds[i];
        total += atomic_load(&histogram->buckets[i]);
        buf_printf(scrape->out, "%s_bucket{%s=\"%s\",le=\"%g%s\"} %llu\n", scrape->name, label,
                   text, bound, bound == 1 || bound == 5 || bound == 10 ? ".0" : "",
                   (unsigned long long)total);
    }
    total += atomic_load(&histogram->buckets[HISTOGRAM_BUCKETS]);
    buf_printf(scrape->out,
               "%s_bucket{%s=\"%s\",le=\"+Inf\"} %llu\n%s_sum{%s=\"%s\"} %.9g\n"
               "%s_count{%s=\"%s\"} %llu\n",
               scrape->name, label, text, (unsigned long long)total, scrape->name, label, text,
               (double)atomic_load(&histogram->sum_ns) / 1e9, scrape->name, label, text,
               (unsigned long long)total);
}

/* ---- calls of the scheduler, requests to the API server ---- */

/* name: without "claimguard_", and without the _total of a counter, as in OpenMetrics. */
struct family {
    const char *name, *type, *help;
    scrape_samples *write;
    /* If write is NULL: the counters' offset in struct state, and their label with its values. */
    size_t offset;
    const char *label;
    const char *const *values;
    unsigned count;
};

static void put_counters(struct scrape *scrape, const struct family *family)
{
    const atomic_uint_fast64_t *counters =
        (const atomic_uint_fast64_t *)(const void *)((const char *)scrape->state + family->offset);

    if (family->label == NULL)
        scrape_put_count(scrape, atomic_load(counters));
    for (unsigned i = 0; i < family->count; i++)
        scrape_put_for(scrape, family->label, family->values[i], atomic_load(&counters[i]));
}

static bool build_info(struct scrape *scrape)
{
    buf_printf(scrape->out, "%s{version=\"%s\",revision=\"%s\"} 1\n", scrape->name,
               CLAIMGUARD_VERSION, CLAIMGUARD_REVISION);
    return false;
}

static bool call_durations(struct scrape *scrape)
{
    for (int verb = 0; verb < VERB_COUNT; verb++)
        put_histogram(scrape, "verb", verb_text((enum verb)verb),
                      &scrape->state->metrics.durations[verb]);
    return false;
}

static bool calls(struct scrape *scrape)
{
    static const char *const results[RESULT_COUNT] = {"ok", "error", "invalid", "failed"};
    struct metrics *metrics = &scrape->state->metrics;

    for (int verb = 0; verb < VERB_COUNT; verb++)
        for (int result = 0; result < RESULT_COUNT; result++)
            buf_printf(scrape->out, "%s{verb=\"%s\",result=\"%s\"} %llu\n", scrape->name,
                       verb_text((enum verb)verb), results[result],
                       (unsigned long long)atomic_load(&metrics->requests[verb][result]));
    return false;
}

/* No sample where admission is not served. */
static bool review_durations(struct scrape *scrape)
{
    for (int path = 0; path < ADMIT_COUNT && scrape->state->admission_tls != NULL; path++)
        put_histogram(scrape, "path", admit_text((enum admit_path)path),
                      &scrape->state->metrics.review_durations[path]);
    return false;
}

static bool reviews(struct scrape *scrape)
{
    static const char *const results[REVIEW_RESULT_COUNT] = {"allowed", "denied", "invalid",
                                                             "failed"};
    struct metrics *metrics = &scrape->state->metrics;

    for (int path = 0; path < ADMIT_COUNT && scrape->state->admission_tls != NULL; path++)
        for (int result = 0; result < REVIEW_RESULT_COUNT; result++)
            buf_printf(scrape->out, "%s{path=\"%s\",result=\"%s\"} %llu\n", scrape->name,
                       admit_text((enum admit_path)path), results[result],
                       (unsigned long long)atomic_load(&metrics->reviews[path][result]));
    return false;
}

static bool reviews_waiting(struct scrape *scrape)
{
    if (scrape->state->admission_tls != NULL)
        scrape_put_count(scrape, atomic_load(&scrape->state->metrics.reviews_waiting));
    return false;
}

static bool verdicts(struct scrape *scrape)
{
    struct metrics *metrics = &scrape->state->metrics;

    for (size_t i = 0; policies[i] != NULL; i++)
        for (int code = 0; code < CODE_COUNT; code++)
            buf_printf(scrape->out, "%s{policy=\"%s\",code=\"%s\"} %llu\n", scrape->name,
                       policies[i]->name, code_text((enum verdict_code)code),
                       (unsigned long long)atomic_load(&metrics->verdicts[i][code]));
    return false;
}

static bool rejected(struct scrape *scrape)
{
    size_t counts[POLICIES_MAX];

    metrics_count_rejected(&scrape->state->metrics, counts);
    for (size_t i = 0; policies[i] != NULL; i++)
        scrape_put_for(scrape, "policy", policies[i]->name, counts[i]);
    return false;
}

static bool warnings(struct scrape *scrape)
{
    for (size_t i = 0; policies[i] != NULL; i++)
        scrape_put_for(scrape, "policy", policies[i]->name,
                       atomic_load(&scrape->state->metrics.warnings[i]));
    return false;
}

static bool binds_in_flight(struct scrape *scrape)
{
    scrape_put_count(scrape, atomic_load(&scrape->state->metrics.binds_in_flight));
    return false;
}

static bool requeues_waiting(struct scrape *scrape)
{
    scrape_put_count(scrape, requeue_waiting(scrape->state->requeue));
    return false;
}

static bool requeues(struct scrape *scrape)
{
    static const char *const texts[REQUEUE_RESULTS] = {"sent", "dropped", "given_up"};

    for (int result = 0; result < REQUEUE_RESULTS; result++)
        scrape_put_for(scrape, "result", texts[result],
                       atomic_load(&scrape->state->requeue->results[result]));
    return false;
}

static bool nominations(struct scrape *scrape)
{
    static const char *const texts[NOMINATION_RESULTS] = {"sent", "dropped", "cleared"};

    for (int result = 0; result < NOMINATION_RESULTS; result++)
        scrape_put_for(scrape, "result", texts[result],
                       atomic_load(&scrape->state->nominations->results[result]));
    return false;
}

static bool events_dropped(struct scrape *scrape)
{
    scrape_put_count(scrape, atomic_load(&scrape->state->events->dropped));
    return false;
}

/* Only those that have happened, because most combinations never do. */
static bool api_requests(struct scrape *scrape)
{
    struct api_stats *stats = &scrape->state->api_stats;

    for (unsigned verb = 0; verb < API_VERB_COUNT; verb++)
        for (unsigned resource = 0; resource < API_RESOURCE_COUNT; resource++)
            for (unsigned code = 0; code < API_CODES; code++) {
                uint64_t count = atomic_load(&stats->requests[verb][resource][code]);
                if (count != 0)
                    buf_printf(scrape->out, "%s{verb=\"%s\",resource=\"%s\",code=\"%s\"} %llu\n",
                               scrape->name, api_verb_text((enum api_verb)verb),
                               api_resource_text(resource), api_code_text(code),
                               (unsigned long long)count);
            }
    return false;
}

static bool api_durations(struct scrape *scrape)
{
    for (int verb = 0; verb < API_VERB_COUNT; verb++)
        if (verb != API_VERB_WATCH)
            put_histogram(scrape, "verb", api_verb_text((enum api_verb)verb),
                          &scrape->state->api_stats.durations[verb]);
    return false;
}

/* ---- the page ---- */

static const char *const confirmation_texts[CONFIRMATION_COUNT] = {"stands", "overruled",
                                                                   "unknown"};
static const char *const preemption_texts[PREEMPTION_COUNT] = {"scheduler", "evicted", "forbidden",
                                                               "failed", "needless"};

#define COUNTER(member_) .offset = offsetof(struct state, member_)
#define COUNTERS(member_, label_, values_, count_) \
    .offset = offsetof(struct state, member_), .label = (label_), .values = (values_), \
    .count = (count_)

static const struct family families[] = {
    {"build_info", "gauge", "1, with the version as labels.", .write = build_info},
    {"extender_request_duration_seconds", "histogram",
     "Time to answer an extender call, after its body has arrived.", .write = call_durations},
    {"extender_requests", "counter", "Extender calls by verb and result.", .write = calls},
    {"admission_review_duration_seconds", "histogram",
     "Time to answer an admission review, after its body has arrived.", .write = review_durations},
    {"admission_reviews", "counter", "Admission reviews by path and result.", .write = reviews},
    {"admission_reviews_waiting", "gauge", "Reviews that wait for the API server.",
     .write = reviews_waiting},
    {"filter_verdicts", "counter", "Verdicts of filter calls by policy and code.",
     .write = verdicts},
    {"unschedulable_pods", "gauge",
     "Pods whose last filter verdict was a rejection and that are not bound.", .write = rejected},
    {"policy_warnings", "counter", "Warnings about pods when they were bound, by policy.",
     .write = warnings},
    {"confirmations", "counter", "Rejections by what the API server answered before them.",
     COUNTERS(metrics.confirmations, "result", confirmation_texts, CONFIRMATION_COUNT)},
    {"preemption_attempts", "counter", "Preemptions for exclusive claims by result.",
     COUNTERS(metrics.preemptions, "result", preemption_texts, PREEMPTION_COUNT)},
    {"preemption_victims", "counter", "Pods that claimguard evicted.", COUNTER(metrics.victims)},
    {"reservations", "gauge", "Pods that are not bound yet and have claims reserved.",
     .write = scrape_reservations},
    {"bind_conflicts", "counter",
     "Binds refused because another pod has a claim of the pod, by a call or by admission.",
     COUNTER(metrics.bind_conflicts)},
    {"binds_in_flight", "gauge", "Bind calls that are being answered.", .write = binds_in_flight},
    {"binds_in_doubt", "gauge",
     "Pods whose Binding was sent and whose answer was lost; their claims stay reserved.",
     .write = scrape_binds_in_doubt},
    {"claim_lock_takeovers", "counter",
     "Locks of claims that were taken over from a pod that is deleted or was not bound.",
     COUNTER(metrics.lock_takeovers)},
    {"requeues", "counter", "Requests to the scheduler to try a rejected pod again, by result.",
     .write = requeues},
    {"requeues_waiting", "gauge", "Pods that wait until the cause of their rejection changes.",
     .write = requeues_waiting},
    {"nominations", "counter",
     "Nominations of waiting pods to the node where their claim is in use, by result.",
     .write = nominations},
    {"deferred_mounts", "counter",
     "Volumes whose mount was left to the container runtime, by entry of the configuration.",
     .write = scrape_deferred_mounts},
    {"deferred_mounts_orphaned", "gauge",
     "Deferred volumes for which no entry exists any more; drain their pods before the CSI plugin "
     "is downgraded.",
     .write = scrape_orphans},
    {"exclusive_claim_violations", "gauge",
     "Claims that belong to one pod (ReadWriteOncePod, or mounted by a container runtime) and that "
     "two or more pods hold.",
     .write = scrape_violations},
    {"cache_objects", "gauge", "Objects in the cache by resource.", .write = scrape_objects},
    {"persistentvolumeclaims", "gauge", "Claims by namespace, classes and phase.",
     .write = scrape_claims},
    {"cache_synced", "gauge", "Whether all objects of the resource have been read once.",
     .write = scrape_synced},
    {"cache_stalled", "gauge",
     "Whether the API server answers, but no answer is usable, so the cache gets old.",
     .write = scrape_stalled},
    {"cache_last_event_timestamp_seconds", "gauge",
     "When the last complete event or page of the resource arrived, in Unix time.",
     .write = scrape_last_events},
    {"list_duration_seconds", "gauge", "How long the last complete list of the resource took.",
     .write = scrape_list_durations},
    {"cache_skipped_objects", "counter",
     "Objects that were skipped because they could not be decoded.", .write = scrape_skipped},
    {"watch_restarts", "counter",
     "Lists and watches that were started again, by reason; timeout is normal.",
     .write = scrape_restarts},
    {"apiserver_requests", "counter", "Requests to the API server that have ended, by HTTP status.",
     .write = api_requests},
    {"apiserver_request_duration_seconds", "histogram",
     "Time from sending a request to the API server to the end of its answer, without watches.",
     .write = api_durations},
    {"events_dropped", "counter", "Events that were not posted because there were too many.",
     .write = events_dropped},
    {"connections", "gauge", "Open connections by port.", .write = scrape_connections},
    {"connections_max", "gauge",
     "The most connections of a port; one more closes the one that has used most of its time.",
     .write = scrape_connections_max},
    {"tls_handshakes_refused", "counter", "TLS handshakes that failed, on all ports.",
     COUNTER(metrics.handshakes_refused)},
    {"certificate_not_after_timestamp_seconds", "gauge",
     "When the certificate in force on a port ends, in Unix time.",
     .write = scrape_certificate_ends},
    {"config_last_reload_successful", "gauge",
     "Whether the last configuration file that was read is in force; if not, claimguard would not "
     "start with it.",
     .write = scrape_config_is_good},
    {"config_last_reload_success_timestamp_seconds", "gauge",
     "When the configuration in force was read, in Unix time.", .write = scrape_config_loaded},
    {"namespaces_given_up", "gauge",
     "Namespaces whose objects take too much memory: no pod of theirs with claims is bound.",
     .write = scrape_given_up},
    {"agreement_in_force", "gauge",
     "Whether claimguards agree that this one may bind pods with claims.",
     .write = scrape_agreement},
    {"log_lines_dropped", "counter",
     "Log lines that were dropped because the reader of the log is too slow.",
     .write = scrape_log_lines_dropped},
};

static void begin_family(struct scrape *scrape, const struct family *family)
{
    bool is_counter = strcmp(family->type, "counter") == 0;
    const char *suffix = is_counter && !scrape->is_open_metrics ? "_total" : "";

    if (!scrape->has_begun) {
        buf_printf(scrape->out, "# HELP claimguard_%s%s %s\n# TYPE claimguard_%s%s %s\n",
                   family->name, suffix, family->help, family->name, suffix, family->type);
        scrape->scan = (struct scan){.from = 0};
    }
    scrape->has_begun = true;
    (void)snprintf(scrape->name, sizeof scrape->name, "claimguard_%s%s", family->name,
                   is_counter ? "_total" : "");
}

static bool next(struct pieces *pieces, struct buf *out)
{
    struct scrape *scrape = (struct scrape *)pieces;

    scrape->out = out;
    if (scrape->family < sizeof families / sizeof *families) {
        const struct family *family = &families[scrape->family];
        begin_family(scrape, family);
        bool has_more = family->write != NULL && family->write(scrape);
        if (family->write == NULL)
            put_counters(scrape, family);
        scrape->family += !has_more;
        scrape->has_begun = has_more;
        return true;
    }
    process_metrics_write(out, scrape->is_open_metrics);
    if (scrape->is_open_metrics)
        buf_put(out, SLICE("# EOF\n"));
    return false;
}

static void scrape_free(struct pieces *pieces)
{
    free(pieces);
}

struct pieces *scrape_new(struct state *state, bool is_open_metrics)
{
    struct scrape *scrape = calloc(1, sizeof *scrape);

    if (scrape == NULL)
        return NULL;
    scrape->pieces = (struct pieces){next, scrape_free};
    scrape->state = state;
    scrape->is_open_metrics = is_open_metrics;
    return &scrape->pieces;
}
