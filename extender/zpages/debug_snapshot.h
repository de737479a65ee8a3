/*
 * debug_snapshot: writes /debug/snapshot in pieces: what this claimguard knows of the cluster, as a
 * List that every command reads as a snapshot (record_json.h), with its reservations.
 *
 * The cluster may change between two pieces. Each object is as it was at one moment, and one that
 * stays in the cluster during the whole request is there once. Reservations come first, then pods,
 * then claims: a pod that is bound meanwhile has a reservation, or is bound, so that its claims
 * never look free.
 *
 * Threads: a page belongs to one thread. Each piece takes the state's lock for reading.
 */
#ifndef EXTENDER_ZPAGES_DEBUG_SNAPSHOT_H
#define EXTENDER_ZPAGES_DEBUG_SNAPSHOT_H

#include "extender/state.h"
#include "extender/zpages/pieces.h"

/* Ownership: pieces_free. NULL without memory. share: counts the page's memory; may be NULL. */
struct pieces *debug_snapshot_new(struct state *state, struct quota_share *share);

#endif
