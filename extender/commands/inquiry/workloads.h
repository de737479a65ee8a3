/*
 * workloads: the Deployments, StatefulSets, ReplicaSets, ReplicationControllers, Jobs, DaemonSets
 * and CronJobs of an input: how many pods they have, what scaling them does, and who would undo
 * that. Those of a snapshot are taken while it is read. Of a live cluster, one that is asked for is
 * read with one GET; HorizontalPodAutoscalers are listed, in one namespace.
 *
 *     extern struct workloads *workloads;
 *     const struct workload_answer *workload =
 *         workloads_find(workloads, SLICE("StatefulSet"), ns, name);
 *     if (workload->state == WORKLOAD_KNOWN)
 *         printf("%lld replicas\n", (long long)workload->details.replicas);
 *
 * Threads: one.
 */
#ifndef EXTENDER_COMMANDS_INQUIRY_WORKLOADS_H
#define EXTENDER_COMMANDS_INQUIRY_WORKLOADS_H

#include "cache/client/kubeconfig.h"
#include "cache/objects/details.h"
#include "cache/snapshot/source.h"
#include "extender/report/findings.h"

/* GETs in a row. Of further ones, nothing is known. */
enum { WORKLOADS_READ_MAX = 64, WORKLOADS_KEPT_MS = 10000 };

enum workload_state {
    WORKLOAD_KNOWN,
    WORKLOAD_GONE,      /* it does not exist */
    WORKLOAD_NOT_THERE, /* a snapshot does not have it, and perhaps not all of its kind */
    WORKLOAD_FORBIDDEN,
    WORKLOAD_UNREADABLE, /* no good answer, or too many GETs */
};

struct workload_answer {
    enum workload_state state;
    struct workload_details details; /* WORKLOAD_KNOWN */
};

struct workloads;

/* kubeconfig: of the live cluster, borrowed; NULL: a snapshot. listed: of a snapshot, borrowed:
 * bits 1 << kind: it has all objects of that kind. Ownership: workloads_free. NULL: no memory. */
struct workloads *workloads_new(const struct kubeconfig *kubeconfig, const unsigned *listed);
void workloads_free(struct workloads *workloads);

/* "deployment" for "Deployment" of apps/v1: as kubectl names it. Empty: it is neither scaled nor
 * suspended, or another group's. */
struct slice workload_resource(struct slice api_version, struct slice kind);

/* Whether that kind has replicas. */
bool workload_scales(struct slice kind);

/* Keeps the object if it is a workload that can be decoded. Returns whether it is one. Errors: no
 * memory. */
int workloads_take(struct workloads *workloads, const struct source_text *text, struct error *err);

/* The workload of that kind, one of the above; valid until workloads_forget. NULL: no
 * memory. */
const struct workload_answer *workloads_find(struct workloads *workloads, struct slice kind,
                                             struct slice ns, struct slice name);

/* The HorizontalPodAutoscaler of the workload; NULL: none that is known. In *is_known: whether they
 * are known, or there is no memory. is_known may be NULL, if nothing depends on it: then it is no
 * gap that they are not known. */
const struct autoscaler_details *workloads_autoscaler(struct workloads *workloads, struct slice ns,
                                                      struct slice kind, struct slice name,
                                                      bool *is_known);

/* Forgets what was read of a live cluster, if that was WORKLOADS_KEPT_MS ago: an answer that is
 * made again at each change must not send all GETs again. */
void workloads_forget(struct workloads *workloads);

/* Adds those that were asked for, and are not known: a few, and how many more. */
void workloads_add_gaps(const struct workloads *workloads, struct gaps *gaps);

#endif
