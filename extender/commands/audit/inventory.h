/*
 * inventory: what the audit knows of its input. The cluster that verdicts read has the claims and
 * their pods, the volumes, the classes and the drivers. A record has what no verdict reads: where
 * an object is in the input, and how a pod or a workload is made. Objects come as JSON text, from
 * files or from a live cluster, in any order. The rules run when all of them are there.
 *
 *     struct type type = {"apps/v1", "Deployment"};
 *     struct source_text object = {.type = &type, .text = text, .path = path, .place = place};
 *     struct inventory inventory;
 *     inventory_init(&inventory, cluster);
 *     if (inventory_take(&inventory, &object, err) >= 0)
 *         inventory_link(&inventory);
 *     inventory_dispose(&inventory);
 *
 * Pods without claims and inline CSI volumes leave no record, and are not stored.
 *
 * Ownership: records lie in the inventory, and all texts in them; the cluster is borrowed.
 * Threads: one.
 */
#ifndef EXTENDER_COMMANDS_AUDIT_INVENTORY_H
#define EXTENDER_COMMANDS_AUDIT_INVENTORY_H

#include "cache/cluster/cluster.h"
#include "cache/snapshot/source.h"
#include "extender/commands/inquiry/rollout.h"

/* ---- records ---- */

/* Where something is in the input. */
struct spot {
    const char *path; /* of the file; NULL: the object is from a live cluster */
    uint32_t line, column;
};

enum { TWINS_MAX = 1000 };

/* What all records begin with. */
struct record {
    struct table_record table; /* of its kind, namespace and name */
    uint8_t kind;              /* enum kind */
    bool is_noted;             /* of the first of its name: a gap names it */
    uint16_t twins;            /* of the first of its name: how many others are in `same` */
    struct slice ns;           /* as in the object: empty if it says none */
    struct slice name;
    struct spot spot;
    const char *ignore;  /* comments, and the annotation claimguard.io/audit-ignore; NULL: none */
    struct record *next; /* of its kind */
    struct record *same; /* another object of its kind and name, up to TWINS_MAX of them */
};

/* A volume of a pod or a template that is a claim, or an inline CSI volume. */
struct volume_use {
    struct slice name; /* of the claim, or of the driver; empty: a generic ephemeral volume */
    uint32_t line, column : 31; /* of the name */
    bool is_inline : 1;
};

/* What many pods have nothing of. */
struct placing {
    struct slice scheduler, runtime_class;
    struct slice selector; /* nodeSelector, as labels in label_selector.h */
    uint32_t node_line, node_column, scheduler_line, scheduler_column; /* of a manifest */
};

/* A pod, or the template of pods. */
struct pod_spec {
    struct slice node;
    const struct placing *placing;
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
    struct slice owner;   /* its controller; of an autoscaler: its target */
    enum kind owner_kind; /* KIND_OTHER: one that the audit does not read, or none */
    bool is_finished;     /* or a later object of the input has its name; of a Job: as well */
    bool is_manifest;     /* of a pod: no API server has stored it */
};

/* A Deployment, a StatefulSet, ...; or a HorizontalPodAutoscaler. */
struct workload {
    struct pod_record pod;               /* its template; of an autoscaler: empty */
    struct rollout_spec rollout;         /* replicas of all kinds that have some; of an autoscaler:
                                            maxReplicas; of a Job: the pods at the same time */
    int64_t least;                       /* of an autoscaler: minReplicas; of its target: that */
    uint32_t target_line, target_column; /* of an autoscaler's target */
    struct slice claim_templates;        /* of a StatefulSet: their names, joined by ',' */
    const char *unknown_field;           /* whose value is a variable; NULL: none */
    bool is_suspended;                   /* a CronJob */
    bool is_finite;                      /* a Job, or those of a CronJob: completions is given */
    bool forbids_overlap;                /* a CronJob's concurrencyPolicy is not Allow */
};

struct claim_record {
    struct record record;
    uint8_t modes;                         /* enum access_mode */
    bool names_class;                      /* a StorageClass, or "": none at all */
    uint32_t twin;                         /* the cluster has it as NAME\nTWIN; 0: as NAME */
    uint32_t class_line, class_column;     /* of its VolumeAttributesClass */
    const struct claim *stored;            /* in the cluster: once the inventory is linked */
    const struct workload *first_template; /* that names it and has pods */
};

/* A volume that a manifest makes by hand; or one that has a comment. */
struct volume_record {
    struct record record;
    uint32_t twin;                 /* the cluster has it as NAME\nTWIN; 0: it is not made by hand */
    bool is_on_one_host;           /* its nodeAffinity allows one node, by its name */
    const struct resource *stored; /* of one made by hand: once the inventory is linked */
};

struct class_record {
    struct record record;
    struct slice provisioner, created;
    bool is_default;
};

struct driver_record {
    struct record record;
    struct slice modes; /* volumeLifecycleModes, joined by ',' */
    bool attaches;
};

struct node_record {
    struct record record;
    struct slice labels;
    bool is_avoided; /* it is not Ready, unschedulable, or tainted */
};

/* ---- the inventory ---- */

struct inventory {
    struct cluster *cluster;
    bool is_stored_elsewhere; /* set by the owner: who reads a live cluster also stores it */
    struct slice ns;          /* of objects without one, set by the owner; empty: "default" */
    struct slice remarks;     /* of the object that is taken next, set by the owner: entries as in
                                 the annotation, each with a line break behind it */
    struct pool pool;         /* the records */
    struct arena arena;       /* their parts */
    struct arena scratch;     /* of the object that is being read */
    struct table table;
    struct record *first[KIND_NAMED_COUNT], *last[KIND_NAMED_COUNT]; /* in the input's order */
    size_t counts[KIND_NAMED_COUNT]; /* objects, also those without a record */
    bool is_template;                /* what could not be read has "{{" where the problem is */
    const char *last_path;           /* most objects have the file of the one before */
    uint32_t twins;                  /* claims and volumes with such a name */
    struct names texts;              /* many objects have the same namespace, node, ... */
    struct names classes;            /* VolumeAttributesClasses that a claim or a volume names */
    size_t
        too_many_volumes; /* pods and templates with over POD_CLAIMS_MAX: none of these is kept */
    bool is_listed[KIND_NAMED_COUNT]; /* set by the owner: all objects of a live cluster came */
    bool is_cluster;                  /* the objects are, or look like, those of a cluster */
    bool uses_marks;                  /* a pod has the mark */
    bool binds_are_admitted;          /* claimguard's webhook checks Bindings */
};

/* Whether the text has a variable or is encrypted, so that what it says is not known:
 * "{{ .Values.type }}", "${TYPE:-Recreate}", "ENC[...]". */
bool audit_is_variable(struct slice text);

void inventory_init(struct inventory *inventory, struct cluster *cluster);
void inventory_dispose(struct inventory *inventory);

/* Reads an object; path NULL: of a live cluster. Returns 1 if the audit reads its kind, 0 if not.
 * Errors: ERROR_INVALID "FILE:LINE:COL: ...", ERROR_NO_MEMORY. */
int inventory_take(struct inventory *inventory, const struct source_text *object,
                   struct error *err);

/* Removes the records of a kind: a list of a live cluster begins, or begins again. */
void inventory_forget(struct inventory *inventory, enum kind kind);

/* Connects the records, after the last object. */
void inventory_link(struct inventory *inventory);

/* The first record of that kind (struct workload, ...) and name; NULL: there is none. An empty
 * namespace is the inventory's. */
void *inventory_find(const struct inventory *inventory, enum kind kind, struct slice ns,
                     struct slice name);

/* Whether an object of that kind that is not in the input does not exist. */
bool inventory_is_complete(const struct inventory *inventory, enum kind kind);

#endif
