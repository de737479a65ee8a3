/* Workloads whose pods share a claim, at a rollout or always. */
#include <stdio.h>

#include "extender/audit/audit_checks_internal.h"

enum { ROLLOUT_BYTES = 128 };

/* A workload, and a claim that its template names. */
struct template_claim {
    const struct workload *workload;
    const struct volume_use *use;
    const struct claim_record *claim;
    const char *one_pod; /* audit_one_pod_reason */
    enum level level;    /* of findings about it */
};

/* ---- rollouts ---- */

/* "maxSurge 1, maxUnavailable 0 of 1 replica" */
static void put_rollout(char text[static ROLLOUT_BYTES], const struct rollout_spec *spec)
{
    struct rollout rollout = rollout_of(spec);

    (void)snprintf(text, ROLLOUT_BYTES, "maxSurge %lld, maxUnavailable 0 of %lld replica%s",
                   (long long)rollout.surge, (long long)spec->replicas,
                   spec->replicas == 1 ? "" : "s");
}

/* Whether all pods of the template run on one node, or near to one another. */
static bool is_pinned(const struct pod_spec *spec)
{
    return spec->node.len != 0 || spec->requires_host || spec->requires_pods ||
           audit_names_host(spec->selector);
}

static void check_rollout(struct audit_check *check, const struct template_claim *of)
{
    const struct workload *workload = of->workload;
    struct audit_report *report = check->report;
    struct rollout_spec rollout = workload->rollout;
    char numbers[ROLLOUT_BYTES];
    struct audit_place place =
        audit_place(&workload->record, of->use->line, of->use->column, of->use->name);

    if (rollout.replicas != 0 && rollout.replicas < workload->least)
        rollout.replicas = workload->least; /* an autoscaler does not scale what has none */
    if (workload->record.kind != RECORD_DEPLOYMENT || !rollout_adds_first(&rollout))
        return;
    put_rollout(numbers, &rollout);
    if (of->one_pod != NULL) {
        audit_report_add(report, RULE_POD_CLAIM_ROLLOUT, of->level, place,
                         "a rollout never ends: the new pod has to be Ready before the old one is "
                         "removed (%s), and waits for its claim %.*s (%s)",
                         numbers, SLICE_ARG(of->use->name), of->one_pod);
        return;
    }
    enum attachment attachment = claim_attachment(check->inventory, of->claim);
    if (!claim_is_for_one_node(check->inventory, of->claim) || attachment == ATTACHMENT_NO ||
        is_pinned(&workload->spec))
        return;
    bool is_added = audit_report_add(
        report, RULE_NODE_CLAIM_ROLLOUT, attachment == ATTACHMENT_YES ? LEVEL_WARNING : LEVEL_NOTE,
        place,
        "a rollout does not end if the new pod is on another node: it has to be Ready before the "
        "old one is removed (%s), and waits for the volume of claim %.*s (ReadWriteOnce)%s",
        numbers, SLICE_ARG(of->use->name),
        attachment == ATTACHMENT_YES ? "" : ", if that is attached to one node");
    check->unknown_attachment += is_added && attachment == ATTACHMENT_UNKNOWN;
}

/* ---- many pods ---- */

/* How many nodes the DaemonSet's selector allows; 2 if that is not known. */
static size_t daemon_nodes(const struct inventory *inventory, const struct pod_spec *spec)
{
    size_t count = 0;

    if (spec->node.len != 0 || audit_names_host(spec->selector) || spec->requires_nodes)
        return 1;
    if (!inventory_is_complete(inventory, RECORD_NODE))
        return 2;
    for (const struct record *at = inventory->first[RECORD_NODE]; at != NULL; at = at->next)
        count += audit_selects(spec->selector, ((const struct plain_record *)at)->text);
    return count;
}

static void check_count(struct audit_check *check, const struct template_claim *of)
{
    static const char *const fields[RECORD_KIND_COUNT] = {
        [RECORD_DEPLOYMENT] = "replicas",  [RECORD_STATEFUL_SET] = "replicas",
        [RECORD_REPLICA_SET] = "replicas", [RECORD_JOB] = "parallelism",
        [RECORD_CRON_JOB] = "parallelism",
    };
    const struct workload *workload = of->workload;
    struct slice name = of->use->name;
    struct audit_place place = audit_place(&workload->record, of->use->line, of->use->column, name);

    if (workload->record.kind == RECORD_DAEMON_SET) {
        if (daemon_nodes(check->inventory, &workload->spec) > 1)
            audit_report_add(check->report, RULE_POD_CLAIM_REPLICAS, of->level, place,
                             "a DaemonSet has a pod on each node, and only one of them gets claim "
                             "%.*s (%s)",
                             SLICE_ARG(name), of->one_pod);
    } else if (workload->rollout.replicas > 1) {
        audit_report_add(
            check->report, RULE_POD_CLAIM_REPLICAS, workload->is_finite ? LEVEL_WARNING : of->level,
            place, "%s is %lld, and only one of the pods gets claim %.*s (%s)%s",
            fields[workload->record.kind], (long long)workload->rollout.replicas, SLICE_ARG(name),
            of->one_pod, workload->is_finite ? ", so they run one after another" : "");
    }
}

static void check_overlap(struct audit_check *check, const struct template_claim *of)
{
    if (of->workload->record.kind == RECORD_CRON_JOB && !of->workload->forbids_overlap &&
        !of->workload->is_suspended)
        audit_report_add(
            check->report, RULE_CRON_JOB_OVERLAP, LEVEL_WARNING,
            audit_place(&of->workload->record, of->use->line, of->use->column, of->use->name),
            "concurrencyPolicy is Allow: a Job waits for claim %.*s "
            "(%s) while the one before it runs",
            SLICE_ARG(of->use->name), of->one_pod);
}

/* A DaemonSet that starts the new pod of a node before it removes the old one. */
static void check_daemon_rollout(struct audit_check *check, const struct template_claim *of)
{
    const struct workload *workload = of->workload;
    const struct rollout_spec *rollout = &workload->rollout;

    if (workload->record.kind != RECORD_DAEMON_SET || rollout->surge.value == 0 ||
        (rollout->surge.unit != AMOUNT_PODS && rollout->surge.unit != AMOUNT_PERCENT) ||
        slice_equal(rollout->strategy, SLICE("OnDelete")))
        return;
    audit_report_add(
        check->report, RULE_POD_CLAIM_ROLLOUT, of->level,
        audit_place(&workload->record, of->use->line, of->use->column, of->use->name),
        "a rollout never ends: the new pod has to be Ready before the old one is removed "
        "(maxSurge %lld%s), and waits for its claim %.*s (%s)",
        (long long)rollout->surge.value, rollout->surge.unit == AMOUNT_PERCENT ? " %" : "",
        SLICE_ARG(of->use->name), of->one_pod);
}

/* ---- many workloads ---- */

static bool is_job(const struct workload *workload)
{
    return workload->record.kind == RECORD_JOB || workload->record.kind == RECORD_CRON_JOB;
}

/* Whether both are one object, which two files of the input have. */
static bool is_same(const struct record *a, const struct record *b)
{
    return a->kind == b->kind && slice_equal(a->ns, b->ns) && slice_equal(a->name, b->name);
}

/* Reports that another workload names the claim; the first one is kept in it. */
static void check_others(struct audit_check *check, const struct template_claim *of)
{
    const struct workload *workload = of->workload;
    struct claim_record *claim = (struct claim_record *)inventory_find(
        check->inventory, RECORD_CLAIM, workload->record.ns, of->use->name);
    const struct workload *first = claim->first_template;

    if (workload->rollout.replicas == 0 || workload->is_suspended)
        return;
    if (first == NULL) {
        claim->first_template = workload;
        return;
    }
    if (is_same(&first->record, &workload->record))
        return;
    bool ends = is_job(first) && is_job(workload);
    const char *kind = record_kind_text((enum record_kind)first->record.kind);
    struct slice subject =
        arena_printf(&check->report->arena, "%.*s, %s %.*s", SLICE_ARG(of->use->name), kind,
                     SLICE_ARG(first->record.name));
    check->report->has_failed |= subject.ptr == NULL;
    audit_report_add(check->report, RULE_POD_CLAIM_REPLICAS, ends ? LEVEL_WARNING : of->level,
                     audit_place(&workload->record, of->use->line, of->use->column, subject),
                     "%s %.*s also names claim %.*s (%s), and only one pod gets it%s",
                     record_kind_text((enum record_kind)first->record.kind),
                     SLICE_ARG(first->record.name), SLICE_ARG(of->use->name), of->one_pod,
                     ends ? ", so their pods run one after another" : "");
}

/* Several pods with a claim whose volume one node has. */
static void check_nodes(struct audit_check *check, const struct template_claim *of)
{
    const struct workload *workload = of->workload;
    const struct inventory *inventory = check->inventory;
    bool has_many = workload->record.kind == RECORD_DAEMON_SET
                        ? daemon_nodes(inventory, &workload->spec) > 1
                        : workload->rollout.replicas > 1;

    if (!has_many || is_pinned(&workload->spec) || !claim_is_for_one_node(inventory, of->claim) ||
        claim_attachment(inventory, of->claim) != ATTACHMENT_YES)
        return;
    audit_report_add(
        check->report, RULE_NODE_CLAIM_NODES, LEVEL_WARNING,
        audit_place(&workload->record, of->use->line, of->use->column, of->use->name),
        "its pods may be on several nodes, and only one node gets claim %.*s (ReadWriteOnce)",
        SLICE_ARG(of->use->name));
}

static void check_claim(struct audit_check *check, const struct template_claim *of)
{
    check_rollout(check, of);
    if (of->one_pod == NULL) {
        check_nodes(check, of);
        return;
    }
    check_others(check, of);
    check_daemon_rollout(check, of);
    check_count(check, of);
    check_overlap(check, of);
}

/* A claim that the input lacks, if the volume is one. */
static void note_unknown(struct audit_check *check, const struct record *record,
                         const struct volume_use *use)
{
    struct audit_report *report = check->report;

    if (use->is_inline || use->name.len == 0 || check->unknown_claims++ >= CLAIMS_NAMED_MAX)
        return;
    struct slice name = audit_name(report, record->ns, use->name);
    check->unknown_names =
        arena_printf(&report->arena, "%.*s%s%.*s", SLICE_ARG(check->unknown_names),
                     check->unknown_names.len == 0 ? "" : ", ", SLICE_ARG(name));
    report->has_failed |= check->unknown_names.ptr == NULL;
}

static void check_template(struct audit_check *check, const struct workload *workload)
{
    const struct pod_spec *spec = &workload->spec;

    for (uint32_t i = 0; i < spec->use_count; i++) {
        const struct volume_use *use = &spec->uses[i];
        struct template_claim of = {workload, use,
                                    claim_of_use(check->inventory, workload->record.ns, use), NULL,
                                    LEVEL_ERROR};
        if (of.claim != NULL) {
            of.one_pod = audit_one_pod_reason(check, spec, of.claim, &of.level);
            check_claim(check, &of);
        } else {
            note_unknown(check, &workload->record, use);
        }
    }
    audit_check_placement(check, &workload->record, spec, true);
}

/* ---- autoscalers ---- */

static void check_autoscaler(struct audit_check *check, const struct workload *autoscaler)
{
    const struct workload *target = (const struct workload *)inventory_find(
        check->inventory, autoscaler->owner_kind, autoscaler->record.ns, autoscaler->owner);

    if (target == NULL || autoscaler->rollout.replicas < 2 ||
        target->record.kind > RECORD_REPLICA_SET || target->rollout.replicas == 0)
        return;
    for (uint32_t i = 0; i < target->spec.use_count; i++) {
        const struct volume_use *use = &target->spec.uses[i];
        const struct claim_record *claim = claim_of_use(check->inventory, target->record.ns, use);
        enum level level = LEVEL_ERROR;
        const char *reason =
            claim == NULL ? NULL : audit_one_pod_reason(check, &target->spec, claim, &level);
        if (reason != NULL)
            audit_report_add(check->report, RULE_POD_CLAIM_REPLICAS, level,
                             audit_place(&autoscaler->record, autoscaler->target_line,
                                         autoscaler->target_column, use->name),
                             "maxReplicas is %lld, and only one of the pods of %s %.*s gets claim "
                             "%.*s (%s)",
                             (long long)autoscaler->rollout.replicas,
                             record_kind_text((enum record_kind)target->record.kind),
                             SLICE_ARG(autoscaler->owner), SLICE_ARG(use->name), reason);
    }
}

void audit_check_workloads(struct audit_check *check)
{
    const struct inventory *inventory = check->inventory;

    for (int kind = RECORD_DEPLOYMENT; kind <= RECORD_AUTOSCALER; kind++)
        for (const struct record *at = inventory->first[kind]; at != NULL; at = at->next) {
            const struct workload *workload = (const struct workload *)at;
            if (kind == RECORD_AUTOSCALER)
                check_autoscaler(check, workload);
            else if (!workload->is_finished &&
                     !audit_is_covered(inventory, at->ns, workload->owner_kind, workload->owner))
                check_template(check, workload);
        }
}
