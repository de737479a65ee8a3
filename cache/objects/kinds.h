/*
 * kinds: the kinds of objects that claimguard reads, and the names that the API has for them; and
 * references, which name one object. Everything that names a kind reads this list.
 *
 * Threads: any.
 */
#ifndef CACHE_OBJECTS_KINDS_H
#define CACHE_OBJECTS_KINDS_H

#include "config/base/arena.h"

enum kind {
    /* These are stored. */
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
    KIND_STORAGE_CAPACITY,  /* CSIStorageCapacity: room for new volumes */
    KIND_COUNT,
    KIND_OTHER = KIND_COUNT, /* any kind that is not stored: skipped and counted */

    /* Only commands read these, as texts. */
    KIND_DEPLOYMENT,
    KIND_STATEFUL_SET,
    KIND_DAEMON_SET,
    KIND_REPLICA_SET,
    KIND_REPLICATION_CONTROLLER,
    KIND_JOB,
    KIND_CRON_JOB,
    KIND_AUTOSCALER, /* HorizontalPodAutoscaler */
    KIND_SERVICE,
    KIND_ENDPOINT_SLICE,
    KIND_WEBHOOKS,       /* ValidatingWebhookConfiguration */
    KIND_MARKER,         /* MutatingAdmissionPolicy */
    KIND_MARKER_BINDING, /* MutatingAdmissionPolicyBinding */
    KIND_CLOSER_BINDING, /* ValidatingAdmissionPolicyBinding */
    KIND_LIMIT_RANGE,
    KIND_CONFIG_MAP,
    KIND_EVENT,
    KIND_NAMED_COUNT /* fits the bits of an unsigned */
};

/* The kind of {apiVersion, kind}; KIND_OTHER for any that is not stored, or not in the list above.
 * Versions do not matter. */
enum kind kind_of(struct slice api_version, struct slice kind);
enum kind kind_of_any(struct slice api_version, struct slice kind);

static inline bool kind_is_stored(enum kind kind)
{
    return kind < KIND_COUNT;
}

/* "pods", "persistentvolumeclaims", ...: the resource's name, as in the API and in metrics;
 * "other": KIND_OTHER. */
const char *kind_resource(enum kind kind);

/* "Pod", "Pods" and "v1", ...: the present kind, many of it, and apiVersion. */
const char *kind_text(enum kind kind);
const char *kind_plural(enum kind kind);
const char *kind_api_version(enum kind kind);

/* "/api/v1", "/apis/storage.k8s.io/v1", ...: the path of the resource's API group. */
const char *kind_api_path(enum kind kind);

bool kind_is_namespaced(enum kind kind);

/* "storage.k8s.io/v1" -> "storage.k8s.io"; "v1" -> "". */
struct slice api_group_of(struct slice api_version);

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

/* Whether it is one of them. */
static inline bool object_reference_is_among(const struct object_reference *reference,
                                             const struct object_reference *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (object_reference_equal(&list[i], reference))
            return true;
    return false;
}

/* The size of the strings; and a copy of the reference, with its strings in text, which has room
 * for them. */
static inline size_t object_reference_bytes(const struct object_reference *reference)
{
    return reference->ns.len + reference->name.len + reference->uid.len;
}
struct object_reference object_reference_copy(const struct object_reference *reference, char *text);

/* The same, into the arena. False: the arena is full. */
bool object_reference_copy_in(struct object_reference *out,
                              const struct object_reference *reference, struct arena *arena);

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

#endif
