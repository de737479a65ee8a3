/* A ReadWriteOnce claim is in use on one node, also while Bindings are slow, in doubt or refused,
 * and a holder that is gone already is in nobody's way. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/scenario.h"

#define ENFORCE "readWriteOnce: {mode: Enforce}\n"
#define WARN    "readWriteOnce: {mode: Warn}\n"

enum { PAIRS = 20 };

static void put_shared_claim(const char *name)
{
    api_put("{\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"pv-%s\"},\"spec\":{"
            "\"accessModes\":[\"ReadWriteOnce\"],\"claimRef\":{\"namespace\":\"default\",\"name\":"
            "\"%s\"},\"csi\":{\"driver\":\"plugin1.example.com\"}}}",
            name, name);
    api_put("{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"default\",\"name\":"
            "\"%s\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"volumeName\":\"pv-%s\"},"
            "\"status\":{\"phase\":\"Bound\"}}",
            name, name);
}

/* Claim data, and pods a and b that name it: a on the node, unless that is NULL. */
static void put_sharers(const char *node)
{
    put_shared_claim("data");
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .node = node});
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
}

/* What bind says; valid for the life of the process. */
static const char *bind_answer(const struct guard *guard, const char *pod, const char *node)
{
    char *answer = guard_call(guard, "/bind", bind_body(pod, node));
    const char *copy = scenario_printf("%s", answer);

    free(answer);
    return copy;
}

/* ---- two binds of one free claim ---- */

struct one_bind {
    pthread_t thread;
    const struct guard *guard;
    const char *pod, *node, *answer;
};

static void *bind_one(void *context)
{
    struct one_bind *bind = context;

    bind->answer = bind_answer(bind->guard, bind->pod, bind->node);
    return NULL;
}

/* Pods aN and bN of claim cN are bound at the same time, to node-1 and node-2. */
static void bind_pairs(const struct guard *guard, struct one_bind binds[2 * PAIRS])
{
    for (int i = 0; i < 2 * PAIRS; i++) {
        binds[i] = (struct one_bind){.guard = guard,
                                     .pod = scenario_printf("%c%d", "ab"[i % 2], i / 2),
                                     .node = i % 2 == 0 ? "node-1" : "node-2"};
        check(pthread_create(&binds[i].thread, NULL, bind_one, &binds[i]) == 0, "a thread");
    }
    for (int i = 0; i < 2 * PAIRS; i++)
        (void)pthread_join(binds[i].thread, NULL);
}

static void put_pairs(void)
{
    for (int i = 0; i < PAIRS; i++) {
        const char *claim = scenario_printf("c%d", i);
        put_shared_claim(claim);
        put_pod(&(struct test_pod){.name = scenario_printf("a%d", i), .claim = claim});
        put_pod(&(struct test_pod){.name = scenario_printf("b%d", i), .claim = claim});
    }
}

/* How many pods of each pair are bound. */
static int count_bound(int pair)
{
    return (node_of(scenario_printf("a%d", pair))[0] != '\0') +
           (node_of(scenario_printf("b%d", pair))[0] != '\0');
}

static void of_two_binds_for_two_nodes_one_succeeds(void)
{
    struct one_bind binds[2 * PAIRS];
    struct guard guard;

    put_pairs();
    guard_start(&guard, ENFORCE);
    api_fault(&(struct api_fault){.method = "POST", .path = "/binding", .delay_ms = 500});
    bind_pairs(&guard, binds);
    for (int i = 0; i < PAIRS; i++) {
        bool is_first = node_of(binds[2 * i].pod)[0] != '\0';
        const struct one_bind *winner = &binds[2 * i + !is_first],
                              *other = &binds[2 * i + is_first];
        const char *reason =
            scenario_printf("claim default/c%d (ReadWriteOnce) is in use on %s by pod default/%s",
                            i, winner->node, winner->pod);
        check(count_bound(i) == 1, "pair %d: %d pods are bound", i, count_bound(i));
        check(strstr(other->answer, reason) != NULL, "%s: %s", other->pod, other->answer);
    }
    guard_stop(&guard);
}

static void with_warn_both_are_bound(void)
{
    struct one_bind binds[2 * PAIRS];
    struct guard guard;

    put_pairs();
    guard_start(&guard, WARN);
    bind_pairs(&guard, binds);
    for (int i = 0; i < PAIRS; i++)
        check(count_bound(i) == 2, "pair %d: %d pods are bound", i, count_bound(i));
    guard_stop(&guard);
}

static void two_binds_for_one_node_both_succeed(void)
{
    struct guard guard;

    put_sharers(NULL);
    guard_start(&guard, ENFORCE);
    check(bind_succeeds(&guard, "a", "node-1"), "the claim is free");
    check(!bind_succeeds(&guard, "b", "node-2"), "it is in use on node-1");
    check(bind_succeeds(&guard, "b", "node-1"), "they share it there");
    guard_stop(&guard);
}

/* ---- a Binding that fails, or may have failed ---- */

static void a_bind_that_is_refused_gives_the_claim_back(void)
{
    struct guard guard;

    put_sharers(NULL);
    guard_start(&guard, ENFORCE);
    api_fault(&(struct api_fault){
        .method = "POST", .path = "/pods/a/binding", .times = 1, .status = 403});
    check(!bind_succeeds(&guard, "a", "node-1"), "it is refused");
    check(bind_succeeds(&guard, "b", "node-2"), "the claim is free");
    guard_stop(&guard);
}

static void a_binding_in_doubt_keeps_its_node(void)
{
    struct guard guard;

    put_sharers(NULL);
    guard_start(&guard, ENFORCE);
    api_fault(&(struct api_fault){
        .method = "POST", .path = "/pods/a/binding", .times = 1, .status = 500});
    check(!bind_succeeds(&guard, "a", "node-1"), "its outcome is not known");
    check(guard_metric(&guard, "claimguard_binds_in_doubt ") == 1, "it is in doubt");
    const char *answer = bind_answer(&guard, "b", "node-2");
    check(strstr(answer, "is in use on node-1 by pod default/a") != NULL, "b: %s", answer);
    answer = bind_answer(&guard, "a", "node-2");
    check(strstr(answer, "is in use on node-1 by pod default/a") != NULL,
          "the first Binding may still be applied: %s", answer);
    check(bind_succeeds(&guard, "b", "node-1"), "b shares the node");
    check(bind_succeeds(&guard, "a", "node-1"), "a is bound as asked before");
    guard_stop(&guard);
}

/* ---- a holder that is gone, and the watch is late ---- */

static void a_stale_holder_is_in_the_way_of_no_bind(void)
{
    struct guard guard;

    put_sharers("node-1");
    guard_start(&guard, ENFORCE);
    check(!bind_succeeds(&guard, "b", "node-2"), "the holder is there");
    api_hold("pods");
    api_remove("pods", "default", "a");
    check(bind_succeeds(&guard, "b", "node-2"), "the API server says that it is gone");
    guard_stop(&guard);
}

static void a_bind_is_refused_while_holders_cannot_be_read(void)
{
    struct guard guard;

    put_sharers("node-1");
    guard_start(&guard, ENFORCE);
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods/a", .status = 503});
    check(!bind_succeeds(&guard, "b", "node-2"), "what the cache has stands");
    check(api_count("GET", "/pods/a") == 1, "the holder was read");
    guard_stop(&guard);
}

static void a_pod_that_waits_for_a_stale_holder_is_requeued(void)
{
    struct guard guard;

    put_shared_claim("data");
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .node = "node-3"});
    guard_start(&guard, ENFORCE);
    check(guard_logs(&guard, "the cache is synced"), "no pod that waits at the start is requeued");
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    api_hold("pods");
    api_remove("pods", "default", "a");
    check(!filter_passes(&guard, "b"), "no node that is offered has the claim");
    check(api_count("GET", "/pods/a") == 0, "a filter call sends no request for it");
    check(api_count("PATCH", "claimguard.io/requeue-requested") == 0, "nobody is requeued");
    api_release("pods");
    check(api_wait("PATCH", "claimguard.io/requeue-requested", 1), "b is requeued");
    check(filter_passes(&guard, "b"), "now the claim is free");
    guard_stop(&guard);
}

/* ---- what the cache does not know yet ---- */

/* The scheduler may know the CSIDriver, and try the pod again, before the cache does. */
static void a_pod_is_requeued_when_its_driver_turns_out_not_to_attach(void)
{
    struct guard guard;

    put_shared_claim("data");
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .node = "node-3"});
    guard_start(&guard, ENFORCE);
    check(guard_logs(&guard, "the cache is synced"), "no pod that waits at the start is requeued");
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"pods\"}") == 2, "seen");
    check(!filter_passes(&guard, "b"), "a driver attaches unless it says otherwise");
    api_put("{\"kind\":\"CSIDriver\",\"metadata\":{\"name\":\"other.example.com\"},\"spec\":{"
            "\"attachRequired\":false}}");
    AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"csidrivers\"}") == 1, "seen");
    check(api_count("PATCH", "claimguard.io/requeue-requested") == 0, "that is not b's");
    api_put("{\"kind\":\"CSIDriver\",\"metadata\":{\"name\":\"plugin1.example.com\"},\"spec\":{"
            "\"attachRequired\":false}}");
    check(api_wait("PATCH", "claimguard.io/requeue-requested", 1), "b is requeued");
    check(filter_passes(&guard, "b"), "now it may be anywhere");
    guard_stop(&guard);
}

/* Both pods are on the node that a was bound to, or b waits. */
static void is_on_one_node(struct guard *guard)
{
    check(bind_succeeds(guard, "a", "node-1"), "the claim is free");
    check(!bind_succeeds(guard, "b", "node-2"), "a is on %s, b on %s", node_of("a"), node_of("b"));
    check(bind_succeeds(guard, "b", "node-1"), "beside a");
    guard_stop(guard);
}

static void a_volume_that_is_known_late_lets_nobody_on_two_nodes(void)
{
    struct guard guard;

    guard_start(&guard, ENFORCE);
    api_hold("persistentvolumes");
    put_sharers(NULL);
    AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"pods\"}") == 2, "seen");
    AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"persistentvolumeclaims\"}") ==
              1,
          "seen");
    is_on_one_node(&guard);
}

/* The phase is written after the rest. */
static void a_claim_whose_phase_is_late_lets_nobody_on_two_nodes(void)
{
    struct guard guard;

    put_sharers(NULL);
    api_put("{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"default\",\"name\":"
            "\"data\",\"uid\":\"%s\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"volumeName\":"
            "\"pv-data\"},\"status\":{\"phase\":\"Pending\"}}",
            api_text("persistentvolumeclaims", "default", "data", "metadata.uid"));
    guard_start(&guard, ENFORCE);
    is_on_one_node(&guard);
}

/* A scheduler that offers less than a sample has looked at all nodes: node-1 suits b in no case. */
static void a_pod_whose_scheduler_saw_all_nodes_is_not_nominated(void)
{
    struct guard guard;

    put_sharers("node-1");
    guard_start(&guard, ENFORCE);
    char *answer = guard_call(&guard, "/filter",
                              scenario_printf("{\"Pod\":%s,\"NodeNames\":[\"node-2\"]}",
                                              api_object("pods", "default", "b")));
    check(strstr(answer, "is in use on node-1") != NULL, "%s", answer);
    free(answer);
    sleep_ms(1500);
    check(api_count("PATCH", "nominatedNodeName") == 0, "nobody is nominated");
    guard_stop(&guard);
}

/* ---- nominations of another tenant ---- */

enum { GREEDY = 499, SAMPLE = 120, LATE_MS = 40000 };

static const char *sample_without_node_1(const char *pod)
{
    const char *names = "\"node-2\"";

    for (int i = 0; i < SAMPLE; i++)
        names = scenario_printf("%s,\"m-%d\"", names, i);
    return scenario_printf("{\"Pod\":%s,\"NodeNames\":[%s]}", pod, names);
}

static void put_greedy(void)
{
    static const char volumes[] = "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{"
                                  "\"claimName\":\"c\"}}]";

    api_put("{\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"pv-g\"},\"spec\":{"
            "\"accessModes\":[\"ReadWriteOnce\"],\"claimRef\":{\"namespace\":\"greedy\",\"name\":"
            "\"c\"},\"csi\":{\"driver\":\"plugin1.example.com\"}}}");
    api_put("{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"greedy\",\"name\":"
            "\"c\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"volumeName\":\"pv-g\"},"
            "\"status\":{\"phase\":\"Bound\"}}");
    api_put("{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"greedy\",\"name\":\"holds\"},\"spec\":"
            "{\"nodeName\":\"node-1\",%s},\"status\":{\"phase\":\"Running\"}}",
            volumes);
    for (int i = 0; i < GREEDY; i++)
        api_put("{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"greedy\",\"name\":\"g-%d\"},"
                "\"spec\":{%s},\"status\":{\"phase\":\"Pending\"}}",
                i, volumes);
}

/* How long it takes until pod b is nominated. */
static int64_t nominated_after_ms(const struct guard *guard)
{
    int64_t begun_ms = clock_ms();

    free(guard_call(guard, "/filter", sample_without_node_1(api_object("pods", "default", "b"))));
    while (api_count("PATCH", "/default/pods/b/status") == 0 && clock_ms() < begun_ms + LATE_MS)
        sleep_ms(10);
    return clock_ms() - begun_ms;
}

static void expect_nomination_beside(bool is_attacked)
{
    struct guard guard;

    put_sharers("node-1");
    if (is_attacked)
        put_greedy();
    guard_start(&guard, ENFORCE);
    for (int i = 0; is_attacked && i < GREEDY; i++)
        free(guard_call(
            &guard, "/filter",
            sample_without_node_1(api_object("pods", "greedy", scenario_printf("g-%d", i)))));
    int64_t took_ms = nominated_after_ms(&guard);
    check(took_ms < 2500, "b is nominated after %lld ms; %zu nominations in all",
          (long long)took_ms, api_count("PATCH", "nominatedNodeName"));
    guard_stop(&guard);
}

static void a_pod_is_nominated_at_once(void)
{
    expect_nomination_beside(false);
}

static void nominations_of_one_namespace_delay_no_other(void)
{
    expect_nomination_beside(true);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(of_two_binds_for_two_nodes_one_succeeds),
        SCENARIO(with_warn_both_are_bound),
        SCENARIO(two_binds_for_one_node_both_succeed),
        SCENARIO(a_bind_that_is_refused_gives_the_claim_back),
        SCENARIO(a_binding_in_doubt_keeps_its_node),
        SCENARIO(a_stale_holder_is_in_the_way_of_no_bind),
        SCENARIO(a_bind_is_refused_while_holders_cannot_be_read),
        SCENARIO(a_pod_that_waits_for_a_stale_holder_is_requeued),
        SCENARIO(a_pod_is_requeued_when_its_driver_turns_out_not_to_attach),
        SCENARIO(a_volume_that_is_known_late_lets_nobody_on_two_nodes),
        SCENARIO(a_claim_whose_phase_is_late_lets_nobody_on_two_nodes),
        SCENARIO(a_pod_whose_scheduler_saw_all_nodes_is_not_nominated),
        SCENARIO(a_pod_is_nominated_at_once),
        SCENARIO(nominations_of_one_namespace_delay_no_other),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
