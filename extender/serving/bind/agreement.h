/*
 * agreement: what all claimguards of a cluster go by, whatever the configuration of each says: how
 * exclusive claims are kept (claimLock), and of which storage classes every claim is locked
 * (nonExclusiveClaims: Exclusive). It lies in the data of one ConfigMap; an operator can read it:
 *
 *     claimLock.Annotation: in force
 *     exclusive.fast-storage: in force
 *     exclusive.late-storage: announced at 1764103501123
 *
 * An entry is announced first. It is put in force when it was seen announced for AGREEMENT_MS, by
 * any claimguard whose configuration wants it. Every write has the version that was read as its
 * precondition.
 *
 * Why this is enough: a claimguard decides about a pod with claims only while its last GET began
 * less than AGREEMENT_FRESH_MS ago. A GET that begins after the announcement shows it. So
 * AGREEMENT_FRESH_MS after it, nobody decides without it; BIND_MS later, no Binding is sent that
 * was decided without it; BINDING_DEAD_MS later, the API server has applied or abandoned the last
 * one; and AGREEMENT_WATCH_MS later, the watches have reported it. Each uses its own clock, and
 * only for durations.
 *
 *                     announced                          in force
 *     exclusive.X     every pod locks its claims of X;   a pod may be deferred because of an entry
 *                     no pod is deferred because of an   for X
 *                     entry for X
 *     claimLock.K     no claimguard binds a pod with     those with K bind them
 *                     claims
 *
 * claimLock. One kind is in force at a time: what puts it in force removes the other. An
 * announcement of the other kind stops those of the kind in force. A claimguard announces its kind
 * when it starts, or has a new configuration; and again when the other one was in force for
 * AGREEMENT_DISPLACED_MS. An announcement that nobody puts in force for so long is removed: its
 * claimguards are gone. (One that has the former configuration again removes its own at once.) So
 * while both kinds run, each is in force in turn, and never both. The first Local is in force at
 * once, since Local is for one claimguard alone; the first Annotation is not: an earlier release,
 * which knows no agreement, may have bound with Local just before.
 *
 * A class in force is never removed by a claimguard: it cannot know that no other one has the
 * entry. One that is announced is removed after AGREEMENT_DISPLACED_MS by a claimguard without such
 * an entry: one that has it puts it in force in half that time, so there is none, or it is stuck.
 * That is safe, because no pod was deferred because of it: a claim of the class may be shared
 * without a lock again. One with the entry cannot have put it in force in between, for the version
 * that was read is the precondition of both writes; it announces the class again, and waits again.
 *
 * agreement.c is pure: a state machine without requests and clock, as the reflector.
 * agreement_live.c drives it: reads the ConfigMap every five seconds (every ten, while there is
 * none), and writes this claimguard's part of it.
 *
 * Threads: the state's lock guards it.
 */
#ifndef EXTENDER_SERVING_BIND_AGREEMENT_H
#define EXTENDER_SERVING_BIND_AGREEMENT_H

#include "extender/serving/bind/bind.h"
#include "policy/exclusive.h"

enum {
    AGREEMENT_FRESH_MS = 15000,
    AGREEMENT_WATCH_MS = 6000,
    AGREEMENT_MS = AGREEMENT_FRESH_MS + BIND_MS + BINDING_DEAD_MS + AGREEMENT_WATCH_MS,
    AGREEMENT_DISPLACED_MS = 2 * AGREEMENT_MS,
    AGREEMENT_ENTRIES_MAX = 128, /* with more, it cannot be followed; none is added beyond */
    AGREEMENT_KEY_MAX = 253,     /* of the API server, for a key of a ConfigMap */
    AGREEMENT_VALUE_MAX = 63,    /* more is cut off */
    AGREEMENT_REQUEST_MS = 4000,
};

struct agreement_entry {
    char key[AGREEMENT_KEY_MAX + 1], value[AGREEMENT_VALUE_MAX + 1];
    uint64_t since_ns; /* when it was first seen with this value */
    bool is_in_force;
};

/* Zeroed: nothing is known yet. */
struct agreement {
    bool is_absent;    /* none has shown it, and an answer was: there is none, or not for you */
    uint64_t began_ns; /* of the last GET that has shown it; 0: none has */
    char version[64];  /* of the ConfigMap */
    int seen_lock;     /* 1 + the claimLock that was wanted, and was there; 0: not yet */
    char announced[AGREEMENT_VALUE_MAX + 1]; /* the claimLock that it has announced, with that */
    /* the present entries, and those before */
    struct agreement_entry lists[2][AGREEMENT_ENTRIES_MAX];
    unsigned present;
    size_t count;
    struct agreed_class items[AGREEMENT_ENTRIES_MAX];
    struct agreed_classes classes; /* what policies see of it */

    /* of agreement_live */
    char path[512];    /* of the ConfigMap; empty: nobody reads it */
    char problem[256]; /* why it was not read, or written; empty: no problem */
    uint64_t next_ns;
    atomic_bool is_ready;
};

/* The ConfigMap in the answer to a request that began then. False: the body is none, or has too
 * many entries; nothing changes. *has_changed: there are other entries than when it was read last;
 * nobody has waited for the first. */
bool agreement_take(struct agreement *agreement, struct slice body, uint64_t began_ns,
                    uint64_t now_ns, bool *has_changed);

/* The API server says that there is none, or that claimguard may not read it. Once it was read,
 * that says nothing about other claimguards: what was read gets older, as without an answer. */
void agreement_miss(struct agreement *agreement);

/* Writes the merge patch with which this configuration's part of the agreement advances. False:
 * there is nothing to write. now_unix_ms: in the text of an announcement. */
bool agreement_propose(struct agreement *agreement, const struct config *config, uint64_t now_ns,
                       int64_t now_unix_ms, struct buf *patch);

/*
 * Whether a claimguard with this claimLock may bind or admit a pod that has claims: also one that
 * shares them, for what one kind shares, the other may defer, and Local announces no classes. Where
 * there was never a ConfigMap, Local is alone, and may.
 * Errors: ERROR_INVALID: what was read says that it has to wait; ERROR_UNAVAILABLE: it was not
 * read, or too long ago. The message says why.
 */
int agreement_check(const struct agreement *agreement, int claim_lock, uint64_t now_ns,
                    struct error *err);

/* ---- agreement_live.c ---- */

/* From now on, the state follows the agreement in that namespace. Before other threads start.
 * Without this call it follows none. */
void agreement_start(struct state *state, struct slice ns);

/* Reads and writes what is due, and waits for the API server, for AGREEMENT_REQUEST_MS each at
 * most. To be called once a second, by one thread; not under the lock. */
void agreement_tick(struct state *state);

/* Whether it was ever read, or absent where it may be: else no pod with claims can be bound. Any
 * thread, without the lock. */
bool agreement_is_ready(const struct state *state);

/* Whether this claimguard may bind pods with claims. The message says why not. 0 if it
 * follows no agreement. Under the lock. */
int agreement_permits(const struct state *state, struct error *err);

#endif
