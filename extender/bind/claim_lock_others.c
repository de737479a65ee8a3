/* The lock that is found on a claim, of another pod. */
#include "extender/bind/claim_lock_internal.h"
#include "extender/live/seen_locks.h"

static bool is_of_creation(const struct remote *found)
{
    return slice_equal(found->admitted, SLICE(CLAIM_ADMITTED_CREATION));
}

/* LOCKED_AT changes with each lock alone, and the claim's version also without one. A pod is
 * created by one request, so the first of its locks says how old that is. */
static struct slice key_of(const struct claim_locks *locks, struct slice claim,
                           const struct remote *found)
{
    struct slice version = version_of(found->locked_at) != 0 ? found->locked_at : found->version;
    struct slice ns = locks->call->request->pod_namespace;

    return is_of_creation(found)
               ? arena_printf(locks->call->arena, "%.*s/%.*s", SLICE_ARG(ns),
                              SLICE_ARG(found->holder))
               : arena_printf(locks->call->arena, "%.*s/%.*s/%.*s/%.*s", SLICE_ARG(ns),
                              SLICE_ARG(claim), SLICE_ARG(found->holder), SLICE_ARG(version));
}

/* Whether the lock has not changed for LOCK_PATIENCE_MS; of what was admitted, for BINDING_DEAD_MS;
 * or its pod, which is there or not, has gone. */
static bool is_old_enough(const struct claim_locks *locks, struct slice claim,
                          const struct remote *found, const struct pod_answer *answer)
{
    uint64_t patience_ms = found->admitted.len != 0 ? BINDING_DEAD_MS : LOCK_PATIENCE_MS;
    struct slice key = key_of(locks, claim, found);

    return key.ptr != NULL && seen_locks_is_old(locks->call->state, key, patience_ms, answer);
}

void claim_lock_note(const struct claim_locks *locks, struct slice claim,
                     const struct remote *written)
{
    if (written->admitted.len != 0)
        (void)is_old_enough(locks, claim, written, &(struct pod_answer){.asked_ns = 0});
}

/* Whether the pod of the lock, which is there or not, may still be created. */
static bool may_appear(const struct claim_locks *locks, struct slice claim,
                       const struct remote *found, const struct pod_answer *answer)
{
    return is_of_creation(found) && !is_old_enough(locks, claim, found, answer) &&
           !answer->is_there;
}

static int refuse(struct error *err, const struct claim_locks *locks, struct slice claim,
                  struct slice holder, const char *how)
{
    struct slice ns = locks->call->request->pod_namespace;

    return error_set(err, ERROR_INVALID, "claim %.*s/%.*s is %s pod %.*s/%.*s", SLICE_ARG(ns),
                     SLICE_ARG(claim), how, SLICE_ARG(ns), SLICE_ARG(holder));
}

/* Fences the pending pod of a lock that is to be taken over. */
static int fence_holder(struct claim_locks *locks, struct slice claim, struct slice uid,
                        struct slice name, struct error *err)
{
    bool is_bound;

    if (claim_lock_fence_pod(locks, uid, name, &is_bound, err) < 0)
        return err->code;
    return is_bound ? refuse(err, locks, claim, name, "in use by") : 0;
}

int claim_lock_evaluate(struct claim_locks *locks, struct slice claim, const struct remote *found,
                        struct error *err)
{
    struct slice uid, name;
    struct remote pod;

    if (!seen_locks_read_holder(found->holder, &uid, &name))
        return 0; /* there is none */
    if (slice_equal(uid, locks->call->request->pod_uid))
        return 0;
    struct pod_answer answer = {.asked_ns = monotonic_ns()};
    unsigned status = claim_lock_ask(locks, "GET", KIND_POD, name, SLICE(""), &pod);
    if (status != 200 && status != 404)
        return claim_lock_failed(err, locks);
    answer.is_there = status == 200 && slice_equal(pod.uid, uid);
    if (may_appear(locks, claim, found, &answer))
        return refuse(err, locks, claim, name, "locked for");
    if (!answer.is_there || phase_is_terminal(pod.phase))
        return 0;
    if (pod.node.len != 0)
        return refuse(err, locks, claim, name, "in use by");
    if (!is_old_enough(locks, claim, found, &answer))
        return refuse(err, locks, claim, name, "locked for");
    return fence_holder(locks, claim, uid, name, err);
}
