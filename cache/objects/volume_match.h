/*
 * volume_match: whether a claim that is not bound may be bound to a volume, field by field as
 * FindMatchingVolume (k8s.io/component-helpers/storage/volume), by which kube-scheduler and the
 * PersistentVolume controller choose one.
 *
 * The volume's nodeAffinity does not count: which nodes it allows, kube-scheduler checks.
 *
 * Threads: any.
 */
#ifndef CACHE_OBJECTS_VOLUME_MATCH_H
#define CACHE_OBJECTS_VOLUME_MATCH_H

#include "cache/objects/objects.h"

/* What a claim asks of a volume. */
struct volume_wish {
    struct slice ns, name, uid; /* of the claim */
    struct slice storage_class, attributes_class;
    struct slice selector; /* as in label_selector.h */
    int64_t requested;     /* bytes */
    unsigned access_modes; /* enum access_mode */
    bool is_block;
};

/* A volume that is Available, and not being deleted. */
struct volume_offered {
    struct slice storage_class, attributes_class;
    struct slice labels;   /* as in label_selector.h */
    struct slice kept_for; /* VOLUME_KEPT_FOR */
    int64_t capacity;      /* bytes */
    unsigned access_modes;
    bool is_block;
};

/* Whether the claim may be bound to the volume. */
bool volume_matches(const struct volume_offered *volume, const struct volume_wish *wish);

#endif
