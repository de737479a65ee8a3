/*
 * rows: small worlds, each for one rule: one replica, one scheduler that does not preempt, no
 * faults. A program of rows prints each with "ok" or what is wrong.
 */
#ifndef SIMULATION_ROWS_H
#define SIMULATION_ROWS_H

#include "simulation/world.h"

struct row {
    const char *name;
    void (*run)(void);
    void (*prepare)(void); /* settings of its world; NULL: as they are */
};

#define ROW(function) #function, function

/* Runs them; --trace shows what happens. Returns the program's exit status. */
int rows_run(const struct row *rows, size_t count, int argc, char **argv);

/* ---- words for the rows ---- */

void wait_seconds(uint64_t seconds);
void expect(bool is_so, const char *what);

/* A pod of the first scheduler. */
struct sim_pod *create(const char *name, int priority, unsigned claims);

/* The same, bound before anyone else comes. */
struct sim_pod *holder(const char *name, int priority, unsigned claims);

/* The same, of low priority, that the budget is for; not bound yet. */
struct sim_pod *create_protected(const char *name, unsigned claims);

/* A victim terminates, and is gone when the row says so: its kubelet takes its time. */
bool is_asked_to_go(const struct sim_pod *pod);

/* A scheduler that sees the conflict itself asks about the pod, whose claim is c0, and offers one
 * node, and there the victim, if any. Takes two seconds. */
bool preempt_keeps(const struct sim_pod *pod, const char *node, const struct sim_pod *victim);

/* A scheduler asks about the pod, and offers node-0; whether it passes. Takes a second. */
bool filter_passes(const struct sim_pod *pod);

/* The last answer to one of these; valid until the next. */
const char *call_answer(void);

/* How many attempts of the replica to preempt ended so. */
unsigned attempts(enum preemption_result result);

#endif
