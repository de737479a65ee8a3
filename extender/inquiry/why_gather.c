/* One pod: what is known of it, of its claims and volumes, and of the nodes. */
#include <stdlib.h>

#include "extender/inquiry/why_internal.h"
#include "policy/bound_volume.h"

enum { NODES_ARENA_BYTES_MAX = 1 << 30 };

/* ---- claims ---- */

static int compare_claims(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const struct naming *)a)->claim;
    uintptr_t y = (uintptr_t)((const struct naming *)b)->claim;

    return (x > y) - (x < y);
}

/* The namings of a claim. */
struct named {
    const struct naming *namings;
    size_t count;
};

static struct named find_named(const struct naming *namings, size_t count,
                               const struct claim *claim)
{
    const struct naming key = {.claim = claim};
    const struct naming *found =
        count == 0 ? NULL : bsearch(&key, namings, count, sizeof *namings, compare_claims);
    struct named named = {.namings = found};

    if (found == NULL)
        return named;
    while (named.namings > namings && named.namings[-1].claim == claim)
        named.namings--;
    while (named.namings + named.count < namings + count &&
           named.namings[named.count].claim == claim)
        named.count++;
    return named;
}

/* Of its claims, the pod is no holder that it waits for. */
static void leave_out(struct who_claim *claim, const struct pod *pod)
{
    size_t kept = 0;

    for (size_t i = 0; i < claim->holder_count; i++)
        if (claim->holders[i].pod != pod)
            claim->holders[kept++] = claim->holders[i];
    claim->holder_count = kept;
}

/* False: no memory. */
static bool read_volume(struct why_claim *out, const struct inquiry *inquiry, struct arena *arena)
{
    const struct claim *claim = out->who.claim;

    out->is_bound = claim_has_volume(claim);
    out->volume = claim->exists ? bound_volume_find(&inquiry->cluster, claim) : NULL;
    out->class = cluster_find_resource(&inquiry->cluster, KIND_STORAGE_CLASS,
                                       name_slice(claim_storage_class(claim)));
    struct slice text = out->volume == NULL ? (struct slice){NULL, 0}
                                            : inquiry_find_details(inquiry, KIND_VOLUME, SLICE(""),
                                                                   out->who.volume);
    if (text.ptr != NULL && !volume_details_read(text, arena, &out->volume_details))
        return false;
    text = inquiry_find_details(inquiry, KIND_STORAGE_CLASS, SLICE(""),
                                name_slice(claim_storage_class(claim)));
    if (out->who.is_of_earlier) {
        out->volume = NULL;
        out->volume_details = (struct volume_details){.terms = {0}};
    }
    return out->class == NULL || text.ptr == NULL ||
           storage_class_details_read(text, arena, &out->class_details);
}

static bool take_claims(struct why_pod *out, const struct who_index *index,
                        const struct naming *namings, size_t count)
{
    out->claims = arena_alloc(out->arena, (out->pod->use_count + 1U) * sizeof *out->claims);
    if (out->claims == NULL)
        return false;
    for (size_t i = 0; i < out->pod->use_count; i++) {
        struct why_claim *claim = &out->claims[out->claim_count++];
        const struct use *use = &out->pod->uses[i];
        struct named named = find_named(namings, count, claim_at(use->claim));
        *claim = (struct why_claim){.use = use};
        claim->who =
            (struct who_claim){.inquiry = out->inquiry, .arena = out->arena, .asked = out->pod};
        if (!who_gather(&claim->who, index, claim_at(use->claim), named.namings, named.count) ||
            !read_volume(claim, out->inquiry, out->arena))
            return false;
        leave_out(&claim->who, out->pod);
    }
    return true;
}

/* ---- nodes ---- */

static int compare_nodes(const void *a, const void *b)
{
    return slice_compare(((const struct why_node *)a)->name, ((const struct why_node *)b)->name);
}

/* The labels are in the arena, for the text is forgotten before. False: no memory. */
static bool read_labels(const struct inquiry *inquiry, struct arena *arena, struct why_node *node)
{
    struct slice text = inquiry_find_details(inquiry, KIND_NODE, SLICE(""), node->name);
    struct node_details details;

    node->is_unread = text.ptr == NULL;
    if (node->is_unread)
        return true;
    if (!node_details_read(text, arena, &details))
        return false;
    node->labels = arena_copy(arena, details.labels);
    return node->labels.ptr != NULL;
}

void why_shared_init(struct why_shared *shared)
{
    *shared = (struct why_shared){.nodes = NULL};
    arena_init(&shared->arena, NODES_ARENA_BYTES_MAX);
}

void why_shared_dispose(struct why_shared *shared)
{
    arena_dispose(&shared->arena);
}

static bool list_nodes(struct why_shared *shared, const struct cluster *cluster)
{
    struct table_walk walk = {.at = 0};

    if (shared->nodes != NULL)
        return true;
    shared->nodes =
        arena_alloc(&shared->arena, (cluster->counts[KIND_NODE] + 1) * sizeof *shared->nodes);
    if (shared->nodes == NULL)
        return false;
    for (const struct node *node; (node = cluster_next_node(cluster, &walk)) != NULL;)
        if (node->exists)
            shared->nodes[shared->node_count++] =
                (struct why_node){.node = node, .name = name_slice(node->name), .labels = {"", 0}};
    qsort(shared->nodes, shared->node_count, sizeof *shared->nodes, compare_nodes);
    return true;
}

/* Whether a claim can be used on some nodes only, so that the labels of all are needed. */
static bool needs_labels(const struct why_pod *pod)
{
    for (size_t i = 0; i < pod->claim_count; i++)
        if (pod->claims[i].volume_details.terms.count != 0 ||
            pod->claims[i].volume_details.labels.len != 0 ||
            pod->claims[i].class_details.topologies.count != 0)
            return true;
    return false;
}

/* Reads the labels of all nodes; or if they are not needed, until one has any: this says whether
 * they are known. */
static bool read_all_labels(struct why_shared *shared, const struct inquiry *inquiry,
                            bool needs_all)
{
    bool has_any = false;

    if (shared->are_labels_read)
        return true;
    for (size_t i = 0; i < shared->node_count && (needs_all || !has_any); i++) {
        if (!read_labels(inquiry, &shared->arena, &shared->nodes[i]))
            return false;
        has_any = has_any || shared->nodes[i].labels.len != 0;
    }
    shared->are_labels_read = needs_all;
    return true;
}

/* Of a pod without a node: all nodes. */
static bool take_all_nodes(struct why_pod *out)
{
    struct why_shared *shared = out->shared;

    if (!list_nodes(shared, &out->inquiry->cluster) ||
        !read_all_labels(shared, out->inquiry, needs_labels(out)))
        return false;
    out->nodes = arena_alloc(out->arena, (shared->node_count + 1) * sizeof *out->nodes);
    if (out->nodes == NULL)
        return false;
    memcpy(out->nodes, shared->nodes, shared->node_count * sizeof *out->nodes);
    out->node_count = shared->node_count;
    return true;
}

static bool take_nodes(struct why_pod *out)
{
    const struct node *node = node_at(out->pod->node);

    if (node == NULL ? !take_all_nodes(out)
                     : (out->nodes = arena_alloc(out->arena, sizeof *out->nodes)) == NULL)
        return false;
    if (node != NULL && node->exists) {
        out->nodes[out->node_count++] =
            (struct why_node){.node = node, .name = name_slice(node->name), .labels = {"", 0}};
        if (!read_labels(out->inquiry, out->arena, out->nodes))
            return false;
    }
    for (size_t i = 0; i < out->node_count; i++)
        out->has_labels = out->has_labels || out->nodes[i].labels.len != 0;
    return true;
}

/* Where the volumes of the claims can be used, by their nodeAffinity. */
static bool take_fits(struct why_pod *out)
{
    for (size_t i = 0; i < out->claim_count; i++) {
        struct why_claim *claim = &out->claims[i];
        const struct pull_items *terms = &claim->volume_details.terms;
        if (terms->count == 0 || !out->has_labels)
            continue;
        claim->fits = why_flags(out);
        if (claim->fits == NULL)
            return false;
        for (size_t n = 0; n < out->node_count; n++)
            claim->fits[n] = out->nodes[n].is_unread ||
                             node_terms_match(terms, out->nodes[n].name, out->nodes[n].labels);
    }
    return true;
}

/* ---- the pod ---- */

/* The kubelet mounts all volumes before it makes the pod's sandbox, and that before it pulls images
 * and starts containers. A kubelet before 1.29 has no such condition. */
static bool has_mounted(const struct pod_details *details)
{
    const struct condition *ready =
        details_condition(&details->conditions, SLICE("PodReadyToStartContainers"));
    struct slice reason = details->containers.waiting_reason;

    if (ready != NULL)
        return slice_equal(ready->status, SLICE("True"));
    return details->containers.has_started ||
           (reason.len != 0 && !slice_equal(reason, SLICE("ContainerCreating")) &&
            !slice_equal(reason, SLICE("PodInitializing")));
}

/* Whether a pod that ran needs a new sandbox, and its volumes again, as after its node has started
 * again. */
static bool has_lost_sandbox(const struct why_pod *pod)
{
    const struct condition *ready =
        details_condition(&pod->who.details.conditions, SLICE("PodReadyToStartContainers"));

    return ready != NULL && !slice_equal(ready->status, SLICE("True")) && !pod->pod->is_terminating;
}

static enum why_stage find_stage(const struct why_pod *pod)
{
    if (pod->pod->is_terminal)
        return WHY_FINISHED;
    if (!pod_is_assigned(pod->pod))
        return WHY_SCHEDULING;
    bool waits = pod->pod->is_pending ? !has_mounted(&pod->who.details) : has_lost_sandbox(pod);
    return waits ? WHY_STARTING : WHY_RUNNING;
}

bool why_gather(struct why_pod *out, const struct who_index *index, const struct naming *namings,
                size_t count, const struct why_asked *asked)
{
    const struct who_claim base = {.inquiry = out->inquiry, .arena = out->arena};

    if (!who_pod_init(&out->who, &base, out->pod) ||
        !cluster_describe_pod(out->pod, out->arena, &out->object))
        return false;
    if (out->object.mounts == NULL)
        out->object.mounts = asked->mounts;
    out->view.node = pod_node(out->pod);
    out->stage = find_stage(out);
    return take_claims(out, index, namings, count) && take_nodes(out) && take_fits(out);
}
