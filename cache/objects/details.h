/*
 * details: what people want to know about objects, and no decision reads: owners, conditions,
 * finalizers, times; where volumes can be used, and the labels of nodes. The cluster does not store
 * it. Commands read it from the text of the few objects that they are asked about
 * (extender/commands/inquiry), and a snapshot has it.
 *
 * Ownership: as objects.h: strings point into the text or into the arena. Threads: any.
 * Errors: false: the text is not such an object, or the arena is full.
 */
#ifndef CACHE_OBJECTS_DETAILS_H
#define CACHE_OBJECTS_DETAILS_H

#include "cache/json/pull_fields.h"
#include "cache/objects/objects.h"

struct owner {
    struct slice api_version, kind, name;
    struct slice uid; /* not of details */
    bool is_controller;
};

struct condition {
    struct slice type, status, reason, message;
    struct slice changed; /* lastTransitionTime */
};

/* A list of strings; its items are struct slice. A list of the structs here has their size. */
struct container_states {
    struct slice waiting_reason; /* of the first container that waits; "ContainerCreating", ... */
    bool has_started;            /* one runs, or has ended */
};

/* A resource that a container asks for: a scheduler calls claimguard only for pods that have it, if
 * its managedResources name it. */
#define MARK "claimguard.io/claims"

struct toleration {
    struct slice key, operator, value, effect;
};

struct scheduling_gate {
    struct slice name;
};

/* A volume of a pod. */
struct volume_source_details {
    struct slice claim; /* persistentVolumeClaim.claimName; else empty */
    bool is_read_only;  /* persistentVolumeClaim.readOnly */
    bool is_disk;       /* one that VolumeRestrictions compares */
};

struct pod_details {
    struct slice created, started; /* metadata.creationTimestamp, status.startTime */
    struct slice deletion_timestamp;
    int64_t grace_seconds; /* of a pod that is being deleted; negative: not known */
    struct slice scheduler;
    struct slice template_hash;  /* the label pod-template-hash: a Deployment's */
    struct slice component, app; /* the labels component, app.kubernetes.io/name */
    struct slice dns_policy;
    bool is_host_network;
    bool has_resources; /* a container has them; a file may leave them out, no API server does */
    struct slice mark;  /* MARK of a container; empty: none has it */
    struct slice phase, reason;   /* status.reason */
    struct pull_items finalizers; /* struct slice */
    struct pull_items owners;     /* struct owner */
    struct pull_items conditions; /* struct condition */
    struct container_states containers;
    struct slice node_selector;    /* as in label_selector.h; empty: none */
    struct pull_items node_terms;  /* struct node_term, of its nodeAffinity; none: any node */
    struct pull_items tolerations; /* struct toleration */
    struct pull_items gates;       /* struct scheduling_gate */
    struct pull_items volumes;     /* struct volume_source_details */
};

struct claim_details {
    struct slice created, deletion_timestamp;
    struct slice holder, admitted; /* the annotations of a lock */
    struct slice selected_node;    /* the annotation of kube-scheduler: where the volume is made */
    struct slice phase;
    struct slice beta_class;        /* the annotation, which counts before storageClassName */
    bool has_empty_class;           /* storageClassName is "" */
    struct pull_items finalizers;   /* struct slice */
    struct pull_items access_modes; /* struct slice */
    struct pull_items conditions;   /* struct condition, without messages */
};

/* Whether it has no class, and no default one comes. */
static inline bool claim_has_no_class(const struct claim_details *claim)
{
    return claim->beta_class.ptr != NULL ? claim->beta_class.len == 0 : claim->has_empty_class;
}

struct taint {
    struct slice key, value, effect;
};

struct node_details {
    struct slice labels;          /* as in label_selector.h */
    struct pull_items conditions; /* struct condition, without messages */
    struct pull_items taints;     /* struct taint */
};

struct volume_details {
    struct slice deletion_timestamp;
    struct slice reclaim_policy;  /* "Delete", "Retain"; empty: not known */
    struct slice labels;          /* as in label_selector.h */
    struct slice claim_uid;       /* of claimRef; empty: none */
    struct slice handle;          /* volumeHandle of its csi source; empty: another source */
    int64_t capacity;             /* bytes; 0: not known */
    struct pull_items finalizers; /* struct slice */
    struct pull_items terms;      /* struct node_term, of nodeAffinity; none: any node */
};

struct topology {
    struct pull_items labels; /* struct topology_label, which a node has to have all */
};

struct topology_label {
    struct slice key;
    struct pull_items values; /* struct slice */
};

struct storage_class_details {
    struct slice binding_mode;    /* "Immediate", "WaitForFirstConsumer"; empty: not known */
    struct pull_items topologies; /* struct topology, where volumes can be made; none: anywhere */
};

struct volume_limit {
    bool is_known;
    int64_t count;
};

/* A driver of a CSINode. */
struct driver_limit {
    struct slice name;
    struct volume_limit volumes;     /* how many the node can have */
    struct pull_items topology_keys; /* struct slice */
};

struct csi_driver_details {
    bool has_capacities; /* storageCapacity: its CSIStorageCapacities count */
    bool is_required;    /* preventPodSchedulingIfMissing */
};

struct csi_node_details {
    struct pull_items drivers; /* struct driver_limit */
};

struct claim_template {
    struct slice name;
};

/* Of a Deployment, a Job, or another kind that creates pods. No such object is stored. */
struct workload_details {
    struct slice ns, name;
    struct owner controller; /* what manages it; no name: nothing */
    struct slice argo, flux; /* a mark of Argo CD, of Flux, which write it again; or empty */
    struct slice manager;    /* the label app.kubernetes.io/managed-by */
    int64_t replicas;
    struct slice strategy;             /* of a Deployment; empty: the default, RollingUpdate */
    struct slice surge, unavailable;   /* its maxSurge and maxUnavailable: JSON; empty: defaults */
    bool is_paused;                    /* the same: it does not change its pods */
    struct slice revision;             /* of a Deployment's ReplicaSet: a number; empty: none */
    struct slice when_scaled;          /* of a StatefulSet, for its claims; empty: Retain */
    int64_t first_ordinal;             /* of its pods */
    struct pull_items claim_templates; /* struct claim_template */
    bool is_suspended;                 /* of a Job */
};

/* Of a PodDisruptionBudget: how many of its pods are ready, how many have to be, and how many there
 * are. */
struct budget_details {
    int64_t healthy, needed, expected;
    struct slice of_unhealthy; /* unhealthyPodEvictionPolicy */
};

/* Of a HorizontalPodAutoscaler. */
struct autoscaler_details {
    struct slice ns, name;
    struct slice target_kind, target; /* in its namespace */
    int64_t least;                    /* minReplicas */
    struct owner controller;          /* what manages it; no name: nothing */
};

/* Of an Event. Each writer of Events fills in other times. */
struct event_details {
    struct slice api_version, kind, ns, name, uid; /* of the object that it is about */
    struct slice type, reason, message;            /* of any characters */
    struct slice created, event_time, last_timestamp, last_observed;
    int64_t count, series_count;
};

/* The fields that are read here of a kind. */
struct pull_table details_table(enum kind kind);

/* Reads the struct of that kind into *out, which has the values of what the text does not have. */
bool details_read(struct slice text, enum kind kind, struct arena *arena, void *out);

/* The same for one kind: pod_details_read(text, arena, &pod), ... */
#define DETAILS_READER(name_, kind_, ...) \
    static inline bool name_##_details_read(struct slice text, struct arena *arena, \
                                            struct name_##_details *out) \
    { \
        *out = (struct name_##_details){__VA_ARGS__}; \
        return details_read(text, (kind_), arena, out); \
    }
DETAILS_READER(pod, KIND_POD, .grace_seconds = -1)
DETAILS_READER(claim, KIND_CLAIM, .finalizers = {0})
DETAILS_READER(node, KIND_NODE, .taints = {0})
DETAILS_READER(volume, KIND_VOLUME, .terms = {0})
DETAILS_READER(storage_class, KIND_STORAGE_CLASS, .topologies = {0})
DETAILS_READER(csi_node, KIND_CSI_NODE, .drivers = {0})
DETAILS_READER(csi_driver, KIND_CSI_DRIVER, .is_required = false)
DETAILS_READER(budget, KIND_POD_DISRUPTION_BUDGET, .expected = 0)

bool workload_details_read(struct slice text, struct arena *arena, struct workload_details *out);
bool event_details_read(struct slice text, struct arena *arena, struct event_details *out);
bool autoscaler_details_read(struct slice text, struct arena *arena,
                             struct autoscaler_details *out);

/* A list of them, as the API server sends it: struct autoscaler_details. False also if that is not
 * all of them (metadata.continue). */
bool autoscaler_list_read(struct slice text, struct arena *arena, struct pull_items *out);

static inline bool owner_is_kind(const struct owner *owner, struct slice kind)
{
    return slice_equal(owner->kind, kind);
}

static inline bool owner_is_same(const struct owner *a, const struct owner *b)
{
    return slice_equal(a->kind, b->kind) && slice_equal(a->name, b->name);
}

/* The owner that is the controller; NULL: none. */
const struct owner *details_controller(const struct pull_items *owners);

/* The condition of that type; NULL: none. */
const struct condition *details_condition(const struct pull_items *conditions, struct slice type);

/*
 * What a snapshot has of an object: writes its JSON with apiVersion, kind and only the fields that
 * object_read, details.h and `more`, the table of another decoder unless it is NULL, read. Errors:
 * ERROR_INVALID, ERROR_NO_MEMORY.
 */
int object_project(struct slice text, enum kind kind, const struct pull_table *more,
                   struct buf *out, struct error *err);

/*
 * ---- node selectors (v1.NodeSelector), as a PersistentVolume's nodeAffinity has one ----
 *
 * As in k8s.io/component-helpers: one term has to match; in a term, every requirement has to be
 * met; a term without requirements matches no node.
 */

struct node_requirement {
    struct slice key, operator;
    struct pull_items values; /* struct slice */
};

struct node_term {
    struct pull_items expressions; /* struct node_requirement, on labels */
    struct pull_items fields;      /* struct node_requirement, on metadata.name */
};

/* The fields of an item of nodeSelectorTerms: struct node_term. */
enum { NODE_TERM_FIELDS = 2 };
extern const struct pull_field node_term_fields[NODE_TERM_FIELDS];

/* Whether one of the terms matches a node. labels: as in label_selector.h. */
bool node_terms_match(const struct pull_items *terms, struct slice node, struct slice labels);

/* "topology.kubernetes.io/zone in zone-a, zone-b; or ...": the terms for people. {NULL, 0}: the
 * arena is full. */
struct slice node_terms_text(const struct pull_items *terms, struct arena *arena);

#endif
