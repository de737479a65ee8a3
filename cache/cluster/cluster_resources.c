/*
 * Objects of the kinds that have no record type of their own.
 */
#include <stdio.h>
#include <string.h>

#include "cache/cluster/allowance.h"
#include "cache/cluster/cluster_internal.h"

/* ---- shapes ---- */

/* The attribute of a kind that nearly each object has for itself. */
static unsigned own_index(enum kind kind)
{
    return kind == KIND_VOLUME ? (unsigned)VOLUME_CLAIM_NAME : (unsigned)RESOURCE_ATTRIBUTES;
}

static struct slice own_attribute(const struct object *object)
{
    unsigned index = own_index(object->kind);

    return index < RESOURCE_ATTRIBUTES ? object->resource.attributes[index] : SLICE("");
}

static void shape_key_release(struct names *names, const struct resource_shape_key *key)
{
    for (int i = 0; i < RESOURCE_ATTRIBUTES; i++)
        names_release(names, key->attributes[i]);
    names_release(names, key->ns);
}

/* With a reference to each name. False: no memory. */
static bool shape_key_take(struct names *names, const struct object *object,
                           struct resource_shape_key *out)
{
    const struct resource_object *resource = &object->resource;
    bool failed = false;

    *out = (struct resource_shape_key){.own = own_index(object->kind)};
    out->number = resource->number;
    out->capacity = resource->capacity;
    out->ns = names_take(names, resource->meta.ns, &failed);
    for (unsigned i = 0; i < RESOURCE_ATTRIBUTES; i++)
        if (i != out->own)
            out->attributes[i] = names_take(names, resource->attributes[i], &failed);
    if (failed)
        shape_key_release(names, out);
    return !failed;
}

static bool shape_matches(const struct table_record *record, const void *key)
{
    const struct resource_shape *shape = (const struct resource_shape *)(const void *)record;
    return memcmp(&shape->key, key, sizeof shape->key) == 0;
}

static uint32_t shape_hash(const struct resource_shape_key *key)
{
    uint32_t hashes[RESOURCE_ATTRIBUTES + 4] = {name_hash(key->ns), (uint32_t)key->number,
                                                (uint32_t)key->capacity,
                                                (uint32_t)((uint64_t)key->capacity >> 32)};

    for (int i = 0; i < RESOURCE_ATTRIBUTES; i++)
        hashes[i + 4] = name_hash(key->attributes[i]);
    return table_hash((struct slice){(const char *)hashes, sizeof hashes}, 0);
}

/* Whether it is that of volumes which a claim may be bound to: of no other kind, own is the name of
 * a claim. */
static bool is_offer(const struct resource_shape *shape)
{
    return shape->key.own == VOLUME_CLAIM_NAME && shape->key.attributes[VOLUME_OFFER] != NULL;
}

static void link_offer(struct cluster *cluster, struct resource_shape *shape)
{
    if (!is_offer(shape))
        return;
    shape->next_offer = cluster->offers;
    if (shape->next_offer != NULL)
        shape->next_offer->former_offer = shape;
    cluster->offers = shape;
}

static void unlink_offer(struct cluster *cluster, struct resource_shape *shape)
{
    if (!is_offer(shape))
        return;
    *(shape->former_offer == NULL ? &cluster->offers : &shape->former_offer->next_offer) =
        shape->next_offer;
    if (shape->next_offer != NULL)
        shape->next_offer->former_offer = shape->former_offer;
}

static void shape_release(struct cluster *cluster, struct resource_shape *shape)
{
    if (--shape->refs != 0)
        return;
    unlink_offer(cluster, shape);
    table_remove(&cluster->shapes, &shape->record);
    shape_key_release(&cluster->names, &shape->key);
    pool_free(cluster->shapes.pool, shape);
}

/* A new shape takes over the key's references. NULL: no memory. */
static struct resource_shape *shape_new(struct cluster *cluster,
                                        const struct resource_shape_key *key)
{
    struct resource_shape *shape = pool_alloc(cluster->shapes.pool, sizeof *shape);

    if (shape == NULL)
        return NULL;
    shape->key = *key;
    shape->record.hash = shape_hash(key);
    if (table_add(&cluster->shapes, &shape->record)) {
        link_offer(cluster, shape);
        return shape;
    }
    pool_free(cluster->shapes.pool, shape);
    return NULL;
}

/* With a reference; NULL: no memory. */
static struct resource_shape *shape_take(struct cluster *cluster, const struct object *object)
{
    struct resource_shape_key key;

    if (!shape_key_take(&cluster->names, object, &key))
        return NULL;
    struct resource_shape *known =
        (void *)table_find(&cluster->shapes, shape_hash(&key), shape_matches, &key);
    struct resource_shape *shape = known != NULL ? known : shape_new(cluster, &key);
    if (known != NULL || shape == NULL)
        shape_key_release(&cluster->names, &key);
    if (shape != NULL)
        shape->refs++;
    return shape;
}

/* ---- records ---- */

/* Whether it is a name that external-provisioner gives, pvc-UID. */
static bool read_provisioned(struct slice name, struct uid *uid)
{
    struct slice prefix = SLICE("pvc-");

    return name.len == PROVISIONED_NAME_BYTES && memcmp(name.ptr, prefix.ptr, prefix.len) == 0 &&
           uid_parse(uid, (struct slice){name.ptr + prefix.len, UID_TEXT_BYTES});
}

struct slice resource_name(const struct resource *resource, char buffer[PROVISIONED_NAME_BYTES])
{
    char text[UID_TEXT_BYTES];
    struct uid uid;

    if (!resource->is_provisioned)
        return (struct slice){resource->text, resource->name_len};
    memcpy(&uid, resource->text, sizeof uid);
    (void)uid_text(&uid, text);
    memcpy(buffer, "pvc-", sizeof "pvc-" - 1);
    memcpy(buffer + sizeof "pvc-" - 1, text, sizeof text);
    return (struct slice){buffer, PROVISIONED_NAME_BYTES};
}

static bool resource_matches(const struct table_record *record, const void *key)
{
    const struct resource *resource = (const struct resource *)(const void *)record;
    const struct object_key *wanted = key;
    char buffer[PROVISIONED_NAME_BYTES];

    return resource_ns(resource) == wanted->ns &&
           slice_equal(resource_name(resource, buffer), wanted->name);
}

static struct resource *find(const struct cluster *cluster, enum kind kind, struct object_key key)
{
    return (struct resource *)(void *)table_find(&cluster->resources[kind], object_key_hash(key),
                                                 resource_matches, &key);
}

/* What it takes of its namespace's allowance, if it has one. */
static size_t allowance_of(const struct resource *resource)
{
    const struct resource_shape_key *key = &resource_shape_at(resource->shape)->key;
    size_t bytes = sizeof *resource + resource->name_len + resource->own_len;

    for (int i = 0; i < RESOURCE_ATTRIBUTES; i++)
        bytes += name_slice(key->attributes[i]).len;
    return bytes;
}

static void resource_free(struct cluster *cluster, struct resource *resource)
{
    allowance_release(cluster, resource_ns(resource), allowance_of(resource));
    shape_release(cluster, resource_shape_at(resource->shape));
    pool_free(cluster->shapes.pool, resource);
}

/* Not in the table yet. NULL: no memory. */
static struct resource *resource_new(struct cluster *cluster, const struct object *object)
{
    struct slice name = object->meta.name, own = own_attribute(object);
    struct uid uid;
    bool is_provisioned = read_provisioned(name, &uid);

    if (is_provisioned)
        name = (struct slice){(const char *)uid.bytes, sizeof uid.bytes};
    struct resource *resource =
        pool_alloc(cluster->shapes.pool, offsetof(struct resource, text) + name.len + own.len);
    if (resource == NULL)
        return NULL;
    struct resource_shape *shape = shape_take(cluster, object);
    if (shape == NULL) {
        pool_free(cluster->shapes.pool, resource);
        return NULL;
    }
    resource->shape = resource_shape_ref(shape);
    resource->is_provisioned = is_provisioned;
    resource->name_len = name.len & RESOURCE_NAME_MAX;
    resource->own_len = (uint16_t)own.len;
    if (name.len != 0)
        memcpy(resource->text, name.ptr, name.len);
    if (own.len != 0)
        memcpy(resource->text + name.len, own.ptr, own.len);
    resource->version = version_of(object->meta.resource_version);
    resource->record.hash =
        object_key_hash((struct object_key){resource_ns(resource), object->meta.name});
    allowance_charge(cluster, object->kind, shape->key.ns, resource->record.hash,
                     allowance_of(resource));
    return resource;
}

/* ---- objects ---- */

struct resource *resource_find(const struct cluster *cluster, enum kind kind, struct slice ns,
                               struct slice name)
{
    return find(cluster, kind, (struct object_key){names_find(&cluster->names, ns), name});
}

const struct resource *cluster_find_resource(const struct cluster *cluster, enum kind kind,
                                             struct slice name)
{
    return find(cluster, kind, (struct object_key){NULL, name});
}

const struct resource *cluster_find_volume(const struct cluster *cluster, const struct claim *claim)
{
    char name[sizeof "pvc-" + UID_TEXT_BYTES], text[UID_TEXT_BYTES];

    if (claim_volume(claim) != NULL)
        return cluster_find_resource(cluster, KIND_VOLUME, name_slice(claim_volume(claim)));
    if (!claim->is_volume_provisioned)
        return NULL;
    int length = snprintf(name, sizeof name, "pvc-%.*s", SLICE_ARG(uid_text(&claim->uid, text)));
    return cluster_find_resource(cluster, KIND_VOLUME, (struct slice){name, (size_t)length});
}

void resource_remove(struct cluster *cluster, enum kind kind, struct resource *resource)
{
    table_remove(&cluster->resources[kind], &resource->record);
    cluster->counts[kind]--;
    resource_free(cluster, resource);
}

int resource_apply(struct cluster *cluster, const struct object *object, struct error *err)
{
    const struct meta *meta = &object->meta;
    uint32_t number = cluster->lists[object->kind].number;
    struct resource *known = resource_find(cluster, object->kind, meta->ns, meta->name);

    if (known != NULL && cluster_is_stale(cluster, object->kind, meta, known->version)) {
        known->listed = number;
        return 0;
    }
    if (meta->name.len > RESOURCE_NAME_MAX || own_attribute(object).len > RESOURCE_NAME_MAX)
        return error_set(err, ERROR_TOO_BIG, "a name is over %d bytes", RESOURCE_NAME_MAX);
    struct resource *resource = resource_new(cluster, object);
    if (resource == NULL)
        return error_no_memory(err);
    resource->listed = number;
    if (!table_add(&cluster->resources[object->kind], &resource->record)) {
        resource_free(cluster, resource);
        return error_no_memory(err);
    }
    cluster->counts[object->kind]++;
    if (known != NULL)
        resource_remove(cluster, object->kind, known);
    return 0;
}

void resource_delete(struct cluster *cluster, const struct object *object)
{
    struct resource *known =
        resource_find(cluster, object->kind, object->meta.ns, object->meta.name);

    if (known != NULL && !cluster_is_stale(cluster, object->kind, &object->meta, known->version))
        resource_remove(cluster, object->kind, known);
}

void resources_dispose(struct cluster *cluster)
{
    for (int kind = 0; kind < KIND_COUNT; kind++)
        table_free_records(&cluster->resources[kind]);
    table_free_records(&cluster->shapes);
    cluster->offers = NULL;
}
