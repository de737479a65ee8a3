#include "config/base/log_queue.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

#include "config/base/clock.h"

enum { NOTICE_BYTES_MAX = 512 };

struct line {
    STAILQ_ENTRY(line) link;
    uint64_t dropped; /* lines dropped between the previous line and this one */
    struct buf text;
};

STAILQ_HEAD(lines, line);

static struct {
    pthread_mutex_t mutex; /* guards the other members; never held while a line is written */
    pthread_cond_t changed;
    bool is_running, is_stopping;
    struct lines lines;
    size_t bytes;     /* memory of all lines, including the one that is being written */
    uint64_t dropped; /* lines dropped since the last one was queued */
    pthread_t thread;
    void (*say_dropped)(struct buf *line, uint64_t count);
} queue = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static atomic_uint_fast64_t dropped_ever;

uint64_t log_queue_dropped(void)
{
    return atomic_load(&dropped_ever);
}

/* ---- the threads that log ---- */

static void drop(void)
{
    queue.dropped++;
    atomic_fetch_add(&dropped_ever, 1);
}

static size_t cost(const struct buf *text)
{
    return sizeof(struct line) + text->capacity;
}

static void enqueue(struct buf *text)
{
    bool has_room = queue.bytes + cost(text) <= LOG_QUEUE_BYTES_MAX;
    struct line *line = has_room ? calloc(1, sizeof *line) : NULL;

    if (line == NULL) {
        drop();
        buf_dispose(text);
        return;
    }
    line->text = *text;
    line->dropped = queue.dropped;
    queue.dropped = 0;
    queue.bytes += cost(text);
    buf_init(text, text->max_bytes);
    STAILQ_INSERT_TAIL(&queue.lines, line, link);
    (void)pthread_cond_signal(&queue.changed);
}

bool log_queue_put(struct buf *line)
{
    (void)pthread_mutex_lock(&queue.mutex);
    bool is_running = queue.is_running;
    if (is_running)
        enqueue(line);
    (void)pthread_mutex_unlock(&queue.mutex);
    return is_running;
}

/* ---- the thread that writes ---- */

/* Writes the whole text, and waits as long as necessary. False on an error. */
static bool write_all(struct slice text)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};

    while (text.len != 0) {
        ssize_t count = write(STDERR_FILENO, text.ptr, text.len);
        if (count < 0 && errno == EAGAIN) /* another process made stderr non-blocking */
            (void)poll(&ready, 1, -1);
        else if (count < 0 && errno != EINTR)
            return false;
        text.ptr += count < 0 ? 0 : count;
        text.len -= count < 0 ? 0 : (size_t)count;
    }
    return true;
}

static void write_notice(uint64_t count)
{
    struct buf text;

    buf_init(&text, NOTICE_BYTES_MAX);
    queue.say_dropped(&text, count);
    (void)write_all(buf_slice(&text));
    buf_dispose(&text);
}

/* Waits for a line, or for a count of dropped lines. Returns the line, or NULL, and in *dropped the
 * count of lines that were dropped before it. Both are 0 at the end. Called under the mutex. */
static struct line *take(uint64_t *dropped)
{
    while (STAILQ_EMPTY(&queue.lines) && queue.dropped == 0 && !queue.is_stopping)
        (void)pthread_cond_wait(&queue.changed, &queue.mutex);
    struct line *line = STAILQ_FIRST(&queue.lines);
    if (line != NULL) {
        STAILQ_REMOVE_HEAD(&queue.lines, link);
        *dropped = line->dropped;
    } else {
        *dropped = queue.dropped;
        queue.dropped = 0;
    }
    return line;
}

static void *run(void *context)
{
    (void)pthread_mutex_lock(&queue.mutex);
    for (;;) {
        uint64_t dropped;
        struct line *line = take(&dropped);
        if (line == NULL && dropped == 0)
            break; /* the end */
        (void)pthread_mutex_unlock(&queue.mutex);
        if (dropped != 0)
            write_notice(dropped);
        if (line != NULL && !write_all(buf_slice(&line->text)))
            atomic_fetch_add(&dropped_ever, 1);
        (void)pthread_mutex_lock(&queue.mutex);
        if (line != NULL) {
            queue.bytes -= cost(&line->text);
            buf_dispose(&line->text);
            free(line);
        }
    }
    (void)pthread_mutex_unlock(&queue.mutex);
    return context;
}

int log_queue_start(void (*say_dropped)(struct buf *line, uint64_t count), struct error *err)
{
    STAILQ_INIT(&queue.lines);
    queue.say_dropped = say_dropped;
    queue.is_stopping = false;
    int rc = pthread_create(&queue.thread, NULL, run, NULL);
    if (rc != 0)
        return error_system(err, rc, "thread");
    (void)pthread_mutex_lock(&queue.mutex);
    queue.is_running = true;
    (void)pthread_mutex_unlock(&queue.mutex);
    return 0;
}

/* When the thread must have ended, in the real time that pthread_timedjoin_np needs. */
static struct timespec join_deadline(void)
{
    int64_t at_ms = now_ms() + LOG_FLUSH_MS;

    return (struct timespec){.tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000};
}

void log_queue_stop(void)
{
    struct timespec deadline = join_deadline();

    (void)pthread_mutex_lock(&queue.mutex);
    bool was_running = queue.is_running;
    queue.is_running = false;
    queue.is_stopping = true;
    (void)pthread_cond_signal(&queue.changed);
    (void)pthread_mutex_unlock(&queue.mutex);
    /* if nobody reads stderr, the thread blocks in write(), and ends with the process */
    if (was_running && pthread_timedjoin_np(queue.thread, NULL, &deadline) != 0)
        (void)pthread_detach(queue.thread);
}
