#include "extender/bind/defer_write.h"

#include "config/base/log.h"
#include "extender/bind/defer_support.h"
#include "extender/live/events.h"
#include "policy/defer_fs_mount.h"

enum { PATCH_BYTES_MAX = 1 << 20 };

/* ---- what is decided ---- */

static struct slice copy(struct arena *arena, struct slice text)
{
    return text.len == 0 ? SLICE("") : arena_printf(arena, "%.*s", SLICE_ARG(text));
}

static bool add_volume(struct deferral *out, const struct pod_object *object,
                       const struct decision *decision, struct arena *arena)
{
    struct deferred_volume *grown =
        arena_grow(arena, out->volumes, out->volume_count, sizeof *grown);

    if (grown == NULL)
        return false;
    out->volumes = grown;
    struct deferred_volume *volume = &grown[out->volume_count++];
    *volume = (struct deferred_volume){
        .name = copy(arena, decision->volume->name),
        .storage_class =
            copy(arena, decision->entry == NULL ? SLICE("") : decision->entry->storage_class),
        .runtime_class = copy(arena, object->mounts->runtime_class),
        .source = decision->volume->source,
        .has_field = decision->volume->field == DEFER_FIELD_TRUE,
        .is_annotated = decision->volume->is_annotated,
        .is_new = !decision->is_set,
    };
    return volume->name.ptr != NULL && volume->storage_class.ptr != NULL &&
           volume->runtime_class.ptr != NULL;
}

static bool add_refusal(struct deferral *out, const struct pod_object *object,
                        const struct decision *decision, struct arena *arena)
{
    struct slice reason = defer_reason(object, decision, arena);
    struct slice entry = defer_entry_name(decision->entry, arena);

    if (out->refusal_count == REFUSALS_MAX)
        return true;
    struct slice text =
        arena_printf(arena, "volume %.*s: %.*s (entry %.*s)", SLICE_ARG(decision->volume->name),
                     SLICE_ARG(reason), SLICE_ARG(entry));
    if (reason.ptr == NULL || entry.ptr == NULL || text.ptr == NULL)
        return false;
    out->refusals[out->refusal_count++] = text;
    return true;
}

static int add_undecided(struct deferral *out, const struct pod_object *object,
                         const struct decision *decision, struct arena *arena, struct error *err)
{
    char uid[UID_TEXT_BYTES];

    out->undecided = (struct object_reference){
        .kind = KIND_CLAIM,
        .ns = copy(arena, object->meta.ns),
        .name = copy(arena, decision->volume->claim),
        .uid = copy(arena, uid_text(&decision->claim->uid, uid)),
    };
    return error_set(err, ERROR_UNAVAILABLE, "deferFSMount of volume %.*s: %.*s",
                     SLICE_ARG(decision->volume->name),
                     SLICE_ARG(defer_reason(object, decision, arena)));
}

int deferral_plan(const struct view *view, const struct pod *pod, const struct pod_object *object,
                  struct arena *arena, struct deferral *out, struct error *err)
{
    struct decision decision;
    bool has_memory = true;

    *out = (struct deferral){.volumes = NULL};
    if (object->mounts == NULL)
        return 0;
    for (uint32_t i = 0; i < object->mounts->volume_count && has_memory; i++) {
        defer_decide(view, object, &object->mounts->volumes[i], &decision);
        if (decision.is_undecided)
            return add_undecided(out, object, &decision, arena, err);
        if (decision.rule == RULE_NONE)
            has_memory = add_volume(out, object, &decision, arena);
        else if (decision.entry != NULL && decision.rule < RULE_COUNT)
            has_memory = add_refusal(out, object, &decision, arena);
    }
    out->annotation = copy(arena, object->mounts->annotation);
    out->opts_out = mounts_opt_out(object->mounts);
    if (pod->version != 0)
        out->version = arena_printf(arena, "%llu", (unsigned long long)pod->version);
    if (!has_memory || out->annotation.ptr == NULL || (pod->version != 0 && out->version.len == 0))
        return error_no_memory(err);
    return 0;
}

void deferral_settle(struct state *state, struct pod *pod, const struct deferral *deferral)
{
    for (size_t i = 0; i < deferral->volume_count; i++)
        cluster_defer(&state->cluster, pod, deferral->volumes[i].name);
}

void deferral_tell(struct state *state, const struct bind_request *request,
                   const struct deferral *deferral, struct arena *arena)
{
    struct object_reference pod = bind_request_pod(request);

    for (size_t i = 0; i < deferral->refusal_count; i++)
        events_post(state->events, state->api, &pod, "Normal", "DeferFSMountRefused",
                    arena_printf(arena, "Not deferred: %.*s", SLICE_ARG(deferral->refusals[i])));
}

/* ---- the write ---- */

/* How it is written, and with what. */
struct writing {
    struct state *state;
    const struct bind_request *request;
    struct deferral *deferral;
    struct slice *version;
    struct arena *arena;
    uint64_t deadline_ns;
};

/* Whether the volume has yet to be written. What is written the other way counts for nothing:
 * nobody who reads this one looks there, and an older API server strips the field. */
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

/* What is there, and behind it the volumes that it does not name yet. */
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
    buf_json(body, writing->request->pod_uid);
    if (writing->version->len != 0) {
        buf_put(body, SLICE(",\"resourceVersion\":"));
        buf_json(body, *writing->version);
    }
    if (as_field)
        put_field(body, writing->deferral);
    else
        put_annotation(body, writing->deferral, writing->arena);
}

static void count_volume(struct state *state, const struct deferred_volume *volume)
{
    if (volume->is_new)
        metrics_count_deferral(&state->metrics, volume->storage_class, volume->runtime_class);
}

void deferral_count(struct state *state, const struct deferral *deferral)
{
    for (size_t i = 0; i < deferral->volume_count; i++)
        count_volume(state, &deferral->volumes[i]);
}

/* The pod that the API server has now: an API server whose feature gate is off drops the field with
 * 200, and an admission webhook may take an annotation away. */
static int look_at_pod(const struct writing *writing, struct slice body, struct error *err)
{
    struct deferral *deferral = writing->deferral;
    struct pod_object pod;
    struct pull json;

    pull_init(&json, body);
    if (!pod_read(&json, writing->arena, &pod) || pod.mounts == NULL ||
        pod.meta.resource_version.len == 0)
        return error_set(err, ERROR_UNAVAILABLE, "the API server's answer cannot be read");
    for (size_t i = 0; i < deferral->volume_count; i++) {
        struct deferred_volume *volume = &deferral->volumes[i];
        const struct pod_volume *there = mounts_find(pod.mounts, volume->name);
        bool was_there = volume->has_field || volume->is_annotated;
        volume->has_field = there != NULL && there->field == DEFER_FIELD_TRUE;
        volume->is_annotated = there != NULL && there->is_annotated;
        if (!was_there && (volume->has_field || volume->is_annotated))
            count_volume(writing->state, volume);
    }
    *writing->version = pod.meta.resource_version;
    return 0;
}

/* What the API server said to the patch: 0, or why it is not written. */
static int take_answer(const struct writing *writing, bool as_field,
                       const struct request_answer *answer, struct error *err)
{
    if (answer->status == 200)
        return look_at_pod(writing, answer->body, err);
    writing->deferral->is_stale = answer->status == 409;
    if (writing->deferral->is_stale)
        return error_set(err, ERROR_UNAVAILABLE, "pod %.*s changes all the time",
                         SLICE_ARG(writing->request->pod_name));
    if (as_field && answer->status / 100 == 4)
        defer_support_forget(writing->state);
    return error_set(
        err, ERROR_UNAVAILABLE, "deferFSMount could not be written as %s: %.*s (status %u)",
        as_field ? "field" : "annotation",
        SLICE_ARG(answer->status == 0 ? SLICE("no answer from the API server") : answer->message),
        answer->status);
}

static int send_patch(const struct writing *writing, const struct buf *body,
                      struct request_answer *answer, struct error *err)
{
    uint64_t now_ns = monotonic_ns();

    if (body->failed)
        return error_no_memory(err);
    if (now_ns >= writing->deadline_ns)
        return error_set(err, ERROR_TIMEOUT, "deferFSMount could not be written in time");
    struct request call = {.method = "PATCH",
                           .object = bind_request_pod(writing->request),
                           .suffix = "?fieldValidation=Strict",
                           .content_type = "application/strategic-merge-patch+json",
                           .body = buf_slice(body),
                           .timeout_ms =
                               (int64_t)((writing->deadline_ns - now_ns) / UINT64_C(1000000)) + 1};
    return requests_call(writing->state->api, &call, writing->arena, answer, err);
}

/* Writes what is due, and looks at what is there then. */
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
    return rc < 0 ? rc : take_answer(writing, as_field, &answer, err);
}

/* Writes it, in one way or the other, until it is there. */
static int write_somehow(const struct writing *writing, int apply, struct error *err)
{
    bool as_field = apply == DEFER_FIELD;

    if (apply == DEFER_AUTO && defer_support_find(writing->state, &as_field, err) < 0)
        return err->code;
    if (write_due(writing, as_field, err) < 0)
        return err->code;
    if (apply == DEFER_AUTO && as_field && count_due(writing->deferral, true) != 0) {
        defer_support_drop(writing->state);
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

/* The pod is told, and the log. */
static void report_failure(const struct writing *writing, const struct error *err)
{
    const struct bind_request *request = writing->request;
    struct object_reference pod = bind_request_pod(request);

    log_warn("deferFSMount could not be written: the pod is not bound",
             LOG_SLICE("namespace", request->pod_namespace), LOG_SLICE("pod", request->pod_name),
             LOG_STR("error", err->message));
    events_post(writing->state->events, writing->state->api, &pod, "Warning", "DeferFSMountFailed",
                arena_printf(writing->arena, "%s", err->message));
}

int deferral_write(struct state *state, const struct bind_request *request,
                   struct deferral *deferral, struct slice *version, uint64_t deadline_ns,
                   struct arena *arena, struct error *err)
{
    struct writing writing = {state, request, deferral, version, arena, deadline_ns};

    (void)pthread_rwlock_rdlock(&state->lock);
    int apply = state->config->defer_fs_mount.apply;
    (void)pthread_rwlock_unlock(&state->lock);
    deferral->is_stale = false;
    if (apply == DEFER_DISABLED || deferral->opts_out)
        return 0;
    /* the cache's word is not enough: an API server that is older by now strips it. With Auto, a
     * reconnect is noticed; here, the write is repeated, which changes nothing if it is there. */
    for (size_t i = 0; apply == DEFER_FIELD && i < deferral->volume_count; i++)
        deferral->volumes[i].has_field = false;
    if (count_due(deferral, true) == 0 && count_due(deferral, false) == 0)
        return 0;
    int rc = write_somehow(&writing, apply, err);
    if (rc < 0 && !deferral->is_stale)
        report_failure(&writing, err);
    return rc;
}

/* ---- those that are to be drained ---- */

size_t deferral_pod_orphans(const struct view *view, const struct pod *pod, size_t most,
                            struct buf *out)
{
    const struct pod_mounts *mounts = pod_mounts(pod);
    size_t count = 0;

    for (uint32_t i = 0; i < mounts->volume_count; i++) {
        if (!defer_is_orphan(view, pod, &mounts->volumes[i]))
            continue;
        if (count++ < most)
            buf_printf(out, "%.*s/%.*s %.*s\n", SLICE_ARG(name_slice(pod->ns)),
                       SLICE_ARG(pod_name(pod)), SLICE_ARG(mounts->volumes[i].name));
    }
    return count;
}

size_t deferral_orphans(const struct view *view, size_t most, struct buf *out)
{
    size_t count = 0;

    for (const struct pod *pod = view->cluster->deferring; pod != NULL;
         pod = pod_kept_mounts(pod)->next_deferring)
        count += deferral_pod_orphans(view, pod, count < most ? most - count : 0, out);
    return count;
}
