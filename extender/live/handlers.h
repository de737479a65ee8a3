/*
 * live: the state follows a cluster (cache/follow), and what is wrong there is told: a claim that
 * is exclusive and yet held by two pods is a warning in the log and an Event on the pod that came
 * second (once a pod and claim).
 */
#ifndef EXTENDER_LIVE_HANDLERS_H
#define EXTENDER_LIVE_HANDLERS_H

#include "cache/client/kubeconfig.h"
#include "extender/state.h"

enum { REPORTED_MAX = 2000 }; /* with more, the oldest may be told again */

struct handlers;

/* Ownership: live_stop, after the servers have stopped. The kubeconfig has to stay. */
int handlers_start(struct handlers **out, struct state *state, const struct kubeconfig *kubeconfig,
                   struct error *err);
void handlers_stop(struct handlers *handlers);

#endif
