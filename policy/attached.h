/*
 * attached: where a volume that is for one node at a time has to be attached: the nodes of the pods
 * that hold its claim against another pod.
 *
 * Pure, as policies are. What it points to is in the cluster, or in the arena.
 */
#ifndef POLICY_ATTACHED_H
#define POLICY_ATTACHED_H

#include "policy/policy.h"

enum { ATTACHED_PODS_MAX = CAUSES_MAX };

struct attached_node {
    const struct name *name;
    bool is_leaving; /* every holder there is terminating */
};

/* A pod that holds the claim: in the claim's namespace. */
struct attached_pod {
    struct slice name;
    const struct uid *uid;
    const struct attached_node *node;
};

struct attached {
    struct attached_node *nodes;                 /* by name */
    size_t node_count;                           /* 0: nobody holds the claim */
    struct attached_pod pods[ATTACHED_PODS_MAX]; /* by node, then by name */
    size_t pod_count;
    size_t more; /* holders that are not among those */
};

/*
 * The holders: the other pods that are assigned and not finished, and all pods that are being bound
 * (also `pod`: an earlier Binding of it may still be applied), but those that have the claim for
 * themselves (exclusive.h). Does not walk through the pods of a claim that are on one node, unless
 * all of them are terminating.
 * Errors: false: there is no memory.
 */
bool attached_find(const struct view *view, const struct pod_object *pod, const struct claim *claim,
                   struct arena *arena, struct attached *out);

#endif
