#include "extender/serving/metrics/metrics.h"

#include <stdlib.h>

#include "config/base/clock.h"
#include "config/base/scope.h"

const char *const verb_texts[VERB_COUNT] = {"filter", "prefilter", "preempt", "bind",
                                            "volcano_predicate"};

const char *const admit_paths[ADMIT_COUNT] = {"/admit/binding", "/admit/pod"};

/* A pod whose last verdict was a rejection. */
struct rejected_pod {
    size_t policy; /* index */
    UT_hash_handle hh;
    char uid[]; /* the key */
};

void metrics_init(struct metrics *metrics)
{
    memset(metrics, 0, sizeof *metrics);
    (void)pthread_mutex_init(&metrics->rejected_lock, NULL);
    (void)pthread_mutex_init(&metrics->deferred_lock, NULL);
}

void metrics_count_request(struct metrics *metrics, enum verb verb, enum call_result result,
                           uint64_t duration_ns)
{
    histogram_observe(&metrics->durations[verb], duration_ns);
    atomic_fetch_add_explicit(&metrics->requests[verb][result], 1, memory_order_relaxed);
}

void metrics_count_review(struct metrics *metrics, enum admit_path path, enum review_result result,
                          uint64_t duration_ns)
{
    histogram_observe(&metrics->review_durations[path], duration_ns);
    atomic_fetch_add_explicit(&metrics->reviews[path][result], 1, memory_order_relaxed);
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

/* Called under the lock. */
static void forget_rejected(struct metrics *metrics, struct rejected_pod *pod)
{
    if (pod == NULL)
        return;
    HASH_DEL(metrics->rejected, pod);
    metrics->rejected_counts[pod->policy]--;
    free(pod);
}

void metrics_dispose(struct metrics *metrics)
{
    while (metrics->rejected != NULL)
        forget_rejected(metrics, metrics->rejected);
    (void)pthread_mutex_destroy(&metrics->rejected_lock);
    for (struct deferred_tally *tally = metrics->deferred, *next; tally != NULL; tally = next) {
        next = tally->next;
        free(tally);
    }
    (void)pthread_mutex_destroy(&metrics->deferred_lock);
}

void metrics_forget_pod(struct metrics *metrics, struct slice uid)
{
    struct rejected_pod *known = NULL;

    SCOPED_LOCK(&metrics->rejected_lock);
    HASH_FIND(hh, metrics->rejected, uid.ptr, uid.len, known);
    forget_rejected(metrics, known);
}

/* Without memory, the pod is not counted. Called under the lock. */
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

    SCOPED_LOCK(&metrics->rejected_lock);
    HASH_FIND(hh, metrics->rejected, uid.ptr, uid.len, known);
    if (known == NULL || known->policy != policy) {
        forget_rejected(metrics, known);
        add_rejected(metrics, policy, uid);
    }
}

void metrics_count_node_verdict(struct metrics *metrics, const struct verdict *verdict)
{
    size_t policy = policy_index(verdict->decided_by);

    atomic_fetch_add_explicit(&metrics->verdicts[policy][verdict->code], 1, memory_order_relaxed);
}

void metrics_count_verdict(struct metrics *metrics, const struct verdict *verdict,
                           const struct pod_object *pod)
{
    metrics_count_node_verdict(metrics, verdict);
    if (pod->meta.uid.len == 0)
        return;
    if (code_is_rejection(verdict->code))
        remember_rejected(metrics, policy_index(verdict->decided_by), pod->meta.uid);
    else
        metrics_forget_pod(metrics, pod->meta.uid);
}

void metrics_count_warning(struct metrics *metrics, const struct policy *policy)
{
    atomic_fetch_add_explicit(&metrics->warnings[policy_index(policy)], 1, memory_order_relaxed);
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

    SCOPED_LOCK(&metrics->deferred_lock);
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
}

void metrics_count_rejected(struct metrics *metrics, size_t counts[POLICIES_MAX])
{
    SCOPED_LOCK(&metrics->rejected_lock);
    memcpy(counts, metrics->rejected_counts, sizeof metrics->rejected_counts);
}
