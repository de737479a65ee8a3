#include "extender/serving/bind/deferral.h"

#include "cache/json/pull_fields.h"
#include "config/base/log.h"
#include "extender/serving/bind/agreement.h"
#include "extender/serving/live/events.h"
#include "policy/defer_fs_mount.h"
#include "policy/exclusive.h"

#define OPENAPI_PATH "/openapi/v3/api/v1"

enum {
    OPENAPI_ARENA_BYTES_MAX = 16 << 20,
    OPENAPI_TIMEOUT_MS = 2000,
    OPENAPI_RETRY_MS = 10000,
};

/* ---- what is decided about a pod ---- */

/* For which claim claimguard defers the volume; empty: for none. {NULL, 0}: no memory. */
static struct slice deferred_for(const struct decision *decision, struct arena *arena)
{
    bool is_ours = !decision->is_set || decision->volume->deferred_for.len != 0;
    char uid[UID_TEXT_BYTES];

    return decision->claim == NULL || !is_ours
               ? SLICE("")
               : arena_copy(arena, uid_text(&decision->claim->uid, uid));
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
        .name = arena_copy(arena, decision->volume->name),
        .storage_class =
            arena_copy(arena, decision->entry == NULL ? SLICE("") : decision->entry->storage_class),
        .runtime_class = arena_copy(arena, object->mounts->runtime_class),
        .deferred_for = deferred_for(decision, arena),
        .names_its_claim = decision->is_set,
        .source = decision->volume->source,
        .has_field = decision->volume->field == DEFER_FIELD_TRUE,
        .is_annotated = decision->volume->is_annotated,
        .is_new = !decision->is_set,
    };
    return volume->name.ptr != NULL && volume->storage_class.ptr != NULL &&
           volume->runtime_class.ptr != NULL && volume->deferred_for.ptr != NULL;
}

/* KEP-2857 lets the field change from false to true alone. */
static int withdraw(struct deferral *out, const struct decision *decision, struct arena *arena,
                    struct error *err)
{
    if (decision->volume->field == DEFER_FIELD_TRUE)
        return error_set(err, ERROR_INVALID,
                         "volume %.*s was deferred for an earlier claim %.*s, and is not for the "
                         "present one; deferFSMount cannot be changed back: delete the pod",
                         SLICE_ARG(decision->volume->name), SLICE_ARG(decision->volume->claim));
    struct slice *grown = arena_grow(arena, out->withdrawn, out->withdrawn_count, sizeof *grown);
    if (grown == NULL)
        return error_no_memory(err);
    out->withdrawn = grown;
    grown[out->withdrawn_count] = arena_copy(arena, decision->volume->name);
    out->withdrawn_total = ++out->withdrawn_count;
    return grown[out->withdrawn_count - 1].ptr == NULL ? error_no_memory(err) : 0;
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
        .ns = arena_copy(arena, object->meta.ns),
        .name = arena_copy(arena, decision->volume->claim),
        .uid = arena_copy(arena, uid_text(&decision->claim->uid, uid)),
    };
    return error_set(err, ERROR_UNAVAILABLE, "deferFSMount of volume %.*s: %.*s",
                     SLICE_ARG(decision->volume->name),
                     SLICE_ARG(defer_reason(object, decision, arena)));
}

/* What the entry says is not in force for all replicas yet: one of them might let a pod share the
 * claim. */
static int add_announced(struct deferral *out, const struct decision *decision, struct error *err)
{
    out->is_announced = true;
    return error_set(
        err, ERROR_INVALID,
        "volume %.*s is deferred later: nonExclusiveClaims: Exclusive of storage class "
        "%.*s is new in this cluster, and in force %d s after it was announced",
        SLICE_ARG(decision->volume->name),
        SLICE_ARG(name_slice(claim_storage_class(decision->claim))), AGREEMENT_MS / 1000);
}

int deferral_plan(const struct view *view, uint64_t version, const struct pod_object *object,
                  struct arena *arena, struct deferral *out, struct error *err)
{
    struct decision decision;
    bool has_memory = true;

    *out = (struct deferral){.volumes = NULL};
    if (object->mounts == NULL)
        return 0;
    out->has_mounts = true;
    for (uint32_t i = 0; i < object->mounts->volume_count && has_memory; i++) {
        defer_decide(view, object, &object->mounts->volumes[i], &decision);
        if (decision.is_undecided)
            return add_undecided(out, object, &decision, arena, err);
        if (decision.is_of_former && decision.rule != RULE_NONE &&
            withdraw(out, &decision, arena, err) < 0)
            return err->code;
        if (decision.rule == RULE_NONE)
            has_memory = add_volume(out, object, &decision, arena);
        if (decision.rule == RULE_NONE && decision.claim != NULL &&
            exclusive_is_announced(view, decision.claim))
            return add_announced(out, &decision, err);
        if (decision.entry != NULL && decision.rule != RULE_NONE && decision.rule < RULE_COUNT)
            has_memory = add_refusal(out, object, &decision, arena);
    }
    out->annotation = arena_copy(arena, object->mounts->annotation);
    out->opts_out = mounts_opt_out(object->mounts);
    if (version != 0)
        out->version = arena_printf(arena, "%llu", (unsigned long long)version);
    if (!has_memory || out->annotation.ptr == NULL || (version != 0 && out->version.len == 0))
        return error_no_memory(err);
    return 0;
}

void deferral_remember(struct state *state, struct pod *pod, const struct deferral *deferral)
{
    for (size_t i = 0; i < deferral->volume_count; i++)
        cluster_defer(&state->cluster, pod, deferral->volumes[i].name);
    for (size_t i = deferral->withdrawn_count;
         i < deferral->withdrawn_total && !pod_is_assigned(pod); i++) /* else the watch is ahead */
        cluster_undefer(pod, deferral->withdrawn[i]);
}

void deferral_count(struct state *state, const struct deferred_volume *volume)
{
    if (volume->is_new)
        metrics_count_deferral(&state->metrics, volume->storage_class, volume->runtime_class);
}

void deferral_report(const struct deferral *deferral, const struct bind_call *call)
{
    const struct object_reference *pod = &call->request->pod;

    for (size_t i = 0; i < deferral->refusal_count; i++)
        events_post(
            call->state->events, call->state->api, pod, "Normal", "DeferFSMountRefused",
            arena_printf(call->arena,
                         "Not deferred: %.*s (claimguard's docs/deferfsmount.md has the rules)",
                         SLICE_ARG(deferral->refusals[i])));
}

size_t deferral_pod_orphans(const struct view *view, const struct pod *pod, size_t most,
                            struct buf *out)
{
    const struct pod_mounts *mounts = pod_mounts(pod);
    size_t count = 0;

    for (uint32_t i = 0; i < mounts->volume_count; i++) {
        if (!defer_is_orphan(view, pod, &mounts->volumes[i]))
            continue;
        if (count++ < most)
            buf_printf(out, "%.*s/%.*s %.*s\n", SLICE_ARG(name_text(pod->ns)),
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

/* ---- whether the API server supports the field ---- */

/* What the document contains. Without has_claims, it is not one that we understand. */
struct openapi {
    bool has_claims, has_field;
};

static bool read_openapi(struct slice body, struct arena *arena, struct openapi *out)
{
    static const struct pull_field properties[] = {
        PULL_FIELD("claimName", PULL_PRESENCE, openapi, has_claims),
        PULL_FIELD("deferFSMount", PULL_PRESENCE, openapi, has_field),
    };
    static const struct pull_field schema[] = {PULL_NESTED("properties", properties)};
    static const struct pull_field schemas[] = {
        PULL_NESTED("io.k8s.api.core.v1.PersistentVolumeClaimVolumeSource", schema)};
    static const struct pull_field components[] = {PULL_NESTED("schemas", schemas)};
    static const struct pull_field document[] = {PULL_NESTED("components", components)};

    return pull_fields_of(body, document, PULL_FIELD_COUNT(document), arena, out);
}

/* How often a connection to the API server was lost, or ended by a server that shuts down: the next
 * connection may lead to another version. */
static uint64_t count_reconnects(const struct state *state)
{
    uint64_t count = 0;

    for (int kind = 0; kind < KIND_COUNT; kind++)
        count += atomic_load(&state->status[kind].restarts[RESTART_CONNECTION]) +
                 atomic_load(&state->status[kind].restarts[RESTART_SILENT]) +
                 atomic_load(&state->status[kind].early_ends);
    return count;
}

static int ask_openapi(struct state *state, bool *has_field, struct error *err)
{
    struct request_answer answer = {0};
    struct openapi openapi = {.has_field = false};
    SCOPED_ARENA(arena, OPENAPI_ARENA_BYTES_MAX);

    int rc = requests_call(
        state->api,
        &(struct request){.method = "GET", .path = OPENAPI_PATH, .timeout_ms = OPENAPI_TIMEOUT_MS},
        &arena, &answer, err);
    if (rc == 0 && answer.status == 404)
        openapi.has_claims = true; /* a server without the document is older than the field */
    else if (rc == 0 && answer.status == 200 && !read_openapi(answer.body, &arena, &openapi))
        openapi.has_claims = false;
    if (rc == 0 && !openapi.has_claims)
        rc = error_set(err, ERROR_UNAVAILABLE,
                       OPENAPI_PATH
                       " (status %u) does not show whether the API server knows deferFSMount: set "
                       "deferFSMount.apply to Field or Annotation",
                       answer.status);
    *has_field = openapi.has_field;
    return rc;
}

/* Several threads may read the document at a time: that is rare, and harmless. */
int defer_support_find(struct state *state, bool *as_field, struct error *err)
{
    struct defer_support *support = state->defer_support;
    uint64_t reconnects = count_reconnects(state);
    int known = atomic_load(&support->method);

    *as_field = known == METHOD_FIELD;
    if (known != METHOD_UNKNOWN && atomic_load(&support->reconnects) == reconnects)
        return 0;
    int rc = ask_openapi(state, as_field, err);
    int method = rc < 0 ? METHOD_UNKNOWN : *as_field ? METHOD_FIELD : METHOD_ANNOTATION;
    int former = atomic_exchange(&support->method, method);
    atomic_store(&support->reconnects,
                 reconnects); /* last: the method is never older than this count */
    if (former != method && rc == 0 && method != known)
        log_info("deferFSMount is written as the API server can take it",
                 LOG_STR("as", *as_field ? "Field" : "Annotation"));
    return rc;
}

void defer_support_forget(struct state *state)
{
    atomic_store(&state->defer_support->method, METHOD_UNKNOWN);
}

void defer_support_drop(struct state *state)
{
    if (atomic_exchange(&state->defer_support->method, METHOD_ANNOTATION) == METHOD_FIELD)
        log_info("deferFSMount is written as the API server can take it: it drops the field",
                 LOG_STR("as", "Annotation"));
}

void defer_support_tick(struct state *state)
{
    struct defer_support *support = state->defer_support;
    struct error err = {0};
    bool as_field;

    (void)pthread_rwlock_rdlock(&state->lock);
    bool is_wanted = state->config->defer_fs_mount.apply == DEFER_AUTO &&
                     state->config->defer_fs_mount.entry_count != 0;
    (void)pthread_rwlock_unlock(&state->lock);
    if (!is_wanted || state->api == NULL || state_unsynced(state) != KIND_COUNT ||
        monotonic_ns() < support->next_tick_ns || defer_support_find(state, &as_field, &err) == 0)
        return;
    support->next_tick_ns = monotonic_ns() + OPENAPI_RETRY_MS * NS_PER_MS;
    log_warn("the API server cannot be asked about deferFSMount", LOG_STR("error", err.message));
}

const char *defer_support_text(const struct state *state)
{
    if (state->api == NULL)
        return "nothing is written: the cluster is a snapshot";
    switch (state->config->defer_fs_mount.apply) {
    case DEFER_FIELD: return "Field";
    case DEFER_ANNOTATION: return "Annotation";
    case DEFER_DISABLED: return "Disabled";
    default: break;
    }
    switch (atomic_load(&state->defer_support->method)) {
    case METHOD_FIELD: return "Auto: Field";
    case METHOD_ANNOTATION: return "Auto: Annotation";
    default: return "Auto: not asked yet";
    }
}
