/*
 * buf: bytes in memory that grows up to a maximum. If it cannot grow, the buffer is `failed`, and
 * ignores what is put later. So the owner checks once, at the end.
 *
 *     struct buf out;
 *     buf_init(&out, 4096);
 *     buf_put(&out, SLICE("{\"name\":"));
 *     buf_json(&out, name);
 *     buf_put(&out, SLICE("}"));
 *     if (out.failed)
 *         return error_no_memory(err);
 *
 * Threads: one at a time.
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
    struct quota_share *share; /* counts the capacity; NULL after buf_init: no quota */
};

void buf_init(struct buf *buf, size_t max_bytes);
void buf_dispose(struct buf *buf);

/* The same, for a text with keys: overwrites it first. While it grew, it may have been moved. */
void buf_wipe(struct buf *buf);

/* Empties the buffer. Frees its memory if that is more than keep_bytes. */
void buf_reset(struct buf *buf, size_t keep_bytes);

/* Makes room for `more` bytes. False, and the buffer is failed, if there is none. */
bool buf_reserve(struct buf *buf, size_t more);

/* Inline, because an answer about 5,000 nodes is put together from as many pieces. */
static inline void buf_put(struct buf *buf, struct slice s)
{
    size_t end = buf->len + s.len;
    bool has_room = end <= buf->capacity && end <= buf->max_bytes && !buf->failed;

    if (s.len == 0 || (!has_room && !buf_reserve(buf, s.len)))
        return;
    memcpy(buf->bytes + buf->len, s.ptr, s.len);
    buf->len += s.len;
}

void buf_printf(struct buf *buf, const char *format, ...) PRINTF_LIKE(2, 3);

/* Appends s as a JSON string, quoted and escaped. Each byte that is not UTF-8 (in a path, or in a
 * message that was cut) becomes U+FFFD, so the result is always JSON. */
void buf_json(struct buf *buf, struct slice s);

/* Appends a time: "2026-11-21T06:30:00Z", as the API server writes it, or with milliseconds, as the
 * log does. */
void buf_time(struct buf *buf, int64_t ms_since_1970, bool has_ms);

/* The bytes as a string that ends with NUL; NULL if the buffer has failed. buf_slice does not count
 * the NUL. */
const char *buf_text(struct buf *buf);

static inline struct slice buf_slice(const struct buf *buf)
{
    return (struct slice){buf->bytes, buf->len};
}

#endif
