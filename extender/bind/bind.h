/*
 * bind: takes all of the pod's exclusive claims, or none, and binds it: in a snapshot in memory,
 * in a live cluster by a Binding with the pod's UID. From then on the pod holds its claims, whether
 * the watch has told it or not.
 *
 * Idempotent (kubernetes#96579): a pod that is bound to that node already is a success, also when
 * the answer to our own Binding was lost. A failure undoes what was taken, once the pod was seen
 * unbound; where nobody knows whether the Binding was applied, the claims stay taken until the
 * watch reports it, or for BINDING_DEAD_MS.
 *
 * What the cache says of claims is confirmed where a pass rests on it: no claim passes for one that
 * pods may share, while another pod has it, unless the API server says so. In requests, a bind
 * costs the Binding, and a GET for each claim that the pod shares if another pod has any of them
 * (claimLock: Annotation: if it shares any), CONFIRM_MAX at once.
 */
#ifndef EXTENDER_BIND_BIND_H
#define EXTENDER_BIND_BIND_H

#include "extender/protocol/protocol.h"
#include "extender/state.h"

enum {
    BIND_MS = 4000,    /* for all of it; the scheduler's default patience is 5 s */
    SEND_MS_MIN = 100, /* a Binding that has less for its answer is not sent: one without an answer
                          blocks its claims */
};

/* Errors: why the pod is not bound. Claims that are not free count as a bind conflict. */
int bind_pod(struct state *state, const struct bind_request *request, struct arena *arena,
             struct error *err);

#endif
