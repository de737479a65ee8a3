/*
 * The protocol of extender/serving/bind/claim_lock*.c and bind.c (claimLock: Annotation), checked exhaustively by spin: two pods want one
 * exclusive claim, a replica of claimguard binds each, and the API server does one thing at a time. Every request may be applied at
 * any time after it was sent, or never; its answer may be lost, upon which the replica gives up, knowing nothing; a replica may crash
 * at any point and the scheduler start another bind for its pod. For pod 0, another client also posts a Binding, which a replica reviews
 * (bind.c): the Binding has no version as its precondition, and follows later, or never. Pods that are created with their node are in
 * creation_lock.pml. Pods and claims are not deleted here.
 *
 * What is modelled is only what the safety rests on: versions as preconditions. There is no time in it: LOCK_PATIENCE_MS is left out,
 * so a lock may be taken over at once, which is worse than what the program does. Only of BINDING_DEAD_MS is there what it means: the API
 * server has given up all Bindings that were let pass before the lock was seen.
 *
 * Each transition names the function that it stands for. The switches take a precondition away; each has to give a counter-example:
 *     -DNO_LOCK_PRECONDITION   the claim's lock is written whatever its version is
 *     -DNO_FENCE               the pending pod of a lock that is taken over is not fenced
 *     -DNO_BIND_PRECONDITION   the Binding does not say the pod's version
 *     -DNO_PATCH_PRECONDITION  deferFSMount is written on the pod whatever its version is
 *     -DNO_RELEASE_FENCE       a lock is given back while an earlier Binding of the pod may be on its way
 *     -DNO_NONCE               a lock that is taken again writes what is there: the API server does not write that, and its version stays
 *     -DNO_AGE                 a lock for a Binding that was let pass is taken over as any other
 *     -DNO_MARK                a review does not mark its lock
 *     -DMARK_IS_LOST           a bind of the same pod takes the mark off
 *     -DNO_KEPT                a bind of the same pod gives back a lock with a mark
 *     -DCONFLICT_IS_GONE       a fence that is answered with 409 passes for one of a pod that is gone
 */

#define PODS 2
#define NOBODY 255
#ifdef REVIEWS /* that another client has made for pod 0; with more binds, there are too many states */
#define BINDS 1
#else
#define REVIEWS 0
#define BINDS 2 /* that a scheduler starts for each pod */
#endif
#define VERSIONS 6

/* ---- what the API server knows (etcd) ---- */
byte claim_version = 1;
byte claim_holder = NOBODY; /* the annotation */
bool claim_admitted;         /* the same: the lock is for a Binding that a review lets pass */
byte pod_version[PODS] = { 1, 1 };
bool pod_bound[PODS];

/* A Binding that was sent, and is applied some time, or never. */
bool binding_sent[PODS];
byte binding_version[PODS];

/* The other client's Bindings: for so many the claim was locked, and the API server works on them; one was let pass. */
byte worked_on;
bool passed;

#define BOUND (pod_bound[0] + pod_bound[1])

/* The API server applies a Binding: pod/binding's setPodNodeAndMetadata, with the version as precondition. */
inline apply_binding(pod) {
    if
#ifdef NO_BIND_PRECONDITION
    :: !pod_bound[pod] ->
#else
    :: !pod_bound[pod] && binding_version[pod] == pod_version[pod] ->
#endif
        pod_bound[pod] = true;
        pod_version[pod]++;
        assert(BOUND < 2) /* an exclusive claim never has two bound pods */
    :: else
    fi;
    binding_sent[pod] = false
}

/* Bindings on their way, of replicas that wait for them, gave up, or crashed. */
proctype network() {
end:
    do
    :: atomic { binding_sent[0] -> apply_binding(0) }
    :: atomic { binding_sent[1] -> apply_binding(1) }
    :: atomic { binding_sent[0] -> binding_sent[0] = false }
    :: atomic { binding_sent[1] -> binding_sent[1] = false }
    :: atomic { passed ->
           if
           :: !pod_bound[0] -> pod_bound[0] = true; pod_version[0]++; assert(BOUND < 2)
           :: else
           fi;
           passed = false; worked_on--
       }
    :: atomic { passed -> passed = false; worked_on-- }
    od
}

/* One pod's bind calls, one after the other, as its scheduler makes them. */
proctype replica(byte me) {
    byte other = 1 - me;
    byte my_version, my_lock, seen_version, seen_holder;
    bool seen_admitted, is_kept;
    byte binds = 0;

start: /* bind_pod */
    if
    :: binds == BINDS -> goto done
    :: else -> binds++
    fi;

    /* read_own_version */
    atomic {
        if
        :: pod_bound[me] -> goto done
        :: pod_version[me] >= VERSIONS -> goto done /* bounds the state space */
        :: else -> my_version = pod_version[me]
        fi
    }
    if :: goto start :: true fi; /* crash, or a lost answer: here and wherever a bind can end */

again: /* lock_claim: GET */
    atomic { seen_version = claim_version; seen_holder = claim_holder; seen_admitted = claim_admitted }
    if :: goto start :: true fi;

    if
    :: seen_holder == other -> /* claim_lock_evaluate: GET of the pod, then fence: PATCH of the pod */
        atomic {
            if
            :: pod_bound[other] -> goto start /* refused: in use by */
            :: !pod_bound[other] && pod_version[other] >= VERSIONS -> goto done
#ifndef NO_AGE
            :: !pod_bound[other] && seen_admitted && worked_on != 0 -> goto start /* refused: locked for */
            :: !pod_bound[other] && !(seen_admitted && worked_on != 0) && pod_version[other] < VERSIONS ->
#else
            :: !pod_bound[other] && pod_version[other] < VERSIONS ->
#endif
#ifndef NO_FENCE
                pod_version[other]++
#else
                skip
#endif
#ifdef CONFLICT_IS_GONE
            :: true /* 409, from too many writers; with the look of claim_lock_fence_pod it is the same as no answer */
#endif
            fi
        }
        if :: goto start :: true fi
    :: else /* none, or our own */
    fi;

    atomic { /* lock_claim: PATCH, with the claim's version as precondition */
        if
#ifdef NO_LOCK_PRECONDITION
        :: claim_version < VERSIONS ->
#else
        :: claim_version == seen_version && claim_version < VERSIONS ->
#endif
            if
#ifdef NO_NONCE
            :: claim_holder == me /* nothing changes */
            :: claim_holder != me -> claim_holder = me; claim_version++
#else
            :: true -> claim_holder = me; claim_version++ /* claimguard.io/locked-at changes, if nothing else does */
#endif
            fi;
            is_kept = seen_holder == me && seen_admitted;
#ifndef MARK_IS_LOST
            claim_admitted = is_kept;
#else
            claim_admitted = false;
            is_kept = false;
#endif
#ifdef NO_KEPT
            is_kept = false;
#endif
            my_lock = claim_version
        :: claim_version >= VERSIONS -> goto done
        :: else -> goto again /* 409 */
        fi
    }
    if
    :: goto start
    :: true ->
        goto release
    :: true
    fi;

    if /* defer_write: PATCH of the pod, with its version as precondition; the Binding's is the one that it makes */
    :: atomic {
#ifdef NO_PATCH_PRECONDITION
           pod_version[me] < VERSIONS ->
#else
           pod_version[me] == my_version && pod_version[me] < VERSIONS ->
#endif
           pod_version[me]++;
           my_version = pod_version[me]
       }
    :: atomic { pod_version[me] != my_version -> goto release } /* 409 */
    :: true /* there is nothing to write */
    fi;
    if :: goto start :: true fi;

    atomic { /* post_binding: sent; the network applies it, now or later */
        if
        :: !binding_sent[me] -> binding_sent[me] = true; binding_version[me] = my_version
        :: else /* an earlier one is still on its way: this one is lost */
        fi
    }
    if
    :: goto start /* the answer came, or did not: the scheduler asks again */
    :: true /* it was refused */
    fi;

release: /* claim_locks_release: fence of the pod itself, whose earlier Bindings may be on their way */
    atomic {
        if
        :: pod_bound[me] -> goto done
        :: pod_version[me] >= VERSIONS -> goto done
        :: else ->
#ifndef NO_RELEASE_FENCE
            pod_version[me]++
#else
            skip
#endif
        fi
    }
    if :: goto start :: true fi;
    atomic { /* PATCH, with the claim's version as precondition */
        if
        :: claim_version == my_lock && claim_version < VERSIONS && !is_kept -> claim_holder = NOBODY; claim_version++
        :: else
        fi
    }
    goto start;

done:
    skip
}

/* The Bindings that another client posts for pod 0, each reviewed before it is stored. */
proctype client() {
    byte my_lock, seen_version, seen_holder;
    bool is_kept;
    byte reviews = 0;

start: /* bind_admit */
    if
    :: reviews == REVIEWS || pod_bound[0] || pod_version[0] >= VERSIONS -> goto done
    :: else -> reviews++
    fi;

again: /* lock_claim: GET, and what stands for a lock of the other pod */
    atomic { seen_version = claim_version; seen_holder = claim_holder; is_kept = claim_holder == 0 && claim_admitted }
    if
    :: seen_holder == 1 ->
        atomic {
            if
            :: pod_bound[1] -> goto start
            :: !pod_bound[1] && pod_version[1] >= VERSIONS -> goto done
            :: !pod_bound[1] && pod_version[1] < VERSIONS ->
#ifndef NO_FENCE
                pod_version[1]++
#else
                skip
#endif
            fi
        }
    :: else
    fi;

    atomic { /* lock_claim: PATCH, with the mark */
        if
        :: claim_version == seen_version && claim_version < VERSIONS ->
            claim_holder = 0;
#ifndef NO_MARK
            claim_admitted = true;
#endif
            claim_version++;
            my_lock = claim_version;
            worked_on++
        :: claim_version >= VERSIONS -> goto done
        :: else -> goto again
        fi
    }
    if
    :: atomic { !passed -> passed = true; goto start } /* allowed */
    :: atomic { true -> worked_on--; goto start } /* no answer in time: the Binding is refused, and the lock stays */
    :: atomic { true -> worked_on-- } /* denied: it is released */
    fi;

    atomic { /* claim_locks_release: the fence */
        if
        :: pod_bound[0] || pod_version[0] >= VERSIONS -> goto done
        :: else -> pod_version[0]++
        fi
    }
    atomic {
        if
        :: claim_version == my_lock && claim_version < VERSIONS && !is_kept ->
            claim_holder = NOBODY; claim_admitted = false; claim_version++
        :: else
        fi
    }
    goto start;

done:
    skip
}

init {
    atomic { run network(); run replica(0); run replica(1); run client() }
}
