/* Pods that are created with their node, and that the API server has reviewed: a row for each way
 * in which such a creation can end. */
#include "simulation/creations.h"

static unsigned reservations(void)
{
    return world.replicas[0].state.cluster.reserved.count;
}

enum { OWNED = 1 << (CLAIMS - 1) }; /* the claim that is created for EPHEMERAL_OWNER */

/* ---- reservations ---- */

static void of_a_created_and_a_bound_pod_one_gets_the_claim(void)
{
    struct sim_pod *pending = create_pending("pending", DATA);

    expect(create_bound("first", DATA) == CREATED, "its claim is free");
    expect(create_bound("second", DATA) == DENIED && !exists("second"), "it is the first one's");
    expect(bind(pending) == DENIED, "the same for a Binding");
    expect(reservations() == 0, "the first pod itself holds the claim");
    remove_pod("first");
    wait_seconds(1);
    expect(bind(pending) == CREATED, "it is free again");
    expect(create_bound("second", DATA) == DENIED, "it is the bound pod's");
}

static void a_late_creation_keeps_its_claim(void)
{
    struct sim_pod *pending = create_pending("pending", DATA);

    create_late("first", DATA, 50);
    for (int i = 0; i < 20; i++)
        expect(bind(pending) == DENIED, "the first may still be created");
    wait_seconds(10);
    expect(exists("first") && bind(pending) == DENIED, "and is");
}

/* Its Binding has the API server asked about it, which has no such pod. */
static void a_binding_of_a_pod_that_is_being_created_does_not_free_its_claim(void)
{
    struct sim_pod *pending = create_pending("pending", DATA);

    create_late("first", DATA, 50);
    expect(bind(&world.server.pods[1]) == DENIED, "there is no such pod yet");
    expect(reservations() == 1, "and there may be soon");
    expect(bind(pending) == DENIED, "so its claim is kept");
}

/* That it does not exist might be answered when it does, and is known. */
static void nobody_asks_about_a_pod_that_is_being_created(void)
{
    server_change_claim(2, false, false);
    wait_seconds(1);
    create_late("first", DATA | SHARED, 6);
    world.fault = (struct planned_fault){
        .count = 1, .method = "GET", .path = "/first", .fate = FATE_NONE, .after_ns = 5 * SECOND};
    expect(create_on(2, "second", DATA) == DENIED, "its claim is reserved");
    expect(create_on(2, "third", SHARED) == DENIED, "its volume will be on its node");
    wait_seconds(5);
    expect(world.fault.count == 1 && exists("first"), "it is there, and nobody has asked before");
    expect(create_on(2, "second", DATA) == DENIED, "so it is known to be");
}

static void a_creation_that_is_never_stored_frees_its_claim(void)
{
    struct sim_pod *pending = create_pending("pending", DATA);

    world.lost_bindings = 1;
    expect(create_bound("first", DATA) == FAILED && !exists("first"), "etcd fails");
    wait_seconds(55);
    expect(bind(pending) == DENIED, "nobody knows that it failed");
    wait_seconds(10);
    expect(bind(pending) == CREATED, "no API server works on the first one any more");
}

static void a_creation_that_is_stored_at_the_last_moment_keeps_its_claim(void)
{
    struct sim_pod *pending = create_pending("pending", DATA);

    create_late("first", DATA, 58);
    world.replicas[0].is_watching[KIND_POD] = false;
    wait_seconds(70);
    expect(exists("first") && bind(pending) == DENIED,
           "the API server was asked, the watch is late");
}

static void a_dry_run_takes_nothing(void)
{
    struct sim_pod *pending = create_pending("pending", DATA);
    const struct client_creation trial = {
        .name = "first", .properties = {.claims = DATA}, .node = 1, .is_dry_run = true};

    expect(post(&trial) == CREATED, "it would pass");
    expect(reservations() == 0 && world.server.claims[0].holder[0] == '\0', "nothing is taken");
    expect(bind(pending) == CREATED, "the claim is free");
    expect(post(&trial) == DENIED, "it would not pass");
}

static void without_an_answer_nothing_is_created(void)
{
    replica_crash(&world.replicas[0]);
    expect(create_bound("first", DATA) == FAILED, "nobody decides");
    replica_start(&world.replicas[0]);
    expect(create_bound("first", DATA) == FAILED, "it is not synced yet");
    expect(create_bound("first", DATA) == CREATED, "now it is decided");
}

static void a_claim_that_does_not_exist_is_a_denial(void)
{
    server_remove_claim(0);
    wait_seconds(1);
    expect(create_bound("first", DATA) == DENIED, "there is no such claim");
    world.replicas[0].is_watching[KIND_CLAIM] = false;
    server_create_claim(0);
    expect(create_bound("first", DATA) == CREATED, "there is, and the watch is late");
}

/* The cache may have a pod of that name that is gone. */
static void a_pod_that_had_the_name_is_another_one(void)
{
    create_pending("first", 0);
    world.replicas[0].is_watching[KIND_POD] = false;
    remove_pod("first");
    create_late("first", DATA, 10);
    expect(create_bound("second", DATA) == DENIED, "the claim is the new one's");
}

/* A Binding of another pod, which names the claim of an earlier one, may still be applied. */
static void a_pod_whose_claim_is_to_be_created_does_not_get_the_name_of_a_taken_one(void)
{
    struct sim_pod owner = {.claims = OWNED, .ephemeral = OWNED, .scheduler = 1};
    const struct client_creation creation = {
        .name = EPHEMERAL_OWNER, .properties = owner, .node = 1};

    server_create_pod(EPHEMERAL_OWNER, &owner);
    wait_seconds(3);
    struct sim_pod *pending = create_pending("pending", OWNED);
    world.store_after_ns = 50 * SECOND;
    expect(bind(pending) == WAITS, "the owner has no node, so the claim is free");
    world.store_after_ns = 0;
    remove_pod(EPHEMERAL_OWNER);
    wait_seconds(3);
    expect(world.server.claims[CLAIMS - 1].is_absent, "the claim goes with its owner");
    expect(post(&creation) == DENIED, "its claim would be one that another pod may get");
    wait_seconds(50);
    remove_pod("pending");
    wait_seconds(1);
    expect(post(&creation) == CREATED, "nobody has the name");
}

/* Nobody knows which node a scheduler will choose. */
static void without_a_node_a_pod_is_created_beside_a_holder(void)
{
    expect(create_bound("first", DATA) == CREATED, "its claim is free");
    expect(create_on(-1, "second", DATA) == CREATED, "it waits for a scheduler, and its claim");
}

/* ---- claims that are shared ---- */

static void pods_that_share_a_volume_of_one_node_are_created_there(void)
{
    server_change_claim(2, false, false);
    wait_seconds(1);
    create_late("first", SHARED, 50);
    expect(create_on(2, "second", SHARED) == DENIED, "the volume will be on the first one's node");
    expect(create_on(1, "third", SHARED) == CREATED, "and there it may be shared");
}

/* Meanwhile it is created again, for one pod alone, and the watch is late. */
static void a_shared_claim_is_confirmed(void)
{
    server_change_claim(2, false, false);
    wait_seconds(1);
    create_late("first", SHARED, 50);
    world.replicas[0].is_watching[KIND_CLAIM] = false;
    server_remove_claim(2);
    world.server.claims[2].is_rwop = true;
    server_create_claim(2);
    expect(create_on(1, "second", SHARED) == DENIED, "it is not to be shared any more");
}

/* ---- failurePolicy: Ignore ---- */

static void what_nobody_has_reviewed_is_reported(void)
{
    expect(create_bound("first", DATA) == CREATED, "its claim is free");
    replica_crash(&world.replicas[0]);
    expect(create_bound("second", DATA) == CREATED, "nobody decides");
    replica_start(&world.replicas[0]);
    wait_seconds(1);
    expect(world.replicas[0].state.cluster.violations == 1, "two pods have it");
    expect(create_bound("third", DATA) == DENIED, "and no third one");
}

static void what_is_not_known_is_no_denial(void)
{
    server_remove_claim(0);
    wait_seconds(1);
    world.replicas[0].is_watching[KIND_CLAIM] = false;
    server_create_claim(0);
    world.fault = (struct planned_fault){.count = 1, .method = "GET", .fate = FATE_LOST};
    expect(create_bound("first", DATA) == CREATED, "the watch is late, and nobody could be asked");
}

/* The claim was taken, and then the API server did not say which form of deferral it knows. */
static void what_could_not_be_decided_keeps_its_claim(void)
{
    struct sim_pod *pending = create_pending("pending", DATA);
    const struct client_creation vm = {
        .name = "vm", .properties = {.claims = DATA, .is_vm = true}, .node = 1};

    world.store_after_ns = 50 * SECOND;
    expect(post(&vm) == WAITS, "nobody has decided, so it is stored");
    expect(bind(pending) == DENIED, "and its claim is kept");
}

/* ---- deferral ---- */

static void a_pod_that_lacks_its_deferral_is_denied(void)
{
    struct client_creation vm = {
        .name = "vm", .properties = {.claims = DATA, .is_vm = true}, .node = 1, .is_dry_run = true};

    expect(post(&vm) == DENIED, "as a trial");
    vm.is_dry_run = false;
    expect(post(&vm) == DENIED && reservations() == 0, "nobody can write it, and nothing is taken");
    vm.properties.annotated = vm.properties.own_fields = DATA;
    expect(post(&vm) == CREATED && world.deferred == 0, "it has it, and nothing is written");
}

/* ---- settings ---- */

static void review_owned(void)
{
    review();
    world.has_ephemeral = true;
}

static void review_and_lock(void)
{
    review();
    world.is_annotation = true;
}

static void review_for_one_node(void)
{
    review();
    world.is_for_one_node = true;
    world.read_write_once = MODE_ENFORCE;
}

static void review_and_defer(void)
{
    review();
    world.defers = true;
    world.apply = DEFER_ANNOTATION;
}

static void review_or_ignore(void)
{
    review();
    world.fails_open = true;
}

static void review_and_ask_in_vain(void)
{
    review_or_ignore();
    world.defers = true;
    world.apply = DEFER_AUTO;
    world.fault = (struct planned_fault){.count = 100, .path = "/openapi", .fate = FATE_LOST};
}

int main(int argc, char **argv)
{
    static const struct row rows[] = {
        {ROW(of_a_created_and_a_bound_pod_one_gets_the_claim), review},
        {ROW(a_late_creation_keeps_its_claim), review},
        {ROW(a_binding_of_a_pod_that_is_being_created_does_not_free_its_claim), review},
        {ROW(nobody_asks_about_a_pod_that_is_being_created), review_for_one_node},
        {ROW(a_creation_that_is_never_stored_frees_its_claim), review},
        {ROW(a_creation_that_is_stored_at_the_last_moment_keeps_its_claim), review},
        {ROW(a_dry_run_takes_nothing), review_and_lock},
        {ROW(without_an_answer_nothing_is_created), review},
        {ROW(a_claim_that_does_not_exist_is_a_denial), review},
        {ROW(a_pod_that_had_the_name_is_another_one), review},
        {ROW(a_pod_whose_claim_is_to_be_created_does_not_get_the_name_of_a_taken_one),
         review_owned},
        {ROW(without_a_node_a_pod_is_created_beside_a_holder), review},
        {ROW(pods_that_share_a_volume_of_one_node_are_created_there), review_for_one_node},
        {ROW(a_shared_claim_is_confirmed), review},
        {ROW(what_nobody_has_reviewed_is_reported), review_or_ignore},
        {ROW(what_is_not_known_is_no_denial), review_or_ignore},
        {ROW(what_could_not_be_decided_keeps_its_claim), review_and_ask_in_vain},
        {ROW(a_pod_that_lacks_its_deferral_is_denied), review_and_defer},
    };

    return rows_run(rows, sizeof rows / sizeof *rows, argc, argv);
}
