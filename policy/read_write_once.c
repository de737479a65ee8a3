#include "policy/read_write_once.h"

#include "policy/attached.h"
#include "policy/bound_volume.h"
#include "policy/conflicts.h"
#include "policy/exclusive.h"

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
    size_t left_out;      /* holders without a reason of their own */
};

/* Whether the volume is on one node at a time, because it has to be attached. */
static bool is_for_one_node(const struct cluster *cluster, const struct resource *volume)
{
    struct slice driver = bound_volume_driver(volume);

    if ((resource_number(volume) & VOLUME_IS_FOR_ONE_NODE) == 0)
        return false;
    if (driver.len ==
        0) /* iSCSI and Fibre Channel are attached without one; NFS and such are not */
        return resource_attribute(volume, VOLUME_IN_TREE).len != 0;
    const struct resource *object = cluster_find_resource(cluster, KIND_CSI_DRIVER, driver);
    return object == NULL || (resource_number(object) & CSI_DRIVER_DOES_NOT_ATTACH) == 0;
}

bool read_write_once_judges(const struct view *view, const struct pod_object *pod, size_t index,
                            const struct claim *claim)
{
    if (claim == NULL || claim->is_rwop)
        return false;
    const struct resource *volume = bound_volume_find(view->cluster, claim);
    return volume != NULL && is_for_one_node(view->cluster, volume) &&
           !exclusive_is_needed(view, pod, index, claim);
}

/* ---- texts ---- */

static struct slice describe(const struct cluster *cluster, const struct claim *claim,
                             const struct attached_pod *holder, struct arena *arena)
{
    struct slice ns = name_text(claim->ns); /* also the holder's */
    struct slice where = name_slice(holder->node->name);
    const struct node *node = cluster_find_node(cluster, where);
    struct slice text = arena_printf(
        arena, "claim %.*s/%.*s (ReadWriteOnce) is in use on %.*s by pod %.*s/%.*s", SLICE_ARG(ns),
        SLICE_ARG(claim_name(claim)), SLICE_ARG(where), SLICE_ARG(ns), SLICE_ARG(holder->name));

    if (text.ptr != NULL && holder->node->is_leaving)
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
            out->left_out++;
        else if (!verdict_add_reason(&out->texts, arena, describe(cluster, claim, holder, arena)))
            return false;
    }
    out->left_out += attached->more;
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
    struct slice driver = bound_volume_driver(bound_volume_find(cluster, claim));

    return driver.len == 0 || cluster_find_resource(cluster, KIND_CSI_DRIVER, driver) != NULL ||
           verdict_add_awaited(&out->texts, arena,
                               &(struct object_reference){.kind = KIND_CSI_DRIVER, .name = driver});
}

/* False: no memory. */
static bool add_claim(const struct view *view, const struct pod_object *pod,
                      const struct claim *claim, struct arena *arena, struct findings *out)
{
    struct attached attached;

    if (!attached_find(view, pod, claim, arena, &attached))
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

    if (filter == NULL || names == NULL ||
        !verdict_add_left_out(&findings->texts, arena, findings->left_out))
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

static void prefilter(const struct view *view, const struct pod_object *asked, struct arena *arena,
                      struct verdict *out)
{
    struct findings findings = {.is_judged = false};
    struct pod_object pod = *asked;
    bool has_memory = cluster_complete_pod(view->cluster, &pod, arena);

    *out = (struct verdict){.code = CODE_SKIP};
    for (size_t i = 0; i < pod.claim_count && has_memory; i++) {
        const struct claim *claim =
            cluster_find_claim(view->cluster, pod.meta.ns, pod.claims[i].name);
        if (!read_write_once_judges(view, &pod, i, claim))
            continue;
        findings.is_judged = true;
        has_memory = add_claim(view, &pod, claim, arena, &findings);
    }
    if (findings.is_judged)
        out->code = CODE_SUCCESS;
    if (!has_memory ||
        (findings.is_restricted &&
         (!put_filter(&findings, arena, out) || !put_awaited(&findings, pod.meta.ns, arena, out))))
        verdict_out_of_memory(out);
}

static int mode(const struct config *config)
{
    return config->read_write_once.mode;
}

const struct policy read_write_once = {
    .name = "ReadWriteOnce",
    .mode = mode,
    .prefilter = prefilter,
};
