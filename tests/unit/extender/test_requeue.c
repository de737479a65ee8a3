/* Which pods are requeued, when, and how often. Requests are counted instead of sent, and the clock
 * stands still. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <time.h>

#include "cache/client/api_path.h"
#include "config/base/clock.h"
#include "extender/serving/live/requeue.h"

#define SECOND UINT64_C(1000000000)

static struct requeue requeue;
static struct requests *const anyone = (struct requests *)(uintptr_t)8; /* never read */
static uint64_t time_ns;
static unsigned sent, sent_to_other; /* other: a namespace */
static bool is_refused;              /* instead of sent */
static char path[128], body[256];    /* of the last request */

uint64_t __wrap_monotonic_ns(void);
uint64_t __wrap_monotonic_ns(void)
{
    return time_ns;
}

bool __wrap_requests_send(struct requests *requests, const struct request *request);
bool __wrap_requests_send(struct requests *requests, const struct request *request)
{
    struct buf text;

    cr_assert(requests == anyone && strcmp(request->method, "PATCH") == 0);
    cr_assert_str_eq(request->content_type, "application/merge-patch+json");
    buf_init(&text, sizeof path);
    request_path(&text, request);
    (void)snprintf(path, sizeof path, "%s", buf_text(&text));
    buf_dispose(&text);
    (void)snprintf(body, sizeof body, "%.*s", SLICE_ARG(request->body));
    sent++;
    sent_to_other += strstr(path, "/namespaces/other/") != NULL;
    return !is_refused;
}

static void setup(void)
{
    time_ns = SECOND;
    requeue_init(&requeue);
}

static void teardown(void)
{
    requeue_dispose(&requeue);
}

TestSuite(requeue, .init = setup, .fini = teardown);

static struct meta pod_of(const char *name)
{
    return (struct meta){.ns = SLICE("ns"), .name = slice_of(name), .uid = slice_of(name)};
}

static void forget(const char *name)
{
    const struct meta pod = pod_of(name);

    requeue_forget(&requeue, &pod);
}

static const struct object_reference holder = {KIND_POD, {"ns", 2}, {"holder", 6}, {"uid-1", 5}};
static const struct object_reference claim = {KIND_CLAIM, {"ns", 2}, {"data", 4}, {"", 0}};

static void wait_for(const char *name, const struct object_reference *cause)
{
    struct meta pod = pod_of(name);
    requeue_wait(&requeue, &pod, cause, 1);
}

Test(requeue, a_pod_is_requeued_by_its_name_and_uid)
{
    wait_for("a", &holder);
    requeue_changed(&requeue, &holder, anyone);
    cr_expect_eq(sent, 1);
    cr_expect_str_eq(path, "/api/v1/namespaces/ns/pods/a");
    cr_expect_not_null(strstr(body, "{\"metadata\":{\"uid\":\"a\",\"annotations\":"
                                    "{\"claimguard.io/requeue-requested\":\""),
                       "%s", body);
}

Test(requeue, a_pod_as_the_cause_is_known_by_its_uid)
{
    wait_for("a", &(struct object_reference){.kind = KIND_POD, .uid = SLICE("uid-1")});
    requeue_changed(
        &requeue,
        &(struct object_reference){KIND_POD, SLICE("ns"), SLICE("holder"), SLICE("uid-2")}, anyone);
    cr_expect_eq(sent, 0, "another pod of that name");
    requeue_changed(&requeue, &holder, anyone);
    cr_expect_eq(sent, 1);
}

Test(requeue, a_claim_as_the_cause_is_known_by_its_name)
{
    wait_for("a", &claim); /* it does not exist: it has no UID */
    requeue_changed(
        &requeue, &(struct object_reference){KIND_CLAIM, SLICE("other"), SLICE("data"), SLICE("1")},
        anyone);
    requeue_changed(&requeue,
                    &(struct object_reference){KIND_CLAIM, SLICE("ns"), SLICE("logs"), SLICE("1")},
                    anyone);
    cr_expect_eq(sent, 0);
    requeue_changed(&requeue,
                    &(struct object_reference){KIND_CLAIM, SLICE("ns"), SLICE("data"), SLICE("1")},
                    anyone);
    cr_expect_eq(sent, 1);
}

Test(requeue, a_pod_waits_for_any_of_several_causes)
{
    const struct object_reference causes[] = {claim, holder};
    struct meta pod = pod_of("a");

    for (size_t i = 0; i < 2; i++) {
        requeue_wait(&requeue, &pod, causes, 2);
        requeue_changed(&requeue, &causes[i], anyone);
        cr_expect_eq(sent, i + 1);
        cr_expect_str_eq(path, "/api/v1/namespaces/ns/pods/a");
        time_ns += SECOND; /* at most 50 a second */
    }
}

Test(requeue, a_pod_waits_for_its_last_causes)
{
    wait_for("a", &holder);
    wait_for("a", &claim);
    requeue_changed(&requeue, &holder, anyone);
    cr_expect_eq(sent, 0);
    requeue_changed(&requeue, &claim, anyone);
    cr_expect_eq(sent, 1);
}

Test(requeue, a_pod_that_was_asked_about_is_not_requeued)
{
    wait_for("a", &holder);
    forget("a");
    requeue_changed(&requeue, &holder, anyone);
    wait_for("b", &holder);
    requeue_changed(&requeue, &holder, anyone);
    forget("b");
    time_ns += 400 * SECOND;
    requeue_tick(&requeue, anyone);
    cr_expect_eq(sent, 1, "b, once");
}

Test(requeue, a_pod_is_requeued_ever_more_rarely_for_five_minutes)
{
    static const unsigned seconds[] = {0, 10, 30, 70, 150, 310};
    struct meta pod = pod_of("a");
    unsigned count = 0;

    requeue_pod(&requeue, &pod);
    for (unsigned second = 0; second < 2000; second++) {
        unsigned before = sent;
        requeue_tick(&requeue, anyone);
        cr_expect_leq(sent, before + 1);
        if (sent != before && count < 6)
            cr_expect_eq(second, seconds[count], "%u", second);
        count += sent - before;
        time_ns += SECOND;
    }
    cr_expect_eq(count, 6);
    cr_expect_null(requeue.pods);
    cr_expect_eq(requeue.results[REQUEUE_SENT], 6);
    cr_expect_eq(requeue.results[REQUEUE_GIVEN_UP], 1);
    cr_expect_eq(requeue.results[REQUEUE_DROPPED], 0);
}

Test(requeue, all_that_wait_are_requeued_for_a_new_configuration)
{
    struct meta due = pod_of("due");

    wait_for("a", &holder);
    wait_for("b", &claim);
    requeue_pod(&requeue, &due);
    requeue_tick(&requeue, anyone);
    cr_assert_eq(sent, 1);
    requeue_all(&requeue, anyone);
    cr_expect_eq(sent, 3, "each that has waited, and not the one that was requeued just now");
    requeue_all(&requeue, anyone);
    cr_expect_eq(sent, 3);
    forget("a");
    forget("b");
    forget("due");
    requeue_all(&requeue, anyone);
    cr_expect_eq(sent, 3);
}

Test(requeue, many_are_requeued_one_after_the_other)
{
    char name[16];

    for (unsigned i = 0; i < 3 * REQUEUES_PER_SECOND; i++) {
        (void)snprintf(name, sizeof name, "pod-%u", i);
        wait_for(name, &holder);
    }
    requeue_changed(&requeue, &holder, anyone);
    cr_expect_eq(sent, REQUEUES_PER_SECOND);
    for (unsigned tenths = 0; tenths < 21; tenths++) {
        time_ns += SECOND / 10;
        requeue_tick(&requeue, anyone);
    }
    cr_expect_eq(sent, 3 * REQUEUES_PER_SECOND);
}

Test(requeue, the_oldest_makes_room)
{
    char name[16];

    wait_for("oldest", &claim);
    for (unsigned i = 0; i < REQUEUE_PODS_MAX; i++) {
        (void)snprintf(name, sizeof name, "pod-%u", i);
        wait_for(name, &holder);
    }
    cr_expect_eq(requeue_waiting(&requeue), REQUEUE_PODS_MAX);
    cr_expect_eq(requeue.results[REQUEUE_DROPPED], 1);
    requeue_changed(&requeue, &claim, anyone);
    cr_expect_eq(sent, 0);
    wait_for("latest", &claim);
    requeue_changed(&requeue, &claim, anyone);
    cr_expect_eq(sent, 1);
}

static void wait_in_other(const char *name)
{
    struct meta pod = pod_of(name);

    pod.ns = SLICE("other");
    requeue_wait(&requeue, &pod, &holder, 1);
}

Test(requeue, a_namespace_with_many_pods_does_not_keep_others_waiting)
{
    char name[16];

    for (unsigned i = 0; i < 10 * REQUEUES_PER_SECOND; i++) {
        (void)snprintf(name, sizeof name, "pod-%u", i);
        wait_for(name, &holder);
    }
    wait_in_other("first");
    requeue_changed(&requeue, &holder, anyone);
    cr_expect(sent == REQUEUES_PER_SECOND && sent_to_other == 1);
    wait_in_other("second");
    requeue_changed(&requeue, &holder, anyone);
    cr_expect_eq(sent_to_other, 1, "the rate is used up");
    time_ns += SECOND / REQUEUES_PER_SECOND;
    requeue_tick(&requeue, anyone);
    cr_expect_eq(sent_to_other, 2, "it is the next");
}

Test(requeue, a_pod_of_the_namespace_that_has_most_makes_room)
{
    char name[16];

    wait_in_other("oldest");
    for (unsigned i = 0; i < REQUEUE_PODS_MAX; i++) {
        (void)snprintf(name, sizeof name, "pod-%u", i);
        wait_for(name, &claim);
    }
    cr_expect_eq(requeue.results[REQUEUE_DROPPED], 1);
    cr_expect(requeue_has(&requeue, SLICE("oldest")));
    cr_expect_not(requeue_has(&requeue, SLICE("pod-0")));
}

/* Pods that wait for sixteen causes with long names. */
Test(requeue, long_names_take_no_more_than_their_bytes)
{
    char name[16], text[254];
    struct object_reference causes[16];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int i = 0; i < 16; i++)
        causes[i] = (struct object_reference){KIND_VOLUME_ATTRIBUTES_CLASS, SLICE(""),
                                              slice_of(text), SLICE("")};
    wait_in_other("oldest");
    for (unsigned i = 0; i < REQUEUE_PODS_MAX; i++) {
        (void)snprintf(name, sizeof name, "pod-%u", i);
        struct meta pod = pod_of(name);
        requeue_wait(&requeue, &pod, causes, 16);
    }
    cr_expect_leq(requeue.bytes, REQUEUE_BYTES_MAX);
    cr_expect(requeue_has(&requeue, SLICE("oldest")), "of another namespace");
    cr_expect(requeue_has(&requeue, slice_of(name)));
}

Test(requeue, what_is_not_sent_counts_as_dropped)
{
    wait_for("a", &holder);
    is_refused = true;
    requeue_changed(&requeue, &holder, anyone);
    cr_expect_eq(requeue.results[REQUEUE_DROPPED], 1);
    cr_expect_eq(requeue.results[REQUEUE_SENT], 0);
    is_refused = false;
    time_ns += 10 * SECOND;
    requeue_tick(&requeue, anyone);
    cr_expect_eq(requeue.results[REQUEUE_SENT], 1, "it is tried again");
}

Test(requeue, with_a_snapshot_no_event_is_sent)
{
    wait_for("a", &holder);
    requeue_changed(&requeue, &holder, NULL);
    cr_expect_null(requeue.pods);
}

/* The time of a thousand changes for which no pod waits, while so many pods wait for other causes.
 */
static double changes_cost(unsigned waiting)
{
    char name[32];
    struct timespec begin, end;

    for (unsigned i = 0; i < waiting; i++) {
        (void)snprintf(name, sizeof name, "%u", i);
        wait_for(name, &(struct object_reference){
                           .kind = KIND_CLAIM, .ns = SLICE("ns"), .name = slice_of(name)});
    }
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof name, "other-%u", i);
        requeue_changed(&requeue,
                        &(struct object_reference){
                            .kind = KIND_CLAIM, .ns = SLICE("ns"), .name = slice_of(name)},
                        anyone);
    }
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
}

/* A scan of all pods would cost a hundred times as much. */
Test(requeue, a_change_costs_nothing_for_pods_that_wait_for_others)
{
    double with_few = changes_cost(REQUEUE_PODS_MAX / 100),
           with_all = changes_cost(REQUEUE_PODS_MAX);

    cr_expect_lt(with_all, 20 * with_few, "%.0f and %.0f ns", with_all, with_few);
    cr_expect_eq(sent, 0);
}
