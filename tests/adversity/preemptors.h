/*
 * Claims that a pod of low priority holds, and pods of high priority that want them. Included by
 * the scenarios of preemption and of shutdown.
 */
#ifndef TESTS_ADVERSITY_PREEMPTORS_H
#define TESTS_ADVERSITY_PREEMPTORS_H

#include <stdio.h>

#include "support/scenario.h"

static const char quick[] = "readWriteOncePod: {preemptionGrace: 10ms, reservationTTL: 2s}\n";

/* A claim, and the pod that holds it on node-1: "low-CLAIM". */
static inline void put_held_claim(const char *claim)
{
    char low[32];

    (void)snprintf(low, sizeof low, "low-%s", claim);
    put_claim(claim);
    put_pod(&(struct test_pod){.name = low, .claim = claim, .node = "node-1", .priority = 10});
}

/* A pod that wants it: "high-CLAIM". Put when claimguard is there: one that starts requeues those
 * that wait already. */
static inline void put_preemptor(const char *claim)
{
    char high[32];

    (void)snprintf(high, sizeof high, "high-%s", claim);
    put_pod(&(struct test_pod){.name = high, .claim = claim, .priority = 100});
}

static inline bool sees(const struct guard *guard, unsigned pods)
{
    return guard_metric(guard, "claimguard_cache_objects{resource=\"pods\"}") == pods;
}

static inline void start_with_a_preemptor(struct guard *guard, const char *config)
{
    put_held_claim("data");
    guard_start(guard, config);
    put_preemptor("data");
    AWAIT(sees(guard, 2), "the preemptor is seen");
}

static inline void start_with_two_preemptors(struct guard *guard)
{
    put_held_claim("data");
    put_held_claim("logs");
    guard_start(guard, quick);
    put_preemptor("data");
    put_preemptor("logs");
    AWAIT(sees(guard, 4), "the preemptors are seen");
}

#endif
