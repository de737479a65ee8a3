/*
 * debug_cache: writes /debug/cache in pieces:
 *
 *     {"nodes": {node: {claim: count}},
 *      "claims": {claim: {"exclusive": boolean, "refs": count, "holders": []}},
 *      "reservations": []}
 *
 * The cluster may change between two pieces, so two records may be of different moments. At most
 * DEBUG_HOLDERS_MAX holders of a claim are listed; "refs" counts all pods that name it.
 *
 * Threads: a page belongs to one thread. Each piece takes the state's lock for reading.
 */
#ifndef EXTENDER_ZPAGES_DEBUG_CACHE_H
#define EXTENDER_ZPAGES_DEBUG_CACHE_H

#include "extender/state.h"
#include "extender/zpages/pieces.h"

enum { DEBUG_HOLDERS_MAX = 100 };

/* Ownership: pieces_free. NULL without memory. share: counts the page's memory; may be NULL. */
struct pieces *debug_cache_new(struct state *state, struct quota_share *share);

#endif
