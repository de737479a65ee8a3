/* What claimguards agree on (extender/serving/bind/agreement.h), when it cannot be read or written,
 * and when another claimguard has announced something. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/reviews.h"

static const char local[] = "readWriteOncePod: {claimLock: Local}\n";
static const char annotation[] = "readWriteOncePod: {claimLock: Annotation}\n";
static const char with_entry[] =
    "readWriteOncePod: {claimLock: Annotation}\n"
    "deferFSMount:\n  apply: Annotation\n  entries:\n"
    "  - {storageClass: fast-storage, runtimeClass: microvm, nonExclusiveClaims: Exclusive}\n";

static void put_agreed(const char *entries)
{
    api_put("{\"kind\":\"ConfigMap\",\"metadata\":{\"namespace\":\"claimguard\",\"name\":"
            "\"claimguard-agreement\"},\"data\":{%s}}",
            entries);
}

static const char *agreed(const char *path)
{
    return api_text("configmaps", "claimguard", "claimguard-agreement", path);
}

static bool is_announced(const char *path)
{
    return strncmp(agreed(path), "announced at ", 13) == 0;
}

/* It has been read again. */
static void await_read(void)
{
    size_t before = api_count("GET", "/configmaps/claimguard-agreement");

    check(api_wait("GET", "/configmaps/claimguard-agreement", before + 2), "it is read again");
}

/* A claim that pods share, and pods of it: a, b and vm. */
static void put_sharers(void)
{
    api_put("{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"default\",\"name\":"
            "\"data\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"storageClassName\":"
            "\"fast-storage\",\"volumeName\":\"pv-data\"},\"status\":{\"phase\":\"Bound\"}}");
    api_put("{\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"pv-data\"},\"spec\":{"
            "\"accessModes\":[\"ReadWriteOnce\"],\"storageClassName\":\"fast-storage\",\"csi\":{"
            "\"driver\":\"plugin1.example.com\",\"volumeHandle\":\"1\"},\"claimRef\":{"
            "\"namespace\":\"default\",\"name\":\"data\"}}}");
    put_pod(&(struct test_pod){.name = "a", .claim = "data"});
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    put_pod(&(struct test_pod){
        .name = "vm", .claim = "data", .more_spec = ",\"runtimeClassName\":\"microvm\""});
}

/* ---- it cannot be read ---- */

static void without_it_a_claimguard_with_annotation_is_not_ready(void)
{
    struct guard guard;
    int status;

    put_pair(NULL);
    put_pod(&(struct test_pod){.name = "plain"});
    api_fault(&(struct api_fault){.method = "GET", .path = "/configmaps/", .status = 404});
    guard_launch(&guard, annotation);
    check(guard_logs(&guard, "the cache is synced"), "it runs");
    check(guard_logs(&guard, "what claimguards agree on cannot be read"), "the log says it");
    char *ready = guard_get(&guard, "/readyz", &status);
    check(status == 503 &&
              strcmp(ready, "[-] agreement not read: the log says why\nnot ready\n") == 0,
          "%d %s", status, ready);
    free(ready);
    check(!bind_succeeds(&guard, "a", "node-1"), "others may share its claim, for all it knows");
    check(bind_succeeds(&guard, "plain", "node-1"), "it has no claim");
    check(guard_logs(&guard, "the ConfigMap claimguard-agreement, with which claimguards agree, "
                             "was never read: status 404"),
          "the bind says why");
    api_heal();
    guard_await_ready(&guard);
    check(bind_succeeds(&guard, "a", "node-1"), "it is there");
    guard_stop(&guard);
}

static void without_it_a_claimguard_with_local_goes_on(void)
{
    static const struct api_fault forbidden = {
        .method = "GET", .path = "/configmaps/", .status = 403};
    struct guard guard;

    put_pair(NULL);
    api_fault(&forbidden);
    guard_start(&guard, local);
    check(bind_succeeds(&guard, "a", "node-1"), "it is alone");
    sleep_ms(16000); /* AGREEMENT_FRESH_MS, and more */
    check(!bind_succeeds(&guard, "b", "node-2"), "a has the claim");
    api_remove("pods", "default", "a");
    AWAIT(bind_succeeds(&guard, "b", "node-2"), "it is still alone");
    check(api_count("PATCH", "/configmaps/") == 0, "it writes nothing that it cannot read");
    guard_stop(&guard);
}

static void a_read_that_gets_too_old_stops_pods_with_claims(void)
{
    struct guard guard;

    put_pair(NULL);
    put_claim("more");
    put_pod(&(struct test_pod){.name = "c", .claim = "more"});
    put_pod(&(struct test_pod){.name = "plain"});
    guard_start(&guard, annotation);
    check(bind_succeeds(&guard, "a", "node-1"), "it was read");
    api_fault(&(struct api_fault){.method = "GET", .path = "/configmaps/", .status = 500});
    sleep_ms(15500);
    check(!bind_succeeds(&guard, "c", "node-1"), "15 s later");
    check(guard_metric(&guard, "claimguard_agreement_in_force ") == 0, "the metric says it");
    check(guard_page_has(&guard, "/statusz",
                         "agreement                WAITS: no pod with claims is bound"),
          "the page says why");
    check(bind_succeeds(&guard, "plain", "node-1"), "it has no claim");
    check(guard_is_ready(&guard), "another claimguard would not know more");
    api_heal();
    AWAIT(bind_succeeds(&guard, "c", "node-1"), "it is read again");
    check(guard_metric(&guard, "claimguard_agreement_in_force ") == 1, "it is in force");
    check(guard_page_has(&guard, "/statusz", "agreement                in force\n"), "it says so");
    guard_stop(&guard);
}

static void a_read_that_was_good_counts_when_it_is_forbidden_later(void)
{
    static const struct api_fault missing = {
        .method = "GET", .path = "/configmaps/", .status = 404};
    struct guard guard;

    put_pair(NULL);
    put_pod(&(struct test_pod){.name = "plain"});
    guard_start(&guard, annotation);
    api_fault(&missing);
    await_read();
    check(guard_is_ready(&guard), "all would be unready at once");
    sleep_ms(15500);
    check(!bind_succeeds(&guard, "a", "node-1"), "15 s later");
    check(guard_is_ready(&guard) && bind_succeeds(&guard, "plain", "node-1"), "it has no claim");
    api_heal();
    AWAIT(bind_succeeds(&guard, "a", "node-1"), "it is read again");
    guard_stop(&guard);
}

static void one_get_in_five_seconds_serves_all_binds(void)
{
    struct guard guard;

    put_pair(NULL);
    guard_start(&guard, annotation);
    size_t before = api_count("GET", "/configmaps/");
    check(bind_succeeds(&guard, "a", "node-1"), "a is bound");
    for (int i = 0; i < 20; i++)
        check(!bind_succeeds(&guard, "b", "node-2"), "a has the claim");
    check(api_count("GET", "/configmaps/") <= before + 2, "not for each bind");
    check(api_count("PATCH", "/configmaps/") == 0, "all is in force");
    guard_stop(&guard);
}

/* ---- other claimguards ---- */

static void what_another_one_announces_stops_this_one(void)
{
    struct guard guard;

    put_pair(NULL);
    put_sharers();
    put_claim("data");
    put_claim("more");
    put_pod(&(struct test_pod){.name = "c", .claim = "more"});
    guard_start(&guard, local);
    check(bind_succeeds(&guard, "a", "node-1"), "Local is in force");
    put_agreed("\"claimLock.Local\":\"in force\",\"claimLock.Annotation\":\"announced at 1\"");
    await_read();
    check(!bind_succeeds(&guard, "c", "node-1"), "it is on its way out");
    check(guard_logs(&guard, "claimLock: Annotation is announced in this cluster"), "it says so");
    put_agreed("\"claimLock.Local\":\"in force\"");
    await_read();
    check(bind_succeeds(&guard, "c", "node-1"), "it has been withdrawn");
    guard_stop(&guard);
}

static void a_class_that_another_one_announces_is_locked_here(void)
{
    struct guard guard;

    put_sharers();
    put_agreed("\"claimLock.Annotation\":\"in force\",\"exclusive.fast-storage\":\"announced at "
               "1\"");
    guard_start(&guard, annotation);
    check(bind_succeeds(&guard, "a", "node-1"), "the first one");
    check(strstr(api_object("persistentvolumeclaims", "default", "data"), "/a\"") != NULL,
          "its lock is on the claim");
    check(!bind_succeeds(&guard, "b", "node-1"), "it is for one pod");
    check(api_count("PATCH", "/configmaps/") == 0, "the entry is not this one's");
    guard_stop(&guard);
}

static void a_new_entry_is_announced_and_its_pod_waits(void)
{
    struct guard guard;

    put_sharers();
    put_agreed("\"claimLock.Annotation\":\"in force\"");
    api_fault(
        &(struct api_fault){.method = "PATCH", .path = "/configmaps/", .times = 1, .status = 409});
    guard_start(&guard, with_entry);
    AWAIT(is_announced("data.exclusive~fast-storage"), "after a conflict, too");
    check(!bind_succeeds(&guard, "vm", "node-1"), "others may share its claim");
    check(guard_logs(&guard,
                     "nonExclusiveClaims: Exclusive of storage class fast-storage is new in "
                     "this cluster, and in force 90 s after it was announced"),
          "it says why");
    check(bind_succeeds(&guard, "a", "node-1"), "one that is not deferred need not wait");
    api_remove("pods", "default", "a");
    put_agreed("\"claimLock.Annotation\":\"in force\",\"exclusive.fast-storage\":\"in force\"");
    AWAIT(bind_succeeds(&guard, "vm", "node-1"), "it is in force");
    guard_stop(&guard);
}

/* With failurePolicy: Ignore, a review that fails lets it through. */
static void a_review_of_what_has_to_wait_is_denied_and_asks_nothing(void)
{
    static const struct test_review a = {.pod = "a", .node = "node-1"};
    static const struct test_review vm = {.pod = "vm", .node = "node-1"};
    struct guard guard;

    put_sharers();
    put_agreed("\"claimLock.Annotation\":\"in force\"");
    admission_start(&guard, with_entry);
    AWAIT(is_announced("data.exclusive~fast-storage"), "it is new");
    check(starts_with(admit(&guard, &vm), "denied: 409 volume v is deferred later: "), "as a bind");
    check(!bind_succeeds(&guard, "vm", "node-1"), "as its review");
    put_agreed("\"claimLock.Annotation\":\"in force\",\"claimLock.Local\":\"announced at 1\"");
    await_read();
    check(starts_with(admit(&guard, &a), "denied: 409 no pod with claims is bound: "),
          "another kind");
    check(!bind_succeeds(&guard, "a", "node-1"), "as its review");
    check(api_count("GET", "/pods/") == 0, "no look would change it");
    api_fault(&(struct api_fault){.method = "GET", .path = "/configmaps/", .status = 500});
    sleep_ms(15500);
    check(starts_with(admit(&guard, &a), "failed: 500 "), "nothing is known");
    api_heal();
    put_agreed("\"claimLock.Annotation\":\"in force\"");
    AWAIT(is_admitted(&guard, "a", "node-1"), "it is withdrawn");
    guard_stop(&guard);
}

static void put_user_s_deferral(void)
{
    put_sharers();
    put_pod(&(struct test_pod){.name = "own",
                               .claim = "data",
                               .more_spec = ",\"runtimeClassName\":\"kata\"",
                               .more_meta =
                                   ",\"annotations\":{\"claimguard.io/defer-fs-mount\":\"v\"}"});
}

static void a_deferral_of_a_user_needs_replicas_that_lock_its_claim(void)
{
    struct guard guard;

    put_user_s_deferral();
    put_agreed("\"claimLock.Annotation\":\"in force\"");
    guard_start(&guard, annotation);
    check(!bind_succeeds(&guard, "own", "node-1"), "others share its claim without a lock");
    check(guard_logs(&guard, "add an entry with nonExclusiveClaims: Exclusive for storage class "
                             "fast-storage, or use a ReadWriteOncePod claim"),
          "it says what to do");
    put_agreed("\"claimLock.Annotation\":\"in force\",\"exclusive.fast-storage\":\"in force\"");
    AWAIT(bind_succeeds(&guard, "own", "node-1"), "another replica has such an entry");
    guard_stop(&guard);
}

static void a_deferral_of_a_user_waits_for_the_class_of_its_claim(void)
{
    struct guard guard;

    put_user_s_deferral();
    put_agreed("\"claimLock.Annotation\":\"in force\",\"exclusive.fast-storage\":\"announced at "
               "1\"");
    guard_start(&guard, annotation);
    check(!bind_succeeds(&guard, "own", "node-1"), "others may share its claim");
    check(guard_logs(&guard, "nonExclusiveClaims: Exclusive of storage class fast-storage is new"),
          "it says which class");
    guard_stop(&guard);
}

static void another_claim_lock_is_announced_and_withdrawn_by_reloads(void)
{
    struct guard guard;

    put_pair(NULL);
    guard_start(&guard, local);
    guard_reload(&guard, annotation);
    AWAIT(is_announced("data.claimLock~Annotation"), "it is announced");
    check(!bind_succeeds(&guard, "a", "node-1"), "it is not in force");
    check(guard_logs(&guard, "claimLock: Local is in force in this cluster"), "it says why");
    guard_reload(&guard, local);
    AWAIT(agreed("data.claimLock~Annotation")[0] == '\0', "it is withdrawn");
    AWAIT(bind_succeeds(&guard, "a", "node-1"), "Local is in force");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(without_it_a_claimguard_with_annotation_is_not_ready),
        SCENARIO(without_it_a_claimguard_with_local_goes_on),
        SCENARIO(a_read_that_gets_too_old_stops_pods_with_claims),
        SCENARIO(a_read_that_was_good_counts_when_it_is_forbidden_later),
        SCENARIO(one_get_in_five_seconds_serves_all_binds),
        SCENARIO(what_another_one_announces_stops_this_one),
        SCENARIO(a_class_that_another_one_announces_is_locked_here),
        SCENARIO(a_new_entry_is_announced_and_its_pod_waits),
        SCENARIO(a_review_of_what_has_to_wait_is_denied_and_asks_nothing),
        SCENARIO(a_deferral_of_a_user_needs_replicas_that_lock_its_claim),
        SCENARIO(a_deferral_of_a_user_waits_for_the_class_of_its_claim),
        SCENARIO(another_claim_lock_is_announced_and_withdrawn_by_reloads),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
