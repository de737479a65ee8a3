/*
 * scenario: named tests of the real claimguard in front of an API server that lies (api_server.h).
 * A plain program, so that it runs under TSan, too; each scenario runs in a process of its own, a
 * few at a time.
 *
 *     static void a_held_claim_is_refused(void)
 *     {
 *         struct guard guard;
 *
 *         put_claim("data");
 *         put_pod(&(struct test_pod){.name = "a", .claim = "data", .node = "node-1"});
 *         guard_start(&guard, "");
 *         ...
 *         guard_stop(&guard);
 *     }
 *     int main(int argc, char **argv)
 *     {
 *         static const struct scenario all[] = {SCENARIO(a_held_claim_is_refused)};
 *         return scenarios_run(all, 1, argc, argv);
 *     }
 *
 * An argument: only those whose name has it. The log of one that fails is shown.
 */
#ifndef TESTS_SUPPORT_SCENARIO_H
#define TESTS_SUPPORT_SCENARIO_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "config/base/error.h" /* PRINTF_LIKE */
#include "support/api_server.h"

struct scenario {
    const char *name;
    void (*run)(void); /* with an API server that has node-1 and node-2 */
};

#define SCENARIO(function) \
    { \
#function, function \
    }

/* Returns the program's exit status. */
int scenarios_run(const struct scenario *scenarios, size_t count, int argc, char **argv);

/* The scenario has failed unless that is so. */
void check(bool is_so, const char *format, ...) PRINTF_LIKE(2, 3);

/* Prints the file on stderr. */
void scenario_show(const char *path);

void sleep_ms(int ms);
int64_t clock_ms(void); /* only runs forward */

/* ---- claimguard ---- */

struct guard {
    pid_t pid;
    uint16_t port, metrics_port;
    char log[64]; /* a file */
    char config[64];
};

/* Ends those that the scenario has not stopped, and shows their logs. */
void guards_end(void);

/* Starts `serve` with a configuration of these lines (YAML, behind apiVersion and kind), and waits
 * until it is ready. */
void guard_start(struct guard *guard, const char *config);

/* The same; does not wait. */
void guard_launch(struct guard *guard, const char *config);

/* A folder of the scenario's own, which goes with it. */
const char *scenario_folder(void);

/* Who claimguard is, for those that are started from now on: a user of a kubeconfig, in YAML, such
 * as "{token: t}". */
void guard_user(const char *user);

/* Gives it another configuration, once. */
void guard_reload(const struct guard *guard, const char *config);

/* SIGTERM, unless it was ended. Fails unless it ends well, within ten seconds, without a report of
 * a sanitizer. */
void guard_stop(struct guard *guard);

bool guard_is_ready(const struct guard *guard);
void guard_await_ready(const struct guard *guard);

/* POSTs to /filter and the like; returns the answer's body: the caller's to free. Fails unless the
 * status is 200. */
char *guard_call(const struct guard *guard, const char *verb, const char *body);

/* GETs from the metrics port; *status may be NULL. Ownership: the caller's to free. */
char *guard_get(const struct guard *guard, const char *path, int *status);

bool guard_page_has(const struct guard *guard, const char *path, const char *text);

/* The sum of the samples whose line begins so: "claimguard_cache_synced{". 0 if there is none of
 * those; fails if the page has no metric of that name. */
double guard_metric(const struct guard *guard, const char *prefix);

/* Whether the log has the text; within ten seconds. */
bool guard_logs(const struct guard *guard, const char *text);

/* ---- objects, and what a scheduler sends about them ---- */

/* In namespace default; a ReadWriteOncePod claim bound to pv-NAME, of storage class fast-storage.
 */
void put_claim(const char *name);

struct test_pod {
    const char *name;
    const char *claim;        /* NULL: none */
    const char *second_claim; /* the same; only beside the first */
    const char *node;         /* NULL: pending */
    int priority;
    const char *more_meta, *more_spec; /* ",\"annotations\":{...}"; NULL: nothing */
};

/* A text that is valid for the life of the process, as those of the functions below. */
const char *scenario_printf(const char *format, ...) PRINTF_LIKE(1, 2);

/* The pod in JSON, with its UID if the API server has it. */
const char *pod_text(const struct test_pod *pod);
void put_pod(const struct test_pod *pod);

/* Claim data, and pods a and b that name it: a on the node, unless that is NULL. */
void put_pair(const char *node);

/* Where the pod is bound, as the API server has it; "": nowhere. */
const char *node_of(const char *pod);

/* Each with the pod as the API server has it. true: it passes, or is bound. */
bool filter_passes(const struct guard *guard, const char *pod);
bool bind_succeeds(const struct guard *guard, const char *pod, const char *node);

/* One of these two calls in a thread of its own, beside the scenario. */
struct beside {
    pthread_t thread;
    const struct guard *guard;
    const char *pod, *node; /* node NULL: filter */
    bool succeeds;          /* it passes, or is bound */
};
void filter_beside(struct beside *beside, const struct guard *guard, const char *pod);
void bind_beside(struct beside *beside, const struct guard *guard, const char *pod,
                 const char *node);

/* Waits for the end of the call; what filter_passes or bind_succeeds says. */
bool beside_end(struct beside *beside);

/* The bodies: ExtenderArgs with node-1 and node-2, ExtenderBindingArgs, ExtenderPreemptionArgs with
 * one node and one victim ("": none). Valid for the life of the process. */
const char *filter_body(const char *pod);
const char *bind_body(const char *pod, const char *node);
const char *preempt_body(const char *pod, const char *node, const char *victim);

/* Waits until the condition holds; fails after ten seconds, naming `what`. */
#define AWAIT(condition, what) \
    do { \
        int64_t give_up_ = clock_ms() + PATIENCE_MS; \
        while (!(condition) && clock_ms() < give_up_) \
            sleep_ms(20); \
        check(condition, "%s", (what)); \
    } while (0)

#endif
