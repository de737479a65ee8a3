/*
 * json_skip: the end of an array or an object that nobody reads, checked, 64 bytes at a time. Most
 * of a snapshot is skipped (managedFields, tolerations, status), and indentation is two thirds of
 * what kubectl prints: byte by byte, or token by token, both cost more than all the rest.
 *
 * Each block becomes bits: bit i of `commas` is set if byte i is a comma. What is inside a string
 * follows from the quotes, by a running xor. White space vanishes by an addition, whose carry runs
 * over a whole run of set bits: so "the next token behind each comma" is one addition, for all
 * commas of the block. JSON's grammar is a rule on neighbours: what may stand behind a comma, a
 * colon, a bracket, a value. Only whether a comma separates members or items depends on what is
 * around it; that is checked once for each bracket, not for each token.
 *
 * It says yes or "perhaps not": then json_text_value (json_text.c), the plain twin, reads the value
 * again token by token, and names the problem. tests/fuzz/fuzz_pull and tests/unit/cache/
 * test_json_skip.c hold the two together.
 */
#ifndef CACHE_JSON_JSON_SKIP_H
#define CACHE_JSON_JSON_SKIP_H

enum {
    JSON_SKIP_BYTES_MIN = 64, /* of a text; a shorter one is left to the twin */
    JSON_SKIP_LEVELS_MAX = 64,
};

/* From the bracket at p. Threads: any. */
struct json_skipper {
    /* Where the array or object ends, if it is well-formed (json_text.h) and at most `room` levels
     * deep. NULL: it is not; it ends behind `end`; the text is short; or perhaps it is good, but
     * uses the last of `room` levels, or of JSON_SKIP_LEVELS_MAX. */
    const char *(*check)(const char *p, const char *end, unsigned room);

    /* Where it ends, if it is known to be well-formed. NULL: behind `end`. */
    const char *(*find_end)(const char *p, const char *end);
};

/* The best one for this processor, chosen at the start. NULL: none is quicker than the twin. */
extern const struct json_skipper *json_skip;

/* All that this processor can run, the one in plain C first; NULL ends them. */
enum { JSON_SKIPPERS_MAX = 3 };
extern const struct json_skipper *json_skippers[JSON_SKIPPERS_MAX + 1];

#endif
