/* Drivers of inline volumes, and drivers that nodes lack. */
#include "cache/objects/objects.h"
#include "extender/audit/audit_checks_internal.h"

enum { NODES_NAMED_MAX = 3 };

/* How many of the nodes that a selector allows have a driver. */
struct node_count {
    struct table_record table; /* of driver and selector */
    struct slice driver, selector;
    size_t allowed, lacking;
    struct slice named; /* some of those that lack it */
};

struct drivers {
    struct audit_check *check;
    struct pool pool;
    struct table counts; /* struct node_count: most templates have the same selector */
};

/* What a pod or a template needs. */
struct user {
    const struct record *record;
    const struct pod_spec *spec;
    bool is_covered; /* a pod whose workload is in the input */
};

static struct plain_record *find_plain(const struct inventory *inventory, enum record_kind kind,
                                       struct slice name)
{
    return (struct plain_record *)inventory_find(inventory, kind, SLICE(""), name);
}

/* ---- inline volumes ---- */

static void check_inline(struct audit_check *check, const struct user *user,
                         const struct volume_use *use)
{
    const struct plain_record *driver = find_plain(check->inventory, RECORD_CSI_DRIVER, use->name);
    struct audit_place place = audit_place(user->record, use->line, use->column, use->name);

    check->has_inline = true;
    if (driver == NULL) {
        if (inventory_is_complete(check->inventory, RECORD_CSI_DRIVER))
            audit_report_add(check->report, RULE_NO_CSI_DRIVER, LEVEL_ERROR, place,
                             "there is no CSIDriver object of driver %.*s, so the kubelet refuses "
                             "its inline volume",
                             SLICE_ARG(use->name));
    } else if (!words_have(driver->text, SLICE("Ephemeral"))) {
        audit_report_add(check->report, RULE_NOT_EPHEMERAL, LEVEL_ERROR, place,
                         "CSI driver %.*s does not support inline volumes (it supports %.*s)",
                         SLICE_ARG(use->name),
                         SLICE_ARG(driver->text.len == 0 ? SLICE("Persistent") : driver->text));
    }
}

/* ---- nodes ---- */

static bool node_has(const struct inventory *inventory, struct slice node, struct slice driver)
{
    const struct plain_record *found = find_plain(inventory, RECORD_CSI_NODE, node);

    return found != NULL && words_have(found->text, driver);
}

static void name_node(struct audit_report *report, struct node_count *count, struct slice name)
{
    if (count->lacking > NODES_NAMED_MAX)
        return;
    count->named = arena_printf(&report->arena, "%.*s%s%.*s", SLICE_ARG(count->named),
                                count->lacking == 1 ? "" : ", ", SLICE_ARG(name));
    report->has_failed |= count->named.ptr == NULL;
}

static bool is_count_of(const struct table_record *record, const void *key)
{
    const struct node_count *count = (const struct node_count *)record, *wanted = key;

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
    struct node_count *count;

    wanted.table.hash = table_hash(selector, table_hash(driver, 1));
    count =
        (struct node_count *)table_find(&drivers->counts, wanted.table.hash, is_count_of, &wanted);
    if (count != NULL)
        return count;
    count = pool_alloc(&drivers->pool, sizeof *count);
    if (count != NULL)
        *count = wanted;
    if (count == NULL || !table_add(&drivers->counts, &count->table)) {
        pool_free(&drivers->pool, count);
        report->has_failed = true;
        return NULL;
    }
    for (const struct record *at = inventory->first[RECORD_NODE]; at != NULL; at = at->next) {
        const struct plain_record *node = (const struct plain_record *)at;
        if (node->is_avoided || !audit_selects(selector, node->text) ||
            inventory_find(inventory, RECORD_NODE, SLICE(""), at->name) != at) /* a second one */
            continue;
        count->allowed++;
        if (node_has(inventory, at->name, driver))
            continue;
        count->lacking++;
        name_node(drivers->check->report, count, at->name);
    }
    return count;
}

/* The driver on the nodes that the selector allows. */
static void check_nodes(struct drivers *drivers, const struct user *user,
                        const struct volume_use *use, struct slice driver)
{
    const struct inventory *inventory = drivers->check->inventory;
    const struct node_count *count;

    if (user->spec->requires_nodes || !inventory_is_complete(inventory, RECORD_NODE))
        return;
    count = count_nodes(drivers, driver, user->spec->selector);
    if (count == NULL || count->lacking == 0)
        return;
    audit_report_add(drivers->check->report, RULE_DRIVER_NOT_ON_NODE, LEVEL_WARNING,
                     audit_place(user->record, use->line, use->column, driver),
                     "CSI driver %.*s is not registered on %zu of the %zu nodes that the "
                     "nodeSelector allows: %.*s%s",
                     SLICE_ARG(driver), count->lacking, count->allowed, SLICE_ARG(count->named),
                     count->lacking > NODES_NAMED_MAX ? ", ..." : "");
}

static void check_node(struct drivers *drivers, const struct user *user,
                       const struct volume_use *use, struct slice driver)
{
    const struct inventory *inventory = drivers->check->inventory;
    struct slice node = user->spec->node;

    if (node_has(inventory, node, driver))
        return;
    bool has_csi_node = find_plain(inventory, RECORD_CSI_NODE, node) != NULL;
    audit_report_add(drivers->check->report, RULE_DRIVER_NOT_ON_NODE, LEVEL_WARNING,
                     audit_place(user->record, use->line, use->column, driver),
                     "CSI driver %.*s is not registered on node %.*s%s", SLICE_ARG(driver),
                     SLICE_ARG(node), has_csi_node ? "" : ", which has no CSINode object");
}

/* Whether the volume of the claim is not in the input, though it may exist. */
static bool lacks_volume(const struct inventory *inventory, const struct claim_record *claim)
{
    return claim != NULL && claim->volume.len != 0 && !inventory->is_listed[RECORD_VOLUME] &&
           inventory_find(inventory, RECORD_VOLUME, SLICE(""), claim->volume) == NULL;
}

/* The driver that mounts the volume; empty: there is none, or it is not known, or the volume has
 * nodes of its own. */
static struct slice driver_of(const struct drivers *drivers, const struct user *user,
                              const struct volume_use *use)
{
    const struct inventory *inventory = drivers->check->inventory;
    const struct claim_record *claim;
    const struct volume_record *volume;

    if (use->is_inline)
        return use->name;
    claim = claim_of_use(inventory, user->record->ns, use);
    volume = claim == NULL ? NULL : claim_volume(inventory, claim);
    drivers->check->unknown_volumes += lacks_volume(inventory, claim);
    if (volume == NULL || (volume->requires_nodes && user->spec->node.len == 0))
        return SLICE("");
    return volume->driver;
}

static void check_user(struct drivers *drivers, const struct user *user)
{
    struct audit_check *check = drivers->check;
    const struct inventory *inventory = check->inventory;

    for (uint32_t i = 0; i < user->spec->use_count; i++) {
        const struct volume_use *use = &user->spec->uses[i];
        struct slice driver = driver_of(drivers, user, use);
        if (use->is_inline && !user->is_covered)
            check_inline(check, user, use);
        check->has_driver |= driver.len != 0;
        if (driver.len == 0 || !inventory_is_complete(inventory, RECORD_CSI_NODE))
            continue;
        if (user->spec->node.len != 0)
            check_node(drivers, user, use, driver);
        else if (!user->is_covered)
            check_nodes(drivers, user, use, driver);
    }
}

void audit_check_drivers(struct audit_check *check)
{
    const struct inventory *inventory = check->inventory;
    struct drivers drivers = {.check = check};

    drivers.counts.pool = &drivers.pool;
    for (const struct record *at = inventory->first[RECORD_POD]; at != NULL; at = at->next) {
        const struct pod_record *pod = (const struct pod_record *)at;
        struct user user = {at, &pod->spec,
                            audit_is_covered(inventory, at->ns, pod->owner_kind, pod->owner)};
        if (!pod->is_finished)
            check_user(&drivers, &user);
    }
    for (int kind = RECORD_DEPLOYMENT; kind < RECORD_AUTOSCALER; kind++)
        for (const struct record *at = inventory->first[kind]; at != NULL; at = at->next) {
            const struct workload *workload = (const struct workload *)at;
            struct user user = {
                at, &workload->spec,
                workload->is_finished ||
                    audit_is_covered(inventory, at->ns, workload->owner_kind, workload->owner)};
            if (!user.is_covered)
                check_user(&drivers, &user);
        }
    table_free_records(&drivers.counts);
    pool_dispose(&drivers.pool);
}
