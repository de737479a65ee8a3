/*
 * handlers: keeps the state's cluster equal to a live one (cache/watch/informer), and reacts to
 * what changes there: pods that wait for a change are requeued, and violations are reported
 * (claim_reports.h). Once the cache is synced, pods that may wait for the previous claimguard are
 * also requeued.
 */
#ifndef EXTENDER_SERVING_LIVE_HANDLERS_H
#define EXTENDER_SERVING_LIVE_HANDLERS_H

#include "cache/client/kubeconfig.h"
#include "extender/serving/state.h"

struct handlers;

/* Starts the informer, and sets state->api. Ownership: handlers_stop, after the servers have
 * stopped. The kubeconfig has to stay until then. */
int handlers_start(struct handlers **out, struct state *state, const struct kubeconfig *kubeconfig,
                   struct error *err);
void handlers_stop(struct handlers *handlers);

#endif
