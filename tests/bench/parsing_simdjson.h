/*
 * parsing_simdjson: simdjson's on-demand parser as a yardstick for bench_parsing; built if the
 * library is there (libsimdjson-dev).
 */
#ifndef TESTS_BENCH_PARSING_SIMDJSON_H
#define TESTS_BENCH_PARSING_SIMDJSON_H

#include <stddef.h>

#ifdef HAS_SIMDJSON
enum { PARSING_HAS_SIMDJSON = 1 };
#else
enum { PARSING_HAS_SIMDJSON = 0 };
#endif

enum { PARSING_PADDING = 64 }; /* bytes that it may read behind a text */

#ifdef __cplusplus
extern "C"
#endif
    /* Reads name, uid, nodeName and phase of each item of a list. Returns the number of items; 0: a
     * problem. */
    size_t
    parsing_simdjson(const char *text, size_t length, size_t capacity);

#endif
