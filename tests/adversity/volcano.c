/* Volcano asks about a pod and one node in each call, with sixteen workers: how often the API
 * server is asked for that, and what is not done for such a pod. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adversity/preemptors.h"

enum { WORKERS = 16, NODES = 160, WITHOUT_MEMORY_MS = 5000 };

static const char *predicate_body(const char *pod, const char *node)
{
    return scenario_printf(
        "{\"task\":{\"UID\":\"x\",\"Pod\":%s,\"NodeName\":\"\"},\"node\":{"
        "\"Name\":\"%s\",\"Node\":{\"metadata\":{\"name\":\"%s\"}},\"Tasks\":{"
        "\"y\":{\"Name\":\"more\",\"Pod\":{\"metadata\":{\"name\":\"more\"}}}}}}",
        api_object("pods", "default", pod), node, node);
}

static bool predicate_passes(const struct guard *guard, const char *pod, const char *node)
{
    char *answer = guard_call(guard, "/volcano/predicate", predicate_body(pod, node));
    bool passes = strcmp(answer, "{\"status\":\"\",\"code\":0}") == 0;

    check(passes || strstr(answer, "\"code\":3}") != NULL, "%s", answer);
    free(answer);
    return passes;
}

/* One of the workers that go through the nodes for a pod. */
struct worker {
    pthread_t thread;
    const struct guard *guard;
    const char *pod;
    unsigned passed;
};

static void *try_nodes(void *context)
{
    struct worker *worker = context;
    char node[16];

    for (int i = 0; i < NODES / WORKERS; i++) {
        (void)snprintf(node, sizeof node, "node-%d", i);
        worker->passed += predicate_passes(worker->guard, worker->pod, node);
    }
    return NULL;
}

/* Returns on how many nodes the pod passes. */
static unsigned try_everywhere(const struct guard *guard, const char *pod)
{
    struct worker workers[WORKERS];
    unsigned passed = 0;

    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.guard = guard, .pod = pod};
        check(pthread_create(&workers[i].thread, NULL, try_nodes, &workers[i]) == 0, "a thread");
    }
    for (int i = 0; i < WORKERS; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        passed += workers[i].passed;
    }
    return passed;
}

static void a_cycle_costs_few_requests(void)
{
    struct guard guard;

    put_pair("node-1");
    guard_start(&guard, "");
    size_t before = api_count("GET", "/pods/a"); /* the one at the start, if any */
    int64_t start = clock_ms();
    check(try_everywhere(&guard, "b") == 0, "its claim is held");
    int64_t took = clock_ms() - start;
    size_t asked = api_count("GET", "/pods/a") - before;
    printf("%d calls: %zu GETs in %d ms\n", NODES, asked, (int)took);
    check(asked >= 1, "the rejection was confirmed");
    /* those that come together share a GET; at worst each of them has one, once in a second */
    check(asked <= WORKERS * (size_t)(1 + took / 1000), "%zu GETs", asked);
    guard_stop(&guard);
}

static void calls_one_after_the_other_share_a_confirmation(void)
{
    struct guard guard;

    put_pair("node-1");
    guard_start(&guard, "");
    check(!predicate_passes(&guard, "b", "node-1"), "its claim is held");
    size_t before = api_count("GET", "/pods/a");
    int64_t start = clock_ms();
    for (int i = 0; i < 20; i++)
        check(!predicate_passes(&guard, "b", "node-2"), "the same");
    size_t asked = api_count("GET", "/pods/a") - before;
    check(asked <= (size_t)((clock_ms() - start) / 1000), "%zu GETs", asked);
    sleep_ms(1100);
    before = api_count("GET", "/pods/a");
    check(!predicate_passes(&guard, "b", "node-2"), "the same");
    check(api_count("GET", "/pods/a") == before + 1, "the next cycle asks again");
    guard_stop(&guard);
}

static void no_rejection_is_stale_in_the_next_cycle(void)
{
    struct guard guard;

    put_pair("node-1");
    guard_start(&guard, "");
    check(!predicate_passes(&guard, "b", "node-1"), "its claim is held");
    api_hold("pods");
    api_remove("pods", "default", "a");
    sleep_ms(1100);
    check(predicate_passes(&guard, "b", "node-1"), "no watch has said that the holder is gone");
    check(guard_metric(&guard, "claimguard_confirmations_total{result=\"overruled\"}") == 1,
          "the API server has");
    api_release("pods");
    guard_stop(&guard);
}

/* Volcano waits for a second. */
static void an_api_server_that_hangs_is_waited_for_once(void)
{
    struct guard guard;

    put_pair("node-1");
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods/a", .ending = API_HANG});
    int64_t start, first = 900;
    /* A slow machine may need more than one guard; the second call of the same one waits less. */
    for (int i = 0; i < 3 && first >= 900; i++) {
        if (i != 0)
            guard_stop(&guard);
        guard_start(&guard, "");
        start = clock_ms();
        check(!predicate_passes(&guard, "b", "node-1"), "the cached verdict stands");
        first = clock_ms() - start;
    }
    for (int i = 0; i < 50; i++)
        check(!predicate_passes(&guard, "b", "node-2"), "the same");
    int64_t took = clock_ms() - start;
    printf("the first call took %d ms, 51 calls %d ms\n", (int)first, (int)took);
    check(first < 900, "the first call took %d ms", (int)first);
    check(took < WITHOUT_MEMORY_MS, "each call waited: %d ms", (int)took);
    api_let_go();
    guard_stop(&guard);
}

/* A call does not say that the pod's gang has room. */
static void nothing_is_evicted_requeued_or_nominated_for_it(void)
{
    struct guard guard;

    start_with_a_preemptor(&guard, quick);
    check(!predicate_passes(&guard, "high-data", "node-1"), "its claim is held");
    sleep_ms(1500);
    check(!predicate_passes(&guard, "high-data", "node-1"), "its claim is held");
    check(api_count("POST", "/eviction") == 0 && api_count("DELETE", "/pods/") == 0,
          "nobody is evicted");
    check(api_count("PATCH", "/pods/high-data") == 0, "it is not requeued");
    check(guard_metric(&guard, "claimguard_requeues_waiting ") == 0, "it does not wait");
    guard_stop(&guard);
}

static void a_pod_of_another_scheduler_gets_its_turn(void)
{
    struct guard guard;

    put_claim("data");
    guard_start(&guard, "readWriteOncePod: {reservationTTL: 2s}\n");
    put_pod(&(struct test_pod){.name = "gang", .claim = "data"});
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    AWAIT(sees(&guard, 2), "the pods are seen");
    check(predicate_passes(&guard, "gang", "node-1"), "the claim is free");
    check(!filter_passes(&guard, "b"), "the claim is reserved");
    for (int i = 0; i < 50 && api_count("PATCH", "/pods/b") == 0; i++) {
        sleep_ms(200);
        check(predicate_passes(&guard, "gang", "node-1"), "nobody else has asked");
    }
    check(api_count("PATCH", "/pods/b") != 0, "the reservation ends though the trials continue");
    check(filter_passes(&guard, "b"), "it is requeued, and passes");
    check(!predicate_passes(&guard, "gang", "node-1"), "the claim is reserved for b");
    check(bind_succeeds(&guard, "b", "node-2"), "the claim is b's");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_cycle_costs_few_requests),
        SCENARIO(calls_one_after_the_other_share_a_confirmation),
        SCENARIO(no_rejection_is_stale_in_the_next_cycle),
        SCENARIO(an_api_server_that_hangs_is_waited_for_once),
        SCENARIO(nothing_is_evicted_requeued_or_nominated_for_it),
        SCENARIO(a_pod_of_another_scheduler_gets_its_turn),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
