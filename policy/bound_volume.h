/*
 * bound_volume: the volume behind a claim, and the CSI driver of the volume.
 *
 * Pure, as policies are. What is returned points into the cluster.
 */
#ifndef POLICY_BOUND_VOLUME_H
#define POLICY_BOUND_VOLUME_H

#include "cache/cluster/cluster.h"

/* Whether the volume's claimRef names the claim. */
bool bound_volume_is_of(const struct resource *volume, const struct claim *claim);

/* The volume that the claim is bound to, and that is bound to the claim; NULL: not yet, or it is
 * not known. Where one side has no binding (a hand-written snapshot), the other side's counts. */
const struct resource *bound_volume_find(const struct cluster *cluster, const struct claim *claim);

/* Its CSI driver, of its csi source, or the one that has replaced its in-tree plug-in; empty: none.
 */
struct slice bound_volume_driver(const struct resource *volume);

/* The driver that provisions the volume of an unbound claim: its StorageClass's provisioner, or the
 * CSI driver that has replaced it; empty: the class is not known. *plugin: the provisioner that a
 * CSI driver has replaced; empty: none. */
struct slice bound_volume_provisioner(const struct cluster *cluster, const struct claim *claim,
                                      struct slice *plugin);

#endif
