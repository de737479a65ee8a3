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
    atomic_ullong version;  /* the last resourceVersion */
    atomic_uint generation; /* which of the two sets of pods there is */
    atomic_bool is_bound[FEED_WAITING];
    atomic_ullong bound_count; /* Bindings so far, and to which pods, in a ring */
    atomic_uint bound[FEED_WAITING];
};

extern struct feed_world feed_world;

/* ---- feed_objects.c ---- */

/* Makes the texts. */
void feed_objects_make(void);

/* How many objects a list of the kind has now. */
unsigned feed_objects_count(enum kind kind, unsigned generation);

/* Appends object i of such a list; version 0: its own. */
void feed_objects_put(enum kind kind, unsigned generation, unsigned i, uint64_t version,
                      struct buf *out);

/* The object of that path, /api/v1/namespaces/NS/pods/NAME; false: there is none. */
bool feed_objects_find(const char *path, struct buf *out);

/* The index of the waiting pod that a path names; -1: another one. */
int feed_objects_waiting(const char *path);

/* ---- feed_answers.c: the bodies of lists and watches ---- */

struct feed_answer;

/* query: as it came. NULL: no memory. */
struct feed_answer *feed_answer_new(enum kind kind, const char *query);

/* As MHD_ContentReaderCallback; blocks until there is something. */
ssize_t feed_answer_read(void *answer, uint64_t position, char *out, size_t size);

void feed_answer_free(void *answer);

#endif
