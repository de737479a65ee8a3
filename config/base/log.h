/*
 * log: one line a fact on stderr, as text or JSON, with a level. Lines are written whole, so
 * threads do not mix. Never pass a request body or a credential.
 *
 *     log_info("listening", LOG_STR("address", "127.0.0.1:8888"));
 *
 * writes one of
 *
 *     2026-11-20T19:37:44.120Z INFO  listening address=127.0.0.1:8888
 *     {"time":"...","level":"info","message":"listening","address":"127.0.0.1:8888"}
 *
 * A line is written by whoever logs it, until log_start: from then on by a thread, so that nobody
 * waits for whoever reads stderr (log_queue.h has the limits). Where lines were dropped, a line
 * says how many.
 *
 * Any thread; log_configure, log_start and log_stop by one, while there are no others.
 */
#ifndef CONFIG_BASE_LOG_H
#define CONFIG_BASE_LOG_H

#include <stdint.h>

#include "config/base/error.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_TEXT, LOG_JSON };

struct log_field {
    const char *key; /* NULL ends a list */
    struct slice value;
};

#define LOG_STR(key, text)    ((struct log_field){(key), slice_of(text)})
#define LOG_SLICE(key, slice) ((struct log_field){(key), (slice)})

void log_configure(enum log_level least, enum log_format format);

/* Ownership: log_stop, which writes what is left, for a second at most. Errors: ERROR_SYSTEM. */
int log_start(struct error *err);
void log_stop(void);

/* Lines that were dropped so far. Any thread. */
uint64_t log_dropped(void);

/* "debug", "info", "warn", "error" / "text", "json"; false when the word is none of them. */
bool log_level_parse(enum log_level *out, const char *word);
bool log_format_parse(enum log_format *out, const char *word);

/* fields: an array that ends with a NULL key. */
void log_write(enum log_level level, const char *message, const struct log_field *fields);

#define LOG_NONE ((struct log_field){NULL, {NULL, 0}})

/* log_info(message, field, ...): at least one field, or LOG_NONE. */
#define LOG_FIELDS(...)         ((const struct log_field[]){__VA_ARGS__, LOG_NONE})
#define log_debug(message, ...) log_write(LOG_DEBUG, (message), LOG_FIELDS(__VA_ARGS__))
#define log_info(message, ...)  log_write(LOG_INFO, (message), LOG_FIELDS(__VA_ARGS__))
#define log_warn(message, ...)  log_write(LOG_WARN, (message), LOG_FIELDS(__VA_ARGS__))
#define log_error(message, ...) log_write(LOG_ERROR, (message), LOG_FIELDS(__VA_ARGS__))

#endif
