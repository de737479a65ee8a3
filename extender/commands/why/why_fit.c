/* Causes: what the pod itself asks of nodes, as kube-scheduler's NodeUnschedulable, TaintToleration
 * and NodeAffinity do. It matters here where the pod's volumes leave only some nodes, so only those
 * are checked. */
#include "cache/objects/label_selector.h"
#include "extender/commands/why/why_internal.h"

/* Whether claims rule out some of the nodes, and not all. */
static bool is_narrowed(const struct why_pod *pod)
{
    size_t out = 0;

    for (size_t n = 0; n < pod->node_count; n++)
        out += pod->nodes[n].out_by != NULL ? 1 : 0;
    return out != 0 && out != pod->node_count;
}

/* ---- taints ---- */

void why_cordoned(struct why_pod *pod)
{
    bool *rejected = is_narrowed(pod) ? why_flags(pod) : NULL;

    if (rejected == NULL)
        return;
    for (size_t n = 0; n < pod->node_count; n++)
        rejected[n] =
            pod->nodes[n].out_by == NULL && who_is_cordoned(&pod->who, pod->nodes[n].node);
    struct slice names = why_node_names(pod, rejected, true);
    (void)why_add_nodes(pod, WHY_NARROWS, rejected, why_pod_reference(pod),
                        "cordoned, of the nodes that can have its volumes: %.*s", SLICE_ARG(names));
}

/* Whether Kubernetes itself sets taints of that key. */
static bool is_of_kubernetes(struct slice key)
{
    static const char prefix[] = "node.kubernetes.io/";

    return key.len >= sizeof prefix && memcmp(key.ptr, prefix, sizeof prefix - 1) == 0;
}

const struct taint *why_find_user_taint(const struct pull_items *items)
{
    const struct taint *taints = items->items;

    for (size_t i = 0; i < items->count; i++)
        if (!is_of_kubernetes(taints[i].key) &&
            !slice_equal(taints[i].effect, SLICE("PreferNoSchedule")))
            return &taints[i];
    return NULL;
}

bool why_node_details(struct why_pod *pod, struct slice node, struct node_details *out)
{
    struct slice text = inquiry_find_details(pod->inquiry, KIND_NODE, SLICE(""), node);

    return text.ptr != NULL && node_details_read(text, pod->arena, out);
}

static bool is_same_taint(const struct taint *a, const struct taint *b)
{
    return a != NULL && slice_equal(a->key, b->key) && slice_equal(a->value, b->value) &&
           slice_equal(a->effect, b->effect);
}

/* Appends "dedicated=gpu:NoSchedule (node-4)", as kubectl writes taints. */
static bool add_taint(struct why_pod *pod, const struct taint *const *taints,
                      const struct taint *taint, struct slice *text)
{
    bool *same = why_flags(pod);

    for (size_t n = 0; same != NULL && n < pod->node_count; n++)
        same[n] = is_same_taint(taints[n], taint);
    struct slice names = same == NULL ? SLICE("") : why_node_names(pod, same, true);
    *text = arena_printf(pod->arena, "%.*s%s%.*s%s%.*s:%.*s (%.*s)", SLICE_ARG(*text),
                         text->len == 0 ? "" : ", ", SLICE_ARG(taint->key),
                         taint->value.len == 0 ? "" : "=", SLICE_ARG(taint->value),
                         SLICE_ARG(taint->effect), SLICE_ARG(names));
    return text->ptr != NULL;
}

/* Each of the first few taints once. {NULL, 0}: no memory. */
static struct slice taints_text(struct why_pod *pod, const struct taint *const *taints)
{
    const struct taint *shown[WHY_NAMES_SHOWN_MAX];
    struct slice text = SLICE("");
    size_t count = 0;

    for (size_t n = 0; n < pod->node_count; n++) {
        bool is_new = taints[n] != NULL;
        for (size_t i = 0; i < count && is_new; i++)
            is_new = !is_same_taint(shown[i], taints[n]);
        if (is_new && count == WHY_NAMES_SHOWN_MAX)
            return arena_printf(pod->arena, "%.*s, and others", SLICE_ARG(text));
        if (is_new && !add_taint(pod, taints, taints[n], &text))
            return text;
        if (is_new)
            shown[count++] = taints[n];
    }
    return text;
}

void why_tainted(struct why_pod *pod)
{
    bool *rejected = is_narrowed(pod) ? why_flags(pod) : NULL;
    const struct taint **taints =
        rejected == NULL ? NULL
                         : arena_alloc(pod->arena, pod->node_count * sizeof(const struct taint *));
    bool is_of_user = false, is_up = false;
    const struct why_node *out_of_service = NULL;

    pod->has_failed = pod->has_failed || (rejected != NULL && taints == NULL);
    for (size_t n = 0; taints != NULL && n < pod->node_count; n++) {
        taints[n] = pod->nodes[n].out_by != NULL
                        ? NULL
                        : who_find_taint(&pod->who, &pod->nodes[n].placed->taints);
        rejected[n] = taints[n] != NULL;
        if (rejected[n] && slice_equal(taints[n]->key, SLICE(OUT_OF_SERVICE_TAINT)))
            out_of_service = &pod->nodes[n];
        is_up = is_up || (rejected[n] && !pod->nodes[n].node->is_not_ready);
        is_of_user = is_of_user || (rejected[n] && !is_of_kubernetes(taints[n]->key));
    }
    if (taints == NULL || why_count_nodes(pod, rejected, true) == 0)
        return;
    struct slice text = taints_text(pod, taints);
    if (!why_add_nodes(pod, WHY_NARROWS, rejected, why_pod_reference(pod),
                       "taints that it does not tolerate, of the nodes that can have its volumes: "
                       "%.*s",
                       SLICE_ARG(text)))
        return;
    if (out_of_service != NULL) {
        why_help(pod, "somebody has marked node %.*s as out of service: remove the taint%s",
                 SLICE_ARG(out_of_service->name),
                 out_of_service->node->is_not_ready ? " when the machine runs again"
                                                    : ", as the node is ready");
        why_command(pod, ADVICE_IN_SERVICE,
                    &(const struct advice_words){.name = out_of_service->name});
    } else if (is_of_user)
        why_help(pod, "if the pod may run there, add a toleration to it");
    else if (is_up) /* else it is to be brought back */
        why_help(pod, "Kubernetes sets them while something is wrong there: its conditions "
                      "say what");
}

/* ---- labels ---- */

bool why_is_wanted(const struct why_pod *pod, const struct why_node *node)
{
    return !placement_knows_labels(pod->view.placement, node->placed) ||
           who_wants_node(&pod->who, node->name, node->labels);
}

/* "nodeSelector (pool=db)", "nodeAffinity (zone in a)", or both: what the pod asks of nodes. Empty:
 * no memory. */
static struct slice wanted_text(struct why_pod *pod, struct slice *where)
{
    const struct pod_details *details = &pod->who.details;
    struct slice selector = details->node_selector, terms = SLICE(""), text = SLICE("");

    (void)slice_cut(&selector, '\n'); /* the mark of a label set */
    while (selector.len != 0) {
        struct slice line = slice_cut(&selector, '\n'), key = slice_cut(&line, ' ');
        text = arena_printf(pod->arena, "%.*s%s%.*s=%.*s", SLICE_ARG(text),
                            text.len == 0 ? "" : ", ", SLICE_ARG(key), SLICE_ARG(line));
    }
    if (details->node_terms.count != 0)
        terms = node_terms_text(&details->node_terms, pod->arena);
    *where = terms.len == 0 ? text
             : text.len == 0
                 ? terms
                 : arena_printf(pod->arena, "%.*s and %.*s", SLICE_ARG(text), SLICE_ARG(terms));
    if (terms.len == 0)
        return arena_printf(pod->arena, "nodeSelector (%.*s)", SLICE_ARG(text));
    if (text.len == 0)
        return arena_printf(pod->arena, "nodeAffinity (%.*s)", SLICE_ARG(terms));
    return arena_printf(pod->arena, "nodeSelector (%.*s) and nodeAffinity (%.*s)", SLICE_ARG(text),
                        SLICE_ARG(terms));
}

/* What the pod's volumes ask of a node; empty: nothing that a cause says. */
static struct slice volumes_where(const struct why_pod *pod)
{
    for (size_t i = 0; i < pod->cause_count; i++)
        if (pod->causes[i].where.len != 0)
            return pod->causes[i].where;
    return SLICE("");
}

void why_not_wanted(struct why_pod *pod)
{
    bool *rejected = is_narrowed(pod) ? why_flags(pod) : NULL;
    struct slice where, of_volumes = volumes_where(pod);

    if (rejected == NULL)
        return;
    for (size_t n = 0; n < pod->node_count; n++)
        rejected[n] = pod->nodes[n].out_by == NULL && !why_is_wanted(pod, &pod->nodes[n]);
    if (why_count_nodes(pod, rejected, true) == 0)
        return;
    struct slice names = why_node_names(pod, rejected, true), wanted = wanted_text(pod, &where);
    if (!why_add_nodes(pod, WHY_NARROWS, rejected, why_pod_reference(pod),
                       "its %.*s rule%s out, of the nodes that can have its volumes, %.*s",
                       SLICE_ARG(wanted), slice_has(wanted, SLICE(") and node")) ? "" : "s",
                       SLICE_ARG(names)) ||
        pod->lacks_driver)
        return;
    if (of_volumes.len == 0)
        why_help(pod, "change that, or add a node with %.*s", SLICE_ARG(where));
    else
        why_help(pod,
                 "add a node with %.*s, and %.*s; or change what the pod asks for; or restore the "
                 "data to a new volume where such nodes are",
                 SLICE_ARG(where), SLICE_ARG(of_volumes));
}
