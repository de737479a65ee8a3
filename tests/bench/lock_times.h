/*
 * lock_times: how long the lock on the cluster is held, by operation: the linker puts the functions
 * of lock_times.c in the place of the C library's.
 */
#ifndef TESTS_BENCH_LOCK_TIMES_H
#define TESTS_BENCH_LOCK_TIMES_H

#include <stdbool.h>
#include <stddef.h>

enum {
    RUNS = 3,
    OPERATIONS_MAX = 20,
    SLOW_US = 200, /* shorter ones are not noted */
    SLOW_MAX = 4096,
};

struct slow {
    unsigned long at; /* the how-manyeth of its operation */
    double us;
};

/* Of one operation, writing or reading. */
struct holds {
    unsigned long count;
    double started_us;
    bool is_held;
    size_t slow_count;
    struct slow slow[SLOW_MAX];
};

/* In memory that the processes share. */
struct run {
    struct operation {
        const char *name;
        struct holds written, read_only;
    } operations[OPERATIONS_MAX];
    size_t count;
    double full_mib, few_mib, empty_mib;
};

extern struct run *runs; /* RUNS of them */
extern struct run *run;  /* this one */

/* Ends the benchmark with the message. */
void holds_die(const char *what);

/* The holds so far are of no operation. */
void holds_forget(void);

/* The holds since the last call are of that operation. */
void holds_report(const char *operation);

/* Compares the runs, in Markdown. */
void holds_put_table(void);

#endif
