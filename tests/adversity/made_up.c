/* Who reaches the port for reviews makes up pods of another namespace: their claims are reserved
 * for 65 s, and no longer; the namespace is not given up, which lasts for half an hour. */
#include <stdio.h>

#include "config/base/buf.h"
#include "support/reviews.h"

enum { CLAIMS = 200, REVIEWS = 70 }; /* each would take about 64 KiB of its namespace */

static const char *put_shared_claims(void)
{
    struct buf volumes;

    buf_init(&volumes, 1 << 20);
    for (int i = 0; i < CLAIMS; i++) {
        api_put(
            "{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"default\",\"name\":"
            "\"shared-%d\"},\"spec\":{\"accessModes\":[\"ReadWriteMany\"],\"volumeName\":\"pv-%d\"}"
            ","
            "\"status\":{\"phase\":\"Bound\"}}",
            i, i);
        buf_printf(&volumes,
                   "%s{\"name\":\"v-%d\",\"persistentVolumeClaim\":{\"claimName\":\"shared-%d\"}}",
                   i == 0 ? ",\"volumes\":[" : ",", i, i);
    }
    buf_printf(&volumes, "]");
    const char *text = scenario_printf("%s", buf_text(&volumes));
    buf_dispose(&volumes);
    return text;
}

static void made_up_pods_do_not_give_up_the_namespace_of_another(void)
{
    const char *volumes = put_shared_claims();
    struct guard guard;
    int allowed = 0;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    admission_start(&guard, "cache: {maxNamespaceBytes: 4Mi}\n");
    for (int i = 0; i < REVIEWS; i++) {
        struct test_creation creation = {.uid = scenario_printf("00000000-0000-4000-9000-%012d", i),
                                         .pod = {.name = scenario_printf("made-up-%d", i),
                                                 .node = "node-1",
                                                 .more_spec = volumes}};
        allowed += starts_with(admit_creation(&guard, &creation), "allowed");
    }
    check(allowed > REVIEWS / 2, "%d of %d are allowed", allowed, REVIEWS);
    put_pod(&(struct test_pod){.name = "any"}); /* a change, after which too much is given up */
    AWAIT(filter_passes(&guard, "b"), "its pods are bound");
    check(guard_metric(&guard, "claimguard_namespaces_given_up ") == 0, "and nothing is given up");
    guard_stop(&guard);
}

/* b waits for a's reservation, and is requeued when that ends, whatever somebody asks about a pod
 * of another namespace with b's UID (which /debug/snapshot shows). */
static void expect_requeue(bool is_attacked)
{
    struct guard guard;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "a", .claim = "data"});
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    admission_start(&guard, "");
    sleep_ms(2500); /* those that wait when it starts are requeued, once */
    size_t before = api_count("PATCH", "/default/pods/b");
    check(filter_passes(&guard, "a"), "it reserves the claim");
    check(!filter_passes(&guard, "b"), "it waits for that");
    const char *answer =
        !is_attacked
            ? ""
            : admit(&guard,
                    &(struct test_review){.ns = "greedy",
                                          .pod = "nobody",
                                          .node = "node-1",
                                          .uid = api_text("pods", "default", "b", "metadata.uid")});
    api_remove("pods", "default", "a");
    for (int i = 0; i < 500 && api_count("PATCH", "/default/pods/b") == before; i++)
        sleep_ms(10);
    check(api_count("PATCH", "/default/pods/b") > before, "b is not requeued (%s)", answer);
    guard_stop(&guard);
}

static void a_pod_that_waits_is_requeued(void)
{
    expect_requeue(false);
}

static void a_made_up_pod_with_the_uid_of_another_takes_no_requeue(void)
{
    expect_requeue(true);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(made_up_pods_do_not_give_up_the_namespace_of_another),
        SCENARIO(a_pod_that_waits_is_requeued),
        SCENARIO(a_made_up_pod_with_the_uid_of_another_takes_no_requeue),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
