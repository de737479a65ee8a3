/*
 * trials: what is remembered of a pod that a scheduler tries on one node after the other, with a
 * call for each. Volcano does so, for every pod that waits, in each cycle (1 s), and binds a pod
 * only when its whole gang has room. kube-scheduler binds a pod of a scheduling group only then,
 * too, so its reservations end as those of Volcano's pods do. Two things must not be repeated with
 * the calls:
 *
 *   a confirmation   holds for TRIAL_CONFIRMED_MS, for the same pod and the same causes: a pod that
 *                    is rejected costs requests once in a cycle, and not for each node. So does an
 *                    API server that does not answer.
 *   a reservation    ends with its time, also if the trials continue: a gang that is never complete
 *                    must not keep a claim from pods that can run. A trial that passes reserves
 *                    until reservationTTL after the first one that did, or for TRIAL_LEAD_MS if
 *                    that is later, since a bind may follow it. From reservationTTL on, trials do
 *                    not reserve, until other pods have had TRIAL_PAUSE_MS without a reservation.
 *
 * A slot for each pod, chosen by its hash. A pod that takes over the slot of another one costs that
 * pod a confirmation, or lets it reserve again.
 *
 * Threads: any. No function blocks.
 */
#ifndef EXTENDER_LIVE_TRIALS_H
#define EXTENDER_LIVE_TRIALS_H

#include <pthread.h>
#include <stdint.h>

#include "extender/state.h"

enum {
    TRIAL_SLOTS = 1024,
    TRIAL_CONFIRMED_MS = 1000,
    TRIAL_LEAD_MS = 5000,
    TRIAL_PAUSE_MS = 5000,
};

struct trial {
    uint64_t pod;          /* hash of its namespace, name and UID */
    uint64_t causes;       /* hash of the causes that were confirmed, */
    uint64_t confirmed_ns; /* then; 0: none were */
    enum confirmation confirmation;
    uint64_t reserved_ns; /* when the first of these trials passed; 0: none has */
};

struct trials {
    pthread_mutex_t lock; /* guards slots */
    struct trial slots[TRIAL_SLOTS];
};

void trials_init(struct trials *trials);
void trials_dispose(struct trials *trials);

/* Whether the rejection was confirmed just now: then *confirmation is the result. */
bool trials_recall(struct trials *trials, const struct meta *pod, const struct verdict *verdict,
                   enum confirmation *confirmation);

/* The rejection was confirmed, or could not be. */
void trials_note(struct trials *trials, const struct meta *pod, const struct verdict *verdict,
                 enum confirmation confirmation);

/* The pod passes: until when its claims are to be reserved, on the clock of monotonic_ns; 0: they
 * are not. ttl_ns: reservationTTL. */
uint64_t trials_reserve_until(struct trials *trials, const struct meta *pod, uint64_t ttl_ns);

/* The pod is rejected on every node, so it reserves nothing: the next trial that passes is the
 * first one again. */
void trials_rejected(struct trials *trials, const struct meta *pod);

#endif
