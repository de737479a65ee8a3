/*
 * log_queue: lines on their way to stderr, when a thread writes them, so that nobody who logs waits
 * for whoever reads stderr. At most LOG_QUEUE_BYTES_MAX wait; more are dropped, and counted. Only
 * log.c uses it.
 *
 * Threads: log_queue_put and log_queue_dropped by any; start and stop by one.
 */
#ifndef CONFIG_BASE_LOG_QUEUE_H
#define CONFIG_BASE_LOG_QUEUE_H

#include "config/base/buf.h"
#include "config/base/error.h"

enum {
    LOG_QUEUE_BYTES_MAX = 1 << 20,
    LOG_FLUSH_MS = 1000, /* that the end waits for what is still to be written */
};

/* say_dropped: puts the line that says how many are missing at this point; static.
 * Errors: ERROR_SYSTEM: lines are not queued, then. */
int log_queue_start(void (*say_dropped)(struct buf *line, uint64_t count), struct error *err);

/* Waits until all is written, LOG_FLUSH_MS at most. */
void log_queue_stop(void);

/* Takes the line (it is empty afterwards) and returns at once. False: nothing is queued; the line
 * is still the caller's. */
bool log_queue_put(struct buf *line);

/* Lines that were dropped so far, here or because stderr took nothing. */
uint64_t log_queue_dropped(void);

#endif
