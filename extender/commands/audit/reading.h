/*
 * reading: decodes the objects that the audit reads, by tables of fields, into their records.
 *
 * Ownership: texts point into the JSON text or into the arena. Threads: any.
 */
#ifndef EXTENDER_COMMANDS_AUDIT_READING_H
#define EXTENDER_COMMANDS_AUDIT_READING_H

#include "cache/objects/details.h"
#include "extender/commands/audit/inventory.h"

#define AUDIT_IGNORE_ANNOTATION "claimguard.io/audit-ignore"

struct volume_reading {
    struct slice name, claim, driver; /* at most one of claim and driver */
    bool is_ephemeral;
};

/* A record while it is read, and what it is made of. What an object does not have stays zero. */
struct reading {
    union {
        struct workload workload; /* the biggest one first: all of the union is zeroed */
        struct pod_record pod;
        struct record record;
        struct claim_record claim;
        struct node_record node;
        struct volume_record volume;
        struct class_record class;
        struct driver_record driver;
    };
    struct slice ignore, uid, deletion_timestamp, phase;
    struct placing placing;
    struct owner controller;                    /* of an autoscaler: its target */
    struct pull_items owners;                   /* struct owner */
    struct pull_items volumes;                  /* struct volume_reading */
    struct pull_items containers;               /* whether they are marked */
    struct pull_items node_terms;               /* struct node_term */
    struct pull_items pod_terms;                /* the topologies of required affinities to pods */
    struct pull_items claim_templates;          /* struct claim_template */
    struct pull_items conditions;               /* struct condition */
    int64_t replicas, parallelism, completions; /* -1: not given */
    struct slice surge, unavailable;            /* JSON */
    struct slice concurrency_policy;
    struct slice is_default, created; /* of a StorageClass */
    struct object stored; /* of a kind that the cluster has; not set of a pod, and of an object
                             without a name (generateName) */
};

/* Whether the audit reads objects of that kind. */
bool reading_has(enum kind kind);

/* The fields that are read of a kind beside those of cache/objects; {NULL, 0}: none. */
struct pull_table reading_table(enum kind kind);

/* Reads the object. False: a problem, in json. */
bool reading_read(struct pull *json, enum kind kind, struct arena *arena, struct reading *out);

#endif
