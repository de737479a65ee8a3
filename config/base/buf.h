/*
 * buf: a growing run of bytes with a maximum. A buffer that could not grow (memory or maximum) is
 * `failed`: what is put later is dropped, and the owner checks once, at the end.
 *
 *     struct buf out;
 *     buf_init(&out, 4096);
 *     buf_put(&out, SLICE("{\"name\":"));
 *     buf_json(&out, name);
 *     buf_put(&out, SLICE("}"));
 *     if (out.failed)
 *         return error_no_memory(err);
 *
 * One thread at a time.
 */
#ifndef CONFIG_BASE_BUF_H
#define CONFIG_BASE_BUF_H

#include <stdint.h>

#include "config/base/quota.h"
#include "config/base/slice.h"

struct buf {
    char *bytes;
    size_t len;
    size_t capacity;
    size_t max_bytes;
    bool failed;
    struct quota_share *share; /* of what it takes; NULL, as buf_init leaves it: of nothing */
};

void buf_init(struct buf *buf, size_t max_bytes);
void buf_dispose(struct buf *buf);

/* Empties the buffer; memory beyond keep_bytes is given back. */
void buf_reset(struct buf *buf, size_t keep_bytes);

/* Makes room for `more` bytes; false (and failed) when that cannot be. */
bool buf_reserve(struct buf *buf, size_t more);

void buf_put(struct buf *buf, struct slice s);
void buf_printf(struct buf *buf, const char *format, ...) PRINTF_LIKE(2, 3);

/* s as a JSON string, quoted and escaped. What is not UTF-8 (a message that was cut, a path)
 * becomes U+FFFD, so that the result is JSON whatever s is. */
void buf_json(struct buf *buf, struct slice s);

/* A time as the API server writes it, "2026-11-21T06:30:00Z", or with milliseconds, as the log
 * does.
 */
void buf_time(struct buf *buf, int64_t ms_since_1970, bool has_ms);

/* The bytes as a string, for functions that want one; NULL when the buffer has failed. The NUL is
 * not part of buf_slice. */
const char *buf_text(struct buf *buf);

static inline struct slice buf_slice(const struct buf *buf)
{
    return (struct slice){buf->bytes, buf->len};
}

#endif
