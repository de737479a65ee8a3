/*
 * policy: what is allowed. A policy is pure: a view of the cluster and a pod in, a verdict with
 * reasons out. No I/O, no lock, no clock, no JSON (a test holds the library against a list of the
 * symbols that it may use). The dry run and the server call the very same functions.
 *
 * The verbs are the scheduler framework's. A policy whose verdict can differ from node to node will
 * add a `filter`; the one that is here judges the pod, and that verdict stands on every node.
 *
 * Ownership: results lie in the caller's arena; victims and candidates point into the cluster, too,
 * and are valid until the arena is reset or the cluster changes, whichever is first.
 */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

#include "cache/cluster/cluster.h"
#include "config/config.h"

/* What a policy sees. */
struct view {
    const struct cluster *cluster;
    const struct config *config;
};

/* The codes of k8s.io/kube-scheduler/framework that claimguard answers with. */
enum verdict_code {
    CODE_SUCCESS,
    CODE_SKIP,                           /* the policy has nothing to say about this pod */
    CODE_UNSCHEDULABLE,                  /* removing pods can help */
    CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, /* removing pods cannot help */
    CODE_ERROR,                          /* no decision could be made */
    CODE_COUNT,
};

/* "Success", "Skip", ... */
const char *code_text(enum verdict_code code);

static inline bool code_is_rejection(enum verdict_code code)
{
    return code != CODE_SUCCESS && code != CODE_SKIP;
}

enum { GROUNDS_MAX = 16, VERDICT_VICTIMS_MAX = 1000 };

struct verdict {
    enum verdict_code code;
    struct slice *reasons; /* none when the pod may pass */
    size_t reason_count;
    struct object_reference *causes; /* what a rejection rests on: claims, and holders */
    size_t cause_count;
    const bool *alone; /* for each of the pod's claims: it takes that for itself alone; NULL: those
                          that are ReadWriteOncePod */
    struct slice reserved_for;  /* UID of a pod for which a claim is reserved; empty: for none */
    const struct pod **victims; /* whose removal lets the pod pass; none when nothing would. Of more
                                   than VERDICT_VICTIMS_MAX, the first: nobody evicts so many */
    size_t victim_count;
};

/* One candidate node of a preemption: what would be evicted there, and what is missing. */
struct candidate {
    struct slice node;
    const struct slice *offered; /* UIDs of the victims that the scheduler offers */
    size_t offered_count;
    int64_t offered_violations; /* how many of those break a PodDisruptionBudget */
    bool keeps_node;            /* out: the pod can get its claims by evictions on this node */
    const struct pod **added;   /* out: victims to add to those offered */
    size_t added_count;
    size_t added_violations; /* out: how many of those break a PodDisruptionBudget */
};

struct policy {
    const char *name; /* of the metrics' label `policy` */

    /* The verdict on the pod, before any node is looked at. */
    void (*prefilter)(const struct view *view, const struct pod_object *pod, struct arena *arena,
                      struct verdict *out);

    /* Whether the pod passes on each candidate node once its victims are gone. `verdict` is what
     * prefilter said; Error when there is no memory: then nothing is known of any node. The cost is
     * that of prefilter, and of one look at each victim that is offered. */
    void (*preempt)(const struct view *view, const struct pod_object *pod, struct verdict *verdict,
                    struct arena *arena, struct candidate *candidates, size_t count);
};

/* The policies in the order in which they are asked; NULL ends the list. */
extern const struct policy *const policies[];

/*
 * The verdict of all policies: the first rejection, else Success when any has something to say,
 * else Skip. *judge is the policy that decided.
 */
void policy_prefilter(const struct view *view, const struct pod_object *pod, struct arena *arena,
                      struct verdict *out, const struct policy **decided_by);

#endif
