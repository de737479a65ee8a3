/*
 * programs: claimguard and the no-op server as children of the benchmark, and calls to them over a
 * connection that is kept, as net/http makes them.
 */
#ifndef TESTS_BENCH_PROGRAMS_H
#define TESTS_BENCH_PROGRAMS_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "config/base/buf.h"
#include "model.h"

enum {
    CONNECTIONS = 20,
    CALLS = 100, /* measured on each connection, after WARM_UP others */
    WARM_UP = 20,
    ROUNDS = CONNECTIONS * CALLS,
};

struct child {
    pid_t pid;
    uint16_t port, admission_port, metrics_port; /* 0: it has none */
    FILE *log;                                   /* what it prints after that it listens */
};

extern const char *bench_folder; /* of the build */
extern char bench_work[];        /* of this run */

/* Where the client and the servers run: left to the scheduler, a call takes three times as long
 * when it happens to wake an idle core, and the ratio says which of the two was lucky.
 * BENCH_ANY_CORE: left to the scheduler. */
enum { BENCH_ANY_CORE = -1 };
extern int bench_client_core, bench_server_core;

/* Ends the run with the message. */
_Noreturn void bench_die(const char *what);

double bench_now_us(void);

/* Sorts the values. */
double bench_percentile(double *values, size_t count, double p);

/* Of several runs. */
struct spread {
    double median, low, high;
};

/* Sorts the values. */
struct spread bench_spread(double *values, size_t count);

/* This thread, and those that it starts, run on that core from now on. */
void bench_pin(int core);

/* Starts a program on the servers' core and waits until it prints "listening address=...". */
struct child bench_start(const char *const *argv);

/* program: in the build folder. config: NULL: the defaults. */
struct child bench_start_claimguard(const char *program, const char *snapshot, const char *config);

/* The same in front of an API server. Returns when its cache is synced, and sets the seconds since
 * its start; its log is read to the end by a thread. */
struct child bench_start_live(const char *kubeconfig, double *seconds);

struct child bench_start_noop(const char *certificate, const char *key); /* NULL: without TLS */
void bench_stop(struct child child);

/* A snapshot file of the model. */
void bench_generate(const struct model *model, char *path, size_t size);

/* A claim, exclusive or not, that its pod holds, or does not hold (yet). */
long bench_find_claim(const struct model *model, bool is_rwop, bool is_held);

/* Writes the text, behind apiVersion and kind, and sets the file's path. */
void bench_write_config(const char *text, char *path, size_t size);

/* CPU seconds that it has used so far. */
double bench_cpu_seconds(pid_t pid);

/* VmRSS or VmHWM. */
long bench_memory_kib(pid_t pid, const char *field);

/* ---- calls ---- */

void bench_make_request(struct buf *out, const char *path, struct slice body);

/* Sends the request and reads the answer into the buffer; returns the microseconds. */
double bench_call(int fd, struct slice request, struct buf *in);

/* Makes the two calls alternately, so that both meet the same conditions; ours and bound have
 * ROUNDS values. */
void bench_alternate(const struct child *claimguard, const struct child *noop, struct slice request,
                     struct slice noop_request, double *ours, double *bound);

#endif
