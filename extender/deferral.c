#include "extender/deferral.h"

#include "config/base/log.h"
#include "extender/defer_method.h"
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
        .namespace = copy(arena, object->meta.namespace),
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
        events_post(&state->events, state->follow, &pod, "Normal", "DeferFSMountRefused",
                    arena_printf(arena, "Not deferred: %.*s", SLICE_ARG(deferral->refusals[i])));
}

/* ---- the write ---- */

/* Whether the volume has yet to be written. */
static bool is_due(const struct deferred_volume *volume, bool as_field)
{
    return !volume->has_field && (as_field || !volume->is_annotated);
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

static void put_patch(struct buf *body, const struct bind_request *request,
                      const struct deferral *deferral, struct slice version, bool as_field,
                      struct arena *arena)
{
    buf_put(body, SLICE("{\"metadata\":{\"uid\":"));
    buf_json(body, request->pod_uid);
    if (version.len != 0) {
        buf_put(body, SLICE(",\"resourceVersion\":"));
        buf_json(body, version);
    }
    if (as_field)
        put_field(body, deferral);
    else
        put_annotation(body, deferral, arena);
}

/* The version that the write made; empty: it cannot be read. */
static struct slice read_version(struct slice body, struct arena *arena)
{
    struct pod_object pod;
    struct pull json;

    pull_init(&json, body);
    return pod_read(&json, arena, &pod) ? pod.meta.resource_version : SLICE("");
}

void deferral_count(struct state *state, const struct deferral *deferral)
{
    for (size_t i = 0; i < deferral->volume_count; i++)
        if (deferral->volumes[i].is_new)
            metrics_count_deferral(&state->metrics, deferral->volumes[i].storage_class,
                                   deferral->volumes[i].runtime_class);
}

/* The pod is told, and the log. */
static int fail(struct state *state, const struct bind_request *request, struct arena *arena,
                const struct error *err)
{
    struct object_reference pod = bind_request_pod(request);

    log_warn("deferFSMount could not be written: the pod is not bound",
             LOG_SLICE("namespace", request->pod_namespace), LOG_SLICE("pod", request->pod_name),
             LOG_STR("error", err->message));
    events_post(&state->events, state->follow, &pod, "Warning", "DeferFSMountFailed",
                arena_printf(arena, "%s", err->message));
    return err->code;
}

/* Whether the field is to be written, or the annotation. */
static int choose_method(struct state *state, bool *as_field, struct error *err)
{
    (void)pthread_rwlock_rdlock(&state->lock);
    int apply = state->config->defer_fs_mount.apply;
    (void)pthread_rwlock_unlock(&state->lock);
    *as_field = apply == DEFER_FIELD;
    return apply == DEFER_AUTO ? defer_method_find(state, as_field, err) : 0;
}

/* What the API server said to the patch: 0, or why it is not written. */
static int take_answer(struct state *state, const struct bind_request *request,
                       struct deferral *deferral, bool as_field, const struct follow_answer *answer,
                       struct arena *arena, struct error *err)
{
    deferral->is_stale = answer->status == 409;
    if (answer->status == 200) {
        deferral_count(state, deferral);
        return 0;
    }
    if (deferral->is_stale)
        return error_set(err, ERROR_UNAVAILABLE, "pod %.*s changes all the time",
                         SLICE_ARG(request->pod_name));
    if (as_field && answer->status / 100 == 4)
        defer_method_forget(state);
    (void)error_set(
        err, ERROR_UNAVAILABLE, "deferFSMount could not be written as %s: %.*s (status %u)",
        as_field ? "field" : "annotation",
        SLICE_ARG(answer->status == 0 ? SLICE("no answer from the API server") : answer->message),
        answer->status);
    return fail(state, request, arena, err);
}

int deferral_write(struct state *state, const struct bind_request *request,
                   struct deferral *deferral, struct slice *version, int64_t timeout_ms,
                   struct arena *arena, struct error *err)
{
    struct follow_answer answer = {0};
    bool as_field;
    struct buf body;

    if (count_due(deferral, true) == 0)
        return 0;
    if (choose_method(state, &as_field, err) < 0)
        return fail(state, request, arena, err);
    if (count_due(deferral, as_field) == 0)
        return 0;
    buf_init(&body, PATCH_BYTES_MAX);
    put_patch(&body, request, deferral, *version, as_field, arena);
    struct object_call call = {.method = "PATCH",
                               .object = bind_request_pod(request),
                               .suffix = "?fieldValidation=Strict",
                               .content_type = "application/strategic-merge-patch+json",
                               .body = buf_slice(&body),
                               .timeout_ms = timeout_ms};
    int rc = body.failed ? error_no_memory(err)
                         : follow_call_object(state->follow, &call, arena, &answer, err);
    buf_dispose(&body);
    if (rc == 0)
        rc = take_answer(state, request, deferral, as_field, &answer, arena, err);
    if (rc < 0)
        return rc;
    *version = read_version(answer.body, arena);
    return version->len != 0
               ? 0
               : error_set(err, ERROR_UNAVAILABLE, "the API server's answer cannot be read");
}

/* ---- those that are to be drained ---- */

size_t deferral_orphans(const struct view *view, size_t most, struct buf *out)
{
    size_t count = 0;

    for (const struct pod *pod = view->cluster->deferring; pod != NULL;
         pod = pod_kept_mounts(pod)->next_deferring) {
        const struct pod_mounts *mounts = pod_mounts(pod);
        for (uint32_t i = 0; i < mounts->volume_count; i++) {
            if (!defer_is_orphan(view, pod, &mounts->volumes[i]))
                continue;
            if (count++ < most)
                buf_printf(out, "%.*s/%.*s %.*s\n", SLICE_ARG(name_slice(pod->namespace)),
                           SLICE_ARG(pod_name(pod)), SLICE_ARG(mounts->volumes[i].name));
        }
    }
    return count;
}
