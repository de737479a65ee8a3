/* Causes: where volumes can be used, against the nodes that there are. */
#include "cache/objects/label_selector.h"
#include "extender/commands/why/why_internal.h"
#include "policy/node_volume_limits.h"
#include "policy/volume_zone.h"

/* ---- nodeAffinity of a volume ---- */

#define HOSTNAME "kubernetes.io/hostname"

/* Whether the terms name a node, which a new one does not replace: it does not have the data. */
static bool name_a_node(struct slice terms)
{
    static const char key[] = HOSTNAME, field[] = "metadata.name";

    return memmem(terms.ptr, terms.len, key, sizeof key - 1) != NULL ||
           memmem(terms.ptr, terms.len, field, sizeof field - 1) != NULL;
}

/* The last cause passes nodes that have this, if any. */
static void add_where(struct why_pod *pod, struct slice where, bool is_anywhere)
{
    struct why_cause *cause = &pod->causes[pod->cause_count - 1];

    cause->where = arena_copy(pod->texts, where);
    cause->needs_room = is_anywhere && pod->stage == WHY_SCHEDULING;
    pod->has_failed = pod->has_failed || cause->where.ptr == NULL;
}

/* A node whose name the volume has, as the label of another name; NULL: none. */
static const struct why_node *find_renamed(const struct why_pod *pod, const struct why_claim *claim,
                                           struct slice *label)
{
    const struct node_term *term = claim->terms.own.items;
    const struct node_requirement *expressions =
        claim->terms.own.count == 0 ? NULL : term->expressions.items;

    for (size_t n = 0; expressions != NULL && n < pod->node_count; n++)
        for (size_t i = 0; i < term->expressions.count; i++)
            if (slice_equal(expressions[i].key, SLICE(HOSTNAME)) &&
                slice_is_among(pod->nodes[n].name, expressions[i].values.items,
                               expressions[i].values.count) &&
                labels_find(pod->nodes[n].labels, SLICE(HOSTNAME), label) &&
                !slice_equal(*label, pod->nodes[n].name))
                return &pod->nodes[n];
    return NULL;
}

/* The volume names a node by what is not its label: that is not changed any more, in neither. */
static void help_renamed(struct why_pod *pod, const struct why_claim *claim,
                         const struct why_node *node, struct slice label)
{
    struct slice maker = claim->who.class == NULL
                             ? SLICE("its provisioner")
                             : resource_attribute(claim->who.class, STORAGE_CLASS_PROVISIONER);
    struct slice policy = claim->volume_details->reclaim_policy;

    why_help(pod,
             "node %.*s is there, and its label " HOSTNAME " is %.*s: %.*s writes the node's name "
             "into each volume; mend that first (a newer version, or its configuration)",
             SLICE_ARG(node->name), SLICE_ARG(label), SLICE_ARG(maker));
    if (!slice_equal(policy, SLICE("Retain"))) {
        why_help(pod, "then keep the data");
        why_command(pod, ADVICE_KEEP_VOLUME,
                    &(const struct advice_words){.name = claim->who.volume, .before = policy});
    }
    why_help(pod,
             "then delete claim and volume, and create both again: the volume with the same source "
             "and " HOSTNAME " in %.*s, the claim with its volumeName (a volume's nodeAffinity "
             "cannot be changed, and the kubelet undoes a change of the label)",
             SLICE_ARG(label));
}

/* Of what a StorageClass wants of nodes, which is no zone: who sets such labels. */
static const char *label_text(const struct object_reference *reference, struct slice where)
{
    return reference->kind != KIND_STORAGE_CLASS || slice_has(where, SLICE("/zone")) ||
                   slice_has(where, SLICE("/region")) || slice_has(where, SLICE("kubernetes.io/"))
               ? ""
               : ", or run the class's driver on more nodes: it sets that label";
}

static void help_by_nodes(struct why_pod *pod, const struct why_claim *claim, const bool *passes,
                          struct slice what)
{
    bool is_anywhere = why_count_nodes(pod, passes, true) != 0;
    struct slice label = SLICE("");
    const struct why_node *renamed = is_anywhere ? NULL : find_renamed(pod, claim, &label);

    add_where(pod, what, is_anywhere);
    if (pod->stage == WHY_STARTING)
        why_help(pod, "the pod must run elsewhere: delete it; a scheduler would not have chosen "
                      "the node (spec.nodeName)");
    else if (renamed != NULL)
        help_renamed(pod, claim, renamed, label);
    else if (!is_anywhere && name_a_node(what))
        why_help(pod,
                 "bring back the node with %.*s: the data is there, and a new node of that name "
                 "does not have it; or restore the data to a new volume elsewhere",
                 SLICE_ARG(what));
    else if (!is_anywhere)
        why_help(
            pod, "%sadd a node with %.*s; or restore the data to a new volume elsewhere",
            slice_has(what, SLICE("topology.cinder.csi.openstack.org/zone"))
                ? "if Cinder's zones have other names than the servers', set the driver's "
                  "ignore-volume-az, set Retain on the volume (else its data goes), and create "
                  "it again for the same volumeHandle without that nodeAffinity; else "
                : "",
            SLICE_ARG(what));
}

/* Whether the scheduler's message says that there is no room; or there is none. */
static bool may_lack_room(const struct why_pod *pod)
{
    struct slice message = who_message(&pod->who);

    return message.len == 0 || slice_has(message, SLICE("Insufficient")) ||
           slice_has(message, SLICE("Too many pods")) ||
           slice_has(message, SLICE("did not have enough"));
}

/* Appends to the text: "WHAT NODES". False: there are no such nodes. */
static bool add_part(struct why_pod *pod, struct slice *text, const char *what, const bool *nodes)
{
    struct slice names = why_node_names(pod, nodes, true);

    if (names.len != 0)
        *text = arena_printf(pod->arena, "%.*s%s%s %.*s", SLICE_ARG(*text),
                             text->len == 0 ? "" : ", or ", what, SLICE_ARG(names));
    return names.len != 0;
}

static bool is_out_by(const struct why_node *node, const char *word)
{
    return node->out_by != NULL && strcmp(node->out_by, word) == 0;
}

/* Of the nodes that can have its volumes: those that are left, cordoned, and not ready. */
static struct slice room_text(struct why_pod *pod)
{
    bool *open = why_flags(pod), *cordoned = why_flags(pod), *down = why_flags(pod);
    struct slice text = SLICE("");

    if (open == NULL || cordoned == NULL || down == NULL)
        return text;
    for (size_t n = 0; n < pod->node_count; n++) {
        const struct why_node *node = &pod->nodes[n];
        bool is_left = node->out_by == NULL, is_cordoned = is_out_by(node, "NodeCordoned");
        down[n] =
            node->node->is_not_ready && (is_left || is_cordoned || is_out_by(node, "NodeTainted"));
        cordoned[n] = !down[n] && is_cordoned;
        open[n] = !down[n] && is_left;
    }
    (void)add_part(pod, &text, may_lack_room(pod) ? "make room on" : "get the pod onto", open);
    (void)add_part(pod, &text, "uncordon", cordoned);
    (void)add_part(pod, &text, "bring back what does not answer:", down);
    return text;
}

/* A device that is missing, as the scheduler's message says, "Insufficient nvidia.com/gpu"; empty:
 * none. No room can be made for it. */
static struct slice find_device(const struct why_pod *pod)
{
    static const char before[] = "Insufficient ";
    struct slice rest = who_message(&pod->who);
    const char *at;

    while (rest.len != 0 && (at = memmem(rest.ptr, rest.len, before, sizeof before - 1)) != NULL) {
        at += sizeof before - 1;
        rest = (struct slice){at, rest.len - (size_t)(at - rest.ptr)};
        struct slice word = rest, first = slice_cut(&word, ',');
        struct slice name = slice_cut(&first, ' ');
        if (name.len != 0 && name.ptr[name.len - 1] == '.')
            name.len--;
        if (memchr(name.ptr, '/', name.len) != NULL)
            return name;
    }
    return SLICE("");
}

static bool is_for_fargate(const struct why_pod *pod)
{
    return slice_has(who_message(&pod->who), SLICE("not supported on Fargate"));
}

/* What the scheduler's message says that no room and no other node helps against: a cause has that
 * instead. Whether there is something. */
static bool help_by_message(struct why_pod *pod, struct why_cause *cause, struct slice room)
{
    struct slice device = find_device(pod), message = who_message(&pod->who);

    if (is_for_fargate(pod))
        advice_list_add(&cause->helps,
                        "the pod's scheduler places it on Fargate, which cannot have this volume: "
                        "take the pod out of the Fargate profile, or use EFS");
    else if (room.len == 0)
        return false;
    else if (device.len != 0)
        advice_list_add(
            &cause->helps,
            "add a node with %.*s%s%.*s; or restore the data to a new volume where "
            "such nodes are, with a class that waits for the pod (WaitForFirstConsumer)",
            SLICE_ARG(device), cause->where.len == 0 ? "" : " and ", SLICE_ARG(cause->where));
    else if (slice_has(message, SLICE("topology spread constraints")) && !may_lack_room(pod))
        advice_list_add(&cause->helps,
                        "the pod's topologySpreadConstraints forbid the nodes that are left: "
                        "whenUnsatisfiable: ScheduleAnyway, or a larger maxSkew, in its template; "
                        "then delete the pod");
    else
        return false;
    return true;
}

/* Whether the pod's own nodeSelector rules out nodes that can have its volumes: its cause has what
 * helps. */
static bool is_ruled_out(const struct why_pod *pod)
{
    for (size_t n = 0; n < pod->node_count; n++)
        if (is_out_by(&pod->nodes[n], "NodeAffinity"))
            return true;
    return false;
}

void why_help_room(struct why_pod *pod)
{
    struct slice room = {NULL, 0};

    for (size_t i = 0; i < pod->cause_count; i++) {
        struct why_cause *cause = &pod->causes[i];
        if (!cause->needs_room)
            continue;
        bool is_a_node = cause->where.len == 0 || name_a_node(cause->where);
        if (room.ptr == NULL)
            room = room_text(pod);
        pod->has_failed = pod->has_failed || room.ptr == NULL;
        if (help_by_message(pod, cause, room) ||
            (room.len == 0 && (is_a_node || is_ruled_out(pod))))
            continue;
        advice_list_add(&cause->helps, "%.*s%s%.*s%s", SLICE_ARG(room),
                        is_a_node       ? ""
                        : room.len == 0 ? "add a node with "
                                        : ", or add a node with ",
                        is_a_node ? 0 : (int)cause->where.len, is_a_node ? "" : cause->where.ptr,
                        is_a_node ? "" : label_text(&cause->object, cause->where));
    }
}

/* The terms that count on one of the nodes, of a migrated plug-in if there is one. */
static const struct pull_items *shown_terms(const struct why_pod *pod,
                                            const struct why_claim *claim)
{
    const struct pull_items *terms = &claim->terms.own;

    for (size_t n = 0; n < pod->node_count && terms == &claim->terms.own; n++)
        terms = volume_terms_on(&claim->terms, pod->nodes[n].node);
    return terms;
}

/* Whether the driver's label would be another zone than the first requirement has, as that of the
 * node is. */
static bool is_of_other_zone(const struct why_node *node, const struct pull_items *terms)
{
    const struct node_term *term = terms->items;
    const struct node_requirement *first =
        terms->count == 0 || term->expressions.count == 0 ? NULL : term->expressions.items;
    struct slice zone;

    return first != NULL && slice_ends_with(first->key, SLICE("/zone")) &&
           labels_find(node->labels, SLICE("topology.kubernetes.io/zone"), &zone) &&
           !slice_is_among(zone, first->values.items, first->values.count);
}

/* Whether the node lacks the label, which is the driver's own, and which the driver sets when it
 * registers. */
static bool lacks_label_of(const struct why_node *node, struct slice key)
{
    static const char *const of_kubernetes[] = {"kubernetes.io/",
                                                "failure-domain.beta.kubernetes.io/"};
    struct slice value;

    for (size_t i = 0; i < sizeof of_kubernetes / sizeof *of_kubernetes; i++)
        if (slice_has(key, slice_of(of_kubernetes[i])))
            return false;
    return key.len != 0 && !labels_find(node->labels, key, &value) && node->placed->knows_drivers;
}

/* Whether the driver has registered there with that label, which is gone since. */
static bool has_lost_label(const struct why_node *node, struct slice driver, struct slice key)
{
    const struct driver_limit *registered = placed_node_driver(node->placed, driver);

    return registered != NULL &&
           slice_is_among(key, registered->topology_keys.items, registered->topology_keys.count);
}

/* What a DaemonSet needs for a pod on the node: " (it has to tolerate nvidia.com/gpu)"; or nothing
 * is known of that. */
static struct slice wants_of_node(struct why_pod *pod, const struct why_node *node)
{
    struct node_details details;
    struct slice system;

    if (labels_find(node->labels, SLICE("kubernetes.io/os"), &system) &&
        slice_equal(system, SLICE("windows")))
        return SLICE(" (the node has Windows, for which most drivers have a DaemonSet of its own)");
    const struct taint *taint =
        why_node_details(pod, node->name, &details) ? why_find_user_taint(&details.taints) : NULL;
    return taint == NULL
               ? SLICE("")
               : arena_printf(pod->arena, " (it has to tolerate %.*s)", SLICE_ARG(taint->key));
}

void why_help_driver(struct why_pod *pod, struct slice driver, const bool *nodes)
{
    size_t n = 0;

    if (is_for_fargate(pod)) {
        why_help(pod, "no DaemonSet's pod runs on a Fargate node, so no driver does");
        return;
    }
    bool is_nowhere = why_knows(pod, KIND_CSI_NODE) && driver.len != 0 &&
                      cluster_count_driver_nodes(&pod->inquiry->cluster, driver) == 0;
    bool is_installed =
        cluster_find_resource(&pod->inquiry->cluster, KIND_CSI_DRIVER, driver) != NULL;
    if (is_nowhere && !is_installed) {
        why_help(pod, "install driver %.*s, which is on no node", SLICE_ARG(driver));
        return;
    }
    while (n < pod->node_count && !nodes[n])
        n++;
    struct slice node = n == pod->node_count ? SLICE("") : pod->nodes[n].name;
    struct slice wants = n == pod->node_count ? SLICE("") : wants_of_node(pod, &pod->nodes[n]);
    if (is_nowhere)
        why_help(pod,
                 "driver %.*s is installed (CSIDriver), and is on no node: does a pod of its "
                 "DaemonSet run on %.*s%.*s? This lists the pods of the node",
                 SLICE_ARG(driver), SLICE_ARG(node), SLICE_ARG(wants));
    else
        why_help(
            pod,
            "does a pod of the driver's DaemonSet run there%.*s?%s This lists the pods of the node",
            SLICE_ARG(wants),
            wants.len != 0 ? ""
                           : " If it does, the log of its node-driver-registrar says why it "
                             "is not registered.");
    why_command(pod, ADVICE_SEE_DRIVERS, &(const struct advice_words){.name = node});
}

/* Whether a node that the volume and the pod allow is left. */
static bool has_node(const struct why_pod *pod, const bool *rejected)
{
    for (size_t n = 0; n < pod->node_count; n++)
        if (!rejected[n] && why_is_wanted(pod, &pod->nodes[n]))
            return true;
    return false;
}

/* Whether rejected nodes lack the label because they lack the driver: the help is that, then. */
static bool help_by_driver(struct why_pod *pod, struct slice driver, struct slice key,
                           const struct pull_items *terms, const bool *rejected)
{
    bool is_asked = rejected != NULL && driver.len != 0 && pod->stage == WHY_SCHEDULING &&
                    !has_node(pod, rejected);
    bool *lacking = is_asked ? why_flags(pod) : NULL, *lost = is_asked ? why_flags(pod) : NULL;

    for (size_t n = 0; lacking != NULL && lost != NULL && n < pod->node_count; n++) {
        const struct why_node *node = &pod->nodes[n];
        bool is_bare = rejected[n] && lacks_label_of(node, key) && !is_of_other_zone(node, terms);
        lacking[n] = is_bare && placed_node_driver(node->placed, driver) == NULL;
        lost[n] = is_bare && has_lost_label(node, driver, key);
    }
    if (lacking == NULL || lost == NULL)
        return false;
    struct slice names = why_node_names(pod, lost, true);
    if (names.len != 0) {
        why_help(pod,
                 "driver %.*s has set that label on %.*s, where it is registered, and the label "
                 "is gone: restart the driver's pod there, and its kubelet sets it again",
                 SLICE_ARG(driver), SLICE_ARG(names));
        return true;
    }
    names = why_node_names(pod, lacking, true);
    if (names.len == 0)
        return false;
    why_help(pod, "driver %.*s sets that label, and is not registered on %.*s", SLICE_ARG(driver),
             SLICE_ARG(names));
    why_help_driver(pod, driver, lacking);
    pod->lacks_driver = true;
    return true;
}

/* The label of the first requirement; empty: none. */
static struct slice first_key(const struct pull_items *terms)
{
    const struct node_term *term = terms->items;

    return terms->count == 0 || term->expressions.count == 0
               ? SLICE("")
               : ((const struct node_requirement *)term->expressions.items)->key;
}

/* Where the terms are not those that a reader sees in the volume. {NULL, 0}: no memory. */
static struct slice translation_text(const struct why_pod *pod, const struct why_claim *claim,
                                     const struct pull_items *shown)
{
    struct slice key = first_key(&claim->terms.own);

    if (shown == &claim->terms.own || slice_equal(key, first_key(shown)))
        return SLICE("");
    return arena_printf(pod->arena, ", into which the scheduler translates the volume's %.*s",
                        SLICE_ARG(key.len == 0 ? SLICE("labels") : key));
}

void why_affinity(struct why_pod *pod, const struct why_claim *claim)
{
    if (claim->fits == NULL || pod->are_apart)
        return;
    bool *rejected = why_flags(pod);
    const struct pull_items *shown = shown_terms(pod, claim);
    struct slice terms = node_terms_text(shown, pod->arena);
    struct slice translated = translation_text(pod, claim, shown);

    if (rejected == NULL || terms.ptr == NULL || translated.ptr == NULL) {
        pod->has_failed = true;
        return;
    }
    for (size_t n = 0; n < pod->node_count; n++)
        rejected[n] = !claim->fits[n];
    if (!why_add_nodes(
            pod, pod->stage == WHY_STARTING ? WHY_BLOCKS : WHY_NARROWS, rejected,
            why_volume_reference(claim),
            "volume %.*s of claim %.*s/%.*s can be used on %zu of %zu nodes: where %.*s%.*s",
            SLICE_ARG(claim->who.volume), CLAIM_ARG(claim), why_count_nodes(pod, rejected, false),
            pod->node_count, SLICE_ARG(terms), SLICE_ARG(translated)))
        return;
    struct slice driver = claim->volume == NULL ? SLICE("") : volume_driver(claim->volume);
    if (!help_by_driver(pod, driver, first_key(shown), shown, rejected))
        help_by_nodes(pod, claim, claim->fits, terms);
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
    if (have_common_node(pod, a->fits, b->fits))
        return false;
    struct slice x = why_node_names(pod, a->fits, true), y = why_node_names(pod, b->fits, true);
    bool *rejected = why_flags(pod);
    if (rejected == NULL || x.len == 0 || y.len == 0) /* it has no node at all */
        return false;
    for (size_t n = 0; n < pod->node_count; n++)
        rejected[n] = true;
    why_add_nodes(pod, WHY_BLOCKS, rejected, why_volume_reference(b),
                  "volumes %.*s (claim %.*s/%.*s, node %.*s) and %.*s (claim %.*s/%.*s, node %.*s) "
                  "have no node in common",
                  SLICE_ARG(a->who.volume), CLAIM_ARG(a), SLICE_ARG(x), SLICE_ARG(b->who.volume),
                  CLAIM_ARG(b), SLICE_ARG(y));
    why_help(pod, "restore one of them to a new volume where the other one is; a class with "
                  "volumeBindingMode WaitForFirstConsumer has both in one place");
    pod->are_apart = true;
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

    for (size_t i = 0; i < ZONE_KEYS && text.ptr != NULL; i++)
        if (zones_find(claim->volume_details->labels, zone_keys[i], &set))
            text = arena_printf(arena, "%.*s%s%s in %.*s", SLICE_ARG(text),
                                text.len == 0 ? "" : ", and ", zone_keys[i],
                                SLICE_ARG(set_text(set, arena)));
    return text;
}

static void find_out_of_zone(struct why_pod *pod, const struct why_claim *claim, struct slice zones)
{
    bool *rejected = why_flags(pod), *passes = why_flags(pod), says_more = false;

    if (rejected == NULL || passes == NULL)
        return;
    for (size_t n = 0; n < pod->node_count; n++) {
        passes[n] = pod->nodes[n].is_unread ||
                    zones_have(claim->volume_details->labels, pod->nodes[n].labels);
        rejected[n] = !passes[n];
        says_more = says_more || (rejected[n] && (claim->fits == NULL || claim->fits[n]));
    }
    if (!says_more)
        return;
    if (why_add_nodes(
            pod, pod->stage == WHY_STARTING ? WHY_BLOCKS : WHY_NARROWS, rejected,
            why_volume_reference(claim),
            "volume %.*s of claim %.*s/%.*s can be used on %zu of %zu nodes: its labels say %.*s",
            SLICE_ARG(claim->who.volume), CLAIM_ARG(claim), why_count_nodes(pod, passes, true),
            pod->node_count, SLICE_ARG(zones)))
        help_by_nodes(pod, claim, passes, zones);
}

/* kube-scheduler checks the labels beside a nodeAffinity, too, which as a rule says the same. */
void why_zone(struct why_pod *pod, const struct why_claim *claim)
{
    struct slice zones = pod->has_labels ? zones_text(claim, pod->arena) : SLICE("");

    pod->has_failed = pod->has_failed || zones.ptr == NULL;
    if (zones.len != 0)
        find_out_of_zone(pod, claim, zones);
}

/* ---- where a class can make volumes ---- */

/* "KEY in a, b and KEY in c; or KEY in d". {NULL, 0}: no memory. */
static struct slice topologies_text(const struct pull_items *topologies, struct arena *arena)
{
    const struct topology *items = topologies->items;
    struct slice text = SLICE("");
    bool ok = true;

    for (size_t i = 0; i < topologies->count; i++) {
        const struct topology_label *labels = items[i].labels.items;
        for (size_t j = 0; j < items[i].labels.count; j++) {
            const struct slice *values = labels[j].values.items;
            struct slice before = j != 0 ? SLICE(" and ") : i != 0 ? SLICE("; or ") : SLICE("");
            ok = ok && arena_append(arena, &text, before) &&
                 arena_append(arena, &text, labels[j].key) &&
                 arena_append(arena, &text, SLICE(" in "));
            for (size_t v = 0; v < labels[j].values.count && ok; v++)
                ok = arena_append(arena, &text, v == 0 ? SLICE("") : SLICE(", ")) &&
                     arena_append(arena, &text, values[v]);
        }
    }
    return ok ? text : (struct slice){NULL, 0};
}

/* The first label of allowedTopologies; empty: none. */
static struct slice first_label(const struct pull_items *topologies)
{
    const struct topology *first = topologies->items;

    return topologies->count == 0 || first->labels.count == 0
               ? SLICE("")
               : ((const struct topology_label *)first->labels.items)->key;
}

void why_topology(struct why_pod *pod, const struct why_claim *claim)
{
    const struct object_reference reference = {
        .kind = KIND_STORAGE_CLASS, .name = name_slice(claim_storage_class(claim->who.claim))};

    if (!pod->has_labels || !claim->who.claim->exists || claim->is_bound ||
        claim->who.class_details.topologies.count == 0 ||
        claim->who.details.selected_node.len != 0 ||
        volume_offers_fit(&pod->inquiry->cluster, claim->who.claim))
        return;
    bool *rejected = why_flags(pod);
    for (size_t n = 0; rejected != NULL && n < pod->node_count; n++)
        rejected[n] = !pod->nodes[n].is_unread &&
                      !topologies_match(&claim->who.class_details.topologies, pod->nodes[n].labels);
    struct slice where = topologies_text(&claim->who.class_details.topologies, pod->arena);
    pod->has_failed = pod->has_failed || where.ptr == NULL;
    if (why_add_nodes(pod, WHY_NARROWS, rejected, reference,
                      "StorageClass %.*s of claim %.*s/%.*s makes volumes only where %.*s "
                      "(allowedTopologies)",
                      SLICE_ARG(reference.name), CLAIM_ARG(claim), SLICE_ARG(where)) &&
        !help_by_driver(pod, volume_provisioner(&pod->inquiry->cluster, claim->who.claim, NULL),
                        first_label(&claim->who.class_details.topologies),
                        &(const struct pull_items){.count = 0}, rejected)) {
        bool is_anywhere = why_count_nodes(pod, rejected, false) != 0;
        add_where(pod, where, is_anywhere);
        if (!is_anywhere && where.len != 0)
            why_help(pod,
                     "add a node with %.*s, or create the class again with what your nodes have%s",
                     SLICE_ARG(where), label_text(&reference, where));
    }
}

/* ---- how many volumes a node can have ---- */

/* Flags the nodes that are full, of those that are left. *example: the first one in words. NULL:
 * no memory. */
static bool *find_full(struct why_pod *pod, const struct counted_volumes *volumes,
                       struct slice driver, struct slice *example)
{
    bool *full = why_flags(pod);

    for (size_t n = 0; full != NULL && n < pod->node_count; n++) {
        struct node_volumes count = node_volumes_count(volumes, pod->nodes[n].placed, driver);
        full[n] = pod->nodes[n].out_by == NULL && node_volumes_are_too_many(&count);
        if (full[n] && example->len == 0)
            *example =
                arena_printf(pod->arena, "node %.*s has %zu of %lld", SLICE_ARG(pod->nodes[n].name),
                             count.used, (long long)count.limit);
    }
    return full;
}

static size_t count_left(const struct why_pod *pod)
{
    size_t left = 0;

    for (size_t n = 0; n < pod->node_count; n++)
        left += pod->nodes[n].out_by == NULL ? 1 : 0;
    return left;
}

/* Whether a cause says what a node has to have. */
static bool has_where(const struct why_pod *pod)
{
    for (size_t i = 0; i < pod->cause_count; i++)
        if (pod->causes[i].where.len != 0)
            return true;
    return false;
}

static void check_driver(struct why_pod *pod, const struct counted_volumes *volumes,
                         struct slice driver)
{
    const struct object_reference reference = {.kind = KIND_CSI_DRIVER, .name = driver};
    struct slice example = SLICE("");
    const bool *full = find_full(pod, volumes, driver, &example);

    if (full == NULL)
        return;
    struct slice names = why_node_names(pod, full, true);
    if (!why_add_nodes(pod, WHY_NARROWS, full, reference,
                       "no more volumes of driver %.*s can be attached to node%s %.*s (%.*s)",
                       SLICE_ARG(driver), why_count_nodes(pod, full, true) == 1 ? "" : "s",
                       SLICE_ARG(names), SLICE_ARG(example)))
        return;
    if (count_left(pod) != 0)
        why_help(pod, "move pods with volumes of %.*s away from there, or add a node",
                 SLICE_ARG(driver));
    else if (!has_where(pod)) /* which says with what */
        why_help(pod, "add a node: no node is left to which pods could move");
}

void why_limit(struct why_pod *pod)
{
    struct counted_volumes volumes;

    if (!counted_volumes_find(&pod->inquiry->cluster, pod->view.placement, pod->arena, &volumes)) {
        pod->has_failed = true;
        return;
    }
    for (size_t i = 0; i < volumes.count; i++) {
        bool is_new = true;
        for (size_t j = 0; j < i; j++)
            is_new = is_new && !slice_equal(volumes.items[j].driver, volumes.items[i].driver);
        if (is_new)
            check_driver(pod, &volumes, volumes.items[i].driver);
    }
}

/* ---- all together ---- */

/* Causes that reject some nodes each may leave none together. */
void why_no_node(struct why_pod *pod)
{
    for (size_t i = 0; i < pod->cause_count; i++)
        if (pod->causes[i].effect == WHY_BLOCKS)
            return;
    if (pod->node_count == 0 || count_left(pod) != 0)
        return;
    why_add(pod, WHY_BLOCKS, why_pod_reference(pod),
            "each of the %zu nodes is rejected by one of the causes above", pod->node_count);
}
