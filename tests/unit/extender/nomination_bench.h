/* nomination_bench: a pod that waits, in a cluster of four nodes; with the policy `listed` of
 * support/node_policy.h, which passes the pod on node-2 and node-4. The time is the test's, and
 * requests go to the test. */
#ifndef TESTS_UNIT_EXTENDER_NOMINATION_BENCH_H
#define TESTS_UNIT_EXTENDER_NOMINATION_BENCH_H

#include <stdatomic.h>

#include <criterion/criterion.h>

#include "extender/serving/live/nomination.h"

#define UID "20000000-0000-4000-8000-000000000000"

extern struct state state;
extern struct arena arena;
extern struct pod_object waiting; /* not nominated, at version 1 */

/* What is sent to the API server. */
extern atomic_uint sent;
extern char last_body[512];
extern bool is_sending; /* false: no request can be sent */

extern unsigned asked;     /* how often the policies were */
extern bool is_error;      /* the verdict of the policies */
extern bool has_no_memory; /* for the description of a pod */

/* node-1 is not ready, node-2 is cordoned. */
void bench_setup(void);
void bench_teardown(void);

void pass_ms(uint64_t ms);
void put_node(const char *name, int64_t flags);
void put_pod(const char *nominated, const char *version);

void want(const char *node);

/* At that tick, `more` requests are sent. */
void expect_sent(unsigned more);

/* So many seconds pass, with a tick in each. */
void expect_sent_in(unsigned seconds, unsigned more);

/* The request is sent; the cache does not know yet. */
void send_to(const char *node);

/* The pod is nominated, and the cache knows. */
void nominate(const char *node);

void expect_count(enum nomination_result result, unsigned count);

/* Pods are known that wait. */
void expect_known(unsigned count);

#endif
