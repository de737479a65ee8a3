/* Claims that a pod owns, as those of generic ephemeral volumes: a pod that is created with its
 * node is bound before its claim exists, so nobody can lock the claim for it. */
#include <string.h>

#include "support/reviews.h"

static bool is_allowed(const char *answer)
{
    return strcmp(answer, "allowed") == 0;
}

/* Pod e, which is created with its node. Its claim is created after it. */
static const struct test_creation e = {
    .pod = {.name = "e",
            .node = "node-1",
            .more_spec = ",\"volumes\":[{\"name\":\"v\",\"ephemeral\":{\"volumeClaimTemplate\":{"
                         "\"spec\":{}}}}]"}};

/* A claim that another pod, or none, has in its spec. */
static void put_owned_claim(const char *name, const char *owner)
{
    api_put("{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"default\",\"name\":"
            "\"%s\",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"%s\","
            "\"uid\":\"%s\",\"controller\":true}]},\"spec\":{\"accessModes\":["
            "\"ReadWriteOncePod\"],\"volumeName\":\"pv-%s\"},\"status\":{\"phase\":\"Bound\"}}",
            name, owner, api_text("pods", "default", owner, "metadata.uid"), name);
}

static bool sees_claims(const struct guard *guard, unsigned count)
{
    return guard_metric(guard, "claimguard_cache_objects{resource=\"persistentvolumeclaims\"} ") ==
           count;
}

static const char annotation[] = "readWriteOncePod: {claimLock: Annotation}\n";

/* No replica could lock its claim before it was there, and the watch of the one that binds b is
 * late. */
static void a_claim_that_was_created_for_a_pod_is_that_pods(const char *config)
{
    static const char in_use[] =
        "denied: 409 claim default/e-v is in use by pod default/e on node-1";
    struct guard one, two;

    put_pod(&(struct test_pod){.name = "b", .claim = "e-v"});
    admission_start(&one, config);
    check(is_allowed(admit_creation(&one, &e)), "it has no claim yet");
    admission_start(&two, config); /* as after a restart, if it is the only one */
    api_hold("pods");
    create(&e);
    put_owned_claim("e-v", "e");
    AWAIT(sees_claims(&two, 1), "the claim is seen, and e is not");
    check(starts_with(admit(&two, &(struct test_review){.pod = "b", .node = "node-2"}), in_use),
          "a GET finds e");
    check(!bind_succeeds(&two, "b", "node-2") && node_of("b")[0] == '\0', "for the extender, too");
    check(api_count("PATCH", "/e-v") == 0, "it is not locked for b");
    api_remove("pods", "default", "e");
    api_release("pods");
    AWAIT(is_admitted(&two, "b", "node-2"), "e is gone");
    guard_stop(&one);
    guard_stop(&two);
}

static void an_ephemeral_claim_is_its_pods_for_another_replica(void)
{
    a_claim_that_was_created_for_a_pod_is_that_pods(annotation);
}

static void an_ephemeral_claim_is_its_pods_after_a_restart(void)
{
    a_claim_that_was_created_for_a_pod_is_that_pods("");
}

/* The one that binds b knows the former claim, which nobody owned. */
static void an_owned_claim_that_replaces_another_is_its_pods(void)
{
    struct guard one, two;

    put_claim("e-v"); /* nobody's */
    put_pod(&(struct test_pod){.name = "b", .claim = "e-v"});
    admission_start(&two, annotation);
    api_hold("persistentvolumeclaims"); /* from now on, two's watches are late */
    api_hold("pods");
    api_remove("persistentvolumeclaims", "default", "e-v");
    admission_start(&one, annotation); /* has a new list */
    const char *answer = admit_creation(&one, &e);
    check(starts_with(answer, "allowed"), "e has no claim yet: %s", answer);
    create(&e);
    put_owned_claim("e-v", "e");
    bool is_bound = bind_succeeds(&two, "b", "node-2");
    check(!is_bound && node_of("b")[0] == '\0', "e and b have one claim");
    api_release("pods");
    api_release("persistentvolumeclaims");
    guard_stop(&one);
    guard_stop(&two);
}

/* A Spark driver owns the claims of its executors, and does not use them. */
static void a_pod_that_owns_a_claim_and_does_not_use_it_keeps_nobody_out(void)
{
    struct guard guard;

    put_pod(&(struct test_pod){.name = "driver", .node = "node-1"});
    put_owned_claim("data", "driver");
    put_pod(&(struct test_pod){.name = "a", .claim = "data"});
    admission_start(&guard, "");
    check(is_admitted(&guard, "a", "node-1"), "it is not in use");
    check(api_count("GET", "/pods/driver") == 0, "and that is known");
    guard_stop(&guard);
}

static void an_owner_that_is_gone_keeps_nobody_out(void)
{
    struct guard guard;

    put_pod(&(struct test_pod){.name = "gone", .node = "node-1"});
    put_owned_claim("data", "gone");
    api_remove("pods", "default", "gone");
    put_pod(&(struct test_pod){.name = "a", .claim = "data"});
    admission_start(&guard, "");
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods/gone", .status = 503});
    check(starts_with(admit(&guard, &(struct test_review){.pod = "a", .node = "node-1"}),
                      "failed: 500 "),
          "it may be there");
    api_heal();
    check(is_admitted(&guard, "a", "node-1"), "it is not");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(an_ephemeral_claim_is_its_pods_for_another_replica),
        SCENARIO(an_ephemeral_claim_is_its_pods_after_a_restart),
        SCENARIO(an_owned_claim_that_replaces_another_is_its_pods),
        SCENARIO(a_pod_that_owns_a_claim_and_does_not_use_it_keeps_nobody_out),
        SCENARIO(an_owner_that_is_gone_keeps_nobody_out),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
