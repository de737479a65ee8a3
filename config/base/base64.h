/*
 * base64: the standard alphabet (RFC 4648), as kubeconfig's `-data` fields have it.
 */
#ifndef CONFIG_BASE_BASE64_H
#define CONFIG_BASE_BASE64_H

#include "config/base/arena.h"

/* The bytes that text means; white space in it is passed over. False when it is not base64, or
 * there is no memory. Ownership: out lies in the arena, with a NUL behind it. */
bool base64_decode(struct slice text, struct arena *arena, struct slice *out);

#endif
