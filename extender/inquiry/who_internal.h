/* who_internal: what the files who*.c share. Only they include it. */
#ifndef EXTENDER_INQUIRY_WHO_INTERNAL_H
#define EXTENDER_INQUIRY_WHO_INTERNAL_H

#include "extender/inquiry/who.h"
#include "extender/report/advice_rows.h"
#include "extender/report/sheet.h"
#include "extender/report/value.h"

/* A pod names a claim. */
struct naming {
    const struct claim *claim;
    const struct pod *pod;
};

/* VolumeAttachments, by their volumes. */
struct who_index {
    const struct resource **attachments;
    size_t attachment_count;
};

/* Fills the index. Ownership: free(index->attachments), also after false: no memory. */
bool who_index_attachments(struct who_index *index, const struct cluster *cluster);

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
    WAITS_HOLDER,
    WAITS_DETACH, /* its node is chosen, and the volume is attached to another one */
    WAITS_CLAIM,  /* it does not exist, is being deleted, or is Lost */
    WAITS_BINDING,
    WAITS_RESERVATION,
    WAITS_LOCK,
};

/* A pod that names the claim, with its details. */
struct who_pod {
    const struct pod *pod;
    struct pod_details details;
    struct slice since;  /* when it was bound, or, of one that waits, when it was created */
    struct owner owner;  /* its controller; a Deployment instead of its ReplicaSet. Or no name */
    bool is_owner_known; /* false: the input does not have owners */
    enum node_state node_state;
    bool is_out_of_service;   /* its node has that taint */
    enum waits_for waits_for; /* of one that waits */
};

/* What is known of one claim. */
struct who_claim {
    const struct inquiry *inquiry;
    const struct claim *claim;
    struct claim_details details;
    enum access access;
    struct slice volume;                  /* empty: not bound */
    struct volume_details volume_details; /* all zero: not known */
    bool is_of_earlier; /* the volume was bound to an earlier claim of the same name */
    bool has_volume;    /* the volume is this claim's, as far as is known */
    struct who_pod *holders, *waiters;
    size_t holder_count, waiter_count;
    const struct pod **finished; /* pods that have ended, and name the claim */
    size_t finished_count;
    size_t assigned_count; /* pods with a node: the holders, and those that wait for a detach */
    bool is_waited_for;
    const struct resource *const *attachments; /* of its volume */
    size_t attachment_count;
    struct arena *arena; /* of all this */

    /* The pod for which the claim should be freed, if it waits; NULL: any that waits. */
    const struct pod *asked;
};

/* Collects all that is known of the claim; namings: the pods that name it, also those that have
 * ended. out has the inquiry and the arena. False: no memory. */
bool who_gather(struct who_claim *out, const struct who_index *index, const struct claim *claim,
                const struct naming *namings, size_t count);

/* Whether the volume has to be attached to a node before a pod there can use it. */
bool who_attaches(const struct cluster *cluster, const struct resource *volume);

/* The claim as JSON; NULL: no memory. */
json_t *who_describe(const struct who_claim *claim);

/* Finds what each pod waits for. Of the holders, those that cannot have the volume, because it is
 * attached elsewhere, become waiters. */
void who_find_waits(struct who_claim *claim);

/* What is known of a node. */
enum node_state who_node_state(const struct inquiry *inquiry, struct slice node,
                               struct arena *arena);
const char *who_node_state_text(enum node_state state);
bool who_is_out_of_service(const struct inquiry *inquiry, struct slice node, struct arena *arena);

/* Fills in the details of a pod. False: no memory. */
bool who_pod_init(struct who_pod *out, const struct who_claim *claim, const struct pod *pod);

/* Pods as JSON; NULL: no memory. */
json_t *who_holder(const struct who_claim *claim, const struct who_pod *holder);
json_t *who_waiter(const struct who_pod *waiter);

/* "Terminating", as kubectl says; why a container waits; or the phase. */
struct slice who_state(const struct who_pod *pod);

/* Adds rows: what to do, a warning of what that stops or destroys, the command, and how to go back.
 * Commands are never wrapped. The label is of the first. False: no memory. */
bool who_add_advice(struct sheet *sheet, const char *label, const json_t *advice);

/* Prints a row for each claim. False: it could not be written. */
bool who_print_all(const json_t *claims, const struct sheet_style *style, FILE *file);

/* A list of struct slice as JSON. */
json_t *who_strings(const struct pull_items *items);

/* A list of {"text"}, and what advice_row_put adds: what would free the claim; NULL: no memory.
 * names_preemptor: also the pod for which holders may be preempted. */
json_t *who_freed_by(const struct who_claim *claim, bool names_preemptor);

/* The same of a claim whose volume is not there, or was an earlier claim's: what binds it again. */
json_t *who_bound_by(const struct who_claim *claim);

/* The same of a claim that is being deleted: how its data is kept, and which ended pods keep it. */
json_t *who_deletion(const struct who_claim *claim);

/* What the input does not have, and would matter to these claims: a list of texts. */
json_t *who_gaps(const struct inquiry *inquiry, const json_t *claims);

/* Adds those of the workloads that advice asked for. Not 0: no memory. */
int who_list_workloads(json_t *list, const struct inquiry *inquiry);

/* The lock of the claim: name and UID of its pod. False: it has none. */
bool who_lock(const struct who_claim *claim, struct slice *uid, struct slice *name);

/* The pod that the lock names; NULL: the input does not have it. */
const struct pod *who_locker(const struct who_claim *claim);

#endif
