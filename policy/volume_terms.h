/*
 * volume_terms: the nodes on which a volume can be used, by its nodeAffinity, as kube-scheduler's
 * VolumeBinding reads it: by labels alone, a term about metadata.name matches no node. An in-tree
 * volume counts as one of the CSI driver on the nodes whose CSINode says that the plug-in is
 * migrated: its zones are those of the driver's label (k8s.io/csi-translation-lib).
 *
 * Threads: any. Ownership: they point into the details, and into the arena.
 */
#ifndef POLICY_VOLUME_TERMS_H
#define POLICY_VOLUME_TERMS_H

#include "cache/cluster/cluster.h"
#include "cache/objects/details.h"

struct volume_terms {
    struct pull_items own;      /* struct node_term; none: any node */
    struct pull_items migrated; /* the same where the plug-in is migrated */
    struct slice plugin;        /* empty: it is not migrated anywhere, or it changes no term */
};

/* volume: whose details they are; NULL: not known. False: no memory. */
bool volume_terms_find(const struct resource *volume, const struct volume_details *details,
                       struct arena *arena, struct volume_terms *out);

/* Those that count on the node. */
const struct pull_items *volume_terms_on(const struct volume_terms *terms, const struct node *node);

/* Whether the volume can be used on the node. labels: the node's, as in label_selector.h. */
bool volume_terms_match(const struct volume_terms *terms, const struct node *node,
                        struct slice labels);

#endif
