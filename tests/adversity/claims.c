/* A claim is deleted and created again as another one, and the watch of claims is late: a second
 * pod gets it only if the API server says that pods may share it. */
#include <stdio.h>

#include "support/scenario.h"

#define ANNOTATION "readWriteOncePod: {claimLock: Annotation}\n"

static void put_shared_claim(const char *name)
{
    api_put("{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"default\",\"name\":"
            "\"%s\"},\"spec\":{\"accessModes\":[\"ReadWriteMany\"],\"volumeName\":\"pv-old\"},"
            "\"status\":{\"phase\":\"Bound\"}}",
            name);
}

/* It was ReadWriteMany, is deleted, and created again as ReadWriteOncePod; the watch is late. */
static void a_claim_is_created_again(const char *config)
{
    struct guard guard;

    put_shared_claim("data");
    guard_start(&guard, config);
    api_hold("persistentvolumeclaims");
    api_remove("persistentvolumeclaims", "default", "data");
    put_pair(NULL);
    AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"pods\"}") == 2, "both pods");
    check(filter_passes(&guard, "a"), "it is free");
    if (*config != '\0') { /* see a_claim_that_the_watch_has_not_reported_is_not_locked */
        check(!bind_succeeds(&guard, "a", "node-1"), "nobody knows who had locked the former one");
        api_release("persistentvolumeclaims");
        AWAIT(bind_succeeds(&guard, "a", "node-1"), "the former one was not locked");
    } else {
        check(bind_succeeds(&guard, "a", "node-1"), "it is free");
    }
    (void)filter_passes(&guard, "b");
    check(!bind_succeeds(&guard, "b", "node-2") && node_of("b")[0] == '\0', "the claim is a's");
    check(!filter_passes(&guard, "b"), "the cache knows it now");
    guard_stop(&guard);
}

static void a_claim_is_created_again_with_local(void)
{
    a_claim_is_created_again("");
}

static void a_claim_is_created_again_with_annotation(void)
{
    a_claim_is_created_again(ANNOTATION);
}

/* The two pods are bound by claimguards that do not know each other. */
static void a_claim_is_created_again_before_two_replicas(void)
{
    struct guard one, two;

    put_shared_claim("data");
    guard_start(&one, ANNOTATION);
    guard_start(&two, ANNOTATION);
    api_hold("persistentvolumeclaims");
    api_remove("persistentvolumeclaims", "default", "data");
    put_pair(NULL);
    AWAIT(guard_metric(&two, "claimguard_cache_objects{resource=\"pods\"}") == 2 &&
              guard_metric(&one, "claimguard_cache_objects{resource=\"pods\"}") == 2,
          "both pods");
    api_hold("pods");
    check(!bind_succeeds(&one, "a", "node-1"), "nobody knows who had locked the former one");
    api_release("persistentvolumeclaims");
    AWAIT(bind_succeeds(&one, "a", "node-1"), "the former one was not locked");
    check(!bind_succeeds(&two, "b", "node-2") && node_of("b")[0] == '\0', "the claim is a's");
    guard_stop(&one);
    guard_stop(&two);
}

/* Nobody can say what the claim is that another pod holds. */
static void a_shared_claim_that_nobody_can_ask_about_binds_no_second_pod(void)
{
    struct guard guard;

    put_shared_claim("data");
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .node = "node-1"});
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    guard_start(&guard, "");
    api_fault(
        &(struct api_fault){.method = "GET", .path = "/persistentvolumeclaims/", .status = 503});
    check(!bind_succeeds(&guard, "b", "node-2"), "the outcome is unknown");
    check(api_count("POST", "/binding") == 0, "no Binding was sent");
    api_heal();
    check(bind_succeeds(&guard, "b", "node-2"), "it is shared");
    guard_stop(&guard);
}

/* What a bind costs: with Local, the first pod of a claim nothing, and each one of a
 * ReadWriteOncePod claim. */
static void claims_are_asked_about_where_another_pod_has_them(void)
{
    struct guard guard;

    put_shared_claim("shared");
    put_claim("alone");
    put_pod(&(struct test_pod){.name = "a", .claim = "shared"});
    put_pod(&(struct test_pod){.name = "b", .claim = "shared"});
    put_pod(&(struct test_pod){.name = "c", .claim = "alone"});
    guard_start(&guard, "");
    check(bind_succeeds(&guard, "a", "node-1"), "nobody has it");
    check(bind_succeeds(&guard, "c", "node-1"), "nobody has it");
    check(api_count("GET", "/persistentvolumeclaims/") == 0, "nobody was asked");
    check(bind_succeeds(&guard, "b", "node-2"), "it is shared");
    check(api_count("GET", "/persistentvolumeclaims/shared") == 1, "it was asked about once");
    check(api_count("GET", "/pods/") == 0, "pods were asked about");
    guard_stop(&guard);
}

/* More claims than one call asks about: the last one is created again. */
static void every_shared_claim_of_a_pod_is_asked_about(void)
{
    enum { CLAIMS = 40 };
    char volumes[8192] = "", name[16];
    size_t len = 0;
    struct guard guard;

    for (int i = 0; i < CLAIMS; i++) {
        (void)snprintf(name, sizeof name, "c%02d", i);
        put_shared_claim(name);
        len += (size_t)snprintf(volumes + len, sizeof volumes - len,
                                "%s{\"name\":\"v%d\",\"persistentVolumeClaim\":{\"claimName\":"
                                "\"%s\"}}",
                                i == 0 ? ",\"volumes\":[" : ",", i, name);
    }
    (void)snprintf(volumes + len, sizeof volumes - len, "]");
    guard_start(&guard, "");
    api_hold("persistentvolumeclaims");
    api_remove("persistentvolumeclaims", "default", name);
    put_claim(name);
    put_pod(&(struct test_pod){.name = "a", .more_spec = volumes});
    put_pod(&(struct test_pod){.name = "b", .more_spec = volumes});
    check(bind_succeeds(&guard, "a", "node-1"), "nobody has them");
    check(!bind_succeeds(&guard, "b", "node-2") && node_of("b")[0] == '\0', "one is a's alone");
    guard_stop(&guard);
}

/* ---- another pod comes while claims are asked about ---- */

/* Pod b's look is for one claim, which another pod has; meanwhile pod a gets its other claim, which
 * was created again, and of which it is the first. */
static void a_claim_that_another_pod_gets_during_the_look_is_asked_about_too(void)
{
    struct guard guard;
    struct beside bind;

    put_shared_claim("held");
    put_shared_claim("data");
    put_pod(&(struct test_pod){.name = "holder", .claim = "held", .node = "node-1"});
    guard_start(&guard, "");
    api_hold("persistentvolumeclaims");
    api_remove("persistentvolumeclaims", "default", "data");
    put_claim("data");
    put_pod(&(struct test_pod){.name = "a", .claim = "data"});
    put_pod(&(struct test_pod){
        .name = "b",
        .more_spec = ",\"volumes\":[{\"name\":\"v0\",\"persistentVolumeClaim\":{\"claimName\":"
                     "\"held\"}},{\"name\":\"v1\",\"persistentVolumeClaim\":{\"claimName\":"
                     "\"data\"}}]"});
    AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"pods\"}") == 3, "the pods");
    api_fault(
        &(struct api_fault){.method = "GET", .path = "/persistentvolumeclaims/", .delay_ms = 950});
    bind_beside(&bind, &guard, "b", "node-2");
    check(api_wait("GET", "/persistentvolumeclaims/held", 1), "it is asked about");
    check(bind_succeeds(&guard, "a", "node-1"), "nobody has it");
    check(!beside_end(&bind) && node_of("b")[0] == '\0', "the claim is a's");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_claim_is_created_again_with_local),
        SCENARIO(a_claim_is_created_again_with_annotation),
        SCENARIO(a_claim_is_created_again_before_two_replicas),
        SCENARIO(a_shared_claim_that_nobody_can_ask_about_binds_no_second_pod),
        SCENARIO(claims_are_asked_about_where_another_pod_has_them),
        SCENARIO(every_shared_claim_of_a_pod_is_asked_about),
        SCENARIO(a_claim_that_another_pod_gets_during_the_look_is_asked_about_too),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
