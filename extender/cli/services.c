#include "extender/cli/services.h"

#include <stdlib.h>

#include "extender/bind/claim_lock.h"
#include "extender/bind/defer_support.h"
#include "extender/live/events.h"
#include "extender/live/requeue.h"
#include "extender/preemption/preemption.h"

static void free_services(struct state *state)
{
    free(state->nudge);
    free(state->events);
    free(state->evictions);
    free(state->defer_support);
    free(state->seen_locks);
}

int services_init(struct state *state, struct config *config, struct error *err)
{
    if (state_init(state, config, err) < 0)
        return err->code;
    state->nudge = calloc(1, sizeof *state->nudge);
    state->events = calloc(1, sizeof *state->events);
    state->evictions = calloc(1, sizeof *state->evictions);
    state->defer_support = calloc(1, sizeof *state->defer_support);
    state->seen_locks = calloc(1, sizeof *state->seen_locks);
    if (state->nudge == NULL || state->events == NULL || state->evictions == NULL ||
        state->defer_support == NULL || state->seen_locks == NULL) {
        free_services(state);
        state->config = NULL; /* the caller's */
        state_dispose(state);
        return error_no_memory(err);
    }
    nudge_init(state->nudge);
    events_init(state->events);
    evictions_init(state->evictions);
    return 0;
}

void services_dispose(struct state *state)
{
    nudge_dispose(state->nudge);
    events_dispose(state->events);
    evictions_dispose(state->evictions);
    seen_locks_dispose(state->seen_locks);
    free_services(state);
    state_dispose(state);
}
