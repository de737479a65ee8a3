/*
 * objects: decodes Kubernetes objects from JSON into small structs, with only the fields that
 * decisions need.
 *
 * Ownership: the strings of a decoded object point into the JSON text or into the arena, so the
 * object is valid as long as both. cluster_apply copies what it stores.
 *
 * Keys must be spelled as the API server writes them. Types of fields are checked; an error names
 * the place and the field. Threads: any.
 */
#ifndef CACHE_OBJECTS_OBJECTS_H
#define CACHE_OBJECTS_OBJECTS_H

#include "cache/json/pull.h"
#include "cache/objects/pod_mounts.h"
#include "cache/objects/words.h"
#include "config/base/buf.h"

/* The kinds that claimguard stores. */
enum kind {
    KIND_POD,
    KIND_NODE,
    KIND_CLAIM,  /* PersistentVolumeClaim */
    KIND_VOLUME, /* PersistentVolume */
    KIND_STORAGE_CLASS,
    KIND_CSI_DRIVER,
    KIND_CSI_NODE,
    KIND_VOLUME_ATTRIBUTES_CLASS,
    KIND_POD_DISRUPTION_BUDGET,
    KIND_WATCHED_COUNT, /* the kinds above are watched; those below are read from snapshots only */
    KIND_PRIORITY_CLASS = KIND_WATCHED_COUNT,
    KIND_RUNTIME_CLASS,     /* for people: an entry names it, and no verdict reads it */
    KIND_VOLUME_ATTACHMENT, /* for people: which node has a volume */
    KIND_COUNT,
    KIND_OTHER = KIND_COUNT, /* any other kind: skipped and counted */
};

/* The Pod that controls an object; both empty: none does. */
struct pod_owner {
    struct slice name, uid;
};

struct meta {
    struct slice ns; /* empty for objects without namespace */
    struct slice name;
    struct slice uid;
    struct slice resource_version;
    struct slice deletion_timestamp; /* empty: not being deleted */
    struct pod_owner owner;
};

/* A pod with more claims is an error. No node attaches as many; all of them are counted under the
 * cluster's lock; and the search for duplicates is quadratic. */
enum { POD_CLAIMS_MAX = 512 };

/* The problem of such a pod. Among valid objects of an API server, only this one is not read. */
extern const char pod_has_too_many_claims[];

/* As pull_fail. ERROR_TOO_BIG: the object is well-formed, but over a limit. */
int object_fail(const struct pull *json, const char *what, struct place first, struct error *err);

/* Annotations of a claim that is locked for a pod, UID/NAME; how (extender/bind/claim_lock.h); and
 * the version that the claim had before. */
#define CLAIM_HOLDER_ANNOTATION    "claimguard.io/holder"
#define CLAIM_ADMITTED_ANNOTATION  "claimguard.io/admitted"
#define CLAIM_LOCKED_AT_ANNOTATION "claimguard.io/locked-at"

/* Values of the second one: for a Binding; for one after another that had passed; for a pod that is
 * created with its node. */
#define CLAIM_ADMITTED_BINDING  "true"
#define CLAIM_ADMITTED_AGAIN    "again"
#define CLAIM_ADMITTED_CREATION "created"

/* A claim that a volume of a pod names. */
struct claim_reference {
    struct slice name; /* in the pod's namespace */
    bool is_ephemeral; /* of a generic ephemeral volume: the pod must own it */
    bool is_deferred;  /* the container runtime mounts it: deferFSMount */
};

struct pod_object {
    struct meta meta;
    struct slice created;        /* metadata.creationTimestamp; empty: not known */
    struct slice node;           /* spec.nodeName; empty: not assigned */
    struct slice nominated_node; /* status.nominatedNodeName */
    struct slice phase;
    struct slice priority_class; /* spec.priorityClassName */
    struct slice preemption_policy;
    struct slice labels;     /* as in label_selector.h */
    int64_t priority;        /* fits 32 bits */
    bool has_priority;       /* false: no API server has admitted the pod (a manifest) */
    bool is_gated;           /* has spec.schedulingGates: no scheduler tries it yet */
    bool is_grouped;         /* of a scheduling group (KEP-4671), of which all have to fit, or none:
                                spec.schedulingGroup; in 1.35 spec.workloadRef */
    bool is_refused_unnamed; /* kube-scheduler's own check has rejected it last, since a pod has
                                its ReadWriteOncePod claim, and has not said which */
    struct claim_reference *claims; /* each claim once, in the order of the pod's volumes */
    size_t claim_count;
    const struct pod_mounts *mounts; /* NULL: not known */
};

struct claim_object {
    struct meta meta;
    struct slice phase;
    struct slice storage_class;
    struct slice volume_attributes_class;
    struct slice volume;
    struct slice volume_mode;
    struct slice current_class, target_class, modify_status; /* of its VolumeAttributesClass */
    struct slice holder, admitted, locked_at;                /* the annotations; not stored */
    struct slice selector;                                   /* as in label_selector.h */
    int64_t requested;                                       /* bytes of storage */
    unsigned access_modes;                                   /* enum access_mode */
    bool is_rwop;                                            /* these have ReadWriteOncePod */
};

/* Bits. */
enum access_mode {
    ACCESS_READ_WRITE_ONCE = 1,
    ACCESS_READ_ONLY_MANY = 2,
    ACCESS_READ_WRITE_MANY = 4,
    ACCESS_READ_WRITE_ONCE_POD = 8,
    ACCESS_OTHER = 16,
};

/* Kinds with few objects are stored as strings, with the indexes below. */
enum { RESOURCE_ATTRIBUTES = 9 };

enum volume_attribute {
    VOLUME_DRIVER, /* of the csi source; empty: another source */
    VOLUME_FS_TYPE,
    VOLUME_IN_TREE,        /* "kubernetes.io/aws-ebs", ...; empty: not such a source */
    VOLUME_PUBLISH_SECRET, /* name of the node-publish secret */
    VOLUME_CLAIM_NAMESPACE,
    VOLUME_CLAIM_NAME,
    /* while it is Available, and not being deleted: what decides which claim it may serve */
    VOLUME_OFFER,    /* volume_offer */
    VOLUME_LABELS,   /* as in label_selector.h */
    VOLUME_KEPT_FOR, /* "NAMESPACE/NAME/UID" of its claimRef, perhaps without a UID; empty: none */
};
enum storage_class_attribute { STORAGE_CLASS_PROVISIONER };
enum csi_driver_attribute { CSI_DRIVER_LIFECYCLE_MODES /* joined by ',' */ };
enum csi_node_attribute {
    CSI_NODE_DRIVERS, /* its drivers and migrated in-tree plug-ins, sorted, joined by ',' */
    CSI_NODE_OWNER,   /* UID of the Node that owns it */
};
enum volume_attributes_class_attribute { VOLUME_ATTRIBUTES_CLASS_DRIVER };
enum runtime_class_attribute { RUNTIME_CLASS_HANDLER };
enum volume_attachment_attribute {
    VOLUME_ATTACHMENT_DRIVER,
    VOLUME_ATTACHMENT_NODE,
    VOLUME_ATTACHMENT_VOLUME,       /* name of the PersistentVolume; empty: an inline one */
    VOLUME_ATTACHMENT_ATTACH_ERROR, /* cut to ATTACHMENT_ERROR_BYTES_MAX; empty: none */
    VOLUME_ATTACHMENT_DETACH_ERROR,
};
enum priority_class_attribute {
    PRIORITY_CLASS_PREEMPTION_POLICY,
    PRIORITY_CLASS_DEFAULT /* "true": for pods that name no class; else empty */
};
enum budget_attribute {
    BUDGET_SELECTOR,      /* as in label_selector.h */
    BUDGET_DISRUPTED_PODS /* names joined by ',': pods whose evictions are counted already */
};

/* Names in a budget's status.disruptedPods that are stored; the API server allows no more. Further
 * pods count as if they were not named: this gives too many violations, never too few. */
enum { DISRUPTED_PODS_MAX = 2000, POD_NAME_BYTES_MAX = 253 };

/* Bits of resource_object.number. */
enum {
    VOLUME_IS_FOR_ONE_NODE = 1, /* its access modes are ReadWriteOnce alone */
    VOLUME_IS_BLOCK = 2,        /* volumeMode Block */
    VOLUME_ACCESS_SHIFT = 2,    /* enum access_mode, while it is an offer */

    NODE_IS_NOT_READY = 1, /* its condition Ready is not True */
    NODE_IS_UNSCHEDULABLE = 2,

    CSI_DRIVER_DOES_NOT_ATTACH = 1, /* attachRequired: false */

    VOLUME_ATTRIBUTES_CLASS_IS_DELETING = 1,

    VOLUME_ATTACHMENT_IS_ATTACHED = 1,
    VOLUME_ATTACHMENT_IS_DELETING = 2, /* it is being detached */
};

/* Of the error that a VolumeAttachment reports, whose text a driver chooses. */
enum { ATTACHMENT_ERROR_BYTES_MAX = 1024 };

/* Drivers of a node that are stored; a kubelet has a few. Further ones count as not registered. */
enum { NODE_DRIVERS_MAX = 256 };

/* Sources of PersistentVolumes other than csi that are attached to a node. */
enum { IN_TREE_SOURCES = 9 };

/* Any kind but pods and claims. */
struct resource_object {
    struct meta meta;
    struct slice attributes[RESOURCE_ATTRIBUTES];
    int64_t number;   /* of a PodDisruptionBudget: disruptionsAllowed; of a PriorityClass: value,
                         which fits 32 bits; of other kinds: the bits above */
    int64_t capacity; /* of a PersistentVolume, while it is an offer: bytes of storage */
    struct {          /* what the attributes are made of; not stored */
        struct slice storage_class, attributes_class, phase; /* of a PersistentVolume */
        struct slice labels, claim_uid;
        int64_t capacity;
        unsigned access_modes; /* enum access_mode */
        bool sources[IN_TREE_SOURCES];
        struct slice migrated; /* of a CSINode: its annotation */
    } reading;
};

struct object {
    enum kind kind;
    union {
        struct meta meta; /* the first member of each struct below */
        struct pod_object pod;
        struct claim_object claim;
        struct resource_object resource; /* every other kind */
    };
};

/* Names an object. */
struct object_reference {
    enum kind kind;
    struct slice ns, name;
    struct slice uid; /* empty: not known */
};

static inline bool object_reference_equal(const struct object_reference *a,
                                          const struct object_reference *b)
{
    return a->kind == b->kind && slice_equal(a->ns, b->ns) && slice_equal(a->name, b->name) &&
           slice_equal(a->uid, b->uid);
}

/* The size of the strings; and a copy of the reference, with its strings in text, which has room
 * for them. */
static inline size_t object_reference_bytes(const struct object_reference *reference)
{
    return reference->ns.len + reference->name.len + reference->uid.len;
}
struct object_reference object_reference_copy(const struct object_reference *reference, char *text);

/* Whether an object can have that name. A pod may name any claim, but no object has the name "..",
 * or one with '/' or '%', and a request with such a name would read another path. */
bool object_reference_is_possible(const struct object_reference *reference);

/* A list of references in an arena, the last one first. */
struct kept_reference {
    struct kept_reference *next;
    struct object_reference reference;
};

/* Adds a copy to the front of the list. False: the arena is full. */
bool object_reference_keep(struct kept_reference **list, const struct object_reference *reference,
                           struct arena *arena);

/* The kind of {apiVersion, kind}; KIND_OTHER for any that is not stored. Versions do not matter. */
enum kind kind_of(struct slice api_version, struct slice kind);

/* "pods", "persistentvolumeclaims", ...: the resource's name, as in the API and in metrics. */
const char *kind_resource(enum kind kind);

/* "Pod" and "v1", ...: the present kind and apiVersion. */
const char *kind_text(enum kind kind);
const char *kind_api_version(enum kind kind);

/* "/api/v1", "/apis/storage.k8s.io/v1", ...: the path of the resource's API group. */
const char *kind_api_path(enum kind kind);

bool kind_is_namespaced(enum kind kind);

/* resourceVersion as a number, which clients may compare (KEP-5504). 0: it is not a number. */
uint64_t version_of(struct slice resource_version);

/*
 * Reads the next value of json, an object of that kind. A missing namespace of a namespaced object
 * becomes "default", as in kubectl.
 * Errors: false, with the problem and its path in json.
 */
bool object_read(struct pull *json, enum kind kind, struct arena *arena, struct object *out);

/* The same for a pod, for the extender protocol, where `Pod` carries no kind. */
bool pod_read(struct pull *json, struct arena *arena, struct pod_object *out);

/* Whether the phase is final: Succeeded or Failed. */
bool phase_is_terminal(struct slice phase);

/* The CSI driver that has replaced an in-tree plug-in, as in k8s.io/csi-translation-lib; empty:
 * none. */
struct slice in_tree_driver(struct slice plugin);

/* The field of a PersistentVolume's spec that has such a source: "awsElasticBlockStore"; NULL:
 * none.
 */
const char *in_tree_source(struct slice plugin);

/* The text by which a pod waits for the volumes that a claim of these classes could be bound to;
 * {NULL, 0}: no memory. */
struct slice volume_offer(struct slice storage_class, struct slice attributes_class,
                          struct arena *arena);

/* The classes of an offer that is not empty. */
void volume_offer_classes(struct slice offer, struct slice *storage_class,
                          struct slice *attributes_class);

#endif
