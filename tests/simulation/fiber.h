/*
 * fiber: code that waits, in one thread: the verbs of claimguard block on the API server, and here
 * the world continues meanwhile. A fiber runs until it waits or ends; nothing else runs then.
 */
#ifndef SIMULATION_FIBER_H
#define SIMULATION_FIBER_H

#include <stdbool.h>

struct fiber;

/* Runs the function at once, until it waits for the first time or ends. owner: for fiber_owner. */
void fiber_start(void (*function)(void *context), void *context, void *owner);

/* The one that runs; NULL: none does. */
struct fiber *fiber_current(void);
void *fiber_owner(const struct fiber *fiber);

/* Gives control back to the caller that started or resumed this fiber, until fiber_resume with the
 * number that fiber_waits says now. */
void fiber_wait(void);
unsigned long fiber_waits(const struct fiber *fiber);

/* Continues it, if the fiber still waits for this; else nothing happens. */
void fiber_resume(struct fiber *fiber, unsigned long waits);

/* Resumes the fibers of this owner until none is left. */
void fibers_finish(const void *owner);

/* Frees the memory of all, which have ended. */
void fibers_dispose(void);

#endif
