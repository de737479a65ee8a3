/*
 * quantity: numbers with a unit, in the configuration and in objects: sizes and durations.
 */
#ifndef CONFIG_BASE_QUANTITY_H
#define CONFIG_BASE_QUANTITY_H

#include <stdint.h>

#include "config/base/slice.h"

/* Reads a whole number in the syntax of Kubernetes' resource.Quantity: 1024, 64Mi, 2Gi, 10k, 5M.
 * False if the text has another form, or if the number does not fit. */
bool quantity_bytes(int64_t *out, struct slice text);

/* Reads any resource.Quantity that is not negative (1.5Gi, 100m, 1e3), rounded up to a whole
 * number, as its Value() is; INT64_MAX if it is larger. False if the text is none. */
bool quantity_round_up(int64_t *out, struct slice text);

/* Reads whole numbers as Go's time.Duration: 30s, 1m30s, 500ms, 1h. False as above. */
bool quantity_duration_ms(int64_t *out, struct slice text);

enum { QUANTITY_TEXT_BYTES = 32 };

/* Writes a text that reads back as the same number, with the largest unit that divides it. Returns
 * buffer. */
const char *quantity_bytes_text(int64_t bytes, char buffer[QUANTITY_TEXT_BYTES]);
const char *quantity_duration_text(int64_t ms, char buffer[QUANTITY_TEXT_BYTES]);

#endif
