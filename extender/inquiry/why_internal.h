/* why_internal: what the files why*.c share. Only they include it. */
#ifndef EXTENDER_INQUIRY_WHY_INTERNAL_H
#define EXTENDER_INQUIRY_WHY_INTERNAL_H

#include "extender/inquiry/who_internal.h"
#include "extender/inquiry/why.h"
#include "policy/policy.h"

enum { WHY_NAMES_SHOWN_MAX = 5 /* of nodes, in a text */ };

/* A pod that is asked about, and what is read of it before all objects are known. */
struct why_asked {
    struct why_asked *next;
    struct slice ns, name;
    struct slice *claims;
    size_t claim_count;
    const struct pod_mounts *mounts; /* NULL: not known */
};

struct why {
    const struct why_question *question;
    struct why_asked *asked;
    size_t unseen; /* operands of one namespace for which no pod was read yet; with an operand
                      of any namespace, never 0 */
    bool *seen;    /* by operand */
    bool has_no_memory;
    struct arena reading; /* of asked */
};

/* How far the pod has come. A bit, for the table of causes. */
enum why_stage {
    WHY_SCHEDULING = 1, /* it has no node */
    WHY_STARTING = 2,   /* it has a node, and its volumes may not be mounted yet */
    WHY_RUNNING = 4,    /* its volumes are mounted */
    WHY_FINISHED = 8,
};
#define WHY_WAITING (WHY_SCHEDULING | WHY_STARTING)
#define WHY_ANY     (WHY_WAITING | WHY_RUNNING | WHY_FINISHED)

/* What a cause does to the pod. */
enum why_effect {
    WHY_BLOCKS,  /* it cannot continue */
    WHY_NARROWS, /* it cannot use some of the nodes */
    WHY_LATER,   /* nothing stops it now, but it would wait later */
    WHY_NORMAL,  /* nothing is wrong */
};

/* A node that the pod may get, or has. */
struct why_node {
    const struct node *node;
    struct slice name, labels;
    bool is_out;    /* a cause rejects it */
    bool is_unread; /* its labels are not known: no cause rejects it by them */
};

/* What is found out once, for all pods of an answer. */
struct why_shared {
    struct why_node *nodes; /* those that exist, by name */
    size_t node_count;
    bool are_labels_read;
    struct counting *countings; /* why_limit.c: a list */
    struct arena arena;
};

void why_shared_init(struct why_shared *nodes);
void why_shared_dispose(struct why_shared *nodes);

/* A claim that the pod names, and its volume. */
struct why_claim {
    struct who_claim who; /* without this pod as a holder */
    const struct use *use;
    const struct resource *volume;        /* NULL: none that is known */
    struct volume_details volume_details; /* all zero: not known */
    const struct resource *class;         /* its StorageClass; NULL: none that is known */
    struct storage_class_details class_details;
    bool is_bound; /* it names a volume */
    bool *fits;    /* by node: its volume can be used there; NULL: on each */
};

/* One pod, and the causes so far. */
struct why_pod {
    const struct inquiry *inquiry;
    struct why_shared *shared; /* of the answer */
    struct view view;
    const struct pod *pod;
    struct pod_object object; /* as verdicts want it */
    struct who_pod who;
    enum why_stage stage;
    struct why_claim *claims;
    size_t claim_count;
    struct why_node *nodes; /* by name: those that exist; of a pod that has one, only that */
    size_t node_count;
    bool has_labels;  /* a node has labels: they are known */
    const char *word; /* of the cause that is looked for */
    json_t *causes;
    int rc;
    struct arena *arena;
};

/* What the answer may lack. */
struct why_notes {
    bool is_of_namespace;        /* pods of other namespaces are not read */
    bool lacks_pods;             /* and one that waits for a node has claims */
    bool lacks_labels;           /* of nodes, which a volume's nodeAffinity reads */
    bool names_attributes_class; /* a claim names a VolumeAttributesClass */
    bool has_starting;           /* a pod whose volumes may not be mounted yet */
    bool has_unbound;            /* a claim of a pod that waits for a node has no volume */
};

/* Notes what the input may lack for this pod. Whether it has all that its causes are found by. */
bool why_note(struct why_notes *notes, const struct why_pod *pod);

/* "notKnown" of the answer; NULL: no memory. */
json_t *why_unknown(const struct inquiry *inquiry, const struct why_notes *notes);

/* The namespace that all operands are in; empty: there are several. */
struct slice why_namespace(const struct why_question *question);

/* Whether an object of that kind that is not in the input does not exist. */
static inline bool why_knows(const struct why_pod *pod, enum kind kind)
{
    return inquiry_knows(pod->inquiry, kind);
}

/* Fills in claims, nodes and the stage; out has what is before them. False: no memory. */
bool why_gather(struct why_pod *out, const struct who_index *index, const struct naming *namings,
                size_t count, const struct why_asked *asked);

/* Adds a cause: its text, and what it is about. Steals the text. */
void why_add(struct why_pod *pod, enum why_effect effect, const struct object_reference *object,
             json_t *text);

/* Adds to the last cause what would help. Steals the text, or the list of advice (who_freed_by). */
void why_help(struct why_pod *pod, json_t *text);
void why_help_all(struct why_pod *pod, json_t *helps);

/* The last text is of that row. */
void why_command(struct why_pod *pod, enum advice_row row, const struct advice_words *words);

/* Adds a cause that rejects the nodes with these flags, unless there are none; NULL: no memory. One
 * that narrows blocks the pod if it rejects all nodes. */
void why_add_nodes(struct why_pod *pod, enum why_effect effect, const bool *rejected,
                   const struct object_reference *object, json_t *text);

/* How many nodes have a flag that is `wanted`. */
size_t why_count_nodes(const struct why_pod *pod, const bool *flags, bool wanted);

/* "node-1, node-2 and 7 more": nodes whose flag is `wanted`. {NULL, 0}: no memory. */
struct slice why_node_names(const struct why_pod *pod, const bool *flags, bool wanted);

/* Whether there is an Available volume that the claim may be bound to, which kube-scheduler does
 * rather than have one made. Where it can be used is not checked. */
bool why_has_offer(const struct why_pod *pod, const struct why_claim *claim);

/* A flag for each node, all false; NULL: no memory. */
bool *why_flags(struct why_pod *pod);

/* References to what causes are about. */
struct object_reference why_claim_reference(const struct why_claim *claim);
struct object_reference why_volume_reference(const struct why_claim *claim);
struct object_reference why_pod_reference(const struct why_pod *pod);

/* The arguments of "%.*s/%.*s"; no macro in a macro, which cppcheck cannot expand. */
#define CLAIM_ARG(claim) \
    (int)name_text((claim)->who.claim->ns).len, name_text((claim)->who.claim->ns).ptr, \
        (int)claim_name((claim)->who.claim).len, claim_name((claim)->who.claim).ptr
#define WHY_POD_ARG(pod) \
    (int)name_text((pod)->ns).len, name_text((pod)->ns).ptr, (int)pod_name(pod).len, \
        pod_name(pod).ptr

/* Of a claim, for a row of the table of advice. */
#define CLAIM_WORDS(claim_) \
    ((const struct advice_words){.ns = name_text((claim_)->who.claim->ns), \
                                 .claim = claim_name((claim_)->who.claim)})

/* The causes: each adds those that it finds. */
typedef void why_finder(struct why_pod *pod);
why_finder why_finalizers;
why_finder why_given_up, why_claim_missing, why_claim_of_another, why_claim_deleting,
    why_claim_lost;
why_finder why_class_missing, why_claim_unbound, why_first_consumer, why_not_provisioned;
why_finder why_volume_missing, why_volume_deleting;
why_finder why_attributes_class, why_driver_mode;
why_finder why_in_use, why_locked;
why_finder why_elsewhere, why_not_registered;
why_finder why_affinity, why_zone, why_apart, why_topology, why_limit, why_no_node;
why_finder why_multi_attach, why_attach_failed, why_not_attached;
why_finder why_deferral;

#endif
