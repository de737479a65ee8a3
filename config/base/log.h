/*
 * log: writes one line for each fact to stderr, as text or JSON, with a level. Lines of several
 * threads do not mix. Never log a request body or a credential.
 *
 *     log_info("listening", LOG_STR("address", "127.0.0.1:8888"));
 *
 * writes one of
 *
 *     2026-11-20T19:37:44.120Z INFO  listening address=127.0.0.1:8888
 *     {"time":"...","level":"info","message":"listening","address":"127.0.0.1:8888"}
 *
 * Before log_start, the thread that logs a line also writes it. After log_start, lines are queued,
 * and one thread writes them, so a slow reader of stderr delays no other thread. When a MiB of
 * lines waits, further ones are dropped; where lines were dropped, a line reports how many.
 *
 * Threads: any. log_configure, log_start and log_stop: only while there is one thread.
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

/* Starts the thread. Ownership: log_stop, which writes the queued lines, for at most a second.
 * Errors: ERROR_SYSTEM. */
int log_start(struct error *err);
void log_stop(void);

/* The number of lines that were dropped so far. */
uint64_t log_dropped(void);

/* Reads "debug", "info", "warn" or "error", and "text" or "json". False for any other word. */
bool log_level_parse(enum log_level *out, const char *word);
bool log_format_parse(enum log_format *out, const char *word);

/* fields: an array that ends with a NULL key. */
void log_write(enum log_level level, const char *message, const struct log_field *fields);

#define LOG_NONE ((struct log_field){NULL, {NULL, 0}})

/* log_info(message, field, ...) needs at least one field, or LOG_NONE. */
#define LOG_FIELDS(...)         ((const struct log_field[]){__VA_ARGS__, LOG_NONE})
#define log_debug(message, ...) log_write(LOG_DEBUG, (message), LOG_FIELDS(__VA_ARGS__))
#define log_info(message, ...)  log_write(LOG_INFO, (message), LOG_FIELDS(__VA_ARGS__))
#define log_warn(message, ...)  log_write(LOG_WARN, (message), LOG_FIELDS(__VA_ARGS__))
#define log_error(message, ...) log_write(LOG_ERROR, (message), LOG_FIELDS(__VA_ARGS__))

#endif
