/*
 * scheduler: what the parts of a scheduler share: cycles and binds (scheduler.c), the queue
 * (scheduler_queue.c), and the calls of preempt (scheduler_preempt.c).
 */
#ifndef SIMULATION_SCHEDULER_H
#define SIMULATION_SCHEDULER_H

#include "simulation/world.h"

/* A call that is on its way, for one pod. */
struct errand {
    struct scheduler *scheduler;
    unsigned incarnation;
    size_t pod;   /* index */
    size_t index; /* of the log */
    int node;
};

/* Ownership: free(). */
struct errand *errand_new(struct scheduler *scheduler, size_t pod);

/* Whether the scheduler that made it has crashed since. */
bool errand_is_void(const struct errand *errand);

/* Appends the pod as the scheduler passes it on. */
void errand_put_pod(const struct errand *errand, struct buf *out);

/* The cycle is over, with a pod that goes back to the queue. Takes the errand. */
void errand_end_rejected(struct errand *errand);

/* The next cycle begins after that time, if none is in progress then. */
void scheduler_look_later(struct scheduler *scheduler, uint64_t delay_ns);

/* ---- scheduler_queue.c ---- */

/* The scheduler sees what a watch, or its list, sends. */
void queue_see(struct scheduler *scheduler, const struct log_entry *entry);

/* A call failed: the pod is tried again. */
void queue_again(struct scheduler *scheduler, size_t pod);

/* The pod is rejected: it waits until something happens, which it may have meanwhile. */
void queue_park(struct scheduler *scheduler, size_t pod);

/* The pod that is tried next; NULL: none. */
struct queued *queue_next(struct scheduler *scheduler);

/* Pods that have waited for five minutes are tried again; context: an errand, and taken. */
void queue_flush(void *context);

/* ---- scheduler_preempt.c ---- */

/* Calls preempt, then ends the cycle. only: the node that its own plugins offer; -1: all of them,
 * since they see no conflict, with what they would have it evict there: sometimes nothing. Takes
 * the errand. */
void errand_preempt(struct errand *errand, int only);

#endif
