/* Requests that are no watch: what they do to the objects, and what is answered. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/api_store_internal.h"

json_t *api_status(unsigned code, const char *reason, const char *message)
{
    return json_pack("{s:s,s:s,s:{},s:s,s:s,s:s,s:i}", "kind", "Status", "apiVersion", "v1",
                     "metadata", "status", code < 300 ? "Success" : "Failure", "message", message,
                     "reason", reason, "code", (int)code);
}

static unsigned fail(json_t **answer, unsigned code, const char *reason, const char *message)
{
    *answer = api_status(code, reason, message);
    return code;
}

static bool is_listed(const char *key, const json_t *object, const char *resource, const char *ns)
{
    size_t len = strlen(resource);

    return strncmp(key, resource, len) == 0 && key[len] == '/' && !api_is_finished(object) &&
           (ns[0] == '\0' || strcmp(api_text_at(object, "metadata", "namespace"), ns) == 0);
}

static unsigned list(const struct api_store *store, const struct api_path *path, json_t **answer)
{
    const struct api_kind kind = api_kind_at(path->resource);
    char kind_list[80], version[24], value[64], next[24] = "";
    size_t limit = strtoul(api_path_value(path, "limit", value, sizeof value), NULL, 10);
    size_t from = strtoul(api_path_value(path, "continue", value, sizeof value), NULL, 10);
    size_t at = 0;
    const char *key;
    json_t *object, *items = json_array();

    json_object_foreach (store->objects, key, object) {
        if (!is_listed(key, object, path->resource, path->ns))
            continue;
        if (at >= from && (limit == 0 || at < from + limit)) {
            json_t *item = json_copy(object); /* items of a list do not say what they are */
            json_object_del(item, "kind");
            json_object_del(item, "apiVersion");
            json_array_append_new(items, item);
        }
        at++;
    }
    if (limit != 0 && at > from + limit)
        (void)snprintf(next, sizeof next, "%zu", from + limit);
    (void)snprintf(kind_list, sizeof kind_list, "%sList", kind.kind);
    (void)snprintf(version, sizeof version, "%llu", (unsigned long long)store->version);
    *answer =
        json_pack("{s:s,s:s,s:{s:s,s:s},s:o}", "kind", kind_list, "apiVersion", kind.api_version,
                  "metadata", "resourceVersion", version, "continue", next, "items", items);
    return 200;
}

char *api_store_stream(const struct api_store *store, const char *resource)
{
    char *text = NULL, version[24];
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    const char *key;
    json_t *object;

    if (out == NULL)
        api_store_die("no memory", resource);
    json_object_foreach (store->objects, key, object) {
        if (!is_listed(key, object, resource, ""))
            continue;
        char *dumped = json_dumps(object, JSON_COMPACT);
        (void)fprintf(out, "{\"type\":\"ADDED\",\"object\":%s}\n", dumped);
        free(dumped);
    }
    (void)snprintf(version, sizeof version, "%llu", (unsigned long long)store->version);
    (void)fprintf(out,
                  "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"%s\",\"apiVersion\":\"%s\","
                  "\"metadata\":{\"resourceVersion\":\"%s\",\"annotations\":"
                  "{\"k8s.io/initial-events-end\":\"true\"}}}}\n",
                  api_kind_at(resource).kind, api_kind_at(resource).api_version, version);
    (void)fclose(out);
    return text;
}

/* ---- writes ---- */

/* The element of the array with the same name (or type) as the one given, or NULL. */
static json_t *same_element(json_t *array, const json_t *element)
{
    static const char *const keys[] = {"name", "type"};
    json_t *other;
    size_t i;

    for (size_t k = 0; k < 2; k++) {
        const json_t *value = json_object_get(element, keys[k]);
        json_array_foreach (array, i, other)
            if (value != NULL && json_equal(json_object_get(other, keys[k]), value))
                return other;
    }
    return NULL;
}

/* RFC 7396; strategic: arrays of named elements are merged by name. */
static void merge(json_t *into, const json_t *patch, bool is_strategic)
{
    const char *key;
    json_t *value, *element;
    size_t i;

    json_object_foreach ((json_t *)(uintptr_t)patch, key, value) {
        json_t *old = json_object_get(into, key);
        if (json_is_null(value)) {
            json_object_del(into, key);
        } else if (json_is_object(value)) {
            if (!json_is_object(old)) {
                json_object_set_new(into, key, json_object());
                old = json_object_get(into, key);
            }
            merge(old, value, is_strategic);
        } else if (is_strategic && json_is_array(value) && json_is_array(old)) {
            json_array_foreach (value, i, element) {
                json_t *same = same_element(old, element);
                if (same != NULL)
                    merge(same, element, true);
                else
                    json_array_append_new(old, json_deep_copy(element));
            }
        } else {
            json_object_set_new(into, key, json_deep_copy(value));
        }
    }
}

/* Takes deferFSMount out of a pod's volumes; returns whether there was any. */
static bool strip_field(json_t *pod)
{
    static const char *const sources[] = {"persistentVolumeClaim", "ephemeral", "csi"};
    json_t *volume;
    size_t i;
    bool found = false;

    json_array_foreach (json_object_get(json_object_get(pod, "spec"), "volumes"), i, volume)
        for (size_t k = 0; k < 3; k++)
            found |= json_object_del(json_object_get(volume, sources[k]), "deferFSMount") == 0;
    return found;
}

/* Whether a pod that is changed keeps the field: with the gate off, one that had it before. */
static bool keeps_field(const struct api_store *store, const json_t *object)
{
    json_t *copy = json_deep_copy(object);
    bool had_field = strip_field(copy);

    json_decref(copy);
    return store->field == API_FIELD_KEPT || (store->field == API_FIELD_GATED && had_field);
}

/* A PATCH, or a Binding, carries what it needs to be true. 0: it is. */
static unsigned check_preconditions(const json_t *object, const char *uid, const char *version,
                                    json_t **answer)
{
    if (uid[0] != '\0' && strcmp(uid, api_text_at(object, "metadata", "uid")) != 0)
        return fail(answer, 409, "Conflict", "the UID in the precondition does not match");
    if (version[0] != '\0' &&
        strcmp(version, api_text_at(object, "metadata", "resourceVersion")) != 0)
        return fail(answer, 409, "Conflict",
                    "the object has been modified; please apply your changes to the latest "
                    "version and try again");
    return 0;
}

static unsigned patch(struct api_store *store, const struct api_path *path, const json_t *body,
                      bool is_strategic, json_t **answer)
{
    json_t *object = api_store_find(store, path->resource, path->ns, path->name);
    unsigned status = check_preconditions(object, api_text_at(body, "metadata", "uid"),
                                          api_text_at(body, "metadata", "resourceVersion"), answer);
    if (status != 0)
        return status;
    bool keeps = keeps_field(store, object);
    json_t *changed = json_deep_copy(object);
    if (store->field == API_FIELD_UNKNOWN) /* it does not see it */
        (void)strip_field(changed);
    merge(changed, body, is_strategic);
    if (!keeps && strip_field(changed) && store->field == API_FIELD_UNKNOWN &&
        strstr(path->query, "fieldValidation=Strict") != NULL) {
        json_decref(changed);
        return fail(answer, 422, "Invalid", "strict decoding error: unknown field");
    }
    if (strstr(path->query, "dryRun=All") == NULL && !json_equal(changed, object))
        api_store_put(store, json_incref(changed)); /* else nothing is written */
    *answer = changed;
    return 200;
}

static unsigned bind_pod(struct api_store *store, const struct api_path *path, const json_t *body,
                         json_t **answer)
{
    json_t *pod = api_store_find(store, "pods", path->ns, path->name);
    unsigned status = check_preconditions(pod, api_text_at(body, "metadata", "uid"),
                                          api_text_at(body, "metadata", "resourceVersion"), answer);
    if (status != 0)
        return status;
    if (api_text_at(pod, "spec", "nodeName")[0] != '\0')
        return fail(answer, 409, "Conflict", "pod is already assigned to a node");
    if (api_text_at(pod, "metadata", "deletionTimestamp")[0] != '\0')
        return fail(answer, 409, "Conflict", "pod is being deleted, cannot be assigned");
    json_t *bound = json_deep_copy(pod);
    if (store->field == API_FIELD_UNKNOWN)
        (void)strip_field(bound);
    if (json_object_get(bound, "spec") == NULL)
        json_object_set_new(bound, "spec", json_object());
    json_object_set_new(json_object_get(bound, "spec"), "nodeName",
                        json_string(api_text_at(body, "target", "name")));
    api_store_put(store, bound);
    return fail(answer, 201, "", "");
}

/* A POST of a new object. */
static unsigned create(struct api_store *store, const struct api_path *path, const json_t *body,
                       json_t **answer)
{
    const char *name = api_text_at(body, "metadata", "name");

    if (api_store_find(store, path->resource, path->ns, name) != NULL)
        return fail(answer, 409, "AlreadyExists", "it exists already");
    *answer = json_deep_copy(body);
    api_store_put(store, json_incref(*answer));
    return 201;
}

/* An Eviction, or a DELETE: an assigned pod terminates, another one is gone. */
static unsigned delete_object(struct api_store *store, const struct api_path *path,
                              const json_t *options, json_t **answer)
{
    json_t *object = api_store_find(store, path->resource, path->ns, path->name);
    const json_t *dry_run = json_object_get(options, "dryRun");
    unsigned status =
        check_preconditions(object, api_text_at(options, "preconditions", "uid"), "", answer);

    if (status != 0)
        return status;
    *answer = json_deep_copy(object);
    if (json_array_size(dry_run) != 0)
        return 200;
    if (api_text_at(object, "spec", "nodeName")[0] == '\0' || api_is_finished(object)) {
        (void)api_store_remove(store, path->resource, path->ns, path->name);
        return 200;
    }
    json_t *terminating = json_deep_copy(object);
    json_object_set_new(json_object_get(terminating, "metadata"), "deletionTimestamp",
                        json_string("2026-11-20T19:37:44Z"));
    api_store_put(store, terminating);
    return 200;
}

static unsigned show_openapi(const struct api_store *store, json_t **answer)
{
    json_t *properties = json_pack("{s:{}}", "claimName");

    if (store->field != API_FIELD_UNKNOWN)
        json_object_set_new(properties, "deferFSMount", json_pack("{s:s}", "type", "boolean"));
    *answer =
        json_pack("{s:s,s:{s:{s:{s:o}}}}", "openapi", "3.0.0", "components", "schemas",
                  "io.k8s.api.core.v1.PersistentVolumeClaimVolumeSource", "properties", properties);
    return 200;
}

static unsigned handle_object(struct api_store *store, const struct api_request_head *head,
                              const struct api_path *path, const json_t *body, json_t **answer)
{
    json_t *object = api_store_find(store, path->resource, path->ns, path->name);

    if (object == NULL) {
        (void)fail(answer, 404, "NotFound", "not found");
        json_object_set_new(*answer, "details",
                            json_pack("{s:s,s:s}", "name", path->name, "kind", path->resource));
        return 404;
    }
    if (strcmp(head->method, "GET") == 0) {
        *answer = json_incref(object);
        return 200;
    }
    if (strcmp(head->method, "PATCH") == 0)
        return patch(store, path, body, strstr(head->content_type, "strategic") != NULL, answer);
    if (strcmp(path->sub, "binding") == 0)
        return bind_pod(store, path, body, answer);
    if (strcmp(path->sub, "eviction") == 0)
        return delete_object(store, path, json_object_get(body, "deleteOptions"), answer);
    if (strcmp(head->method, "DELETE") == 0)
        return delete_object(store, path, body, answer);
    return fail(answer, 405, "MethodNotAllowed", head->method);
}

unsigned api_store_handle(struct api_store *store, const struct api_request_head *head,
                          const char *body, json_t **answer)
{
    struct api_path path;
    json_error_t error;
    json_t *json = body[0] == '\0' ? NULL : json_loads(body, JSON_ALLOW_NUL, &error);
    unsigned status;

    *answer = NULL;
    if (body[0] != '\0' && json == NULL)
        api_store_die("the body is no JSON", body);
    if (strncmp(head->target, "/openapi/v3/api/v1", 18) == 0)
        status = show_openapi(store, answer);
    else if (!api_path_parse(&path, head->target))
        status = fail(answer, 404, "NotFound", "the path is not known");
    else if (strcmp(path.resource, "events") == 0 && strcmp(head->method, "POST") == 0)
        status = fail(answer, 201, "", "");
    else if (!api_is_served(path.resource))
        status = fail(answer, 404, "NotFound", "the resource is not served");
    else if (path.name[0] == '\0' && strcmp(head->method, "POST") == 0)
        status = create(store, &path, json, answer);
    else if (path.name[0] == '\0')
        status = list(store, &path, answer);
    else
        status = handle_object(store, head, &path, json, answer);
    json_decref(json);
    return status;
}
