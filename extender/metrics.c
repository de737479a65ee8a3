#include "extender/metrics.h"

#include <stdlib.h>

#include "cache/assumed.h"
#include "config/base/clock.h"
#include "config/base/log.h"
#include "extender/deferral.h"
#include "extender/process_metrics.h"
#include "extender/version.h"
#include "policy/defer_fs_mount.h"

static const char *const verbs[VERB_COUNT] = {"filter", "prefilter", "preempt", "bind"};
static const char *const confirmation_texts[CONFIRMATION_COUNT] = {"stands", "overruled",
                                                                   "unknown"};
static const char *const preemption_texts[PREEMPTION_COUNT] = {"scheduler", "evicted", "forbidden",
                                                               "failed", "needless"};
static const char *const results[RESULT_COUNT] = {"ok", "error", "invalid", "failed"};

/* A pod whose last verdict was a rejection. */
struct rejected_pod {
    size_t policy; /* index */
    UT_hash_handle hh;
    char uid[]; /* the key */
};

/* How many mounts an entry deferred. */
struct deferred_tally {
    struct deferred_tally *next;
    uint64_t count;
    struct slice storage_class, runtime_class; /* in text */
    char text[];
};

enum { DEFERRED_TALLIES_MAX = 1000 };

void metrics_init(struct metrics *metrics)
{
    memset(metrics, 0, sizeof *metrics);
    (void)pthread_mutex_init(&metrics->rejected_lock, NULL);
    (void)pthread_mutex_init(&metrics->deferred_lock, NULL);
}

void metrics_dispose(struct metrics *metrics)
{
    struct rejected_pod *first = metrics->rejected;

    HASH_CLEAR(hh, metrics->rejected); /* the pods stay linked to one another */
    for (struct rejected_pod *pod = first, *next; pod != NULL; pod = next) {
        next = pod->hh.next;
        free(pod);
    }
    (void)pthread_mutex_destroy(&metrics->rejected_lock);
    for (struct deferred_tally *tally = metrics->deferred, *next; tally != NULL; tally = next) {
        next = tally->next;
        free(tally);
    }
    (void)pthread_mutex_destroy(&metrics->deferred_lock);
}

const char *verb_text(enum verb verb)
{
    return verbs[verb];
}

void metrics_count_request(struct metrics *metrics, enum verb verb, enum result result,
                           uint64_t duration_ns)
{
    histogram_observe(&metrics->durations[verb], duration_ns);
    atomic_fetch_add_explicit(&metrics->requests[verb][result], 1, memory_order_relaxed);
}

void metrics_note_config(struct metrics *metrics, bool is_good)
{
    atomic_store(&metrics->is_config_refused, !is_good);
    if (is_good)
        atomic_store(&metrics->config_loaded_ms, now_ms());
}

static size_t policy_index(const struct policy *policy)
{
    size_t index = 0;

    while (policies[index] != policy)
        index++;
    return index;
}

/* Under the lock. */
static void forget_rejected(struct metrics *metrics, struct rejected_pod *pod)
{
    if (pod == NULL)
        return;
    HASH_DEL(metrics->rejected, pod);
    metrics->rejected_counts[pod->policy]--;
    free(pod);
}

void metrics_forget_pod(struct metrics *metrics, struct slice uid)
{
    struct rejected_pod *known = NULL;

    (void)pthread_mutex_lock(&metrics->rejected_lock);
    HASH_FIND(hh, metrics->rejected, uid.ptr, uid.len, known);
    forget_rejected(metrics, known);
    (void)pthread_mutex_unlock(&metrics->rejected_lock);
}

/* Without memory, the gauge is one short. Under the lock. */
static void add_rejected(struct metrics *metrics, size_t policy, struct slice uid)
{
    struct rejected_pod *pod = calloc(1, sizeof *pod + uid.len);

    if (pod == NULL)
        return;
    memcpy(pod->uid, uid.ptr, uid.len);
    pod->policy = policy;
    HASH_ADD_KEYPTR(hh, metrics->rejected, pod->uid, uid.len, pod);
    if (pod->hh.tbl == NULL) {
        free(pod);
        return;
    }
    metrics->rejected_counts[policy]++;
    if (HASH_COUNT(metrics->rejected) > REJECTED_PODS_MAX)
        forget_rejected(metrics, metrics->rejected); /* the oldest */
}

static void remember_rejected(struct metrics *metrics, size_t policy, struct slice uid)
{
    struct rejected_pod *known = NULL;

    (void)pthread_mutex_lock(&metrics->rejected_lock);
    HASH_FIND(hh, metrics->rejected, uid.ptr, uid.len, known);
    if (known == NULL || known->policy != policy) {
        forget_rejected(metrics, known);
        add_rejected(metrics, policy, uid);
    }
    (void)pthread_mutex_unlock(&metrics->rejected_lock);
}

void metrics_count_verdict(struct metrics *metrics, const struct policy *policy,
                           const struct verdict *verdict, const struct pod_object *pod)
{
    size_t index = policy_index(policy);

    atomic_fetch_add_explicit(&metrics->verdicts[index][verdict->code], 1, memory_order_relaxed);
    if (verdict->code == CODE_SKIP || pod->meta.uid.len == 0)
        return;
    if (code_is_rejection(verdict->code))
        remember_rejected(metrics, index, pod->meta.uid);
    else
        metrics_forget_pod(metrics, pod->meta.uid);
}

static struct deferred_tally *tally_new(struct slice storage_class, struct slice runtime_class)
{
    struct deferred_tally *tally = calloc(1, sizeof *tally + storage_class.len + runtime_class.len);

    if (tally == NULL)
        return NULL;
    if (storage_class.len != 0)
        memcpy(tally->text, storage_class.ptr, storage_class.len);
    if (runtime_class.len != 0)
        memcpy(tally->text + storage_class.len, runtime_class.ptr, runtime_class.len);
    tally->storage_class = (struct slice){tally->text, storage_class.len};
    tally->runtime_class = (struct slice){tally->text + storage_class.len, runtime_class.len};
    return tally;
}

void metrics_count_deferral(struct metrics *metrics, struct slice storage_class,
                            struct slice runtime_class)
{
    size_t known = 0;

    (void)pthread_mutex_lock(&metrics->deferred_lock);
    struct deferred_tally *tally = metrics->deferred;
    for (; tally != NULL && !(slice_equal(tally->storage_class, storage_class) &&
                              slice_equal(tally->runtime_class, runtime_class));
         tally = tally->next)
        known++;
    if (tally == NULL && known < DEFERRED_TALLIES_MAX &&
        (tally = tally_new(storage_class, runtime_class)) != NULL) {
        tally->next = metrics->deferred;
        metrics->deferred = tally;
    }
    if (tally != NULL)
        tally->count++;
    (void)pthread_mutex_unlock(&metrics->deferred_lock);
}

/* ---- writing ---- */

struct writer {
    struct buf *out;
    bool is_open_metrics;
};

/* name: without the _total that counters have; OpenMetrics names the family so. */
static void put_family(const struct writer *writer, const char *name, const char *type,
                       const char *help)
{
    const char *suffix = !writer->is_open_metrics && strcmp(type, "counter") == 0 ? "_total" : "";
    buf_printf(writer->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, suffix, help, name, suffix,
               type);
}

static void put_durations(const struct writer *writer, struct metrics *metrics)
{
    static const char name[] = "claimguard_extender_request_duration_seconds";

    put_family(writer, name, "histogram",
               "Time to answer an extender call, once its body is there.");
    for (int verb = 0; verb < VERB_COUNT; verb++) {
        uint64_t total = 0;
        for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
            double bound = histogram_bounds[i];
            total += atomic_load(&metrics->durations[verb].buckets[i]);
            buf_printf(writer->out, "%s_bucket{verb=\"%s\",le=\"%g%s\"} %llu\n", name, verbs[verb],
                       bound, bound == 1 || bound == 5 || bound == 10 ? ".0" : "",
                       (unsigned long long)total);
        }
        total += atomic_load(&metrics->durations[verb].buckets[HISTOGRAM_BUCKETS]);
        buf_printf(writer->out,
                   "%s_bucket{verb=\"%s\",le=\"+Inf\"} %llu\n%s_sum{verb=\"%s\"} %.9g\n"
                   "%s_count{verb=\"%s\"} %llu\n",
                   name, verbs[verb], (unsigned long long)total, name, verbs[verb],
                   (double)atomic_load(&metrics->durations[verb].sum_ns) / 1e9, name, verbs[verb],
                   (unsigned long long)total);
    }
}

static void put_counters(const struct writer *writer, struct metrics *metrics)
{
    put_family(writer, "claimguard_extender_requests", "counter",
               "Extender calls by verb and result.");
    for (int verb = 0; verb < VERB_COUNT; verb++)
        for (int result = 0; result < RESULT_COUNT; result++)
            buf_printf(writer->out,
                       "claimguard_extender_requests_total{verb=\"%s\",result=\"%s\"} %llu\n",
                       verbs[verb], results[result],
                       (unsigned long long)atomic_load(&metrics->requests[verb][result]));
    put_family(writer, "claimguard_filter_verdicts", "counter",
               "Verdicts of filter calls by policy and code.");
    for (size_t i = 0; policies[i] != NULL; i++)
        for (int code = 0; code < CODE_COUNT; code++)
            buf_printf(writer->out,
                       "claimguard_filter_verdicts_total{policy=\"%s\",code=\"%s\"} %llu\n",
                       policies[i]->name, code_text((enum code)code),
                       (unsigned long long)atomic_load(&metrics->verdicts[i][code]));
    put_family(writer, "claimguard_bind_conflicts", "counter",
               "Bind calls refused because another pod has a claim of the pod.");
    buf_printf(writer->out, "claimguard_bind_conflicts_total %llu\n",
               (unsigned long long)atomic_load(&metrics->bind_conflicts));
    put_family(writer, "claimguard_confirmations", "counter",
               "Rejections by what came of asking the API server before.");
    for (int result = 0; result < CONFIRMATION_COUNT; result++)
        buf_printf(writer->out, "claimguard_confirmations_total{result=\"%s\"} %llu\n",
                   confirmation_texts[result],
                   (unsigned long long)atomic_load(&metrics->confirmations[result]));
    put_family(writer, "claimguard_preemption_attempts", "counter",
               "Preemptions for exclusive claims by what came of them.");
    for (int result = 0; result < PREEMPTION_COUNT; result++)
        buf_printf(writer->out, "claimguard_preemption_attempts_total{result=\"%s\"} %llu\n",
                   preemption_texts[result],
                   (unsigned long long)atomic_load(&metrics->preemptions[result]));
    put_family(writer, "claimguard_preemption_victims", "counter", "Pods that claimguard evicted.");
    buf_printf(writer->out, "claimguard_preemption_victims_total %llu\n",
               (unsigned long long)atomic_load(&metrics->victims));
}

static void put_connections(const struct writer *writer, const struct metrics *metrics)
{
    static const char *const ports[PORT_COUNT] = {"extender", "metrics"};

    put_family(writer, "claimguard_connections", "gauge", "Open connections by port.");
    for (int port = 0; port < PORT_COUNT; port++)
        buf_printf(writer->out, "claimguard_connections{port=\"%s\"} %u\n", ports[port],
                   atomic_load(&metrics->connections[port]));
    put_family(writer, "claimguard_connections_max", "gauge",
               "How many connections a port has; for one more, the slowest is closed.");
    for (int port = 0; port < PORT_COUNT; port++)
        buf_printf(writer->out, "claimguard_connections_max{port=\"%s\"} %u\n", ports[port],
                   metrics->connections_max[port]);
    put_family(writer, "claimguard_tls_handshakes_refused", "counter",
               "TLS handshakes that failed, on the scheduler's port.");
    buf_printf(writer->out, "claimguard_tls_handshakes_refused_total %llu\n",
               (unsigned long long)atomic_load(&metrics->handshakes_refused));
    put_family(writer, "claimguard_binds_in_flight", "gauge",
               "Bind calls that are being answered.");
    buf_printf(writer->out, "claimguard_binds_in_flight %u\n",
               atomic_load(&metrics->binds_in_flight));
}

static void put_config(const struct writer *writer, const struct metrics *metrics)
{
    put_family(writer, "claimguard_config_last_reload_successful", "gauge",
               "Whether the configuration file that was read last is in force; with another one "
               "claimguard does not start again.");
    buf_printf(writer->out, "claimguard_config_last_reload_successful %d\n",
               !atomic_load(&metrics->is_config_refused));
    put_family(writer, "claimguard_config_last_reload_success_timestamp_seconds", "gauge",
               "When the configuration in force was read, in Unix time.");
    buf_printf(writer->out, "claimguard_config_last_reload_success_timestamp_seconds %.3f\n",
               (double)atomic_load(&metrics->config_loaded_ms) / 1e3);
}

static void put_rejected(const struct writer *writer, struct metrics *metrics)
{
    size_t counts[METRICS_POLICIES_MAX];

    (void)pthread_mutex_lock(&metrics->rejected_lock);
    memcpy(counts, metrics->rejected_counts, sizeof counts);
    (void)pthread_mutex_unlock(&metrics->rejected_lock);
    put_family(writer, "claimguard_unschedulable_pods", "gauge",
               "Pods whose last filter verdict was a rejection and that are not bound.");
    for (size_t i = 0; policies[i] != NULL; i++)
        buf_printf(writer->out, "claimguard_unschedulable_pods{policy=\"%s\"} %zu\n",
                   policies[i]->name, counts[i]);
}

static void put_log(const struct writer *writer)
{
    put_family(writer, "claimguard_log_lines_dropped", "counter",
               "Log lines that were lost because nobody read them fast enough.");
    buf_printf(writer->out, "claimguard_log_lines_dropped_total %llu\n",
               (unsigned long long)log_dropped());
}

static void put_certificate(const struct writer *writer, int64_t ends_s)
{
    if (ends_s == 0)
        return;
    put_family(writer, "claimguard_server_certificate_expiry_timestamp_seconds", "gauge",
               "When the certificate of the scheduler's port ends.");
    buf_printf(writer->out, "claimguard_server_certificate_expiry_timestamp_seconds %lld\n",
               (long long)ends_s);
}

static void put_cache(const struct writer *writer, const struct view *view)
{
    const struct cluster *cluster = view->cluster;

    put_family(
        writer, "claimguard_exclusive_claim_violations", "gauge",
        "Claims that are for one pod (ReadWriteOncePod, or mounted by a container runtime) and "
        "that two or more hold.");
    buf_printf(writer->out, "claimguard_exclusive_claim_violations %zu\n",
               cluster->violations + defer_count_violations(view));
    put_family(writer, "claimguard_reservations", "gauge",
               "Pods that are not yet bound, with claims reserved for them: exclusive ones since "
               "they passed, others while they are being bound.");
    buf_printf(writer->out, "claimguard_reservations %u\n", HASH_COUNT(cluster->reservations));
    put_family(writer, "claimguard_cache_objects", "gauge", "Objects in the cache by resource.");
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        buf_printf(writer->out, "claimguard_cache_objects{resource=\"%s\"} %zu\n",
                   kind_resource((enum kind)kind), cluster->counts[kind]);
}

/* A gauge or counter with one sample a resource, but for those whose value is less than 0: they
 * have none. */
static void put_resources(const struct writer *writer, const char *name, const char *type,
                          const char *help, const struct resource_status *status,
                          double (*value)(const struct resource_status *status))
{
    bool is_counter = strcmp(type, "counter") == 0;

    put_family(writer, name, type, help);
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++) {
        double sample = value(&status[kind]);
        if (sample >= 0)
            buf_printf(writer->out, "%s%s{resource=\"%s\"} %.*f\n", name,
                       is_counter ? "_total" : "", kind_resource((enum kind)kind),
                       is_counter ? 0 : 3, sample);
    }
}

static double synced(const struct resource_status *status)
{
    return atomic_load(&status->is_synced) ? 1 : 0;
}

static double stalled(const struct resource_status *status)
{
    return atomic_load(&status->is_stalled) ? 1 : 0;
}

/* What the API server does not serve, or has not sent yet, has no time, rather than one long ago.
 */
static double last_event_seconds(const struct resource_status *status)
{
    int64_t last_ms = atomic_load(&status->last_event_ms);

    return last_ms == 0 || atomic_load(&status->is_absent) ? -1 : (double)last_ms / 1e3;
}

static double list_seconds(const struct resource_status *status)
{
    int64_t list_ns = atomic_load(&status->list_ns);

    return list_ns == 0 || atomic_load(&status->is_absent) ? -1 : (double)list_ns / 1e9;
}

static double skipped(const struct resource_status *status)
{
    return (double)atomic_load(&status->skipped);
}

static void put_status(const struct writer *writer, const struct resource_status *status)
{
    put_resources(writer, "claimguard_cache_synced", "gauge",
                  "Whether all objects of the resource have been read once.", status, synced);
    put_resources(
        writer, "claimguard_cache_stalled", "gauge",
        "Whether the API server answers, and nothing comes of it: what is known gets old.", status,
        stalled);
    put_resources(
        writer, "claimguard_cache_last_event_timestamp_seconds", "gauge",
        "When the last whole event or page of the resource came, in Unix time; none: never.",
        status, last_event_seconds);
    put_resources(writer, "claimguard_list_duration_seconds", "gauge",
                  "How long the last list of the whole resource took.", status, list_seconds);
    put_resources(writer, "claimguard_cache_skipped_objects", "counter",
                  "Objects that were passed over because they could not be decoded.", status,
                  skipped);
    put_family(writer, "claimguard_watch_restarts", "counter",
               "Lists and watches that were started again, by what ended them; timeout is normal.");
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        for (int reason = 0; reason < RESTART_COUNT; reason++)
            buf_printf(writer->out,
                       "claimguard_watch_restarts_total{resource=\"%s\",reason=\"%s\"} %llu\n",
                       kind_resource((enum kind)kind), restart_text((enum restart)reason),
                       (unsigned long long)atomic_load(&status[kind].restarts[reason]));
}

/* A label's value, escaped. */
static void put_label(const struct writer *writer, const char *key, struct slice value)
{
    buf_printf(writer->out, "%s=\"", key);
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] == '\n')
            buf_put(writer->out, SLICE("\\n"));
        else if (value.ptr[i] == '"' || value.ptr[i] == '\\')
            buf_printf(writer->out, "\\%c", value.ptr[i]);
        else
            buf_put(writer->out, (struct slice){value.ptr + i, 1});
    }
    buf_put(writer->out, SLICE("\""));
}

static void put_claims(const struct writer *writer, const struct cluster *cluster)
{
    static const char *const phases[] = {"", "Pending", "Bound", "Lost"};

    put_family(writer, "claimguard_persistentvolumeclaims", "gauge",
               "Claims by namespace, classes and phase.");
    struct table_walk walk = {.at = 0};
    for (const struct claim_tally *tally; (tally = cluster_next_tally(cluster, &walk)) != NULL;) {
        buf_put(writer->out, SLICE("claimguard_persistentvolumeclaims{"));
        put_label(writer, "namespace", name_slice(tally->key.namespace));
        put_label(writer, ",storage_class", name_slice(tally->key.storage_class));
        put_label(writer, ",volume_attributes_class",
                  name_slice(tally->key.volume_attributes_class));
        buf_printf(writer->out, ",phase=\"%s\"} %zu\n", phases[tally->key.phase], tally->count);
    }
}

static void put_deferred(const struct writer *writer, struct metrics *metrics,
                         const struct view *view)
{
    put_family(writer, "claimguard_deferred_mounts", "counter",
               "Volumes whose mount was left to the container runtime, by entry (of an inline "
               "volume: without storage class).");
    (void)pthread_mutex_lock(&metrics->deferred_lock);
    for (const struct deferred_tally *tally = metrics->deferred; tally != NULL;
         tally = tally->next) {
        buf_put(writer->out, SLICE("claimguard_deferred_mounts_total{"));
        put_label(writer, "storage_class", tally->storage_class);
        put_label(writer, ",runtime_class", tally->runtime_class);
        buf_printf(writer->out, "} %llu\n", (unsigned long long)tally->count);
    }
    (void)pthread_mutex_unlock(&metrics->deferred_lock);
    put_family(
        writer, "claimguard_deferred_mounts_orphaned", "gauge",
        "Deferred volumes of pods for which no entry is in force any more: drain them before "
        "the CSI plugin is downgraded.");
    buf_printf(writer->out, "claimguard_deferred_mounts_orphaned %zu\n",
               deferral_orphans(view, 0, NULL));
}

void metrics_write(struct metrics *metrics, const struct view *view,
                   const struct resource_status *status, int64_t certificate_ends_s,
                   bool is_open_metrics, struct buf *out)
{
    struct writer writer = {out, is_open_metrics};

    put_family(&writer, "claimguard_build_info", "gauge", "1, with the version as labels.");
    buf_printf(out, "claimguard_build_info{version=\"%s\",revision=\"%s\"} 1\n", CLAIMGUARD_VERSION,
               CLAIMGUARD_REVISION);
    put_durations(&writer, metrics);
    put_counters(&writer, metrics);
    put_config(&writer, metrics);
    put_connections(&writer, metrics);
    put_rejected(&writer, metrics);
    put_deferred(&writer, metrics, view);
    put_cache(&writer, view);
    put_claims(&writer, view->cluster);
    put_status(&writer, status);
    put_certificate(&writer, certificate_ends_s);
    put_log(&writer);
    process_metrics_write(out, is_open_metrics);
    if (is_open_metrics)
        buf_put(out, SLICE("# EOF\n"));
}
