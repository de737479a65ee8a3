/*
 * pull: a strict pull reader over one JSON text in memory. It builds no tree and allocates nothing
 * but the strings that hold escapes; a value that is not wanted is skipped at memory speed.
 *
 * It accepts exactly what Go's encoding/json accepts (json_text.h), and a raw value may be of any
 * size; what is read as an integer has to fit 64 bits. A string is read as UTF-8 without NUL: NUL,
 * half a pair of surrogates, and bytes that are not UTF-8 are read as U+FFFD. The fuzz target
 * tests/fuzz/fuzz_pull.c compares it with jansson.
 *
 * After the first problem, every call returns false, so a caller may check once at the end.
 *
 *     struct pull json;
 *     pull_init(&json, text);
 *     if (pull_object(&json))
 *         while (pull_key(&json, &key)) {
 *             if (slice_equal(key, SLICE("name")))
 *                 pull_string(&json, arena, &name);
 *             else
 *                 pull_skip(&json);
 *         }
 *     if (!pull_finish(&json))
 *         return pull_fail(&json, "the body", (struct place){1, 1}, err);
 *
 * Threads: a cursor belongs to one thread; texts may be shared.
 */
#ifndef CACHE_JSON_PULL_H
#define CACHE_JSON_PULL_H

#include <stdint.h>

#include "cache/json/json_text.h"
#include "config/base/arena.h"
#include "config/base/error.h"

enum {
    PULL_DEPTH_MAX = JSON_LEVELS_MAX, /* arrays and objects inside one another */
    PULL_KEY_MAX = 128,               /* bytes of a key with escapes; no key in a table is longer */
    PULL_PATH_MAX = 160,              /* bytes of the path in an error message */
};

struct pull {
    const char *start, *at, *end;
    const char *problem; /* NULL: none so far */
    unsigned depth;      /* how many arrays and objects are entered */
    bool is_first;       /* no value was read yet in the innermost one */
    bool is_checked;     /* pull_init_checked: a value that is skipped is not checked again */
    bool is_truncated;   /* the problem is that the text ended; more bytes may help */
    char key[PULL_KEY_MAX * JSON_DECODED_PER_BYTE]; /* the last key that had escapes, decoded */
    char path[PULL_PATH_MAX];
};

void pull_init(struct pull *json, struct slice text);

/* For a text whose syntax was checked: one value that pull_skip or pull_raw has accepted. */
void pull_init_checked(struct pull *json, struct slice text);

/* Enter the next value, an object or an array. False: it is null (consumed), or a problem. */
bool pull_object(struct pull *json);
bool pull_array(struct pull *json);

/* Reads the next member's key; its value is read next. False: the end (consumed), or a problem.
 * Ownership: the key is valid until the next call. */
bool pull_key(struct pull *json, struct slice *key);

/* Whether another array item follows, which is read next. False: the end (consumed), or a problem.
 */
bool pull_item(struct pull *json);

/* Skip the next value, of any type; pull_raw sets its extent in the text. Both check its syntax,
 * unless that was done: pull_init_checked. */
bool pull_skip(struct pull *json);
bool pull_raw(struct pull *json, struct slice *extent);

/* Whether the next value is null; then it is consumed. */
bool pull_null(struct pull *json);

/*
 * Read a string, an integer, true or false. null leaves *out unchanged and returns true, as Go
 * does. Ownership: a string without escapes points into the text, any other into the arena.
 */
bool pull_string(struct pull *json, struct arena *arena, struct slice *out);
bool pull_integer(struct pull *json, int64_t *out);
bool pull_boolean(struct pull *json, bool *out);

/* Checks an array of strings; sets its extent, and how many they are. */
bool pull_string_array(struct pull *json, struct slice *extent, struct json_strings *found);

/* Whether only white space is left, and there was no problem. */
bool pull_finish(struct pull *json);

/* The problem of a text that is well-formed, and needs more memory than the arena has. */
extern const char pull_too_big[];

/* Records a problem (a static string) at the cursor. Returns false. */
bool pull_problem(struct pull *json, const char *problem);

/* The place of `at` in a text that starts at `start`; `first` is the place of `start`. */
struct place place_of(const char *start, const char *at, struct place first);

/* Fills err with ERROR_INVALID "WHAT:LINE:COL: path: problem" and returns its code. first is where
 * the text starts in its file; {1, 1} for a text without one. */
int pull_fail(const struct pull *json, const char *what, struct place first, struct error *err);

#endif
