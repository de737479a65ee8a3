/* Workloads whose pods share a claim, at a rollout or always. */
#include <stdio.h>

#include "extender/commands/audit/audit_checks.h"

enum { ROLLOUT_BYTES = 128 };

/* A workload, and a claim that its template names. */
struct template_claim {
    const struct workload *workload;
    enum kind kind;    /* of the workload */
    struct slice name; /* of the claim */
    struct claim_record *claim;
    struct audit_place place; /* where the template names it */
    const char *one_pod;      /* audit_one_pod_reason */
    enum level level;         /* of findings about it */
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
           audit_names_host(spec->placing->selector);
}

/* Whether a volume of the template keeps them there. */
static bool volumes_pin(struct audit_check *check, const struct pod_record *pod)
{
    for (uint32_t i = 0; i < pod->spec.use_count; i++) {
        const struct claim_record *claim = audit_claim_of(check, &pod->record, &pod->spec.uses[i]);
        if (claim != NULL && audit_is_on_one_host(check, claim))
            return true;
    }
    return false;
}

/* Whether the claim's volume keeps pods of that template to one node: NO also if something else
 * does. */
static enum attachment attachment_of(struct audit_check *check, struct claim_record *claim,
                                     const struct pod_record *pod)
{
    return !audit_is_for_one_node(check, claim) || is_pinned(&pod->spec) || volumes_pin(check, pod)
               ? ATTACHMENT_NO
               : audit_attachment(check, claim);
}

static enum level level_of(enum attachment attachment)
{
    return attachment == ATTACHMENT_YES ? LEVEL_WARNING : LEVEL_NOTE;
}

static const char *condition_of(enum attachment attachment)
{
    return attachment == ATTACHMENT_YES ? "" : ", if its volume is attached to one node";
}

static void check_rollout(struct audit_check *check, const struct template_claim *of)
{
    const struct workload *workload = of->workload;
    struct audit_report *report = check->report;
    struct rollout_spec rollout = workload->rollout;
    char numbers[ROLLOUT_BYTES];

    if (rollout.replicas != 0 && rollout.replicas < workload->least)
        rollout.replicas = workload->least; /* an autoscaler does not scale what has none */
    if (of->kind != KIND_DEPLOYMENT || !rollout_adds_first(&rollout))
        return;
    put_rollout(numbers, &rollout);
    if (of->one_pod != NULL) {
        audit_report_add(report, RULE_POD_CLAIM_ROLLOUT, of->level, of->place,
                         "a rollout never ends: the new pod has to be Ready before the old one is "
                         "removed (%s), and waits for its claim %.*s (%s)",
                         numbers, SLICE_ARG(of->name), of->one_pod);
        return;
    }
    enum attachment attachment = attachment_of(check, of->claim, &workload->pod);
    if (attachment == ATTACHMENT_NO)
        return;
    bool is_added = audit_report_add(
        report, RULE_NODE_CLAIM_ROLLOUT, level_of(attachment), of->place,
        "a rollout does not end if the new pod is on another node: it has to be Ready before the "
        "old one is removed (%s), and waits for the volume of claim %.*s (ReadWriteOnce)%s",
        numbers, SLICE_ARG(of->name),
        attachment == ATTACHMENT_YES ? "" : ", if that is attached to one node");
    check->unknown_attachment += is_added && attachment == ATTACHMENT_UNKNOWN;
}

/* ---- many pods ---- */

static bool is_job(const struct workload *workload)
{
    return workload->pod.record.kind == KIND_JOB || workload->pod.record.kind == KIND_CRON_JOB;
}

/* How many nodes the DaemonSet's selector allows; 2 if that is not known. */
static size_t daemon_nodes(const struct inventory *inventory, const struct pod_spec *spec)
{
    size_t count = 0;

    if (spec->node.len != 0 || audit_names_host(spec->placing->selector) || spec->requires_nodes)
        return 1;
    if (!inventory_is_complete(inventory, KIND_NODE))
        return 2;
    for (const struct record *at = inventory->first[KIND_NODE]; at != NULL; at = at->next)
        count += audit_selects(spec->placing->selector, ((const struct node_record *)at)->labels);
    return count;
}

/* Whether it has several pods at the same time, which may be on several nodes. */
static bool has_many(const struct audit_check *check, const struct template_claim *of)
{
    return of->kind == KIND_DAEMON_SET ? daemon_nodes(check->inventory, &of->workload->pod.spec) > 1
                                       : of->workload->rollout.replicas > 1;
}

static void check_count(struct audit_check *check, const struct template_claim *of)
{
    const struct workload *workload = of->workload;

    if (!has_many(check, of))
        return;
    if (of->kind == KIND_DAEMON_SET)
        audit_report_add(check->report, RULE_POD_CLAIM_REPLICAS, of->level, of->place,
                         "a DaemonSet has a pod on each node, and only one of them gets claim %.*s "
                         "(%s)",
                         SLICE_ARG(of->name), of->one_pod);
    else
        audit_report_add(check->report, RULE_POD_CLAIM_REPLICAS,
                         workload->is_finite ? LEVEL_WARNING : of->level, of->place,
                         "%s is %lld, and only one of the pods gets claim %.*s (%s)%s",
                         is_job(workload) ? "parallelism" : "replicas",
                         (long long)workload->rollout.replicas, SLICE_ARG(of->name), of->one_pod,
                         workload->is_finite ? ", so they run one after another" : "");
}

static void check_overlap(struct audit_check *check, const struct template_claim *of)
{
    if (of->kind == KIND_CRON_JOB && !of->workload->forbids_overlap && !of->workload->is_suspended)
        audit_report_add(check->report, RULE_CRON_JOB_OVERLAP, LEVEL_WARNING, of->place,
                         "concurrencyPolicy is Allow: a Job waits for claim %.*s "
                         "(%s) while the one before it runs",
                         SLICE_ARG(of->name), of->one_pod);
}

/* A DaemonSet that starts the new pod of a node before it removes the old one. */
static void check_daemon_rollout(struct audit_check *check, const struct template_claim *of)
{
    const struct workload *workload = of->workload;
    const struct rollout_spec *rollout = &workload->rollout;

    if (of->kind != KIND_DAEMON_SET || rollout->surge.value == 0 ||
        (rollout->surge.unit != AMOUNT_PODS && rollout->surge.unit != AMOUNT_PERCENT) ||
        slice_equal(rollout->strategy, SLICE("OnDelete")))
        return;
    audit_report_add(
        check->report, RULE_POD_CLAIM_ROLLOUT, of->level, of->place,
        "a rollout never ends: the new pod has to be Ready before the old one is removed "
        "(maxSurge %lld%s), and waits for its claim %.*s (%s)",
        (long long)rollout->surge.value, rollout->surge.unit == AMOUNT_PERCENT ? " %" : "",
        SLICE_ARG(of->name), of->one_pod);
}

/* ---- many workloads ---- */

/* Whether both are one object, which two files of the input have. */
static bool is_same(const struct record *a, const struct record *b)
{
    return a->kind == b->kind && slice_equal(a->ns, b->ns) && slice_equal(a->name, b->name);
}

/* Whether the claim's name is a variable, and the other workload is of another file, where it may
 * have another value. */
static bool is_other_text(const struct template_claim *of, const struct workload *other)
{
    const char *path = of->workload->pod.record.spot.path, *others = other->pod.record.spot.path;

    return audit_is_variable(of->name) &&
           (path == NULL || others == NULL || strcmp(path, others) != 0);
}

/* Whether pods of both are on one node: it is the same one by its name, or one of them follows
 * others, as it has to. */
static bool share_node(const struct pod_spec *a, const struct pod_spec *b)
{
    if (a->requires_pods || b->requires_pods || (a->requires_host && b->requires_host))
        return true;
    return (a->node.len != 0 && slice_equal(a->node, b->node)) ||
           (audit_names_host(a->placing->selector) &&
            slice_equal(a->placing->selector, b->placing->selector));
}

/* Pods of both, which one node at a time has room for. */
static void check_shared(struct audit_check *check, const struct template_claim *of,
                         const struct workload *first, struct audit_place place)
{
    enum attachment attachment = audit_is_for_one_node(check, of->claim)
                                     ? audit_attachment(check, of->claim)
                                     : ATTACHMENT_NO;

    if (attachment == ATTACHMENT_NO || audit_is_on_one_host(check, of->claim) ||
        share_node(&of->workload->pod.spec, &first->pod.spec))
        return;
    bool is_added = audit_report_add(
        check->report, RULE_NODE_CLAIM_NODES, LEVEL_NOTE, place,
        "%s %.*s also names claim %.*s (ReadWriteOnce): pods of both have to be on one node%s",
        kind_text((enum kind)first->pod.record.kind), SLICE_ARG(first->pod.record.name),
        SLICE_ARG(of->name), condition_of(attachment));
    check->unknown_attachment += is_added && attachment == ATTACHMENT_UNKNOWN;
}

static bool has_pods(const struct workload *workload)
{
    return workload->rollout.replicas != 0 && !workload->is_suspended;
}

/* Of those that name a claim, the first one by kind and name is kept in it: whatever the order of
 * the files. */
static void keep_first(struct audit_check *check, const struct workload *workload)
{
    const struct record *record = &workload->pod.record;

    for (uint32_t i = 0; has_pods(workload) && i < workload->pod.spec.use_count; i++) {
        struct claim_record *claim = audit_claim_of(check, record, &workload->pod.spec.uses[i]);
        if (claim == NULL)
            continue;
        const struct workload *first = claim->first_template;
        if (first == NULL || (first->pod.record.kind == record->kind &&
                              slice_compare(record->name, first->pod.record.name) < 0))
            claim->first_template = workload;
    }
}

/* Reports that the claim's first workload names it too. */
static void check_others(struct audit_check *check, const struct template_claim *of)
{
    const struct workload *workload = of->workload;
    const struct workload *first = of->claim->first_template;

    if (!has_pods(workload) || is_same(&first->pod.record, &workload->pod.record))
        return;
    if (is_other_text(of, first)) {
        audit_note_unknown(check, "name", &of->claim->record);
        return;
    }
    bool ends = is_job(first) && is_job(workload);
    struct audit_place place = of->place;
    const char *kind = kind_text((enum kind)first->pod.record.kind);
    struct slice name = first->pod.record.name;
    place.subject = arena_printf(&check->report->arena, "%.*s, %s %.*s", SLICE_ARG(of->name), kind,
                                 SLICE_ARG(name));
    check->report->has_failed |= place.subject.ptr == NULL;
    if (of->one_pod == NULL) {
        check_shared(check, of, first, place);
        return;
    }
    audit_report_add(check->report, RULE_POD_CLAIM_REPLICAS, ends ? LEVEL_WARNING : of->level,
                     place, "%s %.*s also names claim %.*s (%s), and only one pod gets it%s", kind,
                     SLICE_ARG(name), SLICE_ARG(of->name), of->one_pod,
                     ends ? ", so their pods run one after another" : "");
}

/* Several pods with a claim whose volume one node has. */
static void check_nodes(struct audit_check *check, const struct template_claim *of)
{
    enum attachment attachment =
        has_many(check, of) ? attachment_of(check, of->claim, &of->workload->pod) : ATTACHMENT_NO;

    if (attachment == ATTACHMENT_NO)
        return;
    bool is_added = audit_report_add(
        check->report, RULE_NODE_CLAIM_NODES, level_of(attachment), of->place,
        "its pods may be on several nodes, and only one node gets claim %.*s (ReadWriteOnce)%s",
        SLICE_ARG(of->name), condition_of(attachment));
    check->unknown_attachment += is_added && attachment == ATTACHMENT_UNKNOWN;
}

static void check_claim(struct audit_check *check, const struct template_claim *of)
{
    check_rollout(check, of);
    check_others(check, of);
    if (of->one_pod == NULL) {
        check_nodes(check, of);
        return;
    }
    check_daemon_rollout(check, of);
    check_count(check, of);
    check_overlap(check, of);
}

/* Whether the claim is TEMPLATE-SET-ORDINAL of that StatefulSet. */
static bool makes(const struct workload *set, struct slice claim)
{
    struct slice name = set->pod.record.name;

    while (claim.len != 0 && claim.ptr[claim.len - 1] != '-')
        claim.len--;
    if (claim.len < name.len + 2)
        return false;
    claim.len--;
    size_t template_len = claim.len - name.len;
    return slice_ends_with(claim, name) && template_len > 1 && claim.ptr[template_len - 1] == '-' &&
           words_have(set->claim_templates, (struct slice){claim.ptr, template_len - 1});
}

static bool is_made(const struct inventory *inventory, struct slice ns, struct slice claim)
{
    for (const struct record *at = inventory->first[KIND_STATEFUL_SET]; at != NULL; at = at->next)
        if (slice_equal(at->ns, ns) && makes((const struct workload *)at, claim))
            return true;
    return false;
}

/* A claim that the input lacks, if the volume is one. */
static void note_unknown(struct audit_check *check, const struct record *record,
                         const struct volume_use *use)
{
    if (use->is_inline || use->name.len == 0 ||
        inventory_find(check->inventory, KIND_CLAIM, record->ns, use->name) != NULL)
        return;
    bool is_of_set = is_made(check->inventory, record->ns, use->name);
    audit_note(check, is_of_set ? &check->made : &check->unknown,
               audit_name(check->report, record->ns, use->name));
}

static void check_template(struct audit_check *check, const struct workload *workload)
{
    const struct pod_spec *spec = &workload->pod.spec;
    const struct record *record = &workload->pod.record;

    for (uint32_t i = 0; i < spec->use_count; i++) {
        const struct volume_use *use = &spec->uses[i];
        struct template_claim of = {
            .workload = workload,
            .kind = (enum kind)record->kind,
            .name = use->name,
            .claim = audit_claim_of(check, record, use),
            .place = audit_place(record, use->line, use->column, use->name),
            .level = LEVEL_ERROR,
        };
        if (of.claim == NULL) {
            note_unknown(check, record, use);
            continue;
        }
        of.one_pod = audit_one_pod_reason(check, spec, of.claim, &of.level);
        if (workload->unknown_field != NULL)
            audit_note_unknown(check, workload->unknown_field, record);
        check_claim(check, &of);
    }
    audit_check_placement(check, &workload->pod, true);
}

/* ---- autoscalers ---- */

/* Of a claim whose volume one node has; a target that has several pods is reported itself. */
static void check_scaled(struct audit_check *check, const struct workload *target,
                         struct claim_record *claim, struct audit_place place)
{
    enum attachment attachment = attachment_of(check, claim, &target->pod);

    if (attachment == ATTACHMENT_NO)
        return;
    bool is_added = audit_report_add(
        check->report, RULE_NODE_CLAIM_NODES, level_of(attachment), place,
        "pods of %s %.*s may be on several nodes, and only one node gets claim %.*s "
        "(ReadWriteOnce)%s",
        kind_text((enum kind)target->pod.record.kind), SLICE_ARG(target->pod.record.name),
        SLICE_ARG(claim->record.name), condition_of(attachment));
    check->unknown_attachment += is_added && attachment == ATTACHMENT_UNKNOWN;
}

static void check_autoscaler(struct audit_check *check, const struct workload *autoscaler)
{
    const struct workload *target =
        inventory_find(check->inventory, autoscaler->pod.owner_kind, autoscaler->pod.record.ns,
                       autoscaler->pod.owner);

    if (target == NULL || autoscaler->rollout.replicas < 2 ||
        target->pod.record.kind > KIND_REPLICA_SET || target->rollout.replicas == 0)
        return;
    for (uint32_t i = 0; i < target->pod.spec.use_count; i++) {
        const struct volume_use *use = &target->pod.spec.uses[i];
        struct claim_record *claim = audit_claim_of(check, &target->pod.record, use);
        enum level level = LEVEL_ERROR;
        const char *reason =
            claim == NULL ? NULL : audit_one_pod_reason(check, &target->pod.spec, claim, &level);
        const struct audit_place place = audit_place(
            &autoscaler->pod.record, autoscaler->target_line, autoscaler->target_column, use->name);
        if (reason == NULL && claim != NULL && target->rollout.replicas < 2)
            check_scaled(check, target, claim, place);
        if (reason != NULL)
            audit_report_add(check->report, RULE_POD_CLAIM_REPLICAS, level, place,
                             "maxReplicas is %lld, and only one of the pods of %s %.*s gets claim "
                             "%.*s (%s)",
                             (long long)autoscaler->rollout.replicas,
                             kind_text((enum kind)target->pod.record.kind),
                             SLICE_ARG(autoscaler->pod.owner), SLICE_ARG(use->name), reason);
    }
}

static void for_each(struct audit_check *check, enum kind kind,
                     void (*act)(struct audit_check *, const struct workload *))
{
    const struct inventory *inventory = check->inventory;

    for (const struct record *at = inventory->first[kind]; at != NULL; at = at->next) {
        const struct workload *workload = (const struct workload *)at;
        if (kind == KIND_AUTOSCALER ||
            (!workload->pod.is_finished && !audit_is_covered(inventory, &workload->pod)))
            act(check, workload);
    }
}

void audit_check_workloads(struct audit_check *check)
{
    for (int kind = KIND_DEPLOYMENT; kind < KIND_AUTOSCALER; kind++)
        for_each(check, (enum kind)kind, keep_first);
    for (int kind = KIND_DEPLOYMENT; kind < KIND_AUTOSCALER; kind++)
        for_each(check, (enum kind)kind, check_template);
    for_each(check, KIND_AUTOSCALER, check_autoscaler);
}
