/*
 * The claim step of extender/bind.c (claimLock: Local), checked exhaustively by spin: two pods want one exclusive claim, and one claimguard
 * binds both, each on a thread of its own, as two schedulers ask. A pod may be deleted and made again under its name; the watch tells of it
 * at some time; a Binding is applied some time after it was sent, or never, and its answer may be lost.
 *
 * Each transition names the function that it stands for. The switches take a check away; each has to give a counter-example:
 *     -DNO_ATOMIC_CLAIM   others come in between the look at the claim and its reservation
 *     -DNO_UID            the Binding does not say which pod of that name it is for
 */

#define PODS 2
#define NOBODY 255
#define BINDS 2
#define UIDS 2 /* pods of one name, after the first */

/* ---- what the API server knows ---- */
byte uid[PODS];
bool bound[PODS];

/* A Binding that was sent, and what became of it. */
mtype = { none, applied, refused };
bool sent[PODS];
byte sent_uid[PODS];
mtype answer[PODS] = none;

/* ---- what claimguard knows ---- */
byte known_uid[PODS];
bool known_bound[PODS];
byte reserved = NOBODY; /* for that pod */
byte reserved_uid;

#define RELEASE(pod, pod_uid) \
    if :: reserved == pod && reserved_uid == pod_uid -> reserved = NOBODY :: else fi

inline apply_binding(pod) {
    if
#ifdef NO_UID
    :: !bound[pod] ->
#else
    :: !bound[pod] && sent_uid[pod] == uid[pod] ->
#endif
        bound[pod] = true;
        answer[pod] = applied;
        assert(bound[0] + bound[1] < 2) /* an exclusive claim never has two bound pods */
    :: else -> answer[pod] = refused
    fi;
    sent[pod] = false
}

proctype network() {
end:
    do
    :: atomic { sent[0] -> apply_binding(0) }
    :: atomic { sent[1] -> apply_binding(1) }
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

/* One pod's bind calls, as its scheduler makes them. */
proctype replica(byte me) {
    byte other = 1 - me;
    byte my_uid, binds = 0;

start: /* bind_pod */
    if
    :: binds == BINDS -> goto done
    :: else -> binds++; my_uid = uid[me]
    fi;

    atomic { /* take_claims, under the lock */
        if
        :: known_uid[me] == my_uid && !known_bound[me] && !known_bound[other] && reserved != other -> skip
        :: else -> goto start
        fi;
#ifdef NO_ATOMIC_CLAIM
    }
    atomic {
#endif
        reserved = me;
        reserved_uid = my_uid
    }

    atomic { /* post_binding */
        answer[me] = none;
        sent[me] = true;
        sent_uid[me] = my_uid
    }
    if
    :: atomic { answer[me] == applied -> /* settle */
           if
           :: known_uid[me] == my_uid -> known_bound[me] = true
           :: else
           fi;
           RELEASE(me, my_uid)
       }
    :: atomic { answer[me] == refused -> RELEASE(me, my_uid) } /* undo */
    :: atomic { !sent[me] -> learn(me); RELEASE(me, my_uid) } /* doubt: until the API server has given it up */
    fi;
    goto start;

done:
    skip
}

init {
    atomic { run network(); run user(); run watch(); run replica(0); run replica(1) }
}
