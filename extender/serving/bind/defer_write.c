/*
 * Writes a deferral on a pod before the pod is bound, so that no kubelet ever sees the
 * pod without it. deferFSMount.apply says how:
 *
 *   Field        deferFSMount: true in the volume's source (KEP-2857), with
 *                fieldValidation=Strict: an API server that does not know the field reports an
 *                error, instead of dropping the field
 *   Annotation   claimguard.io/defer-fs-mount: "data,logs" on the pod, added to what it has
 *   Auto         Field if the API server knows and keeps the field, else Annotation
 *                (deferral.h)
 *
 * Beside either, claimguard.io/deferred-for says for which claims claimguard has decided it, by
 * their UIDs: "data=8c7f3f0e-...". A deferral of claimguard's own is removed if it is for an
 * earlier claim, and the present one is not deferred (deferral.h, `withdrawn`). It is removed from
 * both annotations; a field is never removed, and such a pod is refused.
 *
 * An API server whose feature gate is off drops the field and answers 200, in spite of Strict. So
 * only the pod in its answer shows what was written.
 *
 * The precondition of a write is the version of the pod that was decided on. So it fails if the pod
 * has changed since, and it cannot arrive late, at a pod that is bound. The version that the write
 * has made is the Binding's precondition.
 */
#include "config/base/log.h"
#include "extender/serving/bind/deferral.h"
#include "extender/serving/live/events.h"
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

static bool is_claim_due(const struct deferred_volume *volume)
{
    return volume->deferred_for.len != 0 && !volume->names_its_claim;
}

static size_t count_due(const struct deferral *deferral, bool as_field)
{
    size_t due = deferral->withdrawn_count;

    for (size_t i = 0; i < deferral->volume_count; i++)
        due += is_due(&deferral->volumes[i], as_field) || is_claim_due(&deferral->volumes[i]);
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

    buf_put(body, SLICE(",\"spec\":{\"volumes\":["));
    for (size_t i = 0; i < deferral->volume_count; i++) {
        const struct deferred_volume *volume = &deferral->volumes[i];
        if (!is_due(volume, true))
            continue;
        buf_printf(body, "%s{\"name\":", separator);
        buf_json(body, volume->name);
        buf_printf(body, ",\"%s\":{\"deferFSMount\":true}}", sources[volume->source]);
        separator = ",";
    }
    buf_put(body, SLICE("]}"));
}

/* Adds a word to a list that was empty at first. False: no memory. */
static bool add_word(struct slice *list, struct arena *arena, struct slice word)
{
    return (list->len == 0 || arena_append(arena, list, SLICE(","))) &&
           arena_append(arena, list, word);
}

/* An empty list removes the annotation. */
static void put_list(struct buf *body, const char *key, struct slice list)
{
    buf_printf(body, "\"%s\":", key);
    if (list.len == 0)
        buf_put(body, SLICE("null"));
    else
        buf_json(body, list);
}

/* The annotation's present list without the volumes that are withdrawn, and, in that form, with
 * those that are not in it yet. */
static void put_annotation(struct buf *body, const struct deferral *deferral, bool as_field,
                           struct arena *arena)
{
    struct slice list = SLICE(""), rest = deferral->annotation, word;
    bool ok = deferral->withdrawn_count != 0 || arena_append(arena, &list, rest);

    while (deferral->withdrawn_count != 0 && ok && annotation_next(&rest, &word))
        ok = slice_is_among(word, deferral->withdrawn, deferral->withdrawn_count) ||
             add_word(&list, arena, word);
    for (size_t i = 0; !as_field && i < deferral->volume_count && ok; i++)
        ok = !is_due(&deferral->volumes[i], false) ||
             add_word(&list, arena, deferral->volumes[i].name);
    body->failed |= !ok;
    put_list(body, DEFER_FS_MOUNT_ANNOTATION, list);
}

/* The claims for which the volumes are deferred now. */
static void put_deferred_for(struct buf *body, const struct deferral *deferral, struct arena *arena)
{
    struct slice list = SLICE("");
    bool ok = true;

    for (size_t i = 0; i < deferral->volume_count && ok; i++) {
        const struct deferred_volume *volume = &deferral->volumes[i];
        ok = volume->deferred_for.len == 0 ||
             (add_word(&list, arena, volume->name) && arena_append(arena, &list, SLICE("=")) &&
              arena_append(arena, &list, volume->deferred_for));
    }
    body->failed |= !ok;
    put_list(body, DEFERRED_FOR_ANNOTATION, list);
}

static void put_patch(struct buf *body, const struct writing *writing, bool as_field)
{
    request_begin_patch(body, writing->call->request->pod.uid, *writing->version);
    buf_put(body, SLICE(",\"annotations\":{"));
    if (!as_field || writing->deferral->withdrawn_count != 0) {
        put_annotation(body, writing->deferral, as_field, writing->call->arena);
        buf_put(body, SLICE(","));
    }
    put_deferred_for(body, writing->deferral, writing->call->arena);
    buf_put(body, SLICE("}}"));
    if (as_field)
        put_field(body, writing->deferral);
    buf_put(body, SLICE("}"));
}

/* Those that the pod is still annotated with come first. */
static void read_withdrawn(struct deferral *deferral, const struct pod_mounts *mounts)
{
    size_t count = 0;

    for (size_t i = 0; i < deferral->withdrawn_count; i++) {
        struct slice volume = deferral->withdrawn[i];
        if (!annotation_names(mounts->annotation, volume))
            continue;
        deferral->withdrawn[i] = deferral->withdrawn[count];
        deferral->withdrawn[count++] = volume;
    }
    deferral->withdrawn_count = count;
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
        volume->names_its_claim =
            there != NULL && slice_equal(there->deferred_for, volume->deferred_for);
        if (!was_there && (volume->has_field || volume->is_annotated))
            deferral_count(writing->call->state, volume);
    }
    read_withdrawn(deferral, pod.mounts);
    deferral->annotation = pod.mounts->annotation;
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
                         SLICE_ARG(writing->call->request->pod.name));
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
                              .object = call->request->pod,
                              .suffix = "?fieldValidation=Strict",
                              .content_type = "application/strategic-merge-patch+json",
                              .body = buf_slice(body),
                              .timeout_ms = ms_until(call->deadline_ns)};

    if (body->failed)
        return error_no_memory(err);
    if (request.timeout_ms == 0)
        return error_set(err, ERROR_TIMEOUT, "deferFSMount could not be written in time");
    return requests_call(call->state->api, &request, call->arena, answer, err);
}

/* A longer annotation would not be read as one. */
static int check_length(const struct deferral *deferral, struct error *err)
{
    size_t bytes = deferral->annotation.len;

    for (size_t i = 0; i < deferral->volume_count; i++)
        bytes += is_due(&deferral->volumes[i], false) ? deferral->volumes[i].name.len + 1 : 0;
    return bytes <= DEFER_FS_MOUNT_BYTES_MAX
               ? 0
               : error_set(err, ERROR_INVALID,
                           "the annotation " DEFER_FS_MOUNT_ANNOTATION
                           " would have over %d bytes: remove what names no volume of the pod",
                           DEFER_FS_MOUNT_BYTES_MAX);
}

static int write_due(const struct writing *writing, bool as_field, struct error *err)
{
    struct request_answer answer = {0};
    SCOPED_BUF(body, PATCH_BYTES_MAX);

    if (count_due(writing->deferral, as_field) == 0)
        return 0;
    if (!as_field && check_length(writing->deferral, err) < 0)
        return err->code;
    put_patch(&body, writing, as_field);
    return send_patch(writing, &body, &answer, err) < 0
               ? err->code
               : evaluate_answer(writing, as_field, &answer, err);
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
    SCOPED_READ_LOCK(&call->state->lock);
    return call->state->config->defer_fs_mount.apply;
}

static void report_failure(const struct writing *writing, const struct error *err)
{
    const struct bind_call *call = writing->call;
    const struct object_reference *pod = &call->request->pod;

    log_warn("deferFSMount could not be written: the pod is not bound", LOG_POD(pod),
             LOG_STR("error", err->message));
    events_post(call->state->events, call->state->api, pod, "Warning", "DeferFSMountFailed",
                slice_of(err->message));
}

int defer_write(const struct bind_call *call, struct deferral *deferral, struct slice *version,
                struct error *err)
{
    struct writing writing = {call, deferral, version};
    int apply = configured(call);

    deferral->is_stale = false;
    if ((apply == DEFER_DISABLED && deferral->withdrawn_count == 0) || deferral->opts_out)
        return 0;
    for (size_t i = 0; apply == DEFER_DISABLED && i < deferral->volume_count; i++)
        deferral->volumes[i].is_annotated = deferral->volumes[i].names_its_claim =
            true; /* stay as is */
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

    if (deferral->withdrawn_count != 0)
        return error_set(
            err, ERROR_INVALID,
            "volume %.*s is deferred for another claim (annotation " DEFERRED_FOR_ANNOTATION
            "), and a pod that is created with spec.nodeName cannot be changed: "
            "leave the annotation out",
            SLICE_ARG(deferral->withdrawn[0]));
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
