/* Locks of pods that are created with their node: nothing but the lock says that there may be such
 * a pod. */
#include "simulation/creations.h"

static void the_lock_of_a_late_creation_outlasts_a_restart(void)
{
    struct sim_pod *pending = create_pending("pending", DATA);

    create_late("first", DATA, 50);
    restart();
    for (int i = 0; i < 15; i++)
        expect(bind(pending) == DENIED, "that there is no first one proves nothing");
    wait_seconds(20);
    expect(exists("first") && bind(pending) == DENIED, "and now it is there");
}

/* The patience with one claim's lock also counts for the others. */
static void the_locks_of_a_creation_that_failed_are_taken_over(void)
{
    struct sim_pod *pending = create_pending("pending", DATA | CACHE);

    world.lost_bindings = 1;
    expect(create_bound("first", DATA | CACHE) == FAILED, "etcd fails");
    restart();
    for (int i = 0; i < 30; i++)
        expect(bind(pending) == DENIED, "nobody knows that it failed");
    wait_seconds(7);
    expect(bind(pending) == CREATED, "a lock was seen for BINDING_DEAD_MS");
}

/* It was seen: that it is gone is the end of it, also when the first try to lock fails. */
static void the_lock_of_a_pod_that_was_there_is_free_when_it_goes(void)
{
    struct sim_pod *pending = create_pending("pending", DATA);

    create_late("first", DATA, 10);
    restart();
    world.replicas[0].is_watching[KIND_POD] = false; /* the locks alone decide */
    expect(bind(pending) == DENIED, "it may still be created");
    wait_seconds(10);
    expect(bind(pending) == DENIED, "it is there");
    remove_pod("first");
    world.fault = (struct planned_fault){
        .count = 1, .method = "PATCH", .path = "/c0", .fate = FATE_LOST, .status = 503};
    expect(bind(pending) == FAILED, "it is gone");
    expect(bind(pending) == CREATED, "and stays so");
}

/* Nobody has asked for the claim while it was there. */
static void the_lock_of_a_pod_that_the_watch_has_seen_is_free_when_it_goes(void)
{
    struct sim_pod *pending = create_pending("pending", DATA);

    expect(create_bound("first", DATA) == CREATED, "its claim is free");
    wait_seconds(1);
    remove_pod("first");
    wait_seconds(1);
    expect(bind(pending) == CREATED, "it is gone");
}

/* The replica that has not reviewed it knows the lock by the claim's watch. */
static void the_same_by_another_replica(void)
{
    the_lock_of_a_pod_that_the_watch_has_seen_is_free_when_it_goes();
    expect(world.server.claims[0].holder[0] != '\0', "it is locked for the next one");
}

/* Not from when the first pod asks. */
static void after_a_restart_a_lock_ages_from_when_it_is_listed(void)
{
    struct sim_pod *pending = create_pending("pending", DATA);

    world.lost_bindings = 1;
    expect(create_bound("first", DATA) == FAILED, "etcd fails");
    restart();
    wait_seconds(60);
    expect(bind(pending) == DENIED, "it may have been created until now");
    wait_seconds(5);
    expect(bind(pending) == CREATED, "nobody creates it any more");
}

/* The reservation is over when the lock is. */
static void without_a_restart_a_lock_ages_from_when_it_is_taken(void)
{
    struct sim_pod *pending = create_pending("pending", DATA);

    world.lost_bindings = 1;
    expect(create_bound("first", DATA) == FAILED, "etcd fails");
    wait_seconds(60);
    expect(bind(pending) == DENIED, "it may have been created until now");
    wait_seconds(5);
    expect(bind(pending) == CREATED, "nobody creates it any more");
}

static void a_denied_creation_releases_its_locks(void)
{
    struct sim_pod *pending = create_pending("pending", DATA);
    const struct sim_pod *other = create_pending("other", CACHE);
    struct sim_claim *data = &world.server.claims[0], *cache = &world.server.claims[1];

    (void)snprintf(cache->holder, sizeof cache->holder, "%s/%s", other->uid, other->name);
    server_publish_claim(cache);
    wait_seconds(1);
    expect(create_bound("both", DATA | CACHE) == DENIED, "one of its claims is locked for another");
    expect(data->holder[0] == '\0', "the lock of the other one is released");
    expect(data->admitted[0] == '\0', "with its mark");
    expect(bind(pending) == CREATED, "it is free");
}

/* One lock was written; then the API server did not answer. */
static void what_could_not_be_decided_keeps_its_locks(void)
{
    struct sim_pod *pending = create_pending("pending", DATA);

    world.store_after_ns = 50 * SECOND;
    world.fault = (struct planned_fault){
        .count = 1, .method = "GET", .path = "/c1", .fate = FATE_LOST, .status = 503};
    expect(create_bound("first", DATA | CACHE) == WAITS, "nobody has decided, so it is stored");
    world.store_after_ns = 0;
    restart();
    for (int i = 0; i < 15; i++)
        expect(bind(pending) == DENIED, "the first may still be created");
    wait_seconds(20);
    expect(exists("first") && bind(pending) == DENIED, "and it is");
}

static void denied(void *context, const char *answer)
{
    (void)context;
    expect(answer != NULL && strstr(answer, "\"allowed\":false") != NULL, "it is denied");
}

/* The API server asks once more about the last pod. */
static void review_again(void)
{
    struct buf body;

    buf_init(&body, 1 << 16);
    buf_printf(&body,
               "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{"
               "\"uid\":\"r\",\"resource\":{\"group\":\"\",\"version\":\"v1\",\"resource\":"
               "\"pods\"},\"namespace\":\"ns\",\"operation\":\"CREATE\",\"object\":");
    server_write_pod(&world.server.pods[world.server.pod_count - 1], &body);
    buf_printf(&body, "}}");
    replica_review(0, ADMIT_POD, buf_text(&body), denied, NULL);
    buf_dispose(&body);
    wait_seconds(1);
}

static void a_review_that_is_denied_the_second_time_leaves_the_lock(void)
{
    struct sim_pod *pending = create_pending("pending", DATA);
    struct config *config = world.replicas[0].state.config;
    const struct client_creation vm = {
        .name = "vm", .properties = {.claims = DATA, .is_vm = true}, .node = 1};

    world.store_after_ns = 50 * SECOND;
    expect(post(&vm) == WAITS, "it is allowed, and not stored yet");
    config->defer_fs_mount.apply = DEFER_ANNOTATION;
    review_again(); /* now it would have to be written */
    expect(bind(pending) == DENIED, "the first review counts");
    restart();
    for (int i = 0; i < 15; i++)
        expect(bind(pending) == DENIED, "so its lock has to stay");
    wait_seconds(20);
    expect(exists("vm"), "it is created");
}

/* ---- settings ---- */

static void review_and_lock(void)
{
    review();
    world.is_annotation = true;
}

static void review_and_lock_twice(void)
{
    review_and_lock();
    world.replica_count = 2;
}

static void review_and_lock_or_ignore(void)
{
    review_and_lock();
    world.fails_open = true;
}

static void review_and_lock_without_deferral(void)
{
    review_and_lock();
    world.defers = true;
    world.apply = DEFER_DISABLED;
}

int main(int argc, char **argv)
{
    static const struct row rows[] = {
        {ROW(the_lock_of_a_late_creation_outlasts_a_restart), review_and_lock},
        {ROW(the_locks_of_a_creation_that_failed_are_taken_over), review_and_lock},
        {ROW(the_lock_of_a_pod_that_was_there_is_free_when_it_goes), review_and_lock},
        {ROW(the_lock_of_a_pod_that_the_watch_has_seen_is_free_when_it_goes), review_and_lock},
        {ROW(the_same_by_another_replica), review_and_lock_twice},
        {ROW(after_a_restart_a_lock_ages_from_when_it_is_listed), review_and_lock},
        {ROW(without_a_restart_a_lock_ages_from_when_it_is_taken), review_and_lock},
        {ROW(a_denied_creation_releases_its_locks), review_and_lock},
        {ROW(what_could_not_be_decided_keeps_its_locks), review_and_lock_or_ignore},
        {ROW(a_review_that_is_denied_the_second_time_leaves_the_lock),
         review_and_lock_without_deferral},
    };

    return rows_run(rows, sizeof rows / sizeof *rows, argc, argv);
}
