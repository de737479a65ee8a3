/*
 * bind: takes all of the pod's exclusive claims, or none, and binds the pod: in a snapshot in
 * memory, in a live cluster by a Binding with the pod's UID. From then on the pod holds its claims,
 * even before the watch reports it. If the pod is rejected for good, the reservation of its filter
 * call ends.
 *
 * Idempotent (kubernetes#96579): a pod that is bound to that node already is a success, also when
 * the answer to our own Binding was lost. A failure gives the claims back, once the API server has
 * shown that the pod is not bound. As long as it is unknown whether the Binding was applied, the
 * claims stay reserved: until the watch reports the outcome, or for BINDING_DEAD_MS.
 *
 * Neither a refusal nor a pass rests on a stale cache. The causes of a refusal are read again
 * first. A claim that another pod has is shared only if the API server confirms that it may be.
 *
 * Requests of one bind: docs/operations.md, "What a bind costs".
 *
 * Threads: any; it blocks on the API server, for BIND_MS at most.
 */
#ifndef EXTENDER_BIND_BIND_H
#define EXTENDER_BIND_BIND_H

#include "extender/protocol/protocol.h"
#include "extender/state.h"

enum {
    BIND_MS = 4000,    /* for the whole bind; the scheduler waits 5 s by default */
    SEND_MS_MIN = 100, /* a Binding is not sent with less time than this: if its answer does not
                          come in time, its claims stay reserved */
};

/* Errors: why the pod is not bound. Claims that are not free count as a bind conflict. */
int bind_pod(struct state *state, const struct bind_request *request, struct arena *arena,
             struct error *err);

#endif
