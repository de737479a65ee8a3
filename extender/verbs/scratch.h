/*
 * scratch: the memory of one call. A connection keeps it from call to call; a quota bounds the
 * memory of all calls together.
 *
 * Threads: one at a time.
 */
#ifndef EXTENDER_VERBS_SCRATCH_H
#define EXTENDER_VERBS_SCRATCH_H

#include "config/base/arena.h"
#include "config/base/buf.h"
#include "extender/protocol/protocol.h"

enum {
    ANSWER_BYTES_MAX = 32 << 20, /* a rejection on 65,000 nodes has about 15 MiB */
    REQUEST_ARENA_BYTES_MAX = 16 << 20,
    SCRATCH_KEEP_BYTES =
        2 << 20, /* of each buffer, for the next call, while memory is ample: 65,000 names fit */
    BODY_TAIL_BYTES = 128, /* room behind a body: see protocol_pass */
    /* Of a large rejection: it stays in the processor's cache, and each costs some calls of the
     * kernel. */
    ANSWER_PIECE_BYTES = 120 * 1024,
    /* Smaller rejections are written at once: up to here, that takes no longer. */
    ANSWER_WHOLE_BYTES_MAX = 1 << 20,
};

struct scratch {
    struct quota_share share; /* of all below */
    struct buf body;          /* the request; the answer may overwrite it */
    struct buf answer;        /* most answers are written here */
    struct slice result;      /* the answer: in `answer`, or in `body` */
    bool takes_pieces;        /* large answers may be in pieces: */
    struct rejection pieces;  /* this is the answer, in place of the result, if it has bytes: then
                                 the share counts ANSWER_PIECE_BYTES, which the server allocates */
    struct arena arena;
};

/* quota: bounds the memory of all calls together; NULL: there is no bound. */
void scratch_init(struct scratch *scratch, size_t max_body_bytes, struct quota *quota);
void scratch_dispose(struct scratch *scratch);

/* The answer is these pieces, until they end or the scratch is reset. False: there is no memory for
 * one. */
bool scratch_begin_pieces(struct scratch *scratch, const struct rejection *pieces);
void scratch_end_pieces(struct scratch *scratch);

/* Empties it for the next call, and frees what is more than the next call usually needs. */
void scratch_reset(struct scratch *scratch);

#endif
