#include "policy/attached.h"

#include <stdlib.h>

#include "cache/cluster/reservation.h"
#include "policy/exclusive.h"
#include "policy/holders.h"

/* With pods on more nodes, which no attached volume serves, a node may be listed twice at first,
 * and all pods are read: a search through thousands of nodes for each pod would be quadratic. */
enum { NODES_SEARCHED = 16 };

/* A holder as it is found: its node is a name until the nodes are sorted. */
struct found_pod {
    struct slice name;
    const struct uid *uid;
    const struct name *node;
};

struct search {
    const struct claim *claim;
    struct arena *arena;
    struct attached_node *nodes;
    size_t node_count;
    size_t lasting; /* nodes with a holder that does not terminate */
    struct found_pod pods[ATTACHED_PODS_MAX];
    size_t pod_count, total;
    uint32_t known; /* pods on these nodes that use the claim: all of claim->refs, perhaps */
};

/* The node, which is added if it is new. NULL: no memory. */
static struct attached_node *get_node(struct search *search, const struct name *name)
{
    size_t first = search->node_count > NODES_SEARCHED ? search->node_count - NODES_SEARCHED : 0;

    for (size_t i = first; i < search->node_count; i++)
        if (search->nodes[i].name == name)
            return &search->nodes[i];
    struct attached_node *grown =
        arena_grow(search->arena, search->nodes, search->node_count, sizeof *grown);
    if (grown == NULL)
        return NULL;
    search->nodes = grown;
    grown[search->node_count] = (struct attached_node){name, true};
    return &grown[search->node_count++];
}

static bool add(struct search *search, struct found_pod pod, bool is_terminating)
{
    struct attached_node *node = get_node(search, pod.node);

    if (node == NULL)
        return false;
    if (!is_terminating && node->is_leaving) {
        node->is_leaving = false;
        search->lasting++;
    }
    if (search->pod_count < ATTACHED_PODS_MAX)
        search->pods[search->pod_count++] = pod;
    search->total++;
    return true;
}

/* Whether the other pods of the claim change nothing: they are on the nodes that are known, of
 * which each keeps the claim. */
static bool is_complete(const struct search *search)
{
    return search->known == search->claim->refs && search->lasting == search->node_count &&
           search->pod_count == ATTACHED_PODS_MAX && search->node_count <= NODES_SEARCHED;
}

static bool add_assigned(struct search *search, const struct view *view,
                         const struct pod_object *pod)
{
    const struct claim *claim = search->claim;
    bool may_be_exclusive = exclusive_may_be_held(claim);
    uint32_t read = 0;

    for (const struct use *use = use_at(claim->uses); use != NULL && !is_complete(search);
         use = use_at(use->next)) {
        const struct pod *holder = use_pod(use);
        size_t nodes = search->node_count;
        if (!pod_holds(holder))
            continue;
        read++;
        if (hold_against(view->cluster, holder, pod) == HOLD_NONE ||
            (may_be_exclusive && exclusive_is_held(view, use)))
            continue;
        if (!add(search,
                 (struct found_pod){pod_name(holder), &holder->uid, node_at(holder->node)->name},
                 holder->is_terminating))
            return false;
        if (search->node_count != nodes)
            search->known += refcount_get(&view->cluster->refs, node_at(holder->node), claim);
    }
    search->total += claim->refs - read;
    return true;
}

static bool add_being_bound(struct search *search, const struct cluster *cluster)
{
    const struct reservation *next = NULL;

    while ((next = reservation_next_sharing(cluster, search->claim, next)) != NULL)
        if (next->node != NULL &&
            !add(search, (struct found_pod){name_slice(next->name), &next->uid, next->node}, false))
            return false;
    return true;
}

/* ---- in order ---- */

static int compare_nodes(const void *a, const void *b)
{
    const struct attached_node *x = a, *y = b;

    return slice_compare(name_slice(x->name), name_slice(y->name));
}

static int compare_pods(const void *a, const void *b)
{
    const struct found_pod *x = a, *y = b;
    int order = slice_compare(name_slice(x->node), name_slice(y->node));

    return order != 0 ? order : slice_compare(x->name, y->name);
}

/* Sorts the nodes, and makes one of those that are listed twice. */
static void sort_nodes(struct search *search, struct attached *out)
{
    out->nodes = search->nodes;
    out->node_count = 0;
    if (search->node_count != 0)
        qsort(search->nodes, search->node_count, sizeof *search->nodes, compare_nodes);
    for (size_t i = 0; i < search->node_count; i++) {
        struct attached_node *last = out->node_count == 0 ? NULL : &out->nodes[out->node_count - 1];
        if (last != NULL && last->name == search->nodes[i].name)
            last->is_leaving = last->is_leaving && search->nodes[i].is_leaving;
        else
            out->nodes[out->node_count++] = search->nodes[i];
    }
}

static void sort_pods(struct search *search, struct attached *out)
{
    size_t at = 0; /* both are sorted by the node */

    qsort(search->pods, search->pod_count, sizeof *search->pods, compare_pods);
    for (size_t i = 0; i < search->pod_count; i++) {
        const struct found_pod *pod = &search->pods[i];
        while (at + 1 < out->node_count && out->nodes[at].name != pod->node)
            at++;
        out->pods[i] = (struct attached_pod){pod->name, pod->uid, &out->nodes[at]};
    }
    out->pod_count = search->pod_count;
    out->more = search->total - search->pod_count;
}

bool attached_find(const struct view *view, const struct pod_object *pod, const struct claim *claim,
                   struct arena *arena, struct attached *out)
{
    struct search search = {.claim = claim, .arena = arena};

    if (!add_assigned(&search, view, pod) || !add_being_bound(&search, view->cluster))
        return false;
    sort_nodes(&search, out);
    sort_pods(&search, out);
    return true;
}
