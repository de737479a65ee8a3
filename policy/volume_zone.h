/*
 * volume_zone: the zone and region labels of a volume, as kube-scheduler's plugin VolumeZone reads
 * them: the value of a volume's label is a set, "a__b".
 *
 * Threads: any.
 */
#ifndef POLICY_VOLUME_ZONE_H
#define POLICY_VOLUME_ZONE_H

#include "cache/objects/label_selector.h"

enum { ZONE_KEYS = 4 };
extern const char *const zone_keys[ZONE_KEYS];

/* The set of a volume's label; one with an empty item is ignored, as by kube-scheduler. Labels: as
 * in label_selector.h. */
bool zones_find(struct slice volume, const char *key, struct slice *set);

/* Whether the node is in the zones of the volume. A node without any of these labels is. */
bool zones_have(struct slice volume, struct slice node);

#endif
