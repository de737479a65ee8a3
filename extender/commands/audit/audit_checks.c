#include "extender/commands/audit/audit_checks.h"

#include "cache/objects/label_selector.h"

/* ---- controllers ---- */

/* Whether controllers make such ends of names: the hash of a template, or minutes. */
static bool is_made(struct slice end, enum kind kind)
{
    const char *characters = kind == KIND_JOB ? "0123456789" : "bcdfghjklmnpqrstvwxz2456789";

    for (size_t i = 0; i < end.len; i++)
        if (end.ptr[i] == '\0' || strchr(characters, end.ptr[i]) == NULL)
            return false;
    return end.len != 0;
}

/* The Deployment of a ReplicaSet, and the CronJob of a Job, by its name: NAME-HASH, NAME-TIME. */
static bool has_maker(const struct inventory *inventory, struct slice ns, enum kind kind,
                      struct slice name)
{
    enum kind maker = kind == KIND_REPLICA_SET ? KIND_DEPLOYMENT
                      : kind == KIND_JOB       ? KIND_CRON_JOB
                                               : KIND_OTHER;
    size_t whole = name.len;

    while (name.len != 0 && name.ptr[name.len - 1] != '-')
        name.len--;
    return name.len > 1 && is_made((struct slice){name.ptr + name.len, whole - name.len}, kind) &&
           inventory_find(inventory, maker, ns, (struct slice){name.ptr, name.len - 1}) != NULL;
}

bool audit_is_covered(const struct inventory *inventory, const struct pod_record *pod)
{
    struct slice ns = pod->record.ns;

    return pod->owner.len != 0 &&
           (inventory_find(inventory, pod->owner_kind, ns, pod->owner) != NULL ||
            has_maker(inventory, ns, pod->owner_kind, pod->owner));
}

/* ---- node selectors ---- */

bool audit_selects(struct slice selector, struct slice labels)
{
    (void)slice_cut(&selector, '\n'); /* the empty line */
    while (selector.len != 0) {
        struct slice wanted = slice_cut(&selector, '\n'), key = slice_cut(&wanted, ' '), value;
        if (!labels_find(labels, key, &value) || !slice_equal(value, wanted))
            return false;
    }
    return true;
}

bool audit_names_host(struct slice selector)
{
    return slice_has(selector, SLICE("\nkubernetes.io/hostname "));
}

/* ---- claims ---- */

static bool may_defer(const struct config *config, const struct pod_spec *spec,
                      const struct claim_record *claim)
{
    struct slice storage_class = name_slice(claim_storage_class(claim->stored));

    if (config == NULL || config->defer_fs_mount.apply == DEFER_DISABLED ||
        spec->placing->runtime_class.len == 0 || storage_class.len == 0)
        return false;
    for (size_t i = 0; i < config->defer_fs_mount.entry_count; i++) {
        const struct defer_entry *entry = &config->defer_fs_mount.entries[i];
        if (entry->non_exclusive_claims == NON_EXCLUSIVE_EXCLUSIVE &&
            slice_equal(entry->storage_class, storage_class) &&
            slice_equal(entry->runtime_class, spec->placing->runtime_class))
            return true;
    }
    return false;
}

const char *audit_one_pod_reason(const struct audit_check *check, const struct pod_spec *spec,
                                 const struct claim_record *claim, enum level *level)
{
    if (audit_is_for_one_pod(claim))
        return "ReadWriteOncePod";
    if (!may_defer(check->options->config, spec, claim))
        return NULL;
    *level = LEVEL_WARNING;
    return "its mount is deferred, nonExclusiveClaims: Exclusive";
}

/* ---- pods ---- */

static bool is_guarded(const struct audit_check *check, struct slice scheduler)
{
    const struct audit_options *options = check->options;

    if (scheduler.len == 0 || slice_equal(scheduler, SLICE("claimguard-scheduler")))
        return true;
    if (options->config != NULL && options->config->admission.listen.len != 0)
        return true;
    return words_have(options->schedulers, scheduler) || check->inventory->binds_are_admitted;
}

void audit_check_placement(struct audit_check *check, const struct pod_record *pod,
                           bool node_is_chosen)
{
    const struct record *record = &pod->record;
    const struct pod_spec *spec = &pod->spec;
    const struct claim_record *claim = NULL;

    for (uint32_t i = 0; i < spec->use_count && claim == NULL; i++) {
        claim = audit_claim_of(check, record, &spec->uses[i]);
        if (claim != NULL && !audit_is_for_one_pod(claim))
            claim = NULL;
    }
    if (claim == NULL)
        return;
    struct slice name = claim->record.name;
    if (node_is_chosen && spec->node.len != 0)
        audit_report_add(
            check->report, RULE_PAST_SCHEDULER, LEVEL_WARNING,
            audit_place(record, spec->placing->node_line, spec->placing->node_column, name),
            "spec.nodeName is %.*s, so no scheduler checks claim %.*s (ReadWriteOncePod)",
            SLICE_ARG(spec->node), SLICE_ARG(name));
    else if (!is_guarded(check, spec->placing->scheduler))
        audit_report_add(
            check->report, RULE_PAST_SCHEDULER, LEVEL_WARNING,
            audit_place(record, spec->placing->scheduler_line, spec->placing->scheduler_column,
                        name),
            "scheduler %.*s is not known to call claimguard for claim %.*s (ReadWriteOncePod); if "
            "it does, say so with --schedulers",
            SLICE_ARG(spec->placing->scheduler), SLICE_ARG(name));
}

/* Whether a policy in force judges one of the pod's volumes. */
static bool is_checked(const struct audit_check *check, const struct pod_spec *spec)
{
    const struct config *config = check->options->config;
    bool checks_inline = config == NULL || config->csi_volumes.mode != MODE_OFF;

    for (uint32_t i = 0; i < spec->use_count; i++)
        if (!spec->uses[i].is_inline || checks_inline)
            return true;
    return false;
}

static void check_mark(struct audit_check *check, const struct pod_record *pod)
{
    if (!check->inventory->uses_marks || pod->spec.is_marked || !is_checked(check, &pod->spec))
        return;
    audit_report_add(check->report, RULE_NO_MARK, LEVEL_WARNING,
                     audit_place(&pod->record, 0, 0, SLICE("")),
                     "no container has the resource claimguard.io/claims, which other pods have, "
                     "so the pod %s without claimguard",
                     pod->spec.node.len != 0 ? "was bound" : "will be bound");
}

/* Whether what is wrong with the pod's claims is reported of its controller: that of a StatefulSet
 * names no claims of volumeClaimTemplates, which the pod has. */
static bool is_reported(const struct inventory *inventory, const struct pod_record *pod)
{
    const struct workload *set = NULL;

    if (pod->owner_kind == KIND_STATEFUL_SET)
        set = inventory_find(inventory, KIND_STATEFUL_SET, pod->record.ns, pod->owner);
    if (set != NULL && pod->spec.use_count > set->pod.spec.use_count)
        return false;
    return audit_is_covered(inventory, pod);
}

void audit_check_pods(struct audit_check *check)
{
    const struct inventory *inventory = check->inventory;

    for (const struct record *at = inventory->first[KIND_POD]; at != NULL; at = at->next) {
        const struct pod_record *pod = (const struct pod_record *)at;
        if (pod->is_finished)
            continue;
        if (!pod->is_manifest)
            check_mark(check, pod);
        if (!is_reported(inventory, pod))
            audit_check_placement(check, pod, pod->is_manifest);
    }
}

/* ---- what is not known ---- */

static bool has_workloads(const struct inventory *inventory)
{
    for (int kind = KIND_DEPLOYMENT; kind <= KIND_AUTOSCALER; kind++)
        if (inventory->is_listed[kind] || inventory->counts[kind] != 0)
            return true;
    return false;
}

static void put_cluster_gaps(const struct audit_check *check)
{
    const struct inventory *inventory = check->inventory;
    struct gaps *gaps = &check->report->findings.gaps;

    if (!has_workloads(inventory))
        gaps_add(gaps, GAP_RULES(RULE_POD_CLAIM_ROLLOUT, RULE_ROLLOUTS_LAST),
                 "the input has no Deployments and no other workloads, so their "
                 "rollouts were not checked (%s to %s): add deployments, "
                 "statefulsets, daemonsets, jobs, cronjobs, hpa",
                 audit_rules[RULE_POD_CLAIM_ROLLOUT].code, audit_rules[RULE_ROLLOUTS_LAST].code);
    if (check->has_inline && !inventory_is_complete(inventory, KIND_CSI_DRIVER))
        gaps_add(gaps, GAP_RULES(RULE_NO_CSI_DRIVER, RULE_NOT_EPHEMERAL),
                 "the input has no CSIDrivers, so it is not known whether inline "
                 "CSI volumes are supported (CG201, CG202): add csidrivers");
    if (check->has_driver && !inventory_is_complete(inventory, KIND_CSI_NODE))
        gaps_add(gaps, GAP_RULE(RULE_DRIVER_NOT_ON_NODE),
                 "the input has no CSINodes, so it is not known which nodes have "
                 "which CSI driver (CG203): add csinodes");
    if (check->unknown_volumes != 0)
        gaps_add(gaps, GAP_RULE(RULE_DRIVER_NOT_ON_NODE),
                 "the input lacks the PersistentVolumes of claims that pods or templates "
                 "name (%zu), so their CSI drivers are not known (CG203): add "
                 "persistentvolumes",
                 check->unknown_volumes);
    if (check->has_deleting)
        gaps_add(gaps, GAP_RULE(RULE_CLASS_DELETING),
                 "the input has no PersistentVolumes, so it is not known whether one "
                 "uses a VolumeAttributesClass that is being deleted (CG305): add "
                 "persistentvolumes");
    if (check->has_class && !inventory_is_complete(inventory, KIND_VOLUME_ATTRIBUTES_CLASS))
        gaps_add(gaps, GAP_RULES(RULE_CLASS_MISSING, RULE_CLASS_OTHER_DRIVER),
                 "the input has no VolumeAttributesClasses, and claims name some "
                 "(CG301, CG302): add volumeattributesclasses");
}

void audit_note(struct audit_check *check, struct audit_some *some, struct slice text)
{
    struct audit_report *report = check->report;

    report->has_failed |= text.ptr == NULL;
    if (text.ptr == NULL || names_find(&check->noted, text) != NULL)
        return;
    (void)names_take(&check->noted, text, &report->has_failed);
    if (some->count++ < CLAIMS_NAMED_MAX)
        audit_list(report, &some->shown, text);
}

void audit_note_unknown(struct audit_check *check, const char *field, const struct record *record)
{
    struct audit_report *report = check->report;

    audit_note(check, &check->fields,
               arena_printf(&report->arena, "%s of %s %.*s", field,
                            kind_text((enum kind)record->kind),
                            SLICE_ARG(audit_name(report, record->ns, record->name))));
}

/* What is said before and behind the names. */
static void put_some(const struct audit_check *check, const struct audit_some *some,
                     const char *before, const char *behind)
{
    if (some->count != 0)
        gaps_add(&check->report->findings.gaps, 0, "%s (%zu: %.*s%s)%s", before, some->count,
                 SLICE_ARG(some->shown), some->count > CLAIMS_NAMED_MAX ? ", ..." : "", behind);
}

/* What manifests alone do not show. */
static const uint64_t rules_of_clusters =
    GAP_RULE(RULE_SHARED_POD_CLAIM) | GAP_RULE(RULE_NODE_CLAIM_NODES) |
    GAP_RULE(RULE_NO_CSI_DRIVER) | GAP_RULE(RULE_DRIVER_NOT_ON_NODE) |
    GAP_RULE(RULE_CLASS_MISSING) | GAP_RULE(RULE_NO_MARK);

static void put_gaps(const struct audit_check *check)
{
    struct gaps *gaps = &check->report->findings.gaps;

    if (check->inventory->is_cluster)
        put_cluster_gaps(check);
    else
        gaps_add(gaps, rules_of_clusters,
                 "the input is not a cluster: what only pods, nodes or the absence of an "
                 "object show was not checked (CG101, CG104 and CG105 of pods, CG201, CG203, "
                 "CG301, CG402)");
    put_some(check, &check->differing,
             "the input has different objects of one name, and none is nearest to the manifest "
             "that names it",
             ", so it is not known which one counts: audit their folders one by one");
    put_some(check, &check->unknown,
             "the input lacks the access modes of claims that templates name",
             ": add persistentvolumeclaims");
    put_some(check, &check->made, "templates name claims that StatefulSets of the input make",
             ", and these were not checked");
    put_some(check, &check->fields, "what these fields say is not known",
             ": if they are variables, audit what is applied");
    if (check->inventory->too_many_volumes != 0)
        gaps_add(gaps, 0,
                 "pods and templates with over %d volumes: %zu; their claims were not "
                 "checked",
                 POD_CLAIMS_MAX, check->inventory->too_many_volumes);
    if (check->unknown_attachment != 0)
        gaps_add(gaps, 0,
                 "whether a volume is attached to one node is not known for %zu of the "
                 "findings: add persistentvolumes, storageclasses, csidrivers",
                 check->unknown_attachment);
}

void audit_check(struct inventory *inventory, const struct audit_options *options,
                 struct audit_report *report)
{
    struct audit_check check = {.inventory = inventory,
                                .cluster = inventory->cluster,
                                .options = options,
                                .report = report,
                                .noted = {.table = {.pool = &inventory->pool}}};

    audit_report_ignores(report, inventory);
    audit_check_claims(&check);
    audit_check_workloads(&check);
    audit_check_drivers(&check);
    audit_check_pods(&check);
    put_gaps(&check);
    names_dispose(&check.noted);
    findings_sort(&report->findings);
}
