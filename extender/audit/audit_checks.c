#include "cache/objects/objects.h"
#include "extender/audit/audit_checks_internal.h"

/* ---- controllers ---- */

/* Whether controllers make such ends of names: the hash of a template, or minutes. */
static bool is_made(struct slice end, enum record_kind kind)
{
    const char *characters = kind == RECORD_JOB ? "0123456789" : "bcdfghjklmnpqrstvwxz2456789";

    for (size_t i = 0; i < end.len; i++)
        if (end.ptr[i] == '\0' || strchr(characters, end.ptr[i]) == NULL)
            return false;
    return end.len != 0;
}

/* The Deployment of a ReplicaSet, and the CronJob of a Job, by its name: NAME-HASH, NAME-TIME. */
static bool has_maker(const struct inventory *inventory, struct slice ns, enum record_kind kind,
                      struct slice name)
{
    enum record_kind maker = kind == RECORD_REPLICA_SET ? RECORD_DEPLOYMENT
                             : kind == RECORD_JOB       ? RECORD_CRON_JOB
                                                        : RECORD_KIND_COUNT;

    size_t whole = name.len;

    while (name.len != 0 && name.ptr[name.len - 1] != '-')
        name.len--;
    return name.len > 1 && is_made((struct slice){name.ptr + name.len, whole - name.len}, kind) &&
           inventory_find(inventory, maker, ns, (struct slice){name.ptr, name.len - 1}) != NULL;
}

bool audit_is_covered(const struct inventory *inventory, struct slice ns,
                      enum record_kind owner_kind, struct slice owner)
{
    enum record_kind kind = owner.len == 0 ? RECORD_KIND_COUNT : owner_kind;

    return kind != RECORD_KIND_COUNT && (inventory_find(inventory, kind, ns, owner) != NULL ||
                                         has_maker(inventory, ns, kind, owner));
}

/* ---- node selectors ---- */

/* Both begin with an empty line; a line is "key value". */
static bool next_line(struct slice *lines, struct slice *line)
{
    if (lines->len == 0)
        return false;
    struct slice rest = {lines->ptr + 1, lines->len - 1}; /* after the line break */
    const char *end = rest.len == 0 ? NULL : memchr(rest.ptr, '\n', rest.len);
    *line = (struct slice){rest.ptr, end == NULL ? rest.len : (size_t)(end - rest.ptr)};
    *lines = (struct slice){line->ptr + line->len, rest.len - line->len};
    return line->len != 0;
}

bool audit_selects(struct slice selector, struct slice labels)
{
    struct slice wanted, line;

    while (next_line(&selector, &wanted)) {
        struct slice rest = labels;
        bool is_found = false;
        while (!is_found && next_line(&rest, &line))
            is_found = slice_equal(line, wanted);
        if (!is_found)
            return false;
    }
    return true;
}

bool audit_names_host(struct slice selector)
{
    return slice_has(selector, SLICE("\nkubernetes.io/hostname "));
}

/* ---- claims for one pod ---- */

static bool may_defer(const struct config *config, const struct pod_spec *spec,
                      const struct claim_record *claim)
{
    if (config == NULL || config->defer_fs_mount.apply == DEFER_DISABLED ||
        spec->runtime_class.len == 0 || claim->storage_class.len == 0)
        return false;
    for (size_t i = 0; i < config->defer_fs_mount.entry_count; i++) {
        const struct defer_entry *entry = &config->defer_fs_mount.entries[i];
        if (entry->non_exclusive_claims == NON_EXCLUSIVE_EXCLUSIVE &&
            slice_equal(entry->storage_class, claim->storage_class) &&
            slice_equal(entry->runtime_class, spec->runtime_class))
            return true;
    }
    return false;
}

const char *audit_one_pod_reason(const struct audit_check *check, const struct pod_spec *spec,
                                 const struct claim_record *claim, enum level *level)
{
    if (claim_is_for_one_pod(claim))
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

void audit_check_placement(struct audit_check *check, const struct record *record,
                           const struct pod_spec *spec, bool node_is_chosen)
{
    const struct claim_record *claim = NULL;

    for (uint32_t i = 0; i < spec->use_count && claim == NULL; i++) {
        claim = claim_of_use(check->inventory, record->ns, &spec->uses[i]);
        if (claim != NULL && !claim_is_for_one_pod(claim))
            claim = NULL;
    }
    if (claim == NULL)
        return;
    struct slice name = claim->record.name;
    if (node_is_chosen && spec->node.len != 0)
        audit_report_add(
            check->report, RULE_PAST_SCHEDULER, LEVEL_WARNING,
            audit_place(record, spec->node_line, spec->node_column, name),
            "spec.nodeName is %.*s, so no scheduler checks claim %.*s (ReadWriteOncePod)",
            SLICE_ARG(spec->node), SLICE_ARG(name));
    else if (!is_guarded(check, spec->scheduler))
        audit_report_add(
            check->report, RULE_PAST_SCHEDULER, LEVEL_WARNING,
            audit_place(record, spec->scheduler_line, spec->scheduler_column, name),
            "scheduler %.*s is not known to call claimguard for claim %.*s (ReadWriteOncePod); if "
            "it does, say so with --schedulers",
            SLICE_ARG(spec->scheduler), SLICE_ARG(name));
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

    if (pod->owner_kind == RECORD_STATEFUL_SET)
        set = (const struct workload *)inventory_find(inventory, RECORD_STATEFUL_SET,
                                                      pod->record.ns, pod->owner);
    if (set != NULL && pod->spec.use_count > set->spec.use_count)
        return false;
    return audit_is_covered(inventory, pod->record.ns, pod->owner_kind, pod->owner);
}

void audit_check_pods(struct audit_check *check)
{
    const struct inventory *inventory = check->inventory;

    for (const struct record *at = inventory->first[RECORD_POD]; at != NULL; at = at->next) {
        const struct pod_record *pod = (const struct pod_record *)at;
        if (pod->is_finished)
            continue;
        if (!pod->is_manifest)
            check_mark(check, pod);
        if (!is_reported(inventory, pod))
            audit_check_placement(check, at, &pod->spec, pod->is_manifest);
    }
}

/* ---- what is not known ---- */

static bool has_workloads(const struct inventory *inventory)
{
    for (int kind = RECORD_DEPLOYMENT; kind <= RECORD_AUTOSCALER; kind++)
        if (inventory->is_listed[kind] || inventory->counts[kind] != 0)
            return true;
    return false;
}

static void put_cluster_gaps(const struct audit_check *check)
{
    const struct inventory *inventory = check->inventory;
    struct audit_report *report = check->report;

    if (!has_workloads(inventory))
        audit_report_gap(report, "the input has no Deployments and no other workloads, so their "
                                 "rollouts were not checked (CG102 to CG106): add deployments, "
                                 "statefulsets, daemonsets, jobs, cronjobs, hpa");
    if (check->has_inline && !inventory_is_complete(inventory, RECORD_CSI_DRIVER))
        audit_report_gap(report, "the input has no CSIDrivers, so it is not known whether inline "
                                 "CSI volumes are supported (CG201, CG202): add csidrivers");
    if (check->has_driver && !inventory_is_complete(inventory, RECORD_CSI_NODE))
        audit_report_gap(report, "the input has no CSINodes, so it is not known which nodes have "
                                 "which CSI driver (CG203): add csinodes");
    if (check->unknown_volumes != 0)
        audit_report_gap(report,
                         "the input lacks the PersistentVolumes of claims that pods or templates "
                         "name (%zu), so their CSI drivers are not known (CG203): add "
                         "persistentvolumes",
                         check->unknown_volumes);
    if (check->has_deleting)
        audit_report_gap(report,
                         "the input has no PersistentVolumes, so it is not known whether one "
                         "uses a VolumeAttributesClass that is being deleted (CG305): add "
                         "persistentvolumes");
    if (check->has_class && !inventory_is_complete(inventory, RECORD_ATTRIBUTES_CLASS))
        audit_report_gap(report, "the input has no VolumeAttributesClasses, and claims name some "
                                 "(CG301, CG302): add volumeattributesclasses");
}

static void put_gaps(const struct audit_check *check)
{
    struct audit_report *report = check->report;

    if (check->inventory->is_cluster)
        put_cluster_gaps(check);
    else
        audit_report_gap(
            report,
            "the input is not a cluster: what only pods, nodes or the absence of an "
            "object show was not checked (CG101, CG105 of pods, CG201, CG203, CG301, CG402)");
    if (check->unknown_claims != 0)
        audit_report_gap(report,
                         "the input lacks claims that templates name (%zu: %.*s%s), so their "
                         "access modes are not known: add persistentvolumeclaims",
                         check->unknown_claims, SLICE_ARG(check->unknown_names),
                         check->unknown_claims > CLAIMS_NAMED_MAX ? ", ..." : "");
    if (check->inventory->too_many_volumes != 0)
        audit_report_gap(report,
                         "pods and templates with over %d volumes: %zu; their claims were not "
                         "checked",
                         POD_CLAIMS_MAX, check->inventory->too_many_volumes);
    if (check->unknown_attachment != 0)
        audit_report_gap(report,
                         "whether a volume is attached to one node is not known for %zu of the "
                         "findings: add persistentvolumes, storageclasses, csidrivers",
                         check->unknown_attachment);
}

void audit_check(const struct inventory *inventory, const struct audit_options *options,
                 struct audit_report *report)
{
    struct audit_check check = {.inventory = inventory, .options = options, .report = report};

    audit_report_ignores(report, inventory);
    audit_check_claims(&check);
    audit_check_workloads(&check);
    audit_check_drivers(&check);
    audit_check_classes(&check);
    audit_check_pods(&check);
    put_gaps(&check);
    audit_report_sort(report);
}
