/*
 * seen_locks: the locks of other pods (extender/serving/bind/claim_lock.h) that were seen, and
 * since when they have not changed. A lock is identified by its claim, its pod, and the claim's
 * version when it was locked. All locks for a pod that is being created are one, since one request
 * creates the pod. Its age begins when the first claim with it is seen, by the watch, by this
 * claimguard's own write, or by a pod that asks for the claim; and it ends with its pod, once that
 * was seen.
 *
 * And the last locks of claims that are gone, while their pods may still be bound: such a pod uses
 * the next claim of that name. Those whose pods are known to be bound are not needed: that pod
 * holds the name.
 *
 * And the pods whose Bindings may have been applied, since when: if they are tried again and again,
 * and never applied, their claims are kept from other pods without end
 * (extender/serving/bind/give_way.c). What the reviews of other claimguards let pass shows in the
 * locks of claims, from the second time on: else one of them would let it pass while another one
 * does not.
 *
 * Threads: any. The state's lock guards it.
 */
#ifndef EXTENDER_SERVING_LIVE_SEEN_LOCKS_H
#define EXTENDER_SERVING_LIVE_SEEN_LOCKS_H

#include "extender/serving/state.h"

/* Of more in all, the oldest is forgotten, and its age begins again; of more in one namespace, the
 * oldest of that. */
enum { LOCKS_SEEN_MAX = 2000, NAMESPACE_LOCKS_MAX = LOCKS_SEEN_MAX / 2 };

/* A pod whose Bindings have not been applied for GIVES_WAY_AFTER_MS gives way until
 * GIVES_WAY_UNTIL_MS after the last one that was let pass: that one is dead after a third of it. */
enum { GIVES_WAY_AFTER_MS = 2 * BINDING_DEAD_MS, GIVES_WAY_UNTIL_MS = 3 * BINDING_DEAD_MS };

struct seen_lock;

struct seen_locks {
    struct seen_lock *first;  /* uthash */
    struct seen_lock *passed; /* the same: pods whose Bindings may be applied */
    struct seen_lock *former; /* the same: locks of claims that are gone, by NAMESPACE/CLAIM */
};

/* What the API server answered about the pod of a lock, and when it was asked: a pod may be stored,
 * and the watch may report it, while the answer is on its way. 0: it was not asked. */
struct pod_answer {
    bool is_there;
    uint64_t asked_ns;
};

/* Whether the lock was seen for patience_ms when the API server was asked; without memory, it was
 * not. Or whether its pod was known to be there then, and is not there. key: begins with the
 * namespace and a slash, and is remembered whole, so the caller bounds its length; of all locks for
 * a pod that is being created, NAMESPACE/HOLDER. Takes the state's lock. */
bool seen_locks_is_old(struct state *state, struct slice key, uint64_t patience_ms,
                       const struct pod_answer *answer);

/* A claim is as the API server has it: it may have a lock of a pod that is being created, or one
 * with which another claimguard has let a Binding pass. A pod with a node is there; or a pod is
 * gone: its Bindings are of the past. These take the lock. */
void seen_locks_see_claim(struct state *state, const struct claim_object *claim);
void seen_locks_see_pod(struct state *state, const struct meta *pod, bool is_gone);

/* A claim is gone; it is as the API server had it last. Takes the lock. */
void seen_locks_see_claim_gone(struct state *state, const struct claim_object *claim);

/* As the annotations of a claim. Texts lie in the caller's arena. */
struct former_lock {
    struct slice holder, admitted, locked_at;
};

/* The last lock of the claim that had that name before; empty: none is known, or no memory. Takes
 * the lock. */
struct former_lock seen_locks_former(struct state *state, struct slice ns, struct slice claim,
                                     struct arena *arena);

/* The next claim is locked: what the pod of the former lock does is known. Takes the lock. */
void seen_locks_forget_former(struct state *state, struct slice ns, struct slice claim);

/* A Binding of the pod, which has a UID, may be applied from now on. Under the lock, for writing.
 */
void seen_locks_pass(struct state *state, const struct object_reference *pod);

/* For how many ms the pod is to give way to others that wait for its claims; 0: it need not. Under
 * the lock. */
uint64_t seen_locks_gives_way_ms(const struct state *state, const struct object_reference *pod);

void seen_locks_dispose(struct seen_locks *seen);

#endif
