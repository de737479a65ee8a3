#include "extender/serving/bind/claim_lock.h"

#include <sys/random.h>

#include "cache/json/pull_fields.h"
#include "cache/watch/apply.h"
#include "config/base/text.h"
#include "extender/serving/live/seen_locks.h"

#define HOLDER    CLAIM_HOLDER_ANNOTATION
#define LOCKED_AT CLAIM_LOCKED_AT_ANNOTATION
#define ADMITTED  CLAIM_ADMITTED_ANNOTATION
#define FENCED    "claimguard.io/fenced"

/* ---- requests about claims and pods ---- */

/* What is read of a claim or a pod. Texts lie in the arena of the call. */
struct remote {
    struct slice kind, ns, name, uid, version, created, deletion, node, phase;
    struct slice holder, locked_at, admitted, fenced;
    bool is_former; /* the lock is that of an earlier claim of this name */
};

/* False: the body is not the object that was asked for. */
static bool read_remote(const struct object_reference *asked, struct slice body,
                        struct arena *arena, struct remote *out)
{
    static const struct pull_field annotations[] = {
        PULL_FIELD(HOLDER, PULL_STRING, remote, holder),
        PULL_FIELD(LOCKED_AT, PULL_STRING, remote, locked_at),
        PULL_FIELD(ADMITTED, PULL_STRING, remote, admitted),
        PULL_FIELD(FENCED, PULL_STRING, remote, fenced)};
    static const struct pull_field meta[] = {
        PULL_FIELD("namespace", PULL_STRING, remote, ns),
        PULL_FIELD("name", PULL_STRING, remote, name),
        PULL_FIELD("uid", PULL_STRING, remote, uid),
        PULL_FIELD("resourceVersion", PULL_STRING, remote, version),
        PULL_FIELD("creationTimestamp", PULL_STRING, remote, created),
        PULL_FIELD("deletionTimestamp", PULL_STRING, remote, deletion),
        PULL_NESTED("annotations", annotations),
    };
    static const struct pull_field spec[] = {PULL_FIELD("nodeName", PULL_STRING, remote, node)};
    static const struct pull_field status[] = {PULL_FIELD("phase", PULL_STRING, remote, phase)};
    static const struct pull_field fields[] = {
        PULL_FIELD("kind", PULL_STRING, remote, kind),
        PULL_NESTED("metadata", meta),
        PULL_NESTED("spec", spec),
        PULL_NESTED("status", status),
    };

    return pull_fields_of(body, fields, PULL_FIELD_COUNT(fields), arena, out) &&
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
                              .object = {kind, call->request->pod.ns, name, SLICE("")},
                              .content_type = body.len == 0 ? NULL : "application/merge-patch+json",
                              .body = body,
                              .timeout_ms = ms_until(call->deadline_ns)};

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

/* ERROR_UNAVAILABLE, with the API server's last refusal, if there is one. */
static int lock_failed(struct error *err, const struct claim_locks *locks)
{
    struct slice name = locks->call->request->pod.name;

    if (locks->refusal.len != 0)
        return error_set(err, ERROR_UNAVAILABLE,
                         "the claims of pod %.*s could not be locked: the API server answered %.*s",
                         SLICE_ARG(name), SLICE_ARG(locks->refusal));
    return error_set(err, ERROR_UNAVAILABLE,
                     "the claims of pod %.*s could not be locked: the API server is contended, or "
                     "does not answer in time",
                     SLICE_ARG(name));
}

/* ---- the fence ---- */

/* A text that no earlier fence has written: the API server ignores a PATCH that changes nothing,
 * and then the pod's version stays. NULL: out of memory. */
static struct slice fence_text(struct claim_locks *locks)
{
    uint64_t nonce;

    if (getrandom(&nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce)
        return (struct slice){NULL, 0};
    return arena_printf(locks->call->arena, "%lld by %.*s, %016llx", (long long)now_ms(),
                        SLICE_ARG(locks->call->request->pod.uid), (unsigned long long)nonce);
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
    return is_fenced || *is_bound ? 0 : lock_failed(err, locks);
}

/* ---- the lock of another pod, which is found on a claim ---- */

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
    struct slice ns = locks->call->request->pod.ns;

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

/* Our lock, as it was written: its age begins, for the pods that ask for the claim. */
static void note_lock(const struct claim_locks *locks, struct slice claim,
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
    struct slice ns = locks->call->request->pod.ns;

    atomic_fetch_add(&locks->call->state->metrics.bind_conflicts, 1);
    return error_set(err, ERROR_INVALID, "claim %.*s/%.*s is %s pod %.*s/%.*s", SLICE_ARG(ns),
                     SLICE_ARG(claim), how, SLICE_ARG(ns), SLICE_ARG(holder));
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

/* Returns 0 if the lock that was found may be replaced, or the error that says why not. */
static int evaluate_lock(struct claim_locks *locks, struct slice claim, const struct remote *found,
                         struct error *err)
{
    const char *locked_for =
        found->is_former ? "the next one after a claim that was locked for" : "locked for";
    struct slice uid, name;
    struct remote pod;

    if (!claim_holder_read(found->holder, &uid, &name))
        return 0; /* there is none */
    if (slice_equal(uid, locks->call->request->pod.uid))
        return 0;
    struct pod_answer answer = {.asked_ns = monotonic_ns()};
    unsigned status = ask(locks, "GET", KIND_POD, name, SLICE(""), &pod);
    if (status != 200 && status != 404)
        return lock_failed(err, locks);
    answer.is_there = status == 200 && slice_equal(pod.uid, uid);
    if (may_appear(locks, claim, found, &answer))
        return refuse(err, locks, claim, name, locked_for);
    if (!answer.is_there || phase_is_terminal(pod.phase))
        return 0;
    if (pod.node.len != 0)
        return refuse(err, locks, claim, name, "in use by");
    if (!is_old_enough(locks, claim, found, &answer))
        return refuse(err, locks, claim, name, locked_for);
    return fence_holder(locks, claim, uid, name, err);
}

/* The last lock of the claim that had the name before, as if it were on this one. Without a holder:
 * none is known. */
static struct remote former_of(const struct claim_locks *locks, struct slice claim,
                               const struct remote *found)
{
    const struct bind_call *call = locks->call;
    struct former_lock former =
        seen_locks_former(call->state, call->request->pod.ns, claim, call->arena);
    struct remote lock = *found;

    lock.holder = former.holder;
    lock.admitted = former.admitted;
    lock.locked_at = former.locked_at;
    lock.is_former = true;
    return lock;
}

/* As evaluate_lock, of a claim's lock and of the one before. *found becomes the lock that counts
 * for what is written: the former one, if the claim has none. */
static int evaluate_locks(struct claim_locks *locks, struct slice claim, struct remote *found,
                          struct error *err)
{
    struct remote former = former_of(locks, claim, found);
    struct slice uid, name;
    bool has_lock = claim_holder_read(found->holder, &uid, &name);

    if ((has_lock && evaluate_lock(locks, claim, found, err) < 0) ||
        (!slice_equal(former.holder, found->holder) &&
         evaluate_lock(locks, claim, &former, err) < 0))
        return err->code;
    if (!has_lock && former.holder.len != 0)
        *found = former;
    return 0;
}

/* ---- our own locks ---- */

static const char *admitted_part(const struct claim_locks *locks, const struct remote *found,
                                 bool was_ours)
{
    bool was_admitted = found->admitted.len != 0;

    if (locks->is_creation)
        return ",\"" ADMITTED "\":\"" CLAIM_ADMITTED_CREATION "\"";
    if (locks->is_review)
        return was_ours && was_admitted ? ",\"" ADMITTED "\":\"" CLAIM_ADMITTED_AGAIN "\""
                                        : ",\"" ADMITTED "\":\"" CLAIM_ADMITTED_BINDING "\"";
    if (was_ours && was_admitted && found->is_former) /* this claim has no mark yet */
        return ",\"" ADMITTED "\":\"" CLAIM_ADMITTED_AGAIN "\"";
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
                        SLICE_ARG(found->version), SLICE_ARG(request->pod.uid),
                        SLICE_ARG(request->pod.name), SLICE_ARG(found->version),
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
    size_t uid_len = request->pod.uid.len;

    return holder.len == uid_len + 1 + request->pod.name.len && holder.ptr[uid_len] == '/' &&
           memcmp(holder.ptr, request->pod.uid.ptr, uid_len) == 0 &&
           memcmp(holder.ptr + uid_len + 1, request->pod.name.ptr, request->pod.name.len) == 0;
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
                     SLICE_ARG(locks->call->request->pod.ns), SLICE_ARG(claim));
}

/* The next try comes after the watch's report. */
static int lock_unknown(struct error *err, const struct claim_locks *locks, struct slice claim)
{
    return error_set(err, ERROR_INVALID,
                     "claim %.*s/%.*s is new here: whether a pod has locked an earlier claim of "
                     "that name is known when the watch of claims has reported it",
                     SLICE_ARG(locks->call->request->pod.ns), SLICE_ARG(claim));
}

/* The next try comes after the scheduler's back-off. */
static int lock_listed(struct error *err, const struct claim_locks *locks, struct slice claim)
{
    return error_set(err, ERROR_INVALID,
                     "claim %.*s/%.*s is new here: whether another pod that names it has locked an "
                     "earlier claim of that name is known %d s after the claims were listed",
                     SLICE_ARG(locks->call->request->pod.ns), SLICE_ARG(claim), LISTED_MS / 1000);
}

/* Whether a pod may have locked an earlier claim of that name without our knowledge. A lock that is
 * ours was made by who knew. found: with the lock that counts. */
static bool may_have_former(const struct claim_locks *locks, const struct locked_claim *locked,
                            const struct remote *found)
{
    int64_t created_ms = time_parse(found->created);

    return locked->may_have_former && !is_ours(locks, found->holder) && created_ms != 0 &&
           now_ms() - created_ms < LISTED_AGED_MS &&
           former_of(locks, locked->name, found).holder.len == 0;
}

/* What was decided was about another claim of that name: it had no owner, for example. */
static int claim_replaced(struct error *err, struct claim_locks *locks, struct slice claim)
{
    locks->replaced = claim;
    return error_set(err, ERROR_UNAVAILABLE, "claim %.*s/%.*s has been replaced",
                     SLICE_ARG(locks->call->request->pod.ns), SLICE_ARG(claim));
}

static int lock_claim(struct claim_locks *locks, struct locked_claim *locked, struct error *err)
{
    struct slice claim = locked->name;

    for (int i = 0; i < LOCK_TRIES_MAX; i++) {
        struct remote found, patched;
        unsigned status = ask(locks, "GET", KIND_CLAIM, claim, SLICE(""), &found);
        if (status == 404)
            return error_set(err, ERROR_INVALID, "persistentvolumeclaim \"%.*s\" not found",
                             SLICE_ARG(claim));
        if (status != 200)
            return lock_failed(err, locks);
        if (!slice_equal(found.uid, locked->uid))
            return claim_replaced(err, locks, claim);
        if (found.deletion.len != 0) /* it goes at once if only pending pods name it, and the lock
                                        with it: another pod may get the next claim of its name */
            return error_set(err, ERROR_INVALID, "persistentvolumeclaim \"%.*s\" is being deleted",
                             SLICE_ARG(claim));
        if (locked->is_ahead)
            return lock_unknown(err, locks, claim);
        if (evaluate_locks(locks, claim, &found, err) < 0)
            return err->code;
        if (may_have_former(locks, locked, &found))
            return lock_listed(err, locks, claim);
        bool was_ours = is_ours(locks, found.holder);
        struct slice body = lock_patch(locks, &found, was_ours);
        status = body.ptr == NULL ? 0 : ask(locks, "PATCH", KIND_CLAIM, claim, body, &patched);
        locked->version = patched.version;
        locked->is_kept = was_ours && found.admitted.len != 0;
        if (status == 200 && !is_locked(locks, &found, &patched))
            return lock_removed(err, locks, claim);
        if (status == 200) {
            note_lock(locks, claim, &patched);
            if (found.is_former)
                seen_locks_forget_former(locks->call->state, locks->call->request->pod.ns, claim);
            return 0;
        }
        if (status != 409)
            return lock_failed(err, locks);
    }
    return lock_failed(err, locks);
}

static int read_own_version(struct claim_locks *locks, struct error *err)
{
    const struct bind_request *request = locks->call->request;
    struct remote pod;
    unsigned status = ask(locks, "GET", KIND_POD, request->pod.name, SLICE(""), &pod);

    if (status == 404 || (status == 200 && !slice_equal(pod.uid, request->pod.uid)))
        return error_set(err, ERROR_NOT_FOUND, "pods \"%.*s\" not found",
                         SLICE_ARG(request->pod.name));
    if (status != 200)
        return lock_failed(err, locks);
    locks->is_bound = pod.node.len != 0 && slice_equal(pod.node, request->node);
    if (pod.node.len != 0 && !locks->is_bound)
        return error_set(err, ERROR_INVALID, "pod %.*s is already assigned to node \"%.*s\"",
                         SLICE_ARG(request->pod.name), SLICE_ARG(pod.node));
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
        rc = lock_claim(locks, &locks->claims[locks->locked_count], err);
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
        is_any = is_any || locks->claims[i].is_kept;
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
        rc = fence_pod(locks, locks->call->request->pod.uid, locks->call->request->pod.name,
                       &is_bound, &err);
    /* a lock that stays does no harm: the next pod finds that its pod was not bound */
    for (size_t i = 0; rc == 0 && !is_bound && i < locks->locked_count; i++) {
        const struct locked_claim *locked = &locks->claims[i];
        struct slice body = release_patch(locks, locked->version);
        if (body.ptr != NULL && !locked->is_kept)
            (void)ask(locks, "PATCH", KIND_CLAIM, locked->name, body, &ignored);
    }
    locks->locked_count = 0;
}
