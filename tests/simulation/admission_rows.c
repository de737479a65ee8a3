/* Bindings that other clients post, and that the API server has reviewed: a row for each way in
 * which such a Binding can end. */
#include <stdio.h>
#include <string.h>

#include "simulation/admission.h"
#include "simulation/rows.h"

enum { DATA = 1, CACHE = 2 };

/* Two pods that no scheduler knows, for one claim. */
static struct sim_pod *first, *second;

static struct sim_pod *create_alone(const char *name, unsigned claims)
{
    return server_create_pod(
        name, &(struct sim_pod){.claims = claims, .scheduler = 1, .is_vm = world.defers});
}

static void create_pair(void)
{
    first = create_alone("first", DATA);
    second = create_alone("second", DATA);
    wait_seconds(1);
}

static void note_status(void *context, unsigned status, struct slice answer)
{
    (void)answer;
    *(unsigned *)context = status;
}

/* The status; 0: there is no answer within so many seconds. */
static unsigned post_and_wait(const struct client_binding *binding, uint64_t seconds)
{
    static unsigned status;

    status = 0;
    client_post(binding, note_status, &status);
    wait_seconds(seconds);
    return status;
}

static unsigned bind(struct sim_pod *pod)
{
    return post_and_wait(&(struct client_binding){.pod = pod, .node = 1}, 2);
}

/* It is allowed, and the API server stores it so many seconds later. */
static void bind_late(struct sim_pod *pod, uint64_t seconds)
{
    world.store_after_ns = seconds * SECOND;
    expect(bind(pod) == 0, "it is allowed, and not stored yet");
    world.store_after_ns = 0;
}

static unsigned reservations(void)
{
    return world.replicas[0].state.cluster.reserved.count;
}

/* ---- the rows ---- */

static void of_two_pods_one_is_bound(void)
{
    create_pair();
    expect(bind(first) == 201 && first->node == 1, "its claim is free");
    expect(bind(second) == 409 && second->node < 0, "it is the first one's");
    server_terminate(first, 0);
    wait_seconds(1);
    expect(bind(second) == 201, "it is free again");
}

static void a_late_binding_keeps_its_claim(void)
{
    create_pair();
    bind_late(first, 50);
    wait_seconds(45);
    expect(first->node < 0 && bind(second) == 409, "the first may still be bound");
    wait_seconds(5);
    expect(first->node == 1 && bind(second) == 409, "and is");
}

static void a_binding_that_is_never_stored_frees_its_claim(void)
{
    create_pair();
    world.lost_bindings = 1;
    expect(bind(first) == 500 && first->node < 0, "etcd fails");
    wait_seconds(55);
    expect(bind(second) == 409, "nobody knows that it failed");
    wait_seconds(10);
    expect(bind(second) == 201, "nobody works on the first one any more");
}

static void a_binding_that_is_stored_at_the_last_moment_keeps_its_claim(void)
{
    create_pair();
    bind_late(first, 58);
    world.replicas[0].is_watching[KIND_POD] = false;
    wait_seconds(70);
    expect(first->node == 1 && bind(second) == 409, "the API server was asked, the watch is late");
}

static void a_dry_run_takes_and_writes_nothing(void)
{
    create_pair();
    expect(post_and_wait(&(struct client_binding){.pod = first, .node = 1, .is_dry_run = true},
                         2) == 201,
           "it would pass");
    expect(first->node < 0 && reservations() == 0, "nothing is taken");
    expect(world.deferred == 0 && world.server.claims[0].holder[0] == '\0', "nothing is written");
    expect(bind(second) == 201 && world.deferred == 1, "the claim is free");
}

static void without_an_answer_a_binding_is_refused(void)
{
    create_pair();
    replica_crash(&world.replicas[0]);
    expect(bind(first) == 500, "nobody decides");
    replica_start(&world.replicas[0]);
    wait_seconds(1);
    expect(bind(first) == 201, "now it is decided");
}

static void a_review_that_takes_too_long_is_refused(void)
{
    create_pair();
    world.review_timeout_ms = 1000;
    world.fault = (struct planned_fault){.count = 1, .method = "PATCH", .fate = FATE_UNANSWERED};
    expect(bind(first) == 500 && first->node < 0, "its deferral may not be written");
    expect(bind(first) == 201, "asked again, it is");
}

static void a_refused_review_frees_what_it_took(void)
{
    struct sim_claim *cache = &world.server.claims[1];

    create_pair();
    const struct sim_pod *other = create_alone("other", CACHE);
    struct sim_pod *both = create_alone("both", DATA | CACHE);
    (void)snprintf(cache->holder, sizeof cache->holder, "%s/%s", other->uid, other->name);
    server_publish_claim(cache);
    wait_seconds(1);
    expect(bind(both) == 409, "one of its claims is locked for another pod");
    expect(bind(second) == 201, "the other one is free");
}

static void a_restart_does_not_forget_an_admitted_binding(void)
{
    create_pair();
    bind_late(first, 50);
    replica_crash(&world.replicas[0]);
    wait_seconds(1);
    replica_start(&world.replicas[0]);
    wait_seconds(1);
    for (int i = 0; i < 15; i++)
        expect(bind(second) == 409, "the lock says that the first may be bound");
    wait_seconds(20);
    expect(first->node == 1 && bind(second) == 409, "and it is");
}

/* No Binding is stored for a pod that is gone: unlike one that is being created, it cannot come. */
static void the_lock_of_a_pod_that_went_is_free_at_once(void)
{
    create_pair();
    bind_late(first, 50);
    server_terminate(first, 0);
    wait_seconds(1);
    expect(bind(second) == 201, "it is gone");
}

static void answer_bind(void *context, const char *answer)
{
    (void)context;
    expect(answer != NULL && strstr(answer, "\"Error\":\"\"") == NULL, "it is refused");
}

/* By its scheduler, whose claimguard finds the lock of the same pod, and gives back what it took.
 */
static void refuse_bind(const struct sim_pod *pod)
{
    char body[256];

    (void)snprintf(body, sizeof body,
                   "{\"PodName\":\"%s\",\"PodNamespace\":\"ns\",\"PodUID\":\"%s\",\"Node\":"
                   "\"node-1\"}",
                   pod->name, pod->uid);
    world.fault = (struct planned_fault){
        .count = 1, .method = "POST", .path = "first/binding", .fate = FATE_LOST, .status = 403};
    replica_call(0, VERB_BIND, body, answer_bind, NULL);
    wait_seconds(2);
    expect(world.fault.count == 0, "its Binding was refused");
}

static void a_refused_bind_leaves_the_lock_of_an_admitted_binding(void)
{
    create_pair();
    bind_late(first, 50);
    refuse_bind(first);
    for (int i = 0; i < 15; i++)
        expect(bind(second) == 409, "the first may still be bound");
    wait_seconds(20);
    expect(first->node == 1, "and is");
}

/* It would also bind a later pod of that name. */
static void a_binding_without_uid_is_denied(void)
{
    create_pair();
    expect(post_and_wait(&(struct client_binding){.pod = first, .node = 1, .has_no_uid = true},
                         2) == 409,
           "whichever pod has the name");
    expect(bind(second) == 201, "the claim is free");
}

/* ---- Bindings that another webhook denies each time ---- */

enum { ROUND_SECONDS = 4, PATIENCE_SECONDS = 2 * 65 /* twice BINDING_DEAD_MS */ };

/* The first pod's scheduler tries again: it is allowed here, and denied there. */
static unsigned bind_first_in_vain(void)
{
    world.lost_bindings = 1;
    unsigned status = bind(first);
    world.lost_bindings = 0;
    return status;
}

/* Both schedulers try again every few seconds. How long it takes until the second pod is bound. Of
 * two replicas, one is asked for reviews at first, then the other one. */
static unsigned seconds_until_second_is_bound(void)
{
    unsigned seconds = 0;

    create_pair();
    while (seconds < 1000) {
        world.reviewer = world.replica_count == 1 || seconds < PATIENCE_SECONDS - 10 ? 1 : 2;
        unsigned status = bind_first_in_vain();
        expect(status == 500 || seconds >= PATIENCE_SECONDS, "nothing is wrong yet");
        seconds += ROUND_SECONDS;
        if (bind(second) == 201)
            break;
    }
    expect(second->node == 1 && first->node < 0, "it gets the claim");
    return seconds;
}

static void a_pod_whose_bindings_are_never_applied_gives_way(void)
{
    unsigned seconds = seconds_until_second_is_bound();

    expect(seconds <= PATIENCE_SECONDS + 65 + 3 * ROUND_SECONDS, "as soon as the last one is dead");
}

/* A controller writes the claim now and then, and its lock is reported each time. */
static void a_lock_that_is_reported_again_lets_nothing_pass(void)
{
    create_pair();
    world.reviewer = 1;
    for (int i = 0; i < 3; i++)
        expect(bind_first_in_vain() == 500, "its lock is renewed");
    for (unsigned seconds = 0; seconds < 400; seconds += 20) {
        server_publish_claim(&world.server.claims[0]);
        wait_seconds(20);
    }
    world.reviewer = 2;
    expect(bind(first) == 201, "it has not been tried for so long");
}

static void while_nobody_waits_it_tries_for_ever(void)
{
    create_pair();
    server_terminate(second, 3600);
    for (unsigned seconds = 0; seconds < 400; seconds += 2)
        expect(bind_first_in_vain() == 500, "a pod that goes does not wait");
    expect(bind(first) == 201, "the webhook has changed its mind");
}

/* It may have to wait for a node for hours. */
static void if_nobody_takes_the_claim_it_may_try_again(void)
{
    unsigned denied = 0;

    create_pair();
    for (unsigned seconds = 0; seconds < 150; seconds += 2)
        (void)bind_first_in_vain();
    while (bind(first) != 201 && denied < 1000)
        denied++;
    expect(denied > 30 && denied < 110, "the others had their time");
}

static void a_dry_run_is_no_binding(void)
{
    create_pair();
    for (unsigned seconds = 0; seconds < 200; seconds += 2)
        expect(post_and_wait(&(struct client_binding){.pod = first, .node = 1, .is_dry_run = true},
                             2) == 201,
               "it would pass");
    expect(bind(first) == 201, "the first that takes anything");
}

/* ---- settings ---- */

static void review(void)
{
    world.has_admission = true;
    world.review_timeout_ms = 10000;
}

static void review_and_defer(void)
{
    review();
    world.defers = true;
    world.apply = DEFER_ANNOTATION;
}

static void review_and_lock(void)
{
    review();
    world.is_annotation = true;
}

static void review_and_lock_twice(void)
{
    review_and_lock();
    world.replica_count = 2; /* one does not know of what the other has let pass */
}

int main(int argc, char **argv)
{
    static const struct row rows[] = {
        {ROW(of_two_pods_one_is_bound), review},
        {ROW(a_late_binding_keeps_its_claim), review},
        {ROW(a_binding_that_is_never_stored_frees_its_claim), review},
        {ROW(a_binding_that_is_stored_at_the_last_moment_keeps_its_claim), review},
        {ROW(a_dry_run_takes_and_writes_nothing), review_and_defer},
        {ROW(without_an_answer_a_binding_is_refused), review},
        {ROW(a_review_that_takes_too_long_is_refused), review_and_defer},
        {ROW(a_refused_review_frees_what_it_took), review_and_lock},
        {ROW(a_restart_does_not_forget_an_admitted_binding), review_and_lock},
        {ROW(the_lock_of_a_pod_that_went_is_free_at_once), review_and_lock},
        {ROW(a_refused_bind_leaves_the_lock_of_an_admitted_binding), review_and_lock_twice},
        {ROW(a_binding_without_uid_is_denied), review},
        {ROW(a_pod_whose_bindings_are_never_applied_gives_way), review},
        {ROW(a_pod_whose_bindings_are_never_applied_gives_way), review_and_lock},
        {ROW(a_pod_whose_bindings_are_never_applied_gives_way), review_and_lock_twice},
        {ROW(a_lock_that_is_reported_again_lets_nothing_pass), review_and_lock_twice},
        {ROW(while_nobody_waits_it_tries_for_ever), review},
        {ROW(if_nobody_takes_the_claim_it_may_try_again), review},
        {ROW(a_dry_run_is_no_binding), review},
    };

    return rows_run(rows, sizeof rows / sizeof *rows, argc, argv);
}
