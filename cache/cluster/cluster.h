/*
 * cluster: what the cluster looks like now, with two indexes: for each node, how many pods on it
 * use each claim (refcount.h, as KEP-2485 describes); for each claim, which pods use it. The
 * indexes are exact after any sequence of events in any order: a pod before its claim, a claim
 * deleted and recreated, an event that arrives late.
 *
 * A claim or node that is only named by a pod also has a record, with exists false. When the object
 * appears, no search for the pods that use it is needed. The record of a node also has its CSINode,
 * which may come first, or stay longer.
 *
 * Ownership: the cluster owns every record; pointers into it are valid until the next change.
 * Threads: many readers or one writer; the owner locks (extender/serving/state.h).
 * Scale: 500,000 pods. A lookup or a change costs the same at any size.
 */
#ifndef CACHE_CLUSTER_CLUSTER_H
#define CACHE_CLUSTER_CLUSTER_H

#include "cache/cluster/records.h"
#include "cache/cluster/refcount.h"
#include "cache/objects/objects.h"

#include "cache/store/shares.h"
#include "cache/store/uthash_config.h"

/* The list of a kind that is being read. It names a record if the record's `listed` has the last
 * bits of the list's number, so no walk through all records is needed when a list begins. */
struct listing {
    uint32_t number;
    uint64_t asked_ns; /* when it was requested; 0: no list is being read */
    bool overrides;    /* it counts even against newer objects */
    bool keeps_all;    /* it names an object that could not be identified: remove none */
    bool is_whole;     /* cluster_list_end has begun */
    uint64_t swept;    /* how far cluster_list_end has come: table_walk.at */
    bool is_open;      /* from cluster_list_begin to cluster_list_ended */
    uint32_t complete; /* lists that have ended so far: the last one has that number */
    struct listing_end {
        uint64_t ns, version;
    } ends[LIST_EPOCHS]; /* of the last lists: by their numbers, modulo */
};

/* What namespaces may take: allowance.h. All zero: as much as there is; for a command, which reads
 * a snapshot. */
struct allowance_limits {
    size_t free_bytes; /* of an object, which do not count */
    size_t namespace_bytes, total_bytes;
};

struct cluster {
    struct pool pool; /* memory of the tables and their records; they point to it: do not move it */
    struct names names;
    struct table pods;
    struct table claims;
    struct table nodes;
    struct table refs; /* how many unfinished pods on a node use a shared claim: refcount.h */
    struct table resources[KIND_COUNT]; /* the other kinds; a CSINode is in its node's record */
    struct table shapes;                /* of these: struct resource_shape */
    struct resource_shape *offers;      /* those of volumes with a volume_offer, linked */
    struct table tallies;
    struct table drivers;             /* how many nodes have a CSI driver */
    size_t bare_nodes;                /* nodes without a CSINode */
    size_t counts[KIND_COUNT];        /* objects that exist, by kind */
    size_t violations;                /* exclusive claims that two or more pods hold */
    struct table reserved;            /* reservations, by their pods' UIDs: reservation.h */
    struct reservation *reservations; /* the same, in the order in which they were made (utlist) */
    struct reservation *in_doubt;     /* not among these; in the order in which they came here */
    struct reservation *ended_early;  /* no longer among these */
    size_t doubtful;                  /* reservations whose Binding was not answered */
    size_t creations, creation_bytes; /* reservations of pods that are being created */
    struct {
        uint32_t count, bytes;
    } creations_in[SHARES];          /* the same, by share_of a namespace */
    uint32_t reserved_in[SHARES];    /* the other reservations, the same */
    struct reservation *sharing;     /* reservations with shared claims (utlist) */
    struct unconfirmed *unconfirmed; /* uthash: unconfirmed.h */
    struct nomination *nominations;  /* that may lapse, in the order of due_ns (utlist) */
    struct pod *deferring;           /* pods with deferred mounts, linked by kept_mounts */
    struct table allowances;         /* namespaces whose objects take much: allowance.h */
    size_t charged_bytes;            /* of all of them */
    unsigned namespaces_given_up;    /* those that are given up */
    bool are_over;                   /* one of them, or all together: since allowance_keep */
    struct allowance_limits allowance_limits;
    struct listing lists[KIND_COUNT];
    uint64_t pods_seen;           /* the watch of pods has reported all up to that version */
    bool is_unserved[KIND_COUNT]; /* the API server does not serve the kind, so that an object
                                     which is not here may exist */
    bool keeps_all_mounts;        /* store the mounts of all pending pods: dry run */
};

void cluster_init(struct cluster *cluster);
void cluster_dispose(struct cluster *cluster);

/*
 * Adds or replaces the object. An object with an older resourceVersion than the known one is
 * ignored; an object without a resourceVersion always counts.
 * Errors: ERROR_NO_MEMORY, ERROR_TOO_BIG; the cluster is unchanged.
 */
int cluster_apply(struct cluster *cluster, const struct object *object, struct error *err);

/* Removes the object, which is identified by its kind and meta. A late deletion of an earlier
 * object with the same name is ignored. */
void cluster_delete(struct cluster *cluster, const struct object *object);

/* Called for each object that is removed because a list did not name it. */
struct gone_listener {
    void *context;
    /* Only the object's kind and meta are set. It is removed after this call. */
    void (*gone)(void *context, const struct object *object);
};

/*
 * A list of all objects of a kind replaces what was known:
 *
 *   cluster_list_begin   a list begins. It may begin again before its end. asked_ns: when it was
 *                        requested; it overrides answers from before that (unconfirmed.h).
 *                        overrides: the list is from another history (a restored backup), so it
 *                        counts even against newer objects.
 *   cluster_apply        for each object of the list
 *   cluster_list_keep    for each object of the list that cannot be decoded: it stays as it was.
 *                        With an empty name the object is unknown, so none is removed at the end.
 *   cluster_list_end     removes what the list did not name and what is not newer than version.
 *                        Until then all objects stay. listener may be NULL.
 *
 * The end takes several calls, so that no thread waits long for the lock: each call checks some
 * records and returns whether more are left; the caller releases the lock between calls. Meanwhile
 * binds, reservations and answers to GETs may change the cluster, but no other list and no watch of
 * this kind. A record that is not checked yet still counts, so a claim that it holds is held.
 * Objects that are added meanwhile stay, because they are newer than the list.
 */
void cluster_list_begin(struct cluster *cluster, enum kind kind, bool overrides, uint64_t asked_ns);
void cluster_list_keep(struct cluster *cluster, enum kind kind, struct slice ns, struct slice name);
bool cluster_list_end(struct cluster *cluster, enum kind kind, uint64_t version,
                      const struct gone_listener *listener) MUST_USE;

/* After the last step, for claim_may_have_former. */
void cluster_list_ended(struct cluster *cluster, enum kind kind, uint64_t version, uint64_t now_ns);

/*
 * Applies the answer to a GET for a pod or a claim. The GET was sent at asked_ns; `watched` is the
 * last version that the watch has reported. An object that is not newer than that is ignored: the
 * watch has reported it, and perhaps its deletion. It counts anyway if it contradicts an
 * unconfirmed answer from before asked_ns. If another object was known by the same name, that one
 * is gone, even if the watch still reports it.
 */
int cluster_learn(struct cluster *cluster, const struct object *object, uint64_t watched,
                  uint64_t asked_ns, struct error *err);

/* Removes a pod or claim: a GET has answered at now_ns that it is gone. This counts even if the
 * watch, which is late, still reports the object. */
void cluster_learn_gone(struct cluster *cluster, const struct object_reference *gone,
                        uint64_t now_ns);

/* As cluster_assign: the API server has answered at now_ns that it has bound the pod. This counts
 * even if the watch, which is late, still reports the pod without a node. */
int cluster_learn_bound(struct cluster *cluster, struct pod *pod, struct slice node,
                        uint64_t now_ns, struct error *err);

/* Finds an object whose GET must be repeated, because no watch has confirmed the last answer
 * (cluster_learn_gone, cluster_learn_bound) for too long. Adds the object to the front of *out.
 * False: there is none, or the arena is full. */
bool cluster_next_unconfirmed(struct cluster *cluster, uint64_t now_ns, struct kept_reference **out,
                              struct arena *arena);

/* Whether an answer said that the object is gone, and no newer list or GET has named it since. */
bool cluster_is_known_gone(const struct cluster *cluster, struct slice uid);

/* Assigns the pod to the node, which may be unknown yet, and ends its reservation. */
int cluster_assign(struct cluster *cluster, struct pod *pod, struct slice node, struct error *err);

/* What exists under that name, or NULL. */
const struct claim *cluster_find_claim(const struct cluster *cluster, struct slice ns,
                                       struct slice name);
/* The same, also if there is no such claim, and pods name it. */
struct claim *cluster_find_named_claim(const struct cluster *cluster, struct slice ns,
                                       struct slice name);
struct pod *cluster_find_pod(const struct cluster *cluster, struct slice ns, struct slice name);

/* Whether an earlier claim of that name may have been with another pod since since_ns, without our
 * knowledge: the claim was new in a list that ended after that, or is being read. Such a pod names
 * this claim, too, and is known after the first list, since pods are listed after claims; and after
 * a later one, when the watch of pods has reported all up to its version. */
bool claim_may_have_former(const struct cluster *cluster, const struct claim *claim,
                           const struct object_reference *pod, uint64_t since_ns);

/* Whether other pods than this one name the claim. */
bool claim_is_named_by_others(const struct cluster *cluster, const struct claim *claim,
                              const struct object_reference *pod);

/* NULL also if the pod of that name has another UID. */
struct pod *cluster_find_same_pod(const struct cluster *cluster,
                                  const struct object_reference *reference);

/* The pod by its record. Ownership: borrows from the record, and from uid. */
struct object_reference pod_reference(const struct pod *pod, char uid[UID_TEXT_BYTES]);

const struct node *cluster_find_node(const struct cluster *cluster, struct slice name);

/* The CSINode of that name, whether its node exists or not; NULL: there is none. */
const struct csi_node *cluster_find_csi_node(const struct cluster *cluster, struct slice name);

/* A resource of another kind without namespaces; NULL: it does not exist. */
const struct resource *cluster_find_resource(const struct cluster *cluster, enum kind kind,
                                             struct slice name);

/* On how many nodes a CSI driver is registered: nodes that exist and whose CSINode lists it. */
uint32_t cluster_count_driver_nodes(const struct cluster *cluster, struct slice driver);

/* The volume that a claim is bound to; NULL: it is not bound, or the volume is not known. */
const struct resource *cluster_find_volume(const struct cluster *cluster,
                                           const struct claim *claim);

/* The pod's volume of that name is deferred from now on: the annotation was written. */
void cluster_defer(struct cluster *cluster, struct pod *pod, struct slice volume);

/* The opposite: claimguard has removed the annotation of a pod that is not bound yet. */
void cluster_undefer(struct pod *pod, struct slice volume);

/* How many of the pods violate a PodDisruptionBudget if they are evicted in this order, counted as
 * kube-scheduler does (filterPodsWithPDBViolation): a budget that allows n evictions is violated
 * from the n+1st on; a pod in its disruptedPods is not counted again; an empty selector matches
 * nothing, and no selector matches a pod without labels. All pods count as violations if reading
 * the budgets would take too long. */
size_t cluster_count_budget_violations(const struct cluster *cluster, const struct pod *const *pods,
                                       size_t count);

/* Whether the API server would refuse some of these evictions, although it would allow each one
 * alone: a budget allows some of them, but not all. Pending and terminating pods do not count, as
 * in the API server. A budget that allows none is ignored, because the API server has refused each
 * of its pods already. Also true if reading the budgets would take too long. */
bool cluster_breaks_budgets(const struct cluster *cluster, const struct pod *const *pods,
                            size_t count);

/* The priority of a pod that no API server has admitted: a manifest, or a snapshot that was written
 * by hand. */
struct priority_class {
    int32_t value;
    bool never_preempts;
};

/*
 * As the API server's admission plugin Priority: looks for a class of the cluster, then for the two
 * that every API server has. An empty name means the global default: of several, the one with the
 * lowest value; without one, *out is 0. False: no class has that name; *out is 0.
 */
bool priority_class_find(const struct cluster *cluster, struct slice name,
                         struct priority_class *out);

/* The pod as a decoded object. Ownership: its strings and mounts are the pod's, out->claims lies in
 * the arena. False: the arena is full. */
bool cluster_describe_pod(const struct pod *pod, struct arena *arena, struct pod_object *out);

/* Restores the field deferFSMount on the volumes of a request's pod, if the cluster's pod with the
 * same UID has it: a scheduler that is older than the field drops it. It costs one lookup, and only
 * if any pod defers a mount. False: the arena is full. */
bool cluster_complete_pod(const struct cluster *cluster, struct pod_object *pod,
                          struct arena *arena);

/* The records one by one, as table_next; including claims and nodes that do not exist. */
static inline struct pod *cluster_next_pod(const struct cluster *cluster, struct table_walk *walk)
{
    return table_next(&cluster->pods, walk);
}

static inline struct claim *cluster_next_claim(const struct cluster *cluster,
                                               struct table_walk *walk)
{
    return table_next(&cluster->claims, walk);
}

static inline struct node *cluster_next_node(const struct cluster *cluster, struct table_walk *walk)
{
    return table_next(&cluster->nodes, walk);
}

static inline struct resource *cluster_next_resource(const struct cluster *cluster, enum kind kind,
                                                     struct table_walk *walk)
{
    return table_next(&cluster->resources[kind], walk);
}

/*
 * ---- until when a nomination counts ----
 *
 * A pod that is nominated to a node holds its claims against others. Nobody may ever clear a
 * nomination: its scheduler has ended, its PATCH has failed, or somebody else has made it. So one
 * counts while other pods hold the pod's claims, as the victims of its preemption do, and for a
 * minute after these are free: within this time its scheduler tries the pod again, and it passes,
 * which reserves the claims.
 *
 * Each nomination is checked every NOMINATED_CHECK_MS, and lapses at the check number
 * NOMINATED_CHECKS in a row that finds the claims free. A nomination to another node is a new one.
 */
enum { NOMINATED_CHECK_MS = 10000, NOMINATED_CHECKS = 6 };

/* Whether the pod is nominated, to a node that takes pods, and that counts. */
bool cluster_nomination_counts(const struct cluster *cluster, const struct pod *pod);

/* Whether nominated_check has something to do at now_ns, of monotonic_ns. */
bool nominated_is_due(const struct cluster *cluster, uint64_t now_ns);

/* Checks a nomination that is due; returns its pod if it has lapsed and the pod still waits, else
 * NULL. Nothing is due: NULL. */
const struct pod *nominated_check(struct cluster *cluster, uint64_t now_ns);

#endif
