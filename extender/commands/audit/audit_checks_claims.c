/* Claims: the pods that hold them, in a cluster; and their VolumeAttributesClasses. */
#include <stdlib.h>

#include "extender/commands/audit/audit_checks.h"

enum { HOLDERS_NAMED_MAX = 5 };

/* ---- holders ---- */

/* The pods that hold a claim, each once, by node and name. */
struct holders {
    const struct pod **pods;
    size_t count;
    size_t nodes;   /* different ones */
    size_t staying; /* nodes with a pod that is not being deleted */
};

static int compare_pods(const void *a, const void *b)
{
    const struct pod *const *x = a, *const *y = b;
    int order = slice_compare(pod_node(*x), pod_node(*y));

    return order != 0 ? order : slice_compare(pod_name(*x), pod_name(*y));
}

static void count_nodes(struct holders *holders)
{
    bool stays = false;

    for (size_t i = 0; i < holders->count; i++) {
        const struct pod *pod = holders->pods[i];
        if (i == 0 || !slice_equal(pod_node(pod), pod_node(holders->pods[i - 1]))) {
            holders->nodes++;
            stays = false;
        }
        if (!pod->is_terminating && !stays) {
            stays = true;
            holders->staying++;
        }
    }
}

/* False: no memory. Ownership: free(out->pods). */
static bool find_holders(const struct claim *claim, struct holders *out)
{
    *out = (struct holders){.pods = calloc(claim->refs, sizeof *out->pods)};
    if (out->pods == NULL)
        return false;
    for (const struct use *use = use_at(claim->uses); use != NULL; use = use_at(use->next))
        if (pod_holds(use_pod(use)) && !use->is_ephemeral && out->count < claim->refs)
            out->pods[out->count++] = use_pod(use);
    if (out->count != 0)
        qsort((void *)out->pods, out->count, sizeof *out->pods, compare_pods);
    count_nodes(out);
    return true;
}

/* "a on node-1, b on node-2 (terminating), and 3 more" */
static struct slice name_holders(struct audit_report *report, const struct holders *holders)
{
    struct slice text = SLICE("");
    size_t named = holders->count < HOLDERS_NAMED_MAX ? holders->count : HOLDERS_NAMED_MAX;

    for (size_t i = 0; i < named; i++) {
        const struct pod *pod = holders->pods[i];
        audit_list(report, &text,
                   arena_printf(&report->arena, "%.*s on %.*s%s", SLICE_ARG(pod_name(pod)),
                                SLICE_ARG(pod_node(pod)),
                                pod->is_terminating ? " (terminating)" : ""));
    }
    if (holders->count > named)
        audit_list(report, &text,
                   arena_printf(&report->arena, "and %zu more", holders->count - named));
    return text;
}

static void report_pod_claim(struct audit_check *check, const struct claim_record *claim,
                             const struct holders *holders)
{
    struct slice names;

    if (holders->count < 2)
        return;
    names = name_holders(check->report, holders);
    audit_report_add(check->report, RULE_SHARED_POD_CLAIM, LEVEL_ERROR,
                     audit_place(&claim->record, 0, 0, SLICE("")),
                     "the claim is ReadWriteOncePod, and %zu pods hold it: %.*s", holders->count,
                     SLICE_ARG(names));
}

static void report_node_claim(struct audit_check *check, const struct claim_record *claim,
                              const struct holders *holders)
{
    static const char *const ends[] = {
        [ATTACHMENT_UNKNOWN] = "; whether its volume is attached is not known",
        [ATTACHMENT_NO] = "; its volume is not attached, so all of them may write to it",
        [ATTACHMENT_YES] = ", and its volume is attached to one node only",
    };
    if (holders->nodes < 2)
        return;
    enum attachment attachment = audit_attachment(check, claim);
    bool is_error = attachment == ATTACHMENT_YES && holders->staying > 1;
    struct slice names = name_holders(check->report, holders);
    bool is_added =
        audit_report_add(check->report, RULE_NODE_CLAIM_NODES, is_error ? LEVEL_ERROR : LEVEL_NOTE,
                         audit_place(&claim->record, 0, 0, SLICE("")),
                         "the claim is ReadWriteOnce, and pods on %zu nodes use it: %.*s%s",
                         holders->nodes, SLICE_ARG(names), ends[attachment]);
    check->unknown_attachment += is_added && attachment == ATTACHMENT_UNKNOWN;
}

/* Whether another file has the claim with other access modes: it is not known which the pods have.
 */
static bool differs(const struct record *claim)
{
    for (const struct record *at = claim->same; at != NULL; at = at->same)
        if (((const struct claim_record *)at)->modes != ((const struct claim_record *)claim)->modes)
            return true;
    return false;
}

static void check_holders(struct audit_check *check, const struct claim_record *claim)
{
    const struct record *record = &claim->record;
    struct holders holders;

    if (claim->stored->refs < 2 || differs(record) ||
        inventory_find(check->inventory, KIND_CLAIM, record->ns, record->name) != record)
        return; /* or another file has the claim, too */
    if (!find_holders(claim->stored, &holders)) {
        check->report->has_failed = true;
        return;
    }
    if (audit_is_for_one_pod(claim))
        report_pod_claim(check, claim, &holders);
    else if (audit_is_for_one_node(check, claim))
        report_node_claim(check, claim, &holders);
    free((void *)holders.pods);
}

/* ---- VolumeAttributesClasses ---- */

/* A claim that names a class. */
struct classed {
    const struct claim_record *record;
    const struct claim *claim;
    struct slice class, current, target, modify_status;
    struct audit_place place;
    bool is_bound;
};

static struct classed classed_of(const struct claim_record *record)
{
    const struct claim *claim = record->stored;
    const struct modification *modification = claim_modification(claim);
    struct slice class = name_slice(claim_volume_attributes_class(claim));
    struct classed classed = {
        .record = record,
        .claim = claim,
        .class = class,
        .current = class,
        .place = audit_place(&record->record, record->class_line, record->class_column, class),
        .is_bound = claim_phase(claim) == CLAIM_BOUND};

    if (modification != NULL) {
        classed.current = name_slice(modification->current);
        classed.target = name_slice(modification->target);
        classed.modify_status = name_slice(modification->status);
    }
    return classed;
}

static bool has_class(const struct classed *classed)
{
    return slice_equal(classed->class, classed->current);
}

static void check_missing(struct audit_check *check, const struct classed *classed)
{
    if (has_class(classed) ||
        !inventory_is_complete(check->inventory, KIND_VOLUME_ATTRIBUTES_CLASS) ||
        (!classed->is_bound && volume_offers_fit(check->cluster, classed->claim)))
        return;
    audit_report_add(check->report, RULE_CLASS_MISSING, LEVEL_ERROR, classed->place,
                     "VolumeAttributesClass %.*s does not exist, so %s", SLICE_ARG(classed->class),
                     classed->is_bound ? "the volume keeps its present class"
                                       : "no volume is provisioned");
}

static void check_driver(struct audit_check *check, const struct classed *classed,
                         const struct resource *class)
{
    struct slice driver = audit_driver_of(check, classed->record);
    struct slice wanted = resource_attribute(class, VOLUME_ATTRIBUTES_CLASS_DRIVER);

    if (driver.len == 0 || wanted.len == 0 || slice_equal(driver, wanted))
        return;
    audit_report_add(check->report, RULE_CLASS_OTHER_DRIVER, LEVEL_ERROR, classed->place,
                     "VolumeAttributesClass %.*s is for driver %.*s, and the claim's %s %.*s",
                     SLICE_ARG(classed->class), SLICE_ARG(wanted),
                     audit_volume_of(check, classed->record) != NULL ? "volume is of driver"
                                                                     : "provisioner is",
                     SLICE_ARG(driver));
}

static void check_status(struct audit_check *check, const struct classed *classed)
{
    struct slice current = classed->current.len == 0 ? SLICE("no class") : classed->current;

    if (slice_equal(classed->modify_status, SLICE("Infeasible")))
        audit_report_add(check->report, RULE_CLASS_INFEASIBLE, LEVEL_WARNING, classed->place,
                         "the driver has refused VolumeAttributesClass %.*s; the volume keeps %.*s",
                         SLICE_ARG(classed->target.len == 0 ? classed->class : classed->target),
                         SLICE_ARG(current));
    else if (classed->is_bound && classed->modify_status.len == 0 && !has_class(classed))
        audit_report_add(
            check->report, RULE_CLASS_NOT_APPLIED, LEVEL_WARNING, classed->place,
            "VolumeAttributesClass %.*s is not being applied: the volume has %.*s, and the status "
            "has no modification",
            SLICE_ARG(classed->class), SLICE_ARG(current));
}

static void check_class(struct audit_check *check, const struct claim_record *claim)
{
    struct classed classed = classed_of(claim);
    const struct resource *class;

    if (classed.class.len == 0)
        return;
    class = cluster_find_resource(check->cluster, KIND_VOLUME_ATTRIBUTES_CLASS, classed.class);
    check->has_class = true;
    if (class == NULL)
        check_missing(check, &classed);
    else
        check_driver(check, &classed, class);
    if (class != NULL || !inventory_is_complete(check->inventory, KIND_VOLUME_ATTRIBUTES_CLASS))
        check_status(check, &classed);
}

/* A class that is being deleted, and that nothing names. */
static void check_deleting(struct audit_check *check, const struct record *record)
{
    const struct inventory *inventory = check->inventory;
    const struct resource *class =
        cluster_find_resource(check->cluster, KIND_VOLUME_ATTRIBUTES_CLASS, record->name);

    if (class == NULL || (resource_number(class) & VOLUME_ATTRIBUTES_CLASS_IS_DELETING) == 0 ||
        names_find(&inventory->classes, record->name) != NULL ||
        !inventory_is_complete(inventory, KIND_CLAIM))
        return;
    if (!inventory_is_complete(inventory, KIND_VOLUME)) {
        check->has_deleting = true;
        return;
    }
    audit_report_add(check->report, RULE_CLASS_DELETING, LEVEL_NOTE,
                     audit_place(record, 0, 0, SLICE("")),
                     "it is being deleted, and no claim and no volume of the input names it");
}

/* ---- all of them ---- */

void audit_check_claims(struct audit_check *check)
{
    const struct inventory *inventory = check->inventory;

    for (const struct record *at = inventory->first[KIND_CLAIM]; at != NULL; at = at->next) {
        const struct claim_record *claim = (const struct claim_record *)at;
        if (claim->stored == NULL)
            continue;
        if ((claim->modes & ACCESS_OTHER) != 0)
            audit_note_unknown(check, "accessModes", at);
        check_holders(check, claim);
        check_class(check, claim);
    }
    for (const struct record *at = inventory->first[KIND_VOLUME_ATTRIBUTES_CLASS]; at != NULL;
         at = at->next)
        check_deleting(check, at);
}
