/*
 * holders: which pods hold a claim against one that wants it.
 *
 * Pure, as policies are. What is returned points into the cluster.
 */
#ifndef POLICY_HOLDERS_H
#define POLICY_HOLDERS_H

#include "cache/cluster/cluster.h"

/* How a pod holds a claim. */
enum hold { HOLD_NONE, HOLD_BOUND, HOLD_TERMINATING, HOLD_NOMINATED, HOLD_RESERVED };

/*
 * Whether and how `holder`, which names a claim, holds it against `pod`:
 * - assigned and not finished: Bound, or Terminating: until it is gone;
 * - nominated to a node that takes pods, of equal or higher priority, and not being deleted:
 *   Nominated, on all nodes, until the nomination lapses (nominated.h). Against a pod that is
 *   nominated itself only if it is tried first: of higher priority, or older;
 * - itself (by UID): never.
 */
enum hold hold_against(const struct cluster *cluster, const struct pod *holder,
                       const struct pod_object *pod);

/* "Bound", "Reserved" and so on, as people and programs read it; "" for HOLD_NONE. */
const char *hold_text(enum hold hold);

/* For qsort, of pointers to holders of one claim: by name, since all are in its namespace. */
int holder_compare(const void *a, const void *b);

/* The pod as the cache knows it, which may be newer than what the scheduler sent; NULL: it does
 * not. */
const struct pod *holder_cached(const struct cluster *cluster, const struct pod_object *pod);

#endif
