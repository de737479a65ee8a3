/*
 * watch_as_go: what an API server's answer says, as Go reads it (as_go.h). Where jansson cannot
 * read it, ours may: what it could say counts.
 */
#ifndef TESTS_FUZZ_WATCH_AS_GO_H
#define TESTS_FUZZ_WATCH_AS_GO_H

#include "cache/objects/objects.h"

struct watch_reading {
    unsigned ends;      /* of lists; no more than these */
    unsigned deletions; /* of objects; no more than these */
    bool is_good;       /* it is of that kind, and nothing in it is to be refused */
};

/* A watch, or a streamed list: events. */
struct watch_reading watch_read_lines(struct slice answer, enum kind kind);

/* A page of a list, which deletes nothing by itself. */
struct watch_reading watch_read_page(struct slice answer, enum kind kind);

#endif
