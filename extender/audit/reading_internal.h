/* reading_internal: what the files reading*.c share. Only they include it. */
#ifndef EXTENDER_AUDIT_READING_INTERNAL_H
#define EXTENDER_AUDIT_READING_INTERNAL_H

#include "cache/objects/objects.h"
#include "extender/audit/reading.h"

/* Rows of a table of fields. */
#define TEXT(key_, member_) \
    { \
        .key = (key_), .type = PULL_STRING, .offset = offsetof(struct reading, member_) \
    }
/* A reader of several members gets the whole struct. */
#define READ_WHOLE(key_, read_) \
    { \
        .key = (key_), .type = PULL_READ, .offset = 0, .read = (read_) \
    }

/* And which fields it reads of the object, or of an array's objects. */
#define READ_WHOLE_OF(key_, read_, fields_) \
    { \
        .key = (key_), .type = PULL_READ, .offset = 0, .read = (read_), PULL_MEMBERS(fields_) \
    }

enum {
    READING_META_FIELDS = 6,
    READING_PHASE_FIELDS = 1,
    READING_AFFINITY_FIELDS = 2,
    READING_CONDITIONS_FIELDS = 1,
    READING_CLAIM_FIELDS = 1,
    READING_VOLUME_FIELDS = 2,
    READING_STORAGE_FIELDS = 3, /* of each kind: metadata, spec, status */
};
extern const struct pull_field reading_meta[READING_META_FIELDS];
extern const struct pull_field reading_phase[READING_PHASE_FIELDS];
extern const struct pull_field reading_conditions[READING_CONDITIONS_FIELDS];
extern const struct pull_field reading_claim[READING_CLAIM_FIELDS];
extern const struct pull_field reading_volume[READING_VOLUME_FIELDS];
extern const struct pull_field reading_attributes_class[2];
extern const struct pull_field reading_node[READING_STORAGE_FIELDS];

/* A pod's affinity: what it requires of nodes, into requires_nodes and requires_host; and of pods.
 */
extern const struct pull_field reading_affinity[READING_AFFINITY_FIELDS];

/* Sets what cache/objects reads of a claim, a PersistentVolume, a StorageClass, a CSIDriver or a
 * CSINode. */
bool reading_object(struct pull *json, enum kind kind, struct arena *arena, struct reading *out);

static inline bool read_items(struct pull *json, struct arena *arena,
                              const struct pull_field *fields, size_t count,
                              struct pull_items *items)
{
    return pull_field_array(json, PULL_CASE_EXACT, fields, count, arena, items);
}

#endif
