#include "cache/watch/informer.h"

#include <stdlib.h>
#include <sys/random.h>

#include "cache/cluster/allowance.h"
#include "cache/watch/apply.h"
#include "cache/watch/reflector_run.h"
#include "config/base/clock.h"
#include "config/base/log.h"

enum {
    POLL_MS_MAX = 1000,
    GIVEN_UP_MS = 30 * 60 * 1000, /* until what is given up (allowance.h) is read again */
    GIVEN_UP_SAY_MS = 10000,      /* between two lines about them */
    GIVEN_UP_NAMED_MAX = 10,
    REFERENCE_BYTES_MAX = 4096,
    CHECK_AGAIN_MS = 1000, /* after a failed GET, or if there is nothing to check */
};

/* A kind's reflector, and its list or watch. */
struct watched_kind {
    struct informer *informer;
    bool is_started; /* it is watched; else there is no transfer, and no object in the cluster */
    struct reflector_run run;
    uint64_t news; /* of the reflector, so far */
};

struct informer {
    struct informer_target target;
    struct http_client *client;
    struct requests *requests;
    pthread_t thread;
    atomic_bool is_stopping;

    /* only for the thread: */
    struct watched_kind kinds[KIND_WATCHED_COUNT];
    bool has_synced;
    unsigned given_up;       /* namespaces (allowance.h), as far as is logged */
    uint64_t say_again_ns;   /* not before then */
    uint64_t read_again_ns;  /* when they are read again */
    bool is_checking;        /* an unconfirmed answer: a GET is under way */
    uint64_t check_again_ns; /* no such GET before then */
};

/* ---- lists and watches ---- */

static bool is_wanted(const struct informer *informer, int kind)
{
    const atomic_uint *wanted = informer->target.watched;

    return wanted == NULL || (atomic_load(wanted) & 1U << kind) != 0;
}

static void note_synced(struct informer *informer)
{
    if (informer->has_synced)
        return;
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        if (is_wanted(informer, kind) && !atomic_load(&informer->target.status[kind].is_synced))
            return;
    informer->has_synced = true;
    if (informer->target.synced != NULL)
        informer->target.synced(informer->target.context);
}

static void progressed(void *context)
{
    struct watched_kind *watched = context;
    struct informer *informer = watched->informer;
    const struct reflector *reflector = &watched->run.reflector;

    if (reflector->news != watched->news)
        atomic_store(&informer->target.status[reflector->kind].last_event_ms, now_ms());
    watched->news = reflector->news;
    note_synced(informer);
}

/* ---- kinds that are not watched any more ---- */

/* Under the lock, so that nobody who finds the kind synced relies on it from now on. False: it is
 * watched again. */
static bool mark_unwatched(const struct informer *informer, enum kind kind)
{
    struct resource_status *status = &informer->target.status[kind];

    (void)pthread_rwlock_wrlock(informer->target.lock);
    bool is_so = !is_wanted(informer, (int)kind);
    if (is_so) {
        atomic_store(&status->is_synced, false);
        atomic_store(&status->is_absent, false);
        atomic_store(&status->is_stalled, false);
        atomic_store(&status->last_event_ms, 0);
        atomic_store(&status->list_ns, 0);
    }
    (void)pthread_rwlock_unlock(informer->target.lock);
    return is_so;
}

static void init_reflector(struct watched_kind *watched, enum kind kind, uint32_t seed)
{
    struct reflector_sink sink = apply_sink(&watched->informer->target);

    watched->news = 0;
    reflector_init(&watched->run.reflector, kind, &sink, &watched->informer->target.status[kind],
                   seed);
}

/* Ends the kind's list or watch, and removes its objects, as an empty list would. */
static void stop_kind(struct watched_kind *watched, uint64_t now_ns)
{
    const struct reflector_sink sink = watched->run.reflector.sink;
    enum kind kind = watched->run.reflector.kind;

    if (!mark_unwatched(watched->informer, kind))
        return;
    reflector_run_stop(&watched->run);
    watched->is_started = false;
    uint32_t seed = watched->run.reflector.random;
    reflector_dispose(&watched->run.reflector);
    init_reflector(watched, kind, seed);
    sink.begin(sink.context, kind, false, now_ns);
    sink.end(sink.context, kind, 0);
    log_info("a resource is not watched any more: nothing in force needs it",
             LOG_STR("resource", kind_resource(kind)));
}

/* Pods are first listed after claims: a pod that may have locked an earlier claim of a listed one's
 * name is then known (claim_may_have_former). */
static bool has_to_wait(const struct informer *informer, int kind)
{
    return kind == KIND_POD && !informer->has_synced && is_wanted(informer, KIND_CLAIM) &&
           !atomic_load(&informer->target.status[KIND_CLAIM].is_synced);
}

/* Drives the reflectors of the kinds that are watched. Returns when the next is due. */
static uint64_t run_reflectors(struct informer *informer, uint64_t now_ns)
{
    uint64_t next_ns = now_ns + POLL_MS_MAX * NS_PER_MS;

    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++) {
        struct watched_kind *watched = &informer->kinds[kind];
        bool is_unwanted = !is_wanted(informer, kind);
        if (watched->is_started && is_unwanted)
            stop_kind(watched, now_ns);
        watched->is_started = watched->is_started || (!is_unwanted && !has_to_wait(informer, kind));
        uint64_t at_ns = watched->is_started ? reflector_run_step(&watched->run, now_ns) : next_ns;
        next_ns = at_ns < next_ns ? at_ns : next_ns;
    }
    note_synced(informer);
    return next_ns;
}

/* ---- GETs of single objects ---- */

static int take_answer(const struct informer *informer, const struct object_answer *answer,
                       struct error *err)
{
    const struct object_reference *object = &answer->object;

    if (answer->status == 200 && !answer->is_cut)
        return apply_object(&informer->target, object, answer->body,
                            informer->kinds[object->kind].run.reflector.number, answer->sent_ns,
                            err);
    if (answer->status != 404 || answer->is_cut || !apply_says_absent(object, answer->body))
        return error_set(err, ERROR_UNAVAILABLE, "status %u %s", answer->status, answer->error);
    apply_absence(&informer->target, object);
    return 0;
}

static int on_answer(void *context, const struct object_answer *answer, struct error *err)
{
    struct informer *informer = context;
    const struct object_reference *object = &answer->object;

    if (answer->is_refresh)
        informer->is_checking = false;
    int rc = take_answer(informer, answer, err);
    if (rc < 0 && answer->is_refresh)
        informer->check_again_ns = monotonic_ns() + CHECK_AGAIN_MS * NS_PER_MS;
    if (rc < 0)
        log_warn("a GET of an object failed", LOG_STR("resource", kind_resource(object->kind)),
                 LOG_SLICE("namespace", object->ns), LOG_SLICE("name", object->name),
                 LOG_STR("error", err->message));
    return rc;
}

/* Repeats the GET of an object whose last answer no watch has confirmed; one object at a time. */
static void check_unconfirmed(struct informer *informer, uint64_t now_ns)
{
    const struct informer_target *target = &informer->target;
    struct kept_reference *next = NULL;
    struct arena arena;

    if (informer->is_checking || now_ns < informer->check_again_ns)
        return;
    arena_init(&arena, REFERENCE_BYTES_MAX);
    (void)pthread_rwlock_wrlock(target->lock);
    bool is_found = cluster_next_unconfirmed(target->cluster, now_ns, &next, &arena);
    (void)pthread_rwlock_unlock(target->lock);
    informer->is_checking = is_found && requests_refresh(informer->requests, &next->reference);
    if (!informer->is_checking)
        informer->check_again_ns = now_ns + CHECK_AGAIN_MS * NS_PER_MS;
    arena_dispose(&arena);
}

/* ---- namespaces that are given up ---- */

static void log_given_up(const struct informer *informer, unsigned count)
{
    struct table_walk walk = {.at = 0};
    struct slice ns;
    struct buf names;
    unsigned named = 0;

    buf_init(&names, REFERENCE_BYTES_MAX);
    (void)pthread_rwlock_rdlock(informer->target.lock);
    while (named < GIVEN_UP_NAMED_MAX &&
           (ns = allowance_next(informer->target.cluster, &walk)).ptr != NULL)
        buf_printf(&names, "%s%.*s", named++ == 0 ? "" : ", ", SLICE_ARG(ns));
    (void)pthread_rwlock_unlock(informer->target.lock);
    if (named < count)
        buf_printf(&names, " and %u more", count - named);
    if (count > informer->given_up)
        log_warn("namespaces take too much memory: no pod of theirs with claims is bound",
                 LOG_SLICE("namespaces", buf_slice(&names)));
    else
        log_info("a namespace takes less memory now: its pods are bound when they are tried again",
                 LOG_SLICE("others", buf_slice(&names)));
    buf_dispose(&names);
}

/* Pods and claims are read again now and then: their tenant may have deleted the large ones. */
static void check_given_up(struct informer *informer, uint64_t now_ns)
{
    (void)pthread_rwlock_rdlock(informer->target.lock);
    unsigned count = informer->target.cluster->namespaces_given_up;
    (void)pthread_rwlock_unlock(informer->target.lock);
    bool is_due = now_ns >= informer->say_again_ns || (count == 0) != (informer->given_up == 0);
    if (count != informer->given_up && is_due) {
        log_given_up(informer, count);
        informer->say_again_ns = now_ns + GIVEN_UP_SAY_MS * NS_PER_MS;
        informer->given_up = count;
    }
    if (count != 0 && now_ns >= informer->read_again_ns && informer->given_up != 0) {
        reflector_run_relist(&informer->kinds[KIND_POD].run);
        reflector_run_relist(&informer->kinds[KIND_CLAIM].run);
        reflector_run_relist(&informer->kinds[KIND_POD_DISRUPTION_BUDGET].run);
    }
    if (informer->given_up == 0 || now_ns >= informer->read_again_ns)
        informer->read_again_ns = now_ns + GIVEN_UP_MS * NS_PER_MS;
}

/* ---- the thread ---- */

static uint64_t tick(const struct informer *informer, uint64_t now_ns)
{
    const struct informer_target *target = &informer->target;

    return target->tick == NULL ? UINT64_MAX : target->tick(target->context, now_ns);
}

static void *run(void *context)
{
    struct informer *informer = context;

    while (!atomic_load(&informer->is_stopping)) {
        struct watched *work = watchdog_begin(informer->target.watchdog, "informer");
        uint64_t now_ns = monotonic_ns();
        uint64_t next_ns = run_reflectors(informer, now_ns);
        check_unconfirmed(informer, now_ns);
        check_given_up(informer, now_ns);
        uint64_t tick_ns = tick(informer, now_ns);
        next_ns = tick_ns < next_ns ? tick_ns : next_ns;
        requests_hand_over(informer->requests);
        uint64_t wait_ns = next_ns > now_ns ? next_ns - now_ns : 0;
        http_client_poll(informer->client, (int)((wait_ns + NS_PER_MS - 1) / NS_PER_MS));
        watchdog_end(work);
    }
    return NULL;
}

static void init_kinds(struct informer *informer)
{
    uint32_t seed = 0;

    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) < 0)
        seed = (uint32_t)monotonic_ns(); /* good enough to spread retries */
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++) {
        struct watched_kind *watched = &informer->kinds[kind];
        watched->informer = informer;
        watched->run.progressed = progressed;
        watched->run.context = watched;
        init_reflector(watched, (enum kind)kind, seed + (uint32_t)kind * 7919);
    }
}

static void informer_free(struct informer *informer)
{
    http_client_free(informer->client); /* with all transfers */
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++) {
        informer->kinds[kind].run.transfer = NULL;
        reflector_run_stop(&informer->kinds[kind].run);
        reflector_dispose(&informer->kinds[kind].run.reflector);
    }
    requests_free(informer->requests);
    free(informer);
}

int informer_start(struct informer **out, const struct kubeconfig *kubeconfig,
                   const struct informer_target *target, struct error *err)
{
    struct informer *informer = calloc(1, sizeof *informer);

    if (informer == NULL)
        return error_no_memory(err);
    informer->target = *target;
    init_kinds(informer);
    int rc = http_client_new(&informer->client, kubeconfig, err);
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        informer->kinds[kind].run.client = informer->client;
    if (rc == 0) {
        http_client_observe(informer->client, target->stats);
        informer->requests =
            requests_new(informer->client, &(struct requests_observer){informer, on_answer});
        rc = informer->requests == NULL ? error_no_memory(err) : 0;
    }
    if (rc == 0) {
        int failure = pthread_create(&informer->thread, NULL, run, informer);
        rc = failure == 0 ? 0 : error_system(err, failure, "thread");
    }
    if (rc < 0) {
        informer_free(informer);
        return rc;
    }
    *out = informer;
    return 0;
}

void informer_stop(struct informer *informer)
{
    if (informer == NULL)
        return;
    atomic_store(&informer->is_stopping, true);
    http_client_wake(informer->client);
    (void)pthread_join(informer->thread, NULL);
    informer_free(informer);
}

struct requests *informer_requests(struct informer *informer)
{
    return informer == NULL ? NULL : informer->requests;
}
