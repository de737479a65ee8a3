/*
 * explain: what claimguard decides about a pod, and why: the answer of the dry run and of
 * /prefilter (docs/contracts.md). Not on the hot path.
 *
 *     extern const struct view view;
 *     extern const struct pod_object pod;
 *     const struct explained_nodes nodes = {NULL, 0, false};
 *     struct explained explained;
 *     bool has_memory = explain_pod(&explained, &view, &pod, &nodes, arena);
 *
 * A dry run prints its results one by one, as a table, JSON or YAML (struct render), so JSON and
 * YAML of 100,000 pods need little memory. A table is printed at the end, when the widths of its
 * columns are known.
 *
 * Ownership: all is in the arena, or belongs to the cluster or the pod.
 * Threads: the caller holds the cluster's lock as long as it uses the answer, or is the only
 * thread.
 */
#ifndef EXTENDER_REPORT_EXPLAIN_H
#define EXTENDER_REPORT_EXPLAIN_H

#include "extender/report/fields.h"
#include "policy/policy.h"

enum { HOLDERS_SHOWN_MAX = 100 }; /* of a claim */

/* The nodes that are asked about. */
struct explained_nodes {
    const struct slice *names;
    size_t count;
    bool are_listed; /* each of them; else "nodes" is empty unless the verdict differs between them
                      */
};

/* A claim that the pod names. */
struct explained_claim {
    struct slice name;
    bool is_found;
    bool is_exclusive;                     /* by its access mode, or because a runtime mounts it */
    const struct pod **holders;            /* against the pod, by name */
    size_t holder_count, more;             /* those that are left out */
    const struct reservation *reservation; /* against the pod; NULL: none */
};

/* The decision about a volume of the pod. */
struct explained_volume {
    struct slice name, entry, reason;
    bool is_deferred;
};

struct explained {
    const struct view *view;
    const struct pod_object *pod;
    struct arena *arena;
    struct verdict verdict;  /* on the pod */
    struct verdict on_nodes; /* the same, with what follows from nodes */
    const struct slice *nodes;
    size_t node_count;                /* that are listed */
    struct slice *rejections;         /* of each; empty: it is not rejected for itself */
    struct explained_claim *claims;   /* as many as the pod has */
    struct explained_volume *volumes; /* none where no entry and no pod defers anything */
    size_t volume_count;
    const struct slice *assumptions; /* what the caller adds to the warnings */
    size_t assumption_count;
};

/* Decides as filter does before it looks at nodes; and as for the dry run. False: no memory. */
bool explain_prefilter(struct explained *out, const struct view *view, const struct pod_object *pod,
                       struct arena *arena);
bool explain_pod(struct explained *out, const struct view *view, const struct pod_object *pod,
                 const struct explained_nodes *nodes, struct arena *arena);

/* A pod is schedulable if it passes on any of the nodes; where there is none, if it passes. */
bool explained_is_schedulable(const struct explained *explained);

/* The code of a node. */
enum verdict_code explained_code(const struct explained *explained, size_t node);

/* {"code", "reasons", "warnings", "claims", "deferFSMount"}: what /prefilter answers. */
void explained_put_prefilter(struct fields *out, const struct explained *explained);

/* {"pod", "schedulable", "preFilter", "warnings", "nodes", "claims", "preemption", "deferFSMount"}:
 * the dry run. */
void explained_put(struct fields *out, const struct explained *explained);

/* Of these, "schedulable", "preFilter", "warnings" and "preemption". */
void explained_put_verdict(struct fields *out, const struct explained *explained);

/* ---- printing to standard output: render.c ---- */

struct render;

/* is_list: the results are printed as a list, even if there are none. NULL without memory.
 * Ownership: render_finish or render_discard. */
struct render *render_new(enum output_format format, bool is_list);

/* Prints a result of explain_pod, which is borrowed. False if it could not be written. */
bool render_put(struct render *render, const struct explained *explained);

/* Prints the rest, and frees. False if something could not be written. */
bool render_finish(struct render *render);

/* Frees, and prints nothing more: after an error. */
void render_discard(struct render *render);

#endif
