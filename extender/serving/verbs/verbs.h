/*
 * verbs: the calls of schedulers, without HTTP: a body in, an answer out. The server
 * adds HTTP; tests, the fuzzer and the benchmark call this directly.
 *
 * Bad input never changes the state. If no decision can be made, the answer has Error set.
 *
 * Threads: any; a call may block on the API server.
 */
#ifndef EXTENDER_SERVING_VERBS_VERBS_H
#define EXTENDER_SERVING_VERBS_VERBS_H

#include "extender/serving/state.h"
#include "extender/serving/verbs/scratch.h"

enum {
    /* Binds under way. With a slow API server, the other connections remain for filter; and more
     * binds share HTTP_CALLS_AT_ONCE_MAX requests, so each would run out of time before its turn.
     */
    BINDS_MAX = 64,
    BINDS_SHARE = 3, /* of a namespace (shares.h) */
};

/* Answers scratch->body in scratch->result, or in scratch->pieces. Returns the HTTP status: 200; or
 * 400, 500 or 503 with the answer {"error": "..."}. */
unsigned verb_answer(struct state *state, enum verb verb, struct scratch *scratch);

/* The verb that a path calls: "/filter", ... */
bool verb_find(enum verb *out, const char *path);

/* Writes {"error": "..."}. */
void verb_write_failure(struct buf *answer, const char *message);

#endif
