/*
 * scratch: the memory of one call. A connection keeps it from call to call; a quota bounds the
 * memory of all calls together.
 *
 * Threads: one at a time.
 */
#ifndef EXTENDER_SERVING_VERBS_SCRATCH_H
#define EXTENDER_SERVING_VERBS_SCRATCH_H

#include "config/base/arena.h"
#include "config/base/buf.h"
#include "extender/serving/protocol/protocol.h"

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
static inline void scratch_init(struct scratch *scratch, size_t max_body_bytes, struct quota *quota)
{
    struct quota_share *share = quota == NULL ? NULL : &scratch->share;

    *scratch = (struct scratch){.share = {.quota = quota}};
    buf_init(&scratch->body, max_body_bytes);
    buf_init(&scratch->answer, ANSWER_BYTES_MAX);
    arena_init(&scratch->arena, REQUEST_ARENA_BYTES_MAX);
    scratch->body.share = scratch->answer.share = scratch->arena.share = share;
}

/* The answer is these pieces, until they end or the scratch is reset. False: there is no memory for
 * one. */
static inline bool scratch_begin_pieces(struct scratch *scratch, const struct rejection *pieces)
{
    if (!quota_take(scratch->arena.share, ANSWER_PIECE_BYTES))
        return false;
    scratch->pieces = *pieces;
    return true;
}

static inline void scratch_end_pieces(struct scratch *scratch)
{
    if (scratch->pieces.bytes != 0)
        quota_give(scratch->arena.share, ANSWER_PIECE_BYTES);
    scratch->pieces.bytes = 0;
}

static inline void scratch_dispose(struct scratch *scratch)
{
    scratch_end_pieces(scratch);
    buf_dispose(&scratch->body);
    buf_dispose(&scratch->answer);
    arena_dispose(&scratch->arena);
}

/* Empties it for the next call, and frees what is more than the next call usually needs. */
static inline void scratch_reset(struct scratch *scratch)
{
    struct quota *quota = scratch->share.quota;

    scratch_end_pieces(scratch);
    /* what is kept would make the next call one that takes much */
    bool is_ample = quota == NULL || (quota->small_bytes == 0 && quota_is_ample(quota));
    scratch->share.was_refused = false;
    buf_reset(&scratch->body, is_ample ? SCRATCH_KEEP_BYTES : 0);
    buf_reset(&scratch->answer, is_ample ? SCRATCH_KEEP_BYTES : 0);
    if (is_ample)
        arena_reset(&scratch->arena);
    else
        arena_dispose(&scratch->arena);
}

#endif
