/*
 * nearest: the word that was probably meant, for "did you mean" in messages.
 *
 *     struct nearest nearest = {.typed = "dryrun"};
 *     char hint[NEAREST_HINT_BYTES];
 *     nearest_offer(&nearest, "serve");
 *     nearest_offer(&nearest, "dry-run");
 *     return error_set(err, ERROR_INVALID, "no command%s", nearest_hint(&nearest, "", hint));
 *
 * A word is near if at most a third of its characters, and at most NEAREST_EDITS_MAX, were left
 * out, added, changed, or swapped with their neighbour (optimal string alignment); or if what was
 * typed is its beginning, of three characters or more.
 *
 * Threads: one for each struct.
 */
#ifndef CONFIG_BASE_NEAREST_H
#define CONFIG_BASE_NEAREST_H

#include "config/base/slice.h"

enum {
    NEAREST_EDITS_MAX = 3,
    NEAREST_BYTES_MAX = 253, /* of a word; a longer one is near no other */
    NEAREST_HINT_BYTES = 300,
};

struct nearest {
    const char *typed;
    const char *word; /* the nearest so far, of those that are equally near the first; NULL: none */
    unsigned edits;
    char copy[NEAREST_BYTES_MAX + 1]; /* of nearest_offer_copy */
};

/* Ownership: word is kept, not copied. */
void nearest_offer(struct nearest *nearest, const char *word);

/* The same; the word is copied. */
void nearest_offer_copy(struct nearest *nearest, struct slice word);

/* "; did you mean BEFOREWORD?", or "" if none is near, written to out, which is returned. */
const char *nearest_hint(const struct nearest *nearest, const char *before,
                         char out[static NEAREST_HINT_BYTES]);

#endif
