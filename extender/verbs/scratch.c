#include "extender/verbs/scratch.h"

void scratch_init(struct scratch *scratch, size_t max_body_bytes, struct quota *quota)
{
    struct quota_share *share = quota == NULL ? NULL : &scratch->share;

    *scratch = (struct scratch){.share = {.quota = quota}};
    buf_init(&scratch->body, max_body_bytes);
    buf_init(&scratch->answer, ANSWER_BYTES_MAX);
    arena_init(&scratch->arena, REQUEST_ARENA_BYTES_MAX);
    scratch->body.share = scratch->answer.share = scratch->arena.share = share;
}

bool scratch_begin_pieces(struct scratch *scratch, const struct rejection *pieces)
{
    if (!quota_take(scratch->arena.share, ANSWER_PIECE_BYTES))
        return false;
    scratch->pieces = *pieces;
    return true;
}

void scratch_end_pieces(struct scratch *scratch)
{
    if (scratch->pieces.bytes != 0)
        quota_give(scratch->arena.share, ANSWER_PIECE_BYTES);
    scratch->pieces.bytes = 0;
}

void scratch_dispose(struct scratch *scratch)
{
    scratch_end_pieces(scratch);
    buf_dispose(&scratch->body);
    buf_dispose(&scratch->answer);
    arena_dispose(&scratch->arena);
}

void scratch_reset(struct scratch *scratch)
{
    struct quota *quota = scratch->share.quota;

    scratch_end_pieces(scratch);
    bool is_ample = quota == NULL || quota_is_ample(quota);
    scratch->share.was_refused = false;
    buf_reset(&scratch->body, is_ample ? SCRATCH_KEEP_BYTES : 0);
    buf_reset(&scratch->answer, is_ample ? SCRATCH_KEEP_BYTES : 0);
    if (is_ample)
        arena_reset(&scratch->arena);
    else
        arena_dispose(&scratch->arena);
}
