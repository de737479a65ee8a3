/* Causes: what claimguard's policies say. */
#include "extender/commands/why/why_internal.h"
#include "policy/defer_fs_mount.h"
#include "policy/holders.h"
#include "policy/policy.h"

/* What a rejection means: a policy that does not enforce lets the pod pass, which then waits on its
 * node. */
static enum why_effect effect_of(const struct why_pod *pod, const struct policy *policy,
                                 enum why_effect enforced)
{
    bool is_enforced = policy_mode(policy, pod->view.config) == MODE_ENFORCE;

    return pod->stage == WHY_STARTING ? WHY_BLOCKS : is_enforced ? enforced : WHY_LATER;
}

/* ---- what is not known of the namespace ---- */

void why_given_up(struct why_pod *pod)
{
    struct slice reason;

    if (pod->claim_count == 0 ||
        !policy_has_given_up(&pod->view, pod->object.meta.ns, pod->arena, &reason))
        return;
    why_add_text(pod, WHY_BLOCKS, why_pod_reference(pod), reason);
    why_help(pod, "make them smaller, or raise cache.maxNamespaceBytes of claimguard; then wait "
                  "for half an hour, or restart claimguard");
}

/* ---- policies about a claim's class, and a driver ---- */

/* A claim that names a class; else one that names a volume, which may have one; NULL: none. */
static const struct why_claim *with_class(const struct why_pod *pod)
{
    for (size_t i = 0; i < pod->claim_count; i++)
        if (claim_volume_attributes_class(pod->claims[i].who.claim) != NULL)
            return &pod->claims[i];
    for (size_t i = 0; i < pod->claim_count; i++)
        if (pod->claims[i].is_bound)
            return &pod->claims[i];
    return NULL;
}

void why_attributes_class(struct why_pod *pod)
{
    struct verdict verdict;
    const struct why_claim *claim = with_class(pod);
    struct object_reference reference =
        claim == NULL ? why_pod_reference(pod) : why_claim_reference(claim);
    struct slice maker = claim == NULL ? SLICE("") : who_maker(&claim->who);

    volume_attributes_class.prefilter(&pod->view, &pod->object, pod->arena, &verdict);
    pod->has_failed = pod->has_failed || verdict.code == CODE_ERROR;
    if (code_is_rejection(verdict.code) && why_knows(pod, KIND_VOLUME_ATTRIBUTES_CLASS)) {
        why_add_text(pod, effect_of(pod, &volume_attributes_class, WHY_BLOCKS), reference,
                     verdict_message(&verdict, pod->arena));
        if (slice_has(verdict_message(&verdict, pod->arena), SLICE("does not exist")))
            why_help(pod,
                     "create the VolumeAttributesClass, or delete the claim, and create it with "
                     "one that exists for its driver%.*s",
                     SLICE_ARG(maker));
        else
            why_help(pod,
                     "delete the claim, and create it with a VolumeAttributesClass of its "
                     "driver%.*s",
                     SLICE_ARG(maker));
    }
    for (size_t i = 0; i < verdict.warning_count; i++)
        why_add_text(pod, WHY_NORMAL, reference, verdict.warnings[i].text);
}

void why_driver_mode(struct why_pod *pod)
{
    struct verdict verdict;

    csi_volumes.prefilter(&pod->view, &pod->object, pod->arena, &verdict);
    pod->has_failed = pod->has_failed || verdict.code == CODE_ERROR;
    if (!code_is_rejection(verdict.code) || !why_knows(pod, KIND_CSI_DRIVER))
        return;
    struct object_reference reference = why_pod_reference(pod);
    for (size_t i = verdict.awaited_count; i-- > 0;)
        if (verdict.awaited[i].kind == KIND_CSI_DRIVER)
            reference = verdict.awaited[i];
    why_add_text(pod, effect_of(pod, &csi_volumes, WHY_BLOCKS), reference,
                 verdict_message(&verdict, pod->arena));
    if (reference.kind == KIND_CSI_DRIVER &&
        cluster_find_resource(&pod->inquiry->cluster, KIND_CSI_DRIVER, reference.name) == NULL &&
        cluster_count_driver_nodes(&pod->inquiry->cluster, reference.name) != 0)
        why_help(pod,
                 "create the driver's CSIDriver from its manifests, with volumeLifecycleModes: "
                 "[Ephemeral]: the driver itself is on nodes");
    else
        why_help(pod,
                 "install the driver, with a CSIDriver whose volumeLifecycleModes have the mode, "
                 "or correct the driver's name in the pod");
}

/* ---- claims that other pods hold ---- */

/* The claim of a conflict, as it was gathered. */
static const struct why_claim *find_claim(const struct why_pod *pod, const struct claim *claim)
{
    for (size_t i = 0; i < pod->claim_count; i++)
        if (pod->claims[i].who.claim == claim)
            return &pod->claims[i];
    return NULL;
}

/* "claim shop/data is in use by pod shop/db-0 on node-1": the conflicts from `begin` on that are of
 * one claim. *end: behind the last of them. */
static struct slice describe_conflicts(const struct conflicts *conflicts, size_t begin, size_t *end,
                                       struct arena *arena)
{
    const struct claim *claim = conflicts->items[begin].claim;
    struct slice text = SLICE("");
    size_t shown = 0;
    bool ok = true;

    for (*end = begin; ok && *end < conflicts->count && conflicts->items[*end].claim == claim;
         (*end)++) {
        struct slice one = shown == WHY_NAMES_SHOWN_MAX
                               ? SLICE("")
                               : conflict_describe(&conflicts->items[*end], arena);
        shown += one.len != 0 ? 1 : 0;
        ok = one.ptr != NULL &&
             (one.len == 0 || ((text.len == 0 || arena_append(arena, &text, SLICE("; "))) &&
                               arena_append(arena, &text, one)));
    }
    if (ok && *end - begin > shown)
        return arena_printf(arena, "%.*s; and %zu more", SLICE_ARG(text), *end - begin - shown);
    return ok ? text : (struct slice){NULL, 0};
}

/* Whether the whole pod could continue if pods were evicted, and which. */
static void help_by_preemption(struct why_pod *pod)
{
    struct verdict verdict;

    if (pod->stage != WHY_SCHEDULING ||
        slice_has(who_message(&pod->who), SLICE("No preemption victims found")))
        return;
    policy_prefilter(&pod->view, &pod->object, pod->arena, &verdict);
    for (size_t i = 0; i < verdict.victim_count && i < WHY_NAMES_SHOWN_MAX; i++)
        why_help(pod,
                 "wait: the scheduler may evict pod %.*s/%.*s (priority %lld) for this one "
                 "(priority %lld); if it does not:",
                 POD_ARG(verdict.victims[i]), (long long)verdict.victims[i]->priority,
                 (long long)pod->object.priority);
}

/* Claims that pods on a node hold which does not answer wait for that node. */
static void root_node(struct why_pod *pod, const struct who_claim *claim)
{
    if (claim->holder_count != 0 && claim->holders[0].node_state > NODE_READY)
        why_root(pod, (struct object_reference){.kind = KIND_NODE,
                                                .name = pod_node(claim->holders[0].pod)});
}

void why_in_use(struct why_pod *pod)
{
    struct conflicts conflicts = {.count = 0};

    if (!conflicts_find(&pod->view, &pod->object, pod->arena, &conflicts)) {
        pod->has_failed = true;
        return;
    }
    for (size_t begin = 0, end; begin < conflicts.count; begin = end) {
        const struct why_claim *claim = find_claim(pod, conflicts.items[begin].claim);
        struct slice text = describe_conflicts(&conflicts, begin, &end, pod->arena);
        if (claim == NULL || text.ptr == NULL) {
            pod->has_failed = true;
            return;
        }
        why_add_text(pod, WHY_BLOCKS, why_claim_reference(claim), text);
        root_node(pod, &claim->who);
        help_by_preemption(pod);
        why_help_all(pod, who_freed_by(&claim->who, false, pod->texts));
    }
}

void why_locked(struct why_pod *pod, const struct why_claim *claim)
{
    struct slice uid, name;

    if (!claim->who.claim->exists || !who_lock(&claim->who, &uid, &name) ||
        uid_is(&pod->pod->uid, uid))
        return;
    const struct pod *locker = who_locker(&claim->who);
    if (locker != NULL && pod_holds(locker)) /* that is why it is in use */
        return;
    bool is_gone = locker == NULL || locker->is_terminal;
    bool is_said = slice_has(who_message(&pod->who), SLICE(" is locked for pod "));
    why_add(pod, is_gone && !is_said ? WHY_NORMAL : WHY_BLOCKS, why_claim_reference(claim),
            "claim %.*s/%.*s is locked for pod %.*s (claimguard.io/holder)", CLAIM_ARG(claim),
            SLICE_ARG(name));
    if (is_gone)
        why_help(pod,
                 "wait: that pod is gone, or has ended, so claimguard takes the lock over when "
                 "it is asked again");
    else
        why_help(
            pod,
            "wait: if pod %.*s is not bound some seconds later, claimguard takes the lock over",
            SLICE_ARG(name));
}

/* ---- policies about nodes ---- */

/* Flags the nodes that the policy rejects; *reason: the first one's. NULL: no memory. */
static bool *reject_by(struct why_pod *pod, const struct policy *policy, struct verdict *verdict,
                       struct slice *reason)
{
    bool *rejected = why_flags(pod);

    *reason = SLICE("");
    policy->prefilter(&pod->view, &pod->object, pod->arena, verdict);
    pod->has_failed = pod->has_failed || verdict->code == CODE_ERROR;
    if (rejected == NULL || code_is_rejection(verdict->code) || verdict->nodes == NULL)
        return rejected;
    for (size_t i = 0; i < pod->node_count; i++) {
        struct slice why;
        rejected[i] = policy_filter(verdict, pod->nodes[i].name, pod->arena, &why) != NULL;
        pod->has_failed = pod->has_failed || (rejected[i] && why.ptr == NULL);
        if (rejected[i] && reason->len == 0)
            *reason = why;
    }
    return rejected;
}

/* Whether the policy is about the claim, and pods have it. */
static bool is_elsewhere(const struct why_pod *pod, size_t i)
{
    const struct who_claim *claim = &pod->claims[i].who;

    return claim->assigned_count != pod_is_assigned(pod->pod) &&
           read_write_once_judges(&pod->view, &pod->object, i, claim->claim);
}

/* Whether the policy's reason names the claim; false also without memory. */
static bool is_named(const struct why_pod *pod, size_t i, struct slice reason)
{
    const struct why_claim *claim = &pod->claims[i];
    struct slice text = arena_printf(pod->arena, "claim %.*s/%.*s (", CLAIM_ARG(claim));

    return text.len != 0 && slice_has(reason, text);
}

/* Whether a claim that the policy is about can be used at all, and on a rejected node by the pod's
 * own nodeSelector. */
static bool is_open(const struct why_pod *pod, const bool *rejected)
{
    bool is_deleting = false, is_wanted = false;

    for (size_t i = 0; i < pod->claim_count; i++)
        is_deleting =
            is_deleting || (is_elsewhere(pod, i) && pod->claims[i].who.claim->is_deleting);
    for (size_t n = 0; n < pod->node_count; n++)
        is_wanted = is_wanted || (rejected[n] && why_is_wanted(pod, &pod->nodes[n]));
    return !is_deleting && is_wanted;
}

void why_elsewhere(struct why_pod *pod)
{
    struct verdict verdict;
    struct slice reason;
    const bool *rejected = reject_by(pod, &read_write_once, &verdict, &reason);
    struct object_reference reference = why_pod_reference(pod);

    if (rejected == NULL || !is_open(pod, rejected))
        return;
    struct slice passing = why_node_names(pod, rejected, false);
    for (size_t i = 0; i < pod->claim_count; i++)
        if (is_elsewhere(pod, i) && is_named(pod, i, reason)) {
            reference = why_claim_reference(&pod->claims[i]);
            break;
        }
    if (!why_add_nodes(pod, effect_of(pod, &read_write_once, WHY_NARROWS), rejected, reference,
                       "%.*s: the volume is for one node at a time", SLICE_ARG(reason)))
        return;
    if (passing.len != 0)
        why_help(pod, "the pod can share the volume on %.*s: make room there", SLICE_ARG(passing));
    for (size_t i = 0; i < pod->claim_count && passing.len == 0; i++)
        if (is_elsewhere(pod, i))
            why_help_all(pod, who_freed_by(&pod->claims[i].who, false, pod->texts));
}

/* Whether the class of a claim would make a volume on one of the nodes: only then a driver is
 * missing there. */
static bool is_news(const struct why_pod *pod, const bool *rejected)
{
    for (size_t i = 0; i < pod->node_count; i++)
        if (rejected[i] && (pod->nodes[i].out_by == NULL ||
                            strcmp(pod->nodes[i].out_by, "StorageClassTopology") != 0))
            return true;
    return false;
}

void why_not_registered(struct why_pod *pod)
{
    struct verdict verdict;
    struct slice reason;
    const bool *rejected = reject_by(pod, &csi_volumes, &verdict, &reason);
    struct object_reference reference = why_pod_reference(pod);

    if (rejected == NULL || pod->lacks_driver || !why_knows(pod, KIND_CSI_NODE) ||
        !is_news(pod, rejected))
        return;
    struct slice names = why_node_names(pod, rejected, true);
    for (size_t i = verdict.awaited_count; i-- > 0;)
        if (verdict.awaited[i].kind == KIND_CSI_NODE) /* a driver on nodes */
            reference =
                (struct object_reference){.kind = KIND_CSI_DRIVER, .name = verdict.awaited[i].name};
    if (!why_add_nodes(pod, effect_of(pod, &csi_volumes, WHY_NARROWS), rejected, reference,
                       "%.*s (%.*s)", SLICE_ARG(reason), SLICE_ARG(names)))
        return;
    why_help_driver(pod, reference.kind == KIND_CSI_DRIVER ? reference.name : SLICE(""), rejected);
}

/* ---- what no other cause says ---- */

/* The claim whose volume is not there yet; else the pod. */
static struct object_reference with_unbound(const struct why_pod *pod)
{
    for (size_t i = 0; i < pod->claim_count; i++)
        if (pod->claims[i].who.claim->exists && !pod->claims[i].is_bound)
            return why_claim_reference(&pod->claims[i]);
    return why_pod_reference(pod);
}

static bool is_blocked(const struct why_pod *pod)
{
    for (size_t i = 0; i < pod->cause_count; i++)
        if (pod->causes[i].effect == WHY_BLOCKS)
            return true;
    return false;
}

/* How much room its class has for the volume: that of the node with the most. */
static void help_by_storage(struct why_pod *pod, bool is_about_room)
{
    const struct placement *placement = pod->view.placement;

    for (size_t i = 0; is_about_room && i < placement->claim_count; i++) {
        const struct placed_claim *placed = &placement->claims[i];
        const struct claim_rare *rare = claim_rare_at(placed->claim->rare);
        struct slice class = name_slice(claim_storage_class(placed->claim));
        int64_t most = -1;
        bool *without = placed->room == NULL ? NULL : why_flags(pod);
        for (size_t n = 0; without != NULL && n < placement->node_count; n++) {
            most = placed->room[n] > most ? placed->room[n] : most;
            without[n] = placed->room[n] < 0;
        }
        if (without == NULL || rare == NULL || most >= rare->requested)
            continue;
        struct slice names = why_node_names(pod, without, true);
        if (names.len != 0) {
            why_help(pod,
                     "no CSIStorageCapacity of StorageClass %.*s is for %.*s: see why the "
                     "controller of its driver publishes none",
                     SLICE_ARG(class), SLICE_ARG(names));
            return;
        }
        struct slice asked = who_size(rare->requested, pod->arena);
        struct slice room = who_size(most, pod->arena);
        why_help(pod,
                 "claim %.*s/%.*s asks for %.*s, and no node has room for a volume of more "
                 "than %.*s: ask for less, or add storage",
                 CLAIM_NAME_ARG(placed->claim), SLICE_ARG(asked), SLICE_ARG(room));
        return;
    }
    if (is_about_room)
        why_help(pod, "free storage of the claim's StorageClass there");
    if (pod->cause_count != 0)
        pod->causes[pod->cause_count - 1].needs_room = true;
}

/* The scheduler finds no room, and the input has no CSIStorageCapacity. */
static void find_no_capacity(struct why_pod *pod)
{
    const struct placement *placement = pod->view.placement;

    if (why_knows(pod, KIND_STORAGE_CAPACITY) ||
        !slice_has(who_message(&pod->who), SLICE("enough free storage")))
        return;
    for (size_t i = 0; i < pod->claim_count; i++) {
        struct slice driver =
            claim_has_volume(pod->claims[i].who.claim)
                ? SLICE("")
                : volume_driver_of(&pod->inquiry->cluster, pod->claims[i].who.claim);
        if (!placement_driver(placement, driver).has_capacities)
            continue;
        why_add(pod, WHY_BLOCKS, why_claim_reference(&pod->claims[i]),
                "the scheduler finds no room for claim %.*s/%.*s, and this input has no "
                "CSIStorageCapacity of driver %.*s",
                CLAIM_ARG(&pod->claims[i]), SLICE_ARG(driver));
        why_help(pod,
                 "does the driver's controller publish them (--enable-capacity)? Its log says why "
                 "not; storageCapacity: false in its CSIDriver does without");
        return;
    }
}

/* Of the nodes that are left: those that VolumeBinding rejects, one cause for each reason. */
void why_binding(struct why_pod *pod)
{
    struct verdict verdict;

    if (is_blocked(pod))
        return;
    find_no_capacity(pod);
    volume_binding.prefilter(&pod->view, &pod->object, pod->arena, &verdict);
    pod->has_failed = pod->has_failed || verdict.code == CODE_ERROR;
    for (size_t first = 0; verdict.nodes != NULL && first < pod->node_count; first++) {
        struct slice reason = SLICE(""), other;
        if (pod->nodes[first].out_by != NULL ||
            policy_filter(&verdict, pod->nodes[first].name, pod->arena, &reason) == NULL)
            continue;
        bool *rejected = why_flags(pod); /* after that: of 40,000 nodes, it is large */
        if (rejected == NULL)
            return;
        for (size_t n = first; n < pod->node_count; n++)
            rejected[n] = pod->nodes[n].out_by == NULL &&
                          policy_filter(&verdict, pod->nodes[n].name, pod->arena, &other) != NULL &&
                          slice_equal(other, reason);
        struct slice names = why_node_names(pod, rejected, true);
        if (why_add_nodes(pod, WHY_NARROWS, rejected, with_unbound(pod), "%.*s: %.*s",
                          SLICE_ARG(reason), SLICE_ARG(names)))
            help_by_storage(pod, slice_has(reason, SLICE("enough free storage")));
    }
}

/* What rejects the pod and has no cause of its own is said in the policy's words. */
void why_rejected(struct why_pod *pod)
{
    struct object_reference reference = why_pod_reference(pod);
    struct verdict verdict;

    if (is_blocked(pod))
        return;
    policy_prefilter(&pod->view, &pod->object, pod->arena, &verdict);
    pod->has_failed = pod->has_failed || verdict.code == CODE_ERROR;
    if (!code_is_rejection(verdict.code) || !why_knows(pod, KIND_CLAIM))
        return;
    for (enum kind kind = 0; verdict.decided_by != NULL && kind < KIND_COUNT; kind++)
        if ((verdict.decided_by->reads >> kind & 1) != 0 && !why_knows(pod, kind))
            return;
    if (verdict.cause_count != 0)
        reference = verdict.causes[0];
    why_add_text(pod, WHY_BLOCKS, reference, verdict_message(&verdict, pod->arena));
}

/* ---- deferrals ---- */

void why_deferral(struct why_pod *pod)
{
    const struct pod_mounts *mounts = pod->object.mounts;

    for (uint32_t i = 0; mounts != NULL && i < mounts->volume_count; i++) {
        struct decision decision;
        defer_decide(&pod->view, &pod->object, &mounts->volumes[i], &decision);
        if (decision.entry == NULL || decision.rule < RULE_VOLUME_MODE ||
            decision.rule >= RULE_COUNT || decision.is_undecided)
            continue;
        struct slice reason = defer_reason(&pod->object, &decision, pod->arena);
        if (reason.ptr == NULL) {
            pod->has_failed = true;
            return;
        }
        why_add(pod, WHY_NORMAL, why_pod_reference(pod),
                "volume %.*s is not deferred (DeferFSMount): %.*s",
                SLICE_ARG(mounts->volumes[i].name), SLICE_ARG(reason));
        why_help(pod, "the node mounts it; docs/deferfsmount.md says what each rule asks for");
    }
}
