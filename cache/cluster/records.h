/*
 * records: what the cluster stores about each object, in the least memory: there are 500,000 pods.
 *
 * Ownership: the cluster owns the records, and their names; see cluster.h. Threads: as the cluster.
 */
#ifndef CACHE_CLUSTER_RECORDS_H
#define CACHE_CLUSTER_RECORDS_H

#include "cache/objects/objects.h"
#include "cache/store/names.h"

struct reservation;

/* The last bits of the number of a list: struct listing. */
enum {
    LISTED_BITS = 24,
    LISTED_MAX = (1 << LISTED_BITS) - 1,
    LIST_EPOCH_BITS = 2,
    LIST_EPOCHS = (1 << LIST_EPOCH_BITS) - 1
};

/* A CSINode, by its node's name. Separate from struct node, because there are none when no policy
 * reads them. */
struct csi_node {
    struct name *drivers; /* CSI_NODE_DRIVERS */
    uint64_t version;
    struct uid owner; /* of the Node that owns it; none: not known */
};

/* A verdict reads the first 32 bytes of thousands of nodes: they are in one line of the CPU's
 * cache. */
struct node {
    struct table_record record; /* by name */
    bool exists : 1;            /* a Node object was seen */
    bool has_csi_node : 1;      /* a CSINode that is its own */
    bool is_not_ready : 1;
    bool is_unschedulable : 1;
    uint32_t csi_node_listed : LISTED_BITS; /* the last list that named the CSINode */
    struct name *name;
    struct name *drivers;      /* of its own CSINode: CSI_NODE_DRIVERS */
    struct csi_node *csi_node; /* with its name, perhaps of an earlier node; NULL: none */
    uint64_t version;
    struct uid uid;
    uint32_t pods;   /* assigned to it, including finished ones */
    uint32_t listed; /* the last list that named it: struct listing */
};

SPACE_REF(node);
SPACE_REF(pod);
SPACE_REF(use);
SPACE_REF(claim);
SPACE_REF(claim_tally);
SPACE_REF(claim_rare);
SPACE_REF(nomination);
SPACE_REF(reservation);
SPACE_REF(resource_shape);

/* A pod uses a claim: part of the pod's record, linked from the claim's. */
struct use {
    struct claim_ref claim;
    struct use_ref next, former; /* of the same claim */
    uint16_t index;              /* in the pod's uses */
    bool is_ephemeral : 1;
    bool is_deferred : 1; /* the pod's container runtime mounts it: deferFSMount */
    bool is_linked : 1;   /* else the pod cannot conflict with others */
};

/*
 * A claim's record is one block of memory:
 *
 *     | 70 bytes | name, name_len bytes |
 */
struct claim {
    struct table_record record; /* by namespace and name */
    uint32_t refs;              /* pods that hold it, on all nodes */
    uint32_t named;             /* pods and reservations that name it */
    struct name_ref ns;
    struct claim_tally_ref tally;       /* its classes and its phase; none: it does not exist */
    struct claim_rare_ref rare;         /* what few claims have; none: it has nothing of that */
    struct use_ref uses;                /* by pods that hold it or are nominated to a node */
    struct reservation_ref reservation; /* the exclusive one (reservation.h), or none */
    uint64_t version;
    struct uid uid;
    uint32_t deferred;             /* how many of its uses are deferred */
    uint32_t sharers;              /* pods that are being bound and share it with others */
    uint32_t listed : LISTED_BITS; /* as in struct pod */
    bool exists : 1;               /* a PersistentVolumeClaim was seen */
    bool is_rwop : 1;              /* ReadWriteOncePod */
    bool is_deleting : 1;
    bool is_ahead : 1; /* only GETs have reported it: the watch may still report what was before */
    bool is_volume_provisioned : 1; /* its volume is pvc-<uid>, as external-provisioner names it */
    bool is_block : 1;              /* volumeMode Block */
    unsigned epoch : LIST_EPOCH_BITS; /* of the list that brought it as a new one; 0: the watch did.
                                         struct listing */
    uint16_t name_len;
    char name[];
};

enum { CLAIM_BYTES = offsetof(struct claim, name) };

_Static_assert(CLAIM_BYTES == 70 && sizeof(struct use) == 16, "there are hundreds of thousands");

/* How far a claim is from its VolumeAttributesClass: KEP-3751, status.modifyVolumeStatus. */
struct modification {
    struct name *current, *target, *status; /* NULL: not set */
};

/* What few claims have. */
struct claim_rare {
    struct name *volume; /* spec.volumeName, unless is_volume_provisioned; NULL: none */
    struct name *owner_name, *owner_uid; /* of the Pod that controls it; NULL: none */
    struct name *selector; /* of an unbound claim: as in label_selector.h; NULL: none */
    int64_t requested;     /* of an unbound claim: bytes of storage */
    uint8_t access_modes;  /* of an unbound claim: enum access_mode */
    bool is_modified;      /* else its VolumeAttributesClass is in force */
    struct modification modification;
};

enum claim_phase { CLAIM_PHASE_UNKNOWN, CLAIM_PENDING, CLAIM_BOUND, CLAIM_LOST };

enum { CREATED_BYTES = 20 }; /* "2026-11-21T10:00:00Z", as the API server writes all times */

struct pod;

/* The node that a pod is nominated to. A separate record, because few pods are nominated, and only
 * their age matters. */
struct nomination {
    struct name *node;           /* may not exist */
    char created[CREATED_BYTES]; /* when the pod was created; all 0: not known */
    bool has_lapsed;             /* it counts no more: cluster.h; so do the others: */
    bool is_checked;             /* it is in cluster.nominations */
    uint8_t free_checks;         /* in a row that found the claims free */
    uint64_t due_ns;             /* the next check; 0: there was none */
    struct pod *pod;
    struct nomination *prev, *next;
};

/*
 * A pod's record has four parts in one block of memory:
 *
 *     | 56 bytes | uses[use_count], 16 each | name, name_len bytes | struct kept_mounts, if any |
 *
 * kept_mounts begins at the next multiple of KEPT_MOUNTS_ALIGN.
 */
enum { KEPT_MOUNTS_ALIGN = 8 };

struct pod {
    struct table_record record; /* by namespace and name */
    int32_t priority;
    struct name_ref ns;
    struct node_ref node;             /* none: not assigned */
    struct name_ref labels;           /* of a pod with claims, which may become a victim:
                                         shared, see label_selector.h */
    struct nomination_ref nomination; /* none: not nominated */
    uint64_t version;
    struct uid uid;
    uint32_t listed : LISTED_BITS; /* as in struct node: no memory of its own */
    bool is_terminal : 1;          /* Succeeded or Failed */
    bool is_terminating : 1;       /* has a deletionTimestamp */
    bool never_preempts : 1;       /* preemptionPolicy Never */
    bool has_mounts : 1;      /* its mounts are stored: some are deferred, or a bind reads them */
    bool is_pending : 1;      /* its phase is Pending */
    bool is_gated : 1;        /* as in struct pod_object */
    bool is_grouped : 1;      /* the same */
    bool has_no_priority : 1; /* it names an unknown PriorityClass, so its priority counts as 0 */
    uint16_t name_len;
    uint16_t use_count;
    struct use uses[];
};

_Static_assert(sizeof(struct pod) == 56 && offsetof(struct pod, uses) == 56,
               "there are hundreds of thousands");

/* A pod's mounts, and its link in cluster.deferring. */
struct kept_mounts {
    struct pod *next_deferring;
    struct pod **link; /* the pointer to this pod; NULL: it defers no mount */
    struct pod_mounts mounts;
};

/* What many resources of a kind have in common, stored once. */
struct resource_shape {
    struct table_record record; /* by its key */
    uint32_t refs;
    struct resource_shape *next_offer, *former_offer; /* in cluster.offers (utlist) */
    struct resource_shape_key {
        struct name *ns;
        struct name *attributes[RESOURCE_ATTRIBUTES]; /* without the own one */
        int64_t number, capacity;
        uint64_t own; /* the attribute that is not shared; RESOURCE_ATTRIBUTES: none */
    } key;
};

/*
 * Any other kind: string attributes, by the enums of objects.h. There are as many volumes as
 * claims, so a record has only what is its own:
 *
 *     | struct resource | name, or the UID in it | own attribute, own_len bytes |
 */
struct resource {
    struct table_record record; /* by namespace and name */
    struct resource_shape_ref shape;
    uint64_t version;
    uint32_t listed;             /* as in struct node */
    uint16_t name_len : 15;      /* of text */
    uint16_t is_provisioned : 1; /* its name is pvc-UID, and text begins with the struct uid */
    uint16_t own_len;
    char text[];
};

enum { RESOURCE_NAME_MAX = INT16_MAX, PROVISIONED_NAME_BYTES = sizeof "pvc-" - 1 + UID_TEXT_BYTES };

_Static_assert(offsetof(struct resource, text) == 24, "there are as many volumes as claims");

/* What many claims have in common, and their number, for which KEP-3751 asks. It owns its names. */
struct claim_tally {
    struct table_record record; /* by its key */
    struct claim_tally_key {
        struct name *ns, *storage_class, *volume_attributes_class;
        uint64_t phase; /* enum claim_phase; wide, so that the key has no padding */
    } key;
    size_t count;
};

/* The name, in buffer or in the record; and that of the volume that a claim names; empty: none. */
struct slice resource_name(const struct resource *resource, char buffer[PROVISIONED_NAME_BYTES]);
struct slice claim_volume_name(const struct claim *claim, char buffer[PROVISIONED_NAME_BYTES]);

static inline bool pod_is_assigned(const struct pod *pod)
{
    return pod->node.step != 0;
}

static inline bool pod_is_nominated(const struct pod *pod)
{
    return pod->nomination.step != 0;
}

/* Whether a pod has reserved it exclusively. */
static inline bool claim_is_reserved(const struct claim *claim)
{
    return claim->reservation.step != 0;
}

/* Whether the pod holds the claims that it names: it is assigned to a node, and not finished. A
 * terminating pod holds its claims until it is gone (KEP-2485; kube-scheduler's NodeInfo counts it,
 * too). */
static inline bool pod_holds(const struct pod *pod)
{
    return pod_is_assigned(pod) && !pod->is_terminal;
}

/* Whether two or more pods hold a ReadWriteOncePod claim. */
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

/* NULL: the mounts are not stored. */
static inline struct kept_mounts *pod_kept_mounts(const struct pod *pod)
{
    uintptr_t end = (uintptr_t)&pod->uses[pod->use_count] + pod->name_len;
    uintptr_t last = KEPT_MOUNTS_ALIGN - 1;

    return pod->has_mounts ? (struct kept_mounts *)((end + last) & ~last) : NULL;
}

static inline struct pod_mounts *pod_mounts(const struct pod *pod)
{
    return pod->has_mounts ? &pod_kept_mounts(pod)->mounts : NULL;
}

/* Whether the container runtime mounts one of its volumes. */
static inline bool pod_defers(const struct pod *pod)
{
    return pod->has_mounts && pod_kept_mounts(pod)->link != NULL;
}

/* Whether a pod can be placed there. */
static inline bool node_is_usable(const struct node *node)
{
    return node != NULL && node->exists && !node->is_not_ready && !node->is_unschedulable;
}

static inline struct slice pod_nominated_node(const struct pod *pod)
{
    const struct nomination *nomination = nomination_at(pod->nomination);

    return name_slice(nomination == NULL ? NULL : nomination->node);
}

/* When a nominated pod was created; empty: not known, or the pod is not nominated. */
static inline struct slice pod_created(const struct pod *pod)
{
    const struct nomination *nomination = nomination_at(pod->nomination);

    return nomination == NULL || nomination->created[0] == '\0'
               ? (struct slice){"", 0}
               : (struct slice){nomination->created, CREATED_BYTES};
}

static inline const struct name *resource_ns(const struct resource *resource)
{
    return resource_shape_at(resource->shape)->key.ns;
}

static inline int64_t resource_number(const struct resource *resource)
{
    return resource_shape_at(resource->shape)->key.number;
}

/* Ownership: the resource's. Empty: it has none. */
static inline struct slice resource_attribute(const struct resource *resource, unsigned index)
{
    const struct resource_shape_key *key = &resource_shape_at(resource->shape)->key;

    return index == key->own
               ? (struct slice){resource->text + resource->name_len, resource->own_len}
               : name_slice(key->attributes[index]);
}

static inline struct slice claim_name(const struct claim *claim)
{
    return (struct slice){claim->name, claim->name_len};
}

static inline const struct name *claim_storage_class(const struct claim *claim)
{
    return claim->tally.step == 0 ? NULL : claim_tally_at(claim->tally)->key.storage_class;
}

static inline const struct name *claim_volume_attributes_class(const struct claim *claim)
{
    return claim->tally.step == 0 ? NULL
                                  : claim_tally_at(claim->tally)->key.volume_attributes_class;
}

static inline enum claim_phase claim_phase(const struct claim *claim)
{
    return claim->tally.step == 0 ? CLAIM_PHASE_UNKNOWN
                                  : (enum claim_phase)claim_tally_at(claim->tally)->key.phase;
}

/* spec.volumeName; NULL: none, or is_volume_provisioned. */
static inline const struct name *claim_volume(const struct claim *claim)
{
    return claim->rare.step == 0 ? NULL : claim_rare_at(claim->rare)->volume;
}

static inline bool claim_has_volume(const struct claim *claim)
{
    return claim->is_volume_provisioned || claim_volume(claim) != NULL;
}

/* The UID of the Pod that controls it; NULL: none. */
static inline const struct name *claim_owner_uid(const struct claim *claim)
{
    return claim->rare.step == 0 ? NULL : claim_rare_at(claim->rare)->owner_uid;
}

static inline const struct name *claim_owner_name(const struct claim *claim)
{
    return claim->rare.step == 0 ? NULL : claim_rare_at(claim->rare)->owner_name;
}

/* NULL: its VolumeAttributesClass is in force. */
static inline const struct modification *claim_modification(const struct claim *claim)
{
    const struct claim_rare *rare = claim_rare_at(claim->rare);

    return rare != NULL && rare->is_modified ? &rare->modification : NULL;
}

static inline struct slice pod_node(const struct pod *pod)
{
    return name_slice(pod_is_assigned(pod) ? node_at(pod->node)->name : NULL);
}

#endif
