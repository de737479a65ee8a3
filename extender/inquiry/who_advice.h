/*
 * who_advice: what would free a claim, as a list of JSON objects. Only the files who*.c and why*.c
 * include it.
 *
 *     extern struct advice *advice;
 *     extern const struct pod *pod;
 *     advice_add(advice, json_sprintf("pod %.*s finishes, or is deleted", SLICE_ARG(name)));
 *     advice_command(advice, ADVICE_DELETE_POD, &POD_WORDS(pod));
 *     advice_warn(advice, json_string("its claim is deleted with it"));
 *
 * Ownership: JSON values are taken over. Threads: one.
 */
#ifndef EXTENDER_INQUIRY_WHO_ADVICE_H
#define EXTENDER_INQUIRY_WHO_ADVICE_H

#include "extender/inquiry/who_internal.h"

struct advice {
    json_t *list;
    json_t *last; /* borrowed from the list; NULL: it was left out */
    int rc;       /* not 0: no memory */
};

/* Begins a piece of advice. NULL: no memory. */
void advice_add(struct advice *advice, json_t *text);

/* The last piece is of that row. If an earlier piece has its command, the last one is left out. */
void advice_command(struct advice *advice, enum advice_row row, const struct advice_words *words);

/* What else the last piece destroys or stops; it is added to what its row says. */
void advice_warn(struct advice *advice, json_t *text);

/* "shop/db-0", as two arguments for "%.*s/%.*s"; and for a row of the table. */
#define POD_ARG(pod) \
    (int)name_text((pod)->ns).len, name_text((pod)->ns).ptr, (int)pod_name(pod).len, \
        pod_name(pod).ptr
#define POD_WORDS(pod) \
    ((const struct advice_words){.ns = name_text((pod)->ns), .name = pod_name(pod)})

/* What is lost, besides, when the pod ends: a claim that is being deleted or is the pod's own. */
void advice_warn_of_loss(struct advice *advice, const struct who_claim *claim,
                         const struct pod *pod);

/* A holder with a controller that workloads.h knows. */
struct scaling {
    struct advice *advice;
    const struct who_claim *claim;
    const struct who_pod *holder;
    const char *resource;
    const struct workload_answer *workload;
};

/* "StatefulSet db", as two arguments for "%.*s %.*s". */
#define OWNER_ARG(owner) \
    (int)(owner)->kind.len, (owner)->kind.ptr, (int)(owner)->name.len, (owner)->name.ptr

static inline bool owner_is_kind(const struct owner *owner, struct slice kind)
{
    return slice_equal(owner->kind, kind);
}

static inline bool owner_is_same(const struct owner *a, const struct owner *b)
{
    return slice_equal(a->kind, b->kind) && slice_equal(a->name, b->name);
}

static inline bool scaling_is_known(const struct scaling *scaling)
{
    return scaling->workload->state == WORKLOAD_KNOWN;
}

/* The number at the end of a StatefulSet's pod; negative: there is none. */
int64_t scaling_ordinal(const struct scaling *scaling);

/* The command of the last piece scales the controller, and back. It stops what the text says, which
 * is freed; NULL: no memory. */
void scaling_command(const struct scaling *scaling, int64_t replicas, json_t *stops);

/* Whether nothing would scale the controller up again from that number, as far as is known. */
bool scaling_lasts(const struct scaling *scaling, int64_t replicas);

/* Warns of what may undo that, besides what was found: Argo CD, Flux, autoscalers not known. */
void advice_warn_of_undoing(const struct scaling *scaling, int64_t replicas);

/* Scales it, and says what that stops and destroys. */
void advice_to_scale(const struct scaling *scaling);

/* Says what manages the controller, and would undo a change of it. False: nothing does. */
bool advice_of_manager(const struct scaling *scaling);

/* What makes a holder give the claim up, by its controller. */
void advice_by_owner(struct advice *advice, const struct who_claim *claim,
                     const struct who_pod *holder);

/* Its controller makes a terminating holder again, before a pod that waits. */
void advice_of_return(struct advice *advice, const struct who_claim *claim,
                      const struct who_pod *holder);

/* A holder on a node that does not answer, which never reports that its pods have ended. */
void advice_of_node(struct advice *advice, const struct who_claim *claim,
                    const struct who_pod *holder);

/* Its volume is not there, or was an earlier claim's. */
void advice_of_volume(struct advice *advice, const struct who_claim *claim);

/* The volume is attached to nodes where no pod holds the claim. */
void advice_of_attachments(struct advice *advice, const struct who_claim *claim);

#endif
