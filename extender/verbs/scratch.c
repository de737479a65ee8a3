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

bool scratch_take_piece(struct scratch *scratch)
{
    scratch->has_piece = quota_take(scratch->arena.share, ANSWER_PIECE_BYTES);
    return scratch->has_piece;
}

void scratch_give_piece(struct scratch *scratch)
{
    if (scratch->has_piece)
        quota_give(scratch->arena.share, ANSWER_PIECE_BYTES);
    scratch->has_piece = false;
    scratch->pieces.bytes = 0;
}

void scratch_dispose(struct scratch *scratch)
{
    scratch_give_piece(scratch);
    buf_dispose(&scratch->body);
    buf_dispose(&scratch->answer);
    arena_dispose(&scratch->arena);
}

void scratch_reset(struct scratch *scratch)
{
    struct quota *quota = scratch->share.quota;

    scratch_give_piece(scratch);
    bool is_ample = quota == NULL || quota_is_ample(quota);
    scratch->share.was_refused = false;
    buf_reset(&scratch->body, is_ample ? SCRATCH_KEEP_BYTES : 0);
    buf_reset(&scratch->answer, is_ample ? SCRATCH_KEEP_BYTES : 0);
    if (is_ample)
        arena_reset(&scratch->arena);
    else
        arena_dispose(&scratch->arena);
}
