/*
 * claim_reports: Events, and warnings in the log, about claims that another pod has.
 *
 * Threads: the informer's alone.
 */
#ifndef EXTENDER_SERVING_LIVE_CLAIM_REPORTS_H
#define EXTENDER_SERVING_LIVE_CLAIM_REPORTS_H

#include "extender/serving/state.h"

/*
 * ---- violations ----
 *
 * Claims that belong to one pod, and are held by two: the second pod set spec.nodeName,
 * or a scheduler without claimguard bound it. That can only be reported: by a warning in the log,
 * and by an Event on the pod that came second, once for each pod and claim.
 */
enum { VIOLATIONS_REPORTED_MAX = 2000 }; /* remembered; the oldest beyond may be reported again */

struct violations {
    struct state *state;
    struct reported *reported; /* uthash */
};

void violations_dispose(struct violations *violations);

/* Reports what a change of the object violates. was_holding: the object is a pod that held its
 * claims before the change. Under the lock. */
void violations_report_change(struct violations *violations, const struct object *object,
                              bool was_holding);

/* Reports all claims that two pods hold. Takes the lock, a page of claims at a time. */
void violations_report_all(struct violations *violations);

/*
 * ---- claims in use ----
 *
 * The Event ClaimInUse, on a pod that kube-scheduler's own plug-in VolumeRestrictions
 * rejects for a ReadWriteOncePod claim. claimguard's filter is then not called, and the plug-in
 * does not say which pod has the claim: the Event says so, where that pod is, and whether
 * preemption can help.
 *
 * That the pod was rejected is in its condition PodScheduled, which the watch brings
 * (pod_object.is_refused_unnamed). The condition stays as it is when another pod gets the claim, so
 * pods that wait are remembered, and a new holder is reported when it is bound. Once for each pod,
 * claim and holder: the Event's name is made of their UIDs, so that several claimguards, and one
 * after a restart, post it once.
 *
 * A pod that has to be looked at is due, and a tick looks at a few of those. If too many Events
 * were posted, the rest waits. Any other pod costs no more than the comparison of its claims with
 * those of the pods that wait, when it is bound.
 */
enum {
    CLAIM_IN_USE_PODS_MAX = 1000,  /* that are remembered; one more replaces the oldest of the
                                      share that has most */
    CLAIM_IN_USE_REPORTED_MAX = 8, /* claims and holders of each, the last ones */
    CLAIM_IN_USE_CLAIMS_MAX = 8,   /* claims of each, the first ones, whose holders are reported */
};

struct claim_in_use {
    struct state *state;
    struct refused *refused;     /* uthash: the pods that wait, by UID */
    struct refused *due;         /* of these; utlist */
    uint64_t tick_ns;            /* when it looks at them next */
    uint64_t full_ns[SHARES];    /* pods of the namespaces of a share are not looked at before:
                                    an Event was dropped */
    uint32_t refused_in[SHARES]; /* the pods that wait */
    bool is_synced;              /* the holders are known */
    bool has_dropped;            /* by the last look: an Event */
};

void claim_in_use_dispose(struct claim_in_use *in_use);

/* A pod has changed. was_holding: it held its claims before. */
void claim_in_use_put(struct claim_in_use *in_use, const struct pod_object *pod, bool was_holding);
void claim_in_use_delete(struct claim_in_use *in_use, const struct meta *pod);

/* All holders are known now: until then, a tick does nothing. */
void claim_in_use_synced(struct claim_in_use *in_use);

/* Looks at pods that are due; takes the lock for one at a time. Returns when to call it again, or
 * UINT64_MAX: after one of the functions above. */
uint64_t claim_in_use_tick(struct claim_in_use *in_use, uint64_t now_ns);

#endif
