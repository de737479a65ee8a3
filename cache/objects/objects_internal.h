/* objects_internal: what the tables and readers of cache/objects share. Only they include it. */
#ifndef CACHE_OBJECTS_OBJECTS_INTERNAL_H
#define CACHE_OBJECTS_OBJECTS_INTERNAL_H

#include "cache/objects/details.h"

/* The tables of a kind: of what decisions need (objects.h), and of what people want to know
 * (details.h). */
struct object_tables {
    struct pull_table core, details;
};
extern const struct object_tables pod_tables, node_tables, claim_tables, volume_tables,
    storage_class_tables, csi_driver_tables, csi_node_tables, volume_attributes_class_tables,
    volume_attachment_tables, storage_capacity_tables, workload_tables, autoscaler_tables;

/* Of a kind; NULL: nothing is read of its objects. */
const struct object_tables *object_tables(enum kind kind);

/* ---- rows of tables ---- */

#define TABLE(fields_) \
    { \
        (fields_), sizeof(fields_) / sizeof *(fields_) \
    }

#define ATTRIBUTE(key_, index_) \
    { \
        .key = (key_), .type = PULL_NAME, \
        .offset = offsetof(struct resource_object, attributes[index_]) \
    }

/* Of the metadata of each kind; the struct begins with a struct meta. */
#define META_ROWS(type_of_uid_) \
    PULL_FIELD("name", PULL_NAME, meta, name), PULL_FIELD("uid", type_of_uid_, meta, uid), \
        PULL_FIELD("resourceVersion", PULL_NAME, meta, resource_version), \
        PULL_FIELD("deletionTimestamp", PULL_NAME, meta, deletion_timestamp)
enum { META_FIELDS = 6 };
extern const struct pull_field meta_fields[META_FIELDS];

/* Fields of struct owner and struct condition. A table reads some that are side by side. */
enum { OWNER_UID, OWNER_KIND, OWNER_NAME, OWNER_CONTROLLER, OWNER_API_VERSION, OWNER_FIELDS };
extern const struct pull_field owner_fields[OWNER_FIELDS];
/* The Pod that controls the object, as metav1.IsControlledBy: into a struct pod_owner. */
bool read_pod_owner(struct pull *json, struct arena *arena, void *field);
enum { POD_OWNER_FIELDS = OWNER_CONTROLLER + 1 };
#define POD_OWNER_ROW \
    { \
        .key = "ownerReferences", .type = PULL_READ, .offset = offsetof(struct meta, owner), \
        .read = read_pod_owner, .members = owner_fields, .count = POD_OWNER_FIELDS \
    }

enum {
    CONDITION_MESSAGE,
    CONDITION_TYPE,
    CONDITION_STATUS,
    CONDITION_REASON,
    CONDITION_CHANGED,
    CONDITION_FIELDS
};
extern const struct pull_field condition_fields[CONDITION_FIELDS];

/* An array of items, of which the fields from `first` to `last` are read. */
#define SOME_OF(key_, struct_, member_, item_, fields_, first_, last_) \
    { \
        .key = (key_), .type = PULL_ITEMS, .offset = offsetof(struct struct_, member_), \
        .members = &(fields_)[first_], .count = (last_) - (first_) + 1, \
        .size = sizeof(struct item_) \
    }

/* A reader into an int64_t. What is no quantity counts as 0; null changes nothing. The API server
 * writes strings; Go also reads numbers, as a manifest may have them. */
bool read_quantity(struct pull *json, struct arena *arena, void *field);

/* ---- after reading ---- */

/* Make attributes and numbers of what was read: of a volume; of a kind of objects_storage.c. False:
 * a problem. */
bool volume_finish(struct pull *json, struct arena *arena, struct resource_object *volume);
bool storage_finish(struct pull *json, enum kind kind, struct arena *arena,
                    struct resource_object *resource);

/* ---- of a pod, while it is read ---- */

/* A volumeMounts entry of a container. */
struct container_mount {
    struct slice volume, sub_path, sub_path_expr;
};

struct container {
    struct pull_items mounts; /* struct container_mount */
    bool has_selinux;
};

/* Marks the volumes: by the two annotations, and by what the containers mount. False: no memory. */
bool mounts_mark(struct pod_mounts *mounts, struct slice deferred_for,
                 const struct container *containers, size_t container_count, struct arena *arena);

static inline void default_namespace(struct meta *meta)
{
    if (meta->ns.len == 0)
        meta->ns = SLICE("default");
}

#endif
