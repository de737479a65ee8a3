/* Reviews of what is over a limit: pods that are too big to be judged. */
#include <string.h>

#include "config/base/buf.h"
#include "support/reviews.h"

/* Volumes that name the claim data, and more of them than a pod may. Ownership: for the process. */
static const char *many_volumes(size_t more)
{
    struct buf buf;

    buf_init(&buf, 32 << 20);
    buf_put(&buf, SLICE(",\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":"
                        "\"data\"}}"));
    for (size_t i = 0; i < more; i++)
        buf_printf(&buf, ",{\"name\":\"v-%zu\",\"persistentVolumeClaim\":{\"claimName\":\"%zu\"}}",
                   i, i);
    buf_put(&buf, SLICE("]"));
    const char *text = scenario_printf("%.*s", SLICE_ARG(buf_slice(&buf)));
    buf_dispose(&buf);
    return text;
}

/* With failurePolicy: Ignore, a review that fails lets it through, with claim data. */
static void a_pod_that_is_too_big_to_be_judged_is_denied(void)
{
    char name[300] = "";
    struct guard guard;

    memset(name, 'x', sizeof name - 1);
    const struct test_creation many = {
        .pod = {.name = "m", .node = "node-1", .more_spec = many_volumes(512)}};
    const struct test_creation pending = {.pod = {.name = "m", .more_spec = many_volumes(512)}};
    const struct test_creation longer = {
        .pod = {.name = "l", .claim = "data", .second_claim = name, .node = "node-1"}};
    put_claim("data");
    admission_start(&guard, "");
    const char *answer = admit_creation(&guard, &many);
    check(starts_with(answer, "denied: 409 claimguard cannot judge this pod: ") &&
              strstr(answer, "a pod with over 512 claims") != NULL,
          "it may name any claim");
    check(
        starts_with(admit_creation(&guard, &longer),
                    "denied: 409 claimguard cannot judge this pod: body: a claim's name has over"),
        "an API server takes such a name");
    check(
        starts_with(admit_creation(&guard, &pending), "allowed; claimguard cannot judge this pod"),
        "it is not bound yet");
    create(&pending);
    answer = admit(&guard, &(struct test_review){.pod = "m", .node = "node-1"});
    check(starts_with(answer, "denied: 409 ") &&
              strstr(answer, "a pod with over 512 claims") != NULL,
          "its Binding is denied: %s", answer);
    guard_stop(&guard);
}

/* So many volumes do not fit the memory of one request: it may name a node behind them. */
static void a_pod_that_cannot_be_read_is_denied(void)
{
    struct guard guard;

    admission_start(&guard, "");
    const char *answer = admit_creation(
        &guard, &(struct test_creation){.pod = {.name = "m", .more_spec = many_volumes(150000)}});
    check(starts_with(answer, "denied: 409 claimguard cannot judge this pod: ") &&
              strstr(answer, "too big for the memory of one request") != NULL,
          "nobody knows what it names");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_pod_that_is_too_big_to_be_judged_is_denied),
        SCENARIO(a_pod_that_cannot_be_read_is_denied),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
