/* The metrics of /metrics (docs/metrics.md), but those of the process. */
#include "cache/cluster/reservation.h"
#include "config/base/log.h"
#include "extender/serving/bind/agreement.h"
#include "extender/serving/http/tls.h"
#include "extender/serving/live/events.h"
#include "extender/serving/live/nomination.h"
#include "extender/serving/live/requeue.h"
#include "extender/serving/zpages/scrape_internal.h"
#include "extender/version.h"

/* ---- calls of the scheduler, requests to the API server ---- */

static void build_info(struct scrape *scrape)
{
    buf_printf(scrape->out, "%s{version=\"%s\",revision=\"%s\"} 1\n", scrape->name,
               CLAIMGUARD_VERSION, CLAIMGUARD_REVISION);
}

static void call_durations(struct scrape *scrape)
{
    for (int verb = 0; verb < VERB_COUNT; verb++)
        scrape_put_histogram(scrape, "verb", verb_texts[verb],
                             &scrape->state->metrics.durations[verb]);
}

static void calls(struct scrape *scrape)
{
    static const char *const labels[] = {"verb", "result"};
    static const char *const results[RESULT_COUNT] = {"ok", "error", "invalid", "failed"};
    struct metrics *metrics = &scrape->state->metrics;

    for (int verb = 0; verb < VERB_COUNT; verb++)
        for (int result = 0; result < RESULT_COUNT; result++)
            scrape_put_pair(scrape, labels, verb_texts[verb], results[result],
                            atomic_load(&metrics->requests[verb][result]));
}

/* No sample where admission is not served. */
static void review_durations(struct scrape *scrape)
{
    for (int path = 0; path < ADMIT_COUNT && scrape->state->admission_tls != NULL; path++)
        scrape_put_histogram(scrape, "path", admit_paths[path],
                             &scrape->state->metrics.review_durations[path]);
}

static void reviews(struct scrape *scrape)
{
    static const char *const labels[] = {"path", "result"};
    static const char *const results[REVIEW_RESULT_COUNT] = {"allowed", "denied", "observed",
                                                             "invalid", "failed"};
    struct metrics *metrics = &scrape->state->metrics;

    for (int path = 0; path < ADMIT_COUNT && scrape->state->admission_tls != NULL; path++)
        for (int result = 0; result < REVIEW_RESULT_COUNT; result++)
            scrape_put_pair(scrape, labels, admit_paths[path], results[result],
                            atomic_load(&metrics->reviews[path][result]));
}

static void reviews_waiting(struct scrape *scrape)
{
    if (scrape->state->admission_tls != NULL)
        scrape_put_count(scrape, atomic_load(&scrape->state->metrics.reviews_waiting));
}

static void verdicts(struct scrape *scrape)
{
    static const char *const labels[] = {"policy", "code"};
    struct metrics *metrics = &scrape->state->metrics;

    for (size_t i = 0; policies[i] != NULL; i++)
        for (int code = 0; code < CODE_COUNT; code++)
            scrape_put_pair(scrape, labels, policies[i]->name, code_text((enum verdict_code)code),
                            atomic_load(&metrics->verdicts[i][code]));
}

static void rejected(struct scrape *scrape)
{
    size_t counts[POLICIES_MAX];

    metrics_count_rejected(&scrape->state->metrics, counts);
    for (size_t i = 0; policies[i] != NULL; i++)
        scrape_put_for(scrape, "policy", policies[i]->name, counts[i]);
}

static void warnings(struct scrape *scrape)
{
    for (size_t i = 0; policies[i] != NULL; i++)
        scrape_put_for(scrape, "policy", policies[i]->name,
                       atomic_load(&scrape->state->metrics.warnings[i]));
}

static void requeues_waiting(struct scrape *scrape)
{
    scrape_put_count(scrape, requeue_waiting(scrape->state->requeue));
}

static void requeues(struct scrape *scrape)
{
    static const char *const texts[REQUEUE_RESULTS] = {"sent", "dropped", "given_up"};

    scrape_put_counters(scrape, "result", texts, scrape->state->requeue->results, REQUEUE_RESULTS);
}

static void nominations(struct scrape *scrape)
{
    static const char *const texts[NOMINATION_RESULTS] = {"sent", "dropped", "cleared"};

    scrape_put_counters(scrape, "result", texts, scrape->state->nominations->results,
                        NOMINATION_RESULTS);
}

static void events_dropped(struct scrape *scrape)
{
    scrape_put_count(scrape, atomic_load(&scrape->state->events->dropped));
}

/* Only those that have happened, because most combinations never do. */
static void api_requests(struct scrape *scrape)
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
}

static void api_durations(struct scrape *scrape)
{
    for (int verb = 0; verb < API_VERB_COUNT; verb++)
        if (verb != API_VERB_WATCH)
            scrape_put_histogram(scrape, "verb", api_verb_text((enum api_verb)verb),
                                 &scrape->state->api_stats.durations[verb]);
}

/* ---- the cache ---- */

enum { TALLIES_A_PIECE = 64 };

static const struct survey *survey(struct scrape *scrape)
{
    if (!scrape->has_survey)
        scrape->survey = survey_take(scrape->state, NULL);
    scrape->has_survey = true;
    return &scrape->survey;
}

static void deferred_mounts(struct scrape *scrape)
{
    struct metrics *metrics = &scrape->state->metrics;

    SCOPED_LOCK(&metrics->deferred_lock);
    for (const struct deferred_tally *tally = metrics->deferred; tally != NULL;
         tally = tally->next) {
        buf_printf(scrape->out, "%s{", scrape->name);
        scrape_put_label(scrape, "storage_class", tally->storage_class);
        scrape_put_label(scrape, ",runtime_class", tally->runtime_class);
        buf_printf(scrape->out, "} %llu\n", (unsigned long long)tally->count);
    }
}

static void orphans(struct scrape *scrape)
{
    scrape_put_count(scrape, survey(scrape)->orphans);
}

static void violations(struct scrape *scrape)
{
    size_t deferred = survey(scrape)->violations;

    SCOPED_READ_LOCK(&scrape->state->lock);
    scrape_put_count(scrape, scrape->state->cluster.violations + deferred);
}

/* No sample where no agreement is followed. */
static void agreement(struct scrape *scrape)
{
    struct state *state = scrape->state;
    struct error err = {0};

    SCOPED_READ_LOCK(&state->lock);
    if (state->agreed != NULL)
        scrape_put_count(scrape, agreement_permits(state, &err) == 0);
}

static void objects(struct scrape *scrape)
{
    SCOPED_READ_LOCK(&scrape->state->lock);
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        if (state_watches(scrape->state, (enum kind)kind))
            scrape_put_for(scrape, "resource", kind_resource((enum kind)kind),
                           scrape->state->cluster.counts[kind]);
}

static bool put_tally(void *context, const struct table_record *record)
{
    static const char *const phases[] = {"", "Pending", "Bound", "Lost"};
    const struct claim_tally *tally = (const struct claim_tally *)(const void *)record;
    struct scrape *scrape = context;

    buf_printf(scrape->out, "%s{", scrape->name);
    scrape_put_label(scrape, "namespace", name_slice(tally->key.ns));
    scrape_put_label(scrape, ",storage_class", name_slice(tally->key.storage_class));
    scrape_put_label(scrape, ",volume_attributes_class",
                     name_slice(tally->key.volume_attributes_class));
    buf_printf(scrape->out, ",phase=\"%s\"} %zu\n", phases[tally->key.phase], tally->count);
    return --scrape->left != 0;
}

static void claims(struct scrape *scrape)
{
    scrape->left = TALLIES_A_PIECE;
    SCOPED_READ_LOCK(&scrape->state->lock);
    scrape->has_more = scan_on(&scrape->scan, &scrape->state->cluster.tallies, put_tally, scrape);
}

/* No sample for a resource that the API server does not serve, or has not sent yet, or that is not
 * watched. */
static void put_time(const struct scrape *scrape, enum kind kind, double seconds)
{
    if (seconds != 0 && !atomic_load(&scrape->state->status[kind].is_absent))
        buf_printf(scrape->out, "%s{resource=\"%s\"} %.3f\n", scrape->name, kind_resource(kind),
                   seconds);
}

static void last_events(struct scrape *scrape)
{
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        put_time(scrape, (enum kind)kind,
                 (double)atomic_load(&scrape->state->status[kind].last_event_ms) / 1e3);
}

static void list_durations(struct scrape *scrape)
{
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        put_time(scrape, (enum kind)kind,
                 (double)atomic_load(&scrape->state->status[kind].list_ns) / 1e9);
}

static void restarts(struct scrape *scrape)
{
    static const char *const labels[] = {"resource", "reason"};

    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        if (state_watches(scrape->state, (enum kind)kind))
            for (int reason = 0; reason < RESTART_COUNT; reason++)
                scrape_put_pair(scrape, labels, kind_resource((enum kind)kind),
                                restart_text((enum restart)reason),
                                atomic_load(&scrape->state->status[kind].restarts[reason]));
}

/* ---- the server ---- */

static const char *const ports[PORT_COUNT] = {"extender", "metrics", "admission"};

/* No sample of a port on which nothing listens. */
static void connections(struct scrape *scrape)
{
    for (int port = 0; port < PORT_COUNT; port++)
        if (scrape->state->metrics.connections_max[port] != 0)
            scrape_put_for(scrape, "port", ports[port],
                           atomic_load(&scrape->state->metrics.connections[port]));
}

static void connections_max(struct scrape *scrape)
{
    for (int port = 0; port < PORT_COUNT; port++)
        if (scrape->state->metrics.connections_max[port] != 0)
            scrape_put_for(scrape, "port", ports[port],
                           scrape->state->metrics.connections_max[port]);
}

static void config_is_good(struct scrape *scrape)
{
    scrape_put_count(scrape, !atomic_load(&scrape->state->metrics.is_config_refused));
}

static void config_loaded(struct scrape *scrape)
{
    buf_printf(scrape->out, "%s %.3f\n", scrape->name,
               (double)atomic_load(&scrape->state->metrics.config_loaded_ms) / 1e3);
}

/* No sample for a port without TLS, or whose certificate is not there yet. */
static void put_end(const struct scrape *scrape, enum port port, struct tls *tls)
{
    uint64_t end = (uint64_t)tls_not_after(tls);

    if (end != 0)
        scrape_put_for(scrape, "port", ports[port], end);
}

static void certificate_ends(struct scrape *scrape)
{
    put_end(scrape, PORT_EXTENDER, scrape->state->tls);
    put_end(scrape, PORT_ADMISSION, scrape->state->admission_tls);
}

static void log_lines_dropped(struct scrape *scrape)
{
    scrape_put_count(scrape, log_dropped());
}

/* ---- the table ---- */

static const char *const confirmation_texts[CONFIRMATION_COUNT] = {"stands", "overruled",
                                                                   "unknown"};
static const char *const preemption_texts[PREEMPTION_COUNT] = {"scheduler", "evicted", "forbidden",
                                                               "failed", "needless"};

#define NUMBER(number_, member_) \
    .number = NUMBER_##number_, .offset = offsetof(struct state, member_)
#define COUNTERS(member_, label_, values_, count_) \
    NUMBER(COUNTER, member_), .label = (label_), .values = (values_), .count = (count_)
#define OF_KINDS(number_, member_) \
    .number = (number_), .offset = offsetof(struct resource_status, member_)

const struct family scrape_families[] = {
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
    {"preemption_victims", "counter", "Pods that claimguard evicted.",
     NUMBER(COUNTER, metrics.victims)},
    {"reservations", "gauge", "Pods that are not bound yet and have claims reserved.",
     NUMBER(COUNT, cluster.reserved.count)},
    {"bind_conflicts", "counter",
     "Binds refused because another pod has a claim of the pod, by a call or by admission.",
     NUMBER(COUNTER, metrics.bind_conflicts)},
    {"binds_in_flight", "gauge", "Bind calls that are being answered.",
     NUMBER(GAUGE, metrics.binds_in_flight)},
    {"binds_in_doubt", "gauge",
     "Pods whose Binding was sent and whose answer was lost; their claims stay reserved.",
     NUMBER(SIZE, cluster.doubtful)},
    {"claim_lock_takeovers", "counter",
     "Locks of claims that were taken over from a pod that is deleted or was not bound.",
     NUMBER(COUNTER, metrics.lock_takeovers)},
    {"requeues", "counter", "Requests to the scheduler to try a rejected pod again, by result.",
     .write = requeues},
    {"requeues_waiting", "gauge", "Pods that wait until the cause of their rejection changes.",
     .write = requeues_waiting},
    {"nominations", "counter",
     "Nominations of waiting pods to the node where their claim is in use, by result.",
     .write = nominations},
    {"deferred_mounts", "counter",
     "Volumes whose mount was left to the container runtime, by entry of the configuration.",
     .write = deferred_mounts},
    {"deferred_mounts_orphaned", "gauge",
     "Deferred volumes for which no entry exists any more; drain their pods before the CSI plugin "
     "is downgraded.",
     .write = orphans},
    {"exclusive_claim_violations", "gauge",
     "Claims that belong to one pod (ReadWriteOncePod, or mounted by a container runtime) and that "
     "two or more pods hold.",
     .write = violations},
    {"cache_objects", "gauge", "Objects in the cache by resource.", .write = objects},
    {"persistentvolumeclaims", "gauge", "Claims by namespace, classes and phase.", .write = claims},
    {"cache_synced", "gauge", "Whether all objects of the resource have been read once.",
     OF_KINDS(FLAG_OF_KIND, is_synced)},
    {"cache_stalled", "gauge",
     "Whether the API server answers, but no answer is usable, so the cache gets old.",
     OF_KINDS(FLAG_OF_KIND, is_stalled)},
    {"cache_last_event_timestamp_seconds", "gauge",
     "When the last complete event or page of the resource arrived, in Unix time.",
     .write = last_events},
    {"list_duration_seconds", "gauge", "How long the last complete list of the resource took.",
     .write = list_durations},
    {"cache_skipped_objects", "counter",
     "Objects that were skipped because they could not be decoded.",
     OF_KINDS(NUMBER_OF_KIND, skipped)},
    {"watch_restarts", "counter",
     "Lists and watches that were started again, by reason; timeout is normal.", .write = restarts},
    {"apiserver_requests", "counter", "Requests to the API server that have ended, by HTTP status.",
     .write = api_requests},
    {"apiserver_request_duration_seconds", "histogram",
     "Time from sending a request to the API server to the end of its answer, without watches.",
     .write = api_durations},
    {"events_dropped", "counter", "Events that were not posted because there were too many.",
     .write = events_dropped},
    {"connections", "gauge", "Open connections by port.", .write = connections},
    {"connections_max", "gauge",
     "The most connections of a port; one more closes the one that has used most of its time.",
     .write = connections_max},
    {"tls_handshakes_refused", "counter", "TLS handshakes that failed, on all ports.",
     NUMBER(COUNTER, metrics.handshakes_refused)},
    {"certificate_not_after_timestamp_seconds", "gauge",
     "When the certificate in force on a port ends, in Unix time.", .write = certificate_ends},
    {"config_last_reload_successful", "gauge",
     "Whether the last configuration file that was read is in force; if not, claimguard would not "
     "start with it.",
     .write = config_is_good},
    {"config_last_reload_success_timestamp_seconds", "gauge",
     "When the configuration in force was read, in Unix time.", .write = config_loaded},
    {"namespaces_given_up", "gauge",
     "Namespaces whose objects take too much memory: no pod of theirs with claims is bound.",
     NUMBER(COUNT, cluster.namespaces_given_up)},
    {"agreement_in_force", "gauge",
     "Whether claimguards agree that this one may bind pods with claims.", .write = agreement},
    {"log_lines_dropped", "counter",
     "Log lines that were dropped because the reader of the log is too slow.",
     .write = log_lines_dropped},
};

const unsigned scrape_family_count = sizeof scrape_families / sizeof *scrape_families;
