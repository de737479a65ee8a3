/*
 * volume: the volume of a claim, or why it has none; the CSI driver of the volume; whether the
 * volume is attached to nodes, and whether to one at a time; and the volumes that an unbound claim
 * may be bound to. All who ask this of a cluster ask here: policies, commands, the audit.
 *
 * Pure, as policies are. What is returned points into the cluster.
 */
#ifndef POLICY_VOLUME_H
#define POLICY_VOLUME_H

#include "cache/cluster/cluster.h"

/* ---- the volume that a claim is bound to ---- */

/* Whether a claim has a volume: yes; no, and why; or not known. */
enum volume_state {
    VOLUME_BOUND,   /* yes: the claim and the volume name each other. Where one side names nothing
                       (a hand-written snapshot), the other side's name counts */
    VOLUME_UNBOUND, /* no: the claim names no volume, or does not exist */
    VOLUME_LOST,    /* no: the claim is Lost: it had a volume, which is gone */
    VOLUME_OF_ANOTHER, /* no: the volume that it names is bound to another claim, or to none */
    VOLUME_OF_EARLIER, /* no: the volume is that of an earlier claim of the same name */
    VOLUME_UNKNOWN,    /* not known: the cluster does not have the volume that the claim names */
};

/* claim_uid: the UID in the volume's claimRef, of which the cluster keeps no record; empty: it is
 * not known, and a volume of an earlier claim counts as this claim's. */
enum volume_state volume_state_of(const struct cluster *cluster, const struct claim *claim,
                                  struct slice claim_uid);

/* The volume that the claim is bound to (VOLUME_BOUND, without a claim_uid); NULL: none. */
const struct resource *volume_of(const struct cluster *cluster, const struct claim *claim);

/* ---- its driver ---- */

/* The CSI driver of the volume, of its csi source, or the one that has replaced its in-tree
 * plug-in; empty: none. */
struct slice volume_driver(const struct resource *volume);

/* The provisioner of a class that makes no volumes: they are made by hand. */
#define NO_PROVISIONER "kubernetes.io/no-provisioner"

/* The driver that provisions the volume of an unbound claim: its StorageClass's provisioner, or the
 * CSI driver that has replaced it; empty: the class is not known. *plugin: the provisioner that a
 * CSI driver has replaced; empty: none. May be NULL. */
struct slice volume_provisioner(const struct cluster *cluster, const struct claim *claim,
                                struct slice *plugin);

/* The driver of the claim's volume; of a claim that names no volume, the provisioner; empty: none
 * that is known. Of a claim whose volume the cluster does not have, the driver is not known:
 * kube-scheduler takes the provisioner then, but it sees all volumes, and an input may lack them.
 * The provisioner need not be the driver of a volume that somebody made by hand, and what is not
 * known is never reported as wrong. */
struct slice volume_driver_of(const struct cluster *cluster, const struct claim *claim);

/* ---- where it is attached ---- */

enum attachment { ATTACHMENT_UNKNOWN, ATTACHMENT_NO, ATTACHMENT_YES };

/* Whether the volume is attached to a node before it is mounted: that of a CSI driver, unless its
 * CSIDriver says no; and of iSCSI and Fibre Channel. NFS and such are not. knows_drivers: the
 * cluster has all CSIDrivers, so a driver without one attaches; else it is not known. */
enum attachment volume_attachment(const struct cluster *cluster, const struct resource *volume,
                                  bool knows_drivers);

/* The same of a claim's volume. Without a volume, the CSIDriver of the provisioner decides; without
 * one it is known of drivers that have replaced in-tree plug-ins only (objects.h), because a
 * provisioner need not be a CSI driver. */
enum attachment volume_attachment_of(const struct cluster *cluster, const struct claim *claim,
                                     bool knows_drivers);

/* Whether the volume may be attached to one node at a time, by its access modes. */
static inline bool volume_is_for_one_node(const struct resource *volume)
{
    return (resource_number(volume) & VOLUME_IS_FOR_ONE_NODE) != 0;
}

/* Whether the volume is on one node at a time: it is attached, and to one node. A driver that the
 * cluster does not have counts as one that attaches. */
bool volume_is_on_one_node(const struct cluster *cluster, const struct resource *volume);

/* ---- the volumes that an unbound claim may be bound to ---- */

/* What stops a volume that is Available from being bound to a claim: the first that differs. */
enum misfit {
    MISFIT_NONE,
    MISFIT_CLASS,
    MISFIT_KEPT, /* its claimRef names another claim */
    MISFIT_SIZE,
    MISFIT_MODE, /* Block or Filesystem */
    MISFIT_ACCESS,
    MISFIT_ATTRIBUTES_CLASS,
    MISFIT_SELECTOR,
};

/* Of a volume; MISFIT_NONE also if it is not Available. is_named: by the claim, which then waits
 * for it alone, whatever the labels are. */
enum misfit volume_misfit(const struct resource *volume, const struct claim *claim, bool is_named);

/* Of the volumes that are Available, and of the claim's class or kept for it, the one that is
 * nearest, and what stops it; NULL: there is none. */
const struct resource *volume_nearest(const struct cluster *cluster, const struct claim *claim,
                                      enum misfit *misfit);

/* A volume that is not Available, because it was bound to an earlier claim of the claim's name;
 * NULL: none. */
const struct resource *volume_of_earlier(const struct cluster *cluster, const struct claim *claim);

/* The first by name of the volumes that are Available and fit the claim; NULL: none. */
const struct resource *volume_free_for(const struct cluster *cluster, const struct claim *claim);

/* Whether there is one. */
bool volume_offers_fit(const struct cluster *cluster, const struct claim *claim);

/* Whether the volume is one of those. */
bool volume_offer_fits(const struct resource *volume, const struct claim *claim);

/* Of a claim that is not bound, whose user has named its volume: whether its VolumeAttributesClass
 * is another one than the volume's, so that they are never bound. *class: the volume's; empty:
 * none. False also if the volume is not known, not Available, or kept for the claim: then no class
 * is compared. */
bool volume_offers_other_class(const struct cluster *cluster, const struct claim *claim,
                               struct slice *class);

#endif
