/*
 * pieces: a page that is written one piece at a time. So the whole page is never in memory, and the
 * state's lock is never held for long. The cluster may change between two pieces.
 *
 * Threads: one at a time.
 */
#ifndef EXTENDER_ZPAGES_PIECES_H
#define EXTENDER_ZPAGES_PIECES_H

#include "config/base/buf.h"

/* The first member of a struct that writes such a page. */
struct pieces {
    /* Writes the next piece, a few KiB. False after the last piece. */
    bool (*next)(struct pieces *pieces, struct buf *out);
    void (*free)(struct pieces *pieces);
};

static inline void pieces_free(struct pieces *pieces)
{
    if (pieces != NULL)
        pieces->free(pieces);
}

#endif
