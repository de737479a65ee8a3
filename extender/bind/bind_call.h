/*
 * bind_call: what every step of one bind works with. It lies on the stack of bind_pod or
 * bind_admit; the steps only read it, and put what they read from the API server into its arena.
 */
#ifndef EXTENDER_BIND_BIND_CALL_H
#define EXTENDER_BIND_BIND_CALL_H

#include "extender/protocol/protocol.h"
#include "extender/state.h"

struct bind_call {
    struct state *state;
    const struct bind_request *request;
    struct arena *arena;
    uint64_t deadline_ns; /* of monotonic_ns, for all requests together */
};

/* The time that is left for a request, in ms, rounded up; 0: none. */
static inline int64_t bind_call_left_ms(const struct bind_call *call)
{
    uint64_t now_ns = monotonic_ns();

    return now_ns >= call->deadline_ns ? 0
                                       : (int64_t)((call->deadline_ns - now_ns) / NS_PER_MS) + 1;
}

#endif
