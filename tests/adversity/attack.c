/*
 * One tenant does as badly as it can, all at once; another one has a pod bound again and again. Its
 * verdicts are right, and confirmed, and its latencies are compared with those of a quiet time
 * right before, in one process. The API server takes API_MS for each answer, so that latencies are
 * those of waiting, not of this machine.
 *
 * CLAIMGUARD_ATTACK_SECONDS: so long (20 s). CLAIMGUARD_ATTACK_TIMES: the p99 may be at most so
 * many times the quiet one, and the memory is limited, too: for a claimguard without sanitizers.
 * CLAIMGUARD_ATTACK_REPORT: a file for the figures. tests/checks/attack sets them.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/base/buf.h"
#include "support/dials.h"
#include "support/http.h"
#include "support/process.h"
#include "support/reviews.h"

enum {
    API_MS = 200,
    QUIET_ROUNDS = 60,
    QUIET_ROUNDS_FEW = 10, /* if latencies do not count */
    SCHEDULER_MS = 300,    /* from a pod's creation until a scheduler tries it */
    ROUND_MS = 300,        /* a namespace may spend half of the time in confirmations */
    SECONDS_DEFAULT = 20,
    ROUNDS_MAX = 4000,
    PAIRS = 64,
    LONG_BYTES = 1400000,
    MANY_CLAIMS = 500,
    DIALS_PER_SECOND = 1000,
    DIALS_KEPT = 300,
    MIB_MAX = 256,
    LATE_SHARE = 10, /* one in so many */
};

static struct attack {
    struct guard guard;
    atomic_bool is_over;
    atomic_uint calls, reviews, changes;
    unsigned late; /* verdicts of the other tenant that were wrong at first, or not confirmed */
    struct dials dials; /* of API servers */
    const char *filters[PAIRS], *binds[PAIRS];
} attack;

/* ---- the tenant that attacks: namespace greedy ---- */

static void put_claim_of(const char *name, const char *volume)
{
    api_put("{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"greedy\",\"name\":"
            "\"%s\"},\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"],\"volumeName\":\"%s\"}}",
            name, volume);
}

static void put_pod_of(const char *name, const char *claim, const char *more_spec)
{
    api_put("{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"greedy\",\"name\":\"%s\"},\"spec\":{"
            "%s\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"%s\"}}]}}",
            name, more_spec, claim);
}

static void put_greedy_pairs(void)
{
    for (int i = 0; i < PAIRS; i++) {
        const char *claim = scenario_printf("c-%d", i), *waits = scenario_printf("waits-%d", i);
        put_claim_of(claim, "v");
        put_pod_of(waits, claim, "");
        put_pod_of(scenario_printf("holds-%d", i), claim, "\"nodeName\":\"node-1\",");
        attack.filters[i] = scenario_printf("{\"Pod\":%s,\"NodeNames\":[\"node-1\"]}",
                                            api_object("pods", "greedy", waits));
        attack.binds[i] = scenario_printf(
            "{\"PodName\":\"%s\",\"PodNamespace\":\"greedy\",\"PodUID\":\"%s\",\"Node\":"
            "\"node-1\"}",
            waits, api_text("pods", "greedy", waits, "metadata.uid"));
    }
}

/* What it is answered does not matter. */
static void call(const char *verb, const char *body)
{
    struct response response;

    http_call(attack.guard.port, "POST", verb, body, &response);
    response_free(&response);
    atomic_fetch_add(&attack.calls, 1);
}

static void *call_again_and_again(void *context)
{
    unsigned i = (unsigned)(uintptr_t)context;

    while (!atomic_load(&attack.is_over)) {
        call("/filter", attack.filters[i % PAIRS]);
        call("/bind", attack.binds[i % PAIRS]);
        i++;
    }
    return NULL;
}

/* Creations that are dry runs, and Bindings of pods that nobody knows. */
static void *review_again_and_again(void *context)
{
    const struct test_review review = {
        .ns = "greedy", .pod = "nobody", .node = "node-1", .is_dry_run = true};

    (void)context;
    while (!atomic_load(&attack.is_over)) {
        (void)admit(&attack.guard, &review);
        atomic_fetch_add(&attack.reviews, 1);
    }
    return NULL;
}

static void put_many_claims(const char *name, int round)
{
    struct buf volumes;

    buf_init(&volumes, 1 << 20);
    for (int j = 0; j < MANY_CLAIMS; j++)
        buf_printf(&volumes,
                   "%s{\"name\":\"v-%d\",\"persistentVolumeClaim\":{\"claimName\":\"%0100d-%d\"}}",
                   j == 0 ? "" : ",", j, round, j);
    api_put("{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"greedy\",\"name\":\"%s\"},\"spec\":{"
            "\"nodeName\":\"node-1\",\"volumes\":[%s]}}",
            name, buf_text(&volumes));
    buf_dispose(&volumes);
}

/* Holders come and go, so that those who wait are requeued; texts and lists are as long as can be.
 */
static void *change_again_and_again(void *context)
{
    char *text = malloc(LONG_BYTES + 1), name[32];

    (void)context;
    memset(text, 'x', LONG_BYTES);
    text[LONG_BYTES] = '\0';
    for (int i = 0; !atomic_load(&attack.is_over); i++) {
        (void)snprintf(name, sizeof name, "holds-%d", i % PAIRS);
        api_remove("pods", "greedy", name);
        put_pod_of(name, strchr(name, '-') + 1, "\"nodeName\":\"node-2\",");
        (void)snprintf(name, sizeof name, "many-%d", i % 20);
        put_many_claims(name, i);
        (void)snprintf(name, sizeof name, "long-%d", i % 4);
        text[0] = (char)('a' + i % 20);
        if (i % 10 == 0)
            put_claim_of(name, text);
        atomic_fetch_add(&attack.changes, 3);
        sleep_ms(50);
    }
    free(text);
    return NULL;
}

/* ---- the other tenant: namespace default ---- */

struct samples {
    double ms[ROUNDS_MAX];
    size_t count;
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double percentile(struct samples *samples, double share)
{
    qsort(samples->ms, samples->count, sizeof *samples->ms, compare);
    return samples->ms[(size_t)(share * (double)(samples->count - 1))];
}

/* A pod and its claim come, the pod is bound, and goes; how long filter and bind take. On a machine
 * that is too slow, a watch or a confirmation may be late: then it is tried again, as a scheduler
 * does, and that is counted. */
static double bind_one(int i)
{
    const char *name = scenario_printf("good-%d", i);

    put_claim(name);
    put_pod(&(struct test_pod){.name = name, .claim = name});
    sleep_ms(SCHEDULER_MS);
    int64_t begun_ms = clock_ms();
    if (!filter_passes(&attack.guard, name) || !bind_succeeds(&attack.guard, name, "node-1")) {
        attack.late++;
        AWAIT(node_of(name)[0] != '\0' || (filter_passes(&attack.guard, name) &&
                                           bind_succeeds(&attack.guard, name, "node-1")),
              "its claim is free");
    }
    int64_t took_ms = clock_ms() - begun_ms;
    check(strcmp(node_of(name), "node-1") == 0, "as the API server has it");
    api_remove("pods", "default", name);
    api_remove("persistentvolumeclaims", "default", name);
    return (double)took_ms;
}

/* Its other pod waits for a holder: that is confirmed, each time. */
static double reject_one(void)
{
    size_t before = api_count("GET", "/default/pods/a");
    int64_t begun_ms = clock_ms();
    bool passes = filter_passes(&attack.guard, "b");
    int64_t took_ms = clock_ms() - begun_ms;

    check(!passes, "a has its claim");
    attack.late += api_count("GET", "/default/pods/a") != before + 1;
    return (double)took_ms;
}

static void one_round(struct samples *binds, struct samples *rejections, int i)
{
    if (binds->count == ROUNDS_MAX)
        return;
    binds->ms[binds->count++] = bind_one(i);
    rejections->ms[rejections->count++] = reject_one();
    sleep_ms(ROUND_MS);
}

static FILE *report_file;

static double report(const char *what, struct samples *quiet, struct samples *attacked)
{
    double times = percentile(attacked, 0.99) / percentile(quiet, 0.99);

    (void)fprintf(report_file,
                  "%s: quiet p50 %.0f ms, p99 %.0f ms (%zu); attacked p50 %.0f ms, p99 %.0f ms "
                  "(%zu): %.2f times\n",
                  what, percentile(quiet, 0.5), percentile(quiet, 0.99), quiet->count,
                  percentile(attacked, 0.5), percentile(attacked, 0.99), attacked->count, times);
    return times;
}

/* ---- both ---- */

static void *(*const attackers[])(void *) = {
#ifndef __SANITIZE_THREAD__ /* which is slow */
    call_again_and_again,   call_again_and_again,   call_again_and_again,
    call_again_and_again,   call_again_and_again,   call_again_and_again,
#endif
    call_again_and_again,   call_again_and_again,   review_again_and_again,
    review_again_and_again, change_again_and_again,
};
enum { ATTACKERS = sizeof attackers / sizeof *attackers };

/* The holder goes: the pod that waits passes. */
static void expect_change(void)
{
    api_remove("pods", "default", "a");
    AWAIT(filter_passes(&attack.guard, "b"), "a is gone");
}

static void attack_for(int for_s, struct samples *binds, struct samples *rejections)
{
    int64_t end_ms = clock_ms() + for_s * INT64_C(1000);
    pthread_t threads[ATTACKERS];

    attack.dials = (struct dials){
        .port = admission_port(&attack.guard), .per_second = DIALS_PER_SECOND, .kept = DIALS_KEPT};
    dials_begin(&attack.dials);
    for (size_t i = 0; i < ATTACKERS; i++)
        check(pthread_create(&threads[i], NULL, attackers[i], (void *)(uintptr_t)(i * 8)) == 0,
              "thread");
    for (int i = QUIET_ROUNDS; clock_ms() < end_ms; i++)
        one_round(binds, rejections, i);
    expect_change();
    atomic_store(&attack.is_over, true);
    for (size_t i = 0; i < ATTACKERS; i++)
        (void)pthread_join(threads[i], NULL);
    dials_end(&attack.dials);
}

static void one_tenant_attacks_and_another_does_not_notice(void)
{
    static struct samples quiet_binds, quiet_rejections, binds, rejections;
    const char *seconds = getenv("CLAIMGUARD_ATTACK_SECONDS");
    const char *times = getenv("CLAIMGUARD_ATTACK_TIMES");
    const char *path = getenv("CLAIMGUARD_ATTACK_REPORT");

    report_file = path == NULL ? stdout : fopen(path, "we");
    process_keep_sanitizer_small();
    put_pair("node-1");
    put_greedy_pairs();
    admission_start(&attack.guard, "");
    api_fault(&(struct api_fault){.path = "/namespaces/", .delay_ms = API_MS});
    for (int i = 0; i < (times == NULL ? QUIET_ROUNDS_FEW : QUIET_ROUNDS); i++)
        one_round(&quiet_binds, &quiet_rejections, i);
    attack_for(seconds == NULL ? SECONDS_DEFAULT : atoi(seconds), &binds, &rejections);
    long mib = daemon_memory_mib(&(struct daemon){.pid = attack.guard.pid}, "VmHWM");
    (void)fprintf(report_file,
                  "%u calls, %u reviews, %u changes, %u dials; %u verdicts late; %ld MiB\n",
                  atomic_load(&attack.calls), atomic_load(&attack.reviews),
                  atomic_load(&attack.changes), atomic_load(&attack.dials.count), attack.late, mib);
    double bind_times = report("binds", &quiet_binds, &binds);
    double rejection_times = report("rejections", &quiet_rejections, &rejections);
    (void)fflush(report_file);
    if (times != NULL) {
        check(attack.late * LATE_SHARE <= binds.count, "%u verdicts are late", attack.late);
        check(bind_times <= atof(times), "a bind's p99 is %.2f times the quiet one", bind_times);
        check(rejection_times <= atof(times), "a rejection's is %.2f times the quiet one",
              rejection_times);
        check(mib < MIB_MAX, "%ld MiB", mib);
    }
    guard_stop(&attack.guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {SCENARIO(one_tenant_attacks_and_another_does_not_notice)};
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
