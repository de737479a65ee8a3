#include <stdlib.h>

#include "cache/cluster/cluster_internal.h"
#include "cache/cluster/reservation.h"
#include "cache/cluster/unconfirmed.h"

static bool pod_matches(const struct table_record *record, const void *key)
{
    const struct pod *pod = (const struct pod *)(const void *)record;
    const struct object_key *wanted = key;
    return pod->ns == wanted->ns && slice_equal(pod_name(pod), wanted->name);
}

struct pod *cluster_find_pod(const struct cluster *cluster, struct slice ns, struct slice name)
{
    struct object_key key = {names_find(&cluster->names, ns), name};

    if (key.ns == NULL)
        return NULL;
    return (struct pod *)(void *)table_find(&cluster->pods, object_key_hash(key), pod_matches,
                                            &key);
}

static void uncount(struct cluster *cluster, const struct pod *pod, unsigned use_count)
{
    for (unsigned i = 0; i < use_count; i++) {
        refcount_remove(&cluster->refs, pod->node, pod->uses[i].claim);
        claim_add_refs(cluster, pod->uses[i].claim, -1);
    }
}

/* Counts the pod's claims as held on its node. False: no memory, and nothing was counted. */
static bool start_holding(struct cluster *cluster, struct pod *pod)
{
    if (!pod_holds(pod))
        return true;
    for (unsigned i = 0; i < pod->use_count; i++) {
        if (!refcount_add(&cluster->refs, pod->node, pod->uses[i].claim)) {
            uncount(cluster, pod, i);
            return false;
        }
        claim_add_refs(cluster, pod->uses[i].claim, +1);
    }
    return true;
}

static void stop_holding(struct cluster *cluster, struct pod *pod)
{
    if (pod_holds(pod))
        uncount(cluster, pod, pod->use_count);
}

static void leave_node(struct cluster *cluster, struct pod *pod)
{
    if (pod->node == NULL)
        return;
    pod->node->pods--;
    node_free_if_unused(cluster, pod->node);
    pod->node = NULL;
}

/* Whether the pod can be in anyone's way: others need not be looked at when a claim's holders are
 * sought, so that a thousand pending replicas on one claim cost a verdict nothing. */
static bool may_hold(const struct pod *pod)
{
    return pod_holds(pod) || (pod->nomination != NULL && !pod->is_terminal && !pod->is_terminating);
}

static void link_uses(struct pod *pod)
{
    for (unsigned i = 0; may_hold(pod) && i < pod->use_count; i++) {
        struct use *use = &pod->uses[i];
        use->claim->deferred += use->is_deferred;
        use->next = use->claim->uses;
        use->link = &use->claim->uses;
        if (use->next != NULL)
            use->next->link = &use->next;
        use->claim->uses = use;
    }
}

static void unlink_uses(struct pod *pod)
{
    for (unsigned i = 0; i < pod->use_count; i++) {
        struct use *use = &pod->uses[i];
        if (use->link == NULL)
            continue;
        *use->link = use->next;
        if (use->next != NULL)
            use->next->link = use->link;
        use->link = NULL;
        use->claim->deferred -= use->is_deferred;
    }
}

static void forget_claims(struct cluster *cluster, struct pod *pod)
{
    for (unsigned i = 0; i < pod->use_count; i++) {
        if (pod->uses[i].claim == NULL)
            continue; /* the pod was never completed */
        pod->uses[i].claim->named--;
        claim_free_if_unused(cluster, pod->uses[i].claim);
    }
}

static void link_deferring(struct cluster *cluster, struct pod *pod)
{
    struct kept_mounts *kept = pod_kept_mounts(pod);

    if (kept == NULL || kept->link != NULL || !mounts_defer(&kept->mounts))
        return;
    kept->next_deferring = cluster->deferring;
    kept->link = &cluster->deferring;
    if (kept->next_deferring != NULL)
        pod_kept_mounts(kept->next_deferring)->link = &kept->next_deferring;
    cluster->deferring = pod;
}

static void unlink_deferring(const struct pod *pod)
{
    const struct kept_mounts *kept = pod_kept_mounts(pod);

    if (kept == NULL || kept->link == NULL)
        return;
    *kept->link = kept->next_deferring;
    if (kept->next_deferring != NULL)
        pod_kept_mounts(kept->next_deferring)->link = kept->link;
}

static void nomination_free(struct names *names, struct nomination *nomination)
{
    if (nomination != NULL)
        names_release(names, nomination->node);
    free(nomination);
}

/* What the object says of its nomination; NULL when there is none. Without memory *failed is set.
 */
static struct nomination *nomination_new(struct names *names, const struct pod_object *object,
                                         bool *failed)
{
    if (object->nominated_node.len == 0)
        return NULL;
    struct nomination *nomination = calloc(1, sizeof *nomination);
    if (nomination == NULL) {
        *failed = true;
        return NULL;
    }
    nomination->node = names_take(names, object->nominated_node, failed);
    if (object->created.len == CREATED_BYTES)
        memcpy(nomination->created, object->created.ptr, CREATED_BYTES);
    return nomination;
}

/* Frees a pod that holds nothing (any more) and is in no table. */
static void pod_free(struct cluster *cluster, struct pod *pod)
{
    unlink_uses(pod);
    unlink_deferring(pod);
    forget_claims(cluster, pod);
    leave_node(cluster, pod);
    names_release(&cluster->names, pod->ns);
    nomination_free(&cluster->names, pod->nomination);
    names_release(&cluster->names, pod->labels);
    uid_release(&cluster->names, pod->uid);
    pool_free(cluster->pods.pool, pod);
}

/* Connects the pod to its claims and its node. False: no memory. */
static bool connect_pod(struct cluster *cluster, struct pod *pod, const struct pod_object *object)
{
    for (unsigned i = 0; i < pod->use_count; i++) {
        struct claim *claim = claim_get_or_create(cluster, pod->ns, object->claims[i].name);
        if (claim == NULL)
            return false;
        pod->uses[i].index = (uint16_t)i;
        pod->uses[i].is_ephemeral = object->claims[i].is_ephemeral;
        pod->uses[i].is_deferred = object->claims[i].is_deferred;
        pod->uses[i].claim = claim;
        claim->named++;
    }
    if (object->node.len != 0) {
        pod->node = node_get_or_create(cluster, object->node);
        if (pod->node == NULL)
            return false;
        pod->node->pods++;
    }
    link_uses(pod);
    link_deferring(cluster, pod);
    return true;
}

/* Whether the pod's mounts may be asked about: they may come to be deferred, or are. */
static bool keeps_mounts(const struct cluster *cluster, const struct pod_object *object)
{
    const struct pod_mounts *mounts = object->mounts;

    if (mounts == NULL || phase_is_terminal(object->phase))
        return false;
    bool may_defer = mounts->runtime_class.len != 0 || cluster->keeps_all_mounts;
    return (object->node.len == 0 && may_defer) || mounts_defer(mounts);
}

/* A pod as the object says, linked but not yet counted nor in the table; NULL without memory. */
static struct pod *pod_new(struct cluster *cluster, const struct pod_object *object)
{
    size_t uses_bytes = object->claim_count * sizeof(struct use);
    size_t mounts_size = keeps_mounts(cluster, object) ? 7 + offsetof(struct kept_mounts, mounts) +
                                                             mounts_bytes(object->mounts)
                                                       : 0;
    struct pod *pod = pool_alloc(cluster->pods.pool,
                                 sizeof *pod + uses_bytes + object->meta.name.len + mounts_size);
    bool failed = false;

    if (pod == NULL)
        return NULL;
    pod->priority = (int32_t)object->priority;
    pod->use_count = (uint16_t)object->claim_count;
    pod->name_len = (uint16_t)object->meta.name.len;
    pod->is_terminal = phase_is_terminal(object->phase);
    pod->is_pending = slice_equal(object->phase, SLICE("Pending"));
    pod->is_terminating = object->meta.deletion_timestamp.len != 0;
    pod_list(cluster, pod);
    pod->never_preempts = slice_equal(object->preemption_policy, SLICE("Never"));
    pod->version = version_of(object->meta.resource_version);
    memcpy(&pod->uses[pod->use_count], object->meta.name.ptr, object->meta.name.len);
    pod->has_mounts = mounts_size != 0;
    if (pod->has_mounts)
        (void)mounts_copy(object->mounts, pod_mounts(pod));
    pod->ns = names_take(&cluster->names, object->meta.ns, &failed);
    pod->nomination = nomination_new(&cluster->names, object, &failed);
    if (pod->use_count != 0)
        pod->labels = names_take(&cluster->names, object->labels, &failed);
    pod->uid = uid_take(&cluster->names, object->meta.uid, &failed);
    if (!failed && connect_pod(cluster, pod, object)) {
        pod->record.hash = object_key_hash((struct object_key){pod->ns, object->meta.name});
        return pod;
    }
    pod_free(cluster, pod);
    return NULL;
}

/* The record goes; the pod may live on in another one. */
static void drop_record(struct cluster *cluster, struct pod *pod)
{
    stop_holding(cluster, pod);
    table_remove(&cluster->pods, &pod->record);
    cluster->counts[KIND_POD]--;
    pod_free(cluster, pod);
}

/* The pod is gone: its reservation, and what was answered about it and no watch has told. */
static void forget_uid(struct cluster *cluster, const struct uid *uid)
{
    char text[UID_TEXT_BYTES];

    if (cluster->unconfirmed != NULL)
        unconfirmed_forget(cluster, uid_text(uid, text));
    reservation_release(cluster, uid);
}

void pod_remove(struct cluster *cluster, struct pod *pod)
{
    forget_uid(cluster, &pod->uid);
    drop_record(cluster, pod);
}

/* Whether what is told of the pod may miss what was written on it: nobody takes a node or a
 * deferral back from a pod, so the watch is behind our own bind. Unless it was asked for later than
 * the answer to our Binding came, and knows of no node: then that was not applied. */
static bool may_be_behind(const struct cluster *cluster, const struct pod *known,
                          const struct pod_object *object, uint64_t asked_ns)
{
    return known != NULL && known->node != NULL && uid_is(&known->uid, object->meta.uid) &&
           !cluster->lists[KIND_POD].overrides &&
           (object->node.len != 0 || !unconfirmed_is_refuted(cluster, object->meta.uid, asked_ns));
}

/* The mounts of a bound pod of which what is told misses a deferral: the runtime has mounted the
 * volume, whatever the annotation says now, or the watch is behind our own write. NULL: it misses
 * none. */
static const struct pod_mounts *missed_deferrals(const struct pod *known,
                                                 const struct pod_object *object)
{
    const struct pod_mounts *mounts = pod_mounts(known);

    for (uint32_t i = 0; mounts != NULL && i < mounts->volume_count; i++) {
        const struct pod_volume *volume = &mounts->volumes[i];
        const struct pod_volume *told =
            object->mounts == NULL ? NULL : mounts_find_near(object->mounts, volume->name, i);
        if (volume_is_deferred(volume) && (told == NULL || !volume_is_deferred(told)))
            return mounts;
    }
    return NULL;
}

/* The pod's record takes the place of the one that was known. */
static void replace_record(struct cluster *cluster, struct pod *known, const struct pod *pod)
{
    if (known != NULL && memcmp(&known->uid, &pod->uid, sizeof pod->uid) != 0)
        forget_uid(cluster, &known->uid);
    if (pod->node != NULL || pod->is_terminal) /* it holds by itself, or needs nothing */
        reservation_release(cluster, &pod->uid);
    if (known != NULL)
        drop_record(cluster, known);
}

int pod_apply(struct cluster *cluster, const struct pod_object *object, uint64_t asked_ns,
              struct error *err)
{
    if (object->claim_count > POD_CLAIMS_MAX || object->meta.name.len > UINT16_MAX)
        return error_set(err, ERROR_TOO_BIG, "a pod with over %d claims, or %d bytes of name",
                         POD_CLAIMS_MAX, UINT16_MAX);
    struct pod *known = cluster_find_pod(cluster, object->meta.ns, object->meta.name);
    if (known != NULL && is_stale(cluster, KIND_POD, &object->meta, known->version)) {
        pod_list(cluster, known);
        return 0;
    }
    struct pod_object corrected = *object;
    bool is_behind = may_be_behind(cluster, known, object, asked_ns);
    if (is_behind && object->node.len == 0)
        corrected.node = pod_node(known);
    const struct pod_mounts *missed = is_behind ? missed_deferrals(known, object) : NULL;
    if (missed != NULL)
        corrected.mounts = missed;
    struct pod *pod = pod_new(cluster, &corrected);
    if (pod == NULL)
        return error_no_memory(err);
    for (uint32_t i = 0; missed != NULL && i < missed->volume_count; i++)
        if (volume_is_deferred(&missed->volumes[i]))
            cluster_defer(cluster, pod, missed->volumes[i].name);
    if (!start_holding(cluster, pod)) {
        pod_free(cluster, pod);
        return error_no_memory(err);
    }
    if (!table_add(&cluster->pods, &pod->record)) {
        stop_holding(cluster, pod);
        pod_free(cluster, pod);
        return error_no_memory(err);
    }
    cluster->counts[KIND_POD]++;
    replace_record(cluster, known, pod); /* only now: until here a failure leaves all as it was */
    if (object->node.len != 0 || pod->node == NULL)
        unconfirmed_forget(cluster, object->meta.uid); /* that it is bound is told, or is not so */
    return 0;
}

void pod_delete(struct cluster *cluster, const struct meta *meta)
{
    struct pod *pod = cluster_find_pod(cluster, meta->ns, meta->name);

    if (pod == NULL)
        return;
    if (!uid_is(&pod->uid, meta->uid) &&
        (meta->resource_version.len == 0 || is_stale(cluster, KIND_POD, meta, pod->version)))
        return; /* the deletion of an earlier pod of this name, or of nobody knows which */
    pod_remove(cluster, pod);
}

int cluster_assign(struct cluster *cluster, struct pod *pod, struct slice name, struct error *err)
{
    struct node *node = node_get_or_create(cluster, name);

    if (node == NULL)
        return error_no_memory(err);
    stop_holding(cluster, pod);
    unlink_uses(pod);
    node->pods++;
    leave_node(cluster, pod);
    pod->node = node;
    link_uses(pod);
    if (start_holding(cluster, pod)) {
        reservation_release(cluster, &pod->uid);
        return 0;
    }
    unlink_uses(pod);
    leave_node(cluster, pod);
    return error_no_memory(err);
}

void cluster_defer(struct cluster *cluster, struct pod *pod, struct slice name)
{
    struct pod_volume *volume = pod->has_mounts ? mounts_find(pod_mounts(pod), name) : NULL;

    if (volume == NULL)
        return;
    volume->is_annotated = true;
    link_deferring(cluster, pod);
    for (unsigned i = 0; i < pod->use_count; i++) {
        struct use *use = &pod->uses[i];
        if (use->is_deferred || !slice_equal(claim_name(use->claim), volume->claim))
            continue;
        use->is_deferred = true;
        use->claim->deferred += use->link != NULL;
    }
}

void pods_dispose(struct cluster *cluster)
{
    struct table_walk walk = {.at = 0};

    for (struct pod *pod; (pod = cluster_next_pod(cluster, &walk)) != NULL;) {
        free(pod->nomination);
        pool_free(cluster->pods.pool, pod); /* the names go all at once */
    }
    table_dispose(&cluster->pods);
}

bool cluster_describe_pod(const struct pod *pod, struct arena *arena, struct pod_object *out)
{
    char *uid = arena_alloc(arena, UID_TEXT_BYTES);

    *out = (struct pod_object){
        .meta = {.ns = name_slice(pod->ns), .name = pod_name(pod)},
        .node = pod_node(pod),
        .created = pod_created(pod),
        .nominated_node = pod_nominated_node(pod),
        .priority = pod->priority,
        .has_priority = !pod->has_no_priority,
        .claims = arena_alloc(arena, pod->use_count * sizeof *out->claims),
        .claim_count = pod->use_count,
        .mounts = pod_mounts(pod),
    };
    if (uid == NULL || out->claims == NULL)
        return false;
    out->meta.uid = uid_text(&pod->uid, uid);
    if (pod->is_terminating)
        out->meta.deletion_timestamp = SLICE("set");
    if (pod->never_preempts)
        out->preemption_policy = SLICE("Never");
    for (unsigned i = 0; i < pod->use_count; i++)
        out->claims[i] = (struct claim_reference){
            claim_name(pod->uses[i].claim), pod->uses[i].is_ephemeral, pod->uses[i].is_deferred};
    return true;
}

/* The mounts of the pod that the request is about; NULL: they are not kept. */
static const struct pod_mounts *known_mounts(const struct cluster *cluster,
                                             const struct pod_object *pod)
{
    const struct pod *known = cluster->deferring == NULL || pod->meta.uid.len == 0
                                  ? NULL
                                  : cluster_find_pod(cluster, pod->meta.ns, pod->meta.name);

    return known != NULL && uid_is(&known->uid, pod->meta.uid) ? pod_mounts(known) : NULL;
}

bool cluster_complete_pod(const struct cluster *cluster, struct pod_object *pod,
                          struct arena *arena)
{
    const struct pod_mounts *known = pod->mounts == NULL ? NULL : known_mounts(cluster, pod);

    if (known == NULL || known == pod->mounts || !mounts_miss_field(pod->mounts, known))
        return true;
    void *memory = arena_alloc(arena, mounts_bytes(pod->mounts));
    struct claim_reference *claims = arena_alloc(arena, pod->claim_count * sizeof *claims);
    if (memory == NULL || claims == NULL)
        return false;
    struct pod_mounts *mounts = mounts_copy(pod->mounts, memory);
    mounts_take_fields(mounts, known);
    for (size_t i = 0; i < pod->claim_count; i++) {
        claims[i] = pod->claims[i];
        for (uint32_t j = 0; j < mounts->volume_count && !claims[i].is_deferred; j++)
            claims[i].is_deferred = volume_is_deferred(&mounts->volumes[j]) &&
                                    mounts->volumes[j].claim.len != 0 &&
                                    slice_equal(mounts->volumes[j].claim, claims[i].name);
    }
    pod->mounts = mounts;
    pod->claims = claims;
    return true;
}
