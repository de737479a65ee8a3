/*
 * large_cluster: a cluster with many objects of each kind, that changes as a watch changes it.
 */
#ifndef TESTS_MEMORY_LARGE_CLUSTER_H
#define TESTS_MEMORY_LARGE_CLUSTER_H

#include "extender/serving/state.h"

enum {
#ifdef __SANITIZE_ADDRESS__
    PODS = 30000, /* some ten times slower */
#else
    PODS = 100000,
#endif
    NODES = PODS / 20,
    RESERVED = 3000, /* claims, by a pod each that waits */
    DEFERRED = 5000, /* claims, by two pods each, in namespace "vms", by no entry */
};

/* Starts the services of the state, and fills its cluster. */
void large_cluster_fill(struct state *state);

/* Some objects come or go: of each kind, those of odd numbers. The others stay. */
void large_cluster_change(void);

#endif
