/*
 * The claim step of extender/serving/bind (claimLock: Local), checked exhaustively by spin: two pods want one exclusive claim, and one claimguard
 * binds both, each on a thread of its own, as two schedulers ask. For one of them, another client also posts a Binding, which claimguard
 * reviews. A pod may be deleted and made again under its name; the watch tells of it at some time; a Binding is applied some time after it
 * was sent or let pass, or never; the answer to the one may be lost, and of the other there is none.
 *
 * Not in it: pods that are created with their node. Their reservation is kept as here for a review; that the API server has no such pod
 * does not end it (tests/simulation/creation_rows.c). Nor preemption, nor claims that several pods share.
 *
 * Each transition names the function that it stands for. The switches take a check away; each has to give a counter-example:
 *     -DNO_ATOMIC_CLAIM   others come in between the look at the claim and its reservation
 *     -DNO_UID            the Binding does not say which pod of that name it is for
 *     -DNO_KEEP           a review that lets a Binding pass keeps nothing
 *     -DNO_DOUBT          a bind that is refused ends what a review keeps
 *     -DNO_COUNT          a bind that is refused ends what another one of the pod is about to use
 *     -DNO_LOOK           what a review keeps ends, and nobody has looked whether its pod is bound
 *     -DNO_END            what a review keeps ends before the API server must have given its Binding up
 */

#define PODS 2
#define NOBODY 255
#define BINDS 2
#define REVIEWS 2
#define UIDS 2 /* pods of one name, after the first */

/* ---- what the API server knows ---- */
byte uid[PODS];
bool bound[PODS];

/* A Binding that was sent, and what became of it. */
mtype = { none, applied, refused };
bool sent[PODS];
byte sent_uid[PODS];
mtype answer[PODS] = none;

/* Bindings of another client: so many the API server works on; one of them a review let pass. */
byte worked_on[PODS];
bool passed[PODS];
byte passed_uid[PODS];

/* ---- what claimguard knows ---- */
byte known_uid[PODS];
bool known_bound[PODS];
byte reserved = NOBODY; /* for that pod */
byte reserved_uid;
byte binds = 0;   /* of the reservation: under way */
bool kept = false; /* a review has let a Binding of its pod pass */

#define IS_OF(pod, pod_uid) (reserved == pod && reserved_uid == pod_uid)

/* reservation_release */
#define RELEASE(pod, pod_uid) \
    if :: IS_OF(pod, pod_uid) -> reserved = NOBODY; binds = 0; kept = false :: else fi

/* reservation_undo */
inline undo(pod, pod_uid) {
    if
    :: IS_OF(pod, pod_uid) ->
        binds = (binds > 0 -> binds - 1 : 0);
        if
#ifndef NO_COUNT
        :: binds != 0 -> skip
#endif
#ifndef NO_DOUBT
        :: kept -> skip
#endif
        :: else -> RELEASE(pod, pod_uid)
        fi
    :: else
    fi
}

/* reservation_take, under the lock, with the look at the claim before it */
inline take(pod, other, pod_uid, is_taken) {
    if
    :: known_uid[pod] == pod_uid && !known_bound[pod] && !known_bound[other] && reserved != other -> is_taken = true
    :: else -> is_taken = false
    fi
}
inline reserve(pod, pod_uid) {
    if
    :: IS_OF(pod, pod_uid) -> skip
    :: else -> binds = 0; kept = false
    fi;
    reserved = pod;
    reserved_uid = pod_uid;
    binds++
}

/* pod/binding's storage */
inline store(pod, pod_uid, result) {
    if
#ifdef NO_UID
    :: !bound[pod] ->
#else
    :: !bound[pod] && pod_uid == uid[pod] ->
#endif
        bound[pod] = true;
        result = applied;
        assert(bound[0] + bound[1] < 2) /* an exclusive claim never has two bound pods */
    :: else -> result = refused
    fi
}

proctype network() {
    mtype unheard;
end:
    do
    :: atomic { sent[0] -> store(0, sent_uid[0], answer[0]); sent[0] = false }
    :: atomic { sent[1] -> store(1, sent_uid[1], answer[1]); sent[1] = false }
    :: atomic { passed[0] -> store(0, passed_uid[0], unheard); unheard = none; passed[0] = false; worked_on[0]-- }
    :: atomic { passed[0] -> passed[0] = false; worked_on[0]-- }
    :: atomic { sent[0] -> sent[0] = false; answer[0] = refused }
    :: atomic { sent[1] -> sent[1] = false; answer[1] = refused }
    od
}

/* A pod is deleted, and one of its name made. */
proctype user() {
end:
    do
    :: atomic { uid[0] < UIDS -> uid[0]++; bound[0] = false }
    :: atomic { uid[1] < UIDS -> uid[1]++; bound[1] = false }
    od
}

/* fold_change: a pod that is bound or gone has no reservation any more. */
inline learn(pod) {
    if
    :: known_uid[pod] != uid[pod] || bound[pod] -> RELEASE(pod, known_uid[pod])
    :: else
    fi;
    known_uid[pod] = uid[pod];
    known_bound[pod] = bound[pod]
}

proctype watch() {
end:
    do
    :: atomic { known_uid[0] != uid[0] || known_bound[0] != bound[0] -> learn(0) }
    :: atomic { known_uid[1] != uid[1] || known_bound[1] != bound[1] -> learn(1) }
    od
}

/* expiry_run: BINDING_DEAD_MS after the last review, the API server has given up what it let pass. */
proctype expiry() {
    byte ended;
end:
    do
#ifdef NO_END
    :: atomic { kept && binds == 0 -> RELEASE(reserved, reserved_uid) }
#else
    :: atomic { kept && binds == 0 && worked_on[reserved] == 0 && !sent[reserved] ->
           ended = reserved; /* the watch has told by then, or a look at the API server does */
#ifndef NO_LOOK
           learn(ended);
#endif
           if
           :: reserved == ended -> RELEASE(reserved, reserved_uid)
           :: else
           fi;
           ended = 0
       }
#endif
    od
}

/* The Bindings that another client posts for a pod. The API server asks about each, and waits for the answer. */
proctype client(byte me) {
    byte other = 1 - me;
    byte my_uid, reviews = 0;
    bool is_taken;

start:
    if
    :: reviews == REVIEWS -> goto done
    :: atomic { else -> reviews++; worked_on[me]++; my_uid = uid[me] }
    fi;

    atomic { /* bind_admit: take_claims */
        take(me, other, my_uid, is_taken);
        if
        :: is_taken -> reserve(me, my_uid)
        :: else -> worked_on[me]--; goto start
        fi
    }
    if
    :: atomic { true -> /* bind_admit: keep_claims, and the answer: allowed, which may be lost */
#ifdef NO_KEEP
           undo(me, my_uid)
#else
           if
           :: IS_OF(me, my_uid) -> binds = (binds > 0 -> binds - 1 : 0); kept = true
           :: else
           fi
#endif
       }
    :: atomic { true -> undo(me, my_uid); worked_on[me]--; goto start } /* refused after that */
    fi;
    atomic {
        if
        :: !passed[me] -> passed[me] = true; passed_uid[me] = my_uid
        :: true -> worked_on[me]-- /* another webhook denies it, or etcd fails */
        fi
    }
    goto start;

done:
    skip
}

/* One pod's bind calls, as its scheduler makes them. */
proctype replica(byte me) {
    byte other = 1 - me;
    byte my_uid, calls = 0;
    bool is_taken;

start: /* bind_pod */
    if
    :: calls == BINDS -> goto done
    :: else -> calls++; my_uid = uid[me]
    fi;

    atomic { /* take_claims, under the lock */
        take(me, other, my_uid, is_taken);
        if
        :: is_taken
        :: else -> goto start
        fi;
#ifdef NO_ATOMIC_CLAIM
    }
    atomic {
#endif
        reserve(me, my_uid)
    }

    atomic { /* post_binding */
        answer[me] = none;
        sent[me] = true;
        sent_uid[me] = my_uid
    }
    if
    :: atomic { answer[me] == applied -> /* keep_claims */
           if
           :: known_uid[me] == my_uid -> known_bound[me] = true
           :: else
           fi;
           RELEASE(me, my_uid)
       }
    :: atomic { answer[me] == refused -> undo(me, my_uid) }
    :: atomic { !sent[me] -> learn(me); undo(me, my_uid) } /* doubt: until the API server has given it up */
    fi;
    goto start;

done:
    skip
}

init {
    atomic { run network(); run user(); run watch(); run expiry(); run replica(0); run replica(1); run client(0) }
}
