/*
 * records: what the audit keeps of the objects of its input: a small record for each object that a
 * rule reads. Pods without claims and inline CSI volumes leave no record.
 *
 * Ownership: records lie in the inventory's arena, and all texts in them. Threads: one.
 */
#ifndef EXTENDER_AUDIT_RECORDS_H
#define EXTENDER_AUDIT_RECORDS_H

#include "cache/objects/volume_match.h"
#include "cache/store/table.h"
#include "config/base/arena.h"
#include "extender/audit/rollout.h"

enum record_kind {
    RECORD_POD,
    RECORD_DEPLOYMENT,
    RECORD_STATEFUL_SET,
    RECORD_DAEMON_SET,
    RECORD_REPLICA_SET,
    RECORD_JOB,
    RECORD_CRON_JOB,
    RECORD_AUTOSCALER, /* HorizontalPodAutoscaler */
    RECORD_CLAIM,
    RECORD_VOLUME, /* PersistentVolume */
    RECORD_STORAGE_CLASS,
    RECORD_CSI_DRIVER,
    RECORD_CSI_NODE,
    RECORD_NODE,
    RECORD_ATTRIBUTES_CLASS,
    RECORD_KIND_COUNT
};

/* "Deployment", ...; and the kind of such a word (RECORD_KIND_COUNT: another one). */
const char *record_kind_text(enum record_kind kind);
enum record_kind record_kind_of(struct slice kind);

/* Where something is in the input. */
struct spot {
    const char *path; /* of the file; NULL: the object is from a live cluster */
    uint32_t line, column;
};

/* What all records begin with. */
struct record {
    struct table_record table; /* of its kind, namespace and name */
    uint8_t kind;
    bool has_controller;
    struct slice ns; /* as in the object: empty if it says none */
    struct slice name;
    struct spot spot;
    const char *ignore;  /* the annotation claimguard.io/audit-ignore; NULL: none */
    struct record *next; /* of its kind */
};

/* A volume of a pod or a template that is a claim, or an inline CSI volume. */
struct volume_use {
    struct slice name; /* of the claim, or of the driver; empty: a generic ephemeral volume */
    bool is_inline;
    uint32_t line, column; /* of the name */
};

/* A pod, or the template of pods. */
struct pod_spec {
    struct slice node, scheduler, runtime_class;
    struct slice selector; /* nodeSelector, as labels in label_selector.h */
    uint32_t node_line, node_column, scheduler_line, scheduler_column;
    bool requires_nodes; /* a required node affinity */
    bool requires_host;  /* one that allows one node, by its name */
    bool requires_pods;  /* a required affinity to pods on the same node */
    bool is_marked;      /* a container has the resource claimguard.io/claims */
    uint32_t use_count;
    struct volume_use *uses;
};

struct pod_record {
    struct record record;
    struct pod_spec spec;
    struct slice owner;          /* its controller */
    enum record_kind owner_kind; /* RECORD_KIND_COUNT: another kind, or none */
    bool is_terminating;
    bool is_finished; /* or a later object of the input has its name */
    bool is_manifest; /* no API server has stored it */
};

struct workload {
    struct record record;
    struct pod_spec spec;                /* of an autoscaler: empty */
    struct slice owner;                  /* its controller; of an autoscaler: its target */
    enum record_kind owner_kind;         /* as above */
    struct rollout_spec rollout;         /* replicas of all kinds that have some; of an autoscaler:
                                            maxReplicas; of a Job: the pods at the same time */
    int64_t least;                       /* of an autoscaler: minReplicas; of its target: that */
    uint32_t target_line, target_column; /* of an autoscaler's target */
    bool is_finished;                    /* a Job that is complete or has failed */
    bool is_suspended;                   /* a CronJob */
    bool is_finite;                      /* a Job, or those of a CronJob: completions is given */
    bool forbids_overlap;                /* a CronJob's concurrencyPolicy is not Allow */
};

/* VolumeAttributesClasses of a claim: few have some. */
struct claim_classes {
    struct slice class, current, target, modify_status;
    struct volume_wish wish;
    uint32_t line, column; /* of class */
};

struct claim_record {
    struct record record;
    struct slice storage_class, volume;
    const struct claim_classes *classes; /* NULL: none */
    uint8_t modes;                       /* enum access_mode */
    bool is_bound;
    bool is_ambiguous; /* the input has it twice, with different modes */
    struct claim_user *users;
    const struct workload *first_template; /* that names it and has pods */
};

/* A pod that names a claim. */
struct claim_user {
    struct claim_user *next;
    const struct pod_record *pod;
};

/* Of a volume with a VolumeAttributesClass: few have one. */
struct volume_classes {
    struct slice class;
    struct volume_offered offered; /* if it is available */
};

struct volume_record {
    struct record record;
    struct slice driver;                  /* empty: no CSI driver */
    const struct volume_classes *classes; /* NULL: none */
    uint64_t claim;           /* inventory_claim_hash of the claim; 0: it is bound to none */
    bool is_for_one_node;     /* its access modes are ReadWriteOnce alone */
    bool is_available;        /* and not being deleted */
    bool is_attached_in_tree; /* iSCSI, Fibre Channel: attached, without a CSI driver */
    bool requires_nodes;      /* spec.nodeAffinity */
};

/* A StorageClass, a VolumeAttributesClass, a CSIDriver, a CSINode, or a Node. */
struct plain_record {
    struct record record;
    struct slice text; /* provisioner; driverName; the modes; the drivers, joined by ','; labels */
    bool is_deleting;  /* of a VolumeAttributesClass */
    bool does_not_attach; /* of a CSIDriver */
    bool is_avoided;      /* a Node that is not Ready, unschedulable, or tainted */
    bool is_named;        /* of a VolumeAttributesClass: a claim or a volume names it */
};

#endif
