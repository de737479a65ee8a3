/* Who reaches the port for reviews makes up pods of another namespace: their claims are reserved
 * for 65 s, and no longer; the namespace is not given up, which lasts for half an hour. */
#include <stdio.h>

#include "config/base/buf.h"
#include "support/reviews.h"

enum { CLAIMS = 200, REVIEWS = 260 };

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
    admission_start(&guard, "");
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

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(made_up_pods_do_not_give_up_the_namespace_of_another)};
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
