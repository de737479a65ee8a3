/* Reviews of Bindings while claimguard cannot decide, the API server is slow, or claims are locked:
 * nothing is allowed that could not be decided, or too late. */
#include <stdio.h>
#include <string.h>

#include "support/reviews.h"

#define DEFERRAL \
    "deferFSMount:\n  apply: Annotation\n  entries:\n" \
    "  - {storageClass: fast-storage, runtimeClass: microvm}\n"
#define ANNOTATION "readWriteOncePod: {claimLock: Annotation}\n"

enum { DEAD_MS = 65000 /* BINDING_DEAD_MS */ };

/* ---- no decision ---- */

static void before_the_cache_is_synced_reviews_fail(void)
{
    const struct test_review own = {
        .pod = "a", .node = "node-1", .user = "system:serviceaccount:claimguard:claimguard"};
    struct guard guard;

    put_pair(NULL);
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods?", .status = 503});
    admission_launch(&guard, "");
    check(starts_with(admit(&guard, &(struct test_review){.pod = "a", .node = "node-1"}),
                      "failed: 500 {\"error\":\"the cache is not synced yet: "),
          "nobody knows who has the claim");
    check(strcmp(admit(&guard, &own), "allowed") == 0, "its bind has decided");
    api_heal();
    guard_await_ready(&guard);
    check(is_admitted(&guard, "a", "node-1"), "its claim is free");
    guard_stop(&guard);
}

static void put_vm(void)
{
    put_claim("data");
    put_pod(&(struct test_pod){
        .name = "a", .claim = "data", .more_spec = ",\"runtimeClassName\":\"microvm\""});
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
}

static void a_deferral_is_written_before_the_answer(void)
{
    static const char annotation[] = "metadata.annotations.claimguard~io/defer-fs-mount";
    struct guard guard;

    put_vm();
    admission_start(&guard, DEFERRAL);
    check(is_admitted(&guard, "a", "node-1"), "its claim is free");
    check(strcmp(api_text("pods", "default", "a", annotation), "data") == 0 ||
              api_text("pods", "default", "a", annotation)[0] != '\0',
          "it is written");
    check(api_count("POST", "/binding") == 0, "claimguard itself binds nothing");
    guard_stop(&guard);
}

/* With failurePolicy: Ignore, the API server then applies the Binding. */
static void what_cannot_be_written_is_not_allowed_and_keeps_its_claim(void)
{
    struct guard guard;

    put_vm();
    admission_start(&guard, DEFERRAL);
    api_fault(&(struct api_fault){.method = "PATCH", .path = "/pods/a", .status = 503});
    check(starts_with(admit(&guard, &(struct test_review){.pod = "a", .node = "node-1"}),
                      "failed: 500 {\"error\":\"deferFSMount could not be written"),
          "it is not known to be written");
    check(!is_admitted(&guard, "b", "node-2"), "a may be bound nevertheless");
    api_heal();
    check(is_admitted(&guard, "a", "node-1"), "asked again, it is written");
    guard_stop(&guard);
}

/* The pod has changed since the decision, which then cannot be repeated. */
static void what_is_not_decided_again_keeps_its_claim(void)
{
    struct guard guard;

    put_vm();
    admission_start(&guard, DEFERRAL);
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods/a", .ending = API_HANG});
    api_fault(&(struct api_fault){
        .method = "PATCH", .path = "/pods/a", .body = "defer-fs-mount", .status = 409, .times = 1});
    check(starts_with(admit(&guard, &(struct test_review){.pod = "a", .node = "node-1"}),
                      "failed: 500 "),
          "the API server does not say what the pod is now");
    check(!is_admitted(&guard, "b", "node-2"), "a may be bound nevertheless");
    api_heal();
    check(is_admitted(&guard, "a", "node-1"), "asked again, it is written");
    check(!is_admitted(&guard, "b", "node-2"), "a has it");
    check(guard_metric(&guard, "claimguard_reservations ") == 1, "once");
    api_remove("pods", "default", "a");
    AWAIT(is_admitted(&guard, "b", "node-2"), "a needs it no more");
    guard_stop(&guard);
}

/* ---- a slow API server ---- */

/* How long the answers took, without the client's time. */
static double seconds_taken(const struct guard *guard)
{
    return guard_metric(guard, "claimguard_admission_review_duration_seconds_sum{");
}

static void nothing_is_allowed_too_late(void)
{
    const struct test_review a = {.pod = "a", .node = "node-1", .timeout = "2s"};
    struct guard guard;

    put_vm();
    admission_start(&guard, DEFERRAL);
    api_fault(&(struct api_fault){
        .method = "PATCH", .path = "/pods/a", .is_applied = true, .late_ms = 4000});
    check(starts_with(admit(&guard, &a), "failed: 500 "), "its time is over");
    check(seconds_taken(&guard) < 2, "and it is answered in time: %g s", seconds_taken(&guard));
    guard_stop(&guard);
}

/* What the cache says stands, as for filter: an answer that fails may let the pod through. */
static void a_conflict_that_cannot_be_confirmed_is_a_denial(void)
{
    const struct test_review b = {.pod = "b", .node = "node-2", .timeout = "1s"};
    struct guard guard;

    put_pair("node-1");
    admission_start(&guard, "");
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods/", .ending = API_HANG});
    check(
        starts_with(admit(&guard, &b), "denied: 409 claim default/data is in use by pod default/a"),
        "a has it, as far as is known");
    check(seconds_taken(&guard) < 1, "in time: %g s", seconds_taken(&guard));
    guard_stop(&guard);
}

/* The watch is late, and the API server does not answer: that the cache lacks a pod, or a claim, is
 * no reason to deny, or no new pod would be bound with failurePolicy: Ignore either. */
static void what_the_cache_does_not_know_is_no_denial_without_an_answer(void)
{
    struct guard guard;

    put_pair(NULL);
    admission_start(&guard, "");
    api_hold("pods");
    api_hold("persistentvolumeclaims");
    put_pod(&(struct test_pod){.name = "new"});
    put_claim("fresh");
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods/", .status = 503});
    check(starts_with(admit(&guard, &(struct test_review){.pod = "new", .node = "node-1"}),
                      "failed: 500 {\"error\":\"pod default/new, or its claim, is not known here"),
          "the pod may exist");
    api_release("pods");
    put_pod(&(struct test_pod){.name = "c", .claim = "fresh"});
    AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"pods\"}") == 4, "c is seen");
    check(starts_with(admit(&guard, &(struct test_review){.pod = "c", .node = "node-1"}),
                      "failed: 500 {\"error\":\"pod default/c, or its claim, is not known here"),
          "its claim may exist");
    api_heal();
    check(is_admitted(&guard, "new", "node-1"), "the API server has it");
    check(is_admitted(&guard, "c", "node-1"), "and the claim");
    check(starts_with(admit(&guard, &(struct test_review){.pod = "none", .node = "node-1"}),
                      "denied: 409 pods \"none\" not found"),
          "a pod that it does not have is denied");
    guard_stop(&guard);
}

/* With failurePolicy: Ignore, a review that gives up lets the Binding pass. */
static void a_review_waits_as_long_as_it_may_for_what_it_does_not_know(void)
{
    const struct test_review of_pod = {.pod = "new", .node = "node-1", .timeout = "5s"},
                             of_claim = {.pod = "c", .node = "node-1", .timeout = "5s"};
    struct guard guard;

    put_pair(NULL);
    put_pod(&(struct test_pod){.name = "c", .claim = "fresh"});
    admission_start(&guard, "");
    check(is_admitted(&guard, "a", "node-1"), "its claim is free");
    api_hold("pods");
    api_hold("persistentvolumeclaims");
    put_pod(&(struct test_pod){.name = "new", .claim = "data"});
    put_claim("fresh");
    api_fault(&(struct api_fault){.method = "GET", .path = "default/", .late_ms = 2500});
    check(starts_with(admit(&guard, &of_pod),
                      "denied: 409 claim default/data is reserved for pod default/a"),
          "the answer about the pod is in time");
    check(strcmp(admit(&guard, &of_claim), "allowed") == 0, "and the one about the claim");
    guard_stop(&guard);
}

/* ---- claimLock: Annotation ---- */

static void an_admitted_pod_keeps_its_lock_longer_than_a_pending_one(void)
{
    static const char holder[] = "metadata.annotations.claimguard~io/holder";
    static const char admitted[] = "metadata.annotations.claimguard~io/admitted";
    struct guard one, two;

    put_pair(NULL);
    admission_start(&one, ANNOTATION);
    admission_start(&two, ANNOTATION);
    check(is_admitted(&one, "a", "node-1"), "its claim is free");
    check(strstr(api_text("persistentvolumeclaims", "default", "data", holder), "/a") != NULL,
          "it is locked");
    check(strcmp(api_text("persistentvolumeclaims", "default", "data", admitted), "true") == 0,
          "by a review");
    check(starts_with(admit(&two, &(struct test_review){.pod = "b", .node = "node-2"}),
                      "denied: 409 claim default/data is locked for pod default/a"),
          "the other replica sees it");
    sleep_ms(6000); /* over LOCK_PATIENCE_MS */
    check(!is_admitted(&two, "b", "node-2"), "no fence stops a's Binding");
    check(!bind_succeeds(&two, "b", "node-2"), "nor for a bind");
    sleep_ms(DEAD_MS - 5000);
    check(is_admitted(&two, "b", "node-2"), "no API server works on it any more");
    guard_stop(&one);
    guard_stop(&two);
}

/* The second review of a locks data again, and fails for the other claim. */
static void a_lock_of_an_earlier_review_is_not_released(void)
{
    static const char holder[] = "metadata.annotations.claimguard~io/holder";
    struct guard guard;

    put_claim("data");
    put_claim("logs");
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .second_claim = "logs"});
    admission_start(&guard, ANNOTATION);
    check(is_admitted(&guard, "a", "node-1"), "its claims are free");
    api_fault(&(struct api_fault){
        .method = "GET", .path = "/persistentvolumeclaims/logs", .status = 503});
    check(!is_admitted(&guard, "a", "node-1"), "logs cannot be locked");
    check(strstr(api_text("persistentvolumeclaims", "default", "data", holder), "/a") != NULL,
          "the first Binding may still be applied");
    guard_stop(&guard);
}

/* With failurePolicy: Ignore, its Binding is applied. */
static void a_review_without_a_decision_keeps_the_locks_that_it_has(void)
{
    static const char holder[] = "metadata.annotations.claimguard~io/holder";
    struct guard guard;

    put_claim("data");
    put_claim("logs");
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .second_claim = "logs"});
    admission_start(&guard, ANNOTATION);
    api_fault(&(struct api_fault){
        .method = "GET", .path = "/persistentvolumeclaims/logs", .status = 503});
    check(starts_with(admit(&guard, &(struct test_review){.pod = "a", .node = "node-1"}),
                      "failed: 500 "),
          "logs cannot be locked");
    check(strstr(api_text("persistentvolumeclaims", "default", "data", holder), "/a") != NULL,
          "data is a's");
    guard_stop(&guard);
}

/* The mark says that the Binding may come late. */
static void a_lock_whose_mark_a_webhook_removes_is_none(void)
{
    struct guard guard;

    put_pair(NULL);
    admission_start(&guard, ANNOTATION);
    const char *answer = scenario_printf(
        "{\"kind\":\"PersistentVolumeClaim\",\"apiVersion\":\"v1\",\"metadata\":{\"namespace\":"
        "\"default\",\"name\":\"data\",\"uid\":\"%s\",\"resourceVersion\":\"1000000\","
        "\"annotations\":{\"claimguard.io/holder\":\"%s/a\"}},"
        "\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"]}}",
        api_text("persistentvolumeclaims", "default", "data", "metadata.uid"),
        api_text("pods", "default", "a", "metadata.uid"));
    api_fault(&(struct api_fault){.method = "PATCH",
                                  .path = "/persistentvolumeclaims/data",
                                  .status = 200,
                                  .answer = answer});
    check(starts_with(admit(&guard, &(struct test_review){.pod = "a", .node = "node-1"}),
                      "failed: 500 "),
          "it has no such lock");
    guard_stop(&guard);
}

static void a_claim_that_is_created_again_is_still_a_s(void)
{
    struct guard guard;

    put_pair(NULL);
    admission_start(&guard, "");
    check(is_admitted(&guard, "a", "node-1"), "its claim is free");
    api_remove("persistentvolumeclaims", "default", "data");
    AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"persistentvolumeclaims\"} ") ==
              0,
          "it is seen to go");
    put_claim("data");
    AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"persistentvolumeclaims\"} ") ==
              1,
          "it is seen to come");
    check(!is_admitted(&guard, "b", "node-2"), "a's Binding is on its way");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_lock_whose_mark_a_webhook_removes_is_none),
        SCENARIO(a_claim_that_is_created_again_is_still_a_s),
        SCENARIO(before_the_cache_is_synced_reviews_fail),
        SCENARIO(a_deferral_is_written_before_the_answer),
        SCENARIO(what_cannot_be_written_is_not_allowed_and_keeps_its_claim),
        SCENARIO(what_is_not_decided_again_keeps_its_claim),
        SCENARIO(nothing_is_allowed_too_late),
        SCENARIO(a_conflict_that_cannot_be_confirmed_is_a_denial),
        SCENARIO(what_the_cache_does_not_know_is_no_denial_without_an_answer),
        SCENARIO(a_review_waits_as_long_as_it_may_for_what_it_does_not_know),
        SCENARIO(an_admitted_pod_keeps_its_lock_longer_than_a_pending_one),
        SCENARIO(a_lock_of_an_earlier_review_is_not_released),
        SCENARIO(a_review_without_a_decision_keeps_the_locks_that_it_has),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
