#include "extender/commands/audit/inventory.h"

#include "extender/commands/audit/inventory_internal.h"

enum { SCRATCH_BYTES_MAX = 64 << 20 };

bool audit_is_variable(struct slice text)
{
    return slice_has(text, SLICE("{{")) || slice_has(text, SLICE("${")) ||
           slice_has(text, SLICE("ENC["));
}

void inventory_init(struct inventory *inventory, struct cluster *cluster)
{
    *inventory = (struct inventory){.cluster = cluster};
    arena_init(&inventory->arena, SIZE_MAX / 2);
    arena_init(&inventory->scratch, SCRATCH_BYTES_MAX);
    inventory->table.pool = &inventory->pool;
    inventory->classes.table.pool = inventory->texts.table.pool = &inventory->pool;
}

/* The records of a kind, which may be none of the table's. */
static void free_records(struct inventory *inventory, enum kind kind)
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
    names_dispose(&inventory->classes);
    names_dispose(&inventory->texts);
    for (int kind = 0; kind < KIND_NAMED_COUNT; kind++)
        free_records(inventory, (enum kind)kind);
    pool_dispose(&inventory->pool);
    arena_dispose(&inventory->arena);
    arena_dispose(&inventory->scratch);
}

/* ---- names ---- */

struct record_key {
    enum kind kind;
    struct slice ns, name;
    struct slice fallback; /* the namespace of an object without one */
};

static struct slice fallback_ns(const struct inventory *inventory)
{
    return inventory->ns.len == 0 ? SLICE("default") : inventory->ns;
}

static struct slice ns_of(const struct record_key *key, struct slice ns)
{
    return ns.len == 0 && kind_is_namespaced(key->kind) ? key->fallback : ns;
}

static uint32_t hash_of(const struct record_key *key)
{
    return table_hash(key->name, table_hash(ns_of(key, key->ns), (uint32_t)key->kind));
}

static bool has_key(const void *found, const void *wanted)
{
    const struct record *record = found;
    const struct record_key *key = wanted;

    return record->kind == key->kind && slice_equal(record->name, key->name) &&
           slice_equal(ns_of(key, record->ns), ns_of(key, key->ns));
}

static void *find(const struct inventory *inventory, const struct record_key *key)
{
    return table_find(&inventory->table, hash_of(key), has_key, key);
}

void *inventory_find(const struct inventory *inventory, enum kind kind, struct slice ns,
                     struct slice name)
{
    struct record_key key = {kind, ns, name, fallback_ns(inventory)};

    return find(inventory, &key);
}

bool inventory_is_complete(const struct inventory *inventory, enum kind kind)
{
    return inventory->is_listed[kind] || (inventory->is_cluster && inventory->counts[kind] != 0);
}

void *inventory_add_name(struct taking *taking, struct record *record)
{
    struct inventory *inventory = taking->inventory;
    struct record_key key = {taking->kind, record->ns, record->name, fallback_ns(inventory)};
    void *found = find(inventory, &key);

    if (found != NULL && ((struct record *)found)->twins < TWINS_MAX) {
        ((struct record *)found)->twins++;
        record->same = ((struct record *)found)->same;
        ((struct record *)found)->same = record;
    }
    if (found != NULL)
        return found;
    record->table.hash = hash_of(&key);
    taking->has_failed |= !table_add(&inventory->table, &record->table);
    return NULL;
}

void inventory_forget(struct inventory *inventory, enum kind kind)
{
    for (struct record *at = inventory->first[kind]; at != NULL; at = at->next)
        if (inventory_find(inventory, kind, at->ns, at->name) == at)
            table_remove(&inventory->table, &at->table);
    free_records(inventory, kind);
    inventory->counts[kind] = 0;
}

/* ---- the cluster ---- */

static struct slice full_ns(const struct taking *taking)
{
    struct slice ns = taking->reading.record.ns;

    return ns.len == 0 ? fallback_ns(taking->inventory) : ns;
}

/* Stores the pod with the claims that it names, but those of generic ephemeral volumes, which no
 * other pod has. */
static int store_pod(struct taking *taking, struct error *err)
{
    const struct reading *reading = &taking->reading;
    const struct pod_spec *spec = &reading->pod.spec;
    struct object object = {.kind = KIND_POD};
    struct pod_object *pod = &object.pod;

    if (spec->use_count == 0 || reading->record.name.len == 0)
        return 0;
    *pod = (struct pod_object){
        .meta = {.ns = full_ns(taking),
                 .name = reading->record.name,
                 .deletion_timestamp = reading->deletion_timestamp},
        .node = spec->node,
        .phase = reading->phase,
        .claims = arena_alloc(&taking->inventory->scratch, spec->use_count * sizeof *pod->claims)};
    if (pod->claims == NULL)
        return error_no_memory(err);
    for (uint32_t i = 0; i < spec->use_count; i++)
        if (!spec->uses[i].is_inline && spec->uses[i].name.len != 0)
            pod->claims[pod->claim_count++] = (struct claim_reference){.name = spec->uses[i].name};
    return cluster_apply(taking->inventory->cluster, &object, err);
}

static bool is_stored(const struct cluster *cluster, const struct object *object)
{
    switch (object->kind) {
    case KIND_CLAIM: return cluster_find_claim(cluster, object->meta.ns, object->meta.name) != NULL;
    case KIND_CSI_NODE: return cluster_find_csi_node(cluster, object->meta.name) != NULL;
    default: return cluster_find_resource(cluster, object->kind, object->meta.name) != NULL;
    }
}

struct slice inventory_stored_name(struct inventory *inventory, struct slice name, uint32_t twin)
{
    return twin == 0 ? name : arena_printf(&inventory->scratch, "%.*s\n%u", SLICE_ARG(name), twin);
}

/* Of an object that two files have, the cluster has the first one; but of a pod, the last one; and
 * of claims and volumes made by hand, all. */
static int store(struct taking *taking, struct error *err)
{
    struct cluster *cluster = taking->inventory->cluster;
    struct object *object = &taking->reading.stored;

    if (taking->kind == KIND_POD)
        return store_pod(taking, err);
    if (!kind_is_stored(taking->kind))
        return 0;
    if (kind_is_namespaced(taking->kind))
        object->meta.ns = full_ns(taking);
    object->meta.name = inventory_stored_name(taking->inventory, object->meta.name, taking->twin);
    if (object->meta.name.ptr == NULL)
        return error_no_memory(err);
    return is_stored(cluster, object) ? 0 : cluster_apply(cluster, object, err);
}

/* ---- one object ---- */

/* claimguard's own webhook for Bindings has this path (manifests/webhooks.yaml). */
static bool admits_bindings(const struct source_text *object, enum kind kind)
{
    return kind == KIND_WEBHOOKS && slice_has(object->text, SLICE("/admit/binding"));
}

static const char *path_of(const struct source_text *object)
{
    return object->path == NULL ? object->type->kind : object->path;
}

/* Whether the value that cannot be read is a text with "{{". */
static bool has_braces(const struct pull *json)
{
    const char *at = json->at, *end = at;

    if (at == json->end || *at != '"')
        return false;
    do
        end++;
    while (end != json->end && *end != '"');
    return slice_has((struct slice){at, (size_t)(end - at)}, SLICE("{{"));
}

static int refuse_template(const struct taking *taking, struct error *err)
{
    taking->inventory->is_template = true;
    struct place place = source_text_place(taking->object, taking->reading.record.name);

    return error_set(err, ERROR_INVALID,
                     "%s:%zu:%zu: metadata.name has \"{{\": a template; render it first (helm "
                     "template CHART)",
                     path_of(taking->object), place.line, place.column);
}

int inventory_take(struct inventory *inventory, const struct source_text *object, struct error *err)
{
    struct taking taking = {
        .inventory = inventory,
        .object = object,
        .kind = kind_of_any(slice_of(object->type->api_version), slice_of(object->type->kind))};
    struct pull json;

    if (!reading_has(taking.kind)) {
        inventory->binds_are_admitted |= admits_bindings(object, taking.kind);
        return 0;
    }
    inventory->is_template = false;
    arena_reset(&inventory->scratch);
    if (object->is_made || object->path == NULL)
        pull_init(&json, object->text);
    else
        pull_init_checked(&json, object->text); /* source.h has read it to its end */
    if (!reading_read(&json, taking.kind, &inventory->scratch, &taking.reading)) {
        inventory->is_template = has_braces(&json);
        if (object->is_made)
            json.at = json.start; /* text made from YAML: name the object's place */
        return pull_fail(&json, path_of(object), object->place, err);
    }
    if (slice_has(taking.reading.record.name, SLICE("{{")))
        return refuse_template(&taking, err);
    if (inventory->remarks.len != 0)
        taking.reading.ignore =
            arena_printf(&inventory->scratch, "%.*s%.*s", SLICE_ARG(inventory->remarks),
                         SLICE_ARG(taking.reading.ignore));
    inventory->counts[taking.kind]++;
    if (kind_is_stored(taking.kind) && taking.kind != KIND_POD) {
        if (taking.reading.record.name.len == 0) /* the API server will make one (generateName) */
            return 1;
        taking.reading.record.name = taking.reading.stored.meta.name; /* as the cluster has it */
    }
    if (!kind_is_namespaced(taking.kind))
        taking.reading.record.ns = SLICE("");
    inventory_record(&taking);
    if (taking.has_failed)
        return error_no_memory(err);
    return inventory->is_stored_elsewhere || store(&taking, err) == 0 ? 1 : err->code;
}

/* ---- links ---- */

/* Gives the targets of autoscalers the replicas that they have at least. */
static void scale_targets(struct inventory *inventory)
{
    for (const struct record *at = inventory->first[KIND_AUTOSCALER]; at != NULL; at = at->next) {
        const struct workload *autoscaler = (const struct workload *)at;
        enum kind kind = autoscaler->pod.owner_kind;
        struct workload *target =
            kind < KIND_DEPLOYMENT || kind > KIND_REPLICA_SET
                ? NULL
                : inventory_find(inventory, kind, at->ns, autoscaler->pod.owner);
        if (target != NULL)
            target->least = autoscaler->least;
    }
}

static void link_volumes(struct inventory *inventory)
{
    for (struct record *at = inventory->first[KIND_VOLUME]; at != NULL; at = at->next) {
        struct volume_record *volume = (struct volume_record *)at;
        arena_reset(&inventory->scratch);
        if (volume->twin != 0)
            volume->stored =
                cluster_find_resource(inventory->cluster, KIND_VOLUME,
                                      inventory_stored_name(inventory, at->name, volume->twin));
    }
}

void inventory_link(struct inventory *inventory)
{
    inventory->is_cluster |= inventory->is_listed[KIND_POD];
    scale_targets(inventory);
    link_volumes(inventory);
    for (struct record *at = inventory->first[KIND_CLAIM]; at != NULL; at = at->next) {
        struct claim_record *claim = (struct claim_record *)at;
        arena_reset(&inventory->scratch);
        struct slice name = inventory_stored_name(inventory, at->name, claim->twin);
        claim->stored = cluster_find_claim(inventory->cluster,
                                           at->ns.len == 0 ? fallback_ns(inventory) : at->ns, name);
    }
}
