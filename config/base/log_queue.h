/*
 * log_queue: lines that wait for the thread that writes them to stderr, so that a slow reader of
 * stderr delays no thread that logs. When LOG_QUEUE_BYTES_MAX wait, further lines are dropped and
 * counted. Only log.c uses this module.
 *
 * Threads: log_queue_put and log_queue_dropped: any; start and stop: one.
 */
#ifndef CONFIG_BASE_LOG_QUEUE_H
#define CONFIG_BASE_LOG_QUEUE_H

#include "config/base/buf.h"
#include "config/base/error.h"

enum {
    LOG_QUEUE_BYTES_MAX = 1 << 20,
    LOG_FLUSH_MS = 1000, /* how long log_queue_stop waits for the last lines */
};

/* Starts the thread. say_dropped writes the line that reports dropped lines.
 * Errors: ERROR_SYSTEM; lines are not queued then. */
int log_queue_start(void (*say_dropped)(struct buf *line, uint64_t count), struct error *err);

/* Waits until all lines are written, but at most LOG_FLUSH_MS. */
void log_queue_stop(void);

/* Queues or drops the line, and returns at once; the buffer is empty afterwards. False if there is
 * no thread: the caller still owns the line. */
bool log_queue_put(struct buf *line);

/* The number of lines that were dropped so far: the queue was full, or a write failed. */
uint64_t log_queue_dropped(void);

#endif
