/*
 * verbs: the extender's calls, without HTTP: a body in, an answer out. The server is a shell around
 * this; tests, the fuzzer and the benchmark call it directly.
 *
 * Bad input never changes the state. A decision that cannot be made is an answer with Error set.
 */
#ifndef EXTENDER_VERBS_H
#define EXTENDER_VERBS_H

#include "extender/state.h"

enum {
    ANSWER_BYTES_MAX = 256 << 20, /* a rejection on 65,000 nodes has some 25 MiB */
    REQUEST_ARENA_BYTES_MAX = 16 * 1024 * 1024,
    SCRATCH_KEEP_BYTES = 1024 * 1024, /* a connection keeps its memory up to this size */
    BINDS_MAX = 128, /* under way: a slow API server leaves the other connections to filter */
};

/* What one call needs, kept by its connection from call to call. */
struct scratch {
    struct buf body;     /* gone once it is answered */
    struct buf answer;   /* where most answers are made */
    struct slice result; /* the answer: in `answer`, or in `body` */
    struct arena arena;
};

void scratch_init(struct scratch *scratch, size_t max_body_bytes);
void scratch_dispose(struct scratch *scratch);

/* Makes ready for the next call. */
void scratch_reset(struct scratch *scratch);

/* Answers scratch->body in scratch->result. Returns the HTTP status: 200, 400 or 500; the answer to
 * the others is {"error": "..."}. */
unsigned verb_answer(struct state *state, enum verb verb, struct scratch *scratch);

/* {"error": "..."} */
void verb_write_failure(struct buf *answer, const char *message);

#endif
