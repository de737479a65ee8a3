/* What a bind leaves behind when its Binding may still be applied, and what it remembers of the
 * locks of other pods: a row each. */
#include <stdio.h>
#include <string.h>

#include "extender/serving/live/seen_locks.h"
#include "simulation/rows.h"

enum { DATA = 1, CACHE = 2, SHARED = 4, ANSWER_BYTES = 512 };

/* A pod whose Binding the API server applies so many seconds later than its connection has died. */
static struct sim_pod *create_in_doubt(const char *name, uint64_t seconds)
{
    world.fault = (struct planned_fault){.count = 1,
                                         .method = "POST",
                                         .path = "/binding",
                                         .fate = FATE_ORPHANED,
                                         .after_ns = seconds * SECOND};
    struct sim_pod *pod = create(name, 0, DATA);
    for (int i = 0; i < 10 && world.fault.count != 0; i++)
        wait_seconds(1);
    expect(world.fault.count == 0 && pod->node < 0, "its Binding is on its way");
    return pod;
}

/* So many Bindings of the first pod are refused, and never applied. */
static void refuse_bindings(unsigned count)
{
    world.fault = (struct planned_fault){.count = count,
                                         .method = "POST",
                                         .path = "first/binding",
                                         .fate = FATE_LOST,
                                         .status = 403};
}

/* ---- the rows ---- */

static void a_binding_in_doubt_keeps_its_claim(void)
{
    const struct sim_pod *first = create_in_doubt("first", 40);
    const struct sim_pod *second = create("second", 0, DATA);

    refuse_bindings(1000); /* by a webhook that does not know it */
    wait_seconds(30);
    expect(second->node < 0 && world.fault.count < 1000, "the first one's binds are refused");
    wait_seconds(30);
    expect(first->node >= 0 && second->node < 0, "then the first Binding is applied");
}

static void a_binding_in_doubt_ends_with_its_pod(void)
{
    struct sim_pod *first = create_in_doubt("first", 3600);
    server_terminate(first, 0);
    const struct sim_pod *second = create("second", 0, DATA);
    wait_seconds(10);
    expect(second->node >= 0, "another pod gets the claim, long before the doubt's own end");
}

/* Its later Bindings are refused, so none of them can be applied. */
static void a_refused_bind_does_not_prolong_a_doubt(void)
{
    (void)create_in_doubt("first", 3600);
    const struct sim_pod *second = create("second", 0, DATA);

    refuse_bindings(1000);
    wait_seconds(55);
    expect(second->node < 0, "the first Binding may still be applied");
    wait_seconds(25);
    expect(second->node >= 0, "no API server works on it any more");
}

/* A webhook that cannot be called is a 500, which may also be the answer to a Binding that is
 * applied later. */
static void a_pod_whose_bindings_fail_gives_way(void)
{
    const struct sim_pod *first = create("first", 0, DATA);

    world.fault = (struct planned_fault){
        .count = 1000, .method = "POST", .path = "first/binding", .fate = FATE_LOST, .status = 500};
    wait_seconds(2);
    const struct sim_pod *second = create("second", 0, DATA);
    wait_seconds(2 * 65 - 10);
    expect(first->node < 0 && second->node < 0, "it may have been applied each time");
    wait_seconds(65 + 40);
    expect(second->node >= 0, "the other pod had its turn");
}

/* ---- locks of other pods ---- */

static void lock_claims(void)
{
    world.is_annotation = true;
}

/* A pod that no scheduler knows. */
static struct sim_pod *create_alone(const char *name, unsigned claims)
{
    return server_create_pod(name, &(struct sim_pod){.claims = claims, .scheduler = 1});
}

static void count_answer(void *context, const char *answer)
{
    (void)answer;
    *(unsigned *)context += 1;
}

/* Returns whether it is bound. */
static bool bind(const struct sim_pod *pod)
{
    unsigned answers = 0;
    char body[256];

    (void)snprintf(body, sizeof body,
                   "{\"PodName\":\"%s\",\"PodNamespace\":\"ns\",\"PodUID\":\"%s\",\"Node\":"
                   "\"node-1\"}",
                   pod->name, pod->uid);
    replica_call(0, VERB_BIND, body, count_answer, &answers);
    for (int i = 0; i < 10 && answers == 0; i++)
        wait_seconds(1);
    expect(answers == 1, "an answer");
    return pod->node >= 0;
}

/* So many locks of another claim are seen, which changes each time. */
static void see_others(unsigned count)
{
    const struct sim_pod *pod = create_alone("other", CACHE);

    for (unsigned i = 0; i < count; i++) {
        expect(!bind(pod), "its lock is new");
        server_publish_claim(&world.server.claims[1]);
    }
}

/* A claim stays locked for a pending pod, while so many other locks are seen. Returns whether the
 * lock is taken over then. The name of the pod has each kind of character that names have. */
static bool is_known_after(unsigned others)
{
    const struct sim_pod *pod = create_alone("second", DATA);
    const struct sim_pod *pending = create_alone("a-z.0-9", DATA | CACHE);

    for (unsigned i = 0; i < 2; i++) {
        (void)snprintf(world.server.claims[i].holder, sizeof world.server.claims[i].holder, "%s/%s",
                       pending->uid, pending->name);
        server_publish_claim(&world.server.claims[i]);
    }
    wait_seconds(1);
    expect(!bind(pod), "it is locked for another pod");
    see_others(others);
    return bind(pod);
}

static void a_lock_is_remembered_while_others_are_seen(void)
{
    expect(is_known_after(NAMESPACE_LOCKS_MAX - 1), "it has not changed for long enough");
}

static void the_oldest_of_too_many_locks_is_forgotten(void)
{
    expect(!is_known_after(NAMESPACE_LOCKS_MAX), "its age is not known any more");
    wait_seconds(6); /* LOCK_PATIENCE_MS */
    expect(bind(server_find_pod("second", 6)), "its age is known again");
}

static void note_answer(void *context, const char *answer)
{
    (void)snprintf(context, ANSWER_BYTES, "%s", answer);
}

/* Binds pod first, with that UID, to node-1. Returns the answer; no Binding is sent. */
static const char *answer_to_bind(const char *uid)
{
    static char answer[ANSWER_BYTES];
    char body[256];

    world.fault = (struct planned_fault){
        .count = 1, .method = "POST", .path = "/binding", .fate = FATE_LOST, .status = 409};
    (void)snprintf(body, sizeof body,
                   "{\"PodName\":\"first\",\"PodNamespace\":\"ns\",\"PodUID\":\"%s\",\"Node\":"
                   "\"node-1\"}",
                   uid);
    replica_call(0, VERB_BIND, body, note_answer, answer);
    wait_seconds(5);
    expect(world.fault.count == 1, "no Binding is sent");
    return answer;
}

static void a_pod_that_gives_way_says_to_whom(void)
{
    const struct sim_pod *first = create("first", 0, DATA);

    world.fault = (struct planned_fault){
        .count = 1000, .method = "POST", .path = "first/binding", .fate = FATE_LOST, .status = 500};
    wait_seconds(2);
    (void)create("second", 0, DATA);
    wait_seconds(2 * 65 + 5);
    expect(strstr(answer_to_bind(first->uid), "such as pod ns/second, for ") != NULL,
           "its answer says it");
}

/* Pod first, of which claimguard's watch does not see what happens to it. */
static struct sim_pod *create_and_look_away(void)
{
    struct sim_pod *pod = create_alone("first", DATA);

    wait_seconds(1);
    world.replicas[0].is_watching[KIND_POD] = false;
    return pod;
}

/* Somebody else binds it to that node. */
static const char *bind_behind_another(int node)
{
    struct sim_pod *pod = create_and_look_away();

    pod->node = node;
    server_touch(pod);
    return answer_to_bind(pod->uid);
}

static void a_pod_that_was_replaced_is_not_found(void)
{
    struct sim_pod *pod = create_and_look_away();
    char uid[sizeof pod->uid];

    memcpy(uid, pod->uid, sizeof uid);
    server_terminate(pod, 0);
    (void)create_alone("first", DATA);
    expect(strstr(answer_to_bind(uid), "not found") != NULL, "it says so");
    expect(world.server.claims[0].holder[0] == '\0', "its claim is not locked");
}

static void a_pod_that_is_on_another_node_is_refused(void)
{
    expect(strstr(bind_behind_another(2), "is already assigned to node") != NULL, "it says so");
}

static void a_pod_that_is_on_its_node_already_is_a_success(void)
{
    expect(strcmp(bind_behind_another(1), "{\"Error\":\"\"}") == 0, "it is bound");
}

/* A review would keep it. */
static void a_lock_of_before_is_released_when_a_bind_is_refused(void)
{
    const struct sim_pod *pod = create_in_doubt("first", 3600);

    scheduler_crash(&world.schedulers[0]);
    expect(world.server.claims[0].holder[0] != '\0', "its lock stays while it is in doubt");
    refuse_bindings(1);
    expect(!bind(pod) && world.fault.count == 0, "the next one is refused");
    expect(world.server.claims[0].holder[0] == '\0', "the claim is free");
}

/* The second pod has to have the claim for itself. */
static void expect_turn_of(const struct sim_pod *second)
{
    server_change_claim(0, false, false);
    wait_seconds(1);
    const struct sim_pod *first = create("first", 0, DATA);

    world.fault = (struct planned_fault){
        .count = 1000, .method = "POST", .path = "first/binding", .fate = FATE_LOST, .status = 500};
    wait_seconds(2);
    const struct sim_pod *vm = server_create_pod("vm", second);
    wait_seconds(3 * 65 + 40);
    expect(first->node < 0 && vm->node >= 0, "it has had its turn");
}

static void a_pod_that_shares_its_claim_gives_way_to_one_that_needs_it_alone(void)
{
    expect_turn_of(&(struct sim_pod){.claims = DATA, .is_vm = true});
}

static void so_it_does_if_a_user_has_written_the_deferral(void)
{
    expect_turn_of(&(struct sim_pod){.claims = DATA, .fields = DATA, .own_fields = DATA});
}

static void defer_mounts(void)
{
    world.defers = true;
    world.field = FIELD_KNOWN;
}

/* Its own binds take the lock again and again, and each is refused: a webhook denies them, too. */
static void a_lock_that_a_review_has_left_does_not_stay_for_ever(void)
{
    struct sim_claim *claim = &world.server.claims[0];
    const struct sim_pod *first = create("first", 0, 0);

    (void)snprintf(claim->holder, sizeof claim->holder, "%s/first", first->uid);
    (void)snprintf(claim->admitted, sizeof claim->admitted, "true");
    world.server.pods[0].claims = DATA;
    server_publish_claim(claim);
    server_touch(&world.server.pods[0]);
    refuse_bindings(10000);
    wait_seconds(2);
    const struct sim_pod *second = create("second", 0, DATA);
    wait_seconds(400);
    expect(first->node < 0 && second->node >= 0, "the other pod had its turn");
}

static void only_exclusive_claims_are_locked(void)
{
    server_change_claim(2, false, false);
    wait_seconds(1);
    expect(bind(create_alone("first", DATA | SHARED)), "its claims are free");
    expect(world.server.claims[0].holder[0] != '\0' && world.server.claims[2].holder[0] == '\0',
           "others may share the other one");
}

static void share_among_pods_of_one_node(void)
{
    world.is_for_one_node = true;
    world.read_write_once = MODE_ENFORCE;
}

static void a_binding_in_doubt_keeps_its_claim_without_its_scheduler(void)
{
    const struct sim_pod *first = create_in_doubt("first", 40);
    const struct sim_pod *second = create_alone("second", DATA);

    scheduler_crash(&world.schedulers[0]);
    wait_seconds(30); /* longer than reservationTTL */
    expect(first->node < 0 && !bind(second), "it may still be applied");
    wait_seconds(20);
    expect(first->node >= 0 && !bind(second), "and is");
}

static void a_binding_in_doubt_keeps_its_node(void)
{
    static const char *const names[] = {"second", "third", "fourth", "fifth"};
    const struct sim_pod *others[4];

    server_change_claim(0, false, false);
    wait_seconds(1);
    const struct sim_pod *first = create_in_doubt("first", 40);
    refuse_bindings(1000);
    for (size_t i = 0; i < 4; i++)
        others[i] = create(names[i], 0, DATA);
    wait_seconds(20);
    expect(first->node < 0 && others[0]->node >= 0, "others share its claim");
    wait_seconds(40);
    for (size_t i = 0; i < 4; i++)
        expect(first->node >= 0 && others[i]->node == first->node, "all are on its node");
}

static void put_holder(const char *name, unsigned claim, int node)
{
    server_change_claim(claim, false, false);
    server_store_pod(server_name_pod(name, &(struct sim_pod){.claims = 1U << claim}, node));
}

/* The other one wants it where another claim of it is already. */
static void a_pod_whose_volume_is_for_one_node_gives_way(void)
{
    server_change_claim(0, false, false);
    put_holder("cache-holder", 1, 1);
    put_holder("shared-holder", 2, 2);
    wait_seconds(1);
    world.fault = (struct planned_fault){
        .count = 1000, .method = "POST", .path = "first/binding", .fate = FATE_LOST, .status = 500};
    const struct sim_pod *first = create("first", 0, DATA | SHARED);
    wait_seconds(30);
    const struct sim_pod *second = create("second", 0, DATA | CACHE);
    wait_seconds(3 * 65 + 40);
    expect(first->node < 0 && second->node == 1, "it has had its turn");
}

int main(int argc, char **argv)
{
    static const struct row rows[] = {
        {ROW(a_binding_in_doubt_keeps_its_claim), NULL},
        {ROW(a_binding_in_doubt_ends_with_its_pod), NULL},
        {ROW(a_binding_in_doubt_keeps_its_node), share_among_pods_of_one_node},
        {ROW(a_refused_bind_does_not_prolong_a_doubt), NULL},
        {ROW(a_pod_whose_bindings_fail_gives_way), NULL},
        {ROW(a_pod_that_gives_way_says_to_whom), NULL},
        {ROW(a_pod_that_shares_its_claim_gives_way_to_one_that_needs_it_alone), defer_mounts},
        {ROW(so_it_does_if_a_user_has_written_the_deferral), defer_mounts},
        {ROW(a_pod_whose_volume_is_for_one_node_gives_way), share_among_pods_of_one_node},
        {ROW(a_lock_is_remembered_while_others_are_seen), lock_claims},
        {ROW(the_oldest_of_too_many_locks_is_forgotten), lock_claims},
        {ROW(a_pod_that_was_replaced_is_not_found), lock_claims},
        {ROW(a_pod_that_is_on_another_node_is_refused), lock_claims},
        {ROW(a_pod_that_is_on_its_node_already_is_a_success), lock_claims},
        {ROW(a_lock_of_before_is_released_when_a_bind_is_refused), lock_claims},
        {ROW(a_lock_that_a_review_has_left_does_not_stay_for_ever), lock_claims},
        {ROW(only_exclusive_claims_are_locked), lock_claims},
        {ROW(a_binding_in_doubt_keeps_its_claim_without_its_scheduler), NULL},
    };

    return rows_run(rows, sizeof rows / sizeof *rows, argc, argv);
}
