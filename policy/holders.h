/*
 * holders: which pods hold a claim against one that wants it.
 *
 * Pure, as policies are. What is returned points into the cluster.
 */
#ifndef POLICY_HOLDERS_H
#define POLICY_HOLDERS_H

#include "cache/cluster.h"

/* How a pod holds a claim. */
enum hold { HOLD_NONE, HOLD_BOUND, HOLD_TERMINATING, HOLD_NOMINATED, HOLD_RESERVED };

/*
 * Whether and how `holder`, which names a claim, holds it against `pod`:
 * - assigned and not finished: Bound, or Terminating: until it is gone;
 * - nominated to a node that exists, of equal or higher priority, and not being deleted: Nominated,
 *   as the scheduler counts nominated pods. Against a pod that is nominated itself only if it is
 *   tried first: of higher priority, or older;
 * - itself (by UID): never.
 */
enum hold hold_against(const struct cluster *cluster, const struct pod *holder,
                       const struct pod_object *pod);

/* The pod as the cache knows it, which may be newer than what the scheduler sent; NULL: it does
 * not. */
const struct pod *holder_cached(const struct cluster *cluster, const struct pod_object *pod);

#endif
