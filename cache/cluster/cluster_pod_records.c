/*
 * The record of a pod: its memory, and its links to claims, to its node and to the pods that defer
 * mounts. A pod that holds its claims is counted on its node, and on each claim.
 */
#include "cache/cluster/allowance.h"
#include "cache/cluster/cluster_internal.h"
#include "cache/cluster/reservation.h"
#include "cache/objects/label_selector.h"

/* ---- the claims that it holds ---- */

static void uncount(struct cluster *cluster, const struct pod *pod, unsigned use_count)
{
    for (unsigned i = 0; i < use_count; i++) {
        struct claim *claim = claim_at(pod->uses[i].claim);
        refcount_remove(&cluster->refs, node_at(pod->node), claim);
        claim_add_refs(cluster, claim, -1);
    }
}

/* Counts the pod's claims on its node. The pod's uses are not linked. False: no memory; nothing was
 * counted. */
static bool start_holding(struct cluster *cluster, struct pod *pod)
{
    if (!pod_holds(pod))
        return true;
    for (unsigned i = 0; i < pod->use_count; i++) {
        struct claim *claim = claim_at(pod->uses[i].claim);
        if (!refcount_add(&cluster->refs, node_at(pod->node), claim)) {
            uncount(cluster, pod, i);
            return false;
        }
        claim_add_refs(cluster, claim, +1);
    }
    return true;
}

static void stop_holding(struct cluster *cluster, struct pod *pod)
{
    if (pod_holds(pod))
        uncount(cluster, pod, pod->use_count);
}

/* ---- links ---- */

static void leave_node(struct cluster *cluster, struct pod *pod)
{
    struct node *node = node_at(pod->node);

    if (node == NULL)
        return;
    node->pods--;
    node_free_if_unused(cluster, node);
    pod->node = node_ref(NULL);
}

/* Whether the pod can conflict with another one. Only these pods are linked from their claims, so a
 * verdict costs the same when a thousand pending replicas name one claim. */
static bool may_hold(const struct pod *pod)
{
    return pod_holds(pod) || (pod_is_nominated(pod) && !pod->is_terminal && !pod->is_terminating);
}

static void link_uses(struct pod *pod)
{
    for (unsigned i = 0; may_hold(pod) && i < pod->use_count; i++) {
        struct use *use = &pod->uses[i];
        struct claim *claim = claim_at(use->claim);
        claim->deferred += use->is_deferred;
        use->is_linked = true;
        use->former = use_ref(NULL);
        use->next = claim->uses;
        if (use->next.step != 0)
            use_at(use->next)->former = use_ref(use);
        claim->uses = use_ref(use);
    }
}

static void unlink_uses(struct pod *pod)
{
    for (unsigned i = 0; i < pod->use_count; i++) {
        struct use *use = &pod->uses[i];
        struct claim *claim = claim_at(use->claim);
        if (!use->is_linked)
            continue;
        *(use->former.step != 0 ? &use_at(use->former)->next : &claim->uses) = use->next;
        if (use->next.step != 0)
            use_at(use->next)->former = use->former;
        use->is_linked = false;
        claim->deferred -= use->is_deferred;
    }
}

static void forget_claims(struct cluster *cluster, struct pod *pod)
{
    for (unsigned i = 0; i < pod->use_count; i++) {
        struct claim *claim = claim_at(pod->uses[i].claim);
        if (claim == NULL)
            continue; /* connect_pod failed before this use */
        claim->named--;
        claim_free_if_unused(cluster, claim);
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
    struct kept_mounts *kept = pod_kept_mounts(pod);

    if (kept == NULL || kept->link == NULL)
        return;
    *kept->link = kept->next_deferring;
    if (kept->next_deferring != NULL)
        pod_kept_mounts(kept->next_deferring)->link = kept->link;
    kept->link = NULL;
}

/* ---- the record ---- */

static void nomination_free(struct names *names, struct nomination *nomination)
{
    if (nomination != NULL)
        names_release(names, nomination->node);
    pool_free(names->table.pool, nomination);
}

/* The object's nomination; NULL: it has none, or there is no memory, then *failed is set. */
static struct nomination *nomination_new(struct names *names, const struct pod_object *object,
                                         bool *failed)
{
    if (object->nominated_node.len == 0)
        return NULL;
    struct nomination *nomination = pool_alloc(names->table.pool, sizeof *nomination);
    if (nomination == NULL) {
        *failed = true;
        return NULL;
    }
    nomination->node = names_take(names, object->nominated_node, failed);
    if (object->created.len == CREATED_BYTES)
        memcpy(nomination->created, object->created.ptr, CREATED_BYTES);
    return nomination;
}

/* What the pod takes of its namespace's allowance. It alone may name its claims, which then need
 * not exist. */
static size_t allowance_of(const struct pod *pod)
{
    size_t bytes = sizeof *pod + pod->name_len + name_text(pod->labels).len;

    for (unsigned i = 0; i < pod->use_count; i++) {
        const struct claim *claim = claim_at(pod->uses[i].claim);
        bytes += sizeof *pod->uses + (claim == NULL ? 0 : CLAIM_BYTES + claim->name_len);
    }
    return bytes + (pod->has_mounts ? mounts_bytes(pod_mounts(pod)) : 0);
}

/* Frees a pod that is not counted, not linked from its claims and not in the table. */
static void pod_free(struct cluster *cluster, struct pod *pod)
{
    unlink_deferring(pod);
    allowance_release(cluster, name_at(pod->ns), allowance_of(pod));
    forget_claims(cluster, pod);
    leave_node(cluster, pod);
    names_release(&cluster->names, name_at(pod->ns));
    nomination_free(&cluster->names, nomination_at(pod->nomination));
    names_release(&cluster->names, name_at(pod->labels));
    uid_release(&cluster->names, pod->uid);
    pool_free(cluster->pods.pool, pod);
}

/* Connects the pod to its claims and its node. False: no memory. */
static bool connect_pod(struct cluster *cluster, struct pod *pod, const struct pod_object *object)
{
    for (unsigned i = 0; i < pod->use_count; i++) {
        struct claim *claim =
            claim_get_or_create(cluster, name_at(pod->ns), object->claims[i].name);
        if (claim == NULL)
            return false;
        pod->uses[i].index = (uint16_t)i;
        pod->uses[i].is_ephemeral = object->claims[i].is_ephemeral;
        pod->uses[i].is_deferred = object->claims[i].is_deferred;
        pod->uses[i].claim = claim_ref(claim);
        claim->named++;
    }
    if (object->node.len != 0) {
        struct node *node = node_get_or_create(cluster, object->node);
        if (node == NULL)
            return false;
        pod->node = node_ref(node);
        node->pods++;
    }
    link_deferring(cluster, pod);
    return true;
}

/* Whether the pod's mounts are stored: some are deferred, or a bind reads them, because it may
 * defer them or has to check an inline CSI volume. */
static bool keeps_mounts(const struct cluster *cluster, const struct pod_object *object)
{
    const struct pod_mounts *mounts = object->mounts;

    if (mounts == NULL || phase_is_terminal(object->phase))
        return false;
    bool are_read = (mounts->runtime_class.len != 0 && object->claim_count != 0) ||
                    cluster->keeps_all_mounts || mounts_have_inline(mounts);
    return (object->node.len == 0 && are_read) || mounts_defer(mounts);
}

static struct name *take_labels(struct names *names, const struct pod_object *object, bool *failed)
{
    char buffer[LABELS_SHARED_MAX];

    return names_take(names, labels_share(object->labels, object->meta.name, buffer), failed);
}

/* The bytes of a pod's record; see the drawing above struct pod. */
static size_t pod_bytes(const struct pod_object *object, bool has_mounts)
{
    size_t bytes =
        sizeof(struct pod) + object->claim_count * sizeof(struct use) + object->meta.name.len;

    if (has_mounts)
        bytes += KEPT_MOUNTS_ALIGN - 1 + offsetof(struct kept_mounts, mounts) +
                 mounts_bytes(object->mounts);
    return bytes;
}

struct pod *pod_new(struct cluster *cluster, const struct pod_object *object)
{
    bool has_mounts = keeps_mounts(cluster, object);
    struct pod *pod = pool_alloc(cluster->pods.pool, pod_bytes(object, has_mounts));
    bool failed = false;

    if (pod == NULL)
        return NULL;
    pod->priority = (int32_t)object->priority;
    pod->use_count = (uint16_t)object->claim_count;
    pod->name_len = (uint16_t)object->meta.name.len;
    pod->is_terminal = phase_is_terminal(object->phase);
    pod->is_gated = object->is_gated;
    pod->is_grouped = object->is_grouped;
    pod->is_pending = slice_equal(object->phase, SLICE("Pending"));
    pod->is_terminating = object->meta.deletion_timestamp.len != 0;
    pod->listed = cluster_list_mark(cluster, KIND_POD) & LISTED_MAX;
    pod->never_preempts = slice_equal(object->preemption_policy, SLICE("Never"));
    pod->version = version_of(object->meta.resource_version);
    memcpy(&pod->uses[pod->use_count], object->meta.name.ptr, object->meta.name.len);
    pod->has_mounts = has_mounts;
    if (has_mounts)
        (void)mounts_copy(object->mounts, pod_mounts(pod));
    pod->ns = name_ref(names_take(&cluster->names, object->meta.ns, &failed));
    pod->nomination = nomination_ref(nomination_new(&cluster->names, object, &failed));
    if (pod->use_count != 0)
        pod->labels = name_ref(take_labels(&cluster->names, object, &failed));
    pod->uid = uid_take(&cluster->names, object->meta.uid, &failed);
    failed = failed || !connect_pod(cluster, pod, object);
    pod->record.hash = object_key_hash((struct object_key){name_at(pod->ns), object->meta.name});
    allowance_charge(cluster, KIND_POD, name_at(pod->ns), pod->record.hash, allowance_of(pod));
    if (!failed)
        return pod;
    pod_free(cluster, pod);
    return NULL;
}

bool pod_add(struct cluster *cluster, struct pod *pod)
{
    bool is_counted = start_holding(cluster, pod);

    if (is_counted && table_add(&cluster->pods, &pod->record)) {
        link_uses(pod);
        nominated_add(cluster, pod);
        cluster->counts[KIND_POD]++;
        return true;
    }
    if (is_counted)
        stop_holding(cluster, pod);
    pod_free(cluster, pod);
    return false;
}

void pod_drop(struct cluster *cluster, struct pod *pod)
{
    unlink_uses(pod);
    nominated_remove(cluster, pod);
    stop_holding(cluster, pod);
    table_remove(&cluster->pods, &pod->record);
    cluster->counts[KIND_POD]--;
    pod_free(cluster, pod);
}

/* ---- changes to a record ---- */

int cluster_assign(struct cluster *cluster, struct pod *pod, struct slice name, struct error *err)
{
    struct node *node = node_get_or_create(cluster, name);

    if (node == NULL)
        return error_no_memory(err);
    unlink_uses(pod);
    stop_holding(cluster, pod);
    node->pods++;
    leave_node(cluster, pod);
    pod->node = node_ref(node);
    if (start_holding(cluster, pod)) {
        link_uses(pod);
        reservation_release(cluster, &pod->uid);
        return 0;
    }
    leave_node(cluster, pod);
    link_uses(pod);
    return error_no_memory(err);
}

/* The pod's uses of the claim are deferred from now on, or are not. */
static void set_deferred(struct pod *pod, struct slice name, bool is_deferred)
{
    for (unsigned i = 0; i < pod->use_count; i++) {
        struct use *use = &pod->uses[i];
        struct claim *claim = claim_at(use->claim);
        if (use->is_deferred == is_deferred || !slice_equal(claim_name(claim), name))
            continue;
        use->is_deferred = is_deferred;
        claim->deferred += is_deferred ? use->is_linked : 0U;
        claim->deferred -= is_deferred ? 0U : use->is_linked;
    }
}

void cluster_defer(struct cluster *cluster, struct pod *pod, struct slice name)
{
    struct pod_volume *volume = pod->has_mounts ? mounts_find(pod_mounts(pod), name) : NULL;

    if (volume == NULL)
        return;
    volume->is_annotated = true;
    link_deferring(cluster, pod);
    set_deferred(pod, volume->claim, true);
}

static bool defers_claim(const struct pod_mounts *mounts, struct slice claim)
{
    for (uint32_t i = 0; i < mounts->volume_count; i++)
        if (volume_is_deferred(&mounts->volumes[i]) && slice_equal(mounts->volumes[i].claim, claim))
            return true;
    return false;
}

void cluster_undefer(struct pod *pod, struct slice name)
{
    struct pod_mounts *mounts = pod_mounts(pod);
    struct pod_volume *volume = mounts == NULL ? NULL : mounts_find(mounts, name);

    if (volume == NULL)
        return;
    volume->is_annotated = false;
    if (!mounts_defer(mounts))
        unlink_deferring(pod);
    set_deferred(pod, volume->claim, defers_claim(mounts, volume->claim));
}

void pods_dispose(struct cluster *cluster)
{
    struct table_walk walk = {.at = 0};

    for (struct pod *pod; (pod = cluster_next_pod(cluster, &walk)) != NULL;) {
        pool_free(cluster->pods.pool, nomination_at(pod->nomination));
        pool_free(cluster->pods.pool, pod); /* names_dispose frees the names */
    }
    table_dispose(&cluster->pods);
}
