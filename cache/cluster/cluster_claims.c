#include <stdlib.h>

#include "cache/cluster/cluster_internal.h"

static bool claim_matches(const struct table_record *record, const void *key)
{
    const struct claim *claim = (const struct claim *)(const void *)record;
    const struct object_key *wanted = key;
    return claim->ns == wanted->ns && slice_equal(claim_name(claim), wanted->name);
}

static struct claim *find(const struct cluster *cluster, struct object_key key)
{
    return (struct claim *)(void *)table_find(&cluster->claims, object_key_hash(key), claim_matches,
                                              &key);
}

struct claim *claim_find(const struct cluster *cluster, struct slice ns, struct slice name)
{
    struct name *space = names_find(&cluster->names, ns);
    return space == NULL ? NULL : find(cluster, (struct object_key){space, name});
}

const struct claim *cluster_find_claim(const struct cluster *cluster, struct slice ns,
                                       struct slice name)
{
    const struct claim *claim = claim_find(cluster, ns, name);
    return claim != NULL && claim->exists ? claim : NULL;
}

struct claim *claim_get_or_create(struct cluster *cluster, struct name *ns, struct slice name)
{
    struct object_key key = {ns, name};
    struct claim *claim = find(cluster, key);

    if (claim != NULL || name.len > UINT16_MAX)
        return claim;
    claim = pool_alloc(cluster->claims.pool, sizeof *claim + name.len);
    if (claim == NULL)
        return NULL;
    claim->record.hash = object_key_hash(key);
    claim->name_len = (uint16_t)name.len;
    if (name.len != 0)
        memcpy(claim->name, name.ptr, name.len);
    if (!table_add(&cluster->claims, &claim->record)) {
        pool_free(cluster->claims.pool, claim);
        return NULL;
    }
    claim->ns = ns;
    if (ns != NULL)
        ns->refs++;
    return claim;
}

void claim_add_refs(struct cluster *cluster, struct claim *claim, int change)
{
    cluster->violations -= claim_is_violated(claim);
    claim->refs = (uint32_t)((int64_t)claim->refs + change);
    cluster->violations += claim_is_violated(claim);
}

/* Names and UID of a PersistentVolumeClaim, with a reference each, for its record. */
struct claim_facts {
    struct name *storage_class, *volume_attributes_class, *volume, *owner_uid;
    struct modification *modification;
    struct uid uid;
};

static void release_modification(struct names *names, struct modification *modification)
{
    if (modification == NULL)
        return;
    names_release(names, modification->current);
    names_release(names, modification->target);
    names_release(names, modification->status);
    pool_free(names->table.pool, modification);
}

static void release_facts(struct names *names, const struct claim_facts *facts)
{
    release_modification(names, facts->modification);
    names_release(names, facts->storage_class);
    names_release(names, facts->volume_attributes_class);
    names_release(names, facts->volume);
    names_release(names, facts->owner_uid);
    uid_release(names, facts->uid);
}

static struct claim_facts facts_of(const struct claim *claim)
{
    return (struct claim_facts){claim->storage_class, claim->volume_attributes_class,
                                claim->volume,        claim->owner_uid,
                                claim->modification,  claim->uid};
}

/* Whether the volume has the name that external-provisioner gives (pvc-<uid of the claim>). Such a
 * name is not stored. */
static bool is_provisioned_name(const struct claim_object *object)
{
    struct slice prefix = SLICE("pvc-");
    return object->meta.uid.len != 0 && object->volume.len == prefix.len + object->meta.uid.len &&
           memcmp(object->volume.ptr, prefix.ptr, prefix.len) == 0 &&
           slice_ends_with(object->volume, object->meta.uid);
}

/* Stored only while it says something: a claim whose class is in force, or which has none, costs
 * nothing. */
static struct modification *take_modification(struct names *names,
                                              const struct claim_object *object, bool *failed)
{
    struct modification *modification;

    if (object->modify_status.len == 0 && object->target_class.len == 0 &&
        slice_equal(object->current_class, object->volume_attributes_class))
        return NULL;
    modification = pool_alloc(names->table.pool, sizeof *modification);
    if (modification == NULL) {
        *failed = true;
        return NULL;
    }
    modification->current = names_take(names, object->current_class, failed);
    modification->target = names_take(names, object->target_class, failed);
    modification->status = names_take(names, object->modify_status, failed);
    return modification;
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
    facts->modification = take_modification(names, object, &failed);
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

/* ---- counts ---- */

static struct claim_tally_key tally_key(const struct claim *claim)
{
    return (struct claim_tally_key){claim->ns, claim->storage_class, claim->volume_attributes_class,
                                    claim->phase};
}

static bool tally_matches(const struct table_record *record, const void *key)
{
    const struct claim_tally *tally = (const struct claim_tally *)(const void *)record;
    return memcmp(&tally->key, key, sizeof tally->key) == 0;
}

static uint32_t tally_hash(const struct claim_tally_key *key)
{
    const uint32_t hashes[] = {name_hash(key->ns), name_hash(key->storage_class),
                               name_hash(key->volume_attributes_class), (uint32_t)key->phase};
    return table_hash((struct slice){(const char *)hashes, sizeof hashes}, 0);
}

static struct claim_tally *find_tally(const struct cluster *cluster,
                                      const struct claim_tally_key *key)
{
    return (struct claim_tally *)(void *)table_find(&cluster->tallies, tally_hash(key),
                                                    tally_matches, key);
}

/* The tally of that key; NULL: no memory. */
static struct claim_tally *tally_get_or_create(struct cluster *cluster,
                                               const struct claim_tally_key *key)
{
    struct claim_tally *tally = find_tally(cluster, key);

    if (tally != NULL)
        return tally;
    tally = pool_alloc(cluster->tallies.pool, sizeof *tally);
    if (tally == NULL)
        return NULL;
    tally->key = *key;
    tally->record.hash = tally_hash(key);
    if (table_add(&cluster->tallies, &tally->record))
        return tally;
    pool_free(cluster->tallies.pool, tally);
    return NULL;
}

/* Removes the claim from its tally, before the claim changes. An empty tally is freed: its names
 * are borrowed from the claims. */
static void tally_leave(struct cluster *cluster, const struct claim *claim)
{
    struct claim_tally_key key = tally_key(claim);
    struct claim_tally *tally = find_tally(cluster, &key);

    if (tally == NULL || --tally->count != 0)
        return;
    table_remove(&cluster->tallies, &tally->record);
    pool_free(cluster->tallies.pool, tally);
}

/* Writes the object on the record. Links of pods to the claim stay. */
static void put_facts(struct cluster *cluster, struct claim *claim,
                      const struct claim_object *object, const struct claim_facts *facts,
                      struct claim_tally *tally)
{
    struct claim_facts old = facts_of(claim);

    tally->count++; /* first, because the claim may leave the same tally */
    if (claim->exists)
        tally_leave(cluster, claim);
    release_facts(&cluster->names, &old);
    cluster->violations -= claim_is_violated(claim);
    cluster->counts[KIND_CLAIM] += !claim->exists;
    claim->exists = true;
    claim->listed = cluster->lists[KIND_CLAIM].number;
    claim->is_rwop = object->is_rwop;
    claim->is_block = slice_equal(object->volume_mode, SLICE("Block"));
    claim->is_deleting = object->meta.deletion_timestamp.len != 0;
    claim->is_volume_provisioned = is_provisioned_name(object);
    claim->phase = (uint8_t)phase_of(object->phase);
    claim->version = version_of(object->meta.resource_version);
    claim->storage_class = facts->storage_class;
    claim->volume_attributes_class = facts->volume_attributes_class;
    claim->volume = facts->volume;
    claim->owner_uid = facts->owner_uid;
    claim->modification = facts->modification;
    claim->uid = facts->uid;
    cluster->violations += claim_is_violated(claim);
}

int claim_apply(struct cluster *cluster, const struct claim_object *object, struct error *err)
{
    bool failed = false;
    struct claim_facts facts;

    if (object->meta.name.len > UINT16_MAX)
        return error_set(err, ERROR_TOO_BIG, "a claim's name is over %d bytes", UINT16_MAX);
    struct name *ns = names_take(&cluster->names, object->meta.ns, &failed);
    struct claim *claim = failed ? NULL : claim_get_or_create(cluster, ns, object->meta.name);
    names_release(&cluster->names, ns); /* the record has its own reference */
    if (claim == NULL)
        return error_no_memory(err);
    if (claim->exists && cluster_is_stale(cluster, KIND_CLAIM, &object->meta, claim->version)) {
        claim->listed = cluster->lists[KIND_CLAIM].number;
        return 0;
    }
    if (!take_facts(&cluster->names, object, &facts)) {
        claim_free_if_unused(cluster, claim);
        return error_no_memory(err);
    }
    struct claim_tally_key key = {claim->ns, facts.storage_class, facts.volume_attributes_class,
                                  phase_of(object->phase)};
    struct claim_tally *tally = tally_get_or_create(cluster, &key);
    if (tally == NULL) {
        release_facts(&cluster->names, &facts);
        claim_free_if_unused(cluster, claim);
        return error_no_memory(err);
    }
    put_facts(cluster, claim, object, &facts, tally);
    return 0;
}

void claim_free_if_unused(struct cluster *cluster, struct claim *claim)
{
    if (claim->exists || claim->named != 0)
        return;
    table_remove(&cluster->claims, &claim->record);
    names_release(&cluster->names, claim->ns);
    pool_free(cluster->claims.pool, claim);
}

void claim_mark_deleted(struct cluster *cluster, struct claim *claim)
{
    struct claim_facts facts = facts_of(claim);

    tally_leave(cluster, claim);
    release_facts(&cluster->names, &facts);
    cluster->violations -= claim_is_violated(claim);
    cluster->counts[KIND_CLAIM]--;
    claim->exists = claim->is_rwop = claim->is_deleting = claim->is_volume_provisioned = false;
    claim->is_block = false;
    claim->storage_class = claim->volume_attributes_class = claim->volume = claim->owner_uid = NULL;
    claim->modification = NULL;
    claim->uid = (struct uid){{0}};
    claim->phase = CLAIM_PHASE_UNKNOWN;
    claim->version = 0;
    claim_free_if_unused(cluster, claim);
}

void claim_delete(struct cluster *cluster, const struct meta *meta)
{
    struct claim *claim = claim_find(cluster, meta->ns, meta->name);

    if (claim == NULL || !claim->exists)
        return;
    /* else it is the late deletion of an earlier claim with the same name */
    if (uid_is(&claim->uid, meta->uid) ||
        (meta->resource_version.len != 0 &&
         !cluster_is_stale(cluster, KIND_CLAIM, meta, claim->version)))
        claim_mark_deleted(cluster, claim);
}

void claims_dispose(struct cluster *cluster)
{
    struct table_walk walk = {.at = 0};

    for (struct claim *claim; (claim = cluster_next_claim(cluster, &walk)) != NULL;)
        release_modification(&cluster->names, claim->modification);
    table_free_records(&cluster->claims);
    table_free_records(&cluster->tallies);
}
