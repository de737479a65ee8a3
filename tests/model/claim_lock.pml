/*
 * The protocol of extender/claim_lock.c and extender/bind.c (claimLock: Annotation), checked exhaustively by spin: two pods want one
 * exclusive claim, a replica of claimguard binds each, and the API server does one thing at a time. Every request may be applied at
 * any time after it was sent, or never; its answer may be lost, upon which the replica gives up, knowing nothing; a replica may crash
 * at any point and the scheduler start another bind for its pod.
 *
 * What is modelled is only what the safety rests on: versions as preconditions. There is no time in it: LOCK_PATIENCE_MS is left out,
 * so a lock may be taken over at once, which is worse than what the program does.
 *
 * Each transition names the function that it stands for. The switches take a precondition away; each has to give a counter-example:
 *     -DNO_LOCK_PRECONDITION   the claim's lock is written whatever its version is
 *     -DNO_FENCE               the pending pod of a lock that is taken over is not fenced
 *     -DNO_BIND_PRECONDITION   the Binding does not say the pod's version
 *     -DNO_PATCH_PRECONDITION  deferFSMount is written on the pod whatever its version is
 *     -DNO_RELEASE_FENCE       a lock is given back while an earlier Binding of the pod may be on its way
 *     -DNO_NONCE               a lock that is taken again writes what is there: the API server does not write that, and its version stays
 *     -DCONFLICT_IS_GONE       a fence that is answered with 409 passes for one of a pod that is gone
 */

#define PODS 2
#define NOBODY 255
#define BINDS 2 /* that a scheduler starts for each pod */
#define VERSIONS 6

/* ---- what the API server knows (etcd) ---- */
byte claim_version = 1;
byte claim_holder = NOBODY; /* the annotation */
byte pod_version[PODS] = { 1, 1 };
bool pod_bound[PODS];

/* A Binding that was sent, and is applied some time, or never. */
bool binding_sent[PODS];
byte binding_version[PODS];

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
    od
}

/* One pod's bind calls, one after the other, as its scheduler makes them. */
proctype replica(byte me) {
    byte other = 1 - me;
    byte my_version, my_lock, seen_version, seen_holder;
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
    atomic { seen_version = claim_version; seen_holder = claim_holder }
    if :: goto start :: true fi;

    if
    :: seen_holder == other -> /* judge_lock: GET of the pod, then fence: PATCH of the pod */
        atomic {
            if
            :: pod_bound[other] -> goto start /* refused: in use by */
            :: !pod_bound[other] && pod_version[other] >= VERSIONS -> goto done
            :: !pod_bound[other] && pod_version[other] < VERSIONS ->
#ifndef NO_FENCE
                pod_version[other]++
#else
                skip
#endif
#ifdef CONFLICT_IS_GONE
            :: true /* 409, from too many writers; with fence_pod's look it is the same as no answer */
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
        :: claim_version == my_lock && claim_version < VERSIONS -> claim_holder = NOBODY; claim_version++
        :: else
        fi
    }
    goto start;

done:
    skip
}

init {
    atomic { run network(); run replica(0); run replica(1) }
}
