/*
 * verdict: what a policy says of a pod, and functions to build it.
 *
 * Ownership: all that a verdict points to is in the caller's arena; victims are in the cluster.
 * Errors: false, and the verdict says Error because there is no memory. It stays so, whatever is
 * added: who adds several things need not check each.
 */
#ifndef POLICY_VERDICT_H
#define POLICY_VERDICT_H

#include "cache/cluster/cluster.h"

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

enum { CAUSES_MAX = 16, VERDICT_VICTIMS_MAX = 1000, VERDICT_REASONS_MAX = 8, WARNINGS_MAX = 16 };

struct policy;

/*
 * On which nodes a pod passes, by one policy that lets it pass: on those of a list, or on those for
 * which a check passes. A node that is rejected is UnschedulableAndUnresolvable: evicting pods from
 * it does not help; unless the filter is_resolvable. In the arena, because policy_prefilter writes
 * to it.
 */
struct node_filter {
    const struct slice *names; /* the list, in slice_compare's order */
    size_t count;
    struct slice reason; /* on nodes that are not in the list */

    /* NULL: the list counts. Else: writes for each node why the pod does not pass there; empty: it
     * passes; {NULL, 0}: there is no memory for the reason. Called under the cluster's lock. It
     * gets many nodes at once, because thousands are checked for one pod: whether one of them
     * passes should be no branch, which the processor would predict wrongly. */
    void (*check)(const void *context, const struct slice *nodes, size_t count, struct arena *arena,
                  struct slice *reasons);
    const void *context;

    bool is_resolvable; /* a node that is rejected is Unschedulable: evicting pods can help */

    bool nominates; /* a pod that passes on none of the offered nodes is nominated to one of the
                       list: extender/serving/live/nomination.h */

    /* set by policy_prefilter: */
    const struct policy *policy; /* whose filter this is */
    bool warns;                  /* by the policy's mode, what it rejects is a warning */
    struct node_filter *next;    /* of a policy behind this one */
};

/* Something that is wrong with a pod that passes. */
struct warning {
    const struct policy *policy; /* set by policy_prefilter */
    struct slice text;
};

struct verdict {
    enum verdict_code code;
    const struct policy *decided_by; /* set by policy_prefilter and policy_filter_nodes */
    bool is_by_nodes;      /* rejected on each node that is offered, and not for itself: it may pass
                              on others; set by policy_filter_nodes */
    struct slice *reasons; /* none when the pod may pass */
    size_t reason_count;
    size_t left_out; /* reasons that are not there, because of VERDICT_REASONS_MAX */
    struct object_reference *causes; /* the claims and holders for which the pod is rejected */
    size_t cause_count;
    struct object_reference *awaited; /* a refused pod is requeued when one of them appears or
                                         goes: no event for the scheduler says so, or it may be late
                                         here. A driver on nodes is a KIND_CSI_NODE with its name, a
                                         volume_offer a KIND_VOLUME with that as its name, a pod's
                                         nomination a KIND_NODE with the pod's name */
    size_t awaited_count;
    const bool *exclusive; /* for each of the pod's claims: it needs that for itself; NULL: those
                              that are ReadWriteOncePod */
    struct slice reserved_for;  /* UID of a pod for which a claim is reserved; empty: for none */
    const struct pod **victims; /* whose removal lets the pod pass; none when nothing would. Of more
                                   than VERDICT_VICTIMS_MAX, the first: nobody evicts so many */
    size_t victim_count;
    struct node_filter *nodes; /* where the pod passes; NULL: on every node */
    struct warning *warnings;  /* WARNINGS_MAX at most */
    size_t warning_count;
};

/* Namespace and name of a claim, for "%.*s/%.*s". */
#define CLAIM_NAME_ARG(claim) SLICE_ARG(name_text((claim)->ns)), SLICE_ARG(claim_name(claim))

/* Makes the verdict Error, because there is no memory. */
void verdict_out_of_memory(struct verdict *out);

/* Adds a reason. {NULL, 0}: there was no memory to write it. */
bool verdict_add_reason(struct verdict *out, struct arena *arena, struct slice reason);

/* Rejects the pod, Unresolvable, for a reason of which there may be many: of more than
 * VERDICT_REASONS_MAX, the others are counted. Whether it was added. */
bool verdict_reject(struct verdict *out, struct arena *arena, struct slice reason);

/* Ends the reasons: adds "and COUNT more", if any are left out. */
bool verdict_add_left_out(struct verdict *out, struct arena *arena);

/* Adds a warning, unless there are WARNINGS_MAX. {NULL, 0}: there was no memory to write it. */
bool verdict_add_warning(struct verdict *out, struct arena *arena, struct slice text);

/* Adds an object to the causes, unless there are CAUSES_MAX: to ask the API server about those is
 * enough. It is copied, because the verdict outlives the lock on the cluster. */
bool verdict_add_cause(struct verdict *out, struct arena *arena, enum kind kind, struct slice ns,
                       struct slice name, const struct uid *uid);

/* The same, of a reference that is in the arena already. */
bool verdict_keep_cause(struct verdict *out, struct arena *arena,
                        const struct object_reference *cause);

/* Adds an object to those that are awaited, once. It is copied. Of more than CAUSES_MAX, pods come
 * first: a bind also asks the API server about them. */
bool verdict_add_awaited(struct verdict *out, struct arena *arena,
                         const struct object_reference *object);

/* The same, of an object without namespace and UID. */
bool verdict_await(struct verdict *out, struct arena *arena, enum kind kind, struct slice name);

/* The reasons as one message: "a; b". */
struct slice verdict_message(const struct verdict *verdict, struct arena *arena);

#endif
