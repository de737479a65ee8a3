/*
 * cluster: what the cluster looks like now, and its two indexes: per node, how many pods on it
 * reference each claim; per claim, which pods name it. Exact after any sequence of events in any
 * order: a pod before its claim, a claim deleted and recreated, an event that arrives late.
 *
 * A claim or node that is only named (by a pod) has a record too, with exists false, so that it can
 * appear later without a search for the pods that wait for it.
 *
 * Ownership: the cluster owns every record; pointers into it are valid until the next change.
 * Threads: many readers or one writer; the owner locks (extender/state.h).
 * Scale: 500,000 pods; every lookup and change costs the same at any size.
 */
#ifndef CACHE_CLUSTER_CLUSTER_H
#define CACHE_CLUSTER_CLUSTER_H

#include "cache/cluster/refcount.h"
#include "cache/objects/objects.h"
#include "cache/store/uid.h"

#include "cache/store/uthash_config.h"

struct node {
    struct table_record record; /* by name */
    uint32_t listed;            /* the last list that named it: see struct listing */
    struct name *name;
    uint64_t version;
    uint32_t pods; /* assigned to it, finished ones too */
    bool exists;   /* a Node object was seen */
};

/* A pod's naming of a claim: part of the pod, and linked from the claim. */
struct use {
    struct claim *claim;
    struct use *next;  /* the claim's next one */
    struct use **link; /* what points here; NULL: the pod can be in nobody's way */
    uint16_t index;    /* in the pod's uses */
    bool is_ephemeral;
    bool is_deferred; /* the pod's runtime mounts it: deferFSMount */
};

struct claim {
    struct table_record record; /* by namespace and name */
    uint32_t refs;              /* pods that hold it, on all nodes */
    uint32_t named;             /* pods that name it, wherever they are */
    uint16_t name_len;
    uint8_t phase;    /* enum claim_phase */
    bool exists : 1;  /* a PersistentVolumeClaim was seen */
    bool is_rwop : 1; /* ReadWriteOncePod */
    bool is_deleting : 1;
    bool is_volume_provisioned : 1; /* its volume is pvc-<uid>, as provisioners name them */
    bool is_block : 1;              /* volumeMode */
    struct name *ns;
    struct name *storage_class;
    struct name *volume_attributes_class;
    struct name *volume;             /* spec.volumeName; NULL: none, or is_volume_provisioned */
    struct name *owner_uid;          /* of the Pod that controls it; NULL: none does */
    struct use *uses;                /* by the pods that hold it or are nominated to a node */
    struct reservation *reservation; /* NULL: none; see assumed.h */
    struct uid uid;
    uint64_t version;
    uint32_t deferred; /* how many of its uses are deferred */
    uint32_t sharers;  /* pods that are being bound, and do not want it for themselves alone */
    uint32_t listed;   /* as a node's */
    char name[];       /* name_len bytes */
};

enum claim_phase { CLAIM_PHASE_UNKNOWN, CLAIM_PENDING, CLAIM_BOUND, CLAIM_LOST };

enum { CREATED_BYTES = 20 }; /* of "2026-11-21T10:00:00Z", as the API server writes all times */

/* That a pod is nominated to a node. Apart from the pod: few are, and only then does its age count.
 */
struct nomination {
    struct name *node;           /* may be one that does not exist */
    char created[CREATED_BYTES]; /* the pod; all 0: not known */
};

enum { POD_LISTED_BITS = 24, POD_LISTED_MAX = (1 << POD_LISTED_BITS) - 1 };

struct pod {
    struct table_record record; /* by namespace and name */
    int32_t priority;
    uint16_t name_len;
    uint16_t use_count;
    bool is_terminal : 1;     /* Succeeded or Failed */
    bool is_terminating : 1;  /* has a deletionTimestamp */
    bool never_preempts : 1;  /* preemptionPolicy Never */
    bool has_mounts : 1;      /* while it is pending with a runtime class, and if it defers any */
    bool is_pending : 1;      /* its phase */
    bool has_no_priority : 1; /* it names a PriorityClass that is not known: 0 is assumed */
    uint32_t listed : POD_LISTED_BITS; /* as a node's; the last bits, which costs no memory */
    struct name *ns;
    struct node *node;             /* NULL: not assigned */
    struct nomination *nomination; /* NULL: none */
    struct name *labels;           /* of a pod with claims, which may become a victim; else NULL */
    struct uid uid;
    uint64_t version;
    struct use uses[]; /* use_count, then name_len bytes of the name, then kept_mounts */
};

/* A pod's mounts, and its place among the pods that defer any. */
struct kept_mounts {
    struct pod *next_deferring;
    struct pod **link; /* what points here; NULL: it defers none */
    struct pod_mounts mounts;
};

/* Any other kind: string attributes, by the enums of objects.h. */
struct resource {
    struct table_record record; /* by its key */
    uint32_t listed;            /* as a node's */
    struct resource_key {
        struct name *ns, *name;
    } key;
    struct name *attributes[RESOURCE_ATTRIBUTES];
    int64_t number;
    uint64_t version;
};

/* How many claims there are of one kind: KEP-3751 asks for these counts. */
struct claim_tally {
    struct table_record record; /* by its key */
    struct claim_tally_key {
        struct name *ns, *storage_class, *volume_attributes_class;
        uint64_t phase; /* enum claim_phase; wide, so that the key has no padding */
    } key;
    size_t count;
};

/* The list of a kind that is being read. A record belongs to it if its `listed` is the list's
 * number, so that a list begins without a walk through all records. */
struct listing {
    uint32_t number;
    uint64_t asked_ns; /* when it was asked for; 0: there is none, the watch goes on */
    bool overrides;    /* it counts, whatever is known */
    bool keeps_all;    /* it names an object that nobody knows: none is gone */
    bool is_whole;     /* cluster_list_end has begun */
    uint64_t swept;    /* as far as that has come: table_walk.at */
};

struct cluster {
    struct pool pool; /* where the tables and their records lie, so it stays where it is */
    struct names names;
    struct table pods;
    struct table claims;
    struct table nodes;
    struct table refs; /* per node and claim, by the pods on it that are not finished: refcount.h */
    struct table resources[KIND_COUNT]; /* the other kinds */
    struct table tallies;
    size_t counts[KIND_COUNT];        /* objects that exist, by kind */
    size_t violations;                /* exclusive claims that two or more pods hold */
    struct table reserved;            /* reservations, by their pods' UIDs: see assumed.h */
    struct reservation *reservations; /* utlist: the same, in the order in which they were made */
    struct reservation *ended_early;  /* not among them any more */
    size_t doubtful;                  /* reservations of pods whose Binding is in doubt */
    struct reservation *sharing;      /* those that share claims */
    struct unconfirmed *unconfirmed;  /* uthash; see unconfirmed.h */
    struct pod *deferring;            /* pods with deferred mounts: kept_mounts links them */
    struct listing lists[KIND_COUNT];
    bool keeps_all_mounts; /* of pending pods without a runtime class, too: for a dry run */
};

void cluster_init(struct cluster *cluster);
void cluster_dispose(struct cluster *cluster);

/*
 * The object is now as given (added or changed). What is older than what is known (by
 * resourceVersion) is ignored; an object without one always counts as news.
 * Errors: ERROR_NO_MEMORY, ERROR_TOO_BIG; the cluster is then as before.
 */
int cluster_apply(struct cluster *cluster, const struct object *object, struct error *err);

/* The object is gone. Only its meta is looked at; a late deletion of an earlier object of the same
 * name is ignored. */
void cluster_delete(struct cluster *cluster, const struct object *object);

/* Who is told of what a list has left out. */
struct gone_listener {
    void *context;
    /* Only the object's kind and meta are set. It is about to be removed. */
    void (*gone)(void *context, const struct object *object);
};

/*
 * A list of all objects of the kind is read between these two: each of its objects is applied, and
 * what it did not name is gone at its end, unless it is newer than the list's version. Until then
 * all that was known stays. Begin may come again before the end: the list starts anew. overrides:
 * the list is of another history (a restored backup): it counts even where something newer is
 * known. keep: the list names this object, and nobody can read what it says: it stays as it is
 * known; an empty name: nobody knows which one it is, so that none is gone. listener: is told of
 * each object that is gone; NULL: nobody is. asked_ns: when it was asked for: what it says counts
 * against answers that came before then (unconfirmed.h).
 *
 * The end comes in steps, so that nobody waits for the lock until all is gone: each looks at
 * some of the records and returns whether there are more; the caller gives the lock up
 * in between. Then others may do whatever they do at other times (binds, reservations, what a GET
 * said), but for another list or the watch of that kind. What is not looked at yet counts as
 * before: a claim that it holds is held. What comes in between stays, since it is newer than the
 * list.
 */
void cluster_list_begin(struct cluster *cluster, enum kind kind, bool overrides, uint64_t asked_ns);
void cluster_list_keep(struct cluster *cluster, enum kind kind, struct slice ns, struct slice name);
bool cluster_list_end(struct cluster *cluster, enum kind kind, uint64_t version,
                      const struct gone_listener *listener) MUST_USE;

/*
 * What a GET that was sent at asked_ns said of a pod or a claim, beside the watch, which has come
 * as far as version watched. What is no newer than that is ignored: the watch has told it, and
 * maybe that it is gone again. Unless it refutes an earlier answer, which no watch has confirmed.
 * Another object that was known by its name is gone, whatever the watch still says.
 */
int cluster_learn(struct cluster *cluster, const struct object *object, uint64_t watched,
                  uint64_t asked_ns, struct error *err);

/* A GET found that the pod or claim of that UID is gone: so it is, whatever the watch still says.
 * The answer came at now_ns. */
void cluster_learn_gone(struct cluster *cluster, const struct object_reference *gone,
                        uint64_t now_ns);

/* The API server answered at now_ns that it has bound the pod: as cluster_assign, whatever the
 * watch still says. */
int cluster_learn_bound(struct cluster *cluster, struct pod *pod, struct slice node,
                        uint64_t now_ns, struct error *err);

/* An answer of this kind that no watch has confirmed for too long: the object is to be asked about
 * again. Put in front of the list; false: there is none, or the arena is full. */
bool cluster_next_doubt(struct cluster *cluster, uint64_t now_ns, struct kept_reference **out,
                        struct arena *arena);

/* Whether an answer said that the object is gone, and nothing has said otherwise since. */
bool cluster_believes_gone(const struct cluster *cluster, struct slice uid);

/* Assigns the pod to the node, which may be one that is only named; ends its reservation. */
int cluster_assign(struct cluster *cluster, struct pod *pod, struct slice node, struct error *err);

/* What exists under that name, or NULL. */
const struct claim *cluster_find_claim(const struct cluster *cluster, struct slice ns,
                                       struct slice name);
struct pod *cluster_find_pod(const struct cluster *cluster, struct slice ns, struct slice name);
const struct node *cluster_find_node(const struct cluster *cluster, struct slice name);

/* The volume that a claim is bound to; NULL: to none, or to one that is not known (yet). */
const struct resource *cluster_find_volume(const struct cluster *cluster,
                                           const struct claim *claim);

/* The pod's volume of that name is deferred from now on: it was written so. */
void cluster_defer(struct cluster *cluster, struct pod *pod, struct slice volume);

/* How many of the pods break a PodDisruptionBudget if they are evicted in this order, as
 * kube-scheduler counts them: a budget that allows n evictions is broken from the n+1st on, and a
 * pod in its disruptedPods is not counted again; an empty selector matches nothing, and a pod
 * without labels matches none. All of them, if their namespace's budgets are too long to look at.
 */
size_t cluster_count_budget_violations(const struct cluster *cluster, const struct pod *const *pods,
                                       size_t count);

/* Whether the API server, which would evict each of these pods by itself, would not evict all of
 * them: of a budget that allows some, they take more. It asks no budget about a pod that is pending
 * or terminating. One that allows none is not looked at: the API server has refused each pod that
 * it counts. True, too, if the budgets are too long to look at. */
bool cluster_breaks_budgets(const struct cluster *cluster, const struct pod *const *pods,
                            size_t count);

/* The pod as a decoded object that borrows from it, mounts and all. Ownership: out->claims lies in
 * the arena; false when that is full. */
bool cluster_describe_pod(const struct pod *pod, struct arena *arena, struct pod_object *out);

/* A pod of a request, with the field deferFSMount of the volumes of which the cluster knows that
 * its pod of that UID has it: a scheduler that is older than the field drops it. It costs a lookup
 * where any pod defers. False when the arena is full. */
bool cluster_complete_pod(const struct cluster *cluster, struct pod_object *pod,
                          struct arena *arena);

/* The records one by one: see table_next. Claims and nodes that are only named, too. */
static inline struct pod *cluster_next_pod(const struct cluster *cluster, struct table_walk *walk)
{
    return (struct pod *)(void *)table_next(&cluster->pods, walk);
}

static inline struct claim *cluster_next_claim(const struct cluster *cluster,
                                               struct table_walk *walk)
{
    return (struct claim *)(void *)table_next(&cluster->claims, walk);
}

static inline struct node *cluster_next_node(const struct cluster *cluster, struct table_walk *walk)
{
    return (struct node *)(void *)table_next(&cluster->nodes, walk);
}

static inline struct resource *cluster_next_resource(const struct cluster *cluster, enum kind kind,
                                                     struct table_walk *walk)
{
    return (struct resource *)(void *)table_next(&cluster->resources[kind], walk);
}

static inline const struct refcount *cluster_next_refcount(const struct cluster *cluster,
                                                           struct table_walk *walk)
{
    return (const struct refcount *)(void *)table_next(&cluster->refs, walk);
}

static inline struct claim_tally *cluster_next_tally(const struct cluster *cluster,
                                                     struct table_walk *walk)
{
    return (struct claim_tally *)(void *)table_next(&cluster->tallies, walk);
}

/* Whether the pod takes up the claims that it names: assigned, and not finished. A terminating pod
 * holds until it is gone (KEP-2485; NodeInfo counts it too). */
static inline bool pod_holds(const struct pod *pod)
{
    return pod->node != NULL && !pod->is_terminal;
}

/* Whether it is exclusive, and two or more pods hold it. */
static inline bool claim_is_violated(const struct claim *claim)
{
    return claim->exists && claim->is_rwop && claim->refs > 1;
}

static inline const struct pod *use_pod(const struct use *use)
{
    const struct use *first = use - use->index;
    return (const struct pod *)(const void *)((const char *)first - offsetof(struct pod, uses));
}

static inline struct slice pod_name(const struct pod *pod)
{
    return (struct slice){(const char *)&pod->uses[pod->use_count], pod->name_len};
}

/* NULL: they are not kept. */
static inline struct kept_mounts *pod_kept_mounts(const struct pod *pod)
{
    uintptr_t end = (uintptr_t)&pod->uses[pod->use_count] + pod->name_len;

    return pod->has_mounts ? (struct kept_mounts *)((end + 7) & ~(uintptr_t)7) : NULL;
}

static inline struct pod_mounts *pod_mounts(const struct pod *pod)
{
    return pod->has_mounts ? &pod_kept_mounts(pod)->mounts : NULL;
}

/* Whether a volume of it is deferred: its runtime mounts it. */
static inline bool pod_defers(const struct pod *pod)
{
    return pod->has_mounts && pod_kept_mounts(pod)->link != NULL;
}

static inline struct slice pod_nominated_node(const struct pod *pod)
{
    return name_slice(pod->nomination == NULL ? NULL : pod->nomination->node);
}

/* When a nominated pod was created; empty: that is not known, or the pod is not nominated. */
static inline struct slice pod_created(const struct pod *pod)
{
    const struct nomination *nomination = pod->nomination;

    return nomination == NULL || nomination->created[0] == '\0'
               ? (struct slice){"", 0}
               : (struct slice){nomination->created, CREATED_BYTES};
}

static inline struct slice claim_name(const struct claim *claim)
{
    return (struct slice){claim->name, claim->name_len};
}

static inline struct slice pod_node(const struct pod *pod)
{
    return name_slice(pod->node == NULL ? NULL : pod->node->name);
}

#endif
