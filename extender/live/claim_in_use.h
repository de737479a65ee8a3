/*
 * claim_in_use: the Event ClaimInUse, on a pod that kube-scheduler's own plug-in VolumeRestrictions
 * rejects for a ReadWriteOncePod claim. claimguard's filter is then not called, and the plug-in
 * does not say which pod has the claim: the Event says so, where that pod is, and whether
 * preemption can help.
 *
 * That the pod was rejected is in its condition PodScheduled, which the watch brings
 * (pod_object.is_refused_unnamed). The condition stays as it is when another pod gets the claim, so
 * pods that wait are remembered, and a new holder is reported when it is bound. Once for each pod,
 * claim and holder: the Event's name is made of their UIDs, so that several claimguards, and one
 * after a restart, post it once. Any other pod costs nothing here.
 *
 * Threads: the informer's alone.
 */
#ifndef EXTENDER_LIVE_CLAIM_IN_USE_H
#define EXTENDER_LIVE_CLAIM_IN_USE_H

#include "extender/state.h"

enum {
    CLAIM_IN_USE_PODS_MAX = 1000,  /* that are remembered; one more replaces the oldest */
    CLAIM_IN_USE_REPORTED_MAX = 8, /* claims and holders of each, the last ones */
};

struct claim_in_use {
    struct state *state;
    struct refused *refused; /* uthash: the pods that wait, by UID */
    bool is_synced;          /* the holders are known */
};

void claim_in_use_dispose(struct claim_in_use *in_use);

/* A pod has changed. was_holding: it held its claims before. Takes the lock. */
void claim_in_use_put(struct claim_in_use *in_use, const struct pod_object *pod, bool was_holding);
void claim_in_use_delete(struct claim_in_use *in_use, const struct meta *pod);

/* All holders are known now. Takes the lock, for one pod at a time. */
void claim_in_use_synced(struct claim_in_use *in_use);

#endif
