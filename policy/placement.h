/*
 * placement: where the volumes of a pod can be: what kube-scheduler's plugins NodeVolumeLimits,
 * VolumeBinding and VolumeZone read, and the cluster does not keep, because no other verdict needs
 * it: labels of nodes, nodeAffinity and labels of volumes, volumeBindingMode and allowedTopologies
 * of classes, how many volumes a node can have and has, and the room for new ones.
 *
 * Commands have it (extender/commands/inquiry/places.h). The server does not: kube-scheduler calls
 * an extender behind its own plugins, which have let the pod pass on those nodes.
 */
#ifndef POLICY_PLACEMENT_H
#define POLICY_PLACEMENT_H

#include "cache/objects/details.h"
#include "policy/verdict.h"
#include "policy/volume_terms.h"

/* A claim that the pod names, and that exists. */
struct placed_claim {
    const struct claim *claim;
    bool is_ephemeral;            /* of a generic ephemeral volume */
    struct slice selected_node;   /* where its volume is being made; empty: not chosen */
    struct volume_terms terms;    /* of the volume that it names */
    struct slice volume_labels;   /* of that volume, as in label_selector.h */
    struct slice binding_mode;    /* of its class; empty: not known */
    struct pull_items topologies; /* allowedTopologies of its class: struct topology */
    const int64_t *room; /* by node: bytes of the largest volume that its class makes there,
                            negative: none; NULL: it does not count, or is not known */
};

/* A volume that is Available (volume_offer_fits). */
struct placed_volume {
    const struct resource *volume;
    struct slice name;
    int64_t capacity;
    struct pull_items terms; /* struct node_term; they count as they are, on each node */
};

/* A volume as NodeVolumeLimits counts it, once for each node (node_volume_limits.h). */
struct counted_volume {
    struct slice driver;
    const void *volume;    /* its record; of a claim without a volume, the claim's */
    bool is_in_tree;       /* a driver has replaced its plug-in */
    bool is_only_attached; /* no pod of the node uses it */
};

struct placed_node {
    const struct node *node;
    struct slice name, labels;            /* as in label_selector.h */
    bool is_unread;                       /* its labels and taints are not known */
    struct pull_items taints;             /* struct taint; no policy reads them */
    bool knows_drivers;                   /* of its CSINode */
    struct pull_items drivers;            /* of its CSINode: struct driver_limit */
    const struct counted_volume *volumes; /* that its pods use, or that are only attached */
    size_t volume_count;
};

struct placed_driver {
    struct slice name;
    struct csi_driver_details details;
};

/* What is known of one pod. What is not known rejects nothing. */
struct placement {
    struct placed_claim *claims; /* in the order of the pod's volumes: two of them may name one */
    size_t claim_count;
    const struct placed_volume *volumes; /* by capacity, then by name */
    size_t volume_count;
    const struct placed_node *nodes; /* by name */
    size_t node_count;
    const struct placed_driver *drivers; /* those with a CSIDriver */
    size_t driver_count;
    bool has_labels;    /* a node has labels: they are known */
    bool knows_volumes; /* a volume that the cluster does not have does not exist */
    bool knows_classes; /* the same of StorageClasses */
    bool knows_csi_nodes;
};

/* Why the pod does not pass on a node; empty: it passes. */
typedef struct slice placement_check(void *context, const struct placed_node *node);

/* Checks all nodes once. If some are rejected, the verdict gets a filter with their reasons. */
void placement_restrict(const struct placement *placement, placement_check *check, void *context,
                        struct arena *arena, struct verdict *out);

/* Whether the labels of the node are known. */
static inline bool placement_knows_labels(const struct placement *placement,
                                          const struct placed_node *node)
{
    return placement->has_labels && !node->is_unread;
}

/* The details of the driver; all false: it has no CSIDriver. */
struct csi_driver_details placement_driver(const struct placement *placement, struct slice driver);

/* Whether a node with these labels is in allowedTopologies that are not empty. */
bool topologies_match(const struct pull_items *topologies, struct slice labels);

#endif
