/* The requests about claims and pods, for their locks. */
#include <sys/random.h>

#include "cache/json/pull_fields.h"
#include "cache/watch/apply.h"
#include "extender/bind/claim_lock_internal.h"

#define FIELD(key_, member_) \
    { \
        .key = (key_), .type = PULL_STRING, .offset = offsetof(struct remote, member_) \
    }

/* False: the body is not the object that was asked for. */
static bool read_remote(const struct object_reference *asked, struct slice body,
                        struct arena *arena, struct remote *out)
{
    static const struct pull_field annotations[] = {
        FIELD(HOLDER, holder), FIELD(LOCKED_AT, locked_at), FIELD(ADMITTED, admitted),
        FIELD(FENCED, fenced)};
    static const struct pull_field meta[] = {
        FIELD("namespace", ns),
        FIELD("name", name),
        FIELD("uid", uid),
        FIELD("resourceVersion", version),
        {.key = "annotations", .type = PULL_OBJECT, PULL_MEMBERS(annotations)},
    };
    static const struct pull_field spec[] = {FIELD("nodeName", node)};
    static const struct pull_field status[] = {FIELD("phase", phase)};
    static const struct pull_field fields[] = {
        FIELD("kind", kind),
        {.key = "metadata", .type = PULL_OBJECT, PULL_MEMBERS(meta)},
        {.key = "spec", .type = PULL_OBJECT, PULL_MEMBERS(spec)},
        {.key = "status", .type = PULL_OBJECT, PULL_MEMBERS(status)},
    };
    struct pull json;

    pull_init(&json, body);
    return pull_fields(&json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields), arena, out) &&
           slice_equal(out->kind, slice_of(kind_text(asked->kind))) &&
           slice_equal(out->ns, asked->ns) && slice_equal(out->name, asked->name) &&
           out->uid.len != 0 && out->version.len != 0;
}

/* Whether the request would be answered so again: it lacks a right, or a webhook objects. A 409 is
 * a conflict of writers. */
static bool is_refusal(unsigned status)
{
    return status >= 400 && status < 500 && status != 404 && status != 409 && status != 429;
}

unsigned claim_lock_ask(struct claim_locks *locks, const char *method, enum kind kind,
                        struct slice name, struct slice body, struct remote *out)
{
    struct request_answer answer = {0};
    struct error err = {0};
    const struct bind_call *call = locks->call;
    struct request request = {.method = method,
                              .object = {kind, call->request->pod_namespace, name, SLICE("")},
                              .content_type = body.len == 0 ? NULL : "application/merge-patch+json",
                              .body = body,
                              .timeout_ms = bind_call_left_ms(call)};

    *out = (struct remote){.kind = {NULL, 0}};
    if (request.timeout_ms == 0)
        return 0;
    if (requests_call(call->state->api, &request, call->arena, &answer, &err) < 0)
        return 0;
    if (answer.status == 200 && !read_remote(&request.object, answer.body, call->arena, out))
        return 0;
    if (answer.status == 404 && !apply_says_absent(&request.object, answer.body))
        return 0;
    if (is_refusal(answer.status))
        locks->refusal =
            arena_printf(call->arena, "%u: %.*s", answer.status, SLICE_ARG(answer.message));
    return answer.status;
}

int claim_lock_failed(struct error *err, const struct claim_locks *locks)
{
    struct slice name = locks->call->request->pod_name;

    if (locks->refusal.len != 0)
        return error_set(err, ERROR_UNAVAILABLE,
                         "the claims of pod %.*s could not be locked: the API server answered %.*s",
                         SLICE_ARG(name), SLICE_ARG(locks->refusal));
    return error_set(err, ERROR_UNAVAILABLE,
                     "the claims of pod %.*s could not be locked: the API server is contended, or "
                     "does not answer in time",
                     SLICE_ARG(name));
}

/* A text that no earlier fence has written: the API server ignores a PATCH that changes nothing,
 * and then the pod's version stays. NULL: out of memory. */
static struct slice fence_text(struct claim_locks *locks)
{
    uint64_t nonce;

    if (getrandom(&nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce)
        return (struct slice){NULL, 0};
    return arena_printf(locks->call->arena, "%lld by %.*s, %016llx", (long long)now_ms(),
                        SLICE_ARG(locks->call->request->pod_uid), (unsigned long long)nonce);
}

int claim_lock_fence_pod(struct claim_locks *locks, struct slice uid, struct slice name,
                         bool *is_bound, struct error *err)
{
    struct remote pod;
    struct slice text = fence_text(locks);
    struct slice body =
        arena_printf(locks->call->arena,
                     "{\"metadata\":{\"uid\":\"%.*s\",\"annotations\":{\"" FENCED "\":\"%.*s\"}}}",
                     SLICE_ARG(uid), SLICE_ARG(text));
    unsigned status = text.ptr == NULL || body.ptr == NULL
                          ? 0
                          : claim_lock_ask(locks, "PATCH", KIND_POD, name, body, &pod);
    bool is_fenced = status == 200 && slice_equal(pod.fenced, text);

    *is_bound = false;
    if (status == 409)
        status = claim_lock_ask(locks, "GET", KIND_POD, name, SLICE(""), &pod);
    if (status == 404 || (status == 200 && !slice_equal(pod.uid, uid)))
        return 0; /* it is gone */
    *is_bound = status == 200 && pod.node.len != 0;
    return is_fenced || *is_bound ? 0 : claim_lock_failed(err, locks);
}
