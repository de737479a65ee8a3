/* nodes_bench: a cluster and a call, for verdicts that differ from node to node: with policies that
 * exist here only (support/node_policy.h). */
#ifndef TESTS_UNIT_EXTENDER_NODES_BENCH_H
#define TESTS_UNIT_EXTENDER_NODES_BENCH_H

#include <criterion/criterion.h>
#include <jansson.h>

#include "extender/serving/verbs/verbs.h"

enum { BODY_BYTES_MAX = 1 << 20 };

extern struct state state;
extern struct scratch scratch;

/* The ReadWriteOncePod claims "free", and "held", by a pod on node-2. */
void nodes_setup(void);
void nodes_teardown(void);

void apply(const struct object *object);

/* The answer has that value under the key. */
void expect_equal(const json_t *answer, const char *key, const char *want);

#endif
