/*
 * utf8: checks one UTF-8 character at a time (RFC 3629): overlong forms, surrogates, and characters
 * above U+10FFFF are invalid.
 */
#ifndef CONFIG_BASE_UTF8_H
#define CONFIG_BASE_UTF8_H

#include <stddef.h>

enum { UTF8_INVALID = 0, UTF8_CUT_OFF = -1 };

/* The length of the character at p, of which `left` bytes (at least one) may be read; UTF8_INVALID;
 * or UTF8_CUT_OFF if the bytes end inside a character. */
int utf8_length(const char *p, size_t left);

#endif
