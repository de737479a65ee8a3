/*
 * Two exclusive claims and what reserves them. Included by the tests of reservations.
 */
#ifndef TESTS_UNIT_CACHE_RESERVATION_BENCH_H
#define TESTS_UNIT_CACHE_RESERVATION_BENCH_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/cluster/reservation.h"
#include "policy/policy.h"
#include "support/load.h"

#define UID(n_) "6d1a0d3e-3f0b-4a39-8a5c-00000000000" #n_

static struct cluster cluster;
static struct arena arena;

static inline void apply_claim_in(const char *ns, const char *name, bool is_rwop)
{
    struct object object = {.kind = KIND_CLAIM};
    struct error err = {0};

    object.meta = (struct meta){.ns = slice_of(ns), .name = slice_of(name)};
    object.claim.is_rwop = is_rwop;
    cr_assert_eq(cluster_apply(&cluster, &object, &err), 0);
}

static inline void apply_claim(const char *name, bool is_rwop)
{
    apply_claim_in("default", name, is_rwop);
}

static inline void setup(void)
{
    cluster_init(&cluster);
    arena_init(&arena, 1 << 20);
    apply_claim("data", true);
    apply_claim("logs", true);
    apply_claim("shared", false);
}

static inline void teardown(void)
{
    cluster_dispose(&cluster);
    arena_dispose(&arena);
}

static struct claim_reference both[] = {{.name = {"data", 4}}, {.name = {"logs", 4}}};
static struct claim_reference shared[] = {{.name = {"shared", 6}}};

/* A pending pod that names `data`, or both exclusive claims. */
static inline struct pod_object pod_of(const char *name, const char *uid, int64_t priority,
                                       size_t claims)
{
    return (struct pod_object){.meta = {.ns = SLICE("default"),
                                        .name = slice_of(name),
                                        .uid = slice_of(uid),
                                        .resource_version = SLICE("5")},
                               .priority = priority,
                               .claims = both,
                               .claim_count = claims};
}

static inline void reserve(const struct pod_object *pod, bool binds, uint64_t expires_ns)
{
    struct error err = {0};
    cr_assert_eq(reservation_take(&cluster, pod, NULL, binds, expires_ns, &err), 0, "%s",
                 err.message);
}

static inline struct verdict evaluate(const struct pod_object *pod)
{
    struct verdict verdict;

    struct view view = {.cluster = &cluster, .config = &plain_config};
    policy_prefilter(&view, pod, &arena, &verdict);
    return verdict;
}

static inline unsigned count(void)
{
    return cluster.reserved.count;
}

static inline void apply_pod(const struct pod_object *pod, const char *node, const char *version)
{
    struct object object = {.kind = KIND_POD, .pod = *pod};
    struct error err = {0};

    object.pod.node = slice_of(node);
    object.meta.resource_version = slice_of(version);
    cr_assert_eq(cluster_apply(&cluster, &object, &err), 0);
}

static inline void delete_pod(const struct pod_object *pod)
{
    struct object object = {.kind = KIND_POD, .pod = *pod};
    object.meta.resource_version = SLICE("99");
    cluster_delete(&cluster, &object);
}

#endif
