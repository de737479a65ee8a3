/*
 * node_volume_limits: how many volumes of a driver a node can have, and which count, as
 * kube-scheduler's NodeVolumeLimits (1.37): the volumes that the node's pods use, and those that
 * are only attached. There, two handles are
 * two volumes; here, two names are.
 *
 * Pure, as policies are. What is returned points into the cluster or the placement.
 */
#ifndef POLICY_NODE_VOLUME_LIMITS_H
#define POLICY_NODE_VOLUME_LIMITS_H

#include "policy/placement.h"

/* What the volume of the claim counts as; false: it does not, or is not known. knows_volumes: a
 * volume that the cluster does not have does not exist. */
bool counted_volume_of(const struct cluster *cluster, const struct claim *claim, bool knows_volumes,
                       struct counted_volume *out);

/* The same of one that is attached. */
bool counted_volume_attached(const struct cluster *cluster, const struct resource *attachment,
                             struct counted_volume *out);

/* Volumes of a pod; each is there once. */
struct counted_volumes {
    struct counted_volume *items;
    size_t count;
};

/* False: no memory. */
bool counted_volumes_find(const struct cluster *cluster, const struct placement *placement,
                          struct arena *arena, struct counted_volumes *out);

/* The driver in the node's CSINode; NULL: it is not there, or not known. */
const struct driver_limit *placed_node_driver(const struct placed_node *node, struct slice driver);

/* How many volumes of a driver a node has. */
struct node_volumes {
    size_t used, more; /* now; and those that the pod would bring */
    int64_t limit;     /* negative: none, or it is not known */
};

struct node_volumes node_volumes_count(const struct counted_volumes *of_pod,
                                       const struct placed_node *node, struct slice driver);

static inline bool node_volumes_are_too_many(const struct node_volumes *volumes)
{
    return volumes->limit >= 0 && volumes->more != 0 &&
           (int64_t)(volumes->used + volumes->more) > volumes->limit;
}

#endif
