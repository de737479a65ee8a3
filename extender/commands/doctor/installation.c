#include "extender/commands/doctor/installation.h"

enum { ARENA_BYTES_MAX = 512 << 20, SCRATCH_BYTES_MAX = 4 << 20 };

/* ---- the fields ---- */

#define TEXT(key_, struct_, member_)  PULL_FIELD(key_, PULL_STRING, struct_, member_)
#define WORDS(key_, struct_, member_) PULL_READER(key_, struct_, member_, words_read_items)
#define META_ROWS \
    TEXT("namespace", installed, ns), TEXT("name", installed, name), TEXT("uid", installed, uid)
#define META PULL_IN("metadata", META_ROWS)

static const struct pull_field named_fields[] = {META};

/* A string or a number. */
static bool read_quantity(struct pull *json, struct arena *arena, void *field)
{
    struct slice *out = field;

    (void)arena;
    if (pull_null(json))
        return true;
    if (!pull_raw(json, out))
        return false;
    if (out->len >= 2 && out->ptr[0] == '"')
        *out = (struct slice){out->ptr + 1, out->len - 2};
    return true;
}

/* Of a Deployment's template, or of a pod. */
static const struct pull_field container_fields[] = {
    TEXT("name", guard_container, name),
    TEXT("image", guard_container, image),
    PULL_IN("resources",
            PULL_IN("limits", PULL_READER("memory", guard_container, memory, read_quantity))),
};
static const struct pull_field mounted_map_fields[] = {
    PULL_IN("configMap", TEXT("name", mounted_map, name),
            PULL_FIELD("optional", PULL_BOOLEAN, mounted_map, is_optional)),
};
static const struct pull_field pod_spec_fields[] = {
    TEXT("serviceAccountName", guard, account),
    TEXT("schedulerName", guard, scheduler),
    TEXT("nodeName", guard, node),
    PULL_ITEMS_OF("containers", guard, containers, guard_container, container_fields),
    PULL_ITEMS_OF("volumes", guard, volumes, mounted_map, mounted_map_fields),
};
#define POD_SPEC PULL_NESTED("spec", pod_spec_fields)

static const struct pull_field container_status_fields[] = {
    PULL_IN("state",
            PULL_IN("waiting", TEXT("reason", guard_status, waiting.reason),
                    TEXT("message", guard_status, waiting.message)),
            PULL_IN("terminated", TEXT("reason", guard_status, ended.reason),
                    TEXT("message", guard_status, ended.message))),
};
static const struct pull_field status_fields[] = {
    PULL_FIELD("availableReplicas", PULL_INTEGER, guard, available),
    TEXT("phase", guard, phase),
    PULL_ITEMS_IN("conditions", guard, conditions, condition, TEXT("type", condition, type),
                  TEXT("status", condition, status), TEXT("message", condition, message)),
    PULL_ITEMS_OF("initContainerStatuses", guard, init_statuses, guard_status,
                  container_status_fields),
    PULL_ITEMS_OF("containerStatuses", guard, statuses, guard_status, container_status_fields),
};

static bool read_status(struct pull *json, struct arena *arena, void *field)
{
    ((struct guard *)field)->has_status = true;
    return pull_fields(json, PULL_CASE_EXACT, status_fields, PULL_FIELD_COUNT(status_fields), arena,
                       field);
}

#define STATUS PULL_READER("status", guard, meta, read_status)
_Static_assert(offsetof(struct guard, meta) == 0, "read_status gets the whole struct");

static const struct pull_field deployment_fields[] = {
    META,
    PULL_IN("spec", PULL_FIELD("replicas", PULL_INTEGER, guard, replicas),
            PULL_IN("template", POD_SPEC)),
    STATUS,
};
static const struct pull_field pod_fields[] = {
    PULL_IN("metadata", META_ROWS, TEXT("deletionTimestamp", guard, deletion_timestamp),
            PULL_IN("annotations", TEXT("kubernetes.io/config.mirror", guard, mirror))),
    POD_SPEC,
    STATUS,
};

static const struct pull_field endpoint_slice_fields[] = {
    PULL_IN("metadata", META_ROWS,
            PULL_IN("labels", TEXT("kubernetes.io/service-name", endpoint_slice, service))),
    PULL_ITEMS_IN("endpoints", endpoint_slice, endpoints, endpoint,
                  PULL_IN("conditions", PULL_FIELD("ready", PULL_RAW, endpoint, ready))),
};

static const struct pull_field webhook_fields[] = {
    TEXT("name", webhook, name),
    TEXT("failurePolicy", webhook, policy),
    PULL_IN("clientConfig", TEXT("caBundle", webhook, bundle), TEXT("url", webhook, url),
            PULL_IN("service", TEXT("namespace", webhook, service_ns),
                    TEXT("name", webhook, service), TEXT("path", webhook, path),
                    PULL_FIELD("port", PULL_INTEGER, webhook, port))),
    PULL_ITEMS_IN(
        "rules", webhook, rules, webhook_rule, WORDS("resources", webhook_rule, resources),
        WORDS("operations", webhook_rule, operations), WORDS("apiGroups", webhook_rule, groups),
        WORDS("apiVersions", webhook_rule, versions), TEXT("scope", webhook_rule, scope)),
    PULL_IN("namespaceSelector", PULL_IN("matchLabels", TEXT(NAMESPACE_LABEL, webhook, ns_label)),
            PULL_ITEMS_IN("matchExpressions", webhook, expressions, namespace_expression,
                          TEXT("key", namespace_expression, key),
                          TEXT("operator", namespace_expression, operator),
                          WORDS("values", namespace_expression, values))),
};
static const struct pull_field webhooks_fields[] = {
    META,
    PULL_ITEMS_OF("webhooks", webhooks, items, webhook, webhook_fields),
};

static const struct pull_field marker_binding_fields[] = {
    META,
    PULL_IN("spec", TEXT("policyName", marker, policy)),
};

/* Of the mark, in a list of resources. */
static bool read_mark(struct pull *json, struct arena *arena, void *field)
{
    static const struct pull_field fields[] = {
        {.key = MARK, .type = PULL_READ, .read = read_quantity}};

    return pull_fields(json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields), arena, field);
}

#define LIMIT(key_, member_) PULL_READER(key_, limit, member_, read_mark)
static const struct pull_field limit_range_fields[] = {
    META,
    PULL_IN("spec", PULL_ITEMS_IN("limits", limit_range, limits, limit, LIMIT("min", min),
                                  LIMIT("max", max), LIMIT("maxLimitRequestRatio", ratio),
                                  LIMIT("default", limit_default),
                                  LIMIT("defaultRequest", request_default))),
};
static const struct pull_field config_map_fields[] = {
    META,
    PULL_FIELD("data", PULL_RAW, config_map, data),
};
static const struct pull_field event_fields[] = {
    META,
    PULL_IN("involvedObject", TEXT("name", event, pod), TEXT("uid", event, pod_uid)),
    TEXT("reason", event, reason),
    TEXT("message", event, message),
};

/* ---- objects ---- */

#define INSTALLED(kind_, struct_, fields_, rules_) \
    { \
        (kind_), {(fields_), PULL_FIELD_COUNT(fields_)}, sizeof(struct struct_), (rules_) \
    }
const struct installed_kind installed_kinds[INSTALLED_KINDS] = {
    INSTALLED(KIND_DEPLOYMENT, guard, deployment_fields, RULES_OF_GUARD),
    INSTALLED(KIND_SERVICE, installed, named_fields, GAP_RULE(CG613) | GAP_RULE(CG703)),
    INSTALLED(KIND_ENDPOINT_SLICE, endpoint_slice, endpoint_slice_fields, GAP_RULE(CG703)),
    INSTALLED(KIND_WEBHOOKS, webhooks, webhooks_fields, GAP_RULES(CG701, CG709) | GAP_RULE(CG808)),
    INSTALLED(KIND_MARKER, marker, named_fields, GAP_RULES(CG801, CG802)),
    INSTALLED(KIND_MARKER_BINDING, marker, marker_binding_fields, GAP_RULES(CG801, CG802)),
    INSTALLED(KIND_CLOSER_BINDING, marker, marker_binding_fields, GAP_RULE(CG706)),
    INSTALLED(KIND_LIMIT_RANGE, limit_range, limit_range_fields, GAP_RULE(CG803)),
    INSTALLED(KIND_CONFIG_MAP, config_map, config_map_fields,
              RULES_OF_CONFIG | GAP_RULE(CG613) | GAP_RULE(CG615)),
    INSTALLED(KIND_EVENT, event, event_fields, GAP_RULE(CG612)),
};
static const struct installed_kind own_pods = INSTALLED(KIND_POD, guard, pod_fields, 0);

/* Kinds of which also those of other namespaces are read. */
static const unsigned read_everywhere = 1U << KIND_POD | 1U << KIND_CLAIM | 1U << KIND_LIMIT_RANGE;

bool installation_knows(const struct installation *installation, enum kind kind)
{
    const struct installed_list *list = &installation->lists[kind];
    const struct inquiry *inquiry = &installation->inquiry;
    bool is_read = inquiry->snapshot != NULL ? list->is_seen : inquiry->gaps[kind] != GAP_FORBIDDEN;

    return is_read && !list->is_cut;
}

const void *installation_next(const struct installation *installation, enum kind kind,
                              const void *after)
{
    const struct pull_items *items = &installation->lists[kind].items;
    const char *first = items->items;

    if (items->count == 0)
        return NULL;
    const char *next = after == NULL ? first : (const char *)after + items->size;
    return next == first + items->count * items->size ? NULL : next;
}

const void *installation_find(const struct installation *installation, enum kind kind,
                              struct slice name)
{
    const struct installed *object = NULL;

    while ((object = installation_next(installation, kind, object)) != NULL)
        if (slice_equal(object->name, name))
            return object;
    return NULL;
}

struct location installed_place(struct findings *findings, enum kind kind,
                                const struct installed *object)
{
    return finding_object(findings, kind_text(kind), object->ns, object->name);
}

/* An Event is wanted if a volume cannot be mounted. */
static bool is_wanted(const struct installation *installation, enum kind kind, const void *object)
{
    const struct installed *installed = object;
    bool is_ours = slice_equal(installed->ns, slice_of(installation->ns));

    if (kind == KIND_EVENT &&
        !slice_equal(((const struct event *)object)->reason, SLICE("FailedMount")))
        return false;
    return is_ours || !kind_is_namespaced(kind) || (read_everywhere & 1U << kind) != 0;
}

/* The strings are in the text. False: it is not such an object. */
static bool read_object(const struct installed_kind *kind, struct slice text, struct arena *arena,
                        void *out)
{
    memset(out, 0, kind->size);
    if (kind->kind == KIND_DEPLOYMENT)
        ((struct guard *)out)->replicas = 1; /* the default of the API */
    if (kind->kind == KIND_MARKER)
        ((struct marker *)out)->has_mark = slice_has(text, SLICE(MARK));
    return pull_fields_of(text, kind->table.fields, kind->table.count, arena, out);
}

/* An object that is wanted is read again, from a copy of its text that stays. */
static int add_object(struct installation *installation, const struct installed_kind *kind,
                      struct slice text, struct error *err)
{
    struct pull_items *items = &installation->lists[kind->kind].items;
    struct arena *arena = &installation->arena;

    items->size = kind->size;
    items->items = arena_grow(arena, items->items, items->count, items->size);
    if (items->items == NULL)
        return error_no_memory(err);
    void *object = (char *)items->items + items->count * items->size;
    if (!read_object(kind, text, arena, object) || !is_wanted(installation, kind->kind, object))
        return 0;
    struct slice kept = arena_copy(arena, text);
    if (kept.ptr == NULL || !read_object(kind, kept, arena, object))
        return error_no_memory(err);
    items->count++;
    return 0;
}

/* Returns whether it is of a kind that is read here; negative: an error. */
static int take_object(struct installation *installation, enum kind kind, struct slice text,
                       struct error *err)
{
    const struct installed_kind *row = installed_kinds, *end = row + INSTALLED_KINDS;
    struct installed_list *list = &installation->lists[kind];

    while (row < end && row->kind != kind)
        row++;
    if (row == end)
        return 0;
    list->is_seen = true;
    list->is_cut = list->items.count == INSTALLED_OBJECTS_MAX;
    return list->is_cut || add_object(installation, row, text, err) == 0 ? 1 : err->code;
}

/* ---- pods ---- */

const struct installed_pod *example_pods_find(const struct example_pods *examples,
                                              struct slice scheduler)
{
    for (size_t i = 0; i < examples->count; i++)
        if (slice_equal(examples->items[i].scheduler, scheduler))
            return &examples->items[i];
    return NULL;
}

bool example_pods_add(struct example_pods *examples, const struct installed_pod *pod)
{
    size_t of_ns = 0;

    if (example_pods_find(examples, pod->scheduler) != NULL)
        return false;
    for (size_t i = 0; i < examples->count; i++)
        of_ns += slice_equal(examples->items[i].ns, pod->ns);
    bool has_room = of_ns < SCHEDULERS_OF_ONE_MAX && examples->count < SCHEDULERS_MAX;
    examples->has_left_out |= !has_room;
    if (has_room)
        examples->items[examples->count++] = *pod;
    return has_room;
}

/* Moves the pod's texts into the arena. */
static int keep_pod(struct installation *installation, struct installed_pod *pod, struct error *err)
{
    struct arena *arena = &installation->arena;

    pod->ns = arena_copy(arena, pod->ns);
    pod->name = arena_copy(arena, pod->name);
    pod->scheduler = arena_copy(arena, pod->scheduler);
    return pod->ns.ptr == NULL || pod->name.ptr == NULL || pod->scheduler.ptr == NULL
               ? error_no_memory(err)
               : 0;
}

static int add_pod(struct installation *installation, const struct installed_pod *pod,
                   struct error *err)
{
    installation->pods =
        arena_grow(&installation->arena, installation->pods, installation->pod_count, sizeof *pod);
    if (installation->pods == NULL)
        return error_no_memory(err);
    installation->pods[installation->pod_count] = *pod;
    return keep_pod(installation, &installation->pods[installation->pod_count++], err);
}

/* One with a disk, as an example. */
static int add_disk(struct installation *installation, const struct installed_pod *pod,
                    struct error *err)
{
    struct example_pods *disks = &installation->disks;

    return example_pods_add(disks, pod)
               ? keep_pod(installation, &disks->items[disks->count - 1], err)
               : 0;
}

static bool is_guard(const struct installation *installation, const struct pod_object *pod,
                     const struct pod_details *details)
{
    return slice_equal(details->app, SLICE("claimguard")) && !phase_is_terminal(pod->phase) &&
           (slice_equal(pod->meta.ns, SLICE("kube-system")) ||
            slice_equal(pod->meta.ns, slice_of(installation->ns))) &&
           installation->lists[KIND_POD].items.count < INSTALLED_GUARDS_MAX;
}

static bool is_scheduler_on_host(const struct pod_object *pod, const struct pod_details *details)
{
    return slice_equal(pod->meta.ns, SLICE("kube-system")) && details->is_host_network &&
           slice_equal(details->component, SLICE("kube-scheduler")) &&
           !slice_equal(details->dns_policy, SLICE("ClusterFirstWithHostNet"));
}

static bool has_disk(const struct pod_details *details)
{
    const struct volume_source_details *volumes = details->volumes.items;

    for (size_t i = 0; i < details->volumes.count; i++)
        if (volumes[i].is_disk)
            return true;
    return false;
}

static int take_details(struct installation *installation, const struct pod_object *pod,
                        const struct pod_details *details, struct slice text, struct error *err)
{
    struct installed_pod taken = {
        .ns = pod->meta.ns,
        .name = pod->meta.name,
        .scheduler = details->scheduler.len == 0 ? SLICE("default-scheduler") : details->scheduler,
        .is_marked = details->mark.len != 0,
        .is_mark_known = details->has_resources,
        .is_assigned = pod->node.len != 0,
    };
    bool is_finished = phase_is_terminal(pod->phase);
    int rc = has_disk(details) ? add_disk(installation, &taken, err) : 0;

    installation->is_scheduler_on_host |= is_scheduler_on_host(pod, details);
    if (rc == 0 && pod->claim_count != 0 && !is_finished)
        rc = add_pod(installation, &taken, err);
    if (rc == 0 && is_guard(installation, pod, details))
        rc = add_object(installation, &own_pods, text, err);
    return rc;
}

static int take_pod(struct installation *installation, const struct pod_object *pod,
                    struct slice text, struct error *err)
{
    struct pod_details details;
    struct arena scratch;

    installation->all_pod_count++;
    arena_init(&scratch, SCRATCH_BYTES_MAX);
    int rc = pod_details_read(text, &scratch, &details)
                 ? take_details(installation, pod, &details, text, err)
                 : 0;
    arena_dispose(&scratch);
    return rc;
}

/* ---- reading ---- */

static int take(void *context, const struct source_text *text, const struct object *object,
                struct error *err)
{
    struct installation *installation = context;
    const struct type *type = text->type;

    if (object == NULL)
        return take_object(installation,
                           kind_of_any(slice_of(type->api_version), slice_of(type->kind)),
                           text->text, err);
    return object->kind == KIND_POD ? take_pod(installation, &object->pod, text->text, err) : 0;
}

/* A list that begins again has all objects again. */
static void begin_list(void *context, enum kind kind)
{
    struct installation *installation = context;

    installation->lists[kind].items.count = 0;
    if (kind != KIND_POD)
        return;
    installation->pod_count = installation->all_pod_count = 0;
    installation->disks.count = 0;
}

int installation_read(struct installation *out, const struct inquiry_origin *origin, const char *ns,
                      struct error *err)
{
    struct inquiry_wish wish = {
        .kinds = 1U << KIND_POD | 1U << KIND_CLAIM,
        .ns = slice_of(ns),
        .everywhere = read_everywhere,
        .text_sink = take,
        .list_begins = begin_list,
        .context = out,
    };

    *out = (struct installation){.ns = ns};
    arena_init(&out->arena, ARENA_BYTES_MAX);
    for (int i = 0; i < INSTALLED_KINDS; i++)
        wish.kinds |= 1U << installed_kinds[i].kind;
    return inquiry_open(&out->inquiry, origin, err) < 0 ? err->code
                                                        : inquiry_read(&out->inquiry, &wish, err);
}

void installation_dispose(struct installation *installation)
{
    inquiry_close(&installation->inquiry);
    arena_dispose(&installation->arena);
}
