/*
 * who_advice: what would free a claim: what the files who_advice*.c share.
 *
 * Each function adds pieces to the advice, or changes the last one. Words of commands are in the
 * arena of the claim. Threads: one.
 */
#ifndef EXTENDER_COMMANDS_WHO_WHO_ADVICE_H
#define EXTENDER_COMMANDS_WHO_WHO_ADVICE_H

#include "extender/commands/who/who_claim.h"

/* What gives a claim its volume that names none, and is not bound. */
void advice_of_unbound(struct advice_list *advice, const struct who_claim *claim);

/* The claim names a volume that is there, and is not its own. */
void advice_of_named(struct advice_list *advice, const struct who_claim *claim,
                     const struct resource *volume);

/* The volume has the data of an earlier claim of this name: how the claim gets it. */
void advice_of_earlier(struct advice_list *advice, const struct who_claim *claim);

/* A pod that waits on another node can have the volume with those that have it, on theirs. False:
 * it cannot, or none waits so. */
bool advice_of_sharing(struct advice_list *advice, const struct who_claim *claim);

/* "; 3 that would fit are bound, pv-a to claim shop/a": volumes of the claim's class. Empty: none;
 * {NULL, 0}: no memory. */
struct slice advice_taken_text(const struct who_claim *claim);

/* Of a pod, for a row of the table of advice. */
#define POD_WORDS(pod) \
    ((const struct advice_words){.ns = name_text((pod)->ns), .name = pod_name(pod)})

/* What is lost, besides, when the pod ends: a claim that is being deleted or is the pod's own.
 * claim: NULL: none. */
void advice_warn_of_loss(struct advice_list *advice, const struct who_claim *claim,
                         const struct pod *pod);

/* A holder with a controller that workloads.h knows. */
struct scaling {
    struct advice_list *advice;
    const struct who_claim *claim;
    const struct who_pod *holder;
    struct slice resource;
    const struct workload_answer *workload;
};

/* "StatefulSet db", as two arguments for "%.*s %.*s". */
#define OWNER_ARG(owner) \
    (int)(owner)->kind.len, (owner)->kind.ptr, (int)(owner)->name.len, (owner)->name.ptr

static inline bool scaling_is_known(const struct scaling *scaling)
{
    return scaling->workload->state == WORKLOAD_KNOWN;
}

/* The number at the end of a StatefulSet's pod; negative: there is none. */
int64_t scaling_ordinal(const struct scaling *scaling);

/* The command of the last piece scales the controller, and back. It stops what the text says;
 * {NULL, 0}: no memory. */
void scaling_command(const struct scaling *scaling, int64_t replicas, struct slice stops);

/* Whether nothing would scale the controller up again from that number, as far as is known. */
bool scaling_lasts(const struct scaling *scaling, int64_t replicas);

/* "Argo CD (shop)", which syncs the controller, or Flux; empty: neither. {NULL, 0}: no memory. */
struct slice scaling_source(const struct scaling *scaling);

/* Says which HorizontalPodAutoscaler makes more than one pod; nothing: none that is known. */
void advice_of_autoscaler(const struct scaling *scaling);

/* Warns of what may undo that, besides what was found: Argo CD, Flux, autoscalers not known. */
void advice_warn_of_undoing(const struct scaling *scaling, int64_t replicas);

/* The last piece is for good: warns of what has made the controller, and makes it so again. */
void advice_warn_of_manager(const struct scaling *scaling);

/* Scales it, and says what that stops and destroys. */
void advice_to_scale(const struct scaling *scaling);

/* Says what manages the controller, and would undo a change of it. False: nothing does. */
bool advice_of_manager(const struct scaling *scaling);

/* What makes a holder give the claim up, by its controller. */
void advice_by_owner(struct advice_list *advice, const struct who_claim *claim,
                     const struct who_pod *holder);

/* Its controller makes a terminating holder again, before a pod that waits. */
void advice_of_return(struct advice_list *advice, const struct who_claim *claim,
                      const struct who_pod *holder);

/* A holder on a node that is cordoned, and perhaps being drained. An operator has budgets of its
 * own: nothing is said then. */
void advice_of_drain(struct advice_list *advice, const struct who_claim *claim,
                     const struct who_pod *holder);

/* A holder on a node that does not answer, which never reports that its pods have ended. */
void advice_of_node(struct advice_list *advice, const struct who_claim *claim,
                    const struct who_pod *holder);

/* The volume is attached to nodes where no pod holds the claim. */
void advice_of_attachments(struct advice_list *advice, const struct who_claim *claim);

#endif
