/* feed_internal: what the files feed*.c share. Only they include it. */
#ifndef TESTS_BENCH_FEED_INTERNAL_H
#define TESTS_BENCH_FEED_INTERNAL_H

#include "cache/objects/objects.h"
#include "feed.h"

/* The process's data. Threads: what is not atomic is written before the server listens. */
struct feed_world {
    const struct model *model;
    struct feed_control *control;
    struct feed_texts {
        struct buf bytes;
        size_t *ends; /* where object i ends; it begins where the one before ends */
        unsigned count;
    } texts[KIND_WATCHED_COUNT];
    atomic_uint version;    /* the lower half of the last resourceVersion */
    atomic_uint generation; /* which of the two sets of pods there is */
    atomic_ullong bound;    /* Bindings so far */
};

extern struct feed_world feed_world;

/* ---- feed_objects.c ---- */

/* A new resourceVersion: its upper half is the number of Bindings that are in what it is the
 * version of, so that a watch from there on begins with the next one. */
uint64_t feed_version(uint64_t bound);

/* Makes the texts. */
void feed_objects_make(void);

/* How many objects a list of the kind has now. */
unsigned feed_objects_count(enum kind kind);

/* Which objects: those that there were after so many Bindings. */
struct feed_moment {
    unsigned generation;
    uint64_t bound, version; /* of a list: those of its pods that wait have its version */
};

/* Appends object i of such a list; version 0: its own, or that of the moment. */
void feed_objects_put(enum kind kind, struct feed_moment moment, unsigned i, uint64_t version,
                      struct buf *out);

/* Appends the pod of bind n. */
void feed_objects_put_waiting(uint64_t n, bool is_bound, uint64_t version, struct buf *out);

/* The object of that path, /api/v1/namespaces/NS/pods/NAME; false: there is none. */
bool feed_objects_find(const char *path, struct buf *out);

/* The n of the bind whose pod a path names; -1: of none that there is. */
int64_t feed_objects_waiting(const char *path);

/* ---- feed_answers.c: the bodies of lists and watches ---- */

struct feed_answer;

/* query: as it came. NULL: no memory. */
struct feed_answer *feed_answer_new(enum kind kind, const char *query);

/* As MHD_ContentReaderCallback; blocks until there is something. */
ssize_t feed_answer_read(void *answer, uint64_t position, char *out, size_t size);

void feed_answer_free(void *answer);

#endif
