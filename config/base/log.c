#include "config/base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

#include "config/base/buf.h"
#include "config/base/clock.h"

enum {
    LINE_BYTES_MAX = 16 * 1024,
    NOTICE_BYTES_MAX = 512,
    QUEUE_BYTES_MAX = 1 << 20,
    FLUSH_MS = 1000, /* how long log_stop waits for the last lines */
};

/* ---- lines ---- */

static const char *const level_words[] = {"debug", "info", "warn", "error"};
static const char *const level_labels[] = {"DEBUG", "INFO ", "WARN ", "ERROR"};

static atomic_int least_level = LOG_INFO;
static atomic_int line_format = LOG_TEXT;

void log_configure(enum log_level least, enum log_format format)
{
    atomic_store(&least_level, (int)least);
    atomic_store(&line_format, (int)format);
}

bool log_level_parse(enum log_level *out, const char *word)
{
    for (unsigned i = 0; i < sizeof level_words / sizeof *level_words; i++) {
        if (strcmp(word, level_words[i]) == 0) {
            *out = (enum log_level)i;
            return true;
        }
    }
    return false;
}

bool log_format_parse(enum log_format *out, const char *word)
{
    bool is_json = strcmp(word, "json") == 0;
    if (!is_json && strcmp(word, "text") != 0)
        return false;
    *out = is_json ? LOG_JSON : LOG_TEXT;
    return true;
}

static bool is_bare_word(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c >= 0x7f)
            return false;
    }
    return s.len != 0;
}

static void put_text_line(struct buf *line, enum log_level level, const char *message,
                          const struct log_field *fields)
{
    buf_time(line, now_ms(), true);
    buf_printf(line, " %s %s", level_labels[level], message);
    for (; fields->key != NULL; fields++) {
        buf_printf(line, " %s=", fields->key);
        if (is_bare_word(fields->value))
            buf_put(line, fields->value);
        else
            buf_json(line, fields->value);
    }
}

static void put_json_line(struct buf *line, enum log_level level, const char *message,
                          const struct log_field *fields)
{
    buf_put(line, SLICE("{\"time\":\""));
    buf_time(line, now_ms(), true);
    buf_printf(line, "\",\"level\":\"%s\",\"message\":", level_words[level]);
    buf_json(line, slice_of(message));
    for (; fields->key != NULL; fields++) {
        buf_printf(line, ",\"%s\":", fields->key);
        buf_json(line, fields->value);
    }
    buf_put(line, SLICE("}"));
}

static void put_line(struct buf *line, enum log_level level, const char *message,
                     const struct log_field *fields)
{
    if (atomic_load(&line_format) == (int)LOG_JSON)
        put_json_line(line, level, message, fields);
    else
        put_text_line(line, level, message, fields);
    buf_put(line, SLICE("\n"));
}

/* ---- the queue ---- */

/* Lines wait for the thread that writes them to stderr. When QUEUE_BYTES_MAX wait, further lines
 * are dropped and counted. */
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
} queue = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static atomic_uint_fast64_t dropped_ever;

uint64_t log_dropped(void)
{
    return atomic_load(&dropped_ever);
}

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
    bool has_room = queue.bytes + cost(text) <= QUEUE_BYTES_MAX;
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

/* Queues or drops the line, and returns at once; the buffer is empty afterwards. False if there is
 * no thread: the caller still owns the line. */
static bool put(struct buf *line)
{
    (void)pthread_mutex_lock(&queue.mutex);
    bool is_running = queue.is_running;
    if (is_running)
        enqueue(line);
    (void)pthread_mutex_unlock(&queue.mutex);
    return is_running;
}

void log_write(enum log_level level, const char *message, const struct log_field *fields)
{
    struct buf line;

    if ((int)level < atomic_load(&least_level))
        return;
    buf_init(&line, LINE_BYTES_MAX);
    put_line(&line, level, message, fields);
    /* One write for the line, so that lines of several threads do not mix. An error of this write
     * cannot be reported anywhere. */
    if (!line.failed && !put(&line))
        (void)!write(STDERR_FILENO, line.bytes, line.len);
    buf_dispose(&line);
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
    char number[24];
    struct buf text;

    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)count);
    buf_init(&text, NOTICE_BYTES_MAX);
    put_line(&text, LOG_WARN, "log lines were dropped", LOG_FIELDS(LOG_STR("count", number)));
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

int log_start(struct error *err)
{
    STAILQ_INIT(&queue.lines);
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
    int64_t at_ms = now_ms() + FLUSH_MS;

    return (struct timespec){.tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000};
}

void log_stop(void)
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
