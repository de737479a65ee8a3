/*
 * text: what is written in texts from outside, how such a text is shown, and which word was
 * probably meant.
 *
 * Anyone who may create a pod chooses some of its strings, and must not be able to move the cursor
 * of a terminal or to clear a line: make_printable.
 *
 * Threads: any; a struct nearest is for one.
 */
#ifndef CONFIG_BASE_TEXT_H
#define CONFIG_BASE_TEXT_H

#include <stdint.h>

#include "config/base/arena.h"

enum { UTF8_INVALID = 0, UTF8_CUT_OFF = -1 };

/* The length of the UTF-8 character at p, of which `left` bytes (at least one) may be read;
 * UTF8_INVALID; or UTF8_CUT_OFF if the bytes end inside a character. Overlong forms, surrogates,
 * and characters above U+10FFFF are invalid (RFC 3629). */
int utf8_length(const char *p, size_t left);

/* The text, without a character at its end that is cut off: what snprintf leaves of a long one. */
struct slice utf8_whole(struct slice text);

/* Replaces each byte of a control character by `?`, line breaks and tabs by a space: those of
 * ASCII, U+0080 to U+009F, and those that turn the direction of what follows (U+202A to U+202E,
 * U+2066 to U+2069, U+200E, U+200F, U+061C). */
void make_printable(char *text);

/* Decodes the standard alphabet (RFC 4648), which the `-data` fields of a kubeconfig use, and skips
 * white space. False if it is not base64, or without memory.
 * Ownership: out is in the arena, with a NUL after it. */
bool base64_decode(struct slice text, struct arena *arena, struct slice *out);

/* Milliseconds since 1970 of an RFC 3339 time ("2026-11-20T10:00:00Z", "...T12:00:00.5+02:00"),
 * rounded down to seconds; 0 if the text is not a time. */
int64_t time_parse(struct slice text);

/* ---- "did you mean" ---- */

/*
 * The word that was probably meant:
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
 */
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
