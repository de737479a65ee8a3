/* reading_internal: what the files reading*.c share. Only they include it. */
#ifndef EXTENDER_AUDIT_READING_INTERNAL_H
#define EXTENDER_AUDIT_READING_INTERNAL_H

#include "extender/audit/reading.h"

/* Rows of a table of fields. */
#define FIELD(key_, type_, struct_, member_) \
    { \
        .key = (key_), .type = (type_), .offset = offsetof(struct struct_, member_) \
    }
#define TEXT(key_, member_) \
    { \
        .key = (key_), .type = PULL_STRING, .offset = offsetof(struct reading, member_) \
    }
#define OBJECT(key_, fields_) \
    { \
        .key = (key_), .type = PULL_OBJECT, .members = (fields_), \
        .count = sizeof(fields_) / sizeof *(fields_) \
    }
#define READ(key_, member_, read_) \
    { \
        .key = (key_), .type = PULL_READ, .offset = offsetof(struct reading, member_), \
        .read = (read_) \
    }
/* A reader of several members gets the whole struct. */
#define READ_WHOLE(key_, read_) \
    { \
        .key = (key_), .type = PULL_READ, .offset = 0, .read = (read_) \
    }

enum {
    READING_META_FIELDS = 6,
    READING_PHASE_FIELDS = 1,
    READING_CONDITIONS_FIELDS = 1,
    READING_STORAGE_FIELDS = 3, /* of each kind: metadata, spec, status */
};
extern const struct pull_field reading_meta[READING_META_FIELDS];
extern const struct pull_field reading_phase[READING_PHASE_FIELDS];
extern const struct pull_field reading_conditions[READING_CONDITIONS_FIELDS];
extern const struct pull_field reading_claim[READING_STORAGE_FIELDS];
extern const struct pull_field reading_volume[READING_STORAGE_FIELDS];
extern const struct pull_field reading_storage_class[2];
extern const struct pull_field reading_attributes_class[2];
extern const struct pull_field reading_csi_driver[2];
extern const struct pull_field reading_csi_node[2];
extern const struct pull_field reading_node[READING_STORAGE_FIELDS];

static inline bool read_items(struct pull *json, struct arena *arena,
                              const struct pull_field *fields, size_t count,
                              struct pull_items *items)
{
    return pull_field_array(json, PULL_CASE_EXACT, fields, count, arena, items);
}

#endif
