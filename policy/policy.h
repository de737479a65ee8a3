/*
 * policy: what is allowed. A policy is pure: a view of the cluster and a pod in, a verdict with
 * reasons out. No I/O, no lock, no clock, no JSON (a test compares the symbols of the library with
 * a list of those that it may use). The dry run and the server call the same functions.
 *
 * The verbs are the scheduler framework's. A policy evaluates a pod once, in prefilter. Where its
 * verdict differs from node to node, the verdict has a filter (struct node_filter), which checks
 * each node that the scheduler asks about.
 *
 * Ownership: results lie in the caller's arena; victims and candidates also point into the cluster.
 * They are valid until the arena is reset or the cluster changes, whichever is first.
 */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

#include "cache/cluster/allowance.h"
#include "config/config.h"
#include "policy/placement.h"
#include "policy/verdict.h"

/* A storage class whose claims every replica locks (extender/serving/bind/agreement.h). */
struct agreed_class {
    struct slice name;
    bool is_in_force; /* else it is announced: a replica may still share its claims unlocked */
};

struct agreed_classes {
    const struct agreed_class *items;
    size_t count;
};

/* What a policy may read. */
struct view {
    const struct cluster *cluster;
    const struct config *config;
    const struct agreed_classes *agreed; /* NULL: only the configuration counts */
    struct slice node;                   /* the only one in question, as in a bind; empty: any */
    const struct placement
        *placement; /* of the pod; NULL: kube-scheduler has checked its volumes */
};

/* One candidate node of a preemption: what would be evicted there, and what is missing. */
struct candidate {
    struct slice node;
    const struct slice *offered; /* UIDs of the victims that the scheduler offers */
    size_t offered_count;
    int64_t offered_violations; /* how many of those break a PodDisruptionBudget */
    bool keeps_node;            /* out: the pod can get its claims by evictions on this node */
    bool offers_rivals_only;    /* out: all victims that are offered hold the pod's claims */
    const struct pod **added;   /* out: victims to add to those offered */
    size_t added_count;
    size_t added_violations; /* out: how many of those break a PodDisruptionBudget */
};

/* A policy is one row, in the file of its name. The list, the watches, the metrics and the printers
 * follow from the rows. The pod that it gets has all fields that the cluster knows
 * (cluster_complete_pod). */
struct policy {
    const char *name; /* of the metrics' label `policy` */

    /* Its enum policy_mode; NULL: always MODE_ENFORCE. MODE_OFF: it is not asked. MODE_WARN: what
     * it rejects is a warning; policy_prefilter sees to that, and the policy need not know. */
    int (*mode)(const struct config *config);

    /* Kinds that it reads, besides pods, nodes and claims, unless it is Off: bits 1 << kind. */
    unsigned reads;

    /* More of those, by the configuration; NULL: none. */
    unsigned (*reads_also)(const struct config *config);

    /* The verdict on the pod, before the scheduler names nodes. */
    void (*prefilter)(const struct view *view, const struct pod_object *pod, struct arena *arena,
                      struct verdict *out);

    /* Whether the pod passes on each candidate node once its victims are gone; NULL: evictions
     * change nothing for this policy. `verdict` is that of prefilter; without memory it becomes
     * Error, and the candidates mean nothing. The cost: that of prefilter, and a binary search for
     * each victim that is offered. */
    void (*preempt)(const struct view *view, const struct pod_object *pod, struct verdict *verdict,
                    struct arena *arena, struct candidate *candidates, size_t count);
};

extern const struct policy read_write_once_pod, csi_volumes, volume_attributes_class,
    read_write_once, node_volume_limits, volume_binding, volume_zone;

/* The policies in the order in which they are asked; NULL ends the list. A list that is too long
 * does not compile. */
enum { POLICIES_MAX = 8 };
extern const struct policy *const policies[POLICIES_MAX + 1];

/* Its enum policy_mode. */
int policy_mode(const struct policy *policy, const struct config *config);

/* Whether a verdict, a bind or a preemption may read objects of that kind: pods, nodes and claims,
 * and what the policies that are not Off read. What none of them reads is not watched
 * (cache/watch/informer.h), so a policy that is Off costs no watch and no memory, and needs no
 * rights. docs/policies.md has this table for operators. */
bool policy_needs(const struct config *config, enum kind kind);

/* The same for all kinds: bits 1 << kind. */
unsigned policy_needed_kinds(const struct config *config);

/*
 * The verdict of all policies: the first rejection; else Success if a policy has something to say;
 * else Skip. The policy that decided is out->decided_by. Where the first rejection is
 * Unschedulable, the other policies are asked as well: one of them may make it Unresolvable, so
 * that no pod is evicted for a pod that cannot run. The node filters are those of all policies that
 * were asked; so are the warnings, with the rejections of those that only warn.
 */
void policy_prefilter(const struct view *view, const struct pod_object *pod, struct arena *arena,
                      struct verdict *out);

/* The first filter that rejects the node for a pod that passes by the verdict; NULL: no filter
 * rejects it. *reason: why it is rejected, never empty; {NULL, 0}: there is no memory for it. */
const struct node_filter *policy_filter(const struct verdict *verdict, struct slice node,
                                        struct arena *arena, struct slice *reason);

/* The code of a node that a filter of the verdict rejects. */
enum verdict_code policy_node_code(const struct verdict *verdict, struct slice node,
                                   struct arena *arena);

/* Whether there may be a node for a pod that passes, or that evictions would help: no filter
 * rejects all nodes that the cache has. The cost: a filter's for each, until one passes. */
bool policy_passes_somewhere(const struct view *view, const struct verdict *verdict,
                             struct arena *arena);

/*
 * Checks nodes for a pod that passes, or that evictions would help (Unschedulable). reasons[i]:
 * why it is rejected on node i; empty: it passes. Returns how many nodes are rejected. If all are,
 * the pod is rejected, too: the verdict becomes Unresolvable, or Unschedulable if one of the nodes
 * is, and gains the first reason, and decided_by becomes the policy that gave it, unless another
 * one had rejected the pod. If only some are, an Unschedulable verdict holds on all of them alike:
 * 0. Without memory, the verdict becomes Error.
 */
size_t policy_filter_nodes(struct verdict *verdict, const struct slice *names, size_t count,
                           struct arena *arena, struct slice *reasons);

/* Whether the namespace is given up (cache/cluster/allowance.h), and why its pods with claims are
 * rejected then ({NULL, 0} without memory). */
bool policy_has_given_up(const struct view *view, struct slice ns, struct arena *arena,
                         struct slice *reason);

/* Each policy's preempt, and drops the candidates that a filter of the verdict, which is that of
 * policy_prefilter, rejects: evictions do not make room there. */
void policy_preempt(const struct view *view, const struct pod_object *pod, struct verdict *verdict,
                    struct arena *arena, struct candidate *candidates, size_t count);

/* The next filter behind `after` (NULL: the first) of a policy that only warns, and would reject
 * the node; NULL: there is none. *reason: as above. */
const struct node_filter *policy_warn(const struct verdict *verdict,
                                      const struct node_filter *after, struct slice node,
                                      struct arena *arena, struct slice *reason);

/* Whether the pod may be rejected on some nodes only: it is not rejected for good, and there is a
 * filter that is not only for warnings. */
bool policy_filters_nodes(const struct verdict *verdict);

/* ---- what single policies also say ---- */

/* Whether an inline volume of the pod can never be mounted: its CSIDriver lacks Ephemeral, and the
 * API server lets nobody change that. Only where the policy enforces. *reason: {NULL, 0}: there is
 * no memory for it. */
bool csi_volumes_refuse_inline(const struct view *view, const struct pod_object *pod,
                               struct arena *arena, struct slice *reason);

/* Whether the policy is about the claim, number `index` of the pod's. NULL: it does not exist. */
bool read_write_once_judges(const struct view *view, const struct pod_object *pod, size_t index,
                            const struct claim *claim);

/* Of a claim whose volume is not known: the node where it is in use, if that is not view->node,
 * too; empty: nobody holds it, or a pod there does. False: no memory. */
bool read_write_once_elsewhere(const struct view *view, const struct pod_object *pod,
                               const struct claim *claim, struct arena *arena, struct slice *node);

#endif
