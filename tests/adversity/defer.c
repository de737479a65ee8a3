/* DeferFSMount in front of API servers that drop KEP-2857's field, are older than it, or let others
 * change a pod between its decision and its Binding; and a scheduler that does not know the field.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/scenario.h"

#define ENTRIES \
    "  entries:\n" \
    "  - {storageClass: fast-storage, runtimeClass: microvm}\n"
#define AUTO       "deferFSMount:\n  apply: Auto\n" ENTRIES
#define FIELD      "deferFSMount:\n  apply: Field\n" ENTRIES
#define ANNOTATION "deferFSMount:\n  apply: Annotation\n" ENTRIES
#define EXCLUSIVE \
    "deferFSMount:\n  apply: Annotation\n  entries:\n" \
    "  - {storageClass: fast-storage, runtimeClass: microvm, nonExclusiveClaims: Exclusive}\n"
#define RUNTIME ",\"runtimeClassName\":\"microvm\""

static const char *annotation_of(const char *pod)
{
    return api_text("pods", "default", pod, "metadata.annotations.claimguard~io/defer-fs-mount");
}

static bool has_field(const char *pod)
{
    return strstr(api_object("pods", "default", pod), "\"deferFSMount\"") != NULL;
}

static bool is_bound(const char *pod)
{
    return api_text("pods", "default", pod, "spec.nodeName")[0] != '\0';
}

static void put_vm(const char *name, const char *claim)
{
    put_claim(claim);
    put_pod(&(struct test_pod){.name = name, .claim = claim, .more_spec = RUNTIME});
}

/* The same, after the start: a pod that exists at the start is requeued, which is a PATCH, too. */
static void put_seen_vm(const struct guard *guard, const char *name, const char *claim)
{
    double before = guard_metric(guard, "claimguard_cache_objects{resource=\"pods\"}");

    put_vm(name, claim);
    AWAIT(guard_metric(guard, "claimguard_cache_objects{resource=\"pods\"}") > before,
          "it is seen");
}

/* ---- the field's gate is off ---- */

static void with_the_gate_off_auto_binds_with_the_annotation(void)
{
    struct guard guard;

    api_set_field(API_FIELD_GATED);
    guard_start(&guard, AUTO);
    put_seen_vm(&guard, "vm", "data");
    put_seen_vm(&guard, "other", "logs");
    check(bind_succeeds(&guard, "vm", "node-1"), "in one bind");
    check(strcmp(annotation_of("vm"), "v") == 0 && !has_field("vm"), "with the annotation");
    check(api_count("PATCH", "/pods/vm") == 2, "one that was dropped, one that was not");
    check(bind_succeeds(&guard, "other", "node-1"), "the next one, too");
    check(strcmp(annotation_of("other"), "v") == 0, "with the annotation");
    check(api_count("PATCH", "/pods/other") == 1, "at once");
    check(guard_metric(&guard, "claimguard_deferred_mounts_total{") == 2, "what is there counts");
    guard_stop(&guard);
}

static void with_the_gate_off_field_does_not_bind(void)
{
    struct guard guard;

    api_set_field(API_FIELD_GATED);
    put_vm("vm", "data");
    guard_start(&guard, FIELD);
    check(!bind_succeeds(&guard, "vm", "node-1"), "the field is not there");
    check(!is_bound("vm") && annotation_of("vm")[0] == '\0', "no silent fallback");
    check(api_wait("POST", "DeferFSMountFailed", 1), "an Event is sent about the pod");
    check(guard_metric(&guard, "claimguard_deferred_mounts_total{") == 0, "nothing is there");
    api_set_field(API_FIELD_KEPT);
    check(bind_succeeds(&guard, "vm", "node-1") && has_field("vm"), "now it is");
    guard_stop(&guard);
}

static void without_an_openapi_document_auto_writes_the_annotation(void)
{
    struct guard guard;

    api_fault(&(struct api_fault){.method = "GET", .path = "/openapi", .status = 404});
    put_vm("vm", "data");
    guard_start(&guard, AUTO);
    check(bind_succeeds(&guard, "vm", "node-1"), "the server is older than the field");
    check(strcmp(annotation_of("vm"), "v") == 0 && !has_field("vm"), "with the annotation");
    guard_stop(&guard);
}

static void an_annotation_that_a_webhook_removes_does_not_bind(void)
{
    struct guard guard;

    put_vm("vm", "data");
    guard_start(&guard, ANNOTATION);
    api_fault(&(struct api_fault){.method = "PATCH",
                                  .path = "/pods/vm",
                                  .body = "defer-fs-mount",
                                  .times = 1,
                                  .status = 200,
                                  .answer = api_object("pods", "default", "vm")});
    check(!bind_succeeds(&guard, "vm", "node-1") && !is_bound("vm"), "it is not there");
    check(api_wait("POST", "DeferFSMountFailed", 1), "an Event is sent about the pod");
    check(guard_metric(&guard, "claimguard_deferred_mounts_total{") == 0, "nothing is there");
    check(bind_succeeds(&guard, "vm", "node-1"), "now it is");
    guard_stop(&guard);
}

static void an_answer_that_is_no_pod_does_not_bind(void)
{
    static const char *const answers[] = {"{}", "[", "{\"metadata\":{\"name\":\"vm\"}}",
                                          "{\"kind\":\"Status\"}"};
    struct guard guard;

    put_vm("vm", "data");
    guard_start(&guard, ANNOTATION);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        api_fault(&(struct api_fault){.method = "PATCH",
                                      .path = "/pods/vm",
                                      .body = "defer-fs-mount",
                                      .times = 1,
                                      .status = 200,
                                      .answer = answers[i]});
        check(!bind_succeeds(&guard, "vm", "node-1") && !is_bound("vm"), "%s", answers[i]);
    }
    guard_stop(&guard);
}

/* ---- an API server that is older than the field ---- */

/* A pending pod has the field, and the cache knows it; then another API server answers, and the
 * watches are resumed there. */
static void move_to_older_server(struct guard *guard, const char *config)
{
    api_set_field(API_FIELD_KEPT);
    put_vm("vm", "data");
    guard_start(guard, config);
    api_fault(&(struct api_fault){
        .method = "POST", .path = "/pods/vm/binding", .times = 1, .status = 403});
    check(!bind_succeeds(guard, "vm", "node-1"), "the Binding is refused");
    check(has_field("vm"), "the field is written");
    api_set_field(API_FIELD_UNKNOWN);
    size_t lists = api_count("GET", "sendInitialEvents");
    size_t watches = api_count("GET", "watch=1");
    api_cut("pods");
    check(api_wait("GET", "watch=1", watches + 1), "the watch is resumed");
    check(api_count("GET", "sendInitialEvents") == lists, "and nothing is listed");
}

static void after_a_move_to_an_older_server_auto_writes_the_annotation_beside_the_field(void)
{
    struct guard guard;

    move_to_older_server(&guard, AUTO);
    check(bind_succeeds(&guard, "vm", "node-1"), "it is bound");
    check(!has_field("vm") && strcmp(annotation_of("vm"), "v") == 0, "with the annotation");
    guard_stop(&guard);
}

static void after_a_move_to_an_older_server_field_does_not_bind(void)
{
    struct guard guard;

    move_to_older_server(&guard, FIELD);
    check(!bind_succeeds(&guard, "vm", "node-1") && !is_bound("vm"), "the field would be lost");
    check(api_wait("POST", "DeferFSMountFailed", 1), "an Event is sent about the pod");
    guard_stop(&guard);
}

/* ---- a scheduler that is older than the field ---- */

static void put_shared_claim(void)
{
    api_put("{\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"pv-data\"},\"spec\":{"
            "\"claimRef\":{\"namespace\":\"default\",\"name\":\"data\"},\"csi\":{\"driver\":"
            "\"plugin1.example.com\"}}}");
    api_put("{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"default\",\"name\":"
            "\"data\"},\"spec\":{\"accessModes\":[\"ReadWriteMany\"],\"storageClassName\":"
            "\"fast-storage\",\"volumeName\":\"pv-data\"},\"status\":{\"phase\":\"Bound\"}}");
}

/* A pod whose own spec has the field, and one that shares its claim. */
static void put_sharers(int priority)
{
    api_set_field(API_FIELD_KEPT);
    put_shared_claim();
    put_pod(&(struct test_pod){.name = "plain", .claim = "data", .node = "node-1"});
    api_put("{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"default\",\"name\":\"own\"},\"spec\":{"
            "\"priority\":%d,\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":"
            "\"data\",\"deferFSMount\":true}}]},\"status\":{\"phase\":\"Pending\"}}",
            priority);
}

/* The scheduler does not know that the pod `own` has the field. */
static char *filter_without_field(const struct guard *guard, const char *uid)
{
    char body[1024];

    (void)snprintf(body, sizeof body,
                   "{\"Pod\":{\"metadata\":{\"namespace\":\"default\",\"name\":\"own\",\"uid\":"
                   "\"%s\"},\"spec\":{\"priority\":%s,\"volumes\":[{\"name\":\"v\","
                   "\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]}},\"Nodes\":null,"
                   "\"NodeNames\":[\"node-1\",\"node-2\"]}",
                   uid, strstr(api_object("pods", "default", "own"), ":100") != NULL ? "100" : "0");
    return guard_call(guard, "/filter", body);
}

static void a_field_of_its_own_counts_though_the_scheduler_drops_it(void)
{
    struct guard guard;

    put_sharers(0);
    guard_start(&guard, AUTO);
    const char *uid = api_text("pods", "default", "own", "metadata.uid");
    char *answer = filter_without_field(&guard, uid);
    check(strstr(answer, "would mount it") != NULL, "rejected: %s", answer);
    free(answer);
    answer = filter_without_field(&guard, "00000000-0000-4000-8000-00000000ffff");
    check(strstr(answer, "would mount it") == NULL, "no other pod's: %s", answer);
    free(answer);
    guard_stop(&guard);
}

static void a_field_of_its_own_preempts_though_the_scheduler_drops_it(void)
{
    struct guard guard;

    put_sharers(100);
    guard_start(&guard, AUTO);
    const char *uid = api_text("pods", "default", "own", "metadata.uid");
    for (int i = 0; i < 600 && api_count("POST", "/plain/eviction") == 0; i++) {
        free(filter_without_field(&guard, uid));
        sleep_ms(100);
    }
    check(api_count("POST", "/plain/eviction") != 0, "its holder is evicted");
    guard_stop(&guard);
}

/* ---- the pod is patched between its decision and its Binding ---- */

/* Binds the pod; while its first Binding is on its way, the pod is changed to `changed`. */
static bool binds_over(struct guard *guard, const struct test_pod *changed)
{
    struct beside bind;

    api_hold("pods");
    api_fault(&(struct api_fault){
        .method = "POST", .path = "/pods/vm/binding", .times = 1, .delay_ms = 1000});
    bind_beside(&bind, guard, "vm", "node-1");
    check(api_wait("POST", "/pods/vm/binding", 1), "a Binding");
    put_pod(changed);
    bool is_bound = beside_end(&bind);
    api_release("pods");
    return is_bound;
}

static void an_annotation_that_is_removed_before_the_binding_is_written_again(void)
{
    const struct test_pod vm = {.name = "vm", .claim = "data", .more_spec = RUNTIME};
    struct guard guard;

    guard_start(&guard, ANNOTATION);
    put_seen_vm(&guard, "vm", "data");
    check(binds_over(&guard, &vm), "bound");
    check(is_bound("vm") && strcmp(annotation_of("vm"), "v") == 0, "with the annotation");
    check(api_count("PATCH", "/pods/vm") == 2, "it was decided again");
    guard_stop(&guard);
}

static void an_annotation_of_before_that_is_removed_before_the_binding_is_written_again(void)
{
    const struct test_pod vm = {.name = "vm", .claim = "data", .more_spec = RUNTIME};
    struct test_pod before = vm;
    struct guard guard;

    before.more_meta = ",\"annotations\":{\"claimguard.io/defer-fs-mount\":\"v\"}";
    put_claim("data");
    put_pod(&before);
    guard_start(&guard, ANNOTATION);
    check(binds_over(&guard, &vm), "bound");
    check(is_bound("vm") && strcmp(annotation_of("vm"), "v") == 0, "with the annotation");
    guard_stop(&guard);
}

static void a_pod_that_changed_before_the_write_is_decided_again(void)
{
    const struct test_pod vm = {.name = "vm",
                                .claim = "data",
                                .more_spec = RUNTIME,
                                .more_meta = ",\"annotations\":{\"x\":\"y\"}"};
    struct guard guard;

    guard_start(&guard, ANNOTATION);
    put_seen_vm(&guard, "vm", "data");
    api_hold("pods");
    put_pod(&vm);
    check(bind_succeeds(&guard, "vm", "node-1"), "in one bind");
    check(strcmp(annotation_of("vm"), "v") == 0, "with the annotation");
    check(api_count("PATCH", "/pods/vm") == 2, "the first was for another version");
    check(api_count("POST", "DeferFSMountFailed") == 0, "nothing failed");
    api_release("pods");
    guard_stop(&guard);
}

static void a_pod_that_opts_out_before_the_binding_is_bound_without_the_annotation(void)
{
    const struct test_pod vm = {
        .name = "vm",
        .claim = "data",
        .more_spec = RUNTIME,
        .more_meta = ",\"annotations\":{\"claimguard.io/defer-fs-mount\":\"disabled\"}"};
    struct guard guard;

    put_vm("vm", "data");
    guard_start(&guard, ANNOTATION);
    check(binds_over(&guard, &vm), "bound");
    check(strcmp(annotation_of("vm"), "disabled") == 0, "as its user says");
    guard_stop(&guard);
}

static void a_patch_of_somebody_else_before_the_binding_fails_no_bind(void)
{
    const struct test_pod vm = {
        .name = "vm",
        .claim = "data",
        .more_spec = RUNTIME,
        .more_meta = ",\"annotations\":{\"claimguard.io/defer-fs-mount\":\"v\",\"x\":\"y\"}"};
    struct guard guard;

    guard_start(&guard, ANNOTATION);
    put_seen_vm(&guard, "vm", "data");
    check(binds_over(&guard, &vm), "bound");
    check(is_bound("vm") && api_count("PATCH", "/pods/vm") == 1, "nothing is written again");
    guard_stop(&guard);
}

/* A claim of a bound pod whose annotation was removed. */
static void check_after_a_restart(const char *config, bool is_shared)
{
    struct test_pod vm = {.name = "vm", .claim = "data", .more_spec = RUNTIME};
    struct guard guard;

    put_shared_claim();
    put_pod(&vm);
    guard_start(&guard, config);
    check(bind_succeeds(&guard, "vm", "node-1") && annotation_of("vm")[0] == 'v', "deferred");
    vm.node = "node-1";
    put_pod(&vm);
    put_pod(&(struct test_pod){.name = "plain", .claim = "data"});
    AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"pods\"}") == 2, "all is seen");
    check(!filter_passes(&guard, "plain"), "the runtime has mounted the volume");
    guard_stop(&guard);
    guard_start(&guard, config);
    check(bind_succeeds(&guard, "plain", "node-1") == is_shared, "shared: %d", !is_shared);
    guard_stop(&guard);
}

static void an_annotation_that_is_removed_from_a_bound_pod_counts_until_a_restart(void)
{
    check_after_a_restart(EXCLUSIVE, true);
}

static void the_lock_of_a_claim_outlasts_the_annotation_of_its_pod(void)
{
    check_after_a_restart("readWriteOncePod: {claimLock: Annotation}\n" EXCLUSIVE, false);
}

/* ---- long annotations ---- */

enum { LONG_CLAIMS = 280, PAD_BYTES = 65535 };

/* Over 16 KiB of names, of which each is a volume. */
static void a_pod_of_hundreds_of_volumes_has_all_of_them_deferred_and_alone(void)
{
    const char *volumes = RUNTIME ",\"volumes\":[";
    struct guard guard;

    for (int i = 0; i < LONG_CLAIMS; i++) {
        put_claim(scenario_printf("c-%d", i));
        api_put("{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"default\","
                "\"name\":\"c-%d\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],"
                "\"storageClassName\":\"fast-storage\",\"volumeName\":\"pv-c-%d\"},\"status\":{"
                "\"phase\":\"Bound\"}}",
                i, i);
        volumes =
            scenario_printf("%s%s{\"name\":\"v-%055d\",\"persistentVolumeClaim\":{\"claimName\":"
                            "\"c-%d\"}}",
                            volumes, i == 0 ? "" : ",", i, i);
    }
    put_pod(&(struct test_pod){.name = "vm", .more_spec = scenario_printf("%s]", volumes)});
    put_pod(&(struct test_pod){.name = "plain", .claim = "c-1"});
    guard_start(&guard, EXCLUSIVE);
    /* hundreds of claims are read: with TSan, that may take longer than one bind may */
    AWAIT(bind_succeeds(&guard, "vm", "node-1"), "it is bound");
    check(strlen(annotation_of("vm")) > 16000, "all are deferred");
    check(!filter_passes(&guard, "plain") && !bind_succeeds(&guard, "plain", "node-1"),
          "the runtime mounts its claim");
    guard_stop(&guard);
}

/* Its user has filled it with what names no volume. */
static void an_annotation_that_has_no_room_is_not_written(void)
{
    char *pad = calloc(1, PAD_BYTES + 1);
    struct guard guard;

    memset(pad, 'x', PAD_BYTES);
    put_claim("data");
    put_pod(&(struct test_pod){
        .name = "vm",
        .claim = "data",
        .more_spec = RUNTIME,
        .more_meta =
            scenario_printf(",\"annotations\":{\"claimguard.io/defer-fs-mount\":\"%s\"}", pad)});
    free(pad);
    guard_start(&guard, EXCLUSIVE);
    for (int i = 0; i < 2; i++)
        check(!bind_succeeds(&guard, "vm", "node-1") && !is_bound("vm"), "it would be too long");
    check(guard_logs(&guard, "would have over 65536 bytes"), "it says so");
    check(api_count("PATCH", "/pods/vm") == 0, "nothing is written");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(with_the_gate_off_auto_binds_with_the_annotation),
        SCENARIO(with_the_gate_off_field_does_not_bind),
        SCENARIO(without_an_openapi_document_auto_writes_the_annotation),
        SCENARIO(an_annotation_that_a_webhook_removes_does_not_bind),
        SCENARIO(an_answer_that_is_no_pod_does_not_bind),
        SCENARIO(after_a_move_to_an_older_server_auto_writes_the_annotation_beside_the_field),
        SCENARIO(after_a_move_to_an_older_server_field_does_not_bind),
        SCENARIO(a_field_of_its_own_counts_though_the_scheduler_drops_it),
        SCENARIO(a_field_of_its_own_preempts_though_the_scheduler_drops_it),
        SCENARIO(an_annotation_that_is_removed_before_the_binding_is_written_again),
        SCENARIO(an_annotation_of_before_that_is_removed_before_the_binding_is_written_again),
        SCENARIO(a_pod_that_changed_before_the_write_is_decided_again),
        SCENARIO(a_pod_that_opts_out_before_the_binding_is_bound_without_the_annotation),
        SCENARIO(a_patch_of_somebody_else_before_the_binding_fails_no_bind),
        SCENARIO(an_annotation_that_is_removed_from_a_bound_pod_counts_until_a_restart),
        SCENARIO(a_pod_of_hundreds_of_volumes_has_all_of_them_deferred_and_alone),
        SCENARIO(an_annotation_that_has_no_room_is_not_written),
        SCENARIO(the_lock_of_a_claim_outlasts_the_annotation_of_its_pod),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
