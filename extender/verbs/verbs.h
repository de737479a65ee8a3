/*
 * verbs: the extender's calls, without HTTP: a body in, an answer out. The server is a shell around
 * this; tests, the fuzzer and the benchmark call it directly.
 *
 * Bad input never changes the state. A decision that cannot be made is an answer with Error set.
 */
#ifndef EXTENDER_VERBS_VERBS_H
#define EXTENDER_VERBS_VERBS_H

#include "extender/state.h"

enum {
    ANSWER_BYTES_MAX = 32 << 20, /* a rejection on 65,000 nodes has some 15 MiB */
    REQUEST_ARENA_BYTES_MAX = 16 << 20,
    SCRATCH_KEEP_BYTES = 1 << 20, /* for the next call, while memory is ample */
    BODY_TAIL_BYTES = 128,        /* room behind a body: see protocol_pass */
    /* Binds under way. A slow API server leaves the other connections to filter; and of more that
     * share HTTP_CALLS_AT_ONCE_MAX calls, each would run out of time before its turn comes. */
    BINDS_MAX = 64,
};

/* What one call needs, kept by its connection from call to call. */
struct scratch {
    struct quota_share share; /* of all three below */
    struct buf body;          /* gone once it is answered */
    struct buf answer;        /* where most answers are made */
    struct slice result;      /* the answer: in `answer`, or in `body` */
    struct arena arena;
};

/* quota: bounds what all calls take together; NULL: nothing does. */
void scratch_init(struct scratch *scratch, size_t max_body_bytes, struct quota *quota);
void scratch_dispose(struct scratch *scratch);

/* Makes ready for the next call, and gives back what that will not need. */
void scratch_reset(struct scratch *scratch);

/* Answers scratch->body in scratch->result. Returns the HTTP status: 200, 400, 500 or 503; the
 * answer to the others is {"error": "..."}. */
unsigned verb_answer(struct state *state, enum verb verb, struct scratch *scratch);

/* {"error": "..."} */
void verb_write_failure(struct buf *answer, const char *message);

#endif
