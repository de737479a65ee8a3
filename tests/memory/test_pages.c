/*
 * /metrics, /debug/cache and /debug/snapshot of a large cluster, which are written in pieces: how
 * long each holds the cluster's lock (CPU time of the thread, so that other programs do not count),
 * how much memory they take, and that they are whole, and JSON, whatever changes between two
 * pieces.
 *
 * The linker puts our own lock and unlock in the place of the C library's.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "config/base/log.h"
#include "extender/cli/services.h"
#include "extender/serving/zpages/zpages.h"
#include "memory/large_cluster.h"

enum {
#ifdef __SANITIZE_ADDRESS__
    HOLD_US_MAX = 10000, /* some ten times slower */
#else
    HOLD_US_MAX = 1000,
#endif
    LONGER_US_MAX = 100000, /* a virtual machine's own delays; they do not come again and again */
    TRIES = 3,
    LONGER_SHARE = 1000, /* one in so many */
    BYTES_MAX = 2 << 20,
};

static struct state state;
static int failed;

static void check(bool is_so, const char *what, long value)
{
    if (is_so)
        return;
    (void)fprintf(stderr, "test_pages: %s: %ld\n", what, value);
    failed = 1;
}

/* ---- how long the lock is held ---- */

static double held_since_us, longest_us;
static long holds, longer_holds;

static double cpu_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

int __real_pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    int rc = __real_pthread_rwlock_rdlock(lock);
    held_since_us = cpu_us();
    return rc;
}

int __real_pthread_rwlock_unlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_unlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    double held_us = cpu_us() - held_since_us;

    longest_us = held_us > longest_us ? held_us : longest_us;
    holds++;
    longer_holds += held_us > HOLD_US_MAX;
    return __real_pthread_rwlock_unlock(lock);
}

/* ---- a page ---- */

/* Reads it as a client does that takes all at once. */
static void read_once(const char *path, bool changes, struct buf *out)
{
    struct quota quota = {.max_bytes = 64 << 20};
    struct quota_share share = {.quota = &quota};
    struct zpages_request request = {.path = slice_of(path), .share = &share};
    struct buf piece;
    size_t most = 0;
    bool has_more;

    buf_init(&piece, SIZE_MAX);
    piece.share = &share;
    longest_us = 0;
    holds = longer_holds = 0;
    struct zpages_answer page = zpages_answer(&state, &request, &piece);
    check(page.status == 200, path, page.status);
    do {
        has_more = page.rest != NULL && page.rest->next(page.rest, &piece);
        check(!piece.failed, "a piece has failed", (long)piece.len);
        size_t used = atomic_load(&quota.used_bytes);
        most = used > most ? used : most;
        buf_put(out, buf_slice(&piece));
        buf_reset(&piece, 16 << 10);
        if (changes)
            large_cluster_change();
    } while (has_more);
    pieces_free(page.rest);
    buf_dispose(&piece);
    check(atomic_load(&quota.used_bytes) == 0, "memory is not given back",
          (long)atomic_load(&quota.used_bytes));
    (void)printf("%s: %zu bytes; %ld holds, the longest of %.0f µs; %zu bytes of memory\n", path,
                 out->len, holds, longest_us, most);
    check(most <= BYTES_MAX, "too much memory", (long)most);
    check(longer_holds <= 1 + holds / LONGER_SHARE, "the lock was often held too long",
          longer_holds);
}

static void read_page(const char *path, bool changes, struct buf *out)
{
    int tries = 0;

    do {
        buf_reset(out, SIZE_MAX);
        read_once(path, changes, out);
    } while (longest_us > LONGER_US_MAX && ++tries < TRIES);
    check(tries < TRIES, "the lock was held too long", (long)longest_us);
}

/* ---- what is in /debug/cache ---- */

static json_t *read_json(const char *path, bool changes)
{
    struct buf out;
    json_error_t err;

    buf_init(&out, SIZE_MAX);
    read_page(path, changes, &out);
    json_t *root = json_loadb(out.bytes, out.len, JSON_REJECT_DUPLICATES, &err);
    if (root == NULL)
        (void)fprintf(stderr, "%s: %.*s\n", err.text, 200, out.bytes + err.position);
    check(root != NULL, "no JSON", err.position);
    buf_dispose(&out);
    return root;
}

/* Whether the page has a pod's claim, its node's count and their names. */
static bool has_pod(const json_t *root, const struct pod *pod)
{
    const struct claim *claim = claim_at(pod->uses[0].claim);
    char key[512];

    (void)snprintf(key, sizeof key, "%.*s/%.*s", SLICE_ARG(name_text(claim->ns)),
                   SLICE_ARG(claim_name(claim)));
    const json_t *entry = json_object_get(json_object_get(root, "claims"), key);
    struct slice name = pod_node(pod);
    const json_t *node = json_object_getn(json_object_get(root, "nodes"), name.ptr, name.len);
    return json_array_size(json_object_get(entry, "holders")) == 1 &&
           json_integer_value(json_object_get(entry, "refs")) == 1 &&
           json_integer_value(json_object_get(node, key)) == 1;
}

static void expect_pods(const json_t *root, bool all)
{
    struct table_walk walk = {.at = 0};
    long missing = 0, seen = 0;

    for (const struct pod *pod; (pod = cluster_next_pod(&state.cluster, &walk)) != NULL;) {
        struct slice name = pod_name(pod), node = pod_node(pod);
        if (slice_equal(name_text(pod->ns), SLICE("vms")))
            continue; /* two on each claim */
        bool stays = name.ptr[name.len - 1] % 2 == 0 && node.ptr[node.len - 1] % 2 == 0;
        if (!all && !stays)
            continue;
        seen++;
        missing += !has_pod(root, pod);
    }
    check(seen > PODS / 10, "pods were looked for", seen);
    check(missing == 0, "pods are missing", missing);
}

/* Those of even numbers stay: each is there, and once. */
static void expect_reservations(const json_t *root)
{
    const json_t *reservation;
    long seen = 0, times[RESERVED] = {0};
    size_t i;

    json_array_foreach (json_object_get(root, "reservations"), i, reservation) {
        const char *name = json_string_value(json_object_get(reservation, "name"));
        unsigned number = (unsigned)strtoul(strchr(name, '-') + 1, NULL, 10);
        times[number]++;
    }
    for (i = 0; i < RESERVED; i += 2)
        seen += times[i] == 1;
    check(seen == (RESERVED + 1) / 2, "those that stay are there once", seen);
}

static void the_cache_is_whole(void)
{
    json_t *root = read_json("/debug/cache", false);

    expect_pods(root, true);
    check(json_object_size(json_object_get(root, "nodes")) == NODES + 1, "nodes",
          (long)json_object_size(json_object_get(root, "nodes")));
    check(json_object_size(json_object_get(root, "claims")) == PODS + RESERVED + DEFERRED, "claims",
          (long)json_object_size(json_object_get(root, "claims")));
    check(json_array_size(json_object_get(root, "reservations")) == RESERVED, "reservations",
          (long)json_array_size(json_object_get(root, "reservations")));
    json_decref(root);
}

static void what_changes_leaves_it_json(void)
{
    json_t *root = read_json("/debug/cache", true);

    expect_pods(root, false);
    expect_reservations(root);
    json_decref(root);
}

/* ---- what is in /debug/snapshot ---- */

/* The objects of the kind. Each is there once. */
static long count_items(const json_t *root, const char *kind)
{
    const json_t *item;
    json_t *names = json_object();
    long count = 0;
    size_t i;

    json_array_foreach (json_object_get(root, "items"), i, item) {
        const json_t *meta = json_object_get(item, "metadata");
        const char *name = json_string_value(json_object_get(meta, "name"));
        const char *ns = json_string_value(json_object_get(meta, "namespace"));
        char key[600];
        if (strcmp(json_string_value(json_object_get(item, "kind")), kind) != 0)
            continue;
        (void)snprintf(key, sizeof key, "%s/%s", ns == NULL ? "" : ns, name);
        check(json_object_get(names, key) == NULL, key, (long)i);
        (void)json_object_set_new(names, key, json_true());
        count++;
    }
    json_decref(names);
    return count;
}

static void the_snapshot_is_whole(void)
{
    static const struct {
        const char *kind;
        long count;
    } wanted[] = {{"Reservation", RESERVED},
                  {"PersistentVolumeClaim", PODS + RESERVED + DEFERRED},
                  {"Node", NODES}};
    json_t *root = read_json("/debug/snapshot", false);

    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        long count = count_items(root, wanted[i].kind);
        check(count == wanted[i].count, wanted[i].kind, count);
    }
    check(count_items(root, "Pod") == (long)state.cluster.pods.count, "pods",
          (long)state.cluster.pods.count);
    json_decref(root);
}

/* What changes is there once, or not. */
static void what_changes_leaves_the_snapshot_json(void)
{
    json_t *root = read_json("/debug/snapshot", true);
    long count = count_items(root, "Pod");

    check(count > PODS / 10, "pods", count);
    json_decref(root);
}

static void expect_sample(struct buf *page, const char *name, long value)
{
    const char *at = strstr(buf_text(page), name);

    check(at != NULL && strtol(at + strlen(name), NULL, 10) == value, name, value);
}

static void a_reading_of_metrics_is_short(void)
{
    struct buf out;

    buf_init(&out, SIZE_MAX);
    read_page("/metrics", false, &out);
    expect_sample(&out, "\nclaimguard_exclusive_claim_violations ", DEFERRED);
    expect_sample(&out, "\nclaimguard_deferred_mounts_orphaned ", 2L * DEFERRED);
    expect_sample(&out, "\nclaimguard_reservations ", RESERVED);
    buf_reset(&out, SIZE_MAX);
    read_page("/statusz", false, &out);
    expect_sample(&out, "\norphaned deferrals ", 2L * DEFERRED);
    buf_dispose(&out);
}

/* They are answered while another thread has the lock. */
static void probes_take_no_lock(void)
{
    static const char *const paths[] = {"/livez", "/healthz", "/readyz"};

    for (int kind = 0; kind < KIND_COUNT; kind++)
        atomic_store(&state.status[kind].is_synced, true);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct buf out;
        buf_init(&out, SIZE_MAX);
        read_page(paths[i], false, &out);
        check(holds == 0, paths[i], holds);
        buf_dispose(&out);
    }
}

static void a_thread_that_does_not_come_to_an_end_is_named(void)
{
    uint64_t minute_ns = UINT64_C(60000000000), now_ns = monotonic_ns();
    struct watched *quick = watchdog_begin(&state.watchdog, "a call");
    struct watched *stuck = watchdog_begin(&state.watchdog, "preemption");
    struct zpages_request request = {.path = SLICE("/livez")};
    struct buf out;

    buf_init(&out, SIZE_MAX);
    atomic_store(&stuck->since_ns, now_ns > minute_ns ? now_ns - minute_ns : 1);
    unsigned status = zpages_answer(&state, &request, &out).status;
    check(status == (now_ns > minute_ns ? 500 : 200), "/livez", status);
    check(status == 200 || strstr(buf_text(&out), "[-] preemption has worked") != NULL, "its name",
          (long)out.len);
    watchdog_end(stuck);
    watchdog_end(quick);
    buf_reset(&out, SIZE_MAX);
    status = zpages_answer(&state, &request, &out).status;
    check(status == 200, "/livez afterwards", status);
    buf_dispose(&out);
}

int main(void)
{
    log_configure(LOG_ERROR, LOG_TEXT);
    large_cluster_fill(&state);
    probes_take_no_lock();
    a_thread_that_does_not_come_to_an_end_is_named();
    a_reading_of_metrics_is_short(); /* first: what the others free, malloc cleans up at any time */
    the_cache_is_whole();
    the_snapshot_is_whole();
    what_changes_leaves_it_json();
    what_changes_leaves_the_snapshot_json();
    services_dispose(&state);
    return failed;
}
