/*
 * priority_class: the priority of a pod that no API server has admitted: a manifest, or a snapshot
 * that was written by hand. It follows the API server's admission plugin Priority.
 *
 * Threads: as the cluster.
 */
#ifndef CACHE_CLUSTER_PRIORITY_CLASS_H
#define CACHE_CLUSTER_PRIORITY_CLASS_H

#include "cache/cluster/cluster.h"

struct priority_class {
    int32_t value;
    bool never_preempts;
};

/*
 * Looks for a class of the cluster, then for the two that every API server has. An empty name means
 * the global default: of several, the one with the lowest value; without one, *out is 0. False: no
 * class has that name; *out is 0.
 */
bool priority_class_find(const struct cluster *cluster, struct slice name,
                         struct priority_class *out);

#endif
