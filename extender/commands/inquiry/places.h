/*
 * places: what policy/placement.h has of a pod, from the details of an inquiry. Labels and
 * taints of nodes, and the volumes that unbound claims may be bound to, are read once, for all
 * pods.
 *
 * The inquiry has to keep the details of nodes, claims, volumes, StorageClasses, CSIDrivers and
 * CSINodes (inquiry_wish); of what it does not keep, nothing is known, and nothing is rejected.
 *
 * Threads: one. Ownership: what is found points into the cluster, into *places and into the arena.
 */
#ifndef EXTENDER_COMMANDS_INQUIRY_PLACES_H
#define EXTENDER_COMMANDS_INQUIRY_PLACES_H

#include "extender/commands/inquiry/inquiry.h"
#include "policy/placement.h"

/* What all pods of a command share; begins as {inquiry, arena}. */
struct places {
    const struct inquiry *inquiry;
    struct arena *arena;
    bool is_read;
    struct placement all; /* without claims */
    struct class_room *rooms;
};

/* False: no memory. */
bool places_find(struct places *places, const struct pod_object *pod, struct arena *arena,
                 struct placement *out);

#endif
