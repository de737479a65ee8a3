#include "extender/bind/claim_lock.h"

#include <stdlib.h>
#include <sys/random.h>

#include "cache/json/pull_fields.h"
#include "cache/watch/apply.h"
#include "config/base/log.h"

#define HOLDER    "claimguard.io/holder"
#define LOCKED_AT "claimguard.io/locked-at"
#define FENCED    "claimguard.io/fenced"

/* The lock of another pod that is pending, and since when it was seen unchanged. */
struct seen_lock {
    uint64_t since_ns;
    UT_hash_handle hh;
    char key[]; /* claim's namespace/name/version */
};

/* What is looked at of a claim or a pod. */
struct remote {
    struct slice kind, ns, name, uid, version, holder, fenced, node, phase;
};

#define FIELD(key_, member_) \
    { \
        .key = (key_), .type = PULL_STRING, .offset = offsetof(struct remote, member_) \
    }

/* False: the body is not that object. */
static bool read_remote(const struct object_reference *asked, struct slice body,
                        struct arena *arena, struct remote *out)
{
    static const struct pull_field annotations[] = {FIELD(HOLDER, holder), FIELD(FENCED, fenced)};
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

/* One request about an object of the pod's namespace. Returns the HTTP status; 0: unknown. A 200 or
 * a 404 that does not speak of that object may come from anything in between. */
static unsigned ask(struct claim_locks *locks, const char *method, enum kind kind,
                    struct slice name, struct slice body, struct remote *out)
{
    struct request_answer answer = {0};
    struct error err = {0};
    uint64_t now_ns = monotonic_ns();

    *out = (struct remote){.kind = {NULL, 0}};
    if (now_ns >= locks->deadline_ns)
        return 0;
    struct request call = {.method = method,
                           .object = {kind, locks->request->pod_namespace, name, SLICE("")},
                           .content_type = body.len == 0 ? NULL : "application/merge-patch+json",
                           .body = body,
                           .timeout_ms = (int64_t)((locks->deadline_ns - now_ns) / 1000000) + 1};
    if (requests_call(locks->state->api, &call, locks->arena, &answer, &err) < 0)
        return 0;
    if (answer.status == 200 && !read_remote(&call.object, answer.body, locks->arena, out))
        return 0;
    if (answer.status == 404 && !apply_says_absent(&call.object, answer.body))
        return 0;
    return answer.status;
}

static int contended(struct error *err, const struct claim_locks *locks)
{
    return error_set(err, ERROR_UNAVAILABLE,
                     "the claims of pod %.*s could not be locked: the API server is contended, or "
                     "does not answer in time",
                     SLICE_ARG(locks->request->pod_name));
}

/* ---- locks of others ---- */

static uint64_t seen_since(struct state *state, struct slice key)
{
    struct seen_lock *seen = NULL;
    uint64_t now_ns = monotonic_ns();

    (void)pthread_rwlock_wrlock(&state->lock);
    HASH_FIND(hh, state->seen_locks->first, key.ptr, key.len, seen);
    if (seen == NULL && HASH_COUNT(state->seen_locks->first) >= LOCKS_SEEN_MAX) {
        struct seen_lock *oldest = state->seen_locks->first;
        HASH_DEL(state->seen_locks->first, oldest);
        free(oldest);
    }
    if (seen == NULL && (seen = calloc(1, sizeof *seen + key.len)) != NULL) {
        seen->since_ns = now_ns;
        memcpy(seen->key, key.ptr, key.len);
        HASH_ADD_KEYPTR(hh, state->seen_locks->first, seen->key, key.len, seen);
        if (seen->hh.tbl == NULL) {
            free(seen);
            seen = NULL;
        }
    }
    uint64_t since_ns = seen == NULL ? now_ns : seen->since_ns;
    (void)pthread_rwlock_unlock(&state->lock);
    return since_ns;
}

void seen_locks_dispose(struct seen_locks *seen)
{
    while (seen->first != NULL) {
        struct seen_lock *first = seen->first;
        HASH_DEL(seen->first, first);
        free(first);
    }
}

/* Whether the claim has been locked like this for long enough. */
static bool is_patient_enough(struct claim_locks *locks, struct slice claim,
                              const struct remote *found)
{
    struct slice key =
        arena_printf(locks->arena, "%.*s/%.*s/%.*s", SLICE_ARG(locks->request->pod_namespace),
                     SLICE_ARG(claim), SLICE_ARG(found->version));

    if (key.ptr == NULL)
        return false;
    uint64_t since_ns = seen_since(locks->state, key); /* before the clock is read: it may be now */
    return monotonic_ns() - since_ns >= LOCK_PATIENCE_MS * NS_PER_MS;
}

static int refuse(struct error *err, const struct claim_locks *locks, struct slice claim,
                  struct slice holder, const char *how)
{
    struct slice ns = locks->request->pod_namespace;

    return error_set(err, ERROR_INVALID, "claim %.*s/%.*s is %s pod %.*s/%.*s", SLICE_ARG(ns),
                     SLICE_ARG(claim), how, SLICE_ARG(ns), SLICE_ARG(holder));
}

/* What no earlier fence has written, so that it is a change: the API server does not write a PATCH
 * that changes nothing, and the version stays. NULL: there is no memory. */
static struct slice fence_text(struct claim_locks *locks)
{
    uint64_t nonce;

    if (getrandom(&nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce)
        return (struct slice){NULL, 0};
    return arena_printf(locks->arena, "%lld by %.*s, %016llx", (long long)now_ms(),
                        SLICE_ARG(locks->request->pod_uid), (unsigned long long)nonce);
}

/*
 * Changes the version of a pod, so that a Binding of it that may be on its way fails. *is_bound: it
 * is bound already. ERROR_UNAVAILABLE: nobody knows.
 *
 * A fence may be sent twice: it changes the version once more. But a 409 is no proof that the pod
 * has gone: it may also come from too many writers (then the pod is not fenced), or be the answer
 * to a second sending, while the first showed that the pod is bound. So the pod is looked at. And a
 * 200 is none if the text is not there: a webhook may have removed it, so that nothing changed.
 */
static int fence_pod(struct claim_locks *locks, struct slice uid, struct slice name, bool *is_bound,
                     struct error *err)
{
    struct remote pod;
    struct slice text = fence_text(locks);
    struct slice body = arena_printf(
        locks->arena, "{\"metadata\":{\"uid\":\"%.*s\",\"annotations\":{\"" FENCED "\":\"%.*s\"}}}",
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
    return is_fenced || *is_bound ? 0 : contended(err, locks);
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

/* Whether the text is of the characters of names and UIDs: whoever may write annotations may write
 * anything into one, and this goes into a request of ours. */
static bool is_plain(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-' && c != '.')
            return false;
    }
    return text.len != 0;
}

/* Whether the lock that was found may be replaced: 0, or why not. */
static int evaluate_lock(struct claim_locks *locks, struct slice claim, const struct remote *found,
                         struct error *err)
{
    const char *slash =
        found->holder.len == 0 ? NULL : memchr(found->holder.ptr, '/', found->holder.len);
    struct remote pod;

    struct slice uid = {found->holder.ptr, slash == NULL ? 0 : (size_t)(slash - found->holder.ptr)};
    struct slice name = {slash == NULL ? NULL : slash + 1,
                         slash == NULL ? 0 : found->holder.len - uid.len - 1};
    if (!is_plain(uid) || !is_plain(name)) /* there is none, or none that we wrote */
        return 0;
    if (slice_equal(uid, locks->request->pod_uid))
        return 0;
    unsigned status = ask(locks, "GET", KIND_POD, name, SLICE(""), &pod);
    if (status == 404)
        return 0;
    if (status != 200)
        return contended(err, locks);
    if (!slice_equal(pod.uid, uid) || phase_is_terminal(pod.phase))
        return 0;
    if (pod.node.len != 0)
        return refuse(err, locks, claim, name, "in use by");
    if (!is_patient_enough(locks, claim, found))
        return refuse(err, locks, claim, name, "locked for");
    return fence_holder(locks, claim, uid, name, err);
}

/* ---- our own ---- */

/*
 * A lock and its release may be sent twice: they have the claim's version as precondition, so that
 * the second is refused, and the claim is read again; a lock that is our own is as good as none.
 *
 * Each changes the claim, also a lock that is taken again: the API server does not write a PATCH
 * that changes nothing, and a version that another pod's bind, or a release of this pod that is
 * late, has seen before would still be true. The version in LOCKED_AT was never there before.
 */
static struct slice lock_patch(struct claim_locks *locks, struct slice version)
{
    const struct bind_request *request = locks->request;

    return arena_printf(locks->arena,
                        "{\"metadata\":{\"resourceVersion\":\"%.*s\",\"annotations\":{\"" HOLDER
                        "\":\"%.*s/%.*s\",\"" LOCKED_AT "\":\"%.*s\"}}}",
                        SLICE_ARG(version), SLICE_ARG(request->pod_uid),
                        SLICE_ARG(request->pod_name), SLICE_ARG(version));
}

static struct slice release_patch(struct claim_locks *locks, struct slice version)
{
    return arena_printf(locks->arena,
                        "{\"metadata\":{\"resourceVersion\":\"%.*s\",\"annotations\":{\"" HOLDER
                        "\":null,\"" LOCKED_AT "\":null}}}",
                        SLICE_ARG(version));
}

/* Whether what a PATCH has made of the claim is our lock, and new: a webhook may undo either. */
static bool is_locked(struct claim_locks *locks, const struct remote *found,
                      const struct remote *patched)
{
    struct slice ours = arena_printf(locks->arena, "%.*s/%.*s", SLICE_ARG(locks->request->pod_uid),
                                     SLICE_ARG(locks->request->pod_name));
    bool is_new =
        slice_equal(patched->holder, ours) && !slice_equal(patched->version, found->version);

    if (is_new && found->holder.len != 0 && !slice_equal(found->holder, ours))
        atomic_fetch_add(&locks->state->metrics.lock_takeovers, 1);
    return is_new;
}

static int undone(struct error *err, const struct claim_locks *locks, struct slice claim)
{
    return error_set(err, ERROR_UNAVAILABLE,
                     "claim %.*s/%.*s could not be locked: the API server (an admission webhook?) "
                     "takes the annotations " HOLDER " and " LOCKED_AT " away again",
                     SLICE_ARG(locks->request->pod_namespace), SLICE_ARG(claim));
}

static int lock_claim(struct claim_locks *locks, struct slice claim, struct slice *version,
                      struct error *err)
{
    for (int i = 0; i < LOCK_TRIES_MAX; i++) {
        struct remote found, patched;
        unsigned status = ask(locks, "GET", KIND_CLAIM, claim, SLICE(""), &found);
        if (status == 404)
            return error_set(err, ERROR_INVALID, "persistentvolumeclaim \"%.*s\" not found",
                             SLICE_ARG(claim));
        if (status != 200)
            return contended(err, locks);
        if (evaluate_lock(locks, claim, &found, err) < 0)
            return err->code;
        struct slice body = lock_patch(locks, found.version);
        status = body.ptr == NULL ? 0 : ask(locks, "PATCH", KIND_CLAIM, claim, body, &patched);
        *version = patched.version;
        if (status == 200)
            return is_locked(locks, &found, &patched) ? 0 : undone(err, locks, claim);
        if (status != 409)
            return contended(err, locks);
    }
    return contended(err, locks);
}

static int read_own_version(struct claim_locks *locks, struct error *err)
{
    const struct bind_request *request = locks->request;
    struct remote pod;
    unsigned status = ask(locks, "GET", KIND_POD, request->pod_name, SLICE(""), &pod);

    if (status == 404 || (status == 200 && !slice_equal(pod.uid, request->pod_uid)))
        return error_set(err, ERROR_NOT_FOUND, "pods \"%.*s\" not found",
                         SLICE_ARG(request->pod_name));
    if (status != 200)
        return contended(err, locks);
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
    if (locks->claim_count == 0)
        return 0;
    /* before the locks: whoever takes one over from us changes this version */
    int rc = read_own_version(locks, err);
    while (rc == 0 && !locks->is_bound && locks->locked_count < locks->claim_count) {
        size_t i = locks->locked_count;
        rc = lock_claim(locks, locks->claims[i], &locks->versions[i], err);
        locks->locked_count += rc == 0;
    }
    if (rc < 0)
        claim_locks_release(locks);
    return rc;
}

void claim_locks_release(struct claim_locks *locks)
{
    struct error err = {0};
    struct remote ignored;
    bool is_bound;

    if (locks->locked_count == 0)
        return;
    /* an earlier Binding of this pod, whose answer was lost, may still be on its way: whoever gets
     * the claim next would not know. tests/model found this. */
    int rc = fence_pod(locks, locks->request->pod_uid, locks->request->pod_name, &is_bound, &err);
    /* a lock that is not given back is found to be of a pod that was not bound */
    for (size_t i = 0; rc == 0 && !is_bound && i < locks->locked_count; i++) {
        struct slice body = release_patch(locks, locks->versions[i]);
        if (body.ptr != NULL)
            (void)ask(locks, "PATCH", KIND_CLAIM, locks->claims[i], body, &ignored);
    }
    locks->locked_count = 0;
}
