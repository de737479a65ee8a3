/*
 * call: a request of a replica to the API server (transport.c), and its fate (fate.c).
 */
#ifndef SIMULATION_CALL_H
#define SIMULATION_CALL_H

#include "simulation/world.h"

/* A request that somebody waits for, or nobody (any more). */
struct call {
    struct call *next; /* of those that are not done */
    struct replica *replica;
    unsigned incarnation;
    struct fiber *waiter; /* NULL: nobody */
    unsigned long waits;
    unsigned parts; /* message, time-out, waiter: the last of them frees it */
    bool is_done;
    enum fate fate;
    unsigned refused_with;     /* by a fault; 0: any status that it has */
    uint64_t applied_after_ns; /* the same, or answered; 0: chance */
    bool is_repeated;          /* it was applied once already */
    unsigned status;           /* as the waiter has it; 0: unknown */
    unsigned arrived;          /* what the API server said */
    void (*then)(void *call);  /* continues when it has */
    uint64_t sent_ns;
    struct buf answer;
    char *method, *path, *body;
    size_t body_len;
    bool is_fetch; /* its answer is applied to the cluster */
    struct object_reference reference;
    char *text;
};

/* One of its parts has ended; the last one frees it. */
void call_drop(struct call *call);

/* It is over, with that status (0: unknown), for the one that waits. */
void call_finish(struct call *call, unsigned status);

/* Whether the replica that sent it has not crashed since. */
bool call_is_of_this_life(const struct call *call);

/* The answer arrives. Takes a call. */
void call_respond(void *context);

/* ---- fate.c ---- */

/* How long a request may take to the API server. */
uint64_t call_delay_max_ns(void);

enum fate call_draw_fate(struct call *call);

/* An eviction has to be one that is asked for. */
void call_check_eviction(const struct call *call);

/* The request arrives at the API server, or does not. Takes a call. */
void call_deliver(void *context);

#endif
