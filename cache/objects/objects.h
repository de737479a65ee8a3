/*
 * objects: Kubernetes objects as JSON -> small structs with only the fields that decisions need.
 *
 * A decoded object borrows: its strings point into the JSON text or into the arena, so it lives as
 * long as both. cluster_apply copies what it keeps.
 *
 * JSON is read as the API server writes it (exact keys). Field types are checked: an object that
 * cannot be what its kind says is an error that names the place and the field.
 */
#ifndef CACHE_OBJECTS_OBJECTS_H
#define CACHE_OBJECTS_OBJECTS_H

#include "cache/json/pull.h"
#include "cache/objects/pod_mounts.h"
#include "config/base/buf.h"

/* The kinds that claimguard keeps, in the order in which people read about them. */
enum kind {
    KIND_POD,
    KIND_NODE,
    KIND_CLAIM,  /* PersistentVolumeClaim */
    KIND_VOLUME, /* PersistentVolume */
    KIND_STORAGE_CLASS,
    KIND_CSI_DRIVER,
    KIND_CSI_NODE,
    KIND_VOLUME_ATTRIBUTES_CLASS,
    KIND_RUNTIME_CLASS,
    KIND_POD_DISRUPTION_BUDGET,
    KIND_WATCHED_COUNT, /* those before; what follows is read from snapshots only */
    KIND_PRIORITY_CLASS = KIND_WATCHED_COUNT,
    KIND_COUNT,
    KIND_OTHER = KIND_COUNT, /* any other: skipped and counted */
};

struct meta {
    struct slice ns; /* empty for what has none */
    struct slice name;
    struct slice uid;
    struct slice resource_version;
    struct slice deletion_timestamp; /* empty: not being deleted */
    struct slice owner_uid;          /* of the Pod that controls it; empty: no Pod does */
};

/* A pod with more claims is refused: no node attaches as many, all of them are counted while the
 * cluster's lock is held, and looking for the same claim twice costs the square. */
enum { POD_CLAIMS_MAX = 512 };

/* The problem of a pod with more: of all that an API server is known to take and send, the one
 * object that is not read. */
extern const char pod_has_too_many_claims[];

/* A claim that a pod names in a volume. */
struct claim_reference {
    struct slice name; /* in the pod's namespace */
    bool is_ephemeral; /* named by a generic ephemeral volume: the pod has to own it */
    bool is_deferred;  /* the pod's runtime mounts it: deferFSMount */
};

struct pod_object {
    struct meta meta;
    struct slice created;        /* metadata.creationTimestamp; empty: not known */
    struct slice node;           /* spec.nodeName; empty: not assigned */
    struct slice nominated_node; /* status.nominatedNodeName */
    struct slice phase;
    struct slice priority_class; /* spec.priorityClassName */
    struct slice preemption_policy;
    struct slice labels;            /* as selector.h keeps them */
    int64_t priority;               /* fits 32 bits */
    bool has_priority;              /* false: the API server has not seen it (a manifest) */
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
    bool is_rwop; /* its access modes have ReadWriteOncePod */
};

/* What is kept of the kinds that are few: strings, by the names below. */
enum { RESOURCE_ATTRIBUTES = 6 };

enum volume_attribute {
    VOLUME_DRIVER, /* of the csi source; empty: another source */
    VOLUME_FS_TYPE,
    VOLUME_MODE,
    VOLUME_PUBLISH_SECRET, /* name of the node-publish secret */
    VOLUME_CLAIM_NAMESPACE,
    VOLUME_CLAIM_NAME,
};
enum storage_class_attribute { STORAGE_CLASS_PROVISIONER };
enum csi_driver_attribute { CSI_DRIVER_LIFECYCLE_MODES /* joined by ',' */ };
enum csi_node_attribute { CSI_NODE_DRIVERS /* joined by ',' */ };
enum volume_attributes_class_attribute { VOLUME_ATTRIBUTES_CLASS_DRIVER };
enum runtime_class_attribute { RUNTIME_CLASS_HANDLER };
enum priority_class_attribute {
    PRIORITY_CLASS_PREEMPTION_POLICY,
    PRIORITY_CLASS_DEFAULT /* "true": of pods that name none; else empty */
};
enum budget_attribute {
    BUDGET_SELECTOR,      /* as selector.h keeps it */
    BUDGET_DISRUPTED_PODS /* names joined by ',': their evictions are counted already */
};

/* Names in a budget's status.disruptedPods that are kept; the API server lets it have no more.
 * Those behind count as if they were not named: too many violations, never too few. */
enum { DISRUPTED_PODS_MAX = 2000, POD_NAME_BYTES_MAX = 253 };

struct resource_object {
    struct meta meta;
    struct slice attributes[RESOURCE_ATTRIBUTES];
    int64_t number; /* of a PodDisruptionBudget: disruptionsAllowed; of a PriorityClass: value,
                       which fits 32 bits */
};

struct object {
    enum kind kind;
    union {
        struct meta meta; /* the first member of all the others */
        struct pod_object pod;
        struct claim_object claim;
        struct resource_object resource; /* every other kind */
    };
};

/* Names an object. */
struct object_reference {
    enum kind kind;
    struct slice ns, name;
    struct slice uid; /* empty: none is known */
};

static inline bool object_reference_equal(const struct object_reference *a,
                                          const struct object_reference *b)
{
    return a->kind == b->kind && slice_equal(a->ns, b->ns) && slice_equal(a->name, b->name) &&
           slice_equal(a->uid, b->uid);
}

/* How many bytes the strings take, and the reference with its strings copied to text, which has
 * room for them. */
static inline size_t object_reference_bytes(const struct object_reference *reference)
{
    return reference->ns.len + reference->name.len + reference->uid.len;
}
struct object_reference object_reference_copy(const struct object_reference *reference, char *text);

/* Whether there can be an object of that name. A pod may name its claims as it likes, but "..", or
 * what has a '/' or a '%', is the name of nothing, and would be the path of something else. */
bool object_reference_is_possible(const struct object_reference *reference);

/* References that are kept in an arena, the last one first. */
struct kept_reference {
    struct kept_reference *next;
    struct object_reference reference;
};

/* Puts a copy in front of the list; false: the arena is full. */
bool object_reference_keep(struct kept_reference **list, const struct object_reference *reference,
                           struct arena *arena);

/* The kind of {apiVersion, kind}; KIND_OTHER for any that is not kept. Versions do not matter. */
enum kind kind_of(struct slice api_version, struct slice kind);

/* "pods", "persistentvolumeclaims", ...: the resource's name, as in the API and in metrics. */
const char *kind_resource(enum kind kind);

/* "Pod" and "v1", ...: kind and apiVersion, as the API server has them now. */
const char *kind_text(enum kind kind);
const char *kind_api_version(enum kind kind);

/* "/api/v1", "/apis/storage.k8s.io/v1", ...: where the API server has the resource. */
const char *kind_api_path(enum kind kind);

bool kind_is_namespaced(enum kind kind);

/* resourceVersion as a number: the API server compares them so (KEP-5504). 0: unknown. */
uint64_t version_of(struct slice resource_version);

/*
 * The next value of json, an object of this kind. A namespace that is missing from a namespaced
 * object reads as "default", as kubectl would have it.
 * Errors: false, with the problem and its path in json.
 */
bool object_read(struct pull *json, enum kind kind, struct arena *arena, struct object *out);

/* The same for a pod, for the extender protocol, where `Pod` carries no kind. */
bool pod_read(struct pull *json, struct arena *arena, struct pod_object *out);

/*
 * An object's JSON with apiVersion, kind and only the fields that object_read looks at: what a
 * snapshot keeps. Errors: ERROR_INVALID, ERROR_NO_MEMORY.
 */
int object_project(struct slice text, enum kind kind, struct buf *out, struct error *err);

/* Whether a phase is one that a pod does not leave: Succeeded or Failed. */
bool phase_is_terminal(struct slice phase);

#endif
