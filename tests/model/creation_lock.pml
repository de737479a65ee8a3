/*
 * The locks of a pod that is created with its node (extender/serving/bind/claim_lock.c and bind.c, claimLock:
 * Annotation), checked exhaustively by spin: it wants one exclusive claim, and so does another pod, which is created so, too (-DBOTH), or
 * is bound by a replica of claimguard. The API server asks about a creation, perhaps again after it has heard nothing; it stores the pod
 * some time after one answer, or never. Every review and every bind may end at any point, by a crash or a lost answer. A stored pod may go.
 *
 * A lock of such a pod differs from those of claim_lock.pml: there is no pod yet that could be fenced, that the API server does not have
 * it proves nothing, and nothing that the replica sends has a precondition. So the lock has a mark (claimguard.io/admitted: created).
 *
 * There is no time in it: of BINDING_DEAD_MS is there what it means, that the API server has given the creation up. Each creation has a
 * UID of its own, so a client that sends one twice makes another pod; here is one pod for each name. Reservations, and what the cache
 * knows, are not in it (claims.pml). Bindings of other clients are in claim_lock.pml, not here.
 *
 * Each transition names the function that it stands for. The switches take a check away; each has to give a counter-example:
 *     -DNO_LOCK_PRECONDITION   the claim's lock is written whatever its version is
 *     -DNO_MARK                a review does not mark its lock
 *     -DNO_AGE                 a lock with a mark is taken over as any other: there is no such pod
 *     -DNO_NONCE               a lock that is taken again writes what is there, and its version stays
 *     -DNO_KEPT                a review that is denied gives back the lock of an earlier review of the same pod
 *     -DKNOWN_LATE             what is known of the other pod is looked up after the answer about it
 *     -DNO_FENCE               the pending pod of a lock that is taken over is not fenced (not with BOTH)
 */

#define PODS 2
#define NOBODY 255
#define REVIEWS 2 /* of one creation */
#define BINDS 2
#define VERSIONS 8

/* ---- what the API server knows (etcd) ---- */
byte claim_version = 1;
byte claim_holder = NOBODY; /* the annotation */
bool claim_marked;           /* the same: created */
bool there[PODS];            /* it is stored, with its node; or bound */
byte pod_version = 1;        /* of pod 1, if it is bound by a replica */

/* ---- what it works on ---- */
bool works[PODS];   /* on the creation */
bool allowed[PODS]; /* a review has let it pass */
bool binding_sent;  /* for pod 1 */
byte binding_version;

/* Pods that are created: stored once, or given up. */
proctype creation(byte me) {
    if
    :: atomic { allowed[me] -> there[me] = true; works[me] = false; assert(!(there[0] && there[1])) } /* an exclusive claim has one pod */
    :: atomic { true -> works[me] = false; goto done }
    fi;
    there[me] = false; /* it is deleted, some time */
done:
    skip
}

/* GET of the claim, and what is found there about another pod (claim_lock_evaluate). */
#define READ_CLAIM \
    seen_version = claim_version; seen_holder = claim_holder; seen_mark = claim_marked; \
    is_kept = claim_holder == me && claim_marked

/* Whether the other pod, which does not exist, may still be created (may_appear). It may not if the lock is old, or if the pod was seen: the
 * API server does not work on its creation any more. */
#ifdef NO_AGE
#define MAY_APPEAR false
#else
#define MAY_APPEAR (seen_mark && works[other])
#endif

/* GET of the pod. What is known of it counts if it was known before: while the answer is on its way, the pod may be stored, and the
 * watch reports it. */
inline ask_about_pod() {
#ifdef KNOWN_LATE
    is_there = there[other];
    may_appear = MAY_APPEAR
#else
    may_appear = MAY_APPEAR;
    is_there = there[other]
#endif
}

/* lock_claim: PATCH, with the claim's version as precondition; claimguard.io/locked-at changes, if nothing else does. */
#ifdef NO_NONCE
#define CHANGES(mark) (claim_holder != me || claim_marked != (mark))
#else
#define CHANGES(mark) true
#endif
#ifdef NO_LOCK_PRECONDITION
#define IS_UNCHANGED true
#else
#define IS_UNCHANGED (claim_version == seen_version)
#endif
inline lock(mark) {
    claim_version = (CHANGES(mark) -> claim_version + 1 : claim_version);
    claim_holder = me;
    claim_marked = mark;
    my_lock = claim_version
}

/* release_patch, with the version that the lock has made as precondition. */
inline release() {
    if
    :: claim_version == my_lock && !is_kept && claim_version < VERSIONS ->
        claim_holder = NOBODY; claim_marked = false; claim_version++
    :: else
    fi
}

/* bind_admit of the creation. Several replicas may do this at once. */
proctype review(byte me) {
    byte other = 1 - me;
    byte my_lock, seen_version, seen_holder;
    bool seen_mark, is_kept, is_there, may_appear;

    if :: !works[me] -> goto done :: else fi; /* the API server asks while it works on it */
again:
    atomic { READ_CLAIM }
    if :: goto done :: true fi;
    if
    :: seen_holder == other ->
        ask_about_pod();
        if
        :: is_there -> goto done /* in use by */
        :: !is_there && may_appear -> goto done /* locked for */
        :: else /* there is no such pod */
        fi;
#ifndef BOTH
        atomic {
            if
            :: there[other] || pod_version >= VERSIONS -> goto done
            :: else -> /* fence_holder */
#ifndef NO_FENCE
                pod_version++
#else
                skip
#endif
            fi
        }
#else
        skip
#endif
    :: else
    fi;
    atomic {
        if
        :: IS_UNCHANGED && claim_version < VERSIONS ->
#ifdef NO_MARK
            lock(false)
#else
            lock(true)
#endif
#ifdef NO_KEPT
            ; is_kept = false
#endif
        :: claim_version >= VERSIONS -> goto done
        :: else -> goto again /* 409 */
        fi
    }
    if
    :: atomic { true -> allowed[me] = true } /* the answer, which may be lost */
    :: true /* no decision: what was locked stays */
    :: atomic { true -> release() } /* denied: claim_locks_release, without a fence */
    fi;
done:
    skip
}

#ifndef BOTH
/* The API server applies a Binding, or never. */
proctype network() {
end:
    do
    :: atomic { binding_sent && !there[1] && binding_version == pod_version ->
           there[1] = true; pod_version++; binding_sent = false; assert(!there[0])
       }
    :: atomic { binding_sent -> binding_sent = false }
    od
}

/* Bind calls of pod 1 (bind_pod). */
proctype replica() {
    byte me = 1, other = 0;
    byte my_version, my_lock, seen_version, seen_holder, binds = 0;
    bool seen_mark, is_kept, is_there, may_appear;

start:
    if
    :: binds == BINDS || there[1] || pod_version >= VERSIONS -> goto done
    :: else -> binds++
    fi;
    my_version = pod_version; /* read_own_version */
again:
    atomic { READ_CLAIM }
    if :: goto start :: true fi;
    if
    :: seen_holder == other ->
        ask_about_pod();
        if
        :: is_there || may_appear -> goto start
        :: else /* there is no such pod */
        fi
    :: else
    fi;
    atomic {
        if
        :: IS_UNCHANGED && claim_version < VERSIONS -> lock(false)
        :: claim_version >= VERSIONS -> goto done
        :: else -> goto again
        fi
    }
    if :: goto start :: true fi;
    atomic {
        if
        :: !binding_sent -> binding_sent = true; binding_version = my_version
        :: else
        fi
    }
    if
    :: goto start
    :: true /* it was refused */
    fi;
    atomic { /* claim_locks_release: fence of the pod itself */
        if
        :: there[1] || pod_version >= VERSIONS -> goto done
        :: else -> pod_version++
        fi
    }
    if :: goto start :: true fi;
    atomic { release() }
    goto start;
done:
    skip
}
#endif

init {
    atomic {
        works[0] = true;
        run creation(0);
        run review(0);
        run review(0);
#ifdef BOTH
        works[1] = true;
        run creation(1);
        run review(1);
        run review(1)
#else
        run network();
        run replica()
#endif
    }
}
