/*
 * debug_cache: /debug/cache in pieces: {"nodes": {node: {claim: count}}, "claims": {claim:
 * {"exclusive", "refs", "holders"}}, "reservations": []}. Each record is as it was at some moment
 * while the page was written, not all of them at the same one. Of a claim, DEBUG_HOLDERS_MAX
 * holders are named; "refs" counts them all.
 *
 * Threads: it takes the state's lock, for reading, for a piece.
 */
#ifndef EXTENDER_ZPAGES_DEBUG_CACHE_H
#define EXTENDER_ZPAGES_DEBUG_CACHE_H

#include "extender/state.h"
#include "extender/zpages/pieces.h"

enum { DEBUG_HOLDERS_MAX = 100 };

/* Ownership: pieces_free. NULL without memory. share: of what it takes; may be NULL. */
struct pieces *debug_cache_new(struct state *state, struct quota_share *share);

#endif
