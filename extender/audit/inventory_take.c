/* Records of the objects. */
#include "cache/objects/objects.h"
#include "extender/audit/inventory_internal.h"

enum { TEXTS_BYTES = 8192, RECENT = 16384 };

/* Room for a text, which need not be aligned. NULL: no memory. */
static char *text_room(struct inventory *inventory, size_t len)
{
    if (inventory->texts_left < len) {
        size_t size = len < TEXTS_BYTES ? TEXTS_BYTES : len;
        inventory->texts = arena_alloc(&inventory->arena, size);
        inventory->texts_left = inventory->texts == NULL ? 0 : size;
    }
    if (inventory->texts == NULL)
        return NULL;
    char *room = inventory->texts;
    inventory->texts += len;
    inventory->texts_left -= len;
    return room;
}

/* The text as it is kept: the same one as of an object before, if it is among the recent ones. */
static struct slice copy(struct taking *taking, struct slice text)
{
    struct inventory *inventory = taking->inventory;

    if (text.len == 0)
        return SLICE("");
    if (inventory->recent == NULL)
        inventory->recent = arena_alloc(&inventory->arena, RECENT * sizeof *inventory->recent);
    if (inventory->recent == NULL) {
        taking->has_failed = true;
        return SLICE("");
    }
    struct slice *recent = &inventory->recent[table_hash(text, 1) % RECENT];
    if (slice_equal(*recent, text))
        return *recent;
    char *room = text_room(inventory, text.len);
    if (room == NULL) {
        taking->has_failed = true;
        return SLICE("");
    }
    memcpy(room, text.ptr, text.len);
    *recent = (struct slice){room, text.len};
    return *recent;
}

static const char *copy_string(struct taking *taking, struct slice text)
{
    struct slice kept = text.len == 0 ? text : arena_copy(&taking->inventory->arena, text);

    taking->has_failed |= text.len != 0 && kept.ptr == NULL;
    return text.len == 0 ? NULL : kept.ptr;
}

static struct slice copy_ns(struct taking *taking)
{
    return copy(taking, taking->kind >= RECORD_VOLUME ? SLICE("") : taking->reading.ns);
}

/* size bytes for a part of a record. NULL: no memory. */
static void *allocate(struct taking *taking, size_t size)
{
    void *room = arena_alloc(&taking->inventory->arena, size);

    taking->has_failed |= room == NULL;
    return room;
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

    *line = (uint32_t)place.line;
    *column = (uint32_t)place.column;
}

/* A record of `size` bytes with the members that all have. NULL: no memory. */
static void *new_record(struct taking *taking, size_t size)
{
    struct inventory *inventory = taking->inventory;
    const struct reading *reading = &taking->reading;
    struct record *record = pool_alloc(&inventory->pool, size);

    taking->has_failed |= record == NULL;
    if (record == NULL)
        return NULL;
    record->kind = (uint8_t)taking->kind;
    record->ns = copy_ns(taking);
    record->name = copy(taking, reading->name);
    record->ignore = copy_string(taking, reading->ignore);
    record->has_controller = reading->owner.len != 0;
    record->spot.path = copy_path(taking);
    record->spot.line = (uint32_t)taking->object->place.line;
    record->spot.column = (uint32_t)taking->object->place.column;
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
    const struct slice *names = reading->claim_templates.items;

    for (size_t i = 0; i < reading->claim_templates.count; i++)
        if (slice_equal(names[i], volume->name))
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

static void put_uses(struct taking *taking, struct pod_spec *spec)
{
    const struct reading *reading = &taking->reading;
    const struct volume_reading *volumes = reading->volumes.items;
    size_t count = 0;

    for (size_t i = 0; i < reading->volumes.count; i++)
        count += volumes[i].claim.len != 0 || volumes[i].driver.len != 0 || volumes[i].is_ephemeral;
    taking->inventory->too_many_volumes += count > POD_CLAIMS_MAX;
    if (count == 0 || count > POD_CLAIMS_MAX)
        return;
    spec->uses = allocate(taking, count * sizeof *spec->uses);
    for (size_t i = 0; i < reading->volumes.count && !taking->has_failed; i++) {
        const struct volume_reading *volume = &volumes[i];
        struct slice name = volume->claim.len != 0 ? volume->claim : volume->driver;
        struct volume_use use = {.name = name,
                                 .is_inline = volume->claim.len == 0 && name.len != 0};
        if ((name.len == 0 && !volume->is_ephemeral) || is_replaced(reading, volume) ||
            has_use(spec, &use))
            continue;
        put_place(taking, name, &use.line, &use.column);
        use.name = copy(taking, name);
        spec->uses[spec->use_count++] = use;
    }
}

static void put_spec(struct taking *taking, struct pod_spec *spec)
{
    const struct reading *reading = &taking->reading;

    spec->node = copy(taking, reading->node);
    if (!slice_equal(reading->scheduler, SLICE("default-scheduler")))
        spec->scheduler = copy(taking, reading->scheduler);
    spec->selector = copy(taking, reading->selector);
    spec->runtime_class = copy(taking, reading->runtime_class);
    spec->requires_nodes = reading->requires_nodes;
    spec->requires_host = reading->requires_host;
    spec->requires_pods = reading->requires_pods;
    spec->is_marked = reading->is_marked;
    if (spec->node.len != 0)
        put_place(taking, reading->node, &spec->node_line, &spec->node_column);
    if (spec->scheduler.len != 0)
        put_place(taking, reading->scheduler, &spec->scheduler_line, &spec->scheduler_column);
    put_uses(taking, spec);
}

static bool has_uses(const struct reading *reading)
{
    const struct volume_reading *volumes = reading->volumes.items;

    for (size_t i = 0; i < reading->volumes.count; i++)
        if (volumes[i].claim.len != 0 || volumes[i].driver.len != 0 || volumes[i].is_ephemeral)
            return true;
    return false;
}

/* The kind that an owner or a target names; without a version, it is taken for that of Kubernetes.
 */
static enum record_kind kind_named(struct slice version, struct slice kind)
{
    return version.len == 0 ? record_kind_of(kind) : reading_kind(version, kind);
}

/* Files of different moments may have the same pod: the last one counts. */
static void replace_pod(struct taking *taking, struct pod_record *pod)
{
    struct pod_record *before = (struct pod_record *)inventory_add_name(taking, &pod->record);

    if (before == NULL)
        return;
    before->is_finished = true;
    table_remove(&taking->inventory->table, &before->record.table);
    (void)inventory_add_name(taking, &pod->record);
}

static void take_pod(struct taking *taking)
{
    const struct reading *reading = &taking->reading;
    struct inventory *inventory = taking->inventory;

    inventory->uses_marks |= reading->is_marked;
    inventory->is_cluster |= reading->phase.len != 0;
    if (!has_uses(reading))
        return;
    struct pod_record *pod = new_record(taking, sizeof *pod);
    if (pod == NULL)
        return;
    put_spec(taking, &pod->spec);
    pod->owner_kind = kind_named(reading->owner_version, reading->owner_kind);
    pod->owner = copy(taking, reading->owner);
    pod->is_terminating = reading->deletion_timestamp.len != 0;
    pod->is_finished = phase_is_terminal(reading->phase);
    pod->is_manifest = reading->phase.len == 0 && reading->uid.len == 0;
    replace_pod(taking, pod);
}

/* The pods of a Job at the same time: at most as many as are to complete. */
static int64_t job_pods(const struct reading *reading)
{
    int64_t parallelism = reading->parallelism < 0 ? 1 : reading->parallelism;

    return reading->completions >= 0 && reading->completions < parallelism ? reading->completions
                                                                           : parallelism;
}

static void take_workload(struct taking *taking)
{
    const struct reading *reading = &taking->reading;
    struct workload *workload = new_record(taking, sizeof *workload);
    bool is_job = taking->kind == RECORD_JOB || taking->kind == RECORD_CRON_JOB;
    bool is_autoscaler = taking->kind == RECORD_AUTOSCALER;

    if (workload == NULL)
        return;
    put_spec(taking, &workload->spec);
    workload->owner_kind = is_autoscaler ? kind_named(reading->target_version, reading->target_kind)
                                         : kind_named(reading->owner_version, reading->owner_kind);
    workload->owner = copy(taking, is_autoscaler ? reading->target : reading->owner);
    if (is_autoscaler)
        put_place(taking, reading->target, &workload->target_line, &workload->target_column);
    workload->rollout.replicas = reading->replicas < 0 ? 1 : reading->replicas;
    if (is_job)
        workload->rollout.replicas = job_pods(reading);
    workload->rollout.strategy = copy(taking, reading->strategy);
    workload->rollout.surge = amount_of(reading->surge);
    workload->rollout.unavailable = amount_of(reading->unavailable);
    if (is_autoscaler)
        workload->least = reading->least_replicas < 0 ? 1 : reading->least_replicas;
    workload->is_finished = reading->is_finished;
    workload->is_suspended = reading->is_suspended;
    workload->is_finite = reading->completions >= 0;
    workload->forbids_overlap = reading->concurrency_policy.len != 0 &&
                                !slice_equal(reading->concurrency_policy, SLICE("Allow"));
    (void)inventory_add_name(taking, &workload->record);
}

/* ---- the other kinds ---- */

static void copy_wish(struct taking *taking, struct claim_classes *classes)
{
    const struct reading *reading = &taking->reading;

    classes->wish = reading->wish;
    classes->wish.ns = reading->ns.len == 0 ? SLICE("default") : copy(taking, reading->ns);
    classes->wish.name = copy(taking, reading->name);
    classes->wish.uid = copy(taking, reading->wish.uid);
    classes->wish.storage_class = copy(taking, reading->storage_class);
    classes->wish.attributes_class = classes->class;
    classes->wish.selector = copy(taking, reading->wish.selector);
}

/* NULL: it has none, or there is no memory. */
static const struct claim_classes *copy_classes(struct taking *taking)
{
    const struct reading *reading = &taking->reading;
    struct claim_classes *classes;

    if (reading->class.len + reading->current_class.len + reading->target_class.len +
            reading->modify_status.len ==
        0)
        return NULL;
    classes = allocate(taking, sizeof *classes);
    if (classes == NULL)
        return NULL;
    classes->class = copy(taking, reading->class);
    classes->current = copy(taking, reading->current_class);
    classes->target = copy(taking, reading->target_class);
    classes->modify_status = copy(taking, reading->modify_status);
    if (reading->class.len != 0)
        put_place(taking, reading->class, &classes->line, &classes->column);
    copy_wish(taking, classes);
    return classes;
}

static void take_claim(struct taking *taking)
{
    const struct reading *reading = &taking->reading;
    struct claim_record *claim = new_record(taking, sizeof *claim);

    if (claim == NULL)
        return;
    claim->storage_class = copy(taking, reading->storage_class);
    claim->volume = copy(taking, reading->volume);
    claim->classes = copy_classes(taking);
    claim->modes = reading->modes;
    claim->is_bound = slice_equal(reading->phase, SLICE("Bound"));
    struct claim_record *same = (struct claim_record *)inventory_add_name(taking, &claim->record);
    if (same != NULL && same->modes != claim->modes)
        same->is_ambiguous = true;
}

static void copy_offered(struct taking *taking, struct volume_classes *classes)
{
    const struct reading *reading = &taking->reading;

    classes->class = copy(taking, reading->class);
    classes->offered = reading->offered;
    classes->offered.attributes_class = classes->class;
    classes->offered.storage_class = copy(taking, reading->storage_class);
    classes->offered.labels = copy(taking, reading->offered.labels);
    classes->offered.kept_for = copy(taking, reading->offered.kept_for);
}

static void take_volume(struct taking *taking)
{
    const struct reading *reading = &taking->reading;
    struct volume_record *volume = new_record(taking, sizeof *volume);

    if (volume == NULL)
        return;
    volume->driver = copy(taking, reading->driver);
    if (reading->claim.len != 0)
        volume->claim = inventory_claim_hash(taking->inventory, reading->claim_ns, reading->claim);
    volume->is_for_one_node = reading->is_for_one_node;
    volume->is_available = reading->is_available;
    if (reading->class.len != 0) {
        struct volume_classes *classes = allocate(taking, sizeof *classes);
        if (classes != NULL)
            copy_offered(taking, classes);
        volume->classes = classes;
    }
    volume->is_attached_in_tree = reading->is_attached_in_tree;
    volume->requires_nodes = reading->requires_nodes;
    (void)inventory_add_name(taking, &volume->record);
}

static void take_plain(struct taking *taking)
{
    const struct reading *reading = &taking->reading;
    struct plain_record *plain = new_record(taking, sizeof *plain);

    if (plain == NULL)
        return;
    plain->text = copy(taking, reading->text);
    plain->is_deleting = reading->deletion_timestamp.len != 0;
    plain->does_not_attach = reading->does_not_attach;
    plain->is_avoided = reading->is_avoided;
    taking->inventory->is_cluster |= taking->kind == RECORD_NODE || taking->kind == RECORD_CSI_NODE;
    (void)inventory_add_name(taking, &plain->record);
}

void inventory_record(struct taking *taking)
{
    switch (taking->kind) {
    case RECORD_POD: take_pod(taking); break;
    case RECORD_CLAIM: take_claim(taking); break;
    case RECORD_VOLUME: take_volume(taking); break;
    default:
        if (taking->kind < RECORD_CLAIM)
            take_workload(taking);
        else
            take_plain(taking);
    }
}
