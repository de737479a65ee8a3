/*
 * utf8: one UTF-8 sequence at a time (RFC 3629): no overlong form, no surrogate, nothing above
 * U+10FFFF.
 */
#ifndef CONFIG_BASE_UTF8_H
#define CONFIG_BASE_UTF8_H

#include <stddef.h>

enum { UTF8_INVALID = 0, UTF8_CUT_OFF = -1 };

/* How many bytes the character at p takes, of `left` that are there (at least one); UTF8_INVALID
 * when it is none; UTF8_CUT_OFF when it could be one, had it not ended too early. */
int utf8_length(const char *p, size_t left);

#endif
