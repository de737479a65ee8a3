/*
 * volume_offers: the volumes of the cluster that an unbound claim may be bound to.
 *
 * Pure, as policies are. What is returned points into the cluster.
 */
#ifndef POLICY_VOLUME_OFFERS_H
#define POLICY_VOLUME_OFFERS_H

#include "cache/cluster/cluster.h"

/* Whether there is one: cache/objects/volume_match. */
bool volume_offers_fit(const struct cluster *cluster, const struct claim *claim);

/* Of a claim that is not bound, whose user has named its volume: whether its VolumeAttributesClass
 * is another one than the volume's, so that they are never bound. *class: the volume's; empty:
 * none. False also if the volume is not known, not Available, or kept for the claim: then no class
 * is compared. */
bool volume_offers_other_class(const struct cluster *cluster, const struct claim *claim,
                               struct slice *class);

#endif
