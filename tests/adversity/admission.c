/* Reviews of Bindings that other clients post: of two pods for one claim, one is allowed, whatever
 * becomes of its Binding. Watches are held, or
 * late, so that only claimguard's own looks can say what happened. */
#include <stdio.h>
#include <string.h>

#include "support/reviews.h"

#define DEFERRAL \
    "deferFSMount:\n  apply: Annotation\n  entries:\n" \
    "  - {storageClass: fast-storage, runtimeClass: microvm}\n"
#define ANNOTATION "readWriteOncePod: {claimLock: Annotation}\n"

enum { DEAD_MS = 65000 /* BINDING_DEAD_MS */ };

/* ---- two pods, one claim ---- */

static void of_two_reviews_for_one_claim_one_is_allowed(void)
{
    const struct test_review b = {.pod = "b", .node = "node-2"};
    struct guard guard;

    put_pair(NULL);
    admission_start(&guard, "");
    check(is_admitted(&guard, "a", "node-1"), "its claim is free");
    check(starts_with(admit(&guard, &b), "denied: 409 claim default/data is "), "it is a's");
    check(!filter_passes(&guard, "b"), "for the extender, too");
    check(guard_metric(&guard, "claimguard_binds_in_doubt ") == 0, "no answer was lost");
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .node = "node-1"});
    AWAIT(guard_metric(&guard, "claimguard_reservations ") == 0, "a is seen bound");
    check(starts_with(admit(&guard, &b),
                      "denied: 409 claim default/data is in use by pod default/a on node-1"),
          "the holder and its node");
    api_remove("pods", "default", "a");
    AWAIT(is_admitted(&guard, "b", "node-2"), "it is free again");
    check(guard_metric(&guard, "claimguard_admission_reviews_total{path=\"/admit/binding\","
                               "result=\"allowed\"}") >= 2,
          "two were allowed");
    check(guard_metric(&guard, "claimguard_admission_review_duration_seconds_count{") >= 4,
          "all took a time");
    guard_stop(&guard);
}

static void of_reviews_at_the_same_time_one_is_allowed(void)
{
    enum { ROUNDS = 20 };
    struct guard guard;

    put_pair(NULL);
    admission_start(&guard, "");
    api_hold("pods");
    for (int i = 0; i < ROUNDS; i++) {
        struct review_beside a, b;
        const char *claim = scenario_printf("data-%d", i);
        const char *one = scenario_printf("a-%d", i), *two = scenario_printf("b-%d", i);
        put_claim(claim);
        put_pod(&(struct test_pod){.name = one, .claim = claim});
        put_pod(&(struct test_pod){.name = two, .claim = claim});
        review_begin(&a, &guard, (struct test_review){.pod = one, .node = "node-1"});
        review_begin(&b, &guard, (struct test_review){.pod = two, .node = "node-2"});
        bool is_a = strcmp(review_end(&a), "allowed") == 0,
             is_b = strcmp(review_end(&b), "allowed") == 0;
        check(is_a != is_b, "one: %s, %s", a.answer, b.answer);
    }
    api_release("pods");
    guard_stop(&guard);
}

/* The API server had a Binding refused by another webhook, or lost it. */
static void a_pod_that_is_never_bound_keeps_its_claim_for_a_time(void)
{
    struct guard guard;

    put_pair(NULL);
    admission_start(&guard, "");
    check(is_admitted(&guard, "a", "node-1"), "its claim is free");
    sleep_ms(DEAD_MS - 5000);
    check(!is_admitted(&guard, "b", "node-2"), "a's Binding may still be applied");
    sleep_ms(8000);
    check(is_admitted(&guard, "b", "node-2"), "no API server works on it any more");
    guard_stop(&guard);
}

static void a_review_that_is_sent_again_is_answered_again(void)
{
    struct guard guard;

    put_pair(NULL);
    admission_start(&guard, "");
    for (int i = 0; i < 3; i++)
        check(is_admitted(&guard, "a", "node-1"), "its own claim");
    check(!is_admitted(&guard, "b", "node-2"), "it is a's");
    api_hold("pods");
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .node = "node-1"});
    check(is_admitted(&guard, "a", "node-1"), "the API server says that it is bound");
    api_release("pods");
    AWAIT(guard_metric(&guard, "claimguard_reservations ") == 0, "a is seen bound");
    check(is_admitted(&guard, "a", "node-1"), "the same");
    check(starts_with(admit(&guard, &(struct test_review){.pod = "a", .node = "node-2"}),
                      "denied: 409 "),
          "it is on another node");
    guard_stop(&guard);
}

static void a_pod_that_goes_frees_its_claim_at_once(void)
{
    struct guard guard;

    put_pair(NULL);
    admission_start(&guard, "");
    check(is_admitted(&guard, "a", "node-1"), "its claim is free");
    api_remove("pods", "default", "a");
    AWAIT(is_admitted(&guard, "b", "node-2"), "a needs it no more");
    guard_stop(&guard);
}

static void a_denial_is_not_stale(void)
{
    struct guard guard;

    put_pair("node-1");
    admission_start(&guard, "");
    api_hold("pods");
    api_remove("pods", "default", "a");
    check(is_admitted(&guard, "b", "node-2"), "the API server says that a is gone");
    api_release("pods");
    guard_stop(&guard);
}

static void a_pod_that_no_watch_has_reported_is_found(void)
{
    struct guard guard;

    put_claim("data");
    admission_start(&guard, "");
    api_hold("pods");
    put_pod(&(struct test_pod){.name = "new", .claim = "data"});
    check(is_admitted(&guard, "new", "node-1"), "a GET finds it");
    check(starts_with(admit(&guard, &(struct test_review){.pod = "nobody", .node = "node-1"}),
                      "denied: 409 pods \"nobody\" not found"),
          "and this one not");
    api_release("pods");
    guard_stop(&guard);
}

static void a_pod_and_its_claim_that_no_watch_has_reported_are_found(void)
{
    struct guard guard;

    put_claim("other");
    admission_start(&guard, "");
    api_hold("pods");
    api_hold("persistentvolumeclaims");
    put_claim("data");
    put_pod(&(struct test_pod){.name = "new", .claim = "data"});
    check(is_admitted(&guard, "new", "node-1"), "a GET finds the pod, and one its claim");
    api_release("persistentvolumeclaims");
    api_release("pods");
    guard_stop(&guard);
}

/* ---- kinds of reviews ---- */

static void a_dry_run_takes_and_writes_nothing(void)
{
    const struct test_review a = {.pod = "a", .node = "node-1", .is_dry_run = true};
    const struct test_review b = {.pod = "b", .node = "node-1", .is_dry_run = true};
    struct guard guard;

    put_claim("data");
    admission_start(&guard, ANNOTATION DEFERRAL); /* it requeues the pods that wait already */
    put_pod(&(struct test_pod){
        .name = "a", .claim = "data", .more_spec = ",\"runtimeClassName\":\"microvm\""});
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"pods\"}") == 2,
          "both are seen");
    check(strcmp(admit(&guard, &a), "allowed") == 0, "its claim is free");
    check(guard_metric(&guard, "claimguard_reservations ") == 0, "nothing is taken");
    check(api_count("PATCH", "") == 0 && api_count("POST", "") == 0, "nothing is written");
    check(is_admitted(&guard, "a", "node-1"), "its claim is still free");
    check(starts_with(admit(&guard, &b), "denied: 409 claim default/data is "), "now it is a's");
    check(guard_metric(&guard, "claimguard_bind_conflicts_total ") == 0, "it would have been");
    size_t asked = api_count("GET", "");
    check(starts_with(admit(&guard, &b), "denied: 409 ") && api_count("GET", "") == asked,
          "the API server is not asked: anyone may try thousands");
    guard_stop(&guard);
}

static void both_paths_are_judged(void)
{
    struct guard guard;

    put_pair(NULL);
    admission_start(&guard, "");
    check(strcmp(admit(&guard,
                       &(struct test_review){.pod = "a", .node = "node-1", .is_old_path = true}),
                 "allowed") == 0,
          "its claim is free");
    check(
        starts_with(
            admit(&guard, &(struct test_review){.pod = "b", .node = "node-2", .is_old_path = true}),
            "denied: 409 "),
        "it is a's");
    guard_stop(&guard);
}

/* Between its review and its Binding, a pod that was not judged may get the name. */
static void a_binding_without_uid_is_denied_unless_it_is_a_dry_run(void)
{
    const struct test_review b = {.pod = "b", .node = "node-2", .has_no_uid = true};
    const struct test_review trial = {
        .pod = "b", .node = "node-2", .has_no_uid = true, .is_dry_run = true};
    const struct test_review nobody = {
        .pod = "nobody", .node = "node-1", .has_no_uid = true, .is_dry_run = true};
    const struct test_review own = {.pod = "b",
                                    .node = "node-2",
                                    .has_no_uid = true,
                                    .user = "system:serviceaccount:claimguard:claimguard"};
    struct guard guard;

    put_pair(NULL);
    admission_start(&guard, "");
    check(strcmp(admit(&guard, &b),
                 "denied: 409 the Binding of pod default/b has no UID, so it might bind a later "
                 "pod of that name: set its metadata.uid to the pod's UID, and post it to "
                 "pods/b/binding (bindings drops the UID)") == 0,
          "though its claim is free");
    check(guard_metric(&guard, "claimguard_reservations ") == 0, "nothing is reserved");
    check(strcmp(admit(&guard, &trial), "allowed") == 0, "it binds nobody");
    check(starts_with(admit(&guard, &nobody), "denied: 409 pods \"nobody\" not found"), "the same");
    check(strcmp(admit(&guard, &own), "allowed") == 0, "its bind has decided");
    check(is_admitted(&guard, "a", "node-1"), "with its UID");
    check(starts_with(admit(&guard, &trial), "denied: 409 claim default/data is "), "it is a's");
    guard_stop(&guard);
}

/* What it has now says nothing about a later pod of its name. */
static void a_binding_without_uid_is_denied_for_each_pod(void)
{
    static const char *const pods[] = {"plain", "bound", "waits", "free", "nobody"};
    struct guard guard;

    put_claim("data");
    put_claim("free");
    put_pod(&(struct test_pod){.name = "plain"});
    put_pod(&(struct test_pod){.name = "bound", .claim = "data", .node = "node-1"});
    put_pod(&(struct test_pod){.name = "waits", .claim = "data"});
    put_pod(&(struct test_pod){.name = "free", .claim = "free"});
    admission_start(&guard, ANNOTATION);
    for (size_t i = 0; i < 2 * sizeof pods / sizeof *pods; i++) {
        const struct test_review review = {
            .pod = pods[i / 2], .node = "node-1", .has_no_uid = true, .is_old_path = i % 2 == 1};
        check(starts_with(admit(&guard, &review), scenario_printf("denied: 409 the Binding of pod "
                                                                  "default/%s has no UID",
                                                                  review.pod)),
              "row %zu", i);
    }
    check(guard_metric(&guard, "claimguard_reservations ") == 0, "nothing is reserved");
    guard_stop(&guard);
}

/* The API server copies a Binding's annotations to the pod. */
static void a_binding_s_annotation_changes_no_decision(void)
{
    static const struct {
        struct test_review review;
        bool is_allowed;
    } rows[] = {
        {{.pod = "a", .node = "node-1", .annotation = "v"}, false}, /* it has just been written */
        {{.pod = "a", .node = "node-1", .annotation = "disabled"}, false},
        {{.pod = "a", .node = "node-1", .annotation = ""}, false},
        {{.pod = "a", .node = "node-1", .annotation = "v"}, true},  /* a copy of what the pod has */
        {{.pod = "b", .node = "node-1", .annotation = "v"}, false}, /* nothing is deferred */
        {{.pod = "b", .node = "node-1", .annotation = "disabled"}, true},
    };
    struct guard guard;

    put_claim("data");
    put_claim("other");
    put_pod(&(struct test_pod){
        .name = "a", .claim = "data", .more_spec = ",\"runtimeClassName\":\"microvm\""});
    put_pod(&(struct test_pod){.name = "b", .claim = "other"});
    admission_start(&guard, DEFERRAL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct test_review *review = &rows[i].review;
        if (rows[i].is_allowed)
            AWAIT(strcmp(admit(&guard, review), "allowed") == 0, "it has what the pod has");
        else
            check(starts_with(admit(&guard, review), "denied: 409 the Binding of pod "), "row %zu",
                  i);
        check(strcmp(api_text("pods", "default", "a",
                              "metadata.annotations.claimguard~io/defer-fs-mount"),
                     "v") == 0,
              "the decision is on the pod");
    }
    check(guard_metric(&guard, "claimguard_reservations ") == 2, "of those that were allowed");
    guard_stop(&guard);
}

/* Their bind has judged them, and waits for the API server, which waits for the review. */
static void its_own_bindings_are_let_through(void)
{
    const struct test_review own = {
        .pod = "b", .node = "node-2", .user = "system:serviceaccount:claimguard:claimguard"};
    const struct test_review other = {.pod = "b", .node = "node-2", .user = "me"};
    struct guard guard;

    put_pair("node-1");
    admission_start(&guard, "");
    check(strcmp(admit(&guard, &own), "allowed") == 0, "by the default's name");
    check(starts_with(admit(&guard, &other), "denied: 409 "), "nobody else's");
    guard_stop(&guard);
}

static void own_user_can_be_configured(void)
{
    const struct test_review own = {.pod = "b", .node = "node-2", .user = "me"};
    char config[512];
    struct guard guard;

    put_pair("node-1");
    admission_launch(&guard, "  ownUser: me\n");
    guard_await_ready(&guard);
    check(strcmp(admit(&guard, &own), "allowed") == 0, "by its name");
    (void)snprintf(config, sizeof config,
                   "admission:\n  listen: 127.0.0.1:0\n  ownUser: you\n"
                   "  tls: {certFile: %s/server.crt, keyFile: %s/server.key}\n",
                   scenario_folder(), scenario_folder());
    guard_reload(&guard, config);
    check(starts_with(admit(&guard, &own), "denied: 409 "), "it is not its name any more");
    guard_stop(&guard);
}

/* Nothing is denied, and the client gets a warning. */
static void in_mode_observe_what_would_be_denied_is_allowed_with_a_warning(void)
{
    const struct test_review b = {.pod = "b", .node = "node-2"};
    struct guard guard;

    put_pair("node-1");
    admission_launch(&guard, "  mode: Observe\n");
    guard_await_ready(&guard);
    check(strcmp(admit(&guard, &b),
                 "allowed; claimguard would deny this: claim default/data is in use by pod "
                 "default/a on node-1") == 0,
          "%s", admit(&guard, &b));
    check(guard_metric(&guard, "claimguard_admission_reviews_total{path=\"/admit/binding\","
                               "result=\"observed\"}") >= 1,
          "it is counted");
    check(guard_metric(&guard, "claimguard_admission_reviews_total{path=\"/admit/binding\","
                               "result=\"denied\"}") == 0,
          "not as denied");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(of_two_reviews_for_one_claim_one_is_allowed),
        SCENARIO(of_reviews_at_the_same_time_one_is_allowed),
        SCENARIO(a_pod_that_is_never_bound_keeps_its_claim_for_a_time),
        SCENARIO(a_review_that_is_sent_again_is_answered_again),
        SCENARIO(a_pod_that_goes_frees_its_claim_at_once),
        SCENARIO(a_denial_is_not_stale),
        SCENARIO(a_pod_that_no_watch_has_reported_is_found),
        SCENARIO(a_pod_and_its_claim_that_no_watch_has_reported_are_found),
        SCENARIO(a_dry_run_takes_and_writes_nothing),
        SCENARIO(both_paths_are_judged),
        SCENARIO(a_binding_without_uid_is_denied_unless_it_is_a_dry_run),
        SCENARIO(a_binding_without_uid_is_denied_for_each_pod),
        SCENARIO(a_binding_s_annotation_changes_no_decision),
        SCENARIO(its_own_bindings_are_let_through),
        SCENARIO(own_user_can_be_configured),
        SCENARIO(in_mode_observe_what_would_be_denied_is_allowed_with_a_warning),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
