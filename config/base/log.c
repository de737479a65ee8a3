#include "config/base/log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "config/base/clock.h"
#include "config/base/log_queue.h"

enum { LINE_BYTES_MAX = 16 * 1024 };

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

void log_write(enum log_level level, const char *message, const struct log_field *fields)
{
    struct buf line;

    if ((int)level < atomic_load(&least_level))
        return;
    buf_init(&line, LINE_BYTES_MAX);
    put_line(&line, level, message, fields);
    /* One write for the line, so that lines of several threads do not mix. An error of this write
     * cannot be reported anywhere. */
    if (!line.failed && !log_queue_put(&line))
        (void)!write(STDERR_FILENO, line.bytes, line.len);
    buf_dispose(&line);
}

/* ---- the thread that writes ---- */

static void say_dropped(struct buf *line, uint64_t count)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)count);
    put_line(line, LOG_WARN, "log lines were dropped", LOG_FIELDS(LOG_STR("count", text)));
}

int log_start(struct error *err)
{
    return log_queue_start(say_dropped, err);
}

void log_stop(void)
{
    log_queue_stop();
}

uint64_t log_dropped(void)
{
    return log_queue_dropped();
}
