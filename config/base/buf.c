#include "config/base/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "config/base/text.h"

enum { CAPACITY_MIN = 256 };

void buf_init(struct buf *buf, size_t max_bytes)
{
    *buf = (struct buf){.max_bytes = max_bytes};
}

void buf_dispose(struct buf *buf)
{
    free(buf->bytes);
    quota_give(buf->share, buf->capacity);
    *buf = (struct buf){.max_bytes = buf->max_bytes, .share = buf->share};
}

void buf_wipe(struct buf *buf)
{
    if (buf->bytes != NULL)
        explicit_bzero(buf->bytes, buf->capacity);
    buf_dispose(buf);
}

void buf_reset(struct buf *buf, size_t keep_bytes)
{
    if (buf->capacity > keep_bytes)
        buf_dispose(buf);
    buf->len = 0;
    buf->failed = false;
}

/* Half as much again at least, so that the cost of many appends is linear. At most max_bytes. */
static size_t next_capacity(const struct buf *buf, size_t wanted)
{
    size_t capacity = buf->capacity + buf->capacity / 2;

    if (capacity > buf->max_bytes)
        capacity = buf->max_bytes;
    if (capacity < CAPACITY_MIN)
        capacity = CAPACITY_MIN;
    return capacity < wanted ? wanted : capacity;
}

static bool grow(struct buf *buf, size_t wanted)
{
    size_t capacity = next_capacity(buf, wanted), more = capacity - buf->capacity;

    if (!quota_take(buf->share, more))
        return false;
    char *grown = realloc(buf->bytes, capacity);
    if (grown == NULL) {
        quota_give(buf->share, more);
        return false;
    }
    buf->bytes = grown;
    buf->capacity = capacity;
    return true;
}

bool buf_reserve(struct buf *buf, size_t more)
{
    if (buf->failed || buf->len > buf->max_bytes || more > buf->max_bytes - buf->len) {
        buf->failed = true;
        return false;
    }
    if (more > buf->capacity - buf->len && !grow(buf, buf->len + more))
        buf->failed = true;
    return !buf->failed;
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args, again;

    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length >= 0 && buf_reserve(buf, (size_t)length + 1)) {
        (void)vsnprintf(buf->bytes + buf->len, (size_t)length + 1, format, again);
        buf->len += (size_t)length;
    }
    va_end(again);
}

static void put_escaped(struct buf *buf, unsigned char c)
{
    switch (c) {
    case '"': buf_put(buf, SLICE("\\\"")); break;
    case '\\': buf_put(buf, SLICE("\\\\")); break;
    case '\n': buf_put(buf, SLICE("\\n")); break;
    case '\r': buf_put(buf, SLICE("\\r")); break;
    case '\t': buf_put(buf, SLICE("\\t")); break;
    default: buf_printf(buf, "\\u%04x", c < 0x20 ? c : 0xFFFDU); break; /* not UTF-8 */
    }
}

/* The length of the first character, or 0 if it needs an escape. */
static size_t plain_length(struct slice s)
{
    unsigned char c = (unsigned char)s.ptr[0];

    if (c < 0x20 || c == '"' || c == '\\')
        return 0;
    int length = utf8_length(s.ptr, s.len);
    return length > 0 ? (size_t)length : 0;
}

/* The bytes of a word that are not ASCII, or have to be escaped: each has its high bit set. Bytes
 * behind them may have it as well. */
static uint64_t find_odd(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t quote = word ^ (ones * '"'), backslash = word ^ (ones * '\\');

    return (word | (word + ones) | ((word - ones * ' ') & ~word) | ((quote - ones) & ~quote) |
            ((backslash - ones) & ~backslash)) &
           (ones * 0x80);
}

/* Whether it is ASCII without anything to escape: as all names of Kubernetes are. */
static bool is_plain(struct slice s)
{
    uint64_t word, odd = 0;
    size_t i = 0;

    for (; i + sizeof word <= s.len; i += sizeof word) {
        memcpy(&word, s.ptr + i, sizeof word);
        odd |= find_odd(word);
    }
    memset(&word, ' ', sizeof word);
    if (i < s.len)
        memcpy(&word, s.ptr + i, s.len - i);
    return (odd | find_odd(word)) == 0;
}

static void put_quoted(struct buf *buf, struct slice s)
{
    if (!buf_reserve(buf, s.len + 2))
        return;
    char *to = buf->bytes + buf->len;
    to[0] = '"';
    if (s.len != 0)
        memcpy(to + 1, s.ptr, s.len);
    to[s.len + 1] = '"';
    buf->len += s.len + 2;
}

void buf_json(struct buf *buf, struct slice s)
{
    size_t plain = 0; /* start of the run that needs no escape */

    if (is_plain(s)) {
        put_quoted(buf, s);
        return;
    }
    buf_put(buf, SLICE("\""));
    for (size_t i = 0; i < s.len;) {
        size_t length = plain_length((struct slice){s.ptr + i, s.len - i});
        if (length != 0) {
            i += length;
            continue;
        }
        buf_put(buf, (struct slice){s.ptr + plain, i - plain});
        put_escaped(buf, (unsigned char)s.ptr[i]);
        plain = ++i;
    }
    if (plain < s.len)
        buf_put(buf, (struct slice){s.ptr + plain, s.len - plain});
    buf_put(buf, SLICE("\""));
}

void buf_time(struct buf *buf, int64_t ms_since_1970, bool has_ms)
{
    time_t seconds = (time_t)(ms_since_1970 / 1000);
    char text[32];
    struct tm utc;

    (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &utc));
    buf_printf(buf, "%s", text);
    if (has_ms)
        buf_printf(buf, ".%03d", (int)(ms_since_1970 % 1000));
    buf_put(buf, SLICE("Z"));
}

const char *buf_text(struct buf *buf)
{
    if (!buf_reserve(buf, 1))
        return NULL;
    buf->bytes[buf->len] = '\0';
    return buf->bytes;
}
