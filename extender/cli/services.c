#include "extender/cli/services.h"

#include <stdlib.h>

#include "extender/serving/bind/agreement.h"
#include "extender/serving/bind/deferral.h"
#include "extender/serving/live/evaluate.h"
#include "extender/serving/live/events.h"
#include "extender/serving/live/nomination.h"
#include "extender/serving/live/requeue.h"
#include "extender/serving/live/seen_locks.h"
#include "extender/serving/preemption/preemption.h"

struct services {
    struct requeue requeue;
    struct nominations nominations;
    struct trials trials;
    struct events events;
    struct preemption preemption;
    struct defer_support defer_support;
    struct seen_locks seen_locks;
    struct agreement agreement;
};

static void publish(struct state *state, struct services *services)
{
    state->services = services;
    state->requeue = &services->requeue;
    state->nominations = &services->nominations;
    state->trials = &services->trials;
    state->events = &services->events;
    state->preemption = &services->preemption;
    state->defer_support = &services->defer_support;
    state->seen_locks = &services->seen_locks;
    state->agreement = &services->agreement;
}

int services_init(struct state *state, struct config *config, struct error *err)
{
    struct services *services = calloc(1, sizeof *services);

    if (services == NULL)
        return error_no_memory(err);
    if (state_init(state, config, err) < 0) {
        free(services);
        return err->code;
    }
    publish(state, services);
    requeue_init(state->requeue);
    nomination_init(state->nominations);
    trials_init(state->trials);
    events_init(state->events);
    preemption_init(state->preemption);
    return 0;
}

void services_dispose(struct state *state)
{
    requeue_dispose(state->requeue);
    nomination_dispose(state->nominations);
    trials_dispose(state->trials);
    events_dispose(state->events);
    preemption_dispose(state->preemption);
    seen_locks_dispose(state->seen_locks);
    free(state->services);
    state_dispose(state);
}
