/* Drivers of inline volumes, and drivers that nodes lack. */
#include "extender/commands/audit/audit_checks.h"

enum { NODES_NAMED_MAX = 3 };

/* How many of the nodes that a selector allows have a driver. */
struct node_count {
    struct table_record table; /* of driver and selector */
    struct slice driver, selector;
    size_t allowed, lacking;
    struct slice named[NODES_NAMED_MAX]; /* the first by name of those that lack it */
};

struct drivers {
    struct audit_check *check;
    struct pool pool;
    struct table counts; /* struct node_count: most templates have the same selector */
};

/* ---- inline volumes ---- */

static void check_inline(struct audit_check *check, const struct pod_record *pod,
                         const struct volume_use *use)
{
    struct driver_record *driver =
        inventory_find(check->inventory, KIND_CSI_DRIVER, SLICE(""), use->name);
    struct slice modes = driver == NULL ? SLICE("") : driver->modes;
    struct audit_place place = audit_place(&pod->record, use->line, use->column, use->name);

    check->has_inline = true;
    if (driver == NULL) {
        if (inventory_is_complete(check->inventory, KIND_CSI_DRIVER))
            audit_report_add(check->report, RULE_NO_CSI_DRIVER, LEVEL_ERROR, place,
                             "there is no CSIDriver object of driver %.*s, so the kubelet refuses "
                             "its inline volume",
                             SLICE_ARG(use->name));
    } else if (audit_refuses_inline(check, &pod->record, driver)) {
        audit_report_add(check->report, RULE_NOT_EPHEMERAL, LEVEL_ERROR, place,
                         "CSI driver %.*s does not support inline volumes (it supports %.*s)",
                         SLICE_ARG(use->name),
                         SLICE_ARG(modes.len == 0 ? SLICE("Persistent") : modes));
    }
}

/* ---- nodes ---- */

static bool node_has(const struct cluster *cluster, struct slice node, struct slice driver)
{
    const struct csi_node *found = cluster_find_csi_node(cluster, node);

    return found != NULL && words_have(name_slice(found->drivers), driver);
}

/* The input's order must not show. */
static void add_lacking(struct node_count *count, struct slice name)
{
    size_t at = count->lacking < NODES_NAMED_MAX ? count->lacking : NODES_NAMED_MAX;

    for (; at > 0 && slice_compare(count->named[at - 1], name) > 0; at--)
        if (at < NODES_NAMED_MAX)
            count->named[at] = count->named[at - 1];
    if (at < NODES_NAMED_MAX)
        count->named[at] = name;
    count->lacking++;
}

static struct slice name_nodes(struct audit_report *report, const struct node_count *count)
{
    struct slice text = SLICE("");

    for (size_t i = 0; i < count->lacking && i < NODES_NAMED_MAX; i++)
        audit_list(report, &text, count->named[i]);
    return text;
}

static bool is_count_of(const void *record, const void *key)
{
    const struct node_count *count = record, *wanted = key;

    return slice_equal(count->driver, wanted->driver) &&
           slice_equal(count->selector, wanted->selector);
}

/* The count of that driver and that selector, which may have been made before. NULL: no memory. */
static const struct node_count *count_nodes(struct drivers *drivers, struct slice driver,
                                            struct slice selector)
{
    const struct inventory *inventory = drivers->check->inventory;
    struct audit_report *report = drivers->check->report;
    struct node_count wanted = {.driver = driver, .selector = selector};

    wanted.table.hash = table_hash(selector, table_hash(driver, 1));
    struct node_count *count =
        table_find(&drivers->counts, wanted.table.hash, is_count_of, &wanted);
    if (count != NULL)
        return count;
    count = table_make(&drivers->counts, wanted.table.hash, sizeof *count);
    if (count == NULL) {
        report->has_failed = true;
        return NULL;
    }
    *count = wanted;
    for (const struct record *at = inventory->first[KIND_NODE]; at != NULL; at = at->next) {
        const struct node_record *node = (const struct node_record *)at;
        if (node->is_avoided || !audit_selects(selector, node->labels) ||
            inventory_find(inventory, KIND_NODE, SLICE(""), at->name) != at) /* a second one */
            continue;
        count->allowed++;
        if (!node_has(inventory->cluster, at->name, driver))
            add_lacking(count, at->name);
    }
    return count;
}

/* The driver on the nodes that the selector allows. */
static void check_nodes(struct drivers *drivers, const struct pod_record *pod,
                        const struct volume_use *use, struct slice driver)
{
    const struct inventory *inventory = drivers->check->inventory;
    const struct node_count *count;

    if (pod->spec.requires_nodes || !inventory_is_complete(inventory, KIND_NODE))
        return;
    count = count_nodes(drivers, driver, pod->spec.placing->selector);
    if (count == NULL || count->lacking == 0)
        return;
    struct slice names = name_nodes(drivers->check->report, count);
    audit_report_add(drivers->check->report, RULE_DRIVER_NOT_ON_NODE, LEVEL_WARNING,
                     audit_place(&pod->record, use->line, use->column, driver),
                     "CSI driver %.*s is not registered on %zu of the %zu nodes that the "
                     "nodeSelector allows: %.*s%s",
                     SLICE_ARG(driver), count->lacking, count->allowed, SLICE_ARG(names),
                     count->lacking > NODES_NAMED_MAX ? ", ..." : "");
}

static void check_node(struct audit_check *check, const struct pod_record *pod,
                       const struct volume_use *use, struct slice driver)
{
    struct slice node = pod->spec.node;

    if (node_has(check->cluster, node, driver))
        return;
    bool has_csi_node = cluster_find_csi_node(check->cluster, node) != NULL;
    audit_report_add(check->report, RULE_DRIVER_NOT_ON_NODE, LEVEL_WARNING,
                     audit_place(&pod->record, use->line, use->column, driver),
                     "CSI driver %.*s is not registered on node %.*s%s", SLICE_ARG(driver),
                     SLICE_ARG(node), has_csi_node ? "" : ", which has no CSINode object");
}

/* Whether the volume of the claim is not in the input, though it may exist. */
static bool lacks_volume(struct audit_check *check, const struct claim_record *claim)
{
    return claim_has_volume(claim->stored) && !check->inventory->is_listed[KIND_VOLUME] &&
           audit_volume_of(check, claim) == NULL;
}

/* The driver that mounts the volume; empty: there is none, or it is not known, or the volume has
 * nodes of its own. */
static struct slice driver_of(struct audit_check *check, const struct pod_record *pod,
                              const struct volume_use *use)
{
    const struct claim_record *claim;

    if (use->is_inline)
        return use->name;
    claim = audit_claim_of(check, &pod->record, use);
    if (claim == NULL)
        return SLICE("");
    const struct resource *volume = audit_volume_of(check, claim);
    check->unknown_volumes += lacks_volume(check, claim);
    if (volume == NULL ||
        (pod->spec.node.len == 0 && (resource_number(volume) & VOLUME_REQUIRES_NODES) != 0))
        return SLICE("");
    return volume_driver(volume);
}

/* is_covered: what is wrong with its template is reported of its controller. */
static void check_pod(struct drivers *drivers, const struct pod_record *pod, bool is_covered)
{
    struct audit_check *check = drivers->check;

    for (uint32_t i = 0; i < pod->spec.use_count; i++) {
        const struct volume_use *use = &pod->spec.uses[i];
        struct slice driver = driver_of(check, pod, use);
        if (use->is_inline && !is_covered)
            check_inline(check, pod, use);
        check->has_driver |= driver.len != 0;
        if (driver.len == 0 || !inventory_is_complete(check->inventory, KIND_CSI_NODE))
            continue;
        if (pod->spec.node.len != 0)
            check_node(check, pod, use, driver);
        else if (!is_covered)
            check_nodes(drivers, pod, use, driver);
    }
}

/* Pods, or workloads. */
static void check_kind(struct drivers *drivers, enum kind kind)
{
    const struct inventory *inventory = drivers->check->inventory;

    for (const struct record *at = inventory->first[kind]; at != NULL; at = at->next) {
        const struct pod_record *pod = (const struct pod_record *)at;
        bool is_covered = pod->spec.use_count != 0 && audit_is_covered(inventory, pod);
        if (!pod->is_finished && (kind == KIND_POD || !is_covered))
            check_pod(drivers, pod, is_covered);
    }
}

void audit_check_drivers(struct audit_check *check)
{
    struct drivers drivers = {.check = check};

    drivers.counts.pool = &drivers.pool;
    check_kind(&drivers, KIND_POD);
    for (int kind = KIND_DEPLOYMENT; kind < KIND_AUTOSCALER; kind++)
        check_kind(&drivers, (enum kind)kind);
    table_free_records(&drivers.counts);
    pool_dispose(&drivers.pool);
}
