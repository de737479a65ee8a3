/*
 * priority_class: the priority that the API server's admission gives a pod (its plugin Priority).
 * For pods that it has not seen: a manifest, a snapshot that was written by hand.
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
 * What pods of that class have: of the cluster's, else of the two that every API server has; with
 * an empty name that of the global default (of several, the lowest), or 0 without one. False: no
 * class has the name; *out is then 0.
 */
bool priority_class_find(const struct cluster *cluster, struct slice name,
                         struct priority_class *out);

#endif
