/*
 * who_claim: what is known of one claim: its volume, the pods that hold it, and those that wait for
 * it. The files of who/ and of why/ include it.
 *
 * Ownership: all is in the arena of the claim, and points into the inquiry. Threads: one.
 */
#ifndef EXTENDER_COMMANDS_WHO_WHO_CLAIM_H
#define EXTENDER_COMMANDS_WHO_WHO_CLAIM_H

#include "extender/commands/who/who.h"
#include "extender/report/sheet.h"

/* A pod names a claim. */
struct naming {
    const struct claim *claim;
    const struct pod *pod;
};

/* What is found in one walk for all claims of an answer. */
struct who_index {
    struct naming *namings; /* pods that name one of the claims, also those that have ended */
    size_t naming_count;
    const struct resource **attachments; /* VolumeAttachments, by their volumes */
    size_t attachment_count;
};

/* Fills the index, which is all zero, for these claims; it is in the arena. It sorts them, and
 * leaves out repeated ones. False: no memory. */
bool who_index_init(struct who_index *index, struct arena *arena, const struct cluster *cluster,
                    const struct claim **claims, size_t *claim_count);

/* Whether a pod names the claim, which is one of the index. */
bool who_index_has(const struct who_index *index, const struct claim *claim);

static inline struct slice who_volume_of(const struct resource *attachment)
{
    return resource_attribute(attachment, VOLUME_ATTACHMENT_VOLUME);
}

/* How many pods may use a claim at a time. */
enum access { ACCESS_UNKNOWN, ACCESS_ANY, ACCESS_ONE_NODE, ACCESS_ONE_POD };

/* NODE_NOT_READY: its kubelet says so, or the input has no conditions. NODE_UNREACHABLE: its
 * kubelet says nothing (Ready is Unknown). */
enum node_state { NODE_UNKNOWN, NODE_READY, NODE_NOT_READY, NODE_UNREACHABLE, NODE_MISSING };

/* What a pod that names the claim, and does not have it, waits for. */
enum waits_for {
    WAITS_OTHER, /* not for the claim */
    WAITS_PLACE, /* for a node where the claim's volume can be used */
    WAITS_HOLDER,
    WAITS_DETACH, /* its node is chosen, and the volume is attached to another one */
    WAITS_CLAIM,  /* it does not exist, is being deleted, or has lost its volume */
    WAITS_BINDING,
    WAITS_RESERVATION,
    WAITS_LOCK,
};

/* A pod that names the claim, with its details. */
struct who_pod {
    const struct pod *pod;
    struct pod_details details;
    struct slice since;   /* when it was bound, or, of one that waits, when it was created */
    struct slice deleted; /* of one that is terminating: when it was deleted; empty: not known */
    struct owner owner;   /* its controller; a Deployment instead of its ReplicaSet. Or no name */
    bool is_owner_known;  /* false: the input does not have owners */
    enum node_state node_state;
    bool is_out_of_service;   /* its node has that taint */
    enum waits_for waits_for; /* of one that waits */
    struct slice blocked_by;  /* WAITS_DETACH: the node that has the volume */
};

/* A node that has the claim's volume, or gets it. */
struct who_attachment {
    const struct resource *record;
    struct slice node, attach_error, detach_error;
    bool is_attached, is_detaching;
    enum node_state node_state;
    bool is_out_of_service; /* the node has that taint */
};

/* What is known of one claim. */
struct who_claim {
    const struct inquiry *inquiry;
    const struct config *config; /* by which pods are judged */
    const struct claim *claim;
    struct claim_details details;
    enum access access;
    struct slice volume;                  /* empty: not bound */
    struct volume_details volume_details; /* all zero: not known */
    bool is_of_earlier;           /* the volume was bound to an earlier claim of the same name */
    bool has_volume;              /* the volume is this claim's, as far as is known */
    const struct resource *class; /* its StorageClass; NULL: none that is known */
    struct storage_class_details class_details;
    struct who_pod *holders, *waiters;
    size_t holder_count, waiter_count;
    const struct pod **finished; /* pods that have ended, and name the claim */
    size_t finished_count;
    size_t assigned_count; /* pods with a node: the holders, and those that wait for a detach */
    bool is_waited_for;
    struct who_attachment *attachments; /* of its volume */
    size_t attachment_count;
    struct arena *arena; /* of all this */

    /* The pod for which the claim should be freed, if it waits; NULL: any that waits. Then details
     * of others that wait are not read. */
    const struct pod *asked;
    bool is_apart; /* it needs another volume on another node: it cannot share this one's node */

    struct advice_list freed_by; /* in an answer of `who` */
};

/* Collects all that is known of the claim, which is one of the index. out has the inquiry, the
 * configuration and the arena. False: no memory. */
bool who_gather(struct who_claim *out, const struct who_index *index, const struct claim *claim);

/* The text of an object's details, in the arena; {NULL, 0}: not known. False: no memory. */
bool who_details(struct slice *out, const struct inquiry *inquiry, enum kind kind, struct slice ns,
                 struct slice name, struct arena *arena);

/* The lock of the claim: name and UID of its pod. False: it has none. */
bool who_lock(const struct who_claim *claim, struct slice *uid, struct slice *name);

/* The pod that the lock names; NULL: the input does not have it. */
const struct pod *who_locker(const struct who_claim *claim);

/* Whether more pods hold the claim than may. */
static inline bool who_is_violated(const struct who_claim *claim)
{
    return claim->access == ACCESS_ONE_POD && claim->assigned_count > 1;
}

/* Whether the next pod gets it at once. */
bool who_is_free(const struct who_claim *claim);

/* Whether the volume is attached to nodes. Of a driver that may not be in the input, only an
 * attachment shows that. */
bool who_is_attachable(const struct who_claim *claim);

/* Whether the claim had a volume, which is gone: it is Lost, or will be. */
bool who_lacks_volume(const struct who_claim *claim);

/* ---- its class, and what makes the claim: who_advice_volume.c ---- */

/* Whether its StorageClass does not exist. */
bool who_lacks_class(const struct who_claim *claim);

/* Whether the claim's volume is made only when a pod with it has a node. */
bool who_waits_for_consumer(const struct who_claim *claim);

/* Whether volumes of its class are made by hand. */
bool who_makes_no_volumes(const struct who_claim *claim);

/* The pod that advice is for: the one that is asked about, or the first that waits, or has the
 * claim. False: none, or no memory. */
bool who_find_user(struct who_pod *out, const struct who_claim *claim);

/* The StatefulSet that makes the claim for that pod, from volumeClaimTemplates; empty: none. */
struct slice who_set(const struct who_claim *claim);

/* Behind "create the claim again": what makes it, as it is; empty: nothing. */
struct slice who_maker(const struct who_claim *claim);

/* As a manifest says it: "20Gi"; what is no multiple of a unit is rounded down to Mi. */
struct slice who_size(int64_t bytes, struct arena *arena);

/* Who removes a finalizer, and when: "what has set it", if nothing is known of it. */
const char *who_removes(struct slice finalizer);

/* ---- pods and nodes: who_pods.c ---- */

/* "shop/db-0", as two arguments for "%.*s/%.*s". */
#define POD_ARG(pod) \
    (int)name_text((pod)->ns).len, name_text((pod)->ns).ptr, (int)pod_name(pod).len, \
        pod_name(pod).ptr

/* Finds what each pod waits for. Of the holders, those that cannot have the volume, because it is
 * attached elsewhere, become waiters. False: no memory. */
bool who_find_waits(struct who_claim *claim);

/* What is known of a node. */
enum node_state who_node_state(const struct inquiry *inquiry, struct slice node,
                               struct arena *arena);

/* Whether it is not ready, and has the taint of a machine that is off. */
bool who_is_out_of_service(const struct inquiry *inquiry, struct slice node, enum node_state state,
                           struct arena *arena);

/* Fills in the details of a pod. False: no memory. */
bool who_pod_init(struct who_pod *out, const struct inquiry *inquiry, const struct pod *pod,
                  struct arena *arena);

/* Whether the pod is of a controller of that kind and name: itself, or over a ReplicaSet or Job. */
bool who_is_of(const struct inquiry *inquiry, const struct who_pod *pod, enum kind kind,
               struct slice name);

/* Whether the pod's StatefulSet makes the claim, from volumeClaimTemplates: TEMPLATE-POD. */
bool who_is_of_template(const struct who_pod *pod, const struct claim *claim);

/* The first of a node's taints (struct taint) that keeps the pod away; NULL: none. */
const struct taint *who_find_taint(const struct who_pod *pod, const struct pull_items *taints);
bool who_tolerates(const struct who_pod *pod, const struct taint *taint);

/* Whether the node is cordoned, and the pod does not tolerate that. */
bool who_is_cordoned(const struct who_pod *pod, const struct node *node);

/* Whether a node with these labels (label_selector.h) is one that the pod asks for. */
bool who_wants_node(const struct who_pod *pod, struct slice node, struct slice labels);

/* Whether the pod has a node, which has not mounted its volumes yet, as far as is known. */
bool who_waits_for_mounts(const struct who_pod *pod);

/* Whether the pod is being deleted, and something keeps it: a finalizer, a node that is lost, or
 * its kubelet, when its grace is over. Of a snapshot, that is not known. */
bool who_cannot_end(const struct who_pod *pod, int64_t now_ms);

/* Whether the pod's node does not exist, does not answer, or is out of service. */
static inline bool who_has_lost_node(const struct who_pod *pod)
{
    return pod->node_state == NODE_MISSING || pod->node_state == NODE_UNREACHABLE ||
           pod->is_out_of_service;
}

/* "Terminating", as kubectl says; why a container waits; or the phase. */
struct slice who_state(const struct who_pod *pod);

/* What a scheduler says of the pod, if it has not scheduled it; empty: nothing. */
struct slice who_message(const struct who_pod *pod);

enum { BUDGETS_MAX = 10 /* of a holder, in an answer */ };

/* The first PodDisruptionBudgets by name that a pod counts for. */
struct budgets {
    const struct resource *items[BUDGETS_MAX + 1]; /* the last one is for one that is put in */
    size_t count, left_out;
};
void who_find_budgets(struct budgets *out, const struct cluster *cluster, const struct pod *pod);

/* ---- advice: who_advice.c ---- */

/* What would free the claim. names_waiters: also what is the matter with pods that
 * wait for it, and for which one holders may be preempted. */
struct advice_list who_freed_by(const struct who_claim *claim, bool names_waiters,
                                struct arena *arena);

/* What would end a pod that is terminating, by its node and its grace. It has none of the claims,
 * or one of them. */
struct advice_list who_ended_by(const struct who_pod *pod, const struct who_claim *claim,
                                int64_t now_ms, struct arena *arena);

/* Of a claim that is not bound, or whose volume is not its own: what binds it. */
struct advice_list who_bound_by(const struct who_claim *claim, struct arena *arena);

/* Of a claim that is being deleted, or whose volume is: how its data is kept, and which ended pods
 * keep the claim. */
struct advice_list who_deletion(const struct who_claim *claim, struct arena *arena);

/* Of a claim that is being deleted: what makes it again. */
struct advice_list who_made_again(const struct who_claim *claim, struct arena *arena);

/* ---- for programs and people: who_pods.c ---- */

/* Puts what answers about claims and about pods say of a pod into an object. */
void who_put_pod(struct fields *out, const struct who_pod *pod);
const char *who_node_state_text(enum node_state state);

/* ", of Deployment web": the pod's controller, if it is known. */
void who_put_owner(struct block *block, const struct who_pod *pod);

#endif
