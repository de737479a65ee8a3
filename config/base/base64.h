/*
 * base64: decodes the standard alphabet (RFC 4648), which the `-data` fields of a kubeconfig use.
 */
#ifndef CONFIG_BASE_BASE64_H
#define CONFIG_BASE_BASE64_H

#include "config/base/arena.h"

/* Decodes text and skips its white space. False if it is not base64, or without memory.
 * Ownership: out is in the arena, with a NUL after it. */
bool base64_decode(struct slice text, struct arena *arena, struct slice *out);

#endif
