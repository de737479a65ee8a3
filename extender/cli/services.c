#include "extender/cli/services.h"

#include <stdlib.h>

#include "extender/bind/agreement_live.h"
#include "extender/bind/defer_support.h"
#include "extender/live/events.h"
#include "extender/live/nomination.h"
#include "extender/live/requeue.h"
#include "extender/live/seen_locks.h"
#include "extender/live/trials.h"
#include "extender/preemption/preemption.h"

static void free_services(struct state *state)
{
    free(state->requeue);
    free(state->nominations);
    free(state->trials);
    free(state->events);
    free(state->preemption);
    free(state->defer_support);
    free(state->seen_locks);
    free(state->agreement);
}

int services_init(struct state *state, struct config *config, struct error *err)
{
    if (state_init(state, config, err) < 0)
        return err->code;
    state->requeue = calloc(1, sizeof *state->requeue);
    state->nominations = calloc(1, sizeof *state->nominations);
    state->trials = calloc(1, sizeof *state->trials);
    state->events = calloc(1, sizeof *state->events);
    state->preemption = calloc(1, sizeof *state->preemption);
    state->defer_support = calloc(1, sizeof *state->defer_support);
    state->seen_locks = calloc(1, sizeof *state->seen_locks);
    state->agreement = calloc(1, sizeof *state->agreement);
    if (state->requeue == NULL || state->nominations == NULL || state->trials == NULL ||
        state->events == NULL || state->preemption == NULL || state->defer_support == NULL ||
        state->seen_locks == NULL || state->agreement == NULL) {
        free_services(state);
        state->config = NULL; /* the caller still owns it */
        state_dispose(state);
        return error_no_memory(err);
    }
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
    free_services(state);
    state_dispose(state);
}
