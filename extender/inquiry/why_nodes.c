/* Causes: where volumes can be used, against the nodes that there are. */
#include "cache/objects/label_selector.h"
#include "extender/inquiry/why_internal.h"

/* ---- nodeAffinity of a volume ---- */

/* Whether the terms name a node, which a new one does not replace: it does not have the data. */
static bool name_a_node(struct slice terms)
{
    static const char key[] = "kubernetes.io/hostname", field[] = "metadata.name";

    return memmem(terms.ptr, terms.len, key, sizeof key - 1) != NULL ||
           memmem(terms.ptr, terms.len, field, sizeof field - 1) != NULL;
}

static void help_by_nodes(struct why_pod *pod, const bool *passes, struct slice what)
{
    struct slice names = why_node_names(pod, passes, true);

    if (pod->stage == WHY_STARTING)
        why_help(pod, json_sprintf("the pod must run elsewhere: delete it; a scheduler would not "
                                   "have chosen the node (spec.nodeName)"));
    else if (names.len == 0 && name_a_node(what))
        why_help(pod, json_sprintf("bring back the node with %.*s: the data is there, and a new "
                                   "node of that name does not have it; or restore the data to a "
                                   "new volume elsewhere",
                                   SLICE_ARG(what)));
    else if (name_a_node(what))
        why_help(pod, json_sprintf("make room on %.*s", SLICE_ARG(names)));
    else if (names.len == 0)
        why_help(pod, json_sprintf("add a node with %.*s; or restore the data to a new volume "
                                   "elsewhere",
                                   SLICE_ARG(what)));
    else
        why_help(pod, json_sprintf("make room on %.*s, or add a node with %.*s", SLICE_ARG(names),
                                   SLICE_ARG(what)));
}

static void find_unfit(struct why_pod *pod, const struct why_claim *claim)
{
    bool *rejected = why_flags(pod);
    struct object_reference reference = why_volume_reference(claim);
    struct slice terms = node_terms_text(&claim->volume_details.terms, pod->arena);
    size_t before = json_array_size(pod->causes);

    if (rejected == NULL || terms.ptr == NULL) {
        pod->rc = -1;
        return;
    }
    for (size_t n = 0; n < pod->node_count; n++)
        rejected[n] = !claim->fits[n];
    why_add_nodes(pod, pod->stage == WHY_STARTING ? WHY_BLOCKS : WHY_NARROWS, rejected, &reference,
                  json_sprintf("volume %.*s of claim %.*s/%.*s can be used on %zu of %zu nodes: "
                               "where %.*s",
                               SLICE_ARG(claim->who.volume), CLAIM_ARG(claim),
                               why_count_nodes(pod, rejected, false), pod->node_count,
                               SLICE_ARG(terms)));
    if (json_array_size(pod->causes) != before)
        help_by_nodes(pod, claim->fits, terms);
}

void why_affinity(struct why_pod *pod)
{
    for (size_t i = 0; i < pod->claim_count; i++)
        if (pod->claims[i].fits != NULL)
            find_unfit(pod, &pod->claims[i]);
}

/* ---- two volumes ---- */

static bool have_common_node(const struct why_pod *pod, const bool *a, const bool *b)
{
    for (size_t n = 0; n < pod->node_count; n++)
        if (a[n] && b[n])
            return true;
    return false;
}

/* Whether a cause was added. */
static bool find_apart(struct why_pod *pod, const struct why_claim *a, const struct why_claim *b)
{
    struct object_reference reference = why_volume_reference(b);

    if (have_common_node(pod, a->fits, b->fits))
        return false;
    struct slice x = why_node_names(pod, a->fits, true), y = why_node_names(pod, b->fits, true);
    if (x.len == 0 || y.len == 0) /* it has no node at all */
        return false;
    why_add(pod, WHY_BLOCKS, &reference,
            json_sprintf("volumes %.*s (node %.*s) and %.*s (node %.*s) have no node in common",
                         SLICE_ARG(a->who.volume), SLICE_ARG(x), SLICE_ARG(b->who.volume),
                         SLICE_ARG(y)));
    why_help(pod, json_sprintf("restore one of them to a new volume where the other one is; a "
                               "class with volumeBindingMode WaitForFirstConsumer makes both in "
                               "one place"));
    return true;
}

/* One pair is enough. */
void why_apart(struct why_pod *pod)
{
    for (size_t i = 0; pod->stage == WHY_SCHEDULING && i < pod->claim_count; i++)
        for (size_t j = i + 1; j < pod->claim_count; j++)
            if (pod->claims[i].fits != NULL && pod->claims[j].fits != NULL &&
                find_apart(pod, &pod->claims[i], &pod->claims[j]))
                return;
}

/* ---- zone labels of a volume ---- */

/* As kube-scheduler's VolumeZone: the value of a volume's label is a set, "a__b". */
static bool is_in_set(struct slice set, struct slice value)
{
    while (set.len != 0) {
        const char *end = memmem(set.ptr, set.len, "__", 2);
        struct slice item = {set.ptr, end == NULL ? set.len : (size_t)(end - set.ptr)};
        if (slice_equal(item, value))
            return true;
        set = end == NULL ? (struct slice){"", 0} : (struct slice){end + 2, set.len - item.len - 2};
    }
    return false;
}

/* Labels of volumes, and what the same is called on a newer node. */
static const struct {
    const char *key, *other;
} zone_labels[] = {
    {"topology.kubernetes.io/zone", NULL},
    {"topology.kubernetes.io/region", NULL},
    {"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"},
    {"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"},
};
enum { ZONE_LABELS = sizeof zone_labels / sizeof *zone_labels };

/* The volume's label of that key; one with an empty item is ignored, as by kube-scheduler. */
static bool find_set(struct slice labels, const char *key, struct slice *set)
{
    return labels_find(labels, slice_of(key), set) && set->len != 0 &&
           !is_in_set(*set, SLICE("")) && !slice_ends_with(*set, SLICE("__"));
}

/* A node without any zone label passes, as in kube-scheduler. */
static bool is_in_zone(struct slice volume, struct slice node)
{
    bool has_any = false, is_in = true;

    for (size_t i = 0; i < ZONE_LABELS; i++) {
        struct slice wanted, value;
        bool has = labels_find(node, slice_of(zone_labels[i].key), &value);
        has_any = has_any || has;
        if (!has && zone_labels[i].other != NULL)
            has = labels_find(node, slice_of(zone_labels[i].other), &value);
        if (find_set(volume, zone_labels[i].key, &wanted))
            is_in = is_in && has && is_in_set(wanted, value);
    }
    return !has_any || is_in;
}

/* "a, b" of the set "a__b". {NULL, 0}: no memory. */
static struct slice set_text(struct slice set, struct arena *arena)
{
    const char *end = memmem(set.ptr, set.len, "__", 2);

    while (end != NULL && set.ptr != NULL) {
        struct slice first = {set.ptr, (size_t)(end - set.ptr)};
        struct slice rest = {end + 2, set.len - first.len - 2};
        set = arena_printf(arena, "%.*s, %.*s", SLICE_ARG(first), SLICE_ARG(rest));
        end = set.ptr == NULL ? NULL : memmem(set.ptr, set.len, "__", 2);
    }
    return set;
}

/* "KEY in a, b, and KEY in c": the volume's zone labels. Empty: none. {NULL, 0}: no memory. */
static struct slice zones_text(const struct why_claim *claim, struct arena *arena)
{
    struct slice text = SLICE(""), set;

    for (size_t i = 0; i < ZONE_LABELS && text.ptr != NULL; i++)
        if (find_set(claim->volume_details.labels, zone_labels[i].key, &set))
            text = arena_printf(arena, "%.*s%s%s in %.*s", SLICE_ARG(text),
                                text.len == 0 ? "" : ", and ", zone_labels[i].key,
                                SLICE_ARG(set_text(set, arena)));
    return text;
}

static void find_out_of_zone(struct why_pod *pod, const struct why_claim *claim, struct slice zones)
{
    struct object_reference reference = why_volume_reference(claim);
    bool *rejected = why_flags(pod), *passes = why_flags(pod), says_more = false;

    if (rejected == NULL || passes == NULL)
        return;
    for (size_t n = 0; n < pod->node_count; n++) {
        passes[n] = pod->nodes[n].is_unread ||
                    is_in_zone(claim->volume_details.labels, pod->nodes[n].labels);
        rejected[n] = !passes[n];
        says_more = says_more || (rejected[n] && (claim->fits == NULL || claim->fits[n]));
    }
    if (!says_more)
        return;
    why_add_nodes(pod, pod->stage == WHY_STARTING ? WHY_BLOCKS : WHY_NARROWS, rejected, &reference,
                  json_sprintf("volume %.*s of claim %.*s/%.*s can be used on %zu of %zu nodes: "
                               "its labels say %.*s",
                               SLICE_ARG(claim->who.volume), CLAIM_ARG(claim),
                               why_count_nodes(pod, passes, true), pod->node_count,
                               SLICE_ARG(zones)));
    help_by_nodes(pod, passes, zones);
}

/* kube-scheduler checks the labels beside a nodeAffinity, too, which as a rule says the same. */
void why_zone(struct why_pod *pod)
{
    for (size_t i = 0; i < pod->claim_count && pod->has_labels; i++) {
        const struct why_claim *claim = &pod->claims[i];
        struct slice zones = zones_text(claim, pod->arena);
        pod->rc |= zones.ptr == NULL ? -1 : 0;
        if (zones.len != 0)
            find_out_of_zone(pod, claim, zones);
    }
}

/* ---- where a class can make volumes ---- */

static bool has_topology(const struct topology *topology, struct slice labels)
{
    const struct topology_label *wanted = topology->labels.items;

    for (size_t i = 0; i < topology->labels.count; i++) {
        const struct slice *values = wanted[i].values.items;
        struct slice value;
        bool is_met = false;
        if (!labels_find(labels, wanted[i].key, &value))
            return false;
        for (size_t j = 0; j < wanted[i].values.count; j++)
            is_met = is_met || slice_equal(values[j], value);
        if (!is_met)
            return false;
    }
    return topology->labels.count != 0; /* an empty term matches no node */
}

static bool has_a_topology(const struct storage_class_details *class, struct slice labels)
{
    const struct topology *topologies = class->topologies.items;

    for (size_t i = 0; i < class->topologies.count; i++)
        if (has_topology(&topologies[i], labels))
            return true;
    return false;
}

void why_topology(struct why_pod *pod)
{
    for (size_t i = 0; i < pod->claim_count && pod->has_labels; i++) {
        const struct why_claim *claim = &pod->claims[i];
        const struct object_reference reference = {
            .kind = KIND_STORAGE_CLASS, .name = name_slice(claim_storage_class(claim->who.claim))};
        size_t before = json_array_size(pod->causes);
        if (!claim->who.claim->exists || claim->is_bound ||
            claim->class_details.topologies.count == 0 || why_has_offer(pod, claim))
            continue;
        bool *rejected = why_flags(pod);
        for (size_t n = 0; rejected != NULL && n < pod->node_count; n++)
            rejected[n] = !pod->nodes[n].is_unread &&
                          !has_a_topology(&claim->class_details, pod->nodes[n].labels);
        why_add_nodes(pod, WHY_NARROWS, rejected, &reference,
                      json_sprintf("StorageClass %.*s of claim %.*s/%.*s makes volumes only where "
                                   "its allowedTopologies say",
                                   SLICE_ARG(reference.name), CLAIM_ARG(claim)));
        if (json_array_size(pod->causes) != before)
            why_help(pod, json_sprintf("make room on a node of those, or use another class"));
    }
}

/* ---- all together ---- */

/* Causes that reject some nodes each may leave none together. */
void why_no_node(struct why_pod *pod)
{
    struct object_reference reference = why_pod_reference(pod);
    const json_t *cause;
    size_t i, left = 0;

    json_array_foreach (pod->causes, i, cause)
        if (strcmp(value_string(cause, "effect"), "Blocks") == 0)
            return;
    for (size_t n = 0; n < pod->node_count; n++)
        left += pod->nodes[n].is_out ? 0 : 1;
    if (pod->node_count == 0 || left != 0)
        return;
    why_add(pod, WHY_BLOCKS, &reference,
            json_sprintf("each of the %zu nodes is rejected by one of the causes above",
                         pod->node_count));
    why_help(pod, json_sprintf("end one of those causes for a node"));
}
