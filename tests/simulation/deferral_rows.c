/* DeferFSMount against an API server that knows the field, or does not: a row each. The server
 * keeps KEP-2857's rules (only from false to true, not once a kubelet has the pod), and looks at
 * every pod that is bound: is its decision there? */
#include <stdlib.h>
#include <string.h>

#include "simulation/vm_rows.h"

/* ---- the rows ---- */

static void a_pod_whose_annotation_is_removed_as_it_is_written_is_not_bound(void)
{
    world.field = FIELD_ABSENT;
    world.annotation_is_removed = true;
    const struct sim_pod *pod = create_vm("vm", 0, DATA);

    wait_seconds(20);
    expect(pod->node < 0, "not bound");
    expect(world.failures != 0, "the reason is given");
    expect(counted() == 0, "nothing is there");
    world.annotation_is_removed = false;
    wait_seconds(20);
    expect(pod->node >= 0 && pod->annotated == DATA && counted() == 1, "until it stays");
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

static void disabled_writes_nothing(void)
{
    const struct sim_pod *pod = create_vm("vm", 0, DATA);

    wait_seconds(5);
    expect(pod->node >= 0 && pod->fields == 0 && pod->annotated == 0, "it is bound without either");
}

static void a_pod_of_another_runtime_costs_no_request_and_one_that_defers_costs_two(void)
{
    wait_seconds(2); /* the API server is asked about the field */
    unsigned before = world.requests, plain;

    (void)holder("plain", 0, DATA);
    plain = world.requests - before;
    before = world.requests;
    (void)vm_holder("vm", 0, LOGS);
    expect(plain == 1 && world.requests - before == 3,
           "a Binding; a look at the claim, a patch and a Binding");
}

static void a_claim_that_came_back_with_another_class_is_decided_by_that(void)
{
    world.replicas[0].is_watching[KIND_CLAIM] = false; /* the watch is late */
    server_remove_claim(0);
    world.server.claims[0].is_slow = true;
    server_create_claim(0);
    const struct sim_pod *pod = create_vm("vm", 0, DATA);

    wait_seconds(20);
    expect(pod->node >= 0 && pod->fields == 0, "no entry is for its class");
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
    world.edits = 1; /* nothing is written: the bind reads what is there */
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

/* ---- a claim that replaces another one of its name ---- */

/* The pod carries its decision, and its Binding fails; then another claim has the name. */
static struct sim_pod *create_vm_whose_claim_is_replaced(bool is_slow)
{
    world.lost_bindings = 1000;
    struct sim_pod *pod = create_vm("vm", 0, DATA);

    wait_seconds(5);
    expect(pod->node < 0 && server_deferred_claims(pod) == DATA, "decided, and not bound");
    server_remove_claim(0);
    world.server.claims[0].is_slow = is_slow;
    wait_seconds(1);
    world.server.claims[0].is_rwop = false;
    server_create_claim(0);
    wait_seconds(1);
    world.replicas[0].is_watching[KIND_POD] = false; /* it is late */
    world.lost_bindings = 0;
    wait_seconds(30);
    return pod;
}

static void what_was_decided_for_an_earlier_claim_is_taken_back(void)
{
    world.field = FIELD_ABSENT;
    const struct sim_pod *pod = create_vm_whose_claim_is_replaced(true);

    expect(pod->node >= 0 && pod->annotated == 0, "no entry is for the present one");
    expect(pod->deferred_for[0] == '\0', "nothing is left");
    replica_relist(&world.replicas[0], KIND_POD);
    wait_seconds(5);
    const struct sim_pod *other = create_vm("other", 0, DATA);
    wait_seconds(30);
    expect(other->node >= 0, "they share the claim");
}

static void what_was_decided_for_an_earlier_claim_is_decided_again(void)
{
    world.field = FIELD_ABSENT;
    const struct sim_pod *pod = create_vm_whose_claim_is_replaced(false);

    expect(pod->node >= 0 && pod->annotated == DATA, "an entry is for the present one, too");
    expect(strstr(pod->deferred_for, world.server.claims[0].uid) != NULL, "and it is the one");
}

static void a_field_for_an_earlier_claim_cannot_be_taken_back(void)
{
    struct sim_pod *pod = create_vm_whose_claim_is_replaced(true);

    expect(pod->node < 0 && pod->fields == DATA, "it is not bound with it");
    wait_seconds(80); /* the doubt about its Bindings ends first */
    expect(world.replicas[0].state.cluster.reserved.count == 0, "it keeps nothing");
    pod = create_vm("again", 0, DATA);
    wait_seconds(12);
    expect(pod->node >= 0 && pod->fields == 0, "another pod is bound");
}

static void a_field_for_an_earlier_claim_is_decided_again(void)
{
    const struct sim_pod *pod = create_vm_whose_claim_is_replaced(false);

    expect(pod->node >= 0 && pod->fields == DATA, "an entry is for the present one, too");
    expect(strstr(pod->deferred_for, world.server.claims[0].uid) != NULL, "and it is the one");
}

static void what_a_user_has_written_stays_for_another_claim(void)
{
    world.field = FIELD_ABSENT;
    world.lost_bindings = 1000;
    const struct sim_pod *pod = server_create_pod(
        "vm",
        &(struct sim_pod){.claims = DATA, .is_vm = true, .annotated = DATA, .own_fields = DATA});

    wait_seconds(5);
    server_remove_claim(0);
    world.server.claims[0].is_slow = true;
    server_create_claim(0);
    world.lost_bindings = 0;
    wait_seconds(30);
    expect(pod->node >= 0 && pod->annotated == DATA, "the pod's word counts");
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
    expect(strstr(plain->condition, "whose container runtime mounts it") != NULL,
           "the reason is given");
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
    expect(strstr(vm->condition, "would mount it") != NULL, "the reason is given");
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

static void begin_disabled(void)
{
    begin_with_field();
    world.apply = DEFER_DISABLED;
}

int main(int argc, char **argv)
{
    static const struct row rows[] = {
        {ROW(a_pod_whose_annotation_is_removed_as_it_is_written_is_not_bound), begin_with_field},
        {ROW(a_pod_that_opts_out_is_not_annotated_beside_its_own_field), begin_with_field},
        {ROW(disabled_writes_nothing), begin_disabled},
        {ROW(a_pod_of_another_runtime_costs_no_request_and_one_that_defers_costs_two),
         begin_with_field},
        {ROW(a_claim_that_came_back_with_another_class_is_decided_by_that), begin_with_field},
        {ROW(a_failure_between_the_patch_and_the_binding_leaves_one_decision), begin_with_field},
        {ROW(a_conflict_is_retried_on_a_fresh_decision), begin_with_field},
        {ROW(an_annotation_that_is_removed_before_the_binding_is_decided_again), begin_with_field},
        {ROW(an_annotation_of_before_that_is_removed_before_the_binding_is_decided_again),
         begin_with_field},
        {ROW(others_may_patch_a_pod_that_defers_while_it_is_bound), begin_with_field},
        {ROW(an_api_server_that_is_down_binds_nobody_without_the_decision), begin_with_field},
        {ROW(a_claim_that_is_not_bound_yet_is_decided_when_it_is), begin_with_field},
        {ROW(what_was_decided_for_an_earlier_claim_is_taken_back), begin_with_field},
        {ROW(what_was_decided_for_an_earlier_claim_is_decided_again), begin_with_field},
        {ROW(a_field_for_an_earlier_claim_cannot_be_taken_back), begin_with_field},
        {ROW(a_field_for_an_earlier_claim_is_decided_again), begin_with_field},
        {ROW(what_a_user_has_written_stays_for_another_claim), begin_with_field},
        {ROW(exclusive_a_deferred_holder_keeps_everyone_out), begin_with_field},
        {ROW(exclusive_others_share_until_a_vm_comes), begin_with_field},
        {ROW(exclusive_a_deferred_holder_of_lower_priority_is_preempted), begin_with_field},
        {ROW(refuse_defers_nothing_and_they_share), begin_with_field},
    };

    return rows_run(rows, sizeof rows / sizeof *rows, argc, argv);
}
