/* claimLock: Annotation, with two claimguards: a claim never has two bound pods, even if a watch is
 * late or an answer is false. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/scenario.h"

static const char annotation[] = "readWriteOncePod: {claimLock: Annotation}\n";

/* A claim that another claimguard has locked for the pod. */
static void put_locked_claim(const char *name, const char *uid, const char *pod)
{
    api_put(
        "{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"default\",\"name\":"
        "\"%s\",\"annotations\":{\"claimguard.io/holder\":\"%s/%s\"}},\"spec\":{\"accessModes\":["
        "\"ReadWriteOncePod\"],\"volumeName\":\"pv-%s\"},\"status\":{\"phase\":\"Bound\"}}",
        name, uid, pod, name);
}

static void check_one_is_bound(void)
{
    check((node_of("a")[0] == '\0') != (node_of("b")[0] == '\0'),
          "one has the claim; a is on '%s', b on '%s'", node_of("a"), node_of("b"));
}

static bool sees_both(const struct guard *guard)
{
    return guard_metric(guard, "claimguard_cache_objects{resource=\"pods\"}") == 2;
}

/* It is gone as soon as no bound pod names it, and its lock with it (found by tests/proof). */
static void a_claim_that_is_being_deleted_is_not_locked(void)
{
    struct guard guard;
    struct beside bind;

    put_pair(NULL);
    put_claim("data");
    guard_start(&guard, annotation);
    api_hold("persistentvolumeclaims");
    api_fault(&(struct api_fault){
        .method = "GET", .path = "/persistentvolumeclaims/data", .times = 1, .delay_ms = 1000});
    bind_beside(&bind, &guard, "a", "node-1");
    check(api_wait("GET", "/persistentvolumeclaims/data", 1), "it will be locked");
    api_put("{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"default\",\"name\":"
            "\"data\",\"uid\":\"%s\",\"deletionTimestamp\":\"2026-11-26T15:11:42Z\","
            "\"finalizers\":[\"kubernetes.io/pvc-protection\"]},\"spec\":{\"accessModes\":["
            "\"ReadWriteOncePod\"],\"volumeName\":\"pv-data\"},\"status\":{\"phase\":\"Bound\"}}",
            api_text("persistentvolumeclaims", "default", "data", "metadata.uid"));
    (void)beside_end(&bind);
    check(node_of("a")[0] == '\0', "it is not bound");
    check(api_count("PATCH", "/persistentvolumeclaims/data") == 0, "it is not locked");
    guard_stop(&guard);
}

/* ---- locks of other pods ---- */

static void a_lock_of_a_pending_pod_is_respected_for_its_time(void)
{
    struct guard guard;

    put_pair(NULL);
    put_locked_claim("data", api_text("pods", "default", "a", "metadata.uid"), "a");
    guard_start(&guard, annotation);
    check(!bind_succeeds(&guard, "b", "node-2"), "another claimguard may be binding it");
    check(guard_metric(&guard, "claimguard_claim_lock_takeovers_total ") == 0, "it has the lock");
    sleep_ms(5200); /* LOCK_PATIENCE_MS */
    check(bind_succeeds(&guard, "b", "node-2"), "it is taken over");
    check(guard_metric(&guard, "claimguard_claim_lock_takeovers_total ") == 1, "which counts");
    guard_stop(&guard);
}

/* A backup or a resizer may write the claim more often than the lock's time. */
static void a_lock_gets_old_on_a_claim_that_others_write(void)
{
    static const char change[] =
        "{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"default\",\"name\":"
        "\"data\",\"annotations\":{\"claimguard.io/holder\":\"%s/a\",\"claimguard.io/locked-at\":"
        "\"7\",\"changed\":\"%d\"}},\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"],"
        "\"volumeName\":"
        "\"pv-data\"},\"status\":{\"phase\":\"Bound\"}}";
    struct guard guard;

    put_pair(NULL);
    const char *uid = api_text("pods", "default", "a", "metadata.uid");
    api_put(change, uid, 0);
    guard_start(&guard, annotation);
    check(!bind_succeeds(&guard, "b", "node-2"), "another claimguard may be binding it");
    sleep_ms(5200); /* LOCK_PATIENCE_MS */
    api_put(change, uid, 1);
    check(bind_succeeds(&guard, "b", "node-2"), "it is the same lock");
    guard_stop(&guard);
}

/* Anyone who may write annotations may write anything into it. */
static void a_lock_that_no_claimguard_wrote_is_replaced_and_not_asked_about(void)
{
    struct guard guard;

    put_pair(NULL);
    put_locked_claim("data", "A:1", "secret%20name");
    guard_start(&guard, annotation);
    check(bind_succeeds(&guard, "b", "node-2"), "it locks nothing");
    check(api_count("GET", "secret") == 0, "its text is in no request");
    guard_stop(&guard);
}

/* What is remembered of each lock is no longer than what claimguard writes. */
static void a_lock_with_texts_that_are_too_long_is_not_remembered(void)
{
    static const char lock[] =
        "{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"default\",\"name\":"
        "\"data\",\"annotations\":{\"claimguard.io/holder\":\"%s/%s\",\"claimguard.io/locked-at\":"
        "\"%s\",\"claimguard.io/admitted\":\"%s\",\"changed\":\"%d\"}},\"spec\":{\"accessModes\":["
        "\"ReadWriteOncePod\"],\"volumeName\":\"pv-data\"},\"status\":{\"phase\":\"Bound\"}}";
    char text[300] = "";
    struct guard guard;

    memset(text, '1', sizeof text - 1);
    put_pair(NULL);
    const char *uid = api_text("pods", "default", "a", "metadata.uid");
    put_locked_claim("other", uid, text);
    put_pod(&(struct test_pod){.name = "d", .claim = "other"});
    guard_start(&guard, annotation);
    api_put(lock, uid, "a", text, "", 0);
    check(!bind_succeeds(&guard, "b", "node-2"), "another claimguard may be binding a");
    sleep_ms(5200); /* LOCK_PATIENCE_MS */
    api_put(lock, uid, "a", text, "", 1);
    check(!bind_succeeds(&guard, "b", "node-2"), "with no version of its own, it is a new lock");
    api_put(lock, text, "a", "7", "created", 2);
    check(bind_succeeds(&guard, "b", "node-2"), "no pod has such a UID");
    check(bind_succeeds(&guard, "d", "node-1"), "nor such a name");
    guard_stop(&guard);
}

/* Of two claims, the first is locked, and the second belongs to another pod. */
static void only_locks_that_were_taken_are_given_back(void)
{
    static const char holder[] = "metadata.annotations.claimguard~io/holder";
    struct guard guard;

    put_pair(NULL);
    put_claim("cache");
    put_pod(&(struct test_pod){.name = "both", .claim = "cache", .second_claim = "data"});
    put_locked_claim("data", api_text("pods", "default", "a", "metadata.uid"), "a");
    guard_start(&guard, annotation);
    check(!bind_succeeds(&guard, "both", "node-2"), "another claimguard may be binding a");
    check(api_count("PATCH", "/persistentvolumeclaims/cache") == 2,
          "it was locked, and given back");
    check(api_text("persistentvolumeclaims", "default", "cache", holder)[0] == '\0', "nobody's");
    check(api_count("PATCH", "/persistentvolumeclaims/data") == 0, "the other was never its own");
    check(api_text("persistentvolumeclaims", "default", "data", holder)[0] != '\0', "still a's");
    guard_stop(&guard);
}

/* There are too many writers, or it answers the second of two sendings: it does not show whether
 * the pod exists. */
static void a_fence_that_meets_a_conflict_is_no_proof_that_the_pod_is_gone(void)
{
    struct api_fault before_it_was_bound = {
        .method = "GET", .path = "/pods/a", .times = 1, .status = 200};
    struct guard guard;

    put_pair(NULL);
    put_locked_claim("data", api_text("pods", "default", "a", "metadata.uid"), "a");
    guard_start(&guard, annotation);
    check(!bind_succeeds(&guard, "b", "node-2"), "it is locked for a");
    before_it_was_bound.answer = api_object("pods", "default", "a");
    sleep_ms(5200); /* LOCK_PATIENCE_MS */
    api_hold("pods");
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .node = "node-1"});
    api_fault(&before_it_was_bound); /* a is bound between this GET and the fence */
    api_fault(&(struct api_fault){.method = "PATCH", .path = "/pods/a", .status = 409});
    check(!bind_succeeds(&guard, "b", "node-2") && node_of("b")[0] == '\0', "the claim is a's");
    guard_stop(&guard);
}

/* ---- the lock of a claim that is gone: its pod, which may still be bound, uses the next one ----
 */

static const char claims_metric[] = "claimguard_cache_objects{resource=\"persistentvolumeclaims\"}";

/* A claim with a whole lock: `more` are annotations. */
static void put_old_lock(const char *name, const char *pod, const char *more)
{
    api_put(
        "{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"default\",\"name\":"
        "\"%s\",\"annotations\":{\"claimguard.io/holder\":\"%s/%s\",\"claimguard.io/locked-at\":"
        "\"7\"%s}},\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"],\"volumeName\":\"pv-data\"},"
        "\"status\":{\"phase\":\"Bound\"}}",
        name, api_text("pods", "default", pod, "metadata.uid"), pod, more);
}

/* a's claim, which another claimguard has locked for it, is deleted and created again. */
static void put_next_claim(struct guard *guard)
{
    put_pair(NULL);
    put_locked_claim("data", api_text("pods", "default", "a", "metadata.uid"), "a");
    guard_start(guard, annotation);
    api_remove("persistentvolumeclaims", "default", "data");
    put_claim("data");
    put_claim("behind");
    AWAIT(guard_metric(guard, claims_metric) == 2, "the watch has reported all that");
}

static void the_lock_of_a_claim_that_is_gone_counts_while_its_pod_is_bound(void)
{
    struct guard guard;

    put_next_claim(&guard);
    api_hold("pods");
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .node = "node-1"});
    check(!bind_succeeds(&guard, "b", "node-2") && node_of("b")[0] == '\0', "the claim is a's");
    guard_stop(&guard);
}

static void the_lock_of_a_claim_that_is_gone_is_respected_for_its_time(void)
{
    struct guard guard;

    put_next_claim(&guard);
    check(!bind_succeeds(&guard, "b", "node-2"), "another claimguard may be binding a");
    sleep_ms(5200); /* LOCK_PATIENCE_MS */
    check(bind_succeeds(&guard, "b", "node-2"), "a is fenced");
    check(api_count("PATCH", "claimguard.io/fenced") == 1, "once");
    guard_stop(&guard);
}

static void the_lock_of_a_claim_that_is_gone_ends_with_its_pod(void)
{
    struct guard guard;

    put_next_claim(&guard);
    api_hold("pods");
    api_remove("pods", "default", "a");
    check(bind_succeeds(&guard, "b", "node-2"), "the claim is nobody's");
    guard_stop(&guard);
}

/* Nobody has asked about the claim since. */
static void the_lock_of_a_claim_that_is_gone_gets_old_by_itself(void)
{
    struct guard guard;

    put_pair(NULL);
    put_old_lock("data", "a", "");
    guard_start(&guard, annotation);
    api_remove("persistentvolumeclaims", "default", "data");
    sleep_ms(5500); /* LOCK_PATIENCE_MS */
    put_claim("data");
    AWAIT(bind_succeeds(&guard, "b", "node-2"), "a is fenced");
    check(guard_metric(&guard, "claimguard_bind_conflicts_total ") == 0, "at once");
    check(api_count("PATCH", "claimguard.io/fenced") == 1, "once");
    guard_stop(&guard);
}

/* The next claim comes from a backup, with the annotation of a pod that is long gone. */
static void an_old_lock_on_the_next_claim_does_not_hide_the_former_one(void)
{
    struct guard guard;

    put_pair(NULL);
    put_locked_claim("data", api_text("pods", "default", "a", "metadata.uid"), "a");
    guard_start(&guard, annotation);
    api_remove("persistentvolumeclaims", "default", "data");
    put_locked_claim("data", "11111111-2222-4333-8444-555555555555", "z");
    put_claim("behind");
    AWAIT(guard_metric(&guard, claims_metric) == 2, "the watch has reported all that");
    check(!bind_succeeds(&guard, "b", "node-2"), "another claimguard may be binding a");
    guard_stop(&guard);
}

/* A Binding of a was let pass by a review, and may be applied for 65 s: no fence stops it. Then a
 * is bound by an extender, too, which fails. */
static void the_next_claim_has_the_mark_of_the_former_lock(void)
{
    struct guard guard, other;

    put_pair(NULL);
    put_old_lock("data", "a", ",\"claimguard.io/admitted\":\"true\"");
    guard_start(&guard, annotation);
    guard_start(&other, annotation);
    api_remove("persistentvolumeclaims", "default", "data");
    put_claim("data");
    put_claim("behind");
    AWAIT(guard_metric(&guard, claims_metric) == 2 && guard_metric(&other, claims_metric) == 2,
          "the watch has reported all that");
    api_fault(&(struct api_fault){
        .method = "POST", .path = "/pods/a/binding", .times = 1, .status = 500});
    (void)bind_succeeds(&guard, "a", "node-1");
    check(!bind_succeeds(&other, "b", "node-2"), "it is locked for a");
    sleep_ms(5500); /* LOCK_PATIENCE_MS */
    check(!bind_succeeds(&other, "b", "node-2") && node_of("b")[0] == '\0', "it is still a's");
    guard_stop(&guard);
    guard_stop(&other);
}

/* The watch of claims has reported neither that the former claim was locked nor that it is gone. */
static void a_claim_that_the_watch_has_not_reported_is_not_locked(void)
{
    struct guard guard;

    put_pair(NULL);
    guard_start(&guard, annotation);
    api_hold("persistentvolumeclaims");
    put_locked_claim("data", api_text("pods", "default", "a", "metadata.uid"), "a");
    api_remove("persistentvolumeclaims", "default", "data");
    put_claim("data");
    api_hold("pods");
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .node = "node-1"});
    check(!bind_succeeds(&guard, "b", "node-2") && node_of("b")[0] == '\0', "the claim is a's");
    api_release("pods");
    api_release("persistentvolumeclaims");
    api_remove("pods", "default", "a");
    AWAIT(bind_succeeds(&guard, "b", "node-2"), "all is reported");
    guard_stop(&guard);
}

/* ---- a pod's own lock, taken again: the version before it must not be valid any more ---- */

/* b has fenced a, which has been pending for long, and is about to lock the claim; in between, a is
 * bound again. */
/* ---- claims that a list has brought ---- */

/* A claim that is `age_s` seconds old, and was never locked. */
static void put_aged_claim(const char *name, long long age_s, const char *holder)
{
    char created[32];
    time_t at = time(NULL) - age_s;
    struct tm utc;

    (void)strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &utc));
    api_put("{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"default\",\"name\":"
            "\"%s\",\"creationTimestamp\":\"%s\",\"annotations\":{%s}},\"spec\":{\"accessModes\":["
            "\"ReadWriteOncePod\"],"
            "\"volumeName\":\"pv-%s\"},\"status\":{\"phase\":\"Bound\"}}",
            name, created, holder, name);
}

static void check_waits(const struct guard *guard)
{
    check(!bind_succeeds(guard, "b", "node-2"), "a may have locked an earlier claim");
    check(guard_metric(guard, "claimguard_bind_conflicts_total ") == 0,
          "nobody is known to have it");
    check(api_count("PATCH", "/persistentvolumeclaims/data") == 0, "it is not locked");
}

/* a's Binding may be on its way: another claimguard has locked an earlier claim of that name for
 * it, which was deleted and created again before this one started. */
static void a_claim_from_a_list_is_not_locked_while_other_pods_name_it(void)
{
    struct guard guard;

    put_pair(NULL);
    put_aged_claim("data", 5, "");
    guard_start(&guard, annotation);
    check_waits(&guard);
    api_remove("pods", "default", "a");
    AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"pods\"}") == 1, "a is gone");
    check(bind_succeeds(&guard, "b", "node-2"), "no other pod names it");
    guard_stop(&guard);
}

static void a_claim_of_hours_or_of_the_watch_is_locked_at_once(void)
{
    struct guard guard;

    put_pair(NULL);
    put_aged_claim("data", 2 * 3600, "");
    guard_start(&guard, annotation);
    check(bind_succeeds(&guard, "b", "node-2"), "no Binding is as old");
    put_pod(&(struct test_pod){.name = "c", .claim = "later"});
    put_pod(&(struct test_pod){.name = "d", .claim = "later"});
    put_aged_claim("later", 0, "");
    AWAIT(bind_succeeds(&guard, "c", "node-1"), "the watch has brought it");
    guard_stop(&guard);
}

/* The claim comes from a backup, with the lock of a pod that is long gone: it says nothing. */
static void the_lock_of_a_backup_does_not_end_the_wait(void)
{
    struct guard guard;

    put_pair(NULL);
    put_aged_claim("data", 5,
                   "\"claimguard.io/holder\":\"00000000-0000-0000-0000-000000000001/gone\"");
    guard_start(&guard, annotation);
    check_waits(&guard);
    guard_stop(&guard);
}

/* Pods are not listed again, so one that is not known here may have locked an earlier claim. */
static void a_new_claim_from_a_later_list_waits_for_its_time(void)
{
    struct guard guard;

    put_pair(NULL);
    put_claim("other");
    guard_start(&guard, annotation);
    api_remove("pods", "default", "a");
    api_hold("persistentvolumeclaims");
    put_aged_claim("data", 5, "");
    api_compact();
    api_cut("persistentvolumeclaims");
    AWAIT(guard_metric(&guard,
                       "claimguard_watch_restarts_total{resource=\"persistentvolumeclaims\","
                       "reason=\"expired\"}") == 1 &&
              guard_metric(&guard, claims_metric) == 2,
          "it is listed");
    api_release("persistentvolumeclaims");
    check_waits(&guard);
    guard_stop(&guard);
}

static void a_take_over_fails_when_the_holder_locks_again(void)
{
    struct guard one, two;
    struct beside take_over;

    put_pair(NULL);
    put_locked_claim("data", api_text("pods", "default", "a", "metadata.uid"), "a");
    guard_start(&one, annotation);
    guard_start(&two, annotation);
    check(!bind_succeeds(&two, "b", "node-2"), "it is locked for a");
    sleep_ms(5200); /* LOCK_PATIENCE_MS */
    api_fault(&(struct api_fault){.method = "PATCH",
                                  .path = "/persistentvolumeclaims/data",
                                  .body = "/b\"",
                                  .times = 1,
                                  .delay_ms = 1200});
    bind_beside(&take_over, &two, "b", "node-2");
    check(api_wait("PATCH", "/b\"", 1), "a is fenced, and b's lock is on its way");
    (void)bind_succeeds(&one, "a", "node-1");
    (void)beside_end(&take_over);
    check_one_is_bound();
    guard_stop(&one);
    guard_stop(&two);
}

/* Two binds of one pod: the first is refused, and its release is applied when the second has the
 * lock. */
static void a_late_release_fails_when_the_pod_locks_again(void)
{
    struct guard one, two;
    struct beside refused, again;

    guard_start(&one, annotation); /* it requeues the pods that wait already */
    guard_start(&two, annotation);
    put_pair(NULL);
    AWAIT(sees_both(&one) && sees_both(&two), "both are seen");
    api_fault(&(struct api_fault){
        .method = "POST", .path = "/pods/a/binding", .times = 1, .delay_ms = 2000});
    api_fault(&(struct api_fault){
        .method = "POST", .path = "/pods/a/binding", .times = 1, .status = 403});
    api_fault(&(struct api_fault){.method = "PATCH",
                                  .path = "/persistentvolumeclaims/data",
                                  .body = "null",
                                  .times = 1,
                                  .delay_ms = 1000});
    bind_beside(&refused, &one, "a", "node-1");
    check(api_wait("PATCH", "null", 1), "the release is on its way");
    bind_beside(&again, &two, "a", "node-1");
    (void)beside_end(&refused);
    check(api_wait("POST", "/pods/a/binding", 2), "the second Binding is on its way");
    check(!bind_succeeds(&one, "b", "node-2"), "it is locked for a");
    (void)beside_end(&again);
    check(api_count("POST", "/pods/a/binding") == 2, "nobody has changed a on the way");
    check_one_is_bound();
    guard_stop(&one);
    guard_stop(&two);
}

/* After a start, the pods that wait are requeued. One that a scheduler binds waits no more, and its
 * Binding is for the version that it has. */
static void a_start_changes_no_pod_that_is_being_bound(void)
{
    struct guard guard;

    put_pair(NULL);
    guard_start(&guard, annotation);
    api_fault(&(struct api_fault){
        .method = "POST", .path = "/pods/a/binding", .times = 1, .delay_ms = 2000});
    check(bind_succeeds(&guard, "a", "node-1"), "its claim is free");
    check(api_count("POST", "/pods/a/binding") == 1, "with its first Binding");
    check(api_count("PATCH", "/pods/b") != 0, "the one that nobody binds is requeued");
    guard_stop(&guard);
}

static void a_reload_changes_no_pod_that_is_being_bound(void)
{
    struct guard guard;
    struct beside bound;

    put_pair(NULL);
    guard_start(&guard, annotation);
    check(api_wait("PATCH", "/pods/a", 1) && api_wait("PATCH", "/pods/b", 1), "both are requeued");
    api_fault(&(struct api_fault){
        .method = "POST", .path = "/pods/a/binding", .times = 1, .delay_ms = 2000});
    bind_beside(&bound, &guard, "a", "node-1");
    check(api_wait("POST", "/pods/a/binding", 1), "its Binding is on its way");
    guard_reload(&guard, annotation);
    check(beside_end(&bound), "a is bound, two seconds later");
    check(api_count("PATCH", "/pods/a") == 1, "and was not changed meanwhile");
    guard_stop(&guard);
}

/* ---- answers that lie ---- */

static void a_lock_that_a_webhook_removes_is_none(void)
{
    struct guard one, two;

    put_pair(NULL);
    guard_start(&one, annotation);
    guard_start(&two, annotation);
    api_hold("pods");
    api_fault(
        &(struct api_fault){.method = "PATCH",
                            .path = "/persistentvolumeclaims/data",
                            .status = 200,
                            .answer = api_object("persistentvolumeclaims", "default", "data")});
    check(!bind_succeeds(&one, "a", "node-1"), "it has no lock");
    check(!bind_succeeds(&two, "b", "node-2"), "it has no lock");
    check(api_count("POST", "/binding") == 0, "nothing is bound without a lock");
    guard_stop(&one);
    guard_stop(&two);
}

/* It is repeated without end, so its text has to say what to mend. */
static void a_lock_that_the_api_server_refuses_says_why(void)
{
    static const char status[] =
        "{\"kind\":\"Status\",\"message\":\"cannot patch claims: no right\",\"code\":403}";
    struct guard guard;

    put_pair(NULL);
    guard_start(&guard, annotation);
    api_fault(&(struct api_fault){.method = "PATCH",
                                  .path = "/persistentvolumeclaims/data",
                                  .status = 403,
                                  .answer = status});
    char *answer = guard_call(&guard, "/bind", bind_body("a", "node-1"));
    check(strstr(answer, "could not be locked: the API server answered 403: cannot patch claims: "
                         "no right") != NULL,
          "%s", answer);
    free(answer);
    check(api_count("POST", "/binding") == 0, "nothing is bound without a lock");
    api_heal();
    check(bind_succeeds(&guard, "a", "node-1"), "the right is there");
    guard_stop(&guard);
}

/* A fence that a webhook removes changes nothing: a Binding may still be applied. */
static void a_fence_that_a_webhook_removes_is_none(void)
{
    struct guard guard;

    put_pair(NULL);
    put_locked_claim("data", api_text("pods", "default", "a", "metadata.uid"), "a");
    guard_start(&guard, annotation);
    check(!bind_succeeds(&guard, "b", "node-2"), "it is locked for a");
    sleep_ms(5200); /* LOCK_PATIENCE_MS */
    api_fault(&(struct api_fault){.method = "PATCH",
                                  .path = "/pods/a",
                                  .status = 200,
                                  .answer = api_object("pods", "default", "a")});
    check(!bind_succeeds(&guard, "b", "node-2") && node_of("b")[0] == '\0', "a is not fenced");
    guard_stop(&guard);
}

/* a is bound, which the other claimguard's watch has not reported; its GET gets this answer. */
static void is_not_fooled_about_the_holder(unsigned status, const char *answer)
{
    struct guard one, two;

    put_pair(NULL);
    guard_start(&one, annotation);
    guard_start(&two, annotation);
    api_hold("pods");
    check(bind_succeeds(&one, "a", "node-1"), "a is bound");
    api_fault(&(struct api_fault){
        .method = "GET", .path = "/pods/a", .status = status, .answer = answer});
    (void)bind_succeeds(&two, "b", "node-2");
    check_one_is_bound();
    guard_stop(&one);
    guard_stop(&two);
}

static void a_proxys_404_of_a_holder_is_no_proof_that_it_is_gone(void)
{
    is_not_fooled_about_the_holder(404, "<html>no upstream</html>");
}

static void a_404_of_another_object_is_no_proof_that_the_holder_is_gone(void)
{
    is_not_fooled_about_the_holder(404, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":"
                                        "\"Failure\",\"reason\":\"NotFound\",\"code\":404,"
                                        "\"details\":{\"name\":\"default\",\"kind\":"
                                        "\"namespaces\"}}");
}

static void a_list_in_the_place_of_the_holder_says_nothing(void)
{
    is_not_fooled_about_the_holder(200, "{\"kind\":\"NodeList\",\"apiVersion\":\"v1\",\"metadata\":"
                                        "{\"resourceVersion\":\"7\"},\"items\":[]}");
}

static void another_pod_in_the_place_of_the_holder_says_nothing(void)
{
    is_not_fooled_about_the_holder(200, "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{"
                                        "\"namespace\":\"default\",\"name\":\"c\",\"uid\":\"u\","
                                        "\"resourceVersion\":\"7\"}}");
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_claim_that_is_being_deleted_is_not_locked),
        SCENARIO(a_lock_of_a_pending_pod_is_respected_for_its_time),
        SCENARIO(a_lock_gets_old_on_a_claim_that_others_write),
        SCENARIO(a_lock_that_no_claimguard_wrote_is_replaced_and_not_asked_about),
        SCENARIO(a_lock_with_texts_that_are_too_long_is_not_remembered),
        SCENARIO(only_locks_that_were_taken_are_given_back),
        SCENARIO(a_fence_that_meets_a_conflict_is_no_proof_that_the_pod_is_gone),
        SCENARIO(the_lock_of_a_claim_that_is_gone_counts_while_its_pod_is_bound),
        SCENARIO(the_lock_of_a_claim_that_is_gone_is_respected_for_its_time),
        SCENARIO(the_lock_of_a_claim_that_is_gone_ends_with_its_pod),
        SCENARIO(the_lock_of_a_claim_that_is_gone_gets_old_by_itself),
        SCENARIO(an_old_lock_on_the_next_claim_does_not_hide_the_former_one),
        SCENARIO(the_next_claim_has_the_mark_of_the_former_lock),
        SCENARIO(a_claim_that_the_watch_has_not_reported_is_not_locked),
        SCENARIO(a_claim_from_a_list_is_not_locked_while_other_pods_name_it),
        SCENARIO(a_claim_of_hours_or_of_the_watch_is_locked_at_once),
        SCENARIO(the_lock_of_a_backup_does_not_end_the_wait),
        SCENARIO(a_new_claim_from_a_later_list_waits_for_its_time),
        SCENARIO(a_take_over_fails_when_the_holder_locks_again),
        SCENARIO(a_late_release_fails_when_the_pod_locks_again),
        SCENARIO(a_start_changes_no_pod_that_is_being_bound),
        SCENARIO(a_reload_changes_no_pod_that_is_being_bound),
        SCENARIO(a_lock_that_a_webhook_removes_is_none),
        SCENARIO(a_lock_that_the_api_server_refuses_says_why),
        SCENARIO(a_fence_that_a_webhook_removes_is_none),
        SCENARIO(a_proxys_404_of_a_holder_is_no_proof_that_it_is_gone),
        SCENARIO(a_404_of_another_object_is_no_proof_that_the_holder_is_gone),
        SCENARIO(a_list_in_the_place_of_the_holder_says_nothing),
        SCENARIO(another_pod_in_the_place_of_the_holder_says_nothing),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
