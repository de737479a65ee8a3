#include "extender/audit/inventory.h"

#include "extender/audit/inventory_internal.h"

enum { SCRATCH_BYTES_MAX = 64 << 20 };

void inventory_init(struct inventory *inventory)
{
    *inventory = (struct inventory){.is_cluster = false};
    arena_init(&inventory->arena, SIZE_MAX / 2);
    arena_init(&inventory->scratch, SCRATCH_BYTES_MAX);
    inventory->table.pool = &inventory->pool;
}

/* The records of a kind, which may be none of the table's. */
static void free_records(struct inventory *inventory, enum record_kind kind)
{
    for (struct record *at = inventory->first[kind], *next; at != NULL; at = next) {
        next = at->next;
        pool_free(&inventory->pool, at);
    }
    inventory->first[kind] = inventory->last[kind] = NULL;
}

void inventory_dispose(struct inventory *inventory)
{
    table_dispose(&inventory->table);
    for (int kind = 0; kind < RECORD_KIND_COUNT; kind++)
        free_records(inventory, (enum record_kind)kind);
    pool_dispose(&inventory->pool);
    arena_dispose(&inventory->arena);
    arena_dispose(&inventory->scratch);
}

/* ---- names ---- */

struct record_key {
    enum record_kind kind;
    struct slice ns, name;
    struct slice fallback; /* the namespace of an object without one */
};

static struct slice fallback_ns(const struct inventory *inventory)
{
    return inventory->ns.len == 0 ? SLICE("default") : inventory->ns;
}

static struct slice ns_of(const struct record_key *key, struct slice ns)
{
    if (key->kind >= RECORD_VOLUME)
        return SLICE("");
    return ns.len == 0 ? key->fallback : ns;
}

static uint32_t hash_of(const struct record_key *key)
{
    return table_hash(key->name, table_hash(ns_of(key, key->ns), (uint32_t)key->kind));
}

static bool has_key(const struct table_record *found, const void *wanted)
{
    const struct record *record = (const struct record *)found;
    const struct record_key *key = wanted;

    return record->kind == key->kind && slice_equal(record->name, key->name) &&
           slice_equal(ns_of(key, record->ns), ns_of(key, key->ns));
}

static struct record *find(const struct inventory *inventory, const struct record_key *key)
{
    return (struct record *)table_find(&inventory->table, hash_of(key), has_key, key);
}

struct record *inventory_find(const struct inventory *inventory, enum record_kind kind,
                              struct slice ns, struct slice name)
{
    struct record_key key = {kind, ns, name, fallback_ns(inventory)};

    return kind == RECORD_KIND_COUNT ? NULL : find(inventory, &key);
}

bool inventory_is_complete(const struct inventory *inventory, enum record_kind kind)
{
    return inventory->is_listed[kind] || (inventory->is_cluster && inventory->counts[kind] != 0);
}

struct record *inventory_add_name(struct taking *taking, struct record *record)
{
    struct record_key key = {taking->kind, record->ns, record->name,
                             fallback_ns(taking->inventory)};
    struct record *found = find(taking->inventory, &key);

    if (found != NULL)
        return found;
    record->table.hash = hash_of(&key);
    taking->has_failed |= !table_add(&taking->inventory->table, &record->table);
    return NULL;
}

uint64_t inventory_claim_hash(const struct inventory *inventory, struct slice ns, struct slice name)
{
    struct record_key key = {RECORD_CLAIM, ns, name, fallback_ns(inventory)};
    uint64_t high = table_hash(name, table_hash(ns_of(&key, ns), UINT32_MAX));

    return (high << 32 | hash_of(&key)) | 1;
}

/* ---- one object ---- */

/* claimguard's own webhook for Bindings has this path (manifests/admission). */
static bool admits_bindings(const struct source_text *object)
{
    return slice_equal(slice_of(object->type->kind), SLICE("ValidatingWebhookConfiguration")) &&
           slice_has(object->text, SLICE("/admit/binding"));
}

int inventory_take(struct inventory *inventory, const struct source_text *object, struct error *err)
{
    struct taking taking = {
        .inventory = inventory,
        .object = object,
        .kind = reading_kind(slice_of(object->type->api_version), slice_of(object->type->kind))};
    struct pull json;

    if (taking.kind == RECORD_KIND_COUNT) {
        inventory->binds_are_admitted |= admits_bindings(object);
        return 0;
    }
    arena_reset(&inventory->scratch);
    pull_init(&json, object->text);
    if (!reading_read(&json, taking.kind, &inventory->scratch, &taking.reading)) {
        if (object->is_made)
            json.at = json.start; /* text made from YAML: name the object's place */
        return pull_fail(&json, object->path == NULL ? object->type->kind : object->path,
                         object->place, err);
    }
    if (slice_has(taking.reading.name, SLICE("{{"))) {
        struct place place = source_text_place(object, taking.reading.name);
        return error_set(err, ERROR_INVALID,
                         "%s:%zu:%zu: metadata.name has \"{{\": a template; render it first (helm "
                         "template CHART)",
                         object->path == NULL ? object->type->kind : object->path, place.line,
                         place.column);
    }
    inventory->counts[taking.kind]++;
    inventory_record(&taking);
    return taking.has_failed ? error_no_memory(err) : 1;
}

void inventory_forget(struct inventory *inventory, enum record_kind kind)
{
    for (struct record *at = inventory->first[kind]; at != NULL; at = at->next) {
        struct record_key key = {kind, at->ns, at->name, fallback_ns(inventory)};
        if (find(inventory, &key) == at)
            table_remove(&inventory->table, &at->table);
    }
    free_records(inventory, kind);
    inventory->counts[kind] = 0;
}

/* ---- links ---- */

static void name_class(struct inventory *inventory, struct slice name)
{
    struct plain_record *class =
        name.len == 0 ? NULL
                      : (struct plain_record *)inventory_find(inventory, RECORD_ATTRIBUTES_CLASS,
                                                              SLICE(""), name);

    if (class != NULL)
        class->is_named = true;
}

static void name_classes(struct inventory *inventory)
{
    if (inventory->counts[RECORD_ATTRIBUTES_CLASS] == 0)
        return;
    for (const struct record *at = inventory->first[RECORD_CLAIM]; at != NULL; at = at->next) {
        const struct claim_classes *classes = ((const struct claim_record *)at)->classes;
        if (classes == NULL)
            continue;
        name_class(inventory, classes->class);
        name_class(inventory, classes->current);
        name_class(inventory, classes->target);
    }
    for (const struct record *at = inventory->first[RECORD_VOLUME]; at != NULL; at = at->next) {
        const struct volume_classes *classes = ((const struct volume_record *)at)->classes;
        if (classes != NULL)
            name_class(inventory, classes->class);
    }
}

/* Adds the pod to the users of its claims. False: no memory. */
static bool add_users(struct inventory *inventory, const struct pod_record *pod)
{
    for (uint32_t i = 0; i < pod->spec.use_count; i++) {
        const struct volume_use *use = &pod->spec.uses[i];
        struct claim_record *claim = use->is_inline || use->name.len == 0
                                         ? NULL
                                         : (struct claim_record *)inventory_find(
                                               inventory, RECORD_CLAIM, pod->record.ns, use->name);
        if (claim == NULL)
            continue;
        struct claim_user *user = arena_alloc(&inventory->arena, sizeof *user);
        if (user == NULL)
            return false;
        *user = (struct claim_user){claim->users, pod};
        claim->users = user;
    }
    return true;
}

/* Gives the targets of autoscalers the replicas that they have at least. */
static void scale_targets(struct inventory *inventory)
{
    for (const struct record *at = inventory->first[RECORD_AUTOSCALER]; at != NULL; at = at->next) {
        const struct workload *autoscaler = (const struct workload *)at;
        struct workload *target = NULL;
        if (autoscaler->owner_kind <= RECORD_REPLICA_SET && autoscaler->owner_kind != RECORD_POD)
            target = (struct workload *)inventory_find(inventory, autoscaler->owner_kind, at->ns,
                                                       autoscaler->owner);
        if (target != NULL)
            target->least = autoscaler->least;
    }
}

int inventory_link(struct inventory *inventory, struct error *err)
{
    inventory->is_cluster |= inventory->is_listed[RECORD_POD];
    name_classes(inventory);
    scale_targets(inventory);
    for (const struct record *at = inventory->first[RECORD_POD]; at != NULL; at = at->next)
        if (!add_users(inventory, (const struct pod_record *)at))
            return error_no_memory(err);
    return 0;
}
