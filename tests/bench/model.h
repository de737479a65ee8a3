/*
 * model: a made cluster of any size, seeded: the same seed gives the same objects. Objects look
 * like a real API server's (managedFields, tolerations, generated names), which is what costs time
 * to read.
 */
#ifndef TESTS_BENCH_MODEL_H
#define TESTS_BENCH_MODEL_H

#include <stdint.h>

#include "config/base/buf.h"

struct model {
    unsigned nodes, pods, claims;
    double exclusive_share; /* of the claims */
    double pending_share;   /* of the pods: not assigned */
    uint64_t seed;
    bool has_volumes;    /* a PersistentVolume for each claim */
    double driver_share; /* of the nodes: their CSINodes list the volumes' driver; 0: there are
                            no CSINodes */
    const char *runtime_class; /* of the pod of a filter request; NULL: none */
    const char *asked_name;    /* of the pod in filter calls; NULL: any */
    unsigned deployments;      /* of the objects of model_put_real_*; there is one pod of each */
    unsigned set_pods;         /* of a StatefulSet of model_put_stateful_*; 0: plain objects */
    bool has_labels;           /* the pods of these have labels and owners */
};

/* Appends one object as JSON. Pod i names claim i % claims. */
void model_put_node(const struct model *model, unsigned i, struct buf *out);
void model_put_csi_node(const struct model *model, unsigned i, struct buf *out);
void model_put_claim(const struct model *model, unsigned i, struct buf *out);
void model_put_volume(const struct model *model, unsigned i, struct buf *out);
void model_put_pod(const struct model *model, unsigned i, struct buf *out);

/* The same, with all that objects of a real cluster have: owners, conditions, annotations,
 * finalizers. The first pods are of the Deployments, the others of StatefulSets of twenty pods.
 * Every other pod of these that is not assigned names the claim of its neighbour. */
void model_put_real_node(const struct model *model, unsigned i, struct buf *out);
void model_put_real_claim(const struct model *model, unsigned i, struct buf *out);
void model_put_real_volume(const struct model *model, unsigned i, struct buf *out);
void model_put_real_pod(const struct model *model, unsigned i, struct buf *out);
void model_put_deployment(const struct model *model, unsigned i, struct buf *out);

/* The same for clusters of StatefulSets, with little that claimguard skips. */
void model_put_stateful_claim(const struct model *model, unsigned i, struct buf *out);
void model_put_stateful_volume(const struct model *model, unsigned i, struct buf *out);
void model_put_stateful_pod(const struct model *model, unsigned i, struct buf *out);

/* Appends a filter request for a pod that does not exist yet, with so many node names.
 * claim < 0: without claims; else it names that claim. */
void model_put_filter(const struct model *model, long claim, unsigned names, struct buf *out);

/* Volcano's request for the same pod and node 0, with a NodeInfo of so many pods. */
void model_put_predicate(const struct model *model, long claim, unsigned pods, struct buf *out);

/* Appends the review of a Binding of pod i to node 0. */
void model_put_review(const struct model *model, unsigned i, struct buf *out);

/* Whether claim i is exclusive, and whether pod i is assigned to a node. */
bool model_claim_is_exclusive(const struct model *model, unsigned i);
bool model_pod_is_assigned(const struct model *model, unsigned i);

#endif
