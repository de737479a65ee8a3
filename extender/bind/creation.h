/*
 * creation: a pod that its creator has bound already, by spec.nodeName, as admission sees it: the
 * API server has not stored it, so it cannot be changed any more, and no watch has it.
 *
 * Ownership: what is made lies in the caller's arena, and borrows from the pod. Under the lock.
 */
#ifndef EXTENDER_BIND_CREATION_H
#define EXTENDER_BIND_CREATION_H

#include "extender/state.h"

/* The pod without the claims of its generic ephemeral volumes that do not exist: those are created
 * after the pod, for it alone. They are behind the others in out->claims, up to created's
 * claim_count. False: out of memory. */
bool creation_describe(const struct cluster *cluster, const struct pod_object *created,
                       struct arena *arena, struct pod_object *out);

/* A pod may have been bound to a claim of that name that is gone: it uses the new one, too, if it
 * still waits for its volumes. Errors: ERROR_INVALID: another pod holds a claim that is to be
 * created for this one. */
int creation_check_names(const struct cluster *cluster, const struct pod_object *created,
                         struct error *err);

/* Errors: ERROR_INVALID: whether a volume is deferred depends on a claim that is created after the
 * pod. */
int creation_check_deferral(const struct view *view, const struct pod_object *pod,
                            struct error *err);

/* Creates the pod of a snapshot, in memory. Under the lock, for writing. */
int creation_apply(struct state *state, const struct pod_object *pod, struct error *err);

#endif
