/* Causes: a pod that has its node, and whose volumes do not come there. */
#include "extender/commands/who/who_advice.h"
#include "extender/commands/why/why_internal.h"

/* ---- a pod on its node ---- */

/* The attachment of the claim's volume to the pod's node; NULL: none. */
static const struct who_attachment *find_own(const struct why_pod *pod,
                                             const struct why_claim *claim)
{
    for (size_t i = 0; i < claim->who.attachment_count; i++)
        if (slice_equal(claim->who.attachments[i].node, pod_node(pod->pod)))
            return &claim->who.attachments[i];
    return NULL;
}

/* ---- another node has the volume ---- */

/* Of one of those that wait for the claim: the node that has its volume; empty: none. */
static struct slice find_blocking_node(const struct why_pod *pod, const struct why_claim *claim)
{
    for (size_t i = 0; i < claim->who.waiter_count; i++)
        if (claim->who.waiters[i].pod == pod->pod)
            return claim->who.waiters[i].blocked_by;
    return SLICE("");
}

/* Another claim of the pod whose volume is attached to one node, which is not that one; NULL: none.
 */
static const struct why_claim *find_elsewhere(const struct why_pod *pod,
                                              const struct why_claim *claim, struct slice node)
{
    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct who_claim *other = &pod->claims[i].who;
        if (&pod->claims[i] == claim || other->access != ACCESS_ONE_NODE)
            continue;
        for (size_t j = 0; j < other->attachment_count; j++)
            if (other->attachments[j].is_attached && !slice_equal(other->attachments[j].node, node))
                return &pod->claims[i];
    }
    return NULL;
}

static void help_by_pods(struct why_pod *pod, const struct why_claim *claim, struct slice node)
{
    struct who_claim who = claim->who;

    who.is_apart = find_elsewhere(pod, claim, node) != NULL;
    if (who.is_apart)
        why_help(pod, "its volumes are on two nodes: what has them has to end, or to run on one");
    why_help_all(pod, who_freed_by(&who, false, pod->texts));
}

/* ": pod web-1 is being deleted there, and nobody knows whether it has ended", if that is why the
 * node, which is lost, keeps the volume. */
static struct slice left_behind(struct why_pod *pod, const struct why_claim *claim,
                                struct slice node)
{
    for (size_t i = 0; i < claim->who.holder_count; i++) {
        const struct who_pod *holder = &claim->who.holders[i];
        if (holder->node_state == NODE_UNREACHABLE && slice_equal(pod_node(holder->pod), node))
            return arena_printf(
                pod->arena, ": pod %.*s/%.*s is%s there, and nobody knows whether it has ended",
                POD_ARG(holder->pod), holder->pod->is_terminating ? " being deleted" : "");
    }
    return SLICE("");
}

void why_multi_attach(struct why_pod *pod, const struct why_claim *claim)
{
    struct slice node = find_blocking_node(pod, claim);
    if (node.len == 0)
        return;
    enum node_state state = who_node_state(pod->inquiry, node, pod->arena);
    struct slice pods = left_behind(pod, claim, node);
    why_add(pod, WHY_BLOCKS, why_volume_reference(claim),
            "volume %.*s of claim %.*s/%.*s is for one node at a time, and node %.*s%s%s has it "
            "(Multi-Attach)%.*s",
            SLICE_ARG(claim->who.volume), CLAIM_ARG(claim), SLICE_ARG(node), why_node_state(state),
            *why_node_state(state) == '\0' ? "" : ",", SLICE_ARG(pods));
    const struct node *record = cluster_find_node(&pod->inquiry->cluster, node);
    if (record == NULL || record->is_not_ready) /* which is what many pods wait for */
        why_root(pod, (struct object_reference){.kind = KIND_NODE, .name = node});
    help_by_pods(pod, claim, node);
}

/* ---- one writer ---- */

/* Whether the claim may be mounted by many nodes, if all only read. */
static bool is_for_readers(const struct who_claim *claim)
{
    const struct slice *modes = claim->details.access_modes.items;
    size_t count = claim->details.access_modes.count;

    return slice_is_among(SLICE("ReadOnlyMany"), modes, count) &&
           slice_is_among(SLICE("ReadWriteOnce"), modes, count) &&
           !slice_is_among(SLICE("ReadWriteMany"), modes, count);
}

/* Whether all nodes get the volume for writing: the kubelet asks the driver for its first access
 * mode, whatever pods say. A provisioner takes the modes from the claim. */
static bool is_first_a_writer(const struct why_claim *claim)
{
    const struct slice *modes = claim->who.details.access_modes.items;

    return slice_equal(modes[0], SLICE("ReadWriteOnce")) && claim->volume != NULL &&
           volume_driver(claim->volume).len != 0;
}

static bool is_reader(const struct who_pod *pod, struct slice claim)
{
    const struct volume_source_details *volumes = pod->details.volumes.items;
    bool reads = true;

    for (size_t i = 0; i < pod->details.volumes.count; i++)
        reads = reads && (volumes[i].is_read_only || !slice_equal(volumes[i].claim, claim));
    return reads;
}

void why_one_writer(struct why_pod *pod, const struct why_claim *claim)
{
    struct slice name = claim_name(claim->who.claim);

    if (!claim->who.claim->exists || !is_for_readers(&claim->who) ||
        !who_is_attachable(&claim->who))
        return;
    for (size_t i = 0; i < claim->who.holder_count; i++) {
        const struct who_pod *holder = &claim->who.holders[i];
        bool is_writer = is_first_a_writer(claim);
        bool both_read = is_reader(holder, name) && is_reader(&pod->who, name);
        if (slice_equal(pod_node(holder->pod), pod_node(pod->pod)) || (both_read && !is_writer))
            continue;
        why_add(pod, WHY_BLOCKS, why_claim_reference(claim),
                "claim %.*s/%.*s is for one node that writes, or for many that read: pod %.*s/%.*s "
                "on node %.*s has it%s",
                CLAIM_ARG(claim), POD_ARG(holder->pod), SLICE_ARG(pod_node(holder->pod)),
                both_read ? "" : ", and not both pods mount it readOnly");
        why_help(pod,
                 "run both pods on one node; or, if both only read, %s; or use a ReadWriteMany "
                 "volume, if both write",
                 is_writer ? "use a claim that is ReadOnlyMany alone, made from a snapshot of this "
                             "one (readOnly in the pods is not enough: the kubelet takes the first "
                             "access mode, ReadWriteOnce)"
                           : "set readOnly: true in the persistentVolumeClaim of both");
        return;
    }
}

/* ---- the pod's own node ---- */

/* Volumes of one driver wait for the same. */
static void root_driver(struct why_pod *pod, const struct why_claim *claim)
{
    struct slice driver = claim->volume == NULL ? SLICE("") : volume_driver(claim->volume);

    if (driver.len != 0)
        why_root(pod, (struct object_reference){.kind = KIND_CSI_DRIVER, .name = driver});
}

/* Whether the volume of an attachment has that handle. */
static bool has_handle(const struct why_pod *pod, const struct resource *attachment,
                       struct slice handle)
{
    struct volume_details details = {.handle = {"", 0}};
    struct arena scratch;

    arena_init(&scratch, WHY_POD_BYTES_MAX);
    struct slice text =
        inquiry_find_details(pod->inquiry, KIND_VOLUME, SLICE(""), who_volume_of(attachment));
    bool has = text.ptr != NULL && volume_details_read(text, &scratch, &details) &&
               slice_equal(details.handle, handle);
    arena_dispose(&scratch);
    inquiry_forget_details(pod->inquiry);
    return has;
}

/* An attachment elsewhere of another volume that is the same disk; NULL: none. */
static const struct resource *find_twin(const struct why_pod *pod, const struct why_claim *claim,
                                        struct slice driver)
{
    const struct cluster *cluster = &pod->inquiry->cluster;
    struct table_walk walk = {.at = 0};

    for (const struct resource *other;
         claim->volume_details->handle.len != 0 &&
         (other = cluster_next_resource(cluster, KIND_VOLUME_ATTACHMENT, &walk)) != NULL;)
        if (!slice_equal(who_volume_of(other), claim->who.volume) &&
            slice_equal(resource_attribute(other, VOLUME_ATTACHMENT_DRIVER), driver) &&
            (resource_number(other) & VOLUME_ATTACHMENT_IS_ATTACHED) != 0 &&
            has_handle(pod, other, claim->volume_details->handle))
            return other;
    return NULL;
}

/* How many volumes of the driver are attached to the pod's node. */
static size_t count_attached(const struct why_pod *pod, struct slice driver)
{
    struct table_walk walk = {.at = 0};
    size_t count = 0;

    for (const struct resource *one;
         (one = cluster_next_resource(&pod->inquiry->cluster, KIND_VOLUME_ATTACHMENT, &walk)) !=
         NULL;)
        count += slice_equal(resource_attribute(one, VOLUME_ATTACHMENT_DRIVER), driver) &&
                         slice_equal(resource_attribute(one, VOLUME_ATTACHMENT_NODE),
                                     pod_node(pod->pod)) &&
                         (resource_number(one) & VOLUME_ATTACHMENT_IS_ATTACHED) != 0
                     ? 1
                     : 0;
    return count;
}

/* Whether the pod's node has as many volumes of the driver as its CSINode allows. */
static bool is_full(struct why_pod *pod, struct slice driver)
{
    struct slice text =
        inquiry_find_details(pod->inquiry, KIND_CSI_NODE, SLICE(""), pod_node(pod->pod));
    struct csi_node_details details;

    if (text.ptr == NULL || !csi_node_details_read(text, pod->arena, &details))
        return false;
    const struct driver_limit *drivers = details.drivers.items;
    for (size_t i = 0; i < details.drivers.count; i++)
        if (slice_equal(drivers[i].name, driver))
            return drivers[i].volumes.is_known &&
                   (int64_t)count_attached(pod, driver) >= drivers[i].volumes.count;
    return false;
}

/* What drivers and clouds say plainly, the codes of CSI first. */
enum trouble {
    TROUBLE_BUSY,
    TROUBLE_FULL,
    TROUBLE_RIGHTS,
    TROUBLE_GONE,
    TROUBLE_ELSEWHERE,
    TROUBLE_UNFIT
};

static const struct {
    enum trouble trouble;
    const char *words;
} troubles[] = {
    {TROUBLE_BUSY, "RequestLimitExceeded"},
    {TROUBLE_BUSY, "Throttling"},
    {TROUBLE_BUSY, "TooManyRequests"},
    {TROUBLE_BUSY, "rate limit"},
    {TROUBLE_FULL, "code = ResourceExhausted"},
    {TROUBLE_FULL, "AttachmentLimitExceeded"},
    {TROUBLE_FULL, "VolumeLimitExceeded"},
    {TROUBLE_FULL, "maximum number of"},
    {TROUBLE_RIGHTS, "code = PermissionDenied"},
    {TROUBLE_RIGHTS, "code = Unauthenticated"},
    {TROUBLE_RIGHTS, "Unauthorized"},
    {TROUBLE_RIGHTS, "AccessDenied"},
    {TROUBLE_RIGHTS, "AuthorizationFailed"},
    {TROUBLE_GONE, "code = NotFound"},
    {TROUBLE_GONE, "NotFound"},
    {TROUBLE_GONE, "does not exist"},
    {TROUBLE_ELSEWHERE, "already attached to"},
    {TROUBLE_UNFIT, "code = InvalidArgument"},
};

static const char *const trouble_helps[] = {
    [TROUBLE_BUSY] = "wait: too many calls were made to the storage, and the driver tries again",
    [TROUBLE_FULL] =
        "cordon it, and delete the pod, so that it goes to another node; a lower limit "
        "in its CSINode, which the driver sets, keeps others away",
    [TROUBLE_RIGHTS] = "give the driver's controller the rights that it lacks: the volume and "
                       "the pod are well",
    [TROUBLE_GONE] =
        "trying again does not help: look for what the message names, the node or the "
        "volume, in the storage (its account and region); the data of a volume that is "
        "gone can be restored to a new one",
    [TROUBLE_ELSEWHERE] = "if no node of this cluster has it: detach it there by the means of the "
                          "storage, once nothing uses it",
    [TROUBLE_UNFIT] = "trying again does not help: run the pod on another kind of machine, or "
                      "restore the data to a volume of another StorageClass",
};

/* Whether another node can have the volume, as far as is known; how many volumes it has does not
 * count. */
static bool has_other_node(struct why_pod *pod, const struct why_claim *claim)
{
    struct table_walk walk = {.at = 0};
    struct node_details details;

    for (const struct node *node;
         (node = cluster_next_node(&pod->inquiry->cluster, &walk)) != NULL;)
        if (node_is_usable(node) && node != node_at(pod->pod->node) &&
            (!why_node_details(pod, name_slice(node->name), &details) ||
             (claim->terms.own.count == 0 && claim->terms.migrated.count == 0) ||
             volume_terms_match(&claim->terms, node, details.labels)))
            return true;
    return false;
}

/* The node can have no more volumes. then: if another one can have this volume. */
static void help_full(struct why_pod *pod, const struct why_claim *claim, struct slice full,
                      const char *then)
{
    struct slice where = node_terms_text(&claim->terms.own, pod->arena);
    bool is_anywhere = claim->terms.own.count == 0;

    if (!why_knows(pod, KIND_NODE) || has_other_node(pod, claim))
        why_help(pod, "%.*s: %s", SLICE_ARG(full), then);
    else
        why_help(pod, "%.*s, and no other node can have this one: add a node%s%.*s",
                 SLICE_ARG(full), is_anywhere ? "" : " with ",
                 SLICE_ARG(is_anywhere ? SLICE("") : where));
}

static void help_by_error(struct why_pod *pod, const struct why_claim *claim, struct slice driver,
                          struct slice error)
{
    for (size_t i = 0; i < sizeof troubles / sizeof *troubles; i++) {
        const char *help = trouble_helps[troubles[i].trouble];
        if (!slice_has(error, slice_of(troubles[i].words)))
            continue;
        if (troubles[i].trouble == TROUBLE_FULL)
            help_full(pod, claim, SLICE("the node can have no more volumes"), help);
        else
            why_help(pod, "%s", help);
        return;
    }
    why_help(pod,
             "driver %.*s tries again; an error that stays has to be mended: its controller's log "
             "has more",
             SLICE_ARG(driver));
}

static void help_failed(struct why_pod *pod, const struct why_claim *claim,
                        const struct who_attachment *own)
{
    struct slice driver = resource_attribute(own->record, VOLUME_ATTACHMENT_DRIVER);
    const struct resource *twin =
        slice_has(own->attach_error, SLICE("attached")) ? find_twin(pod, claim, driver) : NULL;

    if (twin != NULL)
        why_help(pod,
                 "volumes %.*s and %.*s are one disk (volumeHandle), and node %.*s has it as the "
                 "other one: one volume for each disk, so give this claim a disk of its own",
                 SLICE_ARG(claim->who.volume), SLICE_ARG(who_volume_of(twin)),
                 SLICE_ARG(resource_attribute(twin, VOLUME_ATTACHMENT_NODE)));
    else if (is_full(pod, driver))
        help_full(pod, claim,
                  arena_printf(pod->arena,
                               "node %.*s has as many volumes of %.*s as its CSINode allows",
                               SLICE_ARG(pod_node(pod->pod)), SLICE_ARG(driver)),
                  "delete the pod, so that it goes to another node");
    else
        help_by_error(pod, claim, driver, own->attach_error);
}

void why_attach_failed(struct why_pod *pod, const struct why_claim *claim)
{
    const struct who_attachment *own = find_own(pod, claim);
    if (own == NULL || own->attach_error.len == 0 ||
        claim->volume_details->deletion_timestamp.len != 0) /* VolumeDeleting */
        return;
    char name[PROVISIONED_NAME_BYTES];
    const struct object_reference reference = {.kind = KIND_VOLUME_ATTACHMENT,
                                               .name = resource_name(own->record, name)};
    why_add(pod, WHY_BLOCKS, reference,
            "volume %.*s of claim %.*s/%.*s cannot be attached to node %.*s: %.*s",
            SLICE_ARG(claim->who.volume), CLAIM_ARG(claim), SLICE_ARG(pod_node(pod->pod)),
            SLICE_ARG(own->attach_error));
    root_driver(pod, claim);
    help_failed(pod, claim, own);
}

/* Whether the volume needs a VolumeAttachment: those of plug-ins without a CSI driver have none. */
static bool needs_attachment(const struct why_pod *pod, const struct why_claim *claim)
{
    return why_knows(pod, KIND_VOLUME_ATTACHMENT) && claim->volume != NULL &&
           who_is_attachable(&claim->who) && volume_driver(claim->volume).len != 0;
}

/* kube-controller-manager does not attach a volume to a node while it detaches it there. */
static void find_detaching(struct why_pod *pod, const struct why_claim *claim,
                           const struct who_attachment *own)
{
    char name[PROVISIONED_NAME_BYTES];
    bool fails = own->detach_error.len != 0;

    why_add(pod, WHY_BLOCKS, why_volume_reference(claim),
            "volume %.*s of claim %.*s/%.*s is being detached from node %.*s, and is attached "
            "again only after that%s%.*s",
            SLICE_ARG(claim->who.volume), CLAIM_ARG(claim), SLICE_ARG(pod_node(pod->pod)),
            fails ? ": " : "", SLICE_ARG(own->detach_error));
    root_driver(pod, claim);
    why_help(pod,
             fails ? "the driver cannot detach it: its controller's log has more; this shows the "
                     "attachment"
                   : "wait; if it stays so, see why it is not detached");
    why_command(pod, ADVICE_SEE_ATTACHMENT,
                &(const struct advice_words){.name = resource_name(own->record, name)});
}

void why_not_attached(struct why_pod *pod, const struct why_claim *claim)
{
    const struct who_attachment *own = find_own(pod, claim);
    if (own != NULL && own->is_detaching) {
        find_detaching(pod, claim, own);
        return;
    }
    bool is_elsewhere = find_blocking_node(pod, claim).len != 0;
    if (!needs_attachment(pod, claim) || (own == NULL && is_elsewhere) ||
        (own != NULL && (own->is_attached || own->attach_error.len != 0)))
        return;
    if (own == NULL)
        why_add(pod, WHY_BLOCKS, why_volume_reference(claim),
                "volume %.*s of claim %.*s/%.*s has no VolumeAttachment to node %.*s",
                SLICE_ARG(claim->who.volume), CLAIM_ARG(claim), SLICE_ARG(pod_node(pod->pod)));
    else
        why_add(pod, WHY_BLOCKS, why_volume_reference(claim),
                "volume %.*s of claim %.*s/%.*s is being attached to node %.*s",
                SLICE_ARG(claim->who.volume), CLAIM_ARG(claim), SLICE_ARG(pod_node(pod->pod)));
    root_driver(pod, claim);
    if (!node_at(pod->pod->node)->exists && why_knows(pod, KIND_NODE))
        why_help(pod,
                 "node %.*s does not exist, so nothing attaches to it: kube-controller-manager "
                 "deletes the pod",
                 SLICE_ARG(pod_node(pod->pod)));
    else if (own == NULL)
        why_help(pod, "wait: kube-controller-manager makes it within seconds");
    else
        why_help(pod, "wait; if it stays so, is the external-attacher of driver %.*s running?",
                 SLICE_ARG(resource_attribute(own->record, VOLUME_ATTACHMENT_DRIVER)));
}
