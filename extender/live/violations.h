/*
 * violations: claims that belong to one pod, and are held by two: the second pod set spec.nodeName,
 * or a scheduler without claimguard bound it. That can only be reported: by a warning in the log,
 * and by an Event on the pod that came second, once for each pod and claim.
 *
 * Threads: the informer's alone.
 */
#ifndef EXTENDER_LIVE_VIOLATIONS_H
#define EXTENDER_LIVE_VIOLATIONS_H

#include "extender/state.h"

enum { VIOLATIONS_REPORTED_MAX = 2000 }; /* remembered; the oldest beyond may be reported again */

struct violations {
    struct state *state;
    struct reported *reported; /* uthash */
};

void violations_dispose(struct violations *violations);

/* Reports the claim, if two pods hold it. Under the lock. */
void violations_report(struct violations *violations, const struct claim *claim);

/* Reports what a change of the object violates. was_holding: the object is a pod that held its
 * claims before the change. Under the lock. */
void violations_report_change(struct violations *violations, const struct object *object,
                              bool was_holding);

/* Reports all claims that two pods hold. Takes the lock, a page of claims at a time. */
void violations_report_all(struct violations *violations);

#endif
