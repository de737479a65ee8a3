/*
 * read_write_once: the pods of a ReadWriteOnce volume that has to be attached run on one node
 * (kubernetes#103305). Today only the attach/detach controller sees to that, after a pod is bound:
 * the pod sits in ContainerCreating with FailedAttachVolume ("Multi-Attach error"; 1.37: "Waiting
 * for detach"). For each bound claim:
 *
 *   its volume may be on several nodes, or is not
 *     attached, or the claim is ReadWriteOncePod     Skip
 *   no pod holds it                                  Success
 *   a node where a holder runs                       Success
 *   another node                                     Unresolvable, that node
 *
 * The volume's access modes count, as for Kubernetes' IsMultiAttachAllowed; the claim's do not.
 * Holders are pods that are assigned and not finished, and pods that are being bound, on their
 * node. Also the pod itself while its Binding is in doubt: it may still be applied. A pod that has
 * the claim for itself (exclusive.h) is ReadWriteOncePod's business.
 */
#include <stdlib.h>

#include "cache/cluster/reservation.h"
#include "policy/exclusive.h"
#include "policy/holders.h"
#include "policy/volume.h"

/* ---- where a volume has to be attached: the nodes of the pods that hold its claim ---- */

/* With pods on more nodes, which no attached volume serves, a node may be listed twice at first,
 * and all pods are read: a search through thousands of nodes for each pod would be quadratic. */
enum { ATTACHED_PODS_MAX = CAUSES_MAX, NODES_SEARCHED = 16 };

struct attached_node {
    const struct name *name;
    bool is_leaving; /* every holder there is terminating */
};

/* A pod that holds the claim: in the claim's namespace. */
struct attached_pod {
    struct slice name;
    const struct uid *uid;
    const struct name *node;
    bool is_leaving; /* the node is: set when all are found */
};

struct attached {
    const struct claim *claim;
    struct arena *arena;
    struct attached_node *nodes;                 /* finally: by name, and each once */
    size_t node_count;                           /* 0: nobody holds the claim */
    size_t lasting;                              /* nodes with a holder that does not terminate */
    struct attached_pod pods[ATTACHED_PODS_MAX]; /* finally: by node, then by name */
    size_t pod_count, total;
    uint32_t known; /* pods on these nodes that use the claim: all of claim->refs, perhaps */
};

/* The node, which is added if it is new. NULL: no memory. */
static struct attached_node *get_node(struct attached *attached, const struct name *name)
{
    size_t first =
        attached->node_count > NODES_SEARCHED ? attached->node_count - NODES_SEARCHED : 0;

    for (size_t i = first; i < attached->node_count; i++)
        if (attached->nodes[i].name == name)
            return &attached->nodes[i];
    struct attached_node *grown =
        arena_grow(attached->arena, attached->nodes, attached->node_count, sizeof *grown);
    if (grown == NULL)
        return NULL;
    attached->nodes = grown;
    grown[attached->node_count] = (struct attached_node){name, true};
    return &grown[attached->node_count++];
}

static bool add(struct attached *attached, struct attached_pod pod, bool is_terminating)
{
    struct attached_node *node = get_node(attached, pod.node);

    if (node == NULL)
        return false;
    if (!is_terminating && node->is_leaving) {
        node->is_leaving = false;
        attached->lasting++;
    }
    if (attached->pod_count < ATTACHED_PODS_MAX)
        attached->pods[attached->pod_count++] = pod;
    attached->total++;
    return true;
}

/* Whether the other pods of the claim change nothing: they are on the nodes that are known, of
 * which each keeps the claim. */
static bool is_complete(const struct attached *attached)
{
    return attached->known == attached->claim->refs && attached->lasting == attached->node_count &&
           attached->pod_count == ATTACHED_PODS_MAX && attached->node_count <= NODES_SEARCHED;
}

static bool add_assigned(struct attached *attached, const struct view *view,
                         const struct pod_object *pod)
{
    const struct claim *claim = attached->claim;
    bool may_be_exclusive = exclusive_may_be_held(claim);
    uint32_t read = 0;

    for (const struct use *use = use_at(claim->uses); use != NULL && !is_complete(attached);
         use = use_at(use->next)) {
        const struct pod *holder = use_pod(use);
        size_t nodes = attached->node_count;
        if (!pod_holds(holder))
            continue;
        read++;
        if (hold_against(view->cluster, holder, pod) == HOLD_NONE ||
            (may_be_exclusive && exclusive_is_held(view, use)))
            continue;
        if (!add(attached,
                 (struct attached_pod){.name = pod_name(holder),
                                       .uid = &holder->uid,
                                       .node = node_at(holder->node)->name},
                 holder->is_terminating))
            return false;
        if (attached->node_count != nodes)
            attached->known += refcount_get(&view->cluster->refs, node_at(holder->node), claim);
    }
    attached->total += claim->refs - read;
    return true;
}

static bool add_being_bound(struct attached *attached, const struct cluster *cluster)
{
    const struct reservation *next = NULL;

    while ((next = reservation_next_sharing(cluster, attached->claim, next)) != NULL)
        if (next->node != NULL &&
            !add(attached,
                 (struct attached_pod){
                     .name = name_slice(next->name), .uid = &next->uid, .node = next->node},
                 false))
            return false;
    return true;
}

static int compare_nodes(const void *a, const void *b)
{
    const struct attached_node *x = a, *y = b;

    return slice_compare(name_slice(x->name), name_slice(y->name));
}

static int compare_pods(const void *a, const void *b)
{
    const struct attached_pod *x = a, *y = b;
    int order = slice_compare(name_slice(x->node), name_slice(y->node));

    return order != 0 ? order : slice_compare(x->name, y->name);
}

/* Sorts the nodes, and makes one of those that are listed twice. */
static void sort_nodes(struct attached *attached)
{
    struct attached_node *nodes = attached->nodes;
    size_t count = 0;

    if (attached->node_count != 0)
        qsort(nodes, attached->node_count, sizeof *nodes, compare_nodes);
    for (size_t i = 0; i < attached->node_count; i++)
        if (count != 0 && nodes[count - 1].name == nodes[i].name)
            nodes[count - 1].is_leaving = nodes[count - 1].is_leaving && nodes[i].is_leaving;
        else
            nodes[count++] = nodes[i];
    attached->node_count = count;
}

static void sort_pods(struct attached *attached)
{
    size_t at = 0; /* both are sorted by the node */

    qsort(attached->pods, attached->pod_count, sizeof *attached->pods, compare_pods);
    for (size_t i = 0; i < attached->pod_count; i++) {
        while (at + 1 < attached->node_count && attached->nodes[at].name != attached->pods[i].node)
            at++;
        attached->pods[i].is_leaving = attached->nodes[at].is_leaving;
    }
}

/*
 * The holders: the other pods that are assigned and not finished, and all pods that are being bound
 * (also `pod`: an earlier Binding of it may still be applied), but those that have the claim for
 * themselves (exclusive.h). Does not walk through the pods of a claim that are on one node, unless
 * all of them are terminating. False: there is no memory.
 */
static bool find_attached(const struct view *view, const struct pod_object *pod,
                          const struct claim *claim, struct arena *arena, struct attached *out)
{
    *out = (struct attached){.claim = claim, .arena = arena};
    if (!add_assigned(out, view, pod) || !add_being_bound(out, view->cluster))
        return false;
    sort_nodes(out);
    sort_pods(out);
    return true;
}

bool read_write_once_elsewhere(const struct view *view, const struct pod_object *pod,
                               const struct claim *claim, struct arena *arena, struct slice *node)
{
    struct attached attached;

    *node = SLICE("");
    if (!find_attached(view, pod, claim, arena, &attached))
        return false;
    for (size_t i = 0; i < attached.node_count; i++)
        if (slice_equal(name_slice(attached.nodes[i].name), view->node))
            return true;
    if (attached.node_count != 0)
        *node = name_slice(attached.nodes[0].name);
    return true;
}

/* ---- what the pod's claims say together ---- */

/* A holder that the pod waits for. */
struct awaited_pod {
    struct slice name;
    const struct uid *uid;
    size_t place; /* among the holders of its claim */
};

/* What the pod's claims say together. */
struct findings {
    bool is_judged;     /* it has a claim that the policy is about, */
    bool is_restricted; /* and one that is in use */
    const struct attached_node
        *nodes; /* where the pod passes: a holder of each of those is there */
    size_t node_count;
    struct awaited_pod awaited[CAUSES_MAX]; /* by place, then in the order of the claims */
    size_t awaited_count;
    struct verdict texts; /* its reasons; and drivers that it waits for */
};

bool read_write_once_judges(const struct view *view, const struct pod_object *pod, size_t index,
                            const struct claim *claim)
{
    if (claim == NULL || claim->is_rwop)
        return false;
    const struct resource *volume = volume_of(view->cluster, claim);
    return volume != NULL && volume_is_on_one_node(view->cluster, volume) &&
           !exclusive_is_needed(view, pod, index, claim);
}

/* ---- texts ---- */

static struct slice describe(const struct cluster *cluster, const struct claim *claim,
                             const struct attached_pod *holder, struct arena *arena)
{
    struct slice ns = name_text(claim->ns); /* also the holder's */
    struct slice where = name_slice(holder->node);
    const struct node *node = cluster_find_node(cluster, where);
    struct slice text = arena_printf(
        arena, "claim %.*s/%.*s (ReadWriteOnce) is in use on %.*s by pod %.*s/%.*s", SLICE_ARG(ns),
        SLICE_ARG(claim_name(claim)), SLICE_ARG(where), SLICE_ARG(ns), SLICE_ARG(holder->name));

    if (text.ptr != NULL && holder->is_leaving)
        text = arena_printf(arena, "%.*s, terminating on %.*s", SLICE_ARG(text), SLICE_ARG(where));
    if (text.ptr != NULL && (node == NULL || node->is_not_ready))
        text = arena_printf(arena, "%.*s (%.*s is not ready)", SLICE_ARG(text), SLICE_ARG(where));
    return text;
}

/* Waits for the first holder of each claim, then for the second of each, and so on while there is
 * room. One of each is enough: nodes are gained only when a claim has no holder left, and a pod
 * that is requeued too early waits for the next holder. */
static void await(struct findings *out, const struct attached_pod *holder, size_t place)
{
    size_t at = out->awaited_count;

    while (at > 0 && out->awaited[at - 1].place > place)
        at--;
    if (at == CAUSES_MAX)
        return;
    out->awaited_count += out->awaited_count < CAUSES_MAX;
    for (size_t i = out->awaited_count - 1; i > at; i--)
        out->awaited[i] = out->awaited[i - 1];
    out->awaited[at] = (struct awaited_pod){holder->name, holder->uid, place};
}

/* False: no memory; the texts are those of an Error. */
static bool put_holders(const struct cluster *cluster, const struct claim *claim,
                        const struct attached *attached, struct arena *arena, struct findings *out)
{
    for (size_t i = 0; i < attached->pod_count; i++) {
        const struct attached_pod *holder = &attached->pods[i];
        await(out, holder, i);
        if (out->texts.reason_count == VERDICT_REASONS_MAX)
            out->texts.left_out++;
        else if (!verdict_add_reason(&out->texts, arena, describe(cluster, claim, holder, arena)))
            return false;
    }
    out->texts.left_out += attached->total - attached->pod_count;
    return true;
}

/* ---- nodes ---- */

/* Keeps the nodes that are also among these. Both lists are sorted. False: no memory. */
static bool intersect(struct findings *findings, const struct attached *attached,
                      struct arena *arena)
{
    struct attached_node *both = arena_alloc(arena, attached->node_count * sizeof *both);
    size_t count = 0;

    if (both == NULL)
        return false;
    for (size_t i = 0, j = 0; i < findings->node_count && j < attached->node_count;) {
        int order =
            slice_compare(name_slice(findings->nodes[i].name), name_slice(attached->nodes[j].name));
        if (order == 0)
            both[count++] = findings->nodes[i];
        i += order <= 0;
        j += order >= 0;
    }
    findings->nodes = both;
    findings->node_count = count;
    return true;
}

/* A driver that is not known counts as one that attaches; it may turn out not to. False: no memory.
 */
static bool await_driver(const struct cluster *cluster, const struct claim *claim,
                         struct arena *arena, struct findings *out)
{
    struct slice driver = volume_driver(volume_of(cluster, claim));

    return driver.len == 0 || cluster_find_resource(cluster, KIND_CSI_DRIVER, driver) != NULL ||
           verdict_await(&out->texts, arena, KIND_CSI_DRIVER, driver);
}

/* False: no memory. */
static bool add_claim(const struct view *view, const struct pod_object *pod,
                      const struct claim *claim, struct arena *arena, struct findings *out)
{
    struct attached attached;

    if (!find_attached(view, pod, claim, arena, &attached))
        return false;
    if (attached.node_count == 0)
        return true;
    if (out->is_restricted) {
        if (!intersect(out, &attached, arena))
            return false;
    } else {
        out->nodes = attached.nodes;
        out->node_count = attached.node_count;
    }
    out->is_restricted = true;
    return put_holders(view->cluster, claim, &attached, arena, out) &&
           await_driver(view->cluster, claim, arena, out);
}

/* False: no memory; *out is Error. */
static bool put_awaited(const struct findings *findings, struct slice ns, struct arena *arena,
                        struct verdict *out)
{
    char uid[UID_TEXT_BYTES];

    for (size_t i = 0; i < findings->awaited_count; i++) {
        const struct awaited_pod *holder = &findings->awaited[i];
        struct object_reference reference = {KIND_POD, ns, holder->name,
                                             uid_text(holder->uid, uid)};
        if (!verdict_add_awaited(out, arena, &reference))
            return false;
    }
    for (size_t i = 0; i < findings->texts.awaited_count; i++)
        if (!verdict_add_awaited(out, arena, &findings->texts.awaited[i]))
            return false;
    return true;
}

/* The findings as a node filter. False: no memory. */
static bool put_filter(struct findings *findings, struct arena *arena, struct verdict *out)
{
    struct node_filter *filter = arena_alloc(arena, sizeof *filter);
    struct slice *names = arena_alloc(arena, (findings->node_count + 1) * sizeof *names);

    if (filter == NULL || names == NULL || !verdict_add_left_out(&findings->texts, arena))
        return false;
    for (size_t i = 0; i < findings->node_count; i++) {
        names[i] = arena_copy(arena, name_slice(findings->nodes[i].name));
        if (names[i].ptr == NULL)
            return false;
    }
    *filter = (struct node_filter){.names = names,
                                   .count = findings->node_count,
                                   .nominates = true,
                                   .reason = verdict_message(&findings->texts, arena)};
    out->nodes = filter;
    return true;
}

static void prefilter(const struct view *view, const struct pod_object *pod, struct arena *arena,
                      struct verdict *out)
{
    struct findings findings = {.is_judged = false};
    bool has_memory = true;

    *out = (struct verdict){.code = CODE_SKIP};
    for (size_t i = 0; i < pod->claim_count && has_memory; i++) {
        const struct claim *claim =
            cluster_find_claim(view->cluster, pod->meta.ns, pod->claims[i].name);
        if (!read_write_once_judges(view, pod, i, claim))
            continue;
        findings.is_judged = true;
        has_memory = add_claim(view, pod, claim, arena, &findings);
    }
    if (findings.is_judged)
        out->code = CODE_SUCCESS;
    if (!has_memory ||
        (findings.is_restricted &&
         (!put_filter(&findings, arena, out) || !put_awaited(&findings, pod->meta.ns, arena, out))))
        verdict_out_of_memory(out);
}

static int mode(const struct config *config)
{
    return config->read_write_once.mode;
}

/* It reads access modes, and whether the driver attaches. */
const struct policy read_write_once = {
    .name = "ReadWriteOnce",
    .mode = mode,
    .reads = 1U << KIND_VOLUME | 1U << KIND_CSI_DRIVER,
    .prefilter = prefilter,
};
