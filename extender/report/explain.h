/*
 * explain: verdicts as JSON values, for people and programs: the objects of the dry run and of
 * /prefilter (docs/contracts.md). Not on the hot path.
 *
 * Ownership: every function returns a new value, or NULL when there is no memory.
 * Threads: the caller holds the cluster still.
 */
#ifndef EXTENDER_REPORT_EXPLAIN_H
#define EXTENDER_REPORT_EXPLAIN_H

#include <jansson.h>

#include "config/base/buf.h"
#include "policy/policy.h"

enum { HOLDERS_SHOWN_MAX = 100 }; /* of a claim */

/* {"code", "reasons", "claims", "deferFSMount"}: what filter decides before it looks at nodes. */
json_t *explain_prefilter(const struct view *view, const struct pod_object *pod,
                          struct arena *arena);

/*
 * {"pod", "schedulable", "preFilter", "nodes", "claims", "preemption", "deferFSMount"}: the dry
 * run. nodes: the names to judge, node_count of them.
 */
json_t *explain_pod(const struct view *view, const struct pod_object *pod,
                    const struct slice *nodes, size_t node_count, struct arena *arena);

/* Writes the value with jansson's flags, and frees it. NULL, for a value that could not be made, is
 * an error: ERROR_NO_MEMORY. */
int explain_write(json_t *value, size_t flags, struct buf *out, struct error *err);

#endif
