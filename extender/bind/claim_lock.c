#include "extender/bind/claim_lock.h"

#include <sys/random.h>

#include "cache/json/pull_fields.h"
#include "cache/watch/apply.h"
#include "config/base/log.h"
#include "extender/bind/seen_locks.h"

#define HOLDER    CLAIM_HOLDER_ANNOTATION
#define LOCKED_AT "claimguard.io/locked-at"
#define ADMITTED  CLAIM_ADMITTED_ANNOTATION
#define FENCED    "claimguard.io/fenced"

#define ADMITTED_BINDING  "true"
#define ADMITTED_CREATION "created"

/* What is read of a claim or a pod. */
struct remote {
    struct slice kind, ns, name, uid, version, holder, locked_at, admitted, fenced, node, phase;
};

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

/* One request about an object of the pod's namespace. Returns the HTTP status; 0: unknown, also if
 * a 200 or a 404 is not about that object: it may come from a proxy. */
static unsigned ask(struct claim_locks *locks, const char *method, enum kind kind,
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

static int not_locked(struct error *err, const struct claim_locks *locks)
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

/* ---- locks of other pods ---- */

static bool is_of_creation(const struct remote *found)
{
    return slice_equal(found->admitted, SLICE(ADMITTED_CREATION));
}

/* Whether the lock has not changed for LOCK_PATIENCE_MS; of what was admitted, for BINDING_DEAD_MS;
 * or its pod, which is there or not, has gone. The claim may change: LOCKED_AT changes with each
 * lock alone. A pod is created by one request, so the first of its locks says how old that is. */
static bool is_old_enough(const struct claim_locks *locks, struct slice claim,
                          const struct remote *found, bool is_there)
{
    uint64_t patience_ms = found->admitted.len != 0 ? BINDING_DEAD_MS : LOCK_PATIENCE_MS;
    struct slice version = version_of(found->locked_at) != 0 ? found->locked_at : found->version;
    struct slice ns = locks->call->request->pod_namespace;
    struct slice key =
        is_of_creation(found)
            ? arena_printf(locks->call->arena, "%.*s/%.*s", SLICE_ARG(ns), SLICE_ARG(found->holder))
            : arena_printf(locks->call->arena, "%.*s/%.*s/%.*s/%.*s", SLICE_ARG(ns),
                           SLICE_ARG(claim), SLICE_ARG(found->holder), SLICE_ARG(version));

    return key.ptr != NULL && seen_locks_is_old(locks->call->state, key, patience_ms, is_there);
}

/* Whether the pod of the lock, which is there or not, may still be created. */
static bool may_appear(const struct claim_locks *locks, struct slice claim,
                       const struct remote *found, bool is_there)
{
    return is_of_creation(found) && !is_old_enough(locks, claim, found, is_there) && !is_there;
}

static int refuse(struct error *err, const struct claim_locks *locks, struct slice claim,
                  struct slice holder, const char *how)
{
    struct slice ns = locks->call->request->pod_namespace;

    return error_set(err, ERROR_INVALID, "claim %.*s/%.*s is %s pod %.*s/%.*s", SLICE_ARG(ns),
                     SLICE_ARG(claim), how, SLICE_ARG(ns), SLICE_ARG(holder));
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

/*
 * Changes the version of a pod, so that a Binding of the pod that may be on its way fails.
 * *is_bound: the pod is bound already. Errors: ERROR_UNAVAILABLE: unknown.
 *
 * A fence that is sent twice does no harm: it changes the version once more. A 409 does not prove
 * that the pod is gone: there may be too many writers (then the pod is not fenced), or it answers
 * the second of two sendings, and the first found the pod bound. So the pod is read. A 200 without
 * the text does not prove a fence: a webhook may have removed the text, and nothing has changed.
 */
static int fence_pod(struct claim_locks *locks, struct slice uid, struct slice name, bool *is_bound,
                     struct error *err)
{
    struct remote pod;
    struct slice text = fence_text(locks);
    struct slice body =
        arena_printf(locks->call->arena,
                     "{\"metadata\":{\"uid\":\"%.*s\",\"annotations\":{\"" FENCED "\":\"%.*s\"}}}",
                     SLICE_ARG(uid), SLICE_ARG(text));
    unsigned status =
        text.ptr == NULL || body.ptr == NULL ? 0 : ask(locks, "PATCH", KIND_POD, name, body, &pod);
    bool is_fenced = status == 200 && slice_equal(pod.fenced, text);

    *is_bound = false;
    if (status == 409)
        status = ask(locks, "GET", KIND_POD, name, SLICE(""), &pod);
    if (status == 404 || (status == 200 && !slice_equal(pod.uid, uid)))
        return 0; /* it is gone */
    *is_bound = status == 200 && pod.node.len != 0;
    return is_fenced || *is_bound ? 0 : not_locked(err, locks);
}

/* Fences the pending pod of a lock that is to be taken over. */
static int fence_holder(struct claim_locks *locks, struct slice claim, struct slice uid,
                        struct slice name, struct error *err)
{
    bool is_bound;

    if (fence_pod(locks, uid, name, &is_bound, err) < 0)
        return err->code;
    return is_bound ? refuse(err, locks, claim, name, "in use by") : 0;
}

/* Whether the text has only the characters of names and UIDs, and is no longer. It becomes part of
 * a request, and of what is remembered, and anyone who may write annotations may write anything. */
static bool is_plain(struct slice text, size_t max)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-' && c != '.')
            return false;
    }
    return text.len != 0 && text.len <= max;
}

/* Returns 0 if the lock that was found may be replaced, or the error that says why not. */
static int evaluate_lock(struct claim_locks *locks, struct slice claim, const struct remote *found,
                         struct error *err)
{
    const char *slash =
        found->holder.len == 0 ? NULL : memchr(found->holder.ptr, '/', found->holder.len);
    struct remote pod;

    struct slice uid = {found->holder.ptr, slash == NULL ? 0 : (size_t)(slash - found->holder.ptr)};
    struct slice name = {slash == NULL ? NULL : slash + 1,
                         slash == NULL ? 0 : found->holder.len - uid.len - 1};
    /* no lock, or not written by claimguard */
    if (!is_plain(uid, UID_TEXT_BYTES) || !is_plain(name, POD_NAME_BYTES_MAX))
        return 0;
    if (slice_equal(uid, locks->call->request->pod_uid))
        return 0;
    unsigned status = ask(locks, "GET", KIND_POD, name, SLICE(""), &pod);
    if (status != 200 && status != 404)
        return not_locked(err, locks);
    bool is_there = status == 200 && slice_equal(pod.uid, uid);
    if (may_appear(locks, claim, found, is_there))
        return refuse(err, locks, claim, name, "locked for");
    if (!is_there || phase_is_terminal(pod.phase))
        return 0;
    if (pod.node.len != 0)
        return refuse(err, locks, claim, name, "in use by");
    if (!is_old_enough(locks, claim, found, true))
        return refuse(err, locks, claim, name, "locked for");
    return fence_holder(locks, claim, uid, name, err);
}

/* ---- our own locks ---- */

/*
 * A lock or a release that is sent twice does no harm: the claim's version is the precondition, so
 * the second is refused, the claim is read again, and our own lock is no obstacle.
 *
 * Each lock changes the claim, even when the pod has the lock already: the API server ignores a
 * PATCH that changes nothing, so the version would stay, and another pod's bind, or a late release
 * of this pod, could still use it. LOCKED_AT has a version that it never had before.
 */
static struct slice lock_patch(struct claim_locks *locks, const struct remote *found, bool was_ours)
{
    const struct bind_request *request = locks->call->request;
    const char *admitted = locks->is_creation ? ",\"" ADMITTED "\":\"" ADMITTED_CREATION "\""
                           : locks->is_review ? ",\"" ADMITTED "\":\"" ADMITTED_BINDING "\""
                           : found->admitted.len != 0 && !was_ours ? ",\"" ADMITTED "\":null"
                                                                   : "";

    return arena_printf(locks->call->arena,
                        "{\"metadata\":{\"resourceVersion\":\"%.*s\",\"annotations\":{\"" HOLDER
                        "\":\"%.*s/%.*s\",\"" LOCKED_AT "\":\"%.*s\"%s}}}",
                        SLICE_ARG(found->version), SLICE_ARG(request->pod_uid),
                        SLICE_ARG(request->pod_name), SLICE_ARG(found->version), admitted);
}

static struct slice release_patch(struct claim_locks *locks, struct slice version)
{
    return arena_printf(locks->call->arena,
                        "{\"metadata\":{\"resourceVersion\":\"%.*s\",\"annotations\":{\"" HOLDER
                        "\":null,\"" LOCKED_AT "\":null%s}}}",
                        SLICE_ARG(version), locks->is_review ? ",\"" ADMITTED "\":null" : "");
}

/* Whether the lock is that of the pod that binds. */
static bool is_ours(const struct claim_locks *locks, struct slice holder)
{
    const struct bind_request *request = locks->call->request;
    size_t uid_len = request->pod_uid.len;

    return holder.len == uid_len + 1 + request->pod_name.len && holder.ptr[uid_len] == '/' &&
           memcmp(holder.ptr, request->pod_uid.ptr, uid_len) == 0 &&
           memcmp(holder.ptr + uid_len + 1, request->pod_name.ptr, request->pod_name.len) == 0;
}

/* Whether the patched claim has our lock and a new version: a webhook may undo both. */
static bool is_locked(const struct claim_locks *locks, const struct remote *found,
                      const struct remote *patched)
{
    bool is_new = is_ours(locks, patched->holder) &&
                  (!locks->is_review || patched->admitted.len != 0) &&
                  !slice_equal(patched->version, found->version);

    if (is_new && found->holder.len != 0 && !is_ours(locks, found->holder))
        atomic_fetch_add(&locks->call->state->metrics.lock_takeovers, 1);
    return is_new;
}

static int lock_removed(struct error *err, const struct claim_locks *locks, struct slice claim)
{
    return error_set(err, ERROR_UNAVAILABLE,
                     "claim %.*s/%.*s could not be locked: the API server (an admission webhook?) "
                     "removes the annotations " HOLDER " and " LOCKED_AT,
                     SLICE_ARG(locks->call->request->pod_namespace), SLICE_ARG(claim));
}

/* Locks the claim number `index`. */
static int lock_claim(struct claim_locks *locks, size_t index, struct error *err)
{
    struct slice claim = locks->claims[index];

    for (int i = 0; i < LOCK_TRIES_MAX; i++) {
        struct remote found, patched;
        unsigned status = ask(locks, "GET", KIND_CLAIM, claim, SLICE(""), &found);
        if (status == 404)
            return error_set(err, ERROR_INVALID, "persistentvolumeclaim \"%.*s\" not found",
                             SLICE_ARG(claim));
        if (status != 200)
            return not_locked(err, locks);
        if (evaluate_lock(locks, claim, &found, err) < 0)
            return err->code;
        bool was_ours = is_ours(locks, found.holder);
        struct slice body = lock_patch(locks, &found, was_ours);
        status = body.ptr == NULL ? 0 : ask(locks, "PATCH", KIND_CLAIM, claim, body, &patched);
        locks->versions[index] = patched.version;
        locks->is_kept[index] = was_ours && found.admitted.len != 0;
        if (status == 200)
            return is_locked(locks, &found, &patched) ? 0 : lock_removed(err, locks, claim);
        if (status != 409)
            return not_locked(err, locks);
    }
    return not_locked(err, locks);
}

static int read_own_version(struct claim_locks *locks, struct error *err)
{
    const struct bind_request *request = locks->call->request;
    struct remote pod;
    unsigned status = ask(locks, "GET", KIND_POD, request->pod_name, SLICE(""), &pod);

    if (status == 404 || (status == 200 && !slice_equal(pod.uid, request->pod_uid)))
        return error_set(err, ERROR_NOT_FOUND, "pods \"%.*s\" not found",
                         SLICE_ARG(request->pod_name));
    if (status != 200)
        return not_locked(err, locks);
    locks->is_bound = pod.node.len != 0 && slice_equal(pod.node, request->node);
    if (pod.node.len != 0 && !locks->is_bound)
        return error_set(err, ERROR_INVALID, "pod %.*s is already assigned to node \"%.*s\"",
                         SLICE_ARG(request->pod_name), SLICE_ARG(pod.node));
    locks->pod_version = pod.version;
    return 0;
}

int claim_locks_take(struct claim_locks *locks, struct error *err)
{
    locks->locked_count = 0;
    locks->is_bound = false;
    locks->refusal = SLICE("");
    if (locks->claim_count == 0)
        return 0;
    /* before the locks: a pod that takes one over from us changes this version */
    int rc = locks->is_creation ? 0 : read_own_version(locks, err);
    while (rc == 0 && !locks->is_bound && locks->locked_count < locks->claim_count) {
        rc = lock_claim(locks, locks->locked_count, err);
        locks->locked_count += rc == 0;
    }
    /* a review without a decision: the API server may still apply the Binding */
    if (rc < 0 && !(locks->is_review && rc == ERROR_UNAVAILABLE))
        claim_locks_release(locks);
    return rc;
}

void claim_locks_release(struct claim_locks *locks)
{
    struct error err = {0};
    struct remote ignored;
    bool is_bound = false;
    int rc = 0;

    if (locks->locked_count == 0)
        return;
    /* An earlier Binding of this pod, whose answer was lost, may still be on its way, and the next
     * pod that locks the claim would not know (found by tests/model). */
    if (!locks->is_creation)
        rc = fence_pod(locks, locks->call->request->pod_uid, locks->call->request->pod_name,
                       &is_bound, &err);
    /* a lock that stays does no harm: the next pod finds that its pod was not bound */
    for (size_t i = 0; rc == 0 && !is_bound && i < locks->locked_count; i++) {
        struct slice body = release_patch(locks, locks->versions[i]);
        if (body.ptr != NULL && !locks->is_kept[i])
            (void)ask(locks, "PATCH", KIND_CLAIM, locks->claims[i], body, &ignored);
    }
    locks->locked_count = 0;
}
