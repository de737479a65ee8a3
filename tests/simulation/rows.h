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

#endif
