/*
 * quantity: the two kinds of number with a unit that the configuration has.
 */
#ifndef CONFIG_QUANTITY_H
#define CONFIG_QUANTITY_H

#include <stdint.h>

#include "config/base/slice.h"

/* Kubernetes' resource.Quantity, whole numbers only: 1024, 64Mi, 2Gi, 10k, 5M. False when the text
 * is not one or does not fit. */
bool quantity_bytes(int64_t *out, struct slice text);

/* Go's time.Duration, whole numbers only: 30s, 1m30s, 500ms, 1h. */
bool quantity_duration_ms(int64_t *out, struct slice text);

enum { QUANTITY_TEXT_BYTES = 32 };

/* The shortest text that reads back the same. Returns buffer. */
const char *quantity_bytes_text(int64_t bytes, char buffer[QUANTITY_TEXT_BYTES]);
const char *quantity_duration_text(int64_t ms, char buffer[QUANTITY_TEXT_BYTES]);

#endif
