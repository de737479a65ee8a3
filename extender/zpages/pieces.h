/*
 * pieces: a page that is written a piece at a time, so that neither the page as a whole is in
 * memory, nor the cluster's lock held for long: between two pieces anything may change.
 *
 * Threads: one at a time.
 */
#ifndef EXTENDER_ZPAGES_PIECES_H
#define EXTENDER_ZPAGES_PIECES_H

#include "config/base/buf.h"

/* The first member of what writes such a page. */
struct pieces {
    /* Writes the next piece, some KiB. False: that was the last. */
    bool (*next)(struct pieces *pieces, struct buf *out);
    void (*free)(struct pieces *pieces);
};

static inline void pieces_free(struct pieces *pieces)
{
    if (pieces != NULL)
        pieces->free(pieces);
}

#endif
