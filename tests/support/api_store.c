#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/api_store_internal.h"

void api_store_die(const char *what, const char *detail)
{
    (void)fprintf(stderr, "api_server: %s: %s\n", what, detail);
    abort();
}

/* ---- paths ---- */

/* The segment at *at, up to the next slash; moves behind it. */
static void take_segment(const char **at, char *out, size_t size)
{
    size_t len = strcspn(*at, "/?");

    (void)snprintf(out, size, "%.*s", (int)len, *at);
    *at += len;
    if (**at == '/')
        ++*at;
}

bool api_path_parse(struct api_path *out, const char *target)
{
    const char *question = strchr(target, '?');
    char part[256];

    memset(out, 0, sizeof *out);
    if (question != NULL)
        (void)snprintf(out->query, sizeof out->query, "%s", question + 1);
    if (strncmp(target, "/api/v1/", 8) == 0) {
        target += 8;
    } else if (strncmp(target, "/apis/", 6) == 0) {
        target += 6;
        take_segment(&target, part, sizeof part); /* group */
        take_segment(&target, part, sizeof part); /* version */
    } else {
        return false;
    }
    if (strncmp(target, "namespaces/", 11) == 0) {
        target += 11;
        take_segment(&target, out->ns, sizeof out->ns);
    }
    take_segment(&target, out->resource, sizeof out->resource);
    take_segment(&target, out->name, sizeof out->name);
    take_segment(&target, out->sub, sizeof out->sub);
    return out->resource[0] != '\0';
}

const char *api_path_value(const struct api_path *path, const char *key, char *out, size_t size)
{
    size_t key_len = strlen(key), len = 0;

    for (const char *at = path->query; *at != '\0'; at += *at == '&') {
        size_t part = strcspn(at, "&");
        if (part > key_len && strncmp(at, key, key_len) == 0 && at[key_len] == '=') {
            for (const char *p = at + key_len + 1; p < at + part && len + 1 < size; p++) {
                unsigned code = 0;
                if (*p == '%' && sscanf(p + 1, "%2x", &code) == 1)
                    p += 2;
                out[len++] = code != 0 ? (char)code : *p;
            }
            break;
        }
        at += part;
    }
    out[len] = '\0';
    return out;
}

/* ---- objects ---- */

void api_store_init(struct api_store *store)
{
    *store = (struct api_store){.objects = json_object(), .version = 100};
}

static enum kind kind_named(const char *kind)
{
    int i = 0;

    while (i < KIND_COUNT && strcmp(kind_text((enum kind)i), kind) != 0)
        i++;
    return (enum kind)i;
}

/* Kinds that no cache has. */
static const struct {
    const char *kind, *resource, *api_version;
} other_kinds[] = {
    {"Secret", "secrets", "v1"},
    {"ConfigMap", "configmaps", "v1"},
    {"Deployment", "deployments", "apps/v1"},
    {"StatefulSet", "statefulsets", "apps/v1"},
    {"DaemonSet", "daemonsets", "apps/v1"},
    {"ReplicaSet", "replicasets", "apps/v1"},
    {"Job", "jobs", "batch/v1"},
    {"CronJob", "cronjobs", "batch/v1"},
    {"HorizontalPodAutoscaler", "horizontalpodautoscalers", "autoscaling/v2"},
    {"ValidatingWebhookConfiguration", "validatingwebhookconfigurations",
     "admissionregistration.k8s.io/v1"},
};

enum { OTHER_KINDS = sizeof other_kinds / sizeof *other_kinds };

/* NULL: no object is of that kind. */
static const char *resource_of(const char *kind, const char **api_version)
{
    enum kind known = kind_named(kind);

    if (known != KIND_COUNT) {
        *api_version = kind_api_version(known);
        return kind_resource(known);
    }
    for (int i = 0; i < OTHER_KINDS; i++)
        if (strcmp(other_kinds[i].kind, kind) == 0) {
            *api_version = other_kinds[i].api_version;
            return other_kinds[i].resource;
        }
    return NULL;
}

struct api_kind api_kind_at(const char *resource)
{
    for (int i = 0; i < OTHER_KINDS; i++)
        if (strcmp(other_kinds[i].resource, resource) == 0)
            return (struct api_kind){other_kinds[i].kind, other_kinds[i].api_version};
    for (int i = 0; i < KIND_COUNT; i++)
        if (strcmp(kind_resource((enum kind)i), resource) == 0)
            return (struct api_kind){kind_text((enum kind)i), kind_api_version((enum kind)i)};
    return (struct api_kind){NULL, NULL};
}

bool api_is_served(const char *resource)
{
    return api_kind_at(resource).kind != NULL;
}

const char *api_text_at(const json_t *object, const char *outer, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(object, outer), key));
    return text == NULL ? "" : text;
}

static void make_key(char *key, size_t size, const char *resource, const char *ns, const char *name)
{
    (void)snprintf(key, size, "%s/%s/%s", resource, ns, name);
}

json_t *api_store_find(const struct api_store *store, const char *resource, const char *ns,
                       const char *name)
{
    char key[600];

    make_key(key, sizeof key, resource, ns, name);
    return json_object_get(store->objects, key);
}

/* Ownership: takes the line. */
static struct api_event *add_event(struct api_store *store, const char *resource, char *line)
{
    struct api_event *grown =
        realloc(store->events, (store->event_count + 1) * sizeof *store->events);

    if (grown == NULL || line == NULL)
        api_store_die("no memory", resource);
    store->events = grown;
    struct api_event *added = &grown[store->event_count++];
    *added = (struct api_event){.version = store->version, .line = line};
    (void)snprintf(added->resource, sizeof added->resource, "%s", resource);
    return added;
}

static void append_event(struct api_store *store, const char *resource, const char *type,
                         json_t *object)
{
    json_t *event = json_pack("{s:s,s:O}", "type", type, "object", object);

    (void)add_event(store, resource, json_dumps(event, JSON_COMPACT));
    json_decref(event);
}

void api_store_add_line(struct api_store *store, const char *resource, const char *line,
                        bool is_fleeting)
{
    const char *at = strstr(line, "VERSION");
    char *text = NULL;

    store->version += !is_fleeting;
    int rc = at == NULL ? asprintf(&text, "%s", line)
                        : asprintf(&text, "%.*s%llu%s", (int)(at - line), line,
                                   (unsigned long long)store->version, at + strlen("VERSION"));
    struct api_event *added = add_event(store, resource, rc < 0 ? NULL : text);
    added->is_fleeting = is_fleeting;
    if (is_fleeting)
        added->version = UINT64_MAX;
}

static void set_version(struct api_store *store, json_t *object)
{
    char version[24];

    (void)snprintf(version, sizeof version, "%llu", (unsigned long long)++store->version);
    json_object_set_new(json_object_get(object, "metadata"), "resourceVersion",
                        json_string(version));
}

bool api_is_finished(const json_t *object)
{
    const char *phase = api_text_at(object, "status", "phase");
    return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
}

void api_store_put(struct api_store *store, json_t *object)
{
    json_t *meta = json_object_get(object, "metadata");
    const char *kind_name = json_string_value(json_object_get(object, "kind"));
    const char *api_version = NULL;
    const char *resource = kind_name == NULL ? NULL : resource_of(kind_name, &api_version);
    char key[600], uid[40];

    if (resource == NULL || meta == NULL || api_text_at(object, "metadata", "name")[0] == '\0')
        api_store_die("no object of a known kind with a name", kind_name == NULL ? "?" : kind_name);
    if (json_object_get(object, "apiVersion") == NULL)
        json_object_set_new(object, "apiVersion", json_string(api_version));
    if (api_text_at(object, "metadata", "uid")[0] == '\0') {
        (void)snprintf(uid, sizeof uid, "00000000-0000-4000-8000-%012llx",
                       (unsigned long long)++store->last_uid);
        json_object_set_new(meta, "uid", json_string(uid));
    }
    set_version(store, object);
    make_key(key, sizeof key, resource, api_text_at(object, "metadata", "namespace"),
             api_text_at(object, "metadata", "name"));
    bool is_new = json_object_get(store->objects, key) == NULL;
    json_object_set_new(store->objects, key, object);
    append_event(store, resource,
                 api_is_finished(object) ? "DELETED"
                 : is_new                ? "ADDED"
                                         : "MODIFIED",
                 object);
}

bool api_store_remove(struct api_store *store, const char *resource, const char *ns,
                      const char *name)
{
    char key[600];

    make_key(key, sizeof key, resource, ns, name);
    json_t *object = json_incref(json_object_get(store->objects, key));
    if (object == NULL)
        return false;
    set_version(store, object);
    append_event(store, resource, "DELETED", object);
    json_object_del(store->objects, key);
    json_decref(object);
    return true;
}
