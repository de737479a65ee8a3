/* What gives a claim that is not bound its volume: one that is there, and does not fit, or had data
 * of an earlier claim; its class and provisioner; a scheduler, which a pod has passed by. */
#include "config/base/text.h"
#include "extender/commands/who/who_advice.h"
#include "policy/volume.h"

enum { CLASSES_SHOWN_MAX = 3 };

/* ---- the claim's class ---- */

static struct slice class_name(const struct who_claim *claim)
{
    return name_slice(claim_storage_class(claim->claim));
}

bool who_lacks_class(const struct who_claim *claim)
{
    return claim_storage_class(claim->claim) != NULL && claim->class == NULL &&
           inquiry_knows(claim->inquiry, KIND_STORAGE_CLASS);
}

bool who_waits_for_consumer(const struct who_claim *claim)
{
    return slice_equal(claim->class_details.binding_mode, SLICE("WaitForFirstConsumer"));
}

/* A CSI driver instead of the in-tree plug-in that it has replaced. */
static struct slice provisioner_of(const struct who_claim *claim)
{
    return claim->class == NULL ? SLICE("")
                                : volume_provisioner(&claim->inquiry->cluster, claim->claim, NULL);
}

bool who_makes_no_volumes(const struct who_claim *claim)
{
    return slice_equal(provisioner_of(claim), SLICE(NO_PROVISIONER));
}

static bool has_selector(const struct who_claim *claim)
{
    const struct claim_rare *rare = claim_rare_at(claim->claim->rare);

    return rare != NULL && rare->selector != NULL;
}

bool who_find_user(struct who_pod *out, const struct who_claim *claim)
{
    if (claim->asked != NULL)
        return who_pod_init(out, claim->inquiry, claim->asked, claim->arena);
    if (claim->waiter_count == 0 && claim->holder_count == 0)
        return false;
    *out = claim->waiter_count != 0 ? claim->waiters[0] : claim->holders[0];
    return true;
}

struct slice who_set(const struct who_claim *claim)
{
    struct who_pod user;

    return who_find_user(&user, claim) && who_is_of_template(&user, claim->claim) ? user.owner.name
                                                                                  : SLICE("");
}

struct slice who_maker(const struct who_claim *claim)
{
    struct slice set = who_set(claim);

    return set.len == 0
               ? set
               : arena_printf(claim->arena,
                              "; before that, StatefulSet %.*s with such a template (deleted with "
                              "--cascade=orphan, and applied)",
                              SLICE_ARG(set));
}

/* Of a claim, for a row of the table of advice. */
#define CLAIM_WORDS(claim_) \
    ((const struct advice_words){.ns = name_text((claim_)->claim->ns), \
                                 .claim = claim_name((claim_)->claim)})

/* ---- texts ---- */

struct slice who_size(int64_t bytes, struct arena *arena)
{
    static const struct {
        int64_t bytes;
        const char *unit;
    } units[] = {{(int64_t)1 << 40, "Ti"}, {1 << 30, "Gi"},   {1 << 20, "Mi"},
                 {1000000000000, "T"},     {1000000000, "G"}, {1000000, "M"}};

    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (bytes >= units[i].bytes && bytes % units[i].bytes == 0)
            return arena_printf(arena, "%lld%s", (long long)(bytes / units[i].bytes),
                                units[i].unit);
    return bytes < 1 << 20 ? arena_printf(arena, "%lld", (long long)bytes)
                           : arena_printf(arena, "%lldMi", (long long)(bytes >> 20));
}

/* "ReadWriteOnce, ReadWriteMany". {NULL, 0}: no memory. */
static struct slice modes_text(unsigned modes, struct arena *arena)
{
    struct slice text = SLICE("");
    bool ok = true;

    for (unsigned i = 0; i < ACCESS_MODES; i++)
        if ((modes & 1U << i) != 0)
            ok = ok && (text.len == 0 || arena_append(arena, &text, SLICE(", "))) &&
                 arena_append(arena, &text, slice_of(access_mode_texts[i]));
    return ok ? text : (struct slice){NULL, 0};
}

/* "type in a b, tier exists": a selector as in label_selector.h. {NULL, 0}: no memory. */
static struct slice selector_text(struct slice selector, struct arena *arena)
{
    struct slice text = SLICE("");
    bool ok = true;

    (void)slice_cut(&selector, '\n'); /* the mark of a selector */
    while (selector.len != 0 && ok) {
        struct slice line = slice_cut(&selector, '\n');
        ok = (text.len == 0 || arena_append(arena, &text, SLICE(", "))) &&
             arena_append(arena, &text, line);
    }
    return ok ? text : (struct slice){NULL, 0};
}

static struct slice or_none(struct slice name)
{
    return name.len == 0 ? SLICE("\"\"") : name;
}

/* ---- a volume that does not fit ---- */

/* What the volume has of that, and what the claim asks for. */
struct difference {
    struct slice has, wants;
};

static struct difference difference_of(const struct who_claim *known, const struct resource *volume,
                                       enum misfit misfit)
{
    static const struct claim_rare none;
    const struct claim *claim = known->claim;
    struct arena *arena = known->arena;
    const struct claim_rare *rare = claim->rare.step == 0 ? &none : claim_rare_at(claim->rare);
    const struct resource_shape_key *shape = &resource_shape_at(volume->shape)->key;
    unsigned modes = (unsigned)(shape->number >> VOLUME_ACCESS_SHIFT);
    struct slice class, attributes_class, filesystem = SLICE("Filesystem"), block = SLICE("Block");

    volume_offer_classes(resource_attribute(volume, VOLUME_OFFER), &class, &attributes_class);
    switch (misfit) {
    case MISFIT_SIZE:
        return (struct difference){who_size(shape->capacity, arena),
                                   who_size(rare->requested, arena)};
    case MISFIT_ACCESS:
        return (struct difference){modes_text(modes, arena), modes_text(rare->access_modes, arena)};
    case MISFIT_MODE:
        return claim->is_block ? (struct difference){filesystem, block}
                               : (struct difference){block, filesystem};
    case MISFIT_ATTRIBUTES_CLASS:
        return (struct difference){or_none(attributes_class),
                                   or_none(name_slice(claim_volume_attributes_class(claim)))};
    case MISFIT_SELECTOR:
        return (struct difference){.wants = selector_text(name_slice(rare->selector), arena)};
    case MISFIT_KEPT:
        return (struct difference){resource_attribute(volume, VOLUME_CLAIM_NAME),
                                   claim_name(claim)};
    default:
        return (struct difference){or_none(class), or_none(name_slice(claim_storage_class(claim)))};
    }
}

static void advise_misfit(struct advice_list *advice, const struct who_claim *claim,
                          const struct resource *volume, enum misfit misfit)
{
    static const struct {
        const char *field, *help;
    } rows[] = {
        [MISFIT_CLASS] = {"storageClassName ", "create the claim again with that of the volume"},
        [MISFIT_SIZE] =
            {"",
             "create a volume of that size, with the claim in its claimRef, so that no smaller one "
             "takes it; or the claim again with less"},
        [MISFIT_KEPT] = {"claimRef ", "remove it, or name another volume in a new claim"},
        [MISFIT_MODE] = {"volumeMode ", "both stay so, so create a volume, or the claim again"},
        [MISFIT_ACCESS] = {"", "add that to the volume's accessModes, if its storage can do it; "
                               "else create the claim again with less"},
        [MISFIT_ATTRIBUTES_CLASS] = {"volumeAttributesClassName ",
                                     "create the claim again with that of the volume"},
        [MISFIT_SELECTOR] = {"", ""},
    };
    struct difference difference = difference_of(claim, volume, misfit);
    struct slice maker = who_maker(claim);
    struct slice taken = misfit == MISFIT_SIZE && !claim_has_volume(claim->claim)
                             ? advice_taken_text(claim)
                             : SLICE("");
    char buffer[PROVISIONED_NAME_BYTES];
    const char *help = misfit == MISFIT_SIZE && claim_has_volume(claim->claim) /* it wants it */
                           ? "create the claim again with at most that"
                           : rows[misfit].help;

    advice->has_failed = advice->has_failed || taken.ptr == NULL;
    if (misfit == MISFIT_SELECTOR)
        advice_list_add(
            advice,
            "no Available volume has the labels of the claim's selector (%.*s): label the "
            "volume that is meant, or create one",
            SLICE_ARG(difference.wants));
    else
        advice_list_add(advice, "volume %.*s has %s%.*s, and the claim asks for %.*s%.*s: %s%.*s",
                        SLICE_ARG(resource_name(volume, buffer)), rows[misfit].field,
                        SLICE_ARG(difference.has), SLICE_ARG(difference.wants), SLICE_ARG(taken),
                        help, SLICE_ARG(maker));
}

/* " (gp2, gp3)": StorageClasses that make volumes, the first by name. Empty: none is known. */
static struct slice classes_text(const struct who_claim *claim)
{
    struct slice text = SLICE(""), last = SLICE("");

    for (size_t shown = 0; shown < CLASSES_SHOWN_MAX; shown++) {
        struct table_walk walk = {.at = 0};
        struct slice next = SLICE("");
        char buffer[PROVISIONED_NAME_BYTES];
        for (const struct resource *class;
             (class = cluster_next_resource(&claim->inquiry->cluster, KIND_STORAGE_CLASS, &walk)) !=
             NULL;) {
            struct slice name = arena_copy(claim->arena, resource_name(class, buffer));
            if (!slice_equal(resource_attribute(class, STORAGE_CLASS_PROVISIONER),
                             SLICE(NO_PROVISIONER)) &&
                (last.len == 0 || slice_compare(name, last) > 0) &&
                (next.len == 0 || slice_compare(name, next) < 0))
                next = name;
        }
        if (next.len == 0)
            break;
        text = arena_printf(claim->arena, "%.*s%s%.*s", SLICE_ARG(text), shown == 0 ? " (" : ", ",
                            SLICE_ARG(next));
        last = next;
    }
    return text.len == 0 ? text : arena_printf(claim->arena, "%.*s)", SLICE_ARG(text));
}

/* A volume that somebody has to make, or to mend. */
static void advise_manual(struct advice_list *advice, const struct who_claim *claim)
{
    enum misfit misfit;
    const struct resource *nearest =
        volume_nearest(&claim->inquiry->cluster, claim->claim, &misfit);
    struct slice taken = nearest == NULL ? advice_taken_text(claim) : SLICE("");
    struct slice again = taken.len == 0 ? SLICE("") : who_set(claim);

    advice->has_failed = advice->has_failed || taken.ptr == NULL;
    if (volume_offers_fit(&claim->inquiry->cluster, claim->claim))
        advice_list_add(advice,
                        "wait: one that fits is there, and kube-controller-manager binds it");
    else if (nearest != NULL)
        advise_misfit(advice, claim, nearest, misfit);
    else
        advice_list_add(advice,
                        "create a PersistentVolume%s%.*s that fits the claim (size, access modes, "
                        "volumeMode%s)%.*s%s%.*s%s",
                        class_name(claim).len == 0 ? " without a class" : " of StorageClass ",
                        SLICE_ARG(class_name(claim)),
                        has_selector(claim) ? ", and the labels of its selector" : "",
                        SLICE_ARG(taken), again.len == 0 ? "" : "; or scale StatefulSet ",
                        SLICE_ARG(again), again.len == 0 ? "" : " down again");
}

/* A claim without a class, if no volume is nearly its own. Whether that is all that helps. */
static bool advise_default(struct advice_list *advice, const struct who_claim *claim)
{
    struct slice classes = classes_text(claim);
    enum misfit misfit;

    if (class_name(claim).len != 0 ||
        volume_nearest(&claim->inquiry->cluster, claim->claim, &misfit) != NULL)
        return false;
    if (!claim_has_no_class(&claim->details)) {
        advice_list_add(
            advice,
            "make a StorageClass%.*s the default, which the claim then gets "
            "(storageclass.kubernetes.io/is-default-class), or create the claim again with a "
            "class",
            SLICE_ARG(classes));
        return classes.len != 0;
    }
    advice_list_add(
        advice,
        "storageClassName \"\" excludes the default class: to get that, create the claim "
        "again without it%.*s",
        SLICE_ARG(who_maker(claim)));
    return false;
}

/* Whether it is known that no CSIDriver has that name. */
static bool has_no_csi_driver(const struct who_claim *claim, struct slice name)
{
    return inquiry_knows(claim->inquiry, KIND_CSI_DRIVER) &&
           cluster_find_resource(&claim->inquiry->cluster, KIND_CSI_DRIVER, name) == NULL;
}

/* Whether the driver that makes the claim's volume is not there at all. */
static bool lacks_driver(const struct who_claim *claim)
{
    struct slice plugin = SLICE("");
    struct slice driver = claim->class == NULL
                              ? SLICE("")
                              : volume_provisioner(&claim->inquiry->cluster, claim->claim, &plugin);

    return plugin.len != 0 && has_no_csi_driver(claim, driver);
}

/* The CSIDriver with the name that is nearest to a provisioner's, which has none; empty: none. */
static struct slice find_like(const struct who_claim *claim, struct slice provisioner)
{
    const struct cluster *cluster = &claim->inquiry->cluster;
    struct nearest nearest = {.typed =
                                  arena_printf(claim->arena, "%.*s", SLICE_ARG(provisioner)).ptr};
    struct table_walk walk = {.at = 0};
    char buffer[PROVISIONED_NAME_BYTES];

    if (nearest.typed == NULL ||
        cluster_find_resource(cluster, KIND_CSI_DRIVER, provisioner) != NULL ||
        cluster_count_driver_nodes(cluster, provisioner) != 0)
        return SLICE("");
    for (const struct resource *driver;
         (driver = cluster_next_resource(cluster, KIND_CSI_DRIVER, &walk)) != NULL;)
        nearest_offer_copy(&nearest, resource_name(driver, buffer));
    return arena_copy(claim->arena, slice_of(nearest.word == NULL ? "" : nearest.word));
}

/* Who does not make the volume; and what is in the events, which no input has. */
static void advise_provisioner(struct advice_list *advice, const struct who_claim *claim)
{
    struct slice provisioner = provisioner_of(claim), like = find_like(claim, provisioner);

    if (has_selector(claim) && provisioner.len != 0)
        advice_list_add(
            advice,
            "a provisioner makes no volume for a claim with a selector: create a PersistentVolume "
            "with its labels, or the claim again without it%.*s",
            SLICE_ARG(who_maker(claim)));
    else if (lacks_driver(claim))
        advice_list_add(
            advice,
            "install the CSI driver %.*s: it has replaced the provisioner of the class, and "
            "has no CSIDriver here",
            SLICE_ARG(provisioner));
    else if (like.len != 0)
        advice_list_add(
            advice,
            "provisioner %.*s has no CSIDriver here, and %.*s has: create the StorageClass "
            "again with that one",
            SLICE_ARG(provisioner), SLICE_ARG(like));
    else {
        if (provisioner.len == 0)
            advice_list_add(advice, "the claim has no volume yet: its events say why");
        else
            advice_list_add(advice,
                            "is the provisioner %.*s %srunning? The claim's events have what it "
                            "says",
                            SLICE_ARG(provisioner),
                            slice_has(provisioner, SLICE("csi")) &&
                                    has_no_csi_driver(claim, provisioner)
                                ? "installed (it has no CSIDriver), and is it "
                                : "");
        advice_list_row(advice, ADVICE_SEE_CLAIM, &CLAIM_WORDS(claim));
    }
}

/* A volume has the data of an earlier claim of this name: how the claim gets it. False: none. */
static bool advise_earlier(struct advice_list *advice, const struct who_claim *claim)
{
    const struct resource *volume = volume_of_earlier(&claim->inquiry->cluster, claim->claim);
    struct who_claim earlier = *claim;
    char buffer[PROVISIONED_NAME_BYTES];
    struct slice text;

    if (volume == NULL)
        return false;
    earlier.volume = arena_copy(claim->arena, resource_name(volume, buffer));
    bool is_read =
        earlier.volume.ptr != NULL &&
        who_details(&text, claim->inquiry, KIND_VOLUME, SLICE(""), earlier.volume, claim->arena);
    advice->has_failed = advice->has_failed || !is_read;
    if (!is_read || text.ptr == NULL ||
        !volume_details_read(text, claim->arena, &earlier.volume_details) ||
        uid_is(&claim->claim->uid, earlier.volume_details.claim_uid))
        return false;
    advice_of_earlier(advice, &earlier);
    return true;
}

/* By its class, or by hand. */
static void advise_volume(struct advice_list *advice, const struct who_claim *claim)
{
    if (!who_makes_no_volumes(claim) &&
        (provisioner_of(claim).len != 0 || class_name(claim).len != 0)) {
        advise_provisioner(advice, claim);
        return;
    }
    size_t before = advice->count;
    if (!advise_earlier(advice, claim) && advise_default(advice, claim))
        return;
    advice->is_else = advice->count != before;
    advise_manual(advice, claim);
}

static void advise_class(struct advice_list *advice, const struct who_claim *claim)
{
    bool is_earlier = advise_earlier(advice, claim);
    enum misfit misfit; /* of a volume that was made by hand: its class needs no object */
    bool is_static = volume_nearest(&claim->inquiry->cluster, claim->claim, &misfit) != NULL;

    advice->is_else = is_earlier;
    if (is_earlier || is_static) {
        advise_manual(advice, claim);
        return;
    }
    struct slice classes = classes_text(claim), maker = who_maker(claim);
    advice_list_add(
        advice,
        "create StorageClass %.*s, or a PersistentVolume with that storageClassName; or delete the "
        "claim, whose class cannot be changed, and create it with one that exists%.*s%.*s",
        SLICE_ARG(class_name(claim)), SLICE_ARG(classes), SLICE_ARG(maker));
}

/* Whether the CSINode of a node lacks the driver of the claim's class, which has a CSIDriver. */
static bool lacks_driver_there(const struct who_claim *claim, struct slice node)
{
    const struct cluster *cluster = &claim->inquiry->cluster;
    const struct node *record = cluster_find_node(cluster, node);
    struct slice driver = provisioner_of(claim);

    return record != NULL && inquiry_knows(claim->inquiry, KIND_CSI_NODE) &&
           cluster_find_resource(cluster, KIND_CSI_DRIVER, driver) != NULL &&
           (record->csi_node == NULL || !words_have(name_slice(record->csi_node->drivers), driver));
}

/* The first key of the class's allowedTopologies that the driver does not have on the node, which
 * has keys of its own; empty: none. */
static struct slice find_strange_key(const struct who_claim *claim, struct slice node,
                                     struct slice *own)
{
    struct slice text = inquiry_find_details(claim->inquiry, KIND_CSI_NODE, SLICE(""), node);
    const struct topology *topology = claim->class_details.topologies.items;
    struct csi_node_details details;

    if (claim->class_details.topologies.count == 0 || topology->labels.count == 0 ||
        text.ptr == NULL || !csi_node_details_read(text, claim->arena, &details))
        return SLICE("");
    const struct topology_label *labels = topology->labels.items;
    const struct driver_limit *drivers = details.drivers.items;
    for (size_t i = 0; i < details.drivers.count; i++) {
        const struct pull_items *keys = &drivers[i].topology_keys;
        if (!slice_equal(drivers[i].name, provisioner_of(claim)) || keys->count == 0)
            continue;
        *own = *(const struct slice *)keys->items;
        for (size_t j = 0; j < topology->labels.count; j++)
            if (!slice_is_among(labels[j].key, keys->items, keys->count))
                return labels[j].key;
    }
    return SLICE("");
}

/* What keeps the volume from being made for that node. False: nothing of this. */
static bool advise_selected(struct advice_list *advice, const struct who_claim *claim,
                            struct slice node)
{
    struct slice own, strange;

    if (inquiry_knows(claim->inquiry, KIND_NODE) &&
        cluster_find_node(&claim->inquiry->cluster, node) == NULL) {
        advice_list_add(
            advice,
            "node %.*s does not exist: remove the annotation, so that the scheduler chooses "
            "another one",
            SLICE_ARG(node));
        advice_list_row(advice, ADVICE_FORGET_NODE, &CLAIM_WORDS(claim));
        return true;
    }
    strange = find_strange_key(claim, node, &own);
    if (strange.len != 0) {
        advice_list_add(
            advice,
            "StorageClass %.*s allows %.*s, which is no topology key of its driver (%.*s), so "
            "no volume is made: create the class again with that key",
            SLICE_ARG(class_name(claim)), SLICE_ARG(strange), SLICE_ARG(own));
        return true;
    }
    if (!lacks_driver_there(claim, node))
        return false;
    advice_list_add(
        advice,
        "driver %.*s is not registered on node %.*s (CSINode), so its provisioner does not "
        "know where to make the volume: get the driver there; or cordon the node, and remove "
        "the annotation, so that the scheduler chooses another one",
        SLICE_ARG(provisioner_of(claim)), SLICE_ARG(node));
    advice_list_row(advice, ADVICE_FORGET_NODE, &CLAIM_WORDS(claim));
    return true;
}

void advice_of_named(struct advice_list *advice, const struct who_claim *claim,
                     const struct resource *volume)
{
    struct slice ns = resource_attribute(volume, VOLUME_CLAIM_NAMESPACE);
    struct slice name = resource_attribute(volume, VOLUME_CLAIM_NAME);
    enum misfit misfit = volume_misfit(volume, claim->claim, true);
    bool is_same = slice_equal(name, claim_name(claim->claim));
    const struct resource *free = volume_free_for(&claim->inquiry->cluster, claim->claim);
    char buffer[PROVISIONED_NAME_BYTES];
    struct slice free_name = free == NULL ? SLICE("") : resource_name(free, buffer);

    if (name.len != 0 && ns.len == 0 && is_same)
        advice_list_add(advice, "the volume's claimRef has no namespace: set it to %.*s",
                        SLICE_ARG(name_text(claim->claim->ns)));
    else if (name.len != 0 && !(is_same && slice_equal(ns, name_text(claim->claim->ns))))
        advice_list_add(
            advice,
            "volume %.*s is of claim %.*s/%.*s: name another one%s%.*s%s in a new claim (a claim's "
            "volumeName cannot be changed)",
            SLICE_ARG(claim->volume), SLICE_ARG(ns), SLICE_ARG(name), free == NULL ? "" : " (",
            SLICE_ARG(free_name), free == NULL ? "" : " fits)");
    else if (misfit != MISFIT_NONE)
        advise_misfit(advice, claim, volume, misfit);
    else
        advice_list_add(advice,
                        "wait, if it is Available; else name another volume in a new claim");
}

/* ---- all together ---- */

/* The scheduler has chosen a node for the volume, and it is not made. */
static void advise_chosen(struct advice_list *advice, const struct who_claim *claim)
{
    if (advise_selected(advice, claim, claim->details.selected_node))
        return;
    advise_volume(advice, claim);
    if (!lacks_driver(claim))
        advice_list_add(
            advice,
            "if the node has no room for the volume, wait: the provisioner removes the annotation "
            "volume.kubernetes.io/selected-node, and the scheduler tries another node");
}

/* The pod has its node, and no scheduler has chosen it with the claim. */
static void advise_placed(struct advice_list *advice, const struct who_pod *pod)
{
    struct slice scheduler = pod->details.scheduler;

    if (scheduler.len != 0 && !slice_equal(scheduler, SLICE("default-scheduler")))
        advice_list_add(advice,
                        "if scheduler %.*s chose the node: it does not bind volumes "
                        "(VolumeBinding); let another one place the pod",
                        SLICE_ARG(scheduler));
    else if (pod->owner.name.len != 0)
        advice_list_add(advice,
                        "take spec.nodeName out of the template of %.*s %.*s, and delete the pod; "
                        "a nodeSelector can name the node",
                        SLICE_ARG(pod->owner.kind), SLICE_ARG(pod->owner.name));
    else
        advice_list_add(advice, "create the pod again without spec.nodeName; a nodeSelector can "
                                "name the node");
}

void advice_of_unbound(struct advice_list *advice, const struct who_claim *claim)
{
    struct who_pod user;

    if (who_lacks_class(claim))
        advise_class(advice, claim);
    else if (!who_waits_for_consumer(claim))
        advise_volume(advice, claim);
    else if (claim->details.selected_node.len != 0)
        advise_chosen(advice, claim);
    else if (who_find_user(&user, claim) && pod_is_assigned(user.pod))
        advise_placed(advice, &user);
    else if (!who_makes_no_volumes(claim))
        advice_list_add(advice,
                        "nothing is wrong: StorageClass %.*s makes the volume when a node is "
                        "chosen for a pod with the claim",
                        SLICE_ARG(class_name(claim)));
    else
        advise_volume(advice, claim);
}
