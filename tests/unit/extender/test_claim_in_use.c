/* How many pods are remembered that wait for a claim, and how many holders each. Requests are
 * counted instead of sent, and the clock runs as fast as Events may be posted. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "config/base/clock.h"
#include "config/base/log.h"
#include "extender/cli/services.h"
#include "extender/serving/live/claim_reports.h"
#include "extender/serving/live/events.h"

static struct state state;
static struct claim_in_use in_use;
static uint64_t time_ns = UINT64_C(1000000000);
static unsigned sent;
static bool is_full;

uint64_t __wrap_monotonic_ns(void);
uint64_t __wrap_monotonic_ns(void)
{
    return time_ns += UINT64_C(1000000000);
}

bool __wrap_requests_send(struct requests *requests, const struct request *request);
bool __wrap_requests_send(struct requests *requests, const struct request *request)
{
    (void)requests;
    cr_assert(request->may_exist && strcmp(request->method, "POST") == 0);
    sent += !is_full;
    return !is_full;
}

static void apply(const struct object *object)
{
    struct error err = {0};

    cr_assert_eq(cluster_apply(&state.cluster, object, &err), 0);
}

static void setup(void)
{
    struct config *config;
    struct error err = {0};
    struct object claim = {.kind = KIND_CLAIM,
                           .claim = {.meta = {.ns = SLICE("ns"),
                                              .name = SLICE("data"),
                                              .uid = SLICE("10000000-0000-4000-8000-000000000000")},
                                     .is_rwop = true}};

    log_configure(LOG_ERROR, LOG_TEXT);
    cr_assert_eq(config_load(&config, NULL, &err), 0);
    cr_assert_eq(services_init(&state, config, &err), 0);
    state.api = (struct requests *)(uintptr_t)8; /* never read */
    in_use = (struct claim_in_use){.state = &state, .is_synced = true};
    apply(&claim);
}

static void teardown(void)
{
    claim_in_use_dispose(&in_use);
    state.api = NULL;
    services_dispose(&state);
}

TestSuite(claim_in_use, .init = setup, .fini = teardown);

/* Until nothing more can be done now. */
static void tick(void)
{
    uint64_t now_ns = in_use.tick_ns;

    while (claim_in_use_tick(&in_use, now_ns) == now_ns + 100 * NS_PER_MS)
        now_ns = in_use.tick_ns;
}

/* The pod of that number changes: it waits and was rejected, or it is on the node. */
static void change_in(struct slice ns, unsigned number, const char *node,
                      struct claim_reference use)
{
    char uid[40];
    struct slice name = {
        uid, (size_t)snprintf(uid, sizeof uid, "00000000-0000-4000-8000-%012u", number)};
    struct object object = {.kind = KIND_POD,
                            .pod = {.meta = {.ns = ns, .name = name, .uid = name},
                                    .node = slice_of(node),
                                    .claims = &use,
                                    .claim_count = 1,
                                    .is_refused_unnamed = node == NULL}};
    apply(&object);
    claim_in_use_put(&in_use, &object.pod, false);
}

static void change_with(unsigned number, const char *node, struct claim_reference use)
{
    change_in(SLICE("ns"), number, node, use);
}

/* The same; returns how many Events are sent. */
static unsigned put_with(unsigned number, const char *node, struct claim_reference use)
{
    unsigned before = sent;

    change_with(number, node, use);
    tick();
    return sent - before;
}

static unsigned put(unsigned number, const char *node)
{
    return put_with(number, node, (struct claim_reference){.name = SLICE("data")});
}

static void remove_pod(unsigned number)
{
    char uid[40];
    struct slice name = {
        uid, (size_t)snprintf(uid, sizeof uid, "00000000-0000-4000-8000-%012u", number)};
    struct object object = {.kind = KIND_POD,
                            .pod = {.meta = {.ns = SLICE("ns"), .name = name, .uid = name}}};

    cluster_delete(&state.cluster, &object);
    claim_in_use_delete(&in_use, &object.meta);
}

Test(claim_in_use, each_holder_is_told_once)
{
    cr_expect_eq(put(1, "node-1"), 0);
    cr_expect_eq(put(2, NULL), 1);
    cr_expect_eq(put(2, NULL), 0);
    cr_expect_eq(put(3, "node-1"), 1, "a second holder");
    cr_expect_eq(put(2, NULL), 0);
    cr_expect_eq(put(2, "node-1"), 0, "it is bound itself");
    cr_expect_eq(put(4, "node-1"), 0, "nobody waits");
}

Test(claim_in_use, an_event_that_was_dropped_is_posted_later)
{
    (void)put(1, "node-1");
    is_full = true;
    cr_expect_eq(put(2, NULL), 0);
    is_full = false;
    uint64_t next_ns = claim_in_use_tick(&in_use, in_use.tick_ns);
    cr_expect_eq(sent, 0, "the namespace pauses");
    cr_expect_eq(claim_in_use_tick(&in_use, next_ns), UINT64_MAX);
    cr_expect_eq(sent, 1);
}

/* All of them wait for the claim of a pod that is bound, whose event is one of many. */
Test(claim_in_use, a_tick_looks_at_a_few_pods)
{
    for (unsigned i = 0; i < 100; i++)
        cr_expect_eq(put(10 + i, NULL), 0);
    change_with(1, "node-1", (struct claim_reference){.name = SLICE("data")});
    cr_expect_eq(sent, 0, "it only says who is due");
    uint64_t now_ns = in_use.tick_ns;
    uint64_t next_ns = claim_in_use_tick(&in_use, now_ns);
    cr_expect_eq(sent, 20);
    cr_expect_eq(next_ns, now_ns + 100 * NS_PER_MS);
    tick();
    cr_expect_eq(sent, 100);
}

/* A pod with many claims is not looked at for those that it does not name, or that are behind
 * the first ones. */
Test(claim_in_use, a_pod_is_due_for_its_own_claims_alone)
{
    struct claim_reference uses[CLAIM_IN_USE_CLAIMS_MAX + 1];
    char names[CLAIM_IN_USE_CLAIMS_MAX + 1][16];

    for (int i = 0; i <= CLAIM_IN_USE_CLAIMS_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "claim-%d", i);
        uses[i] = (struct claim_reference){.name = slice_of(names[i])};
    }
    struct object object = {.kind = KIND_POD,
                            .pod = {.meta = {.ns = SLICE("ns"),
                                             .name = SLICE("p"),
                                             .uid = SLICE("00000000-0000-4000-8000-000000000001")},
                                    .claims = uses,
                                    .claim_count = CLAIM_IN_USE_CLAIMS_MAX + 1,
                                    .is_refused_unnamed = true}};
    apply(&object);
    claim_in_use_put(&in_use, &object.pod, false);
    tick();
    cr_expect_null(in_use.due);
    change_with(2, "node-1", (struct claim_reference){.name = SLICE("other")});
    cr_expect_null(in_use.due);
    change_with(3, "node-1", uses[CLAIM_IN_USE_CLAIMS_MAX]);
    cr_expect_null(in_use.due);
    change_with(4, "node-1", uses[CLAIM_IN_USE_CLAIMS_MAX - 1]);
    cr_expect_not_null(in_use.due);
}

/* kube-scheduler rejects no pod for it. */
Test(claim_in_use, a_claim_that_only_a_deferral_makes_exclusive_is_none_of_these)
{
    struct object claim = {.kind = KIND_CLAIM,
                           .claim = {.meta = {.ns = SLICE("ns"), .name = SLICE("shared")}}};
    struct claim_reference use = {.name = SLICE("shared"), .is_deferred = true};

    apply(&claim);
    (void)put_with(1, "node-1", use);
    cr_expect_eq(put_with(2, NULL, use), 0);
}

Test(claim_in_use, before_the_sync_nothing_is_told)
{
    in_use.is_synced = false;
    (void)put(1, "node-1");
    cr_expect_eq(put(2, NULL), 0);
    claim_in_use_synced(&in_use);
    tick();
    cr_expect_eq(sent, 1);
}

Test(claim_in_use, a_pod_that_has_gone_is_forgotten)
{
    (void)put(1, "node-1");
    cr_expect_eq(put(2, NULL), 1);
    remove_pod(2);
    cr_expect_null(in_use.refused);
    cr_expect_eq(put(2, NULL), 1, "the Event's name keeps it from being there twice");
}

/* As in violations: the oldest one is forgotten. */
Test(claim_in_use, of_too_many_the_oldest_is_forgotten)
{
    (void)put(1, "node-1");
    for (unsigned i = 0; i < CLAIM_IN_USE_PODS_MAX; i++)
        cr_expect_eq(put(10 + i, NULL), 1);
    cr_expect_eq(put(10, NULL), 0, "it is remembered");
    cr_expect_eq(put(9999, NULL), 1);
    cr_expect_eq(put(11, NULL), 0);
    cr_expect_eq(put(10, NULL), 1, "the oldest is not");
}

Test(claim_in_use, of_too_many_holders_the_last_are_remembered)
{
    (void)put(1, "node-1");
    cr_expect_eq(put(2, NULL), 1);
    for (unsigned i = 0; i < 2 * CLAIM_IN_USE_REPORTED_MAX; i++) {
        remove_pod(i == 0 ? 1 : 9 + i);
        cr_expect_eq(put(10 + i, "node-1"), 1);
        cr_expect_eq(put(2, NULL), 0);
    }
}

enum { HOLDERS = 10000, POISONED = 30, GREEDY = 1000000 /* the first number of its pods */ };

static void change_greedy(unsigned number, const char *node)
{
    change_in(SLICE("greedy"), GREEDY + number, node,
              (struct claim_reference){.name = SLICE("many")});
}

/* Of a tenant's claim that so many pods hold, what they are does not fit the memory of a report: no
 * later look can succeed either. */
Test(claim_in_use, a_report_that_never_fits_keeps_no_other_waiting)
{
    struct object claim = {.kind = KIND_CLAIM,
                           .claim = {.meta = {.ns = SLICE("greedy"),
                                              .name = SLICE("many"),
                                              .uid = SLICE("10000000-0000-4000-8000-000000000009")},
                                     .is_rwop = true}};
    uint64_t now_ns = 0, begun_ns;

    apply(&claim);
    for (unsigned i = 0; i < HOLDERS; i++)
        change_greedy(i, "node-1");
    for (unsigned i = 0; i < POISONED; i++)
        change_greedy(HOLDERS + i, NULL);
    change_with(1, "node-1", (struct claim_reference){.name = SLICE("data")});
    change_with(2, NULL, (struct claim_reference){.name = SLICE("data")});
    begun_ns = in_use.tick_ns;
    while (sent == 0 && now_ns < begun_ns + 3600 * NS_PER_SECOND) {
        now_ns = in_use.tick_ns;
        (void)claim_in_use_tick(&in_use, now_ns);
    }
    cr_expect_lt((now_ns - begun_ns) / NS_PER_SECOND, 20, "%llu s later",
                 (unsigned long long)((now_ns - begun_ns) / NS_PER_SECOND));
}
