/*
 * nominee: the node that a waiting pod is worth being nominated to (nomination.h), and whether it
 * still is: whether that node is all that keeps the pod waiting.
 *
 * Threads: any, under the cluster's lock.
 */
#ifndef EXTENDER_LIVE_NOMINEE_H
#define EXTENDER_LIVE_NOMINEE_H

#include "policy/policy.h"

/* The node for a pod that passes by the verdict on none of the offered nodes: the first of a filter
 * that nominates that exists, is ready and schedulable, and that no filter rejects. Empty: there is
 * none, or the pod is nominated already. Ownership: the name lies in the cluster. */
struct slice nominee_choose(const struct view *view, const struct pod_object *pod,
                            const struct verdict *verdict, struct arena *arena);

/* Whether the node is all that the pod waits for. REASON_UNKNOWN: there is no verdict now, or no
 * memory. */
enum nominee_reason { REASON_UNKNOWN, REASON_GONE, REASON_HOLDS };

enum nominee_reason nominee_reason(const struct view *view, const struct pod *pod,
                                   struct slice node, struct arena *arena);

#endif
