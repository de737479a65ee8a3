/* DeferFSMount against an API server that knows the field, or does not: a row each. The server
 * keeps KEP-2857's rules (only from false to true, not once a kubelet has the pod), and looks at
 * every pod that is bound: is its decision there? */
#include <stdlib.h>
#include <string.h>

#include "extender/zpages/scrape.h"
#include "simulation/rows.h"

enum { DATA = 1, LOGS = 2, BOTH = 3, SHARED = 4 }; /* claims; SHARED is ReadWriteMany */

static struct sim_pod *create_vm(const char *name, int priority, unsigned claims)
{
    return server_create_pod(
        name, &(struct sim_pod){.priority = priority, .claims = claims, .is_vm = true});
}

static struct sim_pod *vm_holder(const char *name, int priority, unsigned claims)
{
    struct sim_pod *pod = create_vm(name, priority, claims);

    wait_seconds(2);
    expect(pod->node >= 0, "the VM is bound");
    return pod;
}

static struct config *live_config(void)
{
    return world.replicas[0].state.config;
}

/* claimguard_deferred_mounts_total */
static unsigned counted(void)
{
    static const char name[] = "\nclaimguard_deferred_mounts_total{";
    struct state *state = &world.replicas[0].state;
    struct pieces *pieces = scrape_new(state, false);
    struct buf text;

    buf_init(&text, 1 << 20);
    while (pieces->next(pieces, &text))
        continue;
    pieces_free(pieces);
    const char *line = strstr(buf_text(&text), name);
    unsigned count = line == NULL ? 0 : (unsigned)atoi(strchr(line, '}') + 1);
    buf_dispose(&text);
    return count;
}

static void share(void)
{
    server_change_claim(2, false, false);
    wait_seconds(1);
}

/* ---- the rows ---- */

static void auto_writes_the_field_where_the_api_server_knows_it(void)
{
    const struct sim_pod *pod = vm_holder("vm", 0, BOTH);

    expect(pod->fields == BOTH && pod->annotated == 0, "both volumes have the field");
}

static void auto_writes_the_annotation_elsewhere(void)
{
    world.field = FIELD_ABSENT;
    const struct sim_pod *pod = vm_holder("vm", 0, BOTH);

    expect(pod->annotated == BOTH && pod->fields == 0, "both volumes are annotated");
}

static void annotation_is_written_though_the_field_is_known(void)
{
    live_config()->defer_fs_mount.apply = DEFER_ANNOTATION;
    const struct sim_pod *pod = vm_holder("vm", 0, DATA);

    expect(pod->annotated == DATA && pod->fields == 0, "as configured");
}

static void field_is_refused_by_an_api_server_that_does_not_know_it(void)
{
    live_config()->defer_fs_mount.apply = DEFER_FIELD;
    world.field = FIELD_ABSENT;
    const struct sim_pod *pod = create_vm("vm", 0, DATA);

    wait_seconds(20);
    expect(pod->node < 0 && pod->annotated == 0, "the pod is not bound, and nothing falls back");
    world.field = FIELD_KNOWN;
    wait_seconds(20);
    expect(pod->node >= 0 && pod->fields == DATA, "until the field can be written");
}

static void auto_asks_again_after_the_field_was_refused(void)
{
    (void)vm_holder("first", 0, DATA);
    world.field = FIELD_ABSENT; /* a downgrade that nobody has noticed */
    const struct sim_pod *pod = create_vm("vm", 0, LOGS);

    wait_seconds(20);
    expect(pod->node >= 0 && pod->annotated == LOGS, "the pod is bound with the annotation");
}

static void auto_asks_again_after_a_reconnect(void)
{
    world.field = FIELD_ABSENT;
    (void)vm_holder("first", 0, DATA);
    server_replace(FIELD_KNOWN);
    const struct sim_pod *pod = vm_holder("vm", 0, LOGS);

    expect(pod->fields == LOGS && pod->annotated == 0, "the field");
}

static void auto_writes_the_annotation_where_the_gate_of_the_field_is_off(void)
{
    world.field = FIELD_GATED;
    wait_seconds(2); /* the API server is asked about the field */
    unsigned before = world.requests;
    const struct sim_pod *pod = vm_holder("vm", 0, DATA);

    expect(pod->annotated == DATA && pod->fields == 0, "the field was dropped");
    expect(world.refused_binds == 0 && world.failures == 0, "in the same bind");
    expect(world.requests - before == 3, "two patches and a Binding");
    before = world.requests;
    pod = vm_holder("other", 0, LOGS);
    expect(pod->annotated == LOGS && world.requests - before == 2, "the next one: one patch");
    expect(counted() == 2, "as often as there is one");
    server_replace(FIELD_KNOWN); /* the gate is on */
    pod = vm_holder("third", 0, SHARED);
    expect(pod->fields == SHARED && pod->annotated == 0, "after a reconnect it is tried again");
}

static void field_is_refused_where_its_gate_is_off(void)
{
    live_config()->defer_fs_mount.apply = DEFER_FIELD;
    world.field = FIELD_GATED;
    const struct sim_pod *pod = create_vm("vm", 0, DATA);

    wait_seconds(20);
    expect(pod->node < 0 && pod->annotated == 0, "the pod is not bound, and nothing falls back");
    expect(world.failures != 0, "told why");
    expect(counted() == 0, "nothing is there");
    world.field = FIELD_KNOWN;
    wait_seconds(20);
    expect(pod->node >= 0 && pod->fields == DATA && counted() == 1, "until the gate is on");
}

static void a_pod_whose_annotation_is_removed_as_it_is_written_is_not_bound(void)
{
    world.field = FIELD_ABSENT;
    world.annotation_is_removed = true;
    const struct sim_pod *pod = create_vm("vm", 0, DATA);

    wait_seconds(20);
    expect(pod->node < 0, "not bound");
    expect(world.failures != 0, "told why");
    expect(counted() == 0, "nothing is there");
    world.annotation_is_removed = false;
    wait_seconds(20);
    expect(pod->node >= 0 && pod->annotated == DATA && counted() == 1, "until it stays");
}

/* A pod with the field in the cache, and an API server that is older than the field: its watches
 * went on where they were. */
static void auto_annotates_a_pod_that_has_the_field_when_the_api_server_is_older_now(void)
{
    world.lost_bindings = 1000;
    const struct sim_pod *pod = create_vm("vm", 0, DATA);
    wait_seconds(2);
    expect(pod->fields == DATA, "the field is written, and the pod is not bound");
    server_replace(FIELD_ABSENT);
    wait_seconds(6);
    world.lost_bindings = 0;
    wait_seconds(100);
    expect(pod->node >= 0 && pod->annotated == DATA, "the Binding has stripped the field");
}

static void auto_annotates_a_users_own_field_when_the_api_server_is_older_now(void)
{
    struct sim_pod *plain = holder("plain", 100, DATA);
    const struct sim_pod *pod = server_create_pod(
        "own", &(struct sim_pod){.claims = DATA, .fields = DATA, .own_fields = DATA});
    wait_seconds(1);
    server_replace(FIELD_ABSENT);
    wait_seconds(6);
    server_terminate(plain, 0);
    wait_seconds(20);
    expect(pod->node >= 0 && pod->annotated == DATA, "the Binding has stripped the field");
}

static void field_is_refused_by_an_api_server_that_is_older_now(void)
{
    live_config()->defer_fs_mount.apply = DEFER_FIELD;
    world.lost_bindings = 1000;
    const struct sim_pod *pod = create_vm("vm", 0, DATA);
    wait_seconds(2);
    expect(pod->fields == DATA, "the field is written, and the pod is not bound");
    server_replace(FIELD_ABSENT);
    wait_seconds(6);
    world.lost_bindings = 0;
    wait_seconds(100);
    expect(pod->node < 0 && world.failures != 0, "the Binding would strip the field");
}

static void a_pod_that_opts_out_is_not_annotated_beside_its_own_field(void)
{
    live_config()->defer_fs_mount.apply = DEFER_ANNOTATION;
    const struct sim_pod *pod = server_create_pod(
        "own",
        &(struct sim_pod){.claims = DATA, .fields = DATA, .own_fields = DATA, .opts_out = true});

    wait_seconds(5);
    expect(pod->node >= 0 && pod->annotated == 0, "its word stays");
}

static void filter_knows_a_field_that_the_scheduler_does_not(void)
{
    share();
    world.scheduler_is_older = true;
    struct sim_pod *plain = holder("plain", 0, SHARED);
    const struct sim_pod *own = server_create_pod(
        "own", &(struct sim_pod){.claims = SHARED, .fields = SHARED, .own_fields = SHARED});

    wait_seconds(5);
    expect(own->node < 0 && world.refused_binds <= 1, "rejected by filter, once it knows the pod");
    expect(strstr(own->condition, "would mount it") != NULL, "told why");
    server_terminate(plain, 0);
    wait_seconds(20);
    expect(own->node >= 0, "it has the claim alone");
}

static void a_field_that_the_scheduler_does_not_know_preempts(void)
{
    share();
    world.scheduler_is_older = true;
    const struct sim_pod *plain = holder("plain", 0, SHARED);
    const struct sim_pod *own = server_create_pod(
        "own", &(struct sim_pod){
                   .priority = 100, .claims = SHARED, .fields = SHARED, .own_fields = SHARED});

    wait_seconds(60);
    expect(plain->preemption == 1 && own->node >= 0, "as it would for a field that it knows");
}

static void disabled_writes_nothing(void)
{
    const struct sim_pod *pod = create_vm("vm", 0, DATA);

    wait_seconds(5);
    expect(pod->node >= 0 && pod->fields == 0 && pod->annotated == 0, "it is bound all the same");
}

static void a_pod_of_another_runtime_costs_no_request_and_one_that_defers_costs_one(void)
{
    wait_seconds(2); /* the API server is asked about the field */
    unsigned before = world.requests, plain;

    (void)holder("plain", 0, DATA);
    plain = world.requests - before;
    before = world.requests;
    (void)vm_holder("vm", 0, LOGS);
    expect(plain == 1 && world.requests - before == 2, "a Binding; a patch and a Binding");
}

static void a_failure_between_the_patch_and_the_binding_leaves_one_decision(void)
{
    world.lost_bindings = 2;
    const struct sim_pod *pod = create_vm("vm", 0, DATA);

    wait_seconds(30);
    expect(pod->node >= 0 && pod->fields == DATA && world.deferred == 1, "written once");
}

static void a_conflict_is_retried_on_a_fresh_decision(void)
{
    struct sim_pod *pod = create_vm("vm", 0, DATA);

    /* it opts out when it has been filtered, and the watch is late */
    pod->opts_out = true;
    server_touch(pod);
    wait_seconds(5);
    expect(pod->node >= 0 && pod->fields == 0, "the pod's word counts");
}

static void an_annotation_that_is_removed_before_the_binding_is_decided_again(void)
{
    world.field = FIELD_ABSENT;
    world.edits = 1; /* behind the patch */
    const struct sim_pod *pod = create_vm("vm", 0, DATA);

    wait_seconds(5);
    expect(pod->node >= 0 && pod->annotated == DATA, "bound with the decision");
    expect(world.refused_binds == 0, "in the same bind");
}

static void an_annotation_of_before_that_is_removed_before_the_binding_is_decided_again(void)
{
    world.field = FIELD_ABSENT;
    world.edits = 1; /* nothing is written: what is there is looked at */
    const struct sim_pod *pod = server_create_pod(
        "vm", &(struct sim_pod){.claims = DATA, .is_vm = true, .annotated = DATA});

    wait_seconds(5);
    expect(pod->node >= 0 && pod->annotated == DATA, "bound with the decision");
}

static void others_may_patch_a_pod_that_defers_while_it_is_bound(void)
{
    world.touches = 2;
    const struct sim_pod *pod = vm_holder("vm", 0, DATA);

    expect(pod->fields == DATA && world.refused_binds == 0, "in the same bind");
    world.touches = 1000;
    pod = create_vm("other", 0, LOGS);
    wait_seconds(20);
    expect(pod->node < 0 && world.refused_binds != 0, "not without end");
    world.touches = 0;
    wait_seconds(20);
    expect(pod->node >= 0 && pod->fields == LOGS, "later");
}

static void an_api_server_that_is_down_binds_nobody_without_the_decision(void)
{
    struct sim_pod *pod = create_vm("vm", 0, DATA);

    world.api_down_until_ns = world.now_ns + 10 * SECOND;
    wait_seconds(9);
    expect(pod->node < 0, "not bound");
    wait_seconds(40);
    expect(pod->node >= 0 && pod->fields == DATA, "bound, and deferred");
}

static void a_claim_that_is_not_bound_yet_is_decided_when_it_is(void)
{
    server_change_claim(0, true, true);
    wait_seconds(1);
    const struct sim_pod *pod = create_vm("vm", 0, DATA);
    wait_seconds(10);
    expect(pod->node < 0, "no decision, no binding");
    server_change_claim(0, true, false);
    wait_seconds(20);
    expect(pod->node >= 0 && pod->fields == DATA, "decided");
}

/* ---- claims that are for one pod since its runtime mounts them ---- */

static void exclusive_a_deferred_holder_keeps_everyone_out(void)
{
    share();
    struct sim_pod *vm = vm_holder("vm", 0, SHARED);
    const struct sim_pod *plain = create("plain", 0, SHARED),
                         *other = create_vm("other", 0, SHARED);

    wait_seconds(20);
    expect(plain->node < 0 && other->node < 0, "nobody else gets the claim");
    expect(strstr(plain->condition, "whose container runtime mounts it") != NULL, "told why");
    server_terminate(vm, 0);
    wait_seconds(40);
    expect((plain->node < 0) != (other->node < 0), "one of them has it now");
}

static void exclusive_others_share_until_a_vm_comes(void)
{
    share();
    struct sim_pod *one = holder("one", 0, SHARED), *two = holder("two", 0, SHARED);
    const struct sim_pod *vm = create_vm("vm", 0, SHARED);

    wait_seconds(20);
    expect(vm->node < 0, "it waits for both");
    expect(strstr(vm->condition, "would mount it") != NULL, "told why");
    server_terminate(one, 0);
    wait_seconds(20);
    expect(vm->node < 0, "it waits for the other");
    server_terminate(two, 0);
    wait_seconds(20);
    expect(vm->node >= 0, "it has the claim alone");
}

static void exclusive_a_deferred_holder_of_lower_priority_is_preempted(void)
{
    share();
    const struct sim_pod *vm = vm_holder("vm", 0, SHARED), *high = create("high", 100, SHARED);

    wait_seconds(60);
    expect(vm->preemption == 1 && high->node >= 0, "by claimguard: the scheduler knows nothing");
}

static void refuse_defers_nothing_and_they_share(void)
{
    struct defer_entry *entry = live_config()->defer_fs_mount.entries;

    world.defers = false; /* as far as the server's own checks know */
    entry->non_exclusive_claims = NON_EXCLUSIVE_REFUSE;
    share();
    const struct sim_pod *one = vm_holder("one", 0, SHARED), *two = vm_holder("two", 0, SHARED);
    entry->non_exclusive_claims = NON_EXCLUSIVE_EXCLUSIVE;
    expect(one->fields == 0 && two->fields == 0, "none is deferred");
}

static void begin_with_field(void)
{
    world.defers = true;
    world.field = FIELD_KNOWN;
}

static void begin_disabled(void)
{
    begin_with_field();
    world.apply = DEFER_DISABLED;
}

int main(int argc, char **argv)
{
    static const struct row rows[] = {
        {ROW(auto_writes_the_field_where_the_api_server_knows_it), begin_with_field},
        {ROW(auto_writes_the_annotation_elsewhere), begin_with_field},
        {ROW(annotation_is_written_though_the_field_is_known), begin_with_field},
        {ROW(field_is_refused_by_an_api_server_that_does_not_know_it), begin_with_field},
        {ROW(auto_asks_again_after_the_field_was_refused), begin_with_field},
        {ROW(auto_asks_again_after_a_reconnect), begin_with_field},
        {ROW(auto_writes_the_annotation_where_the_gate_of_the_field_is_off), begin_with_field},
        {ROW(field_is_refused_where_its_gate_is_off), begin_with_field},
        {ROW(a_pod_whose_annotation_is_removed_as_it_is_written_is_not_bound), begin_with_field},
        {ROW(auto_annotates_a_pod_that_has_the_field_when_the_api_server_is_older_now),
         begin_with_field},
        {ROW(auto_annotates_a_users_own_field_when_the_api_server_is_older_now), begin_with_field},
        {ROW(field_is_refused_by_an_api_server_that_is_older_now), begin_with_field},
        {ROW(a_pod_that_opts_out_is_not_annotated_beside_its_own_field), begin_with_field},
        {ROW(filter_knows_a_field_that_the_scheduler_does_not), begin_with_field},
        {ROW(a_field_that_the_scheduler_does_not_know_preempts), begin_with_field},
        {ROW(disabled_writes_nothing), begin_disabled},
        {ROW(a_pod_of_another_runtime_costs_no_request_and_one_that_defers_costs_one),
         begin_with_field},
        {ROW(a_failure_between_the_patch_and_the_binding_leaves_one_decision), begin_with_field},
        {ROW(a_conflict_is_retried_on_a_fresh_decision), begin_with_field},
        {ROW(an_annotation_that_is_removed_before_the_binding_is_decided_again), begin_with_field},
        {ROW(an_annotation_of_before_that_is_removed_before_the_binding_is_decided_again),
         begin_with_field},
        {ROW(others_may_patch_a_pod_that_defers_while_it_is_bound), begin_with_field},
        {ROW(an_api_server_that_is_down_binds_nobody_without_the_decision), begin_with_field},
        {ROW(a_claim_that_is_not_bound_yet_is_decided_when_it_is), begin_with_field},
        {ROW(exclusive_a_deferred_holder_keeps_everyone_out), begin_with_field},
        {ROW(exclusive_others_share_until_a_vm_comes), begin_with_field},
        {ROW(exclusive_a_deferred_holder_of_lower_priority_is_preempted), begin_with_field},
        {ROW(refuse_defers_nothing_and_they_share), begin_with_field},
    };

    return rows_run(rows, sizeof rows / sizeof *rows, argc, argv);
}
