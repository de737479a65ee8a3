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
    struct slice containers, init_containers, volumes; /* their JSON */
    bool is_host_network;
};

#define FIELD(key_, type_, member_) \
    { \
        .key = (key_), .type = (type_), .offset = offsetof(struct pod_fields, member_) \
    }

static bool read_fields(struct slice text, struct arena *arena, struct pod_fields *out)
{
    static const struct pull_field labels[] = {FIELD("component", PULL_STRING, component),
                                               FIELD("app.kubernetes.io/name", PULL_STRING, app)};
    static const struct pull_field meta[] = {
        {.key = "labels", .type = PULL_OBJECT, PULL_MEMBERS(labels)}};
    static const struct pull_field spec[] = {
        FIELD("schedulerName", PULL_STRING, scheduler),
        FIELD("dnsPolicy", PULL_STRING, dns_policy),
        FIELD("hostNetwork", PULL_BOOLEAN, is_host_network),
        FIELD("containers", PULL_RAW, containers),
        FIELD("initContainers", PULL_RAW, init_containers),
        FIELD("volumes", PULL_RAW, volumes),
    };
    static const struct pull_field fields[] = {
        {.key = "metadata", .type = PULL_OBJECT, PULL_MEMBERS(meta)},
        {.key = "spec", .type = PULL_OBJECT, PULL_MEMBERS(spec)},
    };
    struct pull json;

    *out = (struct pod_fields){.is_host_network = false};
    pull_init(&json, text);
    return pull_fields(&json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields), arena, out);
}

/* Whether a JSON text has that key, given with its quotes. */
static bool has_key(struct slice text, struct slice key)
{
    for (;;) {
        const char *found = text.ptr == NULL ? NULL : memmem(text.ptr, text.len, key.ptr, key.len);
        if (found == NULL)
            return false;
        const char *end = text.ptr + text.len, *after = found + key.len;
        while (after < end && (*after == ' ' || *after == '\n'))
            after++;
        if (after < end && *after == ':')
            return true;
        text = (struct slice){after, (size_t)(end - after)};
    }
}

static bool has_mark(const struct pod_fields *fields)
{
    struct slice mark = SLICE("\"" MARK "\""); /* only resources have such a key */

    return has_key(fields->containers, mark) || has_key(fields->init_containers, mark);
}

/* What VolumeRestrictions compares: kube-scheduler's isVolumeConflict. */
static bool has_disk(const struct pod_fields *fields)
{
    return has_key(fields->volumes, SLICE("\"gcePersistentDisk\"")) ||
           has_key(fields->volumes, SLICE("\"awsElasticBlockStore\"")) ||
           has_key(fields->volumes, SLICE("\"iscsi\"")) ||
           has_key(fields->volumes, SLICE("\"rbd\""));
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
        .is_marked = has_mark(fields),
        /* a file may have neither; an API server writes both */
        .is_mark_known = has_key(fields->containers, SLICE("\"image\"")) ||
                         has_key(fields->containers, SLICE("\"resources\"")),
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
        if (rc == 0 && has_disk(&fields) && installation->disk_count < INSTALLED_DISKS_MAX &&
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
