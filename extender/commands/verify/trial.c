#include "extender/commands/verify/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "cache/objects/details.h"
#include "config/base/clock.h"

#define LABEL    "app.kubernetes.io/managed-by"
#define OWNER    "claimguard-verify"
#define ENDS_KEY "claimguard.io/verify-ends"

enum {
    BODY_BYTES_MAX = 64 << 10,
    SUFFIX_LEN = 8,
    WAIT_MS = 300,
    LEFTOVERS_MAX = 100, /* of a kind, in one run */
};

/* What has no namespace, in the order in which it is removed. */
static const struct trial_kind {
    const char *path, *text;
} kinds[] = {
    {TRIAL_WEBHOOK, "ValidatingWebhookConfiguration"},
    {"/api/v1/namespaces", "Namespace"},
    {"/api/v1/persistentvolumes", "PersistentVolume"},
};

/* ---- requests ---- */

static struct arena *arena_of(const struct trial *trial)
{
    return &trial->api->arena;
}

int trial_check_time(const struct trial *trial, struct error *err)
{
    return monotonic_ns() < trial->ends_ns
               ? 0
               : error_set(err, ERROR_TIMEOUT, "not done in time (--timeout)");
}

/* A request whose body is in the arena; the buffer is freed. */
static struct request make_request(const struct trial *trial, struct slice path, struct buf *body)
{
    struct slice text = arena_copy(arena_of(trial), buf_slice(body));
    bool is_made = !body->failed && text.ptr != NULL;

    buf_dispose(body);
    return (struct request){.method = "POST",
                            .path = is_made ? path.ptr : NULL,
                            .content_type = "application/json",
                            .body = text};
}

static int send(struct trial *trial, const struct request *request, const char *what,
                struct request_answer *answer, struct error *err)
{
    if (request->path == NULL)
        return error_no_memory(err);
    if (trial_check_time(trial, err) < 0)
        return err->code;
    return api_call(trial->api, request, answer, err) < 0 ? error_wrap(err, "%s", what) : 0;
}

int trial_post(struct trial *trial, const char *path, struct buf *body, const char *what,
               struct request_answer *answer, struct error *err)
{
    struct request request = make_request(trial, slice_of(path), body);

    if (send(trial, &request, what, answer, err) < 0)
        return err->code;
    return answer->status / 100 == 2 ? 0 : api_refused(answer, what, err);
}

static struct slice path_in(const struct trial *trial, const char *resource, const char *name)
{
    return arena_printf(arena_of(trial), "/api/v1/namespaces/%s/%s%s%s", trial->name, resource,
                        *name == '\0' ? "" : "/", name);
}

int trial_wait(const struct trial *trial, struct error *err)
{
    const struct timespec moment = {.tv_nsec = WAIT_MS * 1000000L};

    (void)nanosleep(&moment, NULL);
    if (trial->api->interrupt != NULL && *trial->api->interrupt != 0)
        return error_set(err, ERROR_UNAVAILABLE, "interrupted");
    return trial_check_time(trial, err);
}

/* ---- objects ---- */

void trial_put_metadata(const struct trial *trial, const char *name, struct buf *out)
{
    buf_printf(out,
               "\"metadata\":{\"name\":\"%s\",\"labels\":{\"" LABEL "\":\"" OWNER
               "\"},\"annotations\":{\"" ENDS_KEY "\":\"%lld\"}}",
               name, (long long)trial->ends_s);
}

static int create_namespace(struct trial *trial, struct error *err)
{
    struct request_answer answer = {.status = 0};
    struct buf body;

    buf_init(&body, BODY_BYTES_MAX);
    buf_put(&body, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"Namespace\","));
    trial_put_metadata(trial, trial->name, &body);
    buf_put(&body, SLICE("}"));
    trial->has_namespace = true; /* if there is no answer, it may have been made */
    return trial_post(trial, "/api/v1/namespaces", &body, "a namespace", &answer, err);
}

/* One that no kubelet can mount: nothing is a socket at that path. */
static int create_volume(struct trial *trial, const char *claim, struct error *err)
{
    struct request_answer answer = {.status = 0};
    struct buf body;

    buf_init(&body, BODY_BYTES_MAX);
    buf_put(&body, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolume\","));
    trial_put_metadata(trial, trial->name, &body);
    buf_printf(&body,
               ",\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"],\"capacity\":{\"storage\":"
               "\"1Mi\"},\"persistentVolumeReclaimPolicy\":\"Retain\",\"storageClassName\":\"%s\","
               "\"hostPath\":{\"path\":\"/nonexistent/%s\",\"type\":\"Socket\"},\"claimRef\":{"
               "\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"namespace\":\"%s\","
               "\"name\":\"%s\"}}}",
               trial->name, trial->name, trial->name, claim);
    trial->has_volume = true;
    return trial_post(trial, "/api/v1/persistentvolumes", &body, "a PersistentVolume", &answer,
                      err);
}

int trial_claim(struct trial *trial, const char *name, bool has_volume, struct error *err)
{
    struct slice path = path_in(trial, "persistentvolumeclaims", "");
    struct request_answer answer = {.status = 0};
    struct buf body;

    if (has_volume && create_volume(trial, name, err) < 0)
        return err->code;
    buf_init(&body, BODY_BYTES_MAX);
    buf_put(&body, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\","));
    trial_put_metadata(trial, name, &body);
    buf_printf(&body,
               ",\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"],\"storageClassName\":\"%s\","
               "%s%s%s\"resources\":{\"requests\":{\"storage\":\"1Mi\"}}}}",
               trial->name, has_volume ? "\"volumeName\":\"" : "", has_volume ? trial->name : "",
               has_volume ? "\"," : "");
    return trial_post(trial, path.ptr, &body, "a claim", &answer, err);
}

/* ---- pods ---- */

/* As the strictest policies want pods (Pod Security: restricted). */
#define CONTAINER \
    "\"automountServiceAccountToken\":false,\"terminationGracePeriodSeconds\":0," \
    "\"securityContext\":{\"runAsNonRoot\":true,\"seccompProfile\":{\"type\":" \
    "\"RuntimeDefault\"}},\"containers\":[{\"name\":\"none\",\"image\":\"claimguard.invalid/" \
    "none\"," \
    "\"imagePullPolicy\":\"Never\",\"securityContext\":{\"allowPrivilegeEscalation\":false," \
    "\"capabilities\":{\"drop\":[\"ALL\"]}}}]"

struct request trial_pod_request(const struct trial *trial, const struct trial_pod *pod,
                                 const char *query)
{
    struct slice path =
        arena_printf(arena_of(trial), "/api/v1/namespaces/%s/pods%s", trial->name, query);
    struct buf body;

    buf_init(&body, BODY_BYTES_MAX);
    buf_put(&body, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"Pod\","));
    trial_put_metadata(trial, pod->name, &body);
    buf_put(&body, SLICE(",\"spec\":{" CONTAINER ",\"schedulerName\":"));
    buf_json(&body, slice_of(pod->scheduler == NULL ? trial->name : pod->scheduler));
    if (pod->names_node)
        buf_printf(&body, ",\"nodeName\":\"%s\"", trial->name);
    buf_printf(&body,
               ",\"volumes\":[{\"name\":\"data\",\"persistentVolumeClaim\":{\"claimName\":"
               "\"%s\"}}]}}",
               pod->claim);
    return make_request(trial, path, &body);
}

struct request trial_binding_request(const struct trial *trial, const char *pod, struct slice uid,
                                     bool is_old_path, const char *query)
{
    struct slice path = arena_printf(arena_of(trial), "/api/v1/namespaces/%s/%s%s%s%s", trial->name,
                                     is_old_path ? "bindings" : "pods/", is_old_path ? "" : pod,
                                     is_old_path ? "" : "/binding", query);
    struct buf body;

    buf_init(&body, BODY_BYTES_MAX);
    buf_printf(&body,
               "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"%s\","
               "\"uid\":",
               pod);
    buf_json(&body, uid);
    buf_printf(&body, "},\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"%s\"}}",
               trial->name);
    return make_request(trial, path, &body);
}

static const struct pull_field condition_fields[] = {
    PULL_FIELD("type", PULL_STRING, condition, type),
    PULL_FIELD("status", PULL_STRING, condition, status),
    PULL_FIELD("message", PULL_STRING, condition, message),
};

/* Of a pod or a claim. */
struct read_object {
    struct trial_object object;
    struct pull_items conditions;
};

static const struct pull_field object_fields[] = {
    PULL_IN("metadata", PULL_FIELD("uid", PULL_STRING, read_object, object.uid)),
    PULL_IN("spec", PULL_FIELD("nodeName", PULL_STRING, read_object, object.node)),
    PULL_IN("status", PULL_FIELD("phase", PULL_STRING, read_object, object.phase),
            PULL_ITEMS_OF("conditions", read_object, conditions, condition, condition_fields)),
};

static int decode(struct trial *trial, struct slice body, struct trial_object *out,
                  struct error *err)
{
    struct read_object read = {.object = {.is_there = true}};

    if (!pull_fields_of(body, object_fields, PULL_FIELD_COUNT(object_fields), arena_of(trial),
                        &read) ||
        read.object.uid.len == 0)
        return error_set(err, ERROR_INVALID, "the API server's answer is no such object");
    const struct condition *scheduled = details_condition(&read.conditions, SLICE("PodScheduled"));
    if (scheduled != NULL && slice_equal(scheduled->status, SLICE("False")))
        read.object.message = scheduled->message;
    *out = read.object;
    return 0;
}

/* Until a controller has made the ServiceAccount of a new namespace, its pods are refused. */
static bool lacks_account(const struct request_answer *answer)
{
    return answer->status == 403 && slice_has(answer->message, SLICE("service account"));
}

int trial_create_pod(struct trial *trial, const struct trial_pod *pod, struct slice *uid,
                     struct error *err)
{
    struct request request = trial_pod_request(trial, pod, "");
    struct request_answer answer = {.status = 0};
    struct trial_object object;

    while (answer.status == 0 || lacks_account(&answer))
        if ((answer.status != 0 && trial_wait(trial, err) < 0) ||
            send(trial, &request, "a pod", &answer, err) < 0)
            return err->code;
    if (answer.status / 100 != 2)
        return api_refused(&answer, "a pod", err);
    if (decode(trial, answer.body, &object, err) < 0)
        return err->code;
    *uid = object.uid;
    return 0;
}

int trial_read(struct trial *trial, const char *resource, const char *name,
               struct trial_object *out, struct error *err)
{
    struct request request = {.method = "GET", .path = path_in(trial, resource, name).ptr};
    struct request_answer answer = {.status = 0};

    *out = (struct trial_object){.is_there = false};
    if (send(trial, &request, name, &answer, err) < 0)
        return err->code;
    if (answer.status == 404)
        return 0;
    return answer.status == 200 ? decode(trial, answer.body, out, err)
                                : api_refused(&answer, name, err);
}

/* ---- a nomination ---- */

struct listed_node {
    struct slice name;
    bool is_cordoned;
    struct pull_items conditions;
};
struct listed_nodes {
    struct pull_items items;
};

static const struct pull_field node_fields[] = {
    PULL_IN("metadata", PULL_FIELD("name", PULL_STRING, listed_node, name)),
    PULL_IN("spec", PULL_FIELD("unschedulable", PULL_BOOLEAN, listed_node, is_cordoned)),
    PULL_IN("status",
            PULL_ITEMS_OF("conditions", listed_node, conditions, condition, condition_fields)),
};
static const struct pull_field nodes_fields[] = {
    PULL_ITEMS_OF("items", listed_nodes, items, listed_node, node_fields),
};

/* The first node of the list that is ready; NULL: there is none. */
static const struct listed_node *find_ready(const struct listed_nodes *nodes)
{
    const struct listed_node *items = nodes->items.items;

    for (size_t i = 0; i < nodes->items.count; i++) {
        const struct condition *ready = details_condition(&items[i].conditions, SLICE("Ready"));
        if (!items[i].is_cordoned && (ready == NULL || slice_equal(ready->status, SLICE("True"))))
            return &items[i];
    }
    return NULL;
}

static int write_nomination(struct trial *trial, const char *pod, struct slice node,
                            struct error *err)
{
    struct slice path =
        arena_printf(arena_of(trial), "/api/v1/namespaces/%s/pods/%s/status", trial->name, pod);
    struct request_answer answer = {.status = 0};
    struct buf body;

    buf_init(&body, BODY_BYTES_MAX);
    buf_put(&body, SLICE("{\"status\":{\"nominatedNodeName\":"));
    buf_json(&body, node);
    buf_put(&body, SLICE("}}"));
    struct request request = make_request(trial, path, &body);
    request.method = "PATCH";
    request.content_type = "application/merge-patch+json";
    if (send(trial, &request, "a pod's nomination", &answer, err) < 0)
        return err->code;
    return answer.status == 200 ? 0 : api_refused(&answer, "a pod's nomination", err);
}

int trial_nominate(struct trial *trial, const char *pod, bool *is_done, struct error *err)
{
    struct request request = {.method = "GET", .path = "/api/v1/nodes?limit=50"};
    struct listed_nodes nodes = {.items = {.count = 0}};
    struct request_answer answer = {.status = 0};

    *is_done = false;
    if (send(trial, &request, "nodes", &answer, err) < 0)
        return err->code;
    if (answer.status != 200)
        return api_refused(&answer, "nodes", err);
    if (!pull_fields_of(answer.body, nodes_fields, PULL_FIELD_COUNT(nodes_fields), arena_of(trial),
                        &nodes))
        return error_set(err, ERROR_INVALID, "nodes: the answer is no list");
    const struct listed_node *node = find_ready(&nodes);
    if (node == NULL)
        return 0;
    *is_done = true;
    return write_nomination(trial, pod, node->name, err);
}

/* ---- deleting ---- */

static int delete_at(struct trial *trial, const char *path, const char *what, struct error *err)
{
    struct request request = {.method = "DELETE", .path = path};
    struct request_answer answer = {.status = 0};

    if (path == NULL)
        return error_no_memory(err);
    if (api_call(trial->api, &request, &answer, err) < 0)
        return error_wrap(err, "%s", what);
    return answer.status / 100 == 2 || answer.status == 404 ? 0 : api_refused(&answer, what, err);
}

int trial_remove(struct trial *trial, const char *resource, const char *name, struct error *err)
{
    struct slice path = path_in(trial, resource, name);

    if (path.ptr != NULL)
        path = arena_printf(arena_of(trial), "%s?gracePeriodSeconds=0", path.ptr);
    return delete_at(trial, path.ptr, name, err);
}

int trial_delete(struct trial *trial, const char *path, struct slice name, struct error *err)
{
    struct slice whole = arena_printf(arena_of(trial), "%s/%.*s", path, SLICE_ARG(name));

    return delete_at(trial, whole.ptr, path, err);
}

/* ---- what an earlier run has left ---- */

struct leftover {
    struct slice name, ends, deleted;
};
struct leftovers {
    struct pull_items items;
};

static const struct pull_field list_fields[] = {
    PULL_ITEMS_IN(
        "items", leftovers, items, leftover,
        PULL_IN("metadata", PULL_FIELD("name", PULL_NAME, leftover, name),
                PULL_FIELD("deletionTimestamp", PULL_STRING, leftover, deleted),
                PULL_IN("annotations", PULL_FIELD(ENDS_KEY, PULL_STRING, leftover, ends)))),
};

/* Its run is over. Anybody may set the label, so the name has to be one that we give. */
static bool is_left(const struct leftover *leftover)
{
    struct slice name = leftover->name;
    size_t prefix_len = sizeof TRIAL_PREFIX - 1;
    char ends[24];

    (void)snprintf(ends, sizeof ends, "%.*s", SLICE_ARG(leftover->ends));
    for (size_t i = 0; i < name.len; i++)
        if (strchr("abcdefghijklmnopqrstuvwxyz0123456789-", name.ptr[i]) == NULL)
            return false;
    return name.len == prefix_len + SUFFIX_LEN && memcmp(name.ptr, TRIAL_PREFIX, prefix_len) == 0 &&
           leftover->deleted.len == 0 && strtoll(ends, NULL, 10) < now_ms() / 1000;
}

static int remove_leftovers(struct trial *trial, const struct trial_kind *kind, struct error *err)
{
    struct slice path =
        arena_printf(arena_of(trial), "%s?labelSelector=" LABEL "%%3D" OWNER, kind->path);
    struct request request = {.method = "GET", .path = path.ptr};
    struct leftovers found = {.items = {.count = 0}};
    struct request_answer answer = {.status = 0};

    if (send(trial, &request, kind->text, &answer, err) < 0)
        return err->code;
    if (answer.status == 403)
        return 0; /* then it was not made, either */
    if (answer.status != 200)
        return api_refused(&answer, kind->text, err);
    if (!pull_fields_of(answer.body, list_fields, PULL_FIELD_COUNT(list_fields), arena_of(trial),
                        &found))
        return error_set(err, ERROR_INVALID, "%s: the answer is no list", kind->text);
    const struct leftover *items = found.items.items;
    for (size_t i = 0; i < found.items.count && i < LEFTOVERS_MAX; i++)
        if (is_left(&items[i]) && trial_delete(trial, kind->path, items[i].name, err) < 0)
            return err->code;
    return 0;
}

/* ---- from the beginning to the end ---- */

static int choose_name(struct trial *trial, struct error *err)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    unsigned char random[SUFFIX_LEN];
    size_t len = sizeof TRIAL_PREFIX - 1;

    if (getrandom(random, sizeof random, 0) != sizeof random)
        return error_set(err, ERROR_SYSTEM, "no random numbers");
    memcpy(trial->name, TRIAL_PREFIX, len);
    for (size_t i = 0; i < SUFFIX_LEN; i++)
        trial->name[len++] = letters[random[i] % (sizeof letters - 1)];
    return 0;
}

int trial_begin(struct trial *out, struct api *api, int64_t ms, struct error *err)
{
    *out = (struct trial){.api = api,
                          .ends_ns = monotonic_ns() + (uint64_t)ms * NS_PER_MS,
                          .ends_s = (now_ms() + ms) / 1000 + 1};
    if (choose_name(out, err) < 0)
        return err->code;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (remove_leftovers(out, &kinds[i], err) < 0)
            return err->code;
    return create_namespace(out, err);
}

int trial_end(struct trial *trial, struct error *err)
{
    const bool are_there[] = {trial->has_webhook, trial->has_namespace, trial->has_volume};
    struct error problem = {0};
    int rc = 0;

    trial->api->interrupt = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (are_there[i] && trial_delete(trial, kinds[i].path, slice_of(trial->name), &problem) < 0)
            rc = error_set(err, problem.code, "%s %s may be left: %s", kinds[i].text, trial->name,
                           problem.message);
    return rc;
}
