/* Which Events are posted, and which are dropped. Requests are counted instead of sent, and the
 * clock stands still. */
#include <criterion/criterion.h>

#include "cache/client/api_path.h"
#include "config/base/clock.h"
#include "extender/live/events.h"

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
    cr_assert_str_eq(request->path, "/api/v1/namespaces/ns/events");
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
static unsigned post(const char *reason, unsigned count)
{
    struct object_reference pod = {KIND_POD, SLICE("ns"), SLICE("a"), SLICE("u")};
    unsigned before = sent;

    for (unsigned i = 0; i < count; i++)
        events_post(&events, anyone, &pod, "Normal", reason, SLICE("text"));
    return sent - before;
}

Test(events, a_frequent_reason_displaces_no_other)
{
    cr_expect_eq(post("DeferFSMountRefused", 1000), EVENTS_BURST);
    cr_expect_eq(post("ExclusiveClaimViolated", 10), 10);
    cr_expect_eq(post("Preempted", 10), 10);
    cr_expect_eq(post("AnotherReason", 10), 10);
    cr_expect_eq(atomic_load(&events.dropped), 1000 - EVENTS_BURST);
    time_ns += 60 * SECOND;
    cr_expect_eq(post("DeferFSMountRefused", 1000), EVENTS_BURST,
                 "no more than a burst is saved up");
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
