/* Reviews of pods that are being created: one that names its node is bound by that, so it takes its
 * claims as a Binding does, before any API server knows the pod. */
#include <string.h>

#include "support/reviews.h"

#define DRIVER "inline.example.com"
#define INLINE ",\"volumes\":[{\"name\":\"v\",\"csi\":{\"driver\":\"" DRIVER "\"}}]"

enum { DEAD_MS = 65000 /* BINDING_DEAD_MS */ };

/* Pod c, which names its node and claim data. */
static const struct test_creation c = {
    .pod = {.name = "c", .claim = "data", .node = "node-1"},
};

static bool is_allowed(const char *answer)
{
    return strcmp(answer, "allowed") == 0 || starts_with(answer, "allowed and nothing else");
}

/* ---- its claims ---- */

static void a_pod_that_names_its_node_takes_its_claim(void)
{
    const struct test_creation d = {.pod = {.name = "d", .claim = "data", .node = "node-2"}};
    const struct test_creation again = {.pod = c.pod,
                                        .uid = "00000000-0000-4000-8000-0000000000c2"};
    const struct test_review b = {.pod = "b", .node = "node-2"};
    struct guard guard;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    admission_start(&guard, "");
    check(is_allowed(admit_creation(&guard, &c)), "its claim is free");
    check(starts_with(admit_creation(&guard, &d),
                      "denied: 409 claim default/data is reserved for pod default/c"),
          "against another such pod");
    check(starts_with(admit(&guard, &b), "denied: 409 claim default/data is reserved for"),
          "and a Binding");
    check(!filter_passes(&guard, "b"), "for the extender, too");
    create(&c);
    AWAIT(guard_metric(&guard, "claimguard_reservations ") == 0, "c is seen");
    check(starts_with(admit_creation(&guard, &d),
                      "denied: 409 claim default/data is in use by pod default/c on node-1"),
          "the holder and its node");
    check(strcmp(admit_creation(&guard, &again),
                 "denied: 409 AlreadyExists: pods \"c\" already exists") == 0,
          "as the API server says it");
    api_remove("pods", "default", "c");
    AWAIT(is_admitted(&guard, "b", "node-2"), "it is free again");
    check(guard_metric(&guard, "claimguard_admission_reviews_total{path=\"/admit/pod\","
                               "result=\"allowed\"}") == 1,
          "one was allowed");
    check(api_count("PATCH", "/pods/c") == 0, "c is not changed");
    guard_stop(&guard);
}

/* The causes of a refusal are read again, but not c: that it does not exist might be answered after
 * it was seen. */
static void that_it_does_not_exist_yet_does_not_free_its_claim(void)
{
    struct guard guard;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    admission_start(&guard, "");
    check(is_allowed(admit_creation(&guard, &c)), "its claim is free");
    for (int i = 0; i < 3; i++) {
        check(!bind_succeeds(&guard, "b", "node-2"), "c may be created now");
        check(!is_admitted(&guard, "b", "node-2"), "the same for another scheduler");
        check(!filter_passes(&guard, "b"), "and before");
    }
    check(api_count("GET", "/pods/c") == 0, "the API server is not asked about c");
    guard_stop(&guard);
}

static void of_a_creation_and_a_binding_at_the_same_time_one_is_allowed(void)
{
    enum { ROUNDS = 20 };
    struct guard guard;

    put_pair(NULL);
    admission_start(&guard, "");
    api_hold("pods");
    for (int i = 0; i < ROUNDS; i++) {
        const char *claim = scenario_printf("data-%d", i);
        const char *pod = scenario_printf("b-%d", i);
        const struct test_creation creation = {
            .pod = {.name = scenario_printf("c-%d", i), .claim = claim, .node = "node-1"}};
        struct review_beside binding;
        put_claim(claim);
        put_pod(&(struct test_pod){.name = pod, .claim = claim});
        review_begin(&binding, &guard, (struct test_review){.pod = pod, .node = "node-2"});
        const char *answer = admit_creation(&guard, &creation);
        bool is_created = strcmp(answer, "allowed") == 0,
             is_bound = strcmp(review_end(&binding), "allowed") == 0;
        check(is_created != is_bound, "one: %s, %s", answer, binding.answer);
    }
    api_release("pods");
    guard_stop(&guard);
}

/* A quota has refused it, or another webhook. */
static void a_pod_that_is_never_created_keeps_its_claim_for_a_time(void)
{
    struct guard guard;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    admission_start(&guard, "");
    check(is_allowed(admit_creation(&guard, &c)), "its claim is free");
    sleep_ms(DEAD_MS - 5000);
    check(!is_admitted(&guard, "b", "node-2"), "it may still be created");
    sleep_ms(8000);
    check(is_admitted(&guard, "b", "node-2"), "no API server works on it any more");
    guard_stop(&guard);
}

static void a_review_that_is_sent_again_is_answered_again(void)
{
    struct guard guard;

    put_claim("data");
    admission_start(&guard, "");
    for (int i = 0; i < 3; i++)
        check(is_allowed(admit_creation(&guard, &c)), "its own claim");
    create(&c);
    AWAIT(guard_metric(&guard, "claimguard_reservations ") == 0, "c is seen");
    check(is_allowed(admit_creation(&guard, &c)), "it is there already");
    guard_stop(&guard);
}

static void a_denial_is_not_stale(void)
{
    struct guard guard;

    put_pair("node-2");
    admission_start(&guard, "");
    api_hold("pods");
    api_remove("pods", "default", "a");
    check(is_allowed(admit_creation(&guard, &c)), "the API server says that a is gone");
    api_release("pods");
    guard_stop(&guard);
}

static void a_claim_of_one_node_stays_there(void)
{
    const struct test_creation near = {.pod = {.name = "d", .claim = "shared", .node = "node-1"}};
    const struct test_creation far = {.pod = {.name = "e", .claim = "shared", .node = "node-2"}};
    struct guard guard;

    api_put("{\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"pv\"},\"spec\":{"
            "\"accessModes\":[\"ReadWriteOnce\"],\"claimRef\":{\"namespace\":\"default\",\"name\":"
            "\"shared\"},\"csi\":{\"driver\":\"plugin1.example.com\"}}}");
    api_put("{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"default\",\"name\":"
            "\"shared\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"volumeName\":\"pv\"},"
            "\"status\":{\"phase\":\"Bound\"}}");
    admission_start(&guard, "readWriteOnce: {mode: Enforce}\n");
    put_pod(&(struct test_pod){.name = "a", .claim = "shared", .node = "node-1"});
    AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"pods\"}") == 1, "a is seen");
    check(is_allowed(admit_creation(&guard, &near)), "on its node");
    for (int i = 0; i < 2; i++)
        check(starts_with(admit_creation(&guard, &far),
                          "denied: 409 claim default/shared (ReadWriteOnce) is in use on node-1"),
              "on another one");
    check(api_count("GET", "/pods/d") == 0 && api_count("GET", "/pods/a") != 0,
          "the API server is asked about a, and not about d, which it may not have yet");
    guard_stop(&guard);
}

/* ---- kinds of pods ---- */

static void what_may_still_become_true_is_a_warning_or_refuses_a_node(void)
{
    const struct test_creation pending = {.pod = {.name = "p", .claim = "data"}};
    const struct test_creation plain = {.pod = {.name = "p", .node = "node-1"}};
    struct guard guard;

    admission_start(&guard, "");
    check(strcmp(admit_creation(&guard, &pending),
                 "allowed; persistentvolumeclaim \"data\" not found") == 0,
          "it may be created later");
    check(strcmp(admit_creation(&guard, &c),
                 "denied: 409 persistentvolumeclaim \"data\" not found") == 0,
          "nobody could keep it for c");
    check(is_allowed(admit_creation(&guard, &plain)), "it needs no claim");
    put_claim("data");
    AWAIT(is_allowed(admit_creation(&guard, &pending)), "it is there");
    check(guard_metric(&guard, "claimguard_reservations ") == 0, "its scheduler will bind it");
    check(is_allowed(admit_creation(&guard, &c)), "it is free");
    check(strcmp(admit_creation(&guard, &pending),
                 "allowed; claim default/data is reserved for pod default/c") == 0,
          "c may go again");
    guard_stop(&guard);
}

/* The claim is created after the pod, and is its own. */
static void a_generic_ephemeral_volume_needs_no_claim_yet(void)
{
    static const char volume[] = ",\"volumes\":[{\"name\":\"v\",\"ephemeral\":{"
                                 "\"volumeClaimTemplate\":{\"spec\":{}}}}]";
    const struct test_creation e = {.pod = {.name = "e", .node = "node-1", .more_spec = volume}};
    const struct test_creation pending = {.pod = {.name = "p", .more_spec = volume}};
    struct guard guard;

    put_pod(&(struct test_pod){.name = "b", .claim = "e-v"});
    admission_start(&guard, "");
    check(is_allowed(admit_creation(&guard, &e)), "with its node");
    check(is_allowed(admit_creation(&guard, &pending)), "without");
    put_claim("e-v");
    AWAIT(starts_with(admit(&guard, &(struct test_review){.pod = "b", .node = "node-2"}),
                      "denied: 409 claim default/e-v is reserved for pod default/e"),
          "it is for e, which no watch has reported");
    AWAIT(starts_with(admit_creation(&guard, &e),
                      "denied: 409 persistentvolumeclaim \"e-v\" was not created for pod "),
          "another pod's");
    guard_stop(&guard);
}

static void an_inline_driver_that_cannot_be_is_denied(void)
{
    static const char reason[] =
        "CSI driver " DRIVER " does not support inline volumes (volume v; it supports Persistent)";
    const struct test_creation p = {.pod = {.name = "p", .more_spec = INLINE}};
    const struct test_creation on_node = {
        .pod = {.name = "p", .more_spec = INLINE, .node = "node-1"}};
    const struct test_creation mirror = {
        .pod = {.name = "p",
                .more_meta = ",\"annotations\":{\"kubernetes.io/config.mirror\":\"x\"}",
                .more_spec = INLINE,
                .node = "node-1"}};
    const struct test_creation both = {
        .pod = {.name = "p",
                .more_spec = ",\"volumes\":[{\"name\":\"w\",\"persistentVolumeClaim\":{"
                             "\"claimName\":\"missing\"}},{\"name\":\"v\",\"csi\":{\"driver\":"
                             "\"" DRIVER "\"}}]"}};
    struct guard guard;

    admission_start(&guard, "csiVolumes: {mode: Enforce}\n");
    check(strcmp(admit_creation(&guard, &p),
                 "allowed; no CSIDriver object for inline volume v (driver " DRIVER ")") == 0,
          "it may be installed later");
    api_put("{\"kind\":\"CSIDriver\",\"metadata\":{\"name\":\"" DRIVER "\"},\"spec\":{"
            "\"volumeLifecycleModes\":[\"Persistent\"]}}");
    AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"csidrivers\"}") == 1,
          "the driver is seen");
    check(strcmp(admit_creation(&guard, &p), scenario_printf("denied: 409 %s", reason)) == 0,
          "nobody can change it");
    check(strcmp(admit_creation(&guard, &on_node), scenario_printf("denied: 409 %s", reason)) == 0,
          "the same");
    check(is_allowed(admit_creation(&guard, &mirror)), "its static pod runs in any case");
    check(strcmp(admit_creation(&guard, &both), scenario_printf("denied: 409 %s", reason)) == 0,
          "whatever else is wrong");
    guard_reload(&guard, "csiVolumes: {mode: Warn}\n");
    check(strcmp(admit_creation(&guard, &p), scenario_printf("allowed; %s", reason)) == 0,
          "a warning");
    guard_stop(&guard);
}

static void a_dry_run_takes_and_writes_nothing(void)
{
    const struct test_creation trial = {.pod = c.pod, .is_dry_run = true};
    const struct test_creation other = {.pod = {.name = "d", .claim = "data", .node = "node-2"},
                                        .is_dry_run = true};
    struct guard guard;

    put_claim("data");
    admission_start(&guard, "readWriteOncePod: {claimLock: Annotation}\n");
    check(is_allowed(admit_creation(&guard, &trial)), "its claim is free");
    check(guard_metric(&guard, "claimguard_reservations ") == 0, "nothing is taken");
    check(api_count("PATCH", "") == 0 && api_count("POST", "") == 0, "nothing is written");
    check(is_allowed(admit_creation(&guard, &c)), "its claim is still free");
    check(starts_with(admit_creation(&guard, &other), "denied: 409 claim default/data is "),
          "now it is c's");
    guard_stop(&guard);
}

static void without_a_decision_the_review_fails(void)
{
    const struct test_creation pending = {.pod = {.name = "p", .claim = "data"}};
    const struct test_creation mirror = {
        .pod = {.name = "m",
                .node = "node-1",
                .more_meta = ",\"annotations\":{\"kubernetes.io/config.mirror\":\"x\"}"}};
    struct guard guard;

    put_claim("data");
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods?", .status = 503});
    admission_launch(&guard, "");
    check(starts_with(admit_creation(&guard, &c),
                      "failed: 500 {\"error\":\"the cache is not synced yet: "),
          "nobody knows who has the claim");
    check(starts_with(admit_creation(&guard, &pending), "failed: 500 "), "nor what exists");
    check(is_allowed(admit_creation(&guard, &mirror)), "a static pod has no claims");
    api_heal();
    guard_await_ready(&guard);
    check(is_allowed(admit_creation(&guard, &c)), "its claim is free");
    guard_stop(&guard);
}

/* From nobody but a client that is no API server. */
static void the_uid_of_another_pod_does_not_free_its_claim(void)
{
    struct guard guard;

    put_pair(NULL);
    put_claim("other");
    admission_start(&guard, "");
    check(is_admitted(&guard, "a", "node-1"), "its claim is free");
    const struct test_creation other = {.pod = {.name = "c", .claim = "other", .node = "node-2"},
                                        .uid = api_text("pods", "default", "a", "metadata.uid")};
    check(starts_with(admit_creation(&guard, &other),
                      "denied: 409 pod default/c has the UID of another pod"),
          "c");
    check(!is_admitted(&guard, "b", "node-2"), "a's reservation stays");
    guard_stop(&guard);
}

/* They become part of requests, and no pod that exists vouches for them. */
static void what_is_no_name_is_refused(void)
{
    static const char *const uids[] = {"", "x\",\"labels\":{\"a\":\"b\"},\"y\":\"", "A/B", "a b"};
    struct guard guard;

    put_claim("data");
    admission_start(&guard, "readWriteOncePod: {claimLock: Annotation}\n");
    for (size_t i = 0; i < sizeof uids / sizeof *uids; i++)
        check(starts_with(
                  admit_creation(&guard, &(struct test_creation){.pod = c.pod, .uid = uids[i]}),
                  "failed: 400 "),
              "UID %s", uids[i]);
    check(api_count("PATCH", "") == 0, "nothing is written");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_pod_that_names_its_node_takes_its_claim),
        SCENARIO(that_it_does_not_exist_yet_does_not_free_its_claim),
        SCENARIO(of_a_creation_and_a_binding_at_the_same_time_one_is_allowed),
        SCENARIO(a_pod_that_is_never_created_keeps_its_claim_for_a_time),
        SCENARIO(a_review_that_is_sent_again_is_answered_again),
        SCENARIO(a_denial_is_not_stale),
        SCENARIO(a_claim_of_one_node_stays_there),
        SCENARIO(what_may_still_become_true_is_a_warning_or_refuses_a_node),
        SCENARIO(a_generic_ephemeral_volume_needs_no_claim_yet),
        SCENARIO(an_inline_driver_that_cannot_be_is_denied),
        SCENARIO(a_dry_run_takes_and_writes_nothing),
        SCENARIO(without_a_decision_the_review_fails),
        SCENARIO(the_uid_of_another_pod_does_not_free_its_claim),
        SCENARIO(what_is_no_name_is_refused),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
