#include "extender/doctor/installation.h"

#include <stdarg.h>

#include "cache/json/pull_fields.h"
#include "extender/doctor/scheduler_rules.h"

enum { PODS_BYTES_MAX = 512 << 20, POD_BYTES_MAX = 4 << 20 };

static const struct {
    const char *kind, *group, *plural;
} kinds[INSTALLED_COUNT] = {
    [INSTALLED_DEPLOYMENT] = {"Deployment", "apps/", "Deployments"},
    [INSTALLED_SERVICE] = {"Service", "v", "Services"},
    [INSTALLED_ENDPOINT_SLICE] = {"EndpointSlice", "discovery.k8s.io/", "EndpointSlices"},
    [INSTALLED_WEBHOOKS] = {"ValidatingWebhookConfiguration", "admissionregistration.k8s.io/",
                            "ValidatingWebhookConfigurations"},
    [INSTALLED_MARKER] = {"MutatingAdmissionPolicy", "admissionregistration.k8s.io/",
                          "MutatingAdmissionPolicies"},
    [INSTALLED_MARKER_BINDING] = {"MutatingAdmissionPolicyBinding", "admissionregistration.k8s.io/",
                                  "MutatingAdmissionPolicyBindings"},
    [INSTALLED_LIMIT_RANGE] = {"LimitRange", "v", "LimitRanges"},
    [INSTALLED_CONFIG_MAP] = {"ConfigMap", "v", "ConfigMaps"},
    [INSTALLED_EVENT] = {"Event", "v", "Events"},
};

const char *installed_text(enum installed kind)
{
    return kinds[kind].plural;
}

/* ---- objects ---- */

const char *installed_string(const json_t *object, ...)
{
    va_list keys;
    const char *key;

    va_start(keys, object);
    while ((key = va_arg(keys, const char *)) != NULL)
        object = json_object_get(object, key);
    va_end(keys);
    const char *text = json_string_value(object);
    return text == NULL ? "" : text;
}

const json_t *installation_find(const struct installation *installation, enum installed kind,
                                const char *ns, const char *name)
{
    const json_t *object;
    size_t i;

    json_array_foreach (installation->objects[kind], i, object)
        if (strcmp(installed_string(object, "metadata", "name", NULL), name) == 0 &&
            (ns == NULL ||
             strcmp(installed_string(object, "metadata", "namespace", NULL), ns) == 0))
            return object;
    return NULL;
}

struct location installed_place(struct findings *findings, const char *kind, const json_t *object)
{
    return finding_object(findings, kind,
                          slice_of(installed_string(object, "metadata", "namespace", NULL)),
                          slice_of(installed_string(object, "metadata", "name", NULL)));
}

static int find_kind(const struct type *type)
{
    for (int kind = 0; kind < INSTALLED_COUNT; kind++)
        if (strcmp(type->kind, kinds[kind].kind) == 0 &&
            strncmp(type->api_version, kinds[kind].group, strlen(kinds[kind].group)) == 0)
            return kind;
    return INSTALLED_COUNT;
}

/* Of claimguard's namespace alone, as the API server is asked. */
static bool is_wanted(const struct installation *installation, int kind, const json_t *object)
{
    if (kind == INSTALLED_EVENT &&
        strcmp(installed_string(object, "reason", NULL), "FailedMount") != 0)
        return false;
    return (kind != INSTALLED_CONFIG_MAP && kind != INSTALLED_EVENT) ||
           strcmp(installed_string(object, "metadata", "namespace", NULL), installation->ns) == 0;
}

int installation_take(struct installation *installation, const struct type *type, struct slice text,
                      struct error *err)
{
    int kind = find_kind(type);

    if (kind == INSTALLED_COUNT)
        return 0;
    json_t *list = installation->objects[kind];
    json_t *object = json_loadb(text.ptr, text.len, JSON_ALLOW_NUL, NULL);
    bool is_full = json_array_size(list) == INSTALLED_OBJECTS_MAX;
    installation->is_cut[kind] = installation->is_cut[kind] || is_full;
    installation->is_known[kind] = !installation->is_cut[kind];
    /* NULL: nested too deep, or not UTF-8: nothing that claimguard depends on */
    if (object == NULL || is_full || !is_wanted(installation, kind, object)) {
        json_decref(object);
        return 1;
    }
    return json_array_append_new(list, object) == 0 ? 1 : error_no_memory(err);
}

/* ---- pods ---- */

/* What is read of a pod. */
struct pod_fields {
    struct slice scheduler, component, app, dns_policy;
    struct containers {
        bool are_marked;
        bool have_resources; /* a file may leave them out; an API server does not */
    } containers;
    bool has_disk; /* which VolumeRestrictions compares: kube-scheduler's isVolumeConflict */
    bool is_host_network;
};

/* No PULL_PRESENCE: a snapshot has the value, so that it is a Pod for other programs, too. */
static bool read_mark(struct pull *json, struct arena *arena, void *field)
{
    (void)arena;
    *(bool *)field = true;
    return pull_skip(json);
}

static const struct pull_field mark_fields[] = {
    PULL_READER(MARK, containers, are_marked, read_mark),
};
static const struct pull_field resources_fields[] = {
    PULL_NESTED("requests", mark_fields),
    PULL_NESTED("limits", mark_fields),
};

static bool read_resources(struct pull *json, struct arena *arena, void *field)
{
    struct containers *containers = field;

    containers->have_resources = true;
    return pull_fields(json, PULL_CASE_EXACT, resources_fields, PULL_FIELD_COUNT(resources_fields),
                       arena, containers);
}

/* No PULL_NESTED: a snapshot says that a container has resources also if it has no mark. */
static const struct pull_field container_fields[] = {
    {.key = "resources", .type = PULL_READ, .read = read_resources, PULL_MEMBERS(resources_fields)},
};

static bool read_containers(struct pull *json, struct arena *arena, void *field)
{
    struct pull_items items = {.size = sizeof(struct containers)};
    struct containers *containers = field;

    if (!pull_field_array(json, PULL_CASE_EXACT, container_fields,
                          PULL_FIELD_COUNT(container_fields), arena, &items))
        return false;
    const struct containers *each = items.items;
    for (size_t i = 0; i < items.count; i++) {
        containers->are_marked |= each[i].are_marked;
        containers->have_resources |= each[i].have_resources;
    }
    return true;
}

struct disk_volume {
    bool is_disk;
};

static const struct pull_field disk_fields[] = {
    PULL_FIELD("gcePersistentDisk", PULL_PRESENCE, disk_volume, is_disk),
    PULL_FIELD("awsElasticBlockStore", PULL_PRESENCE, disk_volume, is_disk),
    PULL_FIELD("iscsi", PULL_PRESENCE, disk_volume, is_disk),
    PULL_FIELD("rbd", PULL_PRESENCE, disk_volume, is_disk),
};

static bool read_disks(struct pull *json, struct arena *arena, void *field)
{
    struct pull_items items = {.size = sizeof(struct disk_volume)};

    if (!pull_field_array(json, PULL_CASE_EXACT, disk_fields, PULL_FIELD_COUNT(disk_fields), arena,
                          &items))
        return false;
    const struct disk_volume *volumes = items.items;
    for (size_t i = 0; i < items.count; i++)
        *(bool *)field |= volumes[i].is_disk;
    return true;
}

static const struct pull_field label_fields[] = {
    PULL_FIELD("component", PULL_STRING, pod_fields, component),
    PULL_FIELD("app.kubernetes.io/name", PULL_STRING, pod_fields, app),
};
static const struct pull_field meta_fields[] = {PULL_NESTED("labels", label_fields)};
static const struct pull_field spec_fields[] = {
    PULL_FIELD("schedulerName", PULL_STRING, pod_fields, scheduler),
    PULL_FIELD("dnsPolicy", PULL_STRING, pod_fields, dns_policy),
    PULL_FIELD("hostNetwork", PULL_BOOLEAN, pod_fields, is_host_network),
    PULL_READER_OF("containers", pod_fields, containers, read_containers, container_fields),
    PULL_READER_OF("initContainers", pod_fields, containers, read_containers, container_fields),
    PULL_READER_OF("volumes", pod_fields, has_disk, read_disks, disk_fields),
};
static const struct pull_field pod_fields[] = {
    PULL_NESTED("metadata", meta_fields),
    PULL_NESTED("spec", spec_fields),
};

struct pull_table installation_table(enum kind kind)
{
    return kind == KIND_POD ? (struct pull_table){pod_fields, PULL_FIELD_COUNT(pod_fields)}
                            : (struct pull_table){NULL, 0};
}

static bool read_fields(struct slice text, struct arena *arena, struct pod_fields *out)
{
    struct pull json;

    *out = (struct pod_fields){.is_host_network = false};
    pull_init(&json, text);
    return pull_fields(&json, PULL_CASE_EXACT, pod_fields, PULL_FIELD_COUNT(pod_fields), arena,
                       out);
}

const struct installed_disk *installation_find_disk(const struct installation *installation,
                                                    struct slice scheduler)
{
    for (size_t i = 0; i < installation->disk_count; i++)
        if (slice_equal(installation->disks[i].scheduler, scheduler))
            return &installation->disks[i];
    return NULL;
}

static int add_disk(struct installation *installation, const struct pod_object *pod,
                    struct slice scheduler, struct error *err)
{
    struct arena *arena = &installation->arena;
    struct installed_disk added = {arena_copy(arena, pod->meta.ns),
                                   arena_copy(arena, pod->meta.name), arena_copy(arena, scheduler)};
    struct installed_disk *grown =
        arena_grow(arena, installation->disks, installation->disk_count, sizeof *grown);

    if (grown == NULL || added.ns.ptr == NULL || added.name.ptr == NULL ||
        added.scheduler.ptr == NULL)
        return error_no_memory(err);
    installation->disks = grown;
    grown[installation->disk_count++] = added;
    return 0;
}

static int add_guard(struct installation *installation, struct slice text, struct error *err)
{
    json_t *pod = json_loadb(text.ptr, text.len, JSON_ALLOW_NUL, NULL);

    if (pod == NULL || json_array_size(installation->guards) == INSTALLED_GUARDS_MAX) {
        json_decref(pod);
        return 0;
    }
    return json_array_append_new(installation->guards, pod) == 0 ? 0 : error_no_memory(err);
}

static int add_pod(struct installation *installation, const struct pod_object *pod,
                   const struct pod_fields *fields, struct error *err)
{
    struct arena *arena = &installation->arena;
    struct slice scheduler = fields->scheduler;
    const struct installed_pod *last =
        installation->pod_count == 0 ? NULL : &installation->pods[installation->pod_count - 1];
    struct installed_pod added = {
        .ns = last != NULL && slice_equal(last->ns, pod->meta.ns) ? last->ns
                                                                  : arena_copy(arena, pod->meta.ns),
        .name = arena_copy(arena, pod->meta.name),
        .scheduler = last != NULL && slice_equal(last->scheduler, scheduler)
                         ? last->scheduler
                         : arena_copy(arena, scheduler),
        .is_marked = fields->containers.are_marked,
        .is_mark_known = fields->containers.have_resources,
        .is_assigned = pod->node.len != 0,
    };

    installation->pods =
        arena_grow(arena, installation->pods, installation->pod_count, sizeof *installation->pods);
    if (installation->pods == NULL || added.ns.ptr == NULL || added.name.ptr == NULL ||
        added.scheduler.ptr == NULL)
        return error_no_memory(err);
    installation->pods[installation->pod_count++] = added;
    return 0;
}

static int take_pod(struct installation *installation, const struct pod_object *pod,
                    struct slice text, struct error *err)
{
    struct pod_fields fields;
    struct arena scratch;
    int rc = 0;

    installation->all_pod_count++;
    arena_init(&scratch, POD_BYTES_MAX);
    if (read_fields(text, &scratch, &fields)) {
        if (fields.scheduler.len == 0)
            fields.scheduler = SLICE("default-scheduler");
        if (slice_equal(pod->meta.ns, SLICE("kube-system")) && fields.is_host_network &&
            slice_equal(fields.component, SLICE("kube-scheduler")) &&
            !slice_equal(fields.dns_policy, SLICE("ClusterFirstWithHostNet")))
            installation->is_scheduler_on_host = true;
        bool is_finished =
            slice_equal(pod->phase, SLICE("Succeeded")) || slice_equal(pod->phase, SLICE("Failed"));
        if (pod->claim_count != 0 && !is_finished)
            rc = add_pod(installation, pod, &fields, err);
        if (rc == 0 && !is_finished && slice_equal(fields.app, SLICE("claimguard")) &&
            (slice_equal(pod->meta.ns, SLICE("kube-system")) ||
             slice_equal(pod->meta.ns, slice_of(installation->ns))))
            rc = add_guard(installation, text, err);
        if (rc == 0 && fields.has_disk && installation->disk_count < INSTALLED_DISKS_MAX &&
            installation_find_disk(installation, fields.scheduler) == NULL)
            rc = add_disk(installation, pod, fields.scheduler, err);
    }
    arena_dispose(&scratch);
    return rc;
}

/* ---- reading ---- */

static int take(void *context, const struct source_text *text, const struct object *object,
                struct error *err)
{
    struct installation *installation = context;

    if (object == NULL)
        return installation_take(installation, text->type, text->text, err);
    if (object->kind == KIND_POD)
        return take_pod(installation, &object->pod, text->text, err);
    return 0;
}

int installation_read(struct installation *out, const struct inquiry_origin *origin, const char *ns,
                      struct error *err)
{
    const struct inquiry_wish wish = {
        .kinds = 1U << KIND_POD | 1U << KIND_CLAIM, .text_sink = take, .context = out};

    *out = (struct installation){.ns = ns};
    arena_init(&out->arena, PODS_BYTES_MAX);
    int rc = inquiry_open(&out->inquiry, origin, err);
    out->guards = json_array();
    if (out->guards == NULL)
        rc = error_no_memory(err);
    for (int kind = 0; kind < INSTALLED_COUNT; kind++) {
        out->objects[kind] = json_array();
        if (out->objects[kind] == NULL)
            rc = error_no_memory(err);
    }
    if (rc < 0 || inquiry_read(&out->inquiry, &wish, err) < 0)
        return err->code;
    return origin->snapshot != NULL ? 0 : installation_read_live(out, err);
}

void installation_dispose(struct installation *installation)
{
    for (int kind = 0; kind < INSTALLED_COUNT; kind++)
        json_decref(installation->objects[kind]);
    json_decref(installation->guards);
    inquiry_close(&installation->inquiry);
    arena_dispose(&installation->arena);
}
