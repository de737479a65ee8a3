/*
 * reading: decodes the objects that the audit reads, by tables of fields.
 *
 * Ownership: texts point into the JSON text or into the arena. Threads: any.
 */
#ifndef EXTENDER_AUDIT_READING_H
#define EXTENDER_AUDIT_READING_H

#include "cache/json/pull_fields.h"
#include "extender/audit/records.h"

#define AUDIT_IGNORE_ANNOTATION "claimguard.io/audit-ignore"
#define AUDIT_MARK              "claimguard.io/claims"

struct volume_reading {
    struct slice name, claim, driver; /* at most one of claim and driver */
    bool is_ephemeral;
};

/* Fields of a kind that the object does not have stay zero. */
struct reading {
    struct slice ns, name, uid, deletion_timestamp, ignore;
    struct slice owner_version, owner_kind, owner; /* the controller; its apiVersion */

    /* of a pod, or of a template */
    struct pull_items volumes; /* struct volume_reading */
    struct slice node, scheduler, selector, runtime_class, phase;
    bool requires_nodes; /* a required node affinity */
    bool requires_host;  /* one that allows one node, by its name */
    bool requires_pods;  /* a required affinity to pods on the same node */
    bool is_marked;

    /* of workloads */
    int64_t replicas, least_replicas, parallelism, completions; /* -1: not given */
    struct slice strategy, surge, unavailable;                  /* the last two as JSON */
    struct slice concurrency_policy;
    struct pull_items claim_templates; /* struct slice: names */
    struct slice target_version, target_kind, target;
    bool is_finished, is_suspended;

    /* of claims and volumes */
    uint8_t modes;
    struct slice storage_class, volume, class, current_class, target_class, modify_status;
    struct slice driver, claim_ns, claim;
    struct volume_wish wish; /* of a claim: without its names and classes */
    struct volume_offered offered;
    bool is_available;        /* a volume, and not being deleted: offered is set */
    bool is_for_one_node;     /* a volume whose access modes are ReadWriteOnce alone */
    bool is_attached_in_tree; /* iSCSI, Fibre Channel: attached, without a CSI driver */

    /* of the other kinds */
    struct slice text;
    bool does_not_attach, is_avoided;
};

/* The kind of an object that is read; RECORD_KIND_COUNT: none. */
enum record_kind reading_kind(struct slice api_version, struct slice kind);

/* The fields that are read of a kind beside those of cache/objects; {NULL, 0}: none. */
struct pull_table reading_table(enum kind kind);

/* Reads the object. False: a problem, in json. */
bool reading_read(struct pull *json, enum record_kind kind, struct arena *arena,
                  struct reading *out);

#endif
