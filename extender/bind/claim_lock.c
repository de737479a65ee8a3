/* Our own locks. */
#include "extender/bind/claim_lock.h"

#include "extender/bind/claim_lock_internal.h"

static const char *admitted_part(const struct claim_locks *locks, const struct remote *found,
                                 bool was_ours)
{
    bool was_admitted = found->admitted.len != 0;

    if (locks->is_creation)
        return ",\"" ADMITTED "\":\"" CLAIM_ADMITTED_CREATION "\"";
    if (locks->is_review)
        return was_ours && was_admitted ? ",\"" ADMITTED "\":\"" CLAIM_ADMITTED_AGAIN "\""
                                        : ",\"" ADMITTED "\":\"" CLAIM_ADMITTED_BINDING "\"";
    return was_admitted && !was_ours ? ",\"" ADMITTED "\":null" : "";
}

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

    return arena_printf(locks->call->arena,
                        "{\"metadata\":{\"resourceVersion\":\"%.*s\",\"annotations\":{\"" HOLDER
                        "\":\"%.*s/%.*s\",\"" LOCKED_AT "\":\"%.*s\"%s}}}",
                        SLICE_ARG(found->version), SLICE_ARG(request->pod_uid),
                        SLICE_ARG(request->pod_name), SLICE_ARG(found->version),
                        admitted_part(locks, found, was_ours));
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

/* What was decided was about another claim of that name: it had no owner, for example. */
static int claim_replaced(struct error *err, struct claim_locks *locks, struct slice claim)
{
    locks->replaced = claim;
    return error_set(err, ERROR_UNAVAILABLE, "claim %.*s/%.*s has been replaced",
                     SLICE_ARG(locks->call->request->pod_namespace), SLICE_ARG(claim));
}

/* Locks the claim number `index`. */
static int lock_claim(struct claim_locks *locks, size_t index, struct error *err)
{
    struct slice claim = locks->claims[index];

    for (int i = 0; i < LOCK_TRIES_MAX; i++) {
        struct remote found, patched;
        unsigned status = claim_lock_ask(locks, "GET", KIND_CLAIM, claim, SLICE(""), &found);
        if (status == 404)
            return error_set(err, ERROR_INVALID, "persistentvolumeclaim \"%.*s\" not found",
                             SLICE_ARG(claim));
        if (status != 200)
            return claim_lock_failed(err, locks);
        if (!slice_equal(found.uid, locks->uids[index]))
            return claim_replaced(err, locks, claim);
        if (claim_lock_evaluate(locks, claim, &found, err) < 0)
            return err->code;
        bool was_ours = is_ours(locks, found.holder);
        struct slice body = lock_patch(locks, &found, was_ours);
        status = body.ptr == NULL
                     ? 0
                     : claim_lock_ask(locks, "PATCH", KIND_CLAIM, claim, body, &patched);
        locks->versions[index] = patched.version;
        locks->is_kept[index] = was_ours && found.admitted.len != 0;
        if (status == 200 && !is_locked(locks, &found, &patched))
            return lock_removed(err, locks, claim);
        if (status == 200) {
            claim_lock_note(locks, claim, &patched);
            return 0;
        }
        if (status != 409)
            return claim_lock_failed(err, locks);
    }
    return claim_lock_failed(err, locks);
}

static int read_own_version(struct claim_locks *locks, struct error *err)
{
    const struct bind_request *request = locks->call->request;
    struct remote pod;
    unsigned status = claim_lock_ask(locks, "GET", KIND_POD, request->pod_name, SLICE(""), &pod);

    if (status == 404 || (status == 200 && !slice_equal(pod.uid, request->pod_uid)))
        return error_set(err, ERROR_NOT_FOUND, "pods \"%.*s\" not found",
                         SLICE_ARG(request->pod_name));
    if (status != 200)
        return claim_lock_failed(err, locks);
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
    locks->refusal = locks->replaced = SLICE("");
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

bool claim_locks_keep(const struct claim_locks *locks)
{
    bool is_any = false;

    for (size_t i = 0; i < locks->locked_count; i++)
        is_any = is_any || locks->is_kept[i];
    return is_any;
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
        rc = claim_lock_fence_pod(locks, locks->call->request->pod_uid,
                                  locks->call->request->pod_name, &is_bound, &err);
    /* a lock that stays does no harm: the next pod finds that its pod was not bound */
    for (size_t i = 0; rc == 0 && !is_bound && i < locks->locked_count; i++) {
        struct slice body = release_patch(locks, locks->versions[i]);
        if (body.ptr != NULL && !locks->is_kept[i])
            (void)claim_lock_ask(locks, "PATCH", KIND_CLAIM, locks->claims[i], body, &ignored);
    }
    locks->locked_count = 0;
}
