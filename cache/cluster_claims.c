#include <stdlib.h>

#include "cache/cluster_internal.h"

static bool claim_matches(const struct table_record *record, const void *key)
{
    const struct claim *claim = (const struct claim *)(const void *)record;
    const struct object_key *wanted = key;
    return claim->namespace == wanted->namespace && slice_equal(claim_name(claim), wanted->name);
}

static struct claim *find(const struct cluster *cluster, struct object_key key)
{
    return (struct claim *)(void *)table_find(&cluster->claims, object_key_hash(key), claim_matches,
                                              &key);
}

static struct claim *find_by_name(const struct cluster *cluster, struct slice namespace,
                                  struct slice name)
{
    struct name *space = names_find(&cluster->names, namespace);
    return space == NULL ? NULL : find(cluster, (struct object_key){space, name});
}

const struct claim *cluster_find_claim(const struct cluster *cluster, struct slice namespace,
                                       struct slice name)
{
    const struct claim *claim = find_by_name(cluster, namespace, name);
    return claim != NULL && claim->exists ? claim : NULL;
}

struct claim *claim_obtain(struct cluster *cluster, struct name *namespace, struct slice name)
{
    struct object_key key = {namespace, name};
    struct claim *claim = find(cluster, key);

    if (claim != NULL || name.len > UINT16_MAX)
        return claim;
    claim = calloc(1, sizeof *claim + name.len);
    if (claim == NULL)
        return NULL;
    claim->record.hash = object_key_hash(key);
    claim->name_len = (uint16_t)name.len;
    if (name.len != 0)
        memcpy(claim->name, name.ptr, name.len);
    if (!table_add(&cluster->claims, &claim->record)) {
        free(claim);
        return NULL;
    }
    claim->namespace = namespace;
    if (namespace != NULL)
    namespace->refs++;
    return claim;
}

static bool is_violated(const struct claim *claim)
{
    return claim->exists && claim->is_exclusive && claim->refs > 1;
}

void claim_add_refs(struct cluster *cluster, struct claim *claim, int change)
{
    cluster->violations -= is_violated(claim);
    claim->refs = (uint32_t)((int64_t)claim->refs + change);
    cluster->violations += is_violated(claim);
}

/* What a PersistentVolumeClaim object says, ready to be put on the record. */
struct claim_facts {
    struct name *storage_class, *volume_attributes_class, *volume, *owner_uid;
    struct uid uid;
};

static void release_facts(struct names *names, const struct claim_facts *facts)
{
    names_release(names, facts->storage_class);
    names_release(names, facts->volume_attributes_class);
    names_release(names, facts->volume);
    names_release(names, facts->owner_uid);
    uid_release(names, facts->uid);
}

static struct claim_facts facts_of(const struct claim *claim)
{
    return (struct claim_facts){claim->storage_class, claim->volume_attributes_class, claim->volume,
                                claim->owner_uid, claim->uid};
}

/* Whether the volume has the name that external-provisioner gives: it need not be stored then. */
static bool is_provisioned_name(const struct claim_object *object)
{
    struct slice prefix = SLICE("pvc-");
    return object->meta.uid.len != 0 && object->volume.len == prefix.len + object->meta.uid.len &&
           memcmp(object->volume.ptr, prefix.ptr, prefix.len) == 0 &&
           slice_ends_with(object->volume, object->meta.uid);
}

static bool take_facts(struct names *names, const struct claim_object *object,
                       struct claim_facts *facts)
{
    bool failed = false;
    struct slice volume = is_provisioned_name(object) ? (struct slice){NULL, 0} : object->volume;

    facts->storage_class = names_take(names, object->storage_class, &failed);
    facts->volume_attributes_class = names_take(names, object->volume_attributes_class, &failed);
    facts->volume = names_take(names, volume, &failed);
    facts->owner_uid = names_take(names, object->meta.owner_uid, &failed);
    facts->uid = uid_take(names, object->meta.uid, &failed);
    if (failed)
        release_facts(names, facts);
    return !failed;
}

static enum claim_phase phase_of(struct slice phase)
{
    if (slice_equal(phase, SLICE("Bound")))
        return CLAIM_BOUND;
    if (slice_equal(phase, SLICE("Pending")))
        return CLAIM_PENDING;
    return slice_equal(phase, SLICE("Lost")) ? CLAIM_LOST : CLAIM_PHASE_UNKNOWN;
}

/* Replaces all that the object says on the record; the pods that name the claim stay linked. */
static void put_facts(struct cluster *cluster, struct claim *claim,
                      const struct claim_object *object, const struct claim_facts *facts)
{
    struct claim_facts old = facts_of(claim);

    release_facts(&cluster->names, &old);
    cluster->violations -= is_violated(claim);
    cluster->counts[KIND_CLAIM] += !claim->exists;
    claim->exists = true;
    claim->is_exclusive = object->is_exclusive;
    claim->is_deleting = object->meta.deletion_timestamp.len != 0;
    claim->is_volume_provisioned = is_provisioned_name(object);
    claim->phase = (uint8_t)phase_of(object->phase);
    claim->version = version_of(object->meta.resource_version);
    claim->storage_class = facts->storage_class;
    claim->volume_attributes_class = facts->volume_attributes_class;
    claim->volume = facts->volume;
    claim->owner_uid = facts->owner_uid;
    claim->uid = facts->uid;
    cluster->violations += is_violated(claim);
}

int claim_apply(struct cluster *cluster, const struct claim_object *object, struct error *err)
{
    bool failed = false;
    struct claim_facts facts;

    if (object->meta.name.len > UINT16_MAX)
        return error_set(err, ERROR_TOO_BIG, "a claim's name is over %d bytes", UINT16_MAX);
    struct name *namespace = names_take(&cluster->names, object->meta.namespace, &failed);
    struct claim *claim = failed ? NULL : claim_obtain(cluster, namespace, object->meta.name);
    names_release(&cluster->names, namespace); /* the record has its own reference */
    if (claim == NULL)
        return error_no_memory(err);
    if (claim->exists && is_stale(version_of(object->meta.resource_version), claim->version))
        return 0;
    if (!take_facts(&cluster->names, object, &facts)) {
        claim_settle(cluster, claim);
        return error_no_memory(err);
    }
    put_facts(cluster, claim, object, &facts);
    return 0;
}

void claim_settle(struct cluster *cluster, struct claim *claim)
{
    if (claim->exists || claim->named != 0)
        return;
    table_remove(&cluster->claims, &claim->record);
    names_release(&cluster->names, claim->namespace);
    free(claim);
}

void claim_delete(struct cluster *cluster, const struct meta *meta)
{
    struct claim *claim = find_by_name(cluster, meta->namespace, meta->name);

    if (claim == NULL || !claim->exists)
        return;
    if (!uid_is(&claim->uid, meta->uid) &&
        is_stale(version_of(meta->resource_version), claim->version))
        return; /* the deletion of an earlier claim of this name */
    struct claim_facts facts = facts_of(claim);
    release_facts(&cluster->names, &facts);
    cluster->violations -= is_violated(claim);
    cluster->counts[KIND_CLAIM]--;
    claim->exists = claim->is_exclusive = claim->is_deleting = claim->is_volume_provisioned = false;
    claim->storage_class = claim->volume_attributes_class = claim->volume = claim->owner_uid = NULL;
    claim->uid = (struct uid){{0}};
    claim->phase = CLAIM_PHASE_UNKNOWN;
    claim->version = 0;
    claim_settle(cluster, claim);
}

void claims_dispose(struct cluster *cluster)
{
    uint32_t cursor = 0;

    for (struct table_record *record; (record = table_next(&cluster->claims, &cursor)) != NULL;)
        free(record); /* the names go all at once */
    table_dispose(&cluster->claims);
}
