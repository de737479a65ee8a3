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

#include "cache/json/pull_fields.h"
#include "cache/objects/kinds.h"
#include "cache/objects/pod_mounts.h"
#include "config/base/buf.h"

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

/* Annotations of a claim that is locked for a pod, UID/NAME; how (claim_lock.h in
 * extender/serving/bind); and the version that the claim had before. */
#define CLAIM_HOLDER_ANNOTATION    "claimguard.io/holder"
#define CLAIM_ADMITTED_ANNOTATION  "claimguard.io/admitted"
#define CLAIM_LOCKED_AT_ANNOTATION "claimguard.io/locked-at"

/* Values of the second one: for a Binding; for one after another that had passed; for a pod that is
 * created with its node. */
#define CLAIM_ADMITTED_BINDING  "true"
#define CLAIM_ADMITTED_AGAIN    "again"
#define CLAIM_ADMITTED_CREATION "created"

/* Reads the first one. False: claimguard has not written it; anyone may. Both texts have only the
 * characters of UIDs and names, and are no longer. */
bool claim_holder_read(struct slice annotation, struct slice *uid, struct slice *name);

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
    struct slice holder, admitted, locked_at, beta_class;    /* the annotations; not stored */
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
    ACCESS_ALL = 31,
};
enum { ACCESS_MODES = 4 };
extern const char *const access_mode_texts[ACCESS_MODES]; /* in the order of the bits */

/* Kinds with few objects are stored as strings, with the indexes below. */
enum { RESOURCE_ATTRIBUTES = 8 };

enum volume_attribute {
    VOLUME_DRIVER, /* of the csi source; empty: another source */
    VOLUME_FS_TYPE,
    VOLUME_IN_TREE, /* "kubernetes.io/aws-ebs", ...; empty: not such a source */
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
enum storage_capacity_attribute {
    STORAGE_CAPACITY_CLASS,
    STORAGE_CAPACITY_TOPOLOGY, /* as in label_selector.h; empty: no node has access */
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
enum { DISRUPTED_PODS_MAX = 2000, POD_NAME_BYTES_MAX = 253, POD_UID_BYTES_MAX = 36 };

/* Bits of resource_object.number. */
enum {
    VOLUME_IS_FOR_ONE_NODE = 1, /* its access modes are ReadWriteOnce alone */
    VOLUME_IS_BLOCK = 2,        /* volumeMode Block */
    VOLUME_REQUIRES_NODES = 4,  /* spec.nodeAffinity: for people */
    VOLUME_ACCESS_SHIFT = 3,    /* enum access_mode, while it is an offer */
    VOLUME_HAS_SECRET = 256,    /* its csi source names one that a node gets */

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
    int64_t capacity; /* of a PersistentVolume, while it is an offer: bytes of storage; of a
                         CSIStorageCapacity: of the largest new volume; negative: none */
    struct {          /* what the attributes are made of; not stored */
        struct slice storage_class, attributes_class, phase; /* of a PersistentVolume */
        struct slice labels, claim_uid, volume_mode, beta_class;
        int64_t capacity;
        int64_t largest;       /* maximumVolumeSize of a CSIStorageCapacity; negative: none */
        unsigned access_modes; /* enum access_mode */
        bool sources[IN_TREE_SOURCES];
        bool requires_nodes, has_secret;   /* of a PersistentVolume */
        bool attaches;                     /* of a CSIDriver */
        bool is_attached;                  /* of a VolumeAttachment */
        bool is_default;                   /* of a PriorityClass */
        bool is_unschedulable;             /* of a Node */
        struct pull_items conditions;      /* struct condition (details.h) */
        struct pull_items owners, drivers; /* of a CSINode: struct owner, struct driver_limit */
        struct slice migrated;             /* its annotation */
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

/* A pod by its metadata. */
static inline struct object_reference object_reference_of_pod(const struct meta *pod)
{
    return (struct object_reference){KIND_POD, pod->ns, pod->name, pod->uid};
}

/* Fields of the log: a pod, by its reference or its metadata. */
#define LOG_POD(pod) LOG_SLICE("namespace", (pod)->ns), LOG_SLICE("pod", (pod)->name)

/* Whether the object has that name, if it has that UID: a made-up call may have any UID. */
static inline bool object_reference_has_name(const struct object_reference *reference,
                                             const struct meta *object)
{
    return slice_equal(reference->ns, object->ns) && slice_equal(reference->name, object->name);
}

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

/* Whether it is such a driver, and known to attach its volumes, also without its CSIDriver. */
bool in_tree_driver_attaches(struct slice driver);

/* The field of a PersistentVolume's spec that has such a source: "awsElasticBlockStore"; NULL:
 * none.
 */
const char *in_tree_source(struct slice plugin);

/* The label of a node's zone to which kube-scheduler translates the zones of such a volume, where
 * the plug-in is migrated; empty: it does not. */
struct slice in_tree_zone_key(struct slice plugin);

/* Makes what was read of a volume an offer: object_read does so if it is Available. One that a
 * manifest makes will be, and says nothing of it. False: no memory. */
bool volume_make_offer(struct arena *arena, struct resource_object *volume);

/* The text by which a pod waits for the volumes that a claim of these classes could be bound to;
 * {NULL, 0}: no memory. */
struct slice volume_offer(struct slice storage_class, struct slice attributes_class,
                          struct arena *arena);

/* The classes of an offer that is not empty. */
void volume_offer_classes(struct slice offer, struct slice *storage_class,
                          struct slice *attributes_class);

/* ---- lists of words in one text, with commas between them: names of drivers, modes ---- */

/* A reader for pull_fields, into a struct slice: adds the names in an array, so many at most. */
enum { WORDS_READ_MAX = 64 };
bool words_read(struct pull *json, struct arena *arena, void *field);

/* The same into struct pull_items of struct slice: all of them. */
bool words_read_items(struct pull *json, struct arena *arena, void *field);

/* Adds a word to the list in *field. False: a problem. */
bool words_add(struct pull *json, struct arena *arena, struct slice *field, struct slice word);

/* Removes the next word from *rest (false: there is none); whether there is such a word. */
bool words_next(struct slice *rest, struct slice *word);
bool words_have(struct slice words, struct slice word);

#endif
