/* objects_internal: what the files objects*.c share. Only they include it. */
#ifndef CACHE_OBJECTS_OBJECTS_INTERNAL_H
#define CACHE_OBJECTS_OBJECTS_INTERNAL_H

#include "cache/json/pull_fields.h"
#include "cache/objects/objects.h"

/* A row of a table of fields. */
#define ATTRIBUTE(key_, index_) \
    { \
        .key = (key_), .type = PULL_NAME, \
        .offset = offsetof(struct resource_object, attributes[index_]) \
    }

/* The fields that are read of each kind. */
enum {
    META_FIELDS = 6,
    POD_FIELDS = 3,
    POD_CONDITION_FIELDS = 4,
    NODE_FIELDS = 3,
    VOLUME_FIELDS = 3,
    STORAGE_CLASS_FIELDS = 2,
    CSI_DRIVER_FIELDS = 2,
    CSI_NODE_FIELDS = 2,
    VOLUME_ATTRIBUTES_CLASS_FIELDS = 2,
    VOLUME_ATTACHMENT_FIELDS = 3,
};
extern const struct pull_field meta_fields[META_FIELDS];
extern const struct pull_field pod_fields[POD_FIELDS];
extern const struct pull_field pod_condition_fields[POD_CONDITION_FIELDS];
extern const struct pull_field node_fields[NODE_FIELDS];
extern const struct pull_field volume_fields[VOLUME_FIELDS];
extern const struct pull_field storage_class_fields[STORAGE_CLASS_FIELDS];
extern const struct pull_field csi_driver_fields[CSI_DRIVER_FIELDS];
extern const struct pull_field csi_node_fields[CSI_NODE_FIELDS];
extern const struct pull_field volume_attributes_class_fields[VOLUME_ATTRIBUTES_CLASS_FIELDS];
extern const struct pull_field volume_attachment_fields[VOLUME_ATTACHMENT_FIELDS];

/* The fields of a kind that object_read reads. */
struct pull_table objects_table(enum kind kind);

/* Make attributes of what was read. False: a problem. */
bool volume_finish(struct pull *json, struct arena *arena, struct resource_object *volume);
bool csi_node_finish(struct pull *json, struct arena *arena, struct resource_object *node);

/* Reads an array of strings into struct pull_items of struct slice. */
bool read_strings(struct pull *json, struct arena *arena, void *field);

/* Reads ownerReferences into struct pull_items of struct owner (details.h). */
bool details_read_owners(struct pull *json, struct arena *arena, void *field);

/* Reads access modes into an unsigned: enum access_mode. */
bool read_access_modes(struct pull *json, struct arena *arena, void *field);

/* Reads a quantity, a string or a number, into an int64_t; what is none counts as 0. */
bool read_quantity(struct pull *json, struct arena *arena, void *field);

/* ---- of a pod, while it is read ---- */

/* A volumeMounts entry of a container. */
struct container_mount {
    struct slice volume, sub_path, sub_path_expr;
};

struct container {
    struct container_mount *mounts;
    size_t mount_count;
    bool has_selinux;
};

/* Marks the volumes: by the two annotations, and by what the containers mount. False: no memory. */
bool pod_mark_volumes(struct pod_mounts *mounts, struct slice deferred_for,
                      const struct container *containers, size_t container_count,
                      struct arena *arena);

/* Sets a bool, pod_object.is_refused_unnamed, by a pod's status.conditions. */
bool read_pod_conditions(struct pull *json, struct arena *arena, void *field);

static inline void default_namespace(struct meta *meta)
{
    if (meta->ns.len == 0)
        meta->ns = SLICE("default");
}

#endif
