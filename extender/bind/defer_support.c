#include "extender/bind/defer_support.h"

#include "cache/json/pull_fields.h"
#include "config/base/log.h"

#define OPENAPI_PATH "/openapi/v3/api/v1"

enum {
    OPENAPI_ARENA_BYTES_MAX = 16 << 20,
    OPENAPI_TIMEOUT_MS = 2000,
    OPENAPI_RETRY_MS = 10000,
};

/* What the document contains. Without has_claims, it is not one that we understand. */
struct openapi {
    bool has_claims, has_field;
};

static bool read_openapi(struct slice body, struct arena *arena, struct openapi *out)
{
    static const struct pull_field properties[] = {
        {.key = "claimName", .type = PULL_PRESENCE, .offset = offsetof(struct openapi, has_claims)},
        {.key = "deferFSMount",
         .type = PULL_PRESENCE,
         .offset = offsetof(struct openapi, has_field)},
    };
    static const struct pull_field schema[] = {
        {.key = "properties", .type = PULL_OBJECT, PULL_MEMBERS(properties)}};
    static const struct pull_field schemas[] = {
        {.key = "io.k8s.api.core.v1.PersistentVolumeClaimVolumeSource",
         .type = PULL_OBJECT,
         PULL_MEMBERS(schema)}};
    static const struct pull_field components[] = {
        {.key = "schemas", .type = PULL_OBJECT, PULL_MEMBERS(schemas)}};
    static const struct pull_field document[] = {
        {.key = "components", .type = PULL_OBJECT, PULL_MEMBERS(components)}};
    struct pull json;

    pull_init(&json, body);
    return pull_fields(&json, PULL_CASE_EXACT, document, PULL_FIELD_COUNT(document), arena, out) &&
           pull_finish(&json);
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
    struct arena arena;

    arena_init(&arena, OPENAPI_ARENA_BYTES_MAX);
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
    arena_dispose(&arena);
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
