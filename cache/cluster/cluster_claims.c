#include "cache/cluster/allowance.h"
#include "cache/cluster/cluster_internal.h"
#include "cache/cluster/reservation.h"

static bool claim_matches(const void *record, const void *key)
{
    const struct claim *claim = record;
    const struct object_key *wanted = key;
    return name_at(claim->ns) == wanted->ns && slice_equal(claim_name(claim), wanted->name);
}

static struct claim *find(const struct cluster *cluster, struct object_key key)
{
    return table_find(&cluster->claims, object_key_hash(key), claim_matches, &key);
}

struct claim *cluster_find_named_claim(const struct cluster *cluster, struct slice ns,
                                       struct slice name)
{
    struct name *space = names_find(&cluster->names, ns);
    return space == NULL ? NULL : find(cluster, (struct object_key){space, name});
}

const struct claim *cluster_find_claim(const struct cluster *cluster, struct slice ns,
                                       struct slice name)
{
    const struct claim *claim = cluster_find_named_claim(cluster, ns, name);
    return claim != NULL && claim->exists ? claim : NULL;
}

struct claim *claim_get_or_create(struct cluster *cluster, struct name *ns, struct slice name)
{
    struct object_key key = {ns, name};
    struct claim *claim = find(cluster, key);

    if (claim != NULL || name.len > UINT16_MAX)
        return claim;
    claim = table_make(&cluster->claims, object_key_hash(key), CLAIM_BYTES + name.len);
    if (claim == NULL)
        return NULL;
    claim->name_len = (uint16_t)name.len;
    if (name.len != 0)
        memcpy(claim->name, name.ptr, name.len);
    claim->ns = name_ref(ns);
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

/* What a PersistentVolumeClaim's record owns. */
struct claim_facts {
    struct claim_tally *tally; /* which counts the claim */
    struct claim_rare *rare;
    struct uid uid;
};

/* Whether the volume has the name that external-provisioner gives (pvc-<uid of the claim>). Such a
 * name is not stored. A UID that is no UUID (of a hand-written snapshot) may have any length. */
static bool is_provisioned_name(const struct claim_object *object)
{
    struct slice prefix = SLICE("pvc-");

    return object->meta.uid.len == UID_TEXT_BYTES && object->volume.len == PROVISIONED_NAME_BYTES &&
           memcmp(object->volume.ptr, prefix.ptr, prefix.len) == 0 &&
           slice_ends_with(object->volume, object->meta.uid);
}

/* ---- what few claims have ---- */

static void rare_free(struct names *names, struct claim_rare *rare)
{
    if (rare == NULL)
        return;
    names_release(names, rare->volume);
    names_release(names, rare->owner_name);
    names_release(names, rare->owner_uid);
    names_release(names, rare->selector);
    names_release(names, rare->modification.current);
    names_release(names, rare->modification.target);
    names_release(names, rare->modification.status);
    pool_free(names->table.pool, rare);
}

static enum claim_phase phase_of(struct slice phase)
{
    if (slice_equal(phase, SLICE("Bound")))
        return CLAIM_BOUND;
    if (slice_equal(phase, SLICE("Pending")))
        return CLAIM_PENDING;
    return slice_equal(phase, SLICE("Lost")) ? CLAIM_LOST : CLAIM_PHASE_UNKNOWN;
}

/* Whether it matters which volume the claim may be bound to. */
static bool wants_volume(const struct claim_object *object)
{
    enum claim_phase phase = phase_of(object->phase);

    return (phase == CLAIM_PENDING || (phase == CLAIM_PHASE_UNKNOWN && object->volume.len == 0)) &&
           (object->requested != 0 || object->access_modes != 0 || object->selector.len != 0);
}

static bool has_owner(const struct claim_object *object)
{
    return object->meta.owner.uid.len != 0;
}

/* NULL: the claim has nothing of that, or there is no memory, then *failed is set. */
static struct claim_rare *rare_new(struct names *names, const struct claim_object *object,
                                   bool *failed)
{
    struct slice volume = is_provisioned_name(object) ? SLICE("") : object->volume;
    bool is_modified = object->modify_status.len != 0 || object->target_class.len != 0 ||
                       !slice_equal(object->current_class, object->volume_attributes_class);
    bool is_wanting = wants_volume(object);

    if (volume.len == 0 && !has_owner(object) && !is_modified && !is_wanting)
        return NULL;
    struct claim_rare *rare = pool_alloc(names->table.pool, sizeof *rare);
    if (rare == NULL) {
        *failed = true;
        return NULL;
    }
    rare->volume = names_take(names, volume, failed);
    if (has_owner(object)) {
        rare->owner_name = names_take(names, object->meta.owner.name, failed);
        rare->owner_uid = names_take(names, object->meta.owner.uid, failed);
    }
    rare->is_modified = is_modified;
    if (is_wanting) {
        rare->selector = names_take(names, object->selector, failed);
        rare->requested = object->requested;
        rare->access_modes = (uint8_t)object->access_modes;
    }
    if (!is_modified)
        return rare;
    rare->modification.current = names_take(names, object->current_class, failed);
    rare->modification.target = names_take(names, object->target_class, failed);
    rare->modification.status = names_take(names, object->modify_status, failed);
    return rare;
}

/* ---- what many claims have in common ---- */

static bool tally_matches(const void *record, const void *key)
{
    const struct claim_tally *tally = record;
    return memcmp(&tally->key, key, sizeof tally->key) == 0;
}

static uint32_t tally_hash(const struct claim_tally_key *key)
{
    const uint32_t hashes[] = {name_hash(key->ns), name_hash(key->storage_class),
                               name_hash(key->volume_attributes_class), (uint32_t)key->phase};
    return table_hash((struct slice){(const char *)hashes, sizeof hashes}, 0);
}

static void tally_key_release(struct names *names, const struct claim_tally_key *key)
{
    names_release(names, key->ns);
    names_release(names, key->storage_class);
    names_release(names, key->volume_attributes_class);
}

/* A new tally takes over the key's references. NULL: no memory. */
static struct claim_tally *tally_new(struct cluster *cluster, const struct claim_tally_key *key)
{
    struct claim_tally *tally = table_make(&cluster->tallies, tally_hash(key), sizeof *tally);

    if (tally != NULL)
        tally->key = *key;
    return tally;
}

/* Counts a claim of that object on its tally. NULL: no memory, then *failed is set. */
static struct claim_tally *tally_join(struct cluster *cluster, const struct claim_object *object,
                                      bool *failed)
{
    struct names *names = &cluster->names;
    bool has_no_memory = false;
    struct claim_tally_key key = {
        names_take(names, object->meta.ns, &has_no_memory),
        names_take(names, object->storage_class, &has_no_memory),
        names_take(names, object->volume_attributes_class, &has_no_memory),
        phase_of(object->phase),
    };
    struct claim_tally *known =
        table_find(&cluster->tallies, tally_hash(&key), tally_matches, &key);
    struct claim_tally *tally = has_no_memory   ? NULL
                                : known != NULL ? known
                                                : tally_new(cluster, &key);

    if (known != NULL || tally == NULL)
        tally_key_release(names, &key);
    if (tally != NULL)
        tally->count++;
    *failed |= tally == NULL;
    return tally;
}

/* A claim less; NULL is ignored. */
static void tally_leave(struct cluster *cluster, struct claim_tally *tally)
{
    if (tally == NULL || --tally->count != 0)
        return;
    tally_key_release(&cluster->names, &tally->key);
    table_delete(&cluster->tallies, &tally->record);
}

/* ---- both ---- */

static void release_facts(struct cluster *cluster, const struct claim_facts *facts)
{
    tally_leave(cluster, facts->tally);
    rare_free(&cluster->names, facts->rare);
    uid_release(&cluster->names, facts->uid);
}

static bool take_facts(struct cluster *cluster, const struct claim_object *object,
                       struct claim_facts *facts)
{
    bool failed = false;

    facts->tally = tally_join(cluster, object, &failed);
    facts->rare = rare_new(&cluster->names, object, &failed);
    facts->uid = uid_take(&cluster->names, object->meta.uid, &failed);
    if (failed)
        release_facts(cluster, facts);
    return !failed;
}

/* What the claim takes of its namespace's allowance. Names of classes count, though others may
 * share them: usual ones are short. */
static size_t allowance_of(const struct claim *claim)
{
    const struct claim_rare *rare = claim_rare_at(claim->rare);
    size_t bytes = CLAIM_BYTES + claim->name_len + name_slice(claim_storage_class(claim)).len +
                   name_slice(claim_volume_attributes_class(claim)).len;

    if (claim->tally.step == 0)
        return 0; /* it does not exist */
    if (rare == NULL)
        return bytes;
    return bytes + sizeof *rare + name_slice(rare->volume).len + name_slice(rare->owner_name).len +
           name_slice(rare->owner_uid).len + name_slice(rare->selector).len +
           name_slice(rare->modification.current).len + name_slice(rare->modification.target).len +
           name_slice(rare->modification.status).len;
}

/* The claim has these from now on, and the cluster releases the former ones. */
static void put_facts(struct cluster *cluster, struct claim *claim, const struct claim_facts *facts)
{
    struct claim_facts former = {claim_tally_at(claim->tally), claim_rare_at(claim->rare),
                                 claim->uid};

    allowance_release(cluster, name_at(claim->ns), allowance_of(claim));
    claim->tally = claim_tally_ref(facts->tally);
    claim->rare = claim_rare_ref(facts->rare);
    claim->uid = facts->uid;
    allowance_charge(cluster, KIND_CLAIM, name_at(claim->ns), claim->record.hash,
                     allowance_of(claim));
    release_facts(cluster, &former);
}

/* Of the list that is being read. Never 0. */
static unsigned epoch_of_next(const struct listing *list)
{
    return (list->complete + 1) % LIST_EPOCHS + 1;
}

bool claim_is_named_by_others(const struct cluster *cluster, const struct claim *claim,
                              const struct object_reference *pod)
{
    const struct pod *own = cluster_find_same_pod(cluster, pod);
    const struct reservation *reservation = reservation_of(cluster, pod);
    uint32_t named = claim->named, count = 0;

    for (size_t i = 0; own != NULL && i < own->use_count; i++)
        count += claim_at(own->uses[i].claim) == claim;
    for (size_t i = 0;
         reservation != NULL && i < reservation->claim_count + reservation->shared_count; i++)
        count += reservation->claims[i] == claim;
    return named > count;
}

bool claim_may_have_former(const struct cluster *cluster, const struct claim *claim,
                           const struct object_reference *pod, uint64_t since_ns)
{
    const struct listing *list = &cluster->lists[KIND_CLAIM];
    bool is_being_listed = list->is_open && claim->epoch == epoch_of_next(list);

    if (claim->epoch == 0 || is_being_listed)
        return is_being_listed;
    const struct listing_end *end = &list->ends[claim->epoch - 1U];
    bool knows_pods = list->complete == 1 || cluster->pods_seen >= end->version;
    return end->ns > since_ns && (!knows_pods || claim_is_named_by_others(cluster, claim, pod));
}

/* Writes the object on the record. Links of pods to the claim stay. */
static void put_claim(struct cluster *cluster, struct claim *claim,
                      const struct claim_object *object, const struct claim_facts *facts)
{
    const struct listing *list = &cluster->lists[KIND_CLAIM];

    cluster->violations -= claim_is_violated(claim);
    cluster->counts[KIND_CLAIM] += !claim->exists;
    if (!claim->exists || claim->is_ahead || !uid_is(&claim->uid, object->meta.uid))
        claim->epoch = (list->is_open ? epoch_of_next(list) : 0) & LIST_EPOCHS;
    claim->exists = true;
    claim->listed = cluster_list_mark(cluster, KIND_CLAIM) & LISTED_MAX;
    claim->is_rwop = object->is_rwop;
    claim->is_block = slice_equal(object->volume_mode, SLICE("Block"));
    claim->is_ahead = false; /* cluster_learn says else */
    claim->is_deleting = object->meta.deletion_timestamp.len != 0;
    claim->is_volume_provisioned = is_provisioned_name(object);
    claim->version = version_of(object->meta.resource_version);
    put_facts(cluster, claim, facts);
    cluster->violations += claim_is_violated(claim);
}

int claim_apply(struct cluster *cluster, struct claim *claim, const struct claim_object *object,
                struct error *err)
{
    bool failed = false;
    struct claim_facts facts;

    if (object->meta.name.len > UINT16_MAX)
        return error_set(err, ERROR_TOO_BIG, "a claim's name is over %d bytes", UINT16_MAX);
    struct name *ns = names_take(&cluster->names, object->meta.ns, &failed);
    if (claim == NULL && !failed)
        claim = claim_get_or_create(cluster, ns, object->meta.name);
    names_release(&cluster->names, ns); /* the record has its own reference */
    if (claim == NULL)
        return error_no_memory(err);
    if (!take_facts(cluster, object, &facts)) {
        claim_free_if_unused(cluster, claim);
        return error_no_memory(err);
    }
    put_claim(cluster, claim, object, &facts);
    return 0;
}

void claim_free_if_unused(struct cluster *cluster, struct claim *claim)
{
    if (claim->exists || claim->named != 0)
        return;
    names_release(&cluster->names, name_at(claim->ns));
    table_delete(&cluster->claims, &claim->record);
}

void claim_mark_deleted(struct cluster *cluster, struct claim *claim)
{
    put_facts(cluster, claim, &(struct claim_facts){.tally = NULL});
    cluster->violations -= claim_is_violated(claim);
    cluster->counts[KIND_CLAIM]--;
    claim->exists = claim->is_rwop = claim->is_deleting = claim->is_volume_provisioned = false;
    claim->is_block = false;
    claim->version = 0;
    claim_free_if_unused(cluster, claim);
}

void claims_dispose(struct cluster *cluster)
{
    struct table_walk walk = {.at = 0};

    for (struct claim *claim; (claim = cluster_next_claim(cluster, &walk)) != NULL;)
        pool_free(cluster->claims.pool, claim_rare_at(claim->rare)); /* names_dispose frees names */
    table_free_records(&cluster->claims);
    table_free_records(&cluster->tallies);
}
