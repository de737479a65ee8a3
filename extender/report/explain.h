/*
 * explain: verdicts as JSON values, for people and programs: the objects of the dry run and of
 * /prefilter (docs/contracts.md). Not on the hot path.
 *
 * Ownership: every function returns a new value, or NULL when there is no memory.
 * Threads: the caller holds the cluster's lock, or is the only thread.
 */
#ifndef EXTENDER_REPORT_EXPLAIN_H
#define EXTENDER_REPORT_EXPLAIN_H

#include <jansson.h>

#include "config/base/buf.h"
#include "policy/policy.h"

enum { HOLDERS_SHOWN_MAX = 100 }; /* of a claim */

/* {"code", "reasons", "warnings", "claims", "deferFSMount"}: what filter decides before it looks at
 * nodes. */
json_t *explain_prefilter(const struct view *view, const struct pod_object *pod,
                          struct arena *arena);

/* The nodes that are asked about. */
struct explained_nodes {
    const struct slice *names;
    size_t count;
    bool are_listed; /* each of them; else "nodes" is empty unless the verdict differs between them
                      */
};

/*
 * {"pod", "schedulable", "preFilter", "warnings", "nodes", "claims", "preemption", "deferFSMount"}:
 * the dry run. A pod is schedulable if it passes on any of the nodes; where there is none, if it
 * passes.
 */
json_t *explain_pod(const struct view *view, const struct pod_object *pod,
                    const struct explained_nodes *nodes, struct arena *arena);

/* Writes the value with jansson's flags, and frees it. NULL, for a value that could not be made, is
 * an error: ERROR_NO_MEMORY. */
int explain_write(json_t *value, size_t flags, struct buf *out, struct error *err);

#endif
