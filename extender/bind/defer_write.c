#include "extender/bind/defer_write.h"

#include "config/base/log.h"
#include "extender/bind/defer_support.h"
#include "extender/live/events.h"
#include "policy/defer_fs_mount.h"

enum { PATCH_BYTES_MAX = 1 << 20 };

struct writing {
    const struct bind_call *call;
    struct deferral *deferral;
    struct slice *version; /* see defer_write */
};

/* Whether the volume has yet to be written in this form. The other form does not count: a reader of
 * the field does not read the annotation, and an older API server strips the field. */
static bool is_due(const struct deferred_volume *volume, bool as_field)
{
    return as_field ? !volume->has_field : !volume->is_annotated;
}

static size_t count_due(const struct deferral *deferral, bool as_field)
{
    size_t due = 0;

    for (size_t i = 0; i < deferral->volume_count; i++)
        due += is_due(&deferral->volumes[i], as_field);
    return due;
}

/* In both forms. */
static bool is_written(const struct deferral *deferral)
{
    return count_due(deferral, true) == 0 && count_due(deferral, false) == 0;
}

static void put_field(struct buf *body, const struct deferral *deferral)
{
    static const char *const sources[] = {"", "persistentVolumeClaim", "ephemeral", "csi"};
    const char *separator = "";

    buf_put(body, SLICE("},\"spec\":{\"volumes\":["));
    for (size_t i = 0; i < deferral->volume_count; i++) {
        const struct deferred_volume *volume = &deferral->volumes[i];
        if (!is_due(volume, true))
            continue;
        buf_printf(body, "%s{\"name\":", separator);
        buf_json(body, volume->name);
        buf_printf(body, ",\"%s\":{\"deferFSMount\":true}}", sources[volume->source]);
        separator = ",";
    }
    buf_put(body, SLICE("]}}"));
}

/* The annotation's present list, and the volumes that are not in it yet. */
static void put_annotation(struct buf *body, const struct deferral *deferral, struct arena *arena)
{
    struct slice list = deferral->annotation;

    for (size_t i = 0; i < deferral->volume_count; i++)
        if (!annotation_names(list, deferral->volumes[i].name))
            list = arena_printf(arena, "%.*s%s%.*s", SLICE_ARG(list), list.len == 0 ? "" : ",",
                                SLICE_ARG(deferral->volumes[i].name));
    buf_put(body, SLICE(",\"annotations\":{\"" DEFER_FS_MOUNT_ANNOTATION "\":"));
    buf_json(body, list);
    buf_put(body, SLICE("}}}"));
    body->failed |= list.ptr == NULL;
}

static void put_patch(struct buf *body, const struct writing *writing, bool as_field)
{
    buf_put(body, SLICE("{\"metadata\":{\"uid\":"));
    buf_json(body, writing->call->request->pod_uid);
    if (writing->version->len != 0) {
        buf_put(body, SLICE(",\"resourceVersion\":"));
        buf_json(body, *writing->version);
    }
    if (as_field)
        put_field(body, writing->deferral);
    else
        put_annotation(body, writing->deferral, writing->call->arena);
}

/* Reads from the answer what the pod has now: an API server whose feature gate is off drops the
 * field and answers 200, and an admission webhook may remove an annotation. */
static int read_pod(const struct writing *writing, struct slice body, struct error *err)
{
    struct deferral *deferral = writing->deferral;
    struct pod_object pod;
    struct pull json;

    pull_init(&json, body);
    if (!pod_read(&json, writing->call->arena, &pod) || pod.mounts == NULL ||
        pod.meta.resource_version.len == 0)
        return error_set(err, ERROR_UNAVAILABLE, "the API server's answer cannot be read");
    for (size_t i = 0; i < deferral->volume_count; i++) {
        struct deferred_volume *volume = &deferral->volumes[i];
        const struct pod_volume *there = mounts_find(pod.mounts, volume->name);
        bool was_there = volume->has_field || volume->is_annotated;
        volume->has_field = there != NULL && there->field == DEFER_FIELD_TRUE;
        volume->is_annotated = there != NULL && there->is_annotated;
        if (!was_there && (volume->has_field || volume->is_annotated))
            deferral_count_volume(writing->call->state, volume);
    }
    *writing->version = pod.meta.resource_version;
    return 0;
}

static int evaluate_answer(const struct writing *writing, bool as_field,
                           const struct request_answer *answer, struct error *err)
{
    if (answer->status == 200)
        return read_pod(writing, answer->body, err);
    writing->deferral->is_stale = answer->status == 409;
    if (writing->deferral->is_stale)
        return error_set(err, ERROR_UNAVAILABLE, "pod %.*s keeps changing",
                         SLICE_ARG(writing->call->request->pod_name));
    if (as_field && answer->status / 100 == 4)
        defer_support_forget(writing->call->state);
    return error_set(
        err, ERROR_UNAVAILABLE, "deferFSMount could not be written as %s: %.*s (status %u)",
        as_field ? "field" : "annotation",
        SLICE_ARG(answer->status == 0 ? SLICE("no answer from the API server") : answer->message),
        answer->status);
}

static int send_patch(const struct writing *writing, const struct buf *body,
                      struct request_answer *answer, struct error *err)
{
    const struct bind_call *call = writing->call;
    struct request request = {.method = "PATCH",
                              .object = bind_request_pod(call->request),
                              .suffix = "?fieldValidation=Strict",
                              .content_type = "application/strategic-merge-patch+json",
                              .body = buf_slice(body),
                              .timeout_ms = bind_call_left_ms(call)};

    if (body->failed)
        return error_no_memory(err);
    if (request.timeout_ms == 0)
        return error_set(err, ERROR_TIMEOUT, "deferFSMount could not be written in time");
    return requests_call(call->state->api, &request, call->arena, answer, err);
}

static int write_due(const struct writing *writing, bool as_field, struct error *err)
{
    struct request_answer answer = {0};
    struct buf body;

    if (count_due(writing->deferral, as_field) == 0)
        return 0;
    buf_init(&body, PATCH_BYTES_MAX);
    put_patch(&body, writing, as_field);
    int rc = send_patch(writing, &body, &answer, err);
    buf_dispose(&body);
    return rc < 0 ? rc : evaluate_answer(writing, as_field, &answer, err);
}

/* With Auto, a field that the API server drops is written as an annotation instead. */
static int write_as_configured(const struct writing *writing, int apply, struct error *err)
{
    bool as_field = apply == DEFER_FIELD;

    if (apply == DEFER_AUTO && defer_support_find(writing->call->state, &as_field, err) < 0)
        return err->code;
    if (write_due(writing, as_field, err) < 0)
        return err->code;
    if (apply == DEFER_AUTO && as_field && count_due(writing->deferral, true) != 0) {
        defer_support_drop(writing->call->state);
        as_field = false;
        if (write_due(writing, as_field, err) < 0)
            return err->code;
    }
    if (count_due(writing->deferral, as_field) == 0)
        return 0;
    return error_set(err, ERROR_UNAVAILABLE, "deferFSMount could not be written as %s",
                     as_field ? "field: the API server drops it (is its feature gate on?)"
                              : "annotation: it is not on the pod that the API server answered "
                                "with (does an admission webhook remove it?)");
}

static int configured(const struct bind_call *call)
{
    (void)pthread_rwlock_rdlock(&call->state->lock);
    int apply = call->state->config->defer_fs_mount.apply;
    (void)pthread_rwlock_unlock(&call->state->lock);
    return apply;
}

static void report_failure(const struct writing *writing, const struct error *err)
{
    const struct bind_call *call = writing->call;
    struct object_reference pod = bind_request_pod(call->request);

    log_warn("deferFSMount could not be written: the pod is not bound",
             LOG_SLICE("namespace", pod.ns), LOG_SLICE("pod", pod.name),
             LOG_STR("error", err->message));
    events_post(call->state->events, call->state->api, &pod, "Warning", "DeferFSMountFailed",
                slice_of(err->message));
}

int defer_write(const struct bind_call *call, struct deferral *deferral, struct slice *version,
                struct error *err)
{
    struct writing writing = {call, deferral, version};
    int apply = configured(call);

    deferral->is_stale = false;
    if (apply == DEFER_DISABLED || deferral->opts_out)
        return 0;
    /* What the cache has is not enough: an API server that was downgraded since strips the field.
     * Auto notices the reconnect. Here, the write is repeated; it changes nothing if the field is
     * there. */
    for (size_t i = 0; apply == DEFER_FIELD && i < deferral->volume_count; i++)
        deferral->volumes[i].has_field = false;
    if (is_written(deferral))
        return 0;
    int rc = write_as_configured(&writing, apply, err);
    if (rc < 0 && !deferral->is_stale)
        report_failure(&writing, err);
    return rc;
}

int defer_check(const struct bind_call *call, const struct deferral *deferral, struct error *err)
{
    int apply = configured(call);
    bool as_field = apply == DEFER_FIELD;

    if (apply == DEFER_DISABLED || deferral->opts_out || is_written(deferral))
        return 0;
    if (apply == DEFER_AUTO && defer_support_find(call->state, &as_field, err) < 0)
        return err->code;
    for (size_t i = 0; i < deferral->volume_count; i++)
        if (is_due(&deferral->volumes[i], as_field))
            return error_set(
                err, ERROR_INVALID,
                "volume %.*s is to be deferred, and a pod that is created with spec.nodeName "
                "cannot be changed: set %s, or leave spec.nodeName to a scheduler",
                SLICE_ARG(deferral->volumes[i].name),
                as_field ? "deferFSMount: true" : "the annotation " DEFER_FS_MOUNT_ANNOTATION);
    return 0;
}
