/* why_internal: what the files why*.c share. Only they include it. */
#ifndef EXTENDER_COMMANDS_WHY_WHY_INTERNAL_H
#define EXTENDER_COMMANDS_WHY_WHY_INTERNAL_H

#include "extender/commands/inquiry/places.h"
#include "extender/commands/who/who_claim.h"
#include "extender/commands/why/why.h"
#include "extender/commands/why/why_causes.h"
#include "policy/policy.h"
#include "policy/volume.h"

enum {
    WHY_CAUSE_WORDS = 40,    /* causes in the table, at most */
    WHY_NAMES_SHOWN_MAX = 5, /* of nodes, in a text */
    WHY_EVENTS_SHOWN_MAX = 3,
    WHY_POD_BYTES_MAX = 512 << 20
};

/* What is read of a pod that has a node, which the cluster does not store. */
struct why_mounts {
    struct why_mounts *next;
    struct slice ns, name;
    const struct pod_mounts *mounts;
};

/* An Event of a pod or claim. */
struct why_event {
    struct slice kind, ns, name, uid; /* of the object */
    struct slice reason, message;
    struct slice last; /* when it was seen last; empty: not known */
    int64_t count;     /* how often; 0: not known */
};

/* What is known of an operand that is no pod. */
struct why_owner {
    const struct operand *operand;
    size_t pods, waiting;      /* that have not ended; of these, those that wait */
    struct pull_items undoers; /* struct slice: who would undo what is changed there */
    struct slice state;        /* of one without pods, or of a node that is lost; or empty */
    struct advice_list helps;
    bool exists;
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
    const struct placed_node *placed; /* NULL: of a pod that has its node */
    const struct node *node;
    struct slice name, labels;
    const char *out_by; /* the word of the first cause that rejects it; NULL: none */
    bool is_unread;     /* its labels are not known: no cause rejects it by them */
};

/* What is found out once, for all pods of an answer. */
struct why_shared {
    struct places places;
};

/* A claim that the pod names, and its volume. */
struct why_claim {
    struct who_claim who; /* without this pod as a holder */
    const struct use *use;
    const struct resource *volume;               /* NULL: none that is known */
    const struct volume_details *volume_details; /* all zero: not known */
    bool is_bound;                               /* it names a volume */
    struct volume_terms terms;
    bool *fits; /* by node: its volume can be used there; NULL: on each */
};

/* A cause, and what would help. */
struct why_cause {
    const char *word;
    enum why_effect effect;
    struct object_reference object; /* what it is about */
    struct object_reference root;   /* by what it is put together with those of other pods */
    struct slice text;
    size_t rejected_nodes; /* 0: it is not about nodes */
    struct slice where;    /* what a node has that passes; empty: it is not about that */
    bool needs_room;       /* there is one: why_help_room */
    struct advice_list helps;
};

/* Nodes with the same first cause that rejects them. */
struct why_out {
    const char *word; /* of the cause */
    size_t nodes;
};

/* The nodes that no cause rejects, and those that one does, of a pod without a node. */
struct why_left {
    size_t total, left;
    size_t closed;                           /* of those that are left: cordoned, or not ready */
    struct slice names[WHY_NAMES_SHOWN_MAX]; /* the first ones that are left */
    struct why_out out[WHY_CAUSE_WORDS];     /* by the most nodes */
    size_t out_count;
};

/* One pod, and the causes so far. */
struct why_pod {
    const struct inquiry *inquiry;
    struct view view;
    const struct pod *pod;
    struct pod_object object; /* as verdicts want it */
    struct who_pod who;
    enum why_stage stage;
    struct why_cause *causes;
    size_t cause_count;
    const struct why_event *events[WHY_EVENTS_SHOWN_MAX]; /* that say more; the last one first */
    size_t event_count;
    struct why_left left;
    struct advice_list looks; /* of one without a cause: what says more */
    bool is_complete;         /* the input has all that causes are found by */
    bool are_apart;           /* two of its volumes have no node in common */
    bool lacks_driver;        /* it was said that nodes lack the driver of its volume */
    bool is_hopeless;         /* a claim can never be its own: nothing else of it matters */
    bool has_failed;          /* there was no memory */
    struct arena *texts;      /* of all that is above, and of causes */

    /* Only while causes are looked for: */
    struct why_shared *shared;
    struct why_claim *claims;
    size_t claim_count;
    struct why_node *nodes; /* by name: those that exist; of a pod that has one, only that */
    size_t node_count;
    bool has_labels;  /* a node has labels: they are known */
    const char *word; /* of the cause that is looked for */
    struct arena *arena;
};

/* What the answer may lack. */
struct why_notes {
    bool is_of_namespace;        /* pods of other namespaces are not read */
    bool lacks_pods;             /* and one that waits for a node has claims */
    bool lacks_labels;           /* of nodes, which a volume's nodeAffinity reads */
    bool names_attributes_class; /* a claim names a VolumeAttributesClass */
    bool has_scheduling;         /* a pod without a node */
    bool has_csi;                /* a volume of a CSI driver, or of one that is not known */
    bool has_attachable;         /* one that a node may have */
    bool has_starting;           /* a pod whose volumes may not be mounted yet */
    bool lacks_capacities;       /* a pod that waits for a node needs a new volume, of a driver
                                    with CSIStorageCapacities, and there are none */
};

struct why {
    const struct why_question *question;

    /* while a cluster is read */
    struct why_mounts *mounts;
    struct pull_items events; /* struct why_event: warnings of pods and claims */
    bool has_events;          /* the input has Events */
    struct arena event_texts; /* of these; when it is full, the others are not kept */
    bool has_no_memory;
    struct arena reading; /* of what is read */

    /* the answer */
    struct why_pod *pods; /* by name */
    size_t pod_count;
    struct why_owner *owners; /* by operand; those of pods are empty */
    struct why_shared shared;
    struct why_notes notes;
    struct gaps gaps;   /* what the input lacks */
    struct arena texts; /* of all this */
};

/* Finds the pods that are asked about, by name, and fills in why->owners. *out is in why->texts.
 * False: no memory. */
bool why_select(struct why *why, const struct inquiry *inquiry, const struct config *config,
                const struct pod ***out, size_t *count);

/* Fills in claims, nodes and the stage; out has what is before them. False: no memory. */
bool why_gather(struct why_pod *out, const struct who_index *index,
                const struct why_mounts *mounts);

/* The cause to look at first: one that blocks, else one that narrows; NULL: none. */
const struct why_cause *why_first_cause(const struct why_pod *pod);

/* Whether an object of that kind that is not in the input does not exist. */
static inline bool why_knows(const struct why_pod *pod, enum kind kind)
{
    return inquiry_knows(pod->inquiry, kind);
}

/* Whether a pod of that namespace may be asked about. */
bool why_asks_namespace(const struct why *why, struct slice ns);

/* ---- why_events.c ---- */

/* Keeps the Event, if it may matter, and there is room. */
void why_take_event(struct why *why, struct slice text);

/* After all are taken. */
void why_sort_events(struct why *why);

/* Fills in pod->events: those that say more than the causes, which are known. */
void why_find_events(const struct why *why, struct why_pod *pod);

void why_put_events(struct fields *out, const struct why_pod *pod);
void why_add_events(struct block *block, const struct why_pod *pod);

/* ---- causes: why_gather.c ---- */

/* Adds a cause: what it is about, and its text. */
void why_add(struct why_pod *pod, enum why_effect effect, struct object_reference object,
             const char *format, ...) PRINTF_LIKE(4, 5);

/* The same of a text in an arena; {NULL, 0}: there was no memory for it. */
void why_add_text(struct why_pod *pod, enum why_effect effect, struct object_reference object,
                  struct slice text);

/* What the last cause is put together by, instead of its object. */
void why_root(struct why_pod *pod, struct object_reference root);

/* Adds a cause that rejects the nodes with these flags, unless there are none; NULL: no memory. One
 * that narrows blocks the pod if it rejects all nodes. Whether it was added. */
bool why_add_nodes(struct why_pod *pod, enum why_effect effect, const bool *rejected,
                   struct object_reference object, const char *format, ...) PRINTF_LIKE(5, 6);

/* Adds to causes that need room where the pod could run, when all causes are known. */
void why_help_room(struct why_pod *pod);

/* Adds to the last cause what would help. */
void why_help(struct why_pod *pod, const char *format, ...) PRINTF_LIKE(2, 3);
void why_help_all(struct why_pod *pod, struct advice_list helps);

/* The last help is of that row. */
void why_command(struct why_pod *pod, enum advice_row row, const struct advice_words *words);

/* How many nodes have a flag that is `wanted`. */
size_t why_count_nodes(const struct why_pod *pod, const bool *flags, bool wanted);

/* "node-1, node-2 and 7 more": nodes whose flag is `wanted`. {NULL, 0}: no memory. */
struct slice why_node_names(const struct why_pod *pod, const bool *flags, bool wanted);

/* A flag for each node, all false; NULL: no memory. */
bool *why_flags(struct why_pod *pod);

/* ", which does not answer"; nothing of a node that is ready. */
const char *why_node_state(enum node_state state);

/* The first of a node's taints that a user has set, and that keeps pods away; NULL: none. */
const struct taint *why_find_user_taint(const struct pull_items *taints);

/* Reads what is known of a node. False: nothing. */
bool why_node_details(struct why_pod *pod, struct slice node, struct node_details *out);

/* The driver is not registered on these nodes: what would help. */
void why_help_driver(struct why_pod *pod, struct slice driver, const bool *nodes);

/* Whether the pod's nodeSelector and nodeAffinity allow the node, or its labels are not known. */
bool why_is_wanted(const struct why_pod *pod, const struct why_node *node);

/* References to what causes are about. */
struct object_reference why_claim_reference(const struct why_claim *claim);
struct object_reference why_volume_reference(const struct why_claim *claim);
struct object_reference why_pod_reference(const struct why_pod *pod);

/* The arguments of "%.*s/%.*s"; no macro in a macro, which cppcheck cannot expand. */
#define CLAIM_ARG(claim_) \
    (int)name_text((claim_)->who.claim->ns).len, name_text((claim_)->who.claim->ns).ptr, \
        (int)claim_name((claim_)->who.claim).len, claim_name((claim_)->who.claim).ptr

/* The finders: each adds the causes that it finds. */
#define OF_POD(find, word, stages)   void find(struct why_pod *pod);
#define OF_CLAIM(find, word, stages) void find(struct why_pod *pod, const struct why_claim *claim);
WHY_CAUSES(OF_POD, OF_CLAIM)
#undef OF_POD
#undef OF_CLAIM

#endif
