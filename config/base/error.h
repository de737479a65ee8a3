/*
 * error: a code and a message, in a struct of the caller. So an error needs no allocation, and
 * there is no hidden "last error".
 *
 * A function that can fail returns 0 or one of the negative codes below, and takes a
 * `struct error *` as its last parameter. The message is one line, and names the object or the
 * place (FILE:LINE:COL). It never contains a body or a token.
 *
 *     struct config *config;
 *     if (config_load(&config, path, err) < 0)
 *         return error_wrap(err, "reload");
 */
#ifndef CONFIG_BASE_ERROR_H
#define CONFIG_BASE_ERROR_H

#include "config/base/slice.h"

enum {
    ERROR_INVALID = -1,     /* the input is wrong */
    ERROR_NOT_FOUND = -2,   /* the named object does not exist */
    ERROR_TOO_BIG = -3,     /* over one of claimguard's limits */
    ERROR_NO_MEMORY = -4,   /* an allocation failed */
    ERROR_SYSTEM = -5,      /* a system call failed; the message has the text of its errno */
    ERROR_TIMEOUT = -6,     /* no answer in time */
    ERROR_UNAVAILABLE = -7, /* the other side cannot be reached, or refuses */
};

#define ERROR_MESSAGE_BYTES 512

struct error {
    int code; /* 0, or one of the codes above */
    char message[ERROR_MESSAGE_BYTES];
};

/* A place in a text, counted from 1. */
struct place {
    size_t line, column;
};

/* <0, 0, >0: a is before, at, after b. */
static inline int place_compare(struct place a, struct place b)
{
    if (a.line != b.line)
        return a.line < b.line ? -1 : 1;
    return (a.column > b.column) - (a.column < b.column);
}

/* Sets code and message (cut to fit). Returns code, so that `return error_set(...)` is one line. */
int error_set(struct error *err, int code, const char *format, ...) PRINTF_LIKE(3, 4);

/* Puts "context: " before the message. Returns the code of err. */
int error_wrap(struct error *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* Sets ERROR_SYSTEM, and appends ": " and the text of the errno value `number`. Returns code. */
int error_system(struct error *err, int number, const char *format, ...) PRINTF_LIKE(3, 4);

/* Sets ERROR_NO_MEMORY with its standard message. Returns the code. */
int error_no_memory(struct error *err);

#endif
