/* Which Events are posted, and which are dropped; which violations are reported. Requests are
 * counted instead of sent, and the clock stands still. */
#include <criterion/criterion.h>

#include <stdio.h>

#include "cache/client/api_path.h"
#include "config/base/clock.h"
#include "config/base/log.h"
#include "extender/cli/services.h"
#include "extender/serving/live/claim_reports.h"
#include "extender/serving/live/events.h"

#define SECOND UINT64_C(1000000000)

static struct events events;
static struct requests *const anyone = (struct requests *)(uintptr_t)8; /* never read */
static uint64_t time_ns = SECOND;
static unsigned sent;
static bool is_full; /* nothing can be sent */

uint64_t __wrap_monotonic_ns(void);
uint64_t __wrap_monotonic_ns(void)
{
    return time_ns;
}

bool __wrap_requests_send(struct requests *requests, const struct request *request);
bool __wrap_requests_send(struct requests *requests, const struct request *request)
{
    cr_assert(requests == anyone && strcmp(request->method, "POST") == 0);
    cr_assert_not_null(strstr(request->path, "/api/v1/namespaces/ns"), "%s", request->path);
    sent += !is_full;
    return !is_full;
}

static void setup(void)
{
    events_init(&events);
}

static void teardown(void)
{
    events_dispose(&events);
}

TestSuite(events, .init = setup, .fini = teardown);

/* Returns how many were sent. */
static unsigned post_in(const char *ns, const char *reason, unsigned count)
{
    struct object_reference pod = {KIND_POD, slice_of(ns), SLICE("a"), SLICE("u")};
    unsigned before = sent;

    for (unsigned i = 0; i < count; i++)
        events_post(&events, anyone, &pod, "Normal", reason, SLICE("text"));
    return sent - before;
}

static unsigned post(const char *reason, unsigned count)
{
    return post_in("ns", reason, count);
}

Test(events, a_frequent_reason_displaces_no_other)
{
    cr_expect_eq(post("DeferFSMountRefused", 1000), EVENTS_LEFT);
    cr_expect_eq(post("ExclusiveClaimViolated", 10), 10);
    cr_expect_eq(post("Preempted", 10), 10);
    cr_expect_eq(post("AnotherReason", 10), 10);
    cr_expect_eq(post("VolumeWarning", 1000), EVENTS_LEFT, "it does not share with AnotherReason");
    cr_expect_eq(atomic_load(&events.dropped), 2 * (1000 - EVENTS_LEFT));
    time_ns += 60 * SECOND;
    cr_expect_eq(post("DeferFSMountRefused", 1000), EVENTS_LEFT,
                 "no more than a burst is saved up");
}

Test(events, a_namespace_leaves_half_of_a_burst_to_others)
{
    cr_expect_eq(post_in("ns-1", "Preempted", 1000), EVENTS_LEFT);
    cr_expect_eq(post_in("ns-2", "Preempted", 20), 13, "half of what is left");
    cr_expect_eq(post_in("ns-3", "Preempted", 20), 6);
    cr_expect_eq(post_in("ns-4", "Preempted", 20), 1, "the last ones are for who had none");
    time_ns += 60 * SECOND;
    cr_expect_eq(post_in("ns-1", "Preempted", 1000), EVENTS_LEFT);
    time_ns += 30 * SECOND;
    cr_expect_eq(post_in("ns-1", "Preempted", 1000), EVENTS_LEFT, "what nobody else posts");
    cr_expect_eq(post_in("ns-2", "Preempted", 1000), 13, "and half is left again");
}

Test(events, what_cannot_be_sent_is_counted)
{
    is_full = true;
    cr_expect_eq(post("Preempted", 3), 0);
    cr_expect_eq(atomic_load(&events.dropped), 3);
}

Test(events, a_snapshot_drops_nothing)
{
    struct object_reference pod = {KIND_POD, SLICE("ns"), SLICE("a"), SLICE("u")};

    events_post(&events, NULL, &pod, "Normal", "Preempted", SLICE("text"));
    cr_expect_eq(atomic_load(&events.dropped), 0);
}

/* ---- violations ---- */

static struct state state;

static void apply(const struct object *object)
{
    struct error err = {0};

    cr_assert_eq(cluster_apply(&state.cluster, object, &err), 0);
}

/* The pod of that number is bound, with a claim that all of them name. Returns whether that is
 * reported: each report is an Event, and each Event is dropped. */
static bool is_reported(struct violations *violations, unsigned number)
{
    char uid[40];
    struct slice name = {uid, sizeof uid};
    struct claim_reference use = {.name = SLICE("data")};
    unsigned before = (unsigned)atomic_load(&state.events->dropped);

    name.len = (size_t)snprintf(uid, sizeof uid, "00000000-0000-4000-8000-%012u", number);
    struct object object = {.kind = KIND_POD,
                            .pod = {.meta = {.ns = SLICE("ns"), .name = name, .uid = name},
                                    .node = SLICE("node-1"),
                                    .claims = &use,
                                    .claim_count = 1}};
    apply(&object);
    violations_report_change(violations, &object, false);
    return atomic_load(&state.events->dropped) != before;
}

Test(violations, of_too_many_the_oldest_is_reported_again)
{
    struct config *config;
    struct error err = {0};
    struct violations violations = {.state = &state};

    log_configure(LOG_ERROR, LOG_TEXT);
    cr_assert_eq(config_load(&config, NULL, &err), 0);
    cr_assert_eq(services_init(&state, config, &err), 0);
    state.api = anyone;
    is_full = true;
    apply(&(struct object){
        .kind = KIND_CLAIM,
        .claim = {.meta = {.ns = SLICE("ns"), .name = SLICE("data")}, .is_rwop = true}});
    cr_expect_not(is_reported(&violations, 0), "it is the only one");
    for (unsigned i = 1; i <= VIOLATIONS_REPORTED_MAX; i++)
        cr_assert(is_reported(&violations, i));
    cr_expect_not(is_reported(&violations, 1), "it is remembered");
    cr_expect(is_reported(&violations, VIOLATIONS_REPORTED_MAX + 1));
    cr_expect_not(is_reported(&violations, 2), "only the oldest is forgotten");
    cr_expect(is_reported(&violations, 1), "it is forgotten");
    violations_dispose(&violations);
    services_dispose(&state);
}
