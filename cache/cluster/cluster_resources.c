/*
 * Objects of the kinds that have no record type of their own; and what follows from some of them:
 * the priority of a pod, and which evictions violate PodDisruptionBudgets.
 */
#include <string.h>
#include <utlist.h>

#include "cache/cluster/allowance.h"
#include "cache/cluster/cluster_internal.h"
#include "cache/objects/label_selector.h"

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

static bool shape_matches(const void *record, const void *key)
{
    const struct resource_shape *shape = record;
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

static void shape_release(struct cluster *cluster, struct resource_shape *shape)
{
    if (--shape->refs != 0)
        return;
    if (is_offer(shape))
        DL_DELETE2(cluster->offers, shape, former_offer, next_offer);
    shape_key_release(&cluster->names, &shape->key);
    table_delete(&cluster->shapes, &shape->record);
}

/* A new shape takes over the key's references. NULL: no memory. */
static struct resource_shape *shape_new(struct cluster *cluster,
                                        const struct resource_shape_key *key)
{
    struct resource_shape *shape = table_make(&cluster->shapes, shape_hash(key), sizeof *shape);

    if (shape == NULL)
        return NULL;
    shape->key = *key;
    if (is_offer(shape))
        DL_PREPEND2(cluster->offers, shape, former_offer, next_offer);
    return shape;
}

/* With a reference; NULL: no memory. */
static struct resource_shape *shape_take(struct cluster *cluster, const struct object *object)
{
    struct resource_shape_key key;

    if (!shape_key_take(&cluster->names, object, &key))
        return NULL;
    struct resource_shape *known =
        table_find(&cluster->shapes, shape_hash(&key), shape_matches, &key);
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

/* uid: its text has UID_TEXT_BYTES. */
static struct slice provisioned_name(const struct uid *uid, char buffer[PROVISIONED_NAME_BYTES])
{
    char text[UID_TEXT_BYTES];

    memcpy(buffer, "pvc-", sizeof "pvc-" - 1);
    memcpy(buffer + sizeof "pvc-" - 1, uid_text(uid, text).ptr, sizeof text);
    return (struct slice){buffer, PROVISIONED_NAME_BYTES};
}

struct slice resource_name(const struct resource *resource, char buffer[PROVISIONED_NAME_BYTES])
{
    struct uid uid;

    if (!resource->is_provisioned)
        return (struct slice){resource->text, resource->name_len};
    memcpy(&uid, resource->text, sizeof uid);
    return provisioned_name(&uid, buffer);
}

struct slice claim_volume_name(const struct claim *claim, char buffer[PROVISIONED_NAME_BYTES])
{
    return claim->is_volume_provisioned ? provisioned_name(&claim->uid, buffer)
                                        : name_slice(claim_volume(claim));
}

static bool resource_matches(const void *record, const void *key)
{
    const struct resource *resource = record;
    const struct object_key *wanted = key;
    char buffer[PROVISIONED_NAME_BYTES];

    return resource_ns(resource) == wanted->ns &&
           slice_equal(resource_name(resource, buffer), wanted->name);
}

static struct resource *find(const struct cluster *cluster, enum kind kind, struct object_key key)
{
    return table_find(&cluster->resources[kind], object_key_hash(key), resource_matches, &key);
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
    char buffer[PROVISIONED_NAME_BYTES];
    struct slice name = claim_volume_name(claim, buffer);

    return name.len == 0 ? NULL : cluster_find_resource(cluster, KIND_VOLUME, name);
}

void resource_remove(struct cluster *cluster, enum kind kind, struct resource *resource)
{
    table_remove(&cluster->resources[kind], &resource->record);
    cluster->counts[kind]--;
    resource_free(cluster, resource);
}

int resource_apply(struct cluster *cluster, struct resource *known, const struct object *object,
                   struct error *err)
{
    const struct meta *meta = &object->meta;

    if (meta->name.len > RESOURCE_NAME_MAX || own_attribute(object).len > RESOURCE_NAME_MAX)
        return error_set(err, ERROR_TOO_BIG, "a name is over %d bytes", RESOURCE_NAME_MAX);
    struct resource *resource = resource_new(cluster, object);
    if (resource == NULL)
        return error_no_memory(err);
    resource->listed = cluster_list_mark(cluster, object->kind);
    if (!table_add(&cluster->resources[object->kind], &resource->record)) {
        resource_free(cluster, resource);
        return error_no_memory(err);
    }
    cluster->counts[object->kind]++;
    if (known != NULL)
        resource_remove(cluster, object->kind, known);
    return 0;
}

void resources_dispose(struct cluster *cluster)
{
    for (int kind = 0; kind < KIND_COUNT; kind++)
        table_free_records(&cluster->resources[kind]);
    table_free_records(&cluster->shapes);
    cluster->offers = NULL;
}

/* ---- the priority of a pod that no API server has admitted ---- */

static struct priority_class describe(const struct resource *resource)
{
    struct slice policy = resource_attribute(resource, PRIORITY_CLASS_PREEMPTION_POLICY);

    return (struct priority_class){(int32_t)resource_number(resource),
                                   slice_equal(policy, SLICE("Never"))};
}

/* Only a race creates two defaults. Admission takes the lowest then. */
static const struct resource *find_default(const struct cluster *cluster)
{
    const struct resource *found = NULL;
    struct table_walk walk = {.at = 0};

    for (const struct resource *resource;
         (resource = cluster_next_resource(cluster, KIND_PRIORITY_CLASS, &walk)) != NULL;)
        if (resource_attribute(resource, PRIORITY_CLASS_DEFAULT).len != 0 &&
            (found == NULL || resource_number(resource) < resource_number(found)))
            found = resource;
    return found;
}

bool priority_class_find(const struct cluster *cluster, struct slice name,
                         struct priority_class *out)
{
    const struct resource *resource =
        name.len == 0 ? find_default(cluster)
                      : resource_find(cluster, KIND_PRIORITY_CLASS, SLICE(""), name);

    *out = (struct priority_class){.value = 0};
    if (resource != NULL)
        *out = describe(resource);
    else if (slice_equal(name, SLICE("system-cluster-critical")))
        out->value = 2000000000;
    else if (slice_equal(name, SLICE("system-node-critical")))
        out->value = 2000001000;
    else
        return name.len == 0;
    return true;
}

/* ---- which evictions violate PodDisruptionBudgets ---- */

enum {
    COUNTED_PODS_MAX = 4096, /* no preemption evicts as many */
    /* Texts that one answer compares under the lock, which takes 20 ms. A limit is needed because
     * users choose the number and the length of selectors and labels. */
    COMPARED_BYTES_MAX = 8 << 20,
    COMPARISON_BYTES = 64 /* the cost of one comparison besides its texts */
};

/* How evictions are counted. */
struct tally {
    const struct pod *const *pods;
    size_t count;
    bool is_by_api_server; /* count as the API server does; else as kube-scheduler does */
    size_t bytes_left;     /* that may be compared */
    bool is_violation[COUNTED_PODS_MAX];
};

/* Whether the pod's eviction counts against a budget with that selector. */
static bool counts(const struct tally *tally, struct slice selector, const struct pod *pod)
{
    if (tally->is_by_api_server ? pod->is_pending || pod->is_terminating
                                : pod->labels.step == 0 || selector_is_empty(selector))
        return false;
    return selector_matches(selector, name_text(pod->labels), pod_name(pod));
}

/* Marks the pods whose eviction violates the budget. False: it would take too long. */
static bool mark_violations(struct tally *tally, const struct resource *budget)
{
    struct slice selector = resource_attribute(budget, BUDGET_SELECTOR);
    struct slice disrupted = resource_attribute(budget, BUDGET_DISRUPTED_PODS); /* are counted */
    size_t budget_bytes = COMPARISON_BYTES + selector.len + disrupted.len;
    int64_t evicted = 0; /* pods that count against the budget */

    for (size_t i = 0; i < tally->count; i++) {
        const struct pod *pod = tally->pods[i];
        if (resource_ns(budget) != name_at(pod->ns))
            continue;
        size_t bytes = budget_bytes + name_text(pod->labels).len + pod_name(pod).len;
        if (bytes > tally->bytes_left)
            return false;
        tally->bytes_left -= bytes;
        if (counts(tally, selector, pod) && !words_have(disrupted, pod_name(pod)) &&
            ++evicted > resource_number(budget))
            tally->is_violation[i] = true;
    }
    return true;
}

/* How many of the evictions violate a budget. All, if it would take too long to count. */
static size_t count_violations(const struct cluster *cluster, struct tally *tally)
{
    size_t known = tally->count < COUNTED_PODS_MAX ? tally->count : COUNTED_PODS_MAX;
    size_t violations = tally->count - known; /* the rest counts as violations */
    struct table_walk walk = {.at = 0};

    tally->count = known;
    tally->bytes_left = COMPARED_BYTES_MAX;
    for (const struct resource *budget;
         (budget = cluster_next_resource(cluster, KIND_POD_DISRUPTION_BUDGET, &walk)) != NULL;)
        if (!(tally->is_by_api_server && resource_number(budget) <= 0) &&
            !mark_violations(tally, budget))
            return violations + known;
    for (size_t i = 0; i < known; i++)
        violations += tally->is_violation[i];
    return violations;
}

size_t cluster_count_budget_violations(const struct cluster *cluster, const struct pod *const *pods,
                                       size_t count)
{
    struct tally tally = {.pods = pods, .count = count};

    return count_violations(cluster, &tally);
}

bool cluster_breaks_budgets(const struct cluster *cluster, const struct pod *const *pods,
                            size_t count)
{
    struct tally tally = {.pods = pods, .count = count, .is_by_api_server = true};

    return count_violations(cluster, &tally) != 0;
}
