/* Reviews of pods that are created with their node, where something is written: deferrals, which
 * such a pod has to carry itself, and locks of claims for a pod that does not exist yet. */
#include <string.h>

#include "support/reviews.h"

#define DEFERRAL \
    "deferFSMount:\n  apply: %s\n  entries:\n" \
    "  - {storageClass: fast-storage, runtimeClass: microvm}\n"
#define MICROVM    ",\"runtimeClassName\":\"microvm\""
#define ANNOTATION "readWriteOncePod: {claimLock: Annotation}\n"

enum { DEAD_MS = 65000 /* BINDING_DEAD_MS */ };

static const char holder[] = "metadata.annotations.claimguard~io/holder";
static const char admitted[] = "metadata.annotations.claimguard~io/admitted";

/* ---- deferrals ---- */

static const char *admit_vm(const struct guard *guard, const char *name, const char *annotation)
{
    const char *meta =
        annotation == NULL
            ? NULL
            : scenario_printf(",\"annotations\":{\"claimguard.io/defer-fs-mount\":\"%s\"}",
                              annotation);
    const struct test_creation vm = {.pod = {.name = name,
                                             .claim = "data",
                                             .node = "node-1",
                                             .more_meta = meta,
                                             .more_spec = MICROVM}};
    const struct test_creation trial = {.pod = vm.pod, .is_dry_run = true};
    const char *on_trial = admit_creation(guard, &trial);
    const char *answer = admit_creation(guard, &vm);

    check(strcmp(answer, on_trial) == 0, "as the dry run says: %s; %s", on_trial, answer);
    return answer;
}

static void a_pod_that_lacks_its_deferral_is_denied(void)
{
    struct guard guard;

    put_claim("data");
    admission_start(&guard, scenario_printf(DEFERRAL, "Annotation"));
    check(starts_with(admit_vm(&guard, "d", NULL),
                      "denied: 409 volume v is to be deferred, and a pod that is created with "
                      "spec.nodeName cannot be changed: set the annotation "
                      "claimguard.io/defer-fs-mount"),
          "nobody can write it");
    check(guard_metric(&guard, "claimguard_reservations ") == 0, "nothing is taken");
    check(strcmp(admit_vm(&guard, "e", "v"), "allowed") == 0, "it carries it");
    check(starts_with(admit_vm(&guard, "d", "v"), "denied: 409 claim default/data is reserved"),
          "it is e's");
    check(api_count("PATCH", "") == 0, "nothing is written");
    guard_stop(&guard);
}

static void a_pod_may_opt_out(void)
{
    struct guard guard;

    put_claim("data");
    admission_start(&guard, scenario_printf(DEFERRAL, "Annotation"));
    check(strcmp(admit_vm(&guard, "d", "disabled"), "allowed") == 0, "its owner says so");
    guard_stop(&guard);
}

/* The annotation is not what a reader of the field looks at. */
static void the_configured_form_counts(void)
{
    struct guard guard;

    put_claim("data");
    admission_start(&guard, scenario_printf(DEFERRAL, "Field"));
    check(starts_with(admit_vm(&guard, "d", "v"), "denied: 409 volume v is to be deferred, and a "
                                                  "pod that is created with spec.nodeName cannot "
                                                  "be changed: set deferFSMount: true"),
          "the other form");
    guard_stop(&guard);
}

/* Its storage class is not known before the claim is there. */
static void a_deferral_that_cannot_be_decided_is_denied(void)
{
    static const char spec[] = MICROVM ",\"volumes\":[{\"name\":\"token\",\"projected\":{}},"
                                       "{\"name\":\"v\",\"ephemeral\":{"
                                       "\"volumeClaimTemplate\":{\"spec\":{}}}}]";
    const struct test_creation vm = {.pod = {.name = "e", .node = "node-1", .more_spec = spec}};
    const struct test_creation set = {
        .pod = {.name = "f",
                .node = "node-1",
                .more_meta = ",\"annotations\":{\"claimguard.io/defer-fs-mount\":\"v\"}",
                .more_spec = spec}};
    const struct test_creation pending = {.pod = {.name = "p", .more_spec = spec}};
    struct guard guard;

    admission_start(&guard, scenario_printf(DEFERRAL, "Annotation"));
    check(starts_with(admit_creation(&guard, &vm),
                      "denied: 409 whether volume v is deferred depends on its claim"),
          "it would be mounted on the node, or not");
    check(strcmp(admit_creation(&guard, &set), "allowed") == 0, "its owner has decided");
    check(strcmp(admit_creation(&guard, &pending), "allowed") == 0, "its bind decides");
    guard_stop(&guard);
}

/* ---- claimLock: Annotation ---- */

static void the_lock_of_a_pod_that_does_not_exist_yet_holds(void)
{
    const struct test_creation c = {.pod = {.name = "c", .claim = "data", .node = "node-1"}};
    const struct test_creation d = {.pod = {.name = "d", .claim = "data", .node = "node-2"}};
    struct guard one, two;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    admission_start(&one, ANNOTATION);
    admission_start(&two, ANNOTATION);
    check(strcmp(admit_creation(&one, &c), "allowed") == 0, "its claim is free");
    check(strstr(api_text("persistentvolumeclaims", "default", "data", holder), "/c") != NULL,
          "it is locked");
    check(strcmp(api_text("persistentvolumeclaims", "default", "data", admitted), "created") == 0,
          "for a pod that is being created");
    check(starts_with(admit_creation(&two, &d),
                      "denied: 409 claim default/data is locked for pod default/c"),
          "the other replica sees it");
    sleep_ms(6000); /* over LOCK_PATIENCE_MS */
    check(!is_admitted(&two, "b", "node-2"), "c may still be created");
    check(!bind_succeeds(&two, "b", "node-2"), "nor is it for a bind");
    check(api_count("PATCH", "/pods/c") == 0, "there is nothing to fence");
    sleep_ms(DEAD_MS - 5000);
    check(is_admitted(&two, "b", "node-2"), "no API server works on it any more");
    guard_stop(&one);
    guard_stop(&two);
}

static void the_lock_of_a_pod_that_was_seen_and_is_gone_is_free_at_once(void)
{
    const struct test_creation c = {.pod = {.name = "c", .claim = "data", .node = "node-1"}};
    struct guard one, two;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    admission_start(&one, ANNOTATION);
    admission_start(&two, ANNOTATION);
    check(strcmp(admit_creation(&one, &c), "allowed") == 0, "its claim is free");
    api_hold("pods"); /* so that replica two learns of c by the lock alone */
    create(&c);
    check(starts_with(admit(&two, &(struct test_review){.pod = "b", .node = "node-2"}),
                      "denied: 409 claim default/data is in use by pod default/c"),
          "it is there");
    api_remove("pods", "default", "c");
    check(is_admitted(&two, "b", "node-2"), "no pod comes twice");
    api_release("pods");
    guard_stop(&one);
    guard_stop(&two);
}

/* The other claim is another pod's. */
static void what_is_denied_gives_its_locks_back(void)
{
    const struct test_creation c = {
        .pod = {.name = "c", .claim = "data", .second_claim = "other", .node = "node-1"}};
    struct guard one, two;

    put_claim("data");
    put_claim("other");
    put_pod(&(struct test_pod){.name = "b", .claim = "other"});
    admission_start(&one, ANNOTATION);
    admission_start(&two, ANNOTATION);
    check(is_admitted(&one, "b", "node-2"), "its claim is free");
    check(starts_with(admit_creation(&two, &c),
                      "denied: 409 claim default/other is locked for pod default/b"),
          "it is b's");
    check(strcmp(api_text("persistentvolumeclaims", "default", "data", holder), "") == 0,
          "data is free");
    check(guard_metric(&two, "claimguard_reservations ") == 0, "here, too");
    check(api_count("PATCH", "/pods/c") == 0, "there is nothing to fence");
    guard_stop(&one);
    guard_stop(&two);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_pod_that_lacks_its_deferral_is_denied),
        SCENARIO(a_pod_may_opt_out),
        SCENARIO(the_configured_form_counts),
        SCENARIO(a_deferral_that_cannot_be_decided_is_denied),
        SCENARIO(the_lock_of_a_pod_that_does_not_exist_yet_holds),
        SCENARIO(the_lock_of_a_pod_that_was_seen_and_is_gone_is_free_at_once),
        SCENARIO(what_is_denied_gives_its_locks_back),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
