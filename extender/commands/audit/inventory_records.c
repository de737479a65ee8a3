/* The records of objects. */
#include "extender/commands/audit/inventory_internal.h"

/* ---- texts and places ---- */

/* The text as it is kept. */
static struct slice copy(struct taking *taking, struct slice text)
{
    return name_slice(names_take(&taking->inventory->texts, text, &taking->has_failed));
}

static const char *copy_string(struct taking *taking, struct slice text)
{
    struct slice kept = text.len == 0 ? text : arena_copy(&taking->inventory->arena, text);

    taking->has_failed |= text.len != 0 && kept.ptr == NULL;
    return text.len == 0 ? NULL : kept.ptr;
}

/* The path lives as long as the file is read. */
static const char *copy_path(struct taking *taking)
{
    struct inventory *inventory = taking->inventory;
    const char *path = taking->object->path;

    if (path == NULL)
        return NULL;
    if (inventory->last_path == NULL || strcmp(path, inventory->last_path) != 0)
        inventory->last_path = copy_string(taking, slice_of(path));
    return inventory->last_path;
}

static void put_place(const struct taking *taking, struct slice text, uint32_t *line,
                      uint32_t *column)
{
    struct place place = source_text_place(taking->object, text);

    if (text.len == 0)
        return;
    *line = (uint32_t)place.line;
    *column = (uint32_t)place.column;
}

/* ---- records ---- */

/* The texts of a workload's record. That of a pod has the first POD_TEXTS of them, and any other
 * record the first RECORD_TEXTS. */
enum { RECORD_TEXTS = 2, POD_TEXTS = 4, WORKLOAD_TEXTS = 6 };
static const size_t text_offsets[WORKLOAD_TEXTS] = {
    offsetof(struct workload, pod.record.ns),    offsetof(struct workload, pod.record.name),
    offsetof(struct workload, pod.spec.node),    offsetof(struct workload, pod.owner),
    offsetof(struct workload, rollout.strategy), offsetof(struct workload, claim_templates),
};

/* Keeps what was read as a record of `size` bytes, with so many texts. NULL: no memory. */
static void *new_record(struct taking *taking, size_t size, size_t texts)
{
    struct inventory *inventory = taking->inventory;
    struct record *record = pool_alloc(&inventory->pool, size);

    taking->has_failed |= record == NULL;
    if (record == NULL)
        return NULL;
    memcpy(record, &taking->reading, size);
    for (size_t i = 0; i < texts; i++) {
        struct slice *text = (struct slice *)(void *)((char *)record + text_offsets[i]);
        *text = copy(taking, *text);
    }
    record->kind = (uint8_t)taking->kind;
    record->ignore = copy_string(taking, taking->reading.ignore);
    record->spot = (struct spot){copy_path(taking), (uint32_t)taking->object->place.line,
                                 (uint32_t)taking->object->place.column};
    if (inventory->last[taking->kind] == NULL)
        inventory->first[taking->kind] = record;
    else
        inventory->last[taking->kind]->next = record;
    inventory->last[taking->kind] = record;
    return record;
}

/* ---- pods and workloads ---- */

/* Whether a StatefulSet's claim takes the place of the volume. */
static bool is_replaced(const struct reading *reading, const struct volume_reading *volume)
{
    const struct claim_template *templates = reading->claim_templates.items;

    for (size_t i = 0; i < reading->claim_templates.count; i++)
        if (slice_equal(templates[i].name, volume->name))
            return true;
    return false;
}

static bool has_use(const struct pod_spec *spec, const struct volume_use *use)
{
    for (uint32_t i = 0; i < spec->use_count; i++)
        if (spec->uses[i].is_inline == use->is_inline && slice_equal(spec->uses[i].name, use->name))
            return true;
    return false;
}

static size_t count_uses(const struct reading *reading)
{
    const struct volume_reading *volumes = reading->volumes.items;
    size_t count = 0;

    for (size_t i = 0; i < reading->volumes.count; i++)
        count += volumes[i].claim.len != 0 || volumes[i].driver.len != 0 || volumes[i].is_ephemeral;
    return count;
}

static void put_uses(struct taking *taking, size_t count)
{
    const struct reading *reading = &taking->reading;
    const struct volume_reading *volumes = reading->volumes.items;
    struct pod_spec *spec = &taking->reading.pod.spec;

    taking->inventory->too_many_volumes += count > POD_CLAIMS_MAX;
    if (count == 0 || count > POD_CLAIMS_MAX)
        return;
    spec->uses = arena_alloc(&taking->inventory->arena, count * sizeof *spec->uses);
    taking->has_failed |= spec->uses == NULL;
    for (size_t i = 0; i < reading->volumes.count && !taking->has_failed; i++) {
        const struct volume_reading *volume = &volumes[i];
        struct slice name = volume->claim.len != 0 ? volume->claim : volume->driver;
        struct volume_use use = {.name = name,
                                 .is_inline = volume->claim.len == 0 && name.len != 0};
        uint32_t line = 0, column = 0;
        if ((name.len == 0 && !volume->is_ephemeral) || is_replaced(reading, volume) ||
            has_use(spec, &use))
            continue;
        put_place(taking, name, &line, &column);
        use.name = copy(taking, name);
        use.line = line;
        use.column = column & INT32_MAX;
        spec->uses[spec->use_count++] = use;
    }
}

static void put_placing(struct taking *taking)
{
    static const struct placing nothing = {.node_line = 0};
    struct pod_record *pod = &taking->reading.pod;
    struct placing *placing = &taking->reading.placing;

    if (taking->kind != KIND_POD || pod->is_manifest)
        put_place(taking, pod->spec.node, &placing->node_line, &placing->node_column);
    put_place(taking, placing->scheduler, &placing->scheduler_line, &placing->scheduler_column);
    pod->spec.placing = &nothing;
    if (placing->scheduler.len + placing->runtime_class.len + placing->selector.len == 0 &&
        placing->node_line == 0)
        return;
    struct placing *kept = arena_alloc(&taking->inventory->arena, sizeof *kept);
    taking->has_failed |= kept == NULL;
    if (kept == NULL)
        return;
    *kept = *placing;
    kept->scheduler = copy(taking, kept->scheduler);
    kept->runtime_class = copy(taking, kept->runtime_class);
    kept->selector = copy(taking, kept->selector);
    pod->spec.placing = kept;
}

static void put_spec(struct taking *taking, size_t use_count)
{
    put_placing(taking);
    put_uses(taking, use_count);
}

/* Snapshots of different moments may have the same pod: the last one counts. */
static void replace_pod(struct taking *taking, struct pod_record *pod)
{
    struct pod_record *before = inventory_add_name(taking, &pod->record);

    if (before == NULL)
        return;
    before->is_finished = true;
    table_remove(&taking->inventory->table, &before->record.table);
    (void)inventory_add_name(taking, &pod->record);
}

static void take_pod(struct taking *taking)
{
    struct inventory *inventory = taking->inventory;
    size_t use_count = count_uses(&taking->reading);

    inventory->uses_marks |= taking->reading.pod.spec.is_marked;
    inventory->is_cluster |= taking->reading.phase.len != 0 && taking->reading.uid.len != 0;
    if (use_count == 0)
        return;
    put_spec(taking, use_count);
    struct pod_record *pod = new_record(taking, sizeof *pod, POD_TEXTS);
    if (pod != NULL && !pod->is_manifest)
        replace_pod(taking, pod);
}

/* The names of a StatefulSet's claim templates, joined by ','. */
static struct slice name_templates(struct taking *taking)
{
    const struct claim_template *templates = taking->reading.claim_templates.items;
    struct slice names = SLICE("");

    for (size_t i = 0; i < taking->reading.claim_templates.count; i++)
        names = arena_printf(&taking->inventory->scratch, "%.*s%s%.*s", SLICE_ARG(names),
                             i == 0 ? "" : ",", SLICE_ARG(templates[i].name));
    taking->has_failed |= names.ptr == NULL;
    return names.ptr == NULL ? SLICE("") : names;
}

static void take_workload(struct taking *taking)
{
    struct workload *workload = &taking->reading.workload;

    workload->claim_templates = name_templates(taking);
    put_spec(taking, count_uses(&taking->reading));
    if (taking->kind == KIND_AUTOSCALER)
        put_place(taking, workload->pod.owner, &workload->target_line, &workload->target_column);
    workload = new_record(taking, sizeof *workload, WORKLOAD_TEXTS);
    if (workload != NULL)
        (void)inventory_add_name(taking, &workload->pod.record);
}

/* ---- kinds that the cluster has ---- */

static void name_class(struct taking *taking, struct slice class)
{
    struct names *classes = &taking->inventory->classes;

    if (class.len != 0 && names_find(classes, class) == NULL)
        (void)names_take(classes, class, &taking->has_failed);
}

static void take_claim(struct taking *taking)
{
    const struct claim_object *object = &taking->reading.stored.claim;
    struct claim_record *claim = &taking->reading.claim;

    name_class(taking, object->volume_attributes_class);
    name_class(taking, object->current_class);
    name_class(taking, object->target_class);
    claim->modes = (uint8_t)object->access_modes;
    claim->names_class |= object->beta_class.ptr != NULL;
    put_place(taking, object->volume_attributes_class, &claim->class_line, &claim->class_column);
    if (claim->modes == 0) /* the API server takes none: it is an assertion of a test */
        return;
    claim = new_record(taking, sizeof *claim, RECORD_TEXTS);
    if (claim == NULL)
        return;
    if (inventory_add_name(taking, &claim->record) != NULL)
        taking->twin = claim->twin = ++taking->inventory->twins;
}

static void take_class(struct taking *taking)
{
    const struct resource_object *object = &taking->reading.stored.resource;
    struct class_record *class = &taking->reading.class;

    class->is_default = slice_equal(taking->reading.is_default, SLICE("true"));
    class = new_record(taking, sizeof *class, RECORD_TEXTS);
    if (class == NULL)
        return;
    class->provisioner = copy(taking, object->attributes[STORAGE_CLASS_PROVISIONER]);
    class->created = copy(taking, taking->reading.created);
    (void)inventory_add_name(taking, &class->record);
}

static void take_driver(struct taking *taking)
{
    const struct resource_object *object = &taking->reading.stored.resource;
    struct driver_record *driver = &taking->reading.driver;

    driver->attaches = (object->number & CSI_DRIVER_DOES_NOT_ATTACH) == 0;
    driver = new_record(taking, sizeof *driver, RECORD_TEXTS);
    if (driver == NULL)
        return;
    driver->modes = copy(taking, object->attributes[CSI_DRIVER_LIFECYCLE_MODES]);
    (void)inventory_add_name(taking, &driver->record);
}

/* Of an object that no rule needs more of. */
static void take_plain(struct taking *taking)
{
    struct record *record = new_record(taking, sizeof *record, RECORD_TEXTS);

    if (record != NULL)
        (void)inventory_add_name(taking, record);
}

/* Whether the API server has never had it. */
static bool is_made_by_hand(const struct taking *taking, const struct resource_object *volume)
{
    return taking->object->path != NULL && volume->reading.phase.len == 0 &&
           volume->reading.claim_uid.len == 0;
}

static void take_volume(struct taking *taking)
{
    struct resource_object *object = &taking->reading.stored.resource;
    bool is_by_hand = is_made_by_hand(taking, object);

    name_class(taking, object->reading.attributes_class);
    if (!is_by_hand && taking->reading.ignore.len == 0)
        return;
    if (is_by_hand)
        taking->has_failed |= !volume_make_offer(&taking->inventory->scratch, object);
    struct volume_record *volume = new_record(taking, sizeof *volume, RECORD_TEXTS);
    if (volume == NULL)
        return;
    (void)inventory_add_name(taking, &volume->record);
    if (is_by_hand) /* beside that of a cluster, which counts first */
        taking->twin = volume->twin = ++taking->inventory->twins;
}

static void take_node(struct taking *taking)
{
    struct node_record *node = new_record(taking, sizeof *node, RECORD_TEXTS);

    if (node == NULL)
        return;
    node->labels = copy(taking, node->labels);
    (void)inventory_add_name(taking, &node->record);
}

void inventory_record(struct taking *taking)
{
    taking->inventory->is_cluster |= taking->kind == KIND_NODE || taking->kind == KIND_CSI_NODE;
    switch (taking->kind) {
    case KIND_POD: take_pod(taking); break;
    case KIND_CLAIM: take_claim(taking); break;
    case KIND_VOLUME: take_volume(taking); break;
    case KIND_NODE: take_node(taking); break;
    case KIND_VOLUME_ATTRIBUTES_CLASS: take_plain(taking); break;
    case KIND_STORAGE_CLASS: take_class(taking); break;
    case KIND_CSI_DRIVER: take_driver(taking); break;
    case KIND_CSI_NODE: break; /* no finding is about them */
    default: take_workload(taking);
    }
}
