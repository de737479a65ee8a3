/* The field and the annotation of DeferFSMount, a row each: which one is written, and what happens
 * where the API server or the scheduler does not know the field. */
#include "simulation/vm_rows.h"

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

static void field_is_written_beside_an_annotation(void)
{
    live_config()->defer_fs_mount.apply = DEFER_FIELD;
    const struct sim_pod *pod = server_create_pod(
        "vm", &(struct sim_pod){.claims = DATA, .annotated = DATA, .is_vm = true});

    wait_seconds(2);
    expect(pod->node >= 0 && pod->fields == DATA, "a reader of the field reads no annotation");
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
    expect(world.requests - before == 4, "a GET, two patches and a Binding");
    before = world.requests;
    pod = vm_holder("other", 0, LOGS);
    expect(pod->annotated == LOGS && world.requests - before == 3, "the next one: one patch");
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
    expect(world.failures != 0, "the reason is given");
    expect(counted() == 0, "nothing is there");
    world.field = FIELD_KNOWN;
    wait_seconds(20);
    expect(pod->node >= 0 && pod->fields == DATA && counted() == 1, "until the gate is on");
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

static void filter_knows_a_field_that_the_scheduler_does_not(void)
{
    share();
    world.scheduler_is_older = true;
    struct sim_pod *plain = holder("plain", 0, SHARED);
    const struct sim_pod *own = server_create_pod(
        "own", &(struct sim_pod){.claims = SHARED, .fields = SHARED, .own_fields = SHARED});

    wait_seconds(5);
    expect(own->node < 0 && world.refused_binds <= 1, "rejected by filter, once it knows the pod");
    expect(strstr(own->condition, "would mount it") != NULL, "the reason is given");
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

int main(int argc, char **argv)
{
    static const struct row rows[] = {
        {ROW(auto_writes_the_field_where_the_api_server_knows_it), begin_with_field},
        {ROW(auto_writes_the_annotation_elsewhere), begin_with_field},
        {ROW(annotation_is_written_though_the_field_is_known), begin_with_field},
        {ROW(field_is_written_beside_an_annotation), begin_with_field},
        {ROW(field_is_refused_by_an_api_server_that_does_not_know_it), begin_with_field},
        {ROW(auto_asks_again_after_the_field_was_refused), begin_with_field},
        {ROW(auto_asks_again_after_a_reconnect), begin_with_field},
        {ROW(auto_writes_the_annotation_where_the_gate_of_the_field_is_off), begin_with_field},
        {ROW(field_is_refused_where_its_gate_is_off), begin_with_field},
        {ROW(auto_annotates_a_pod_that_has_the_field_when_the_api_server_is_older_now),
         begin_with_field},
        {ROW(auto_annotates_a_users_own_field_when_the_api_server_is_older_now), begin_with_field},
        {ROW(field_is_refused_by_an_api_server_that_is_older_now), begin_with_field},
        {ROW(filter_knows_a_field_that_the_scheduler_does_not), begin_with_field},
        {ROW(a_field_that_the_scheduler_does_not_know_preempts), begin_with_field},
    };

    return rows_run(rows, sizeof rows / sizeof *rows, argc, argv);
}
