/*
 * slice: a borrowed run of bytes, {pointer, length}, not NUL-terminated.
 *
 * Every string that comes from outside (a request, a snapshot, a file) travels as a slice, so that
 * its length is always known. A slice owns nothing: it is valid as long as what it points into.
 *
 *     return error_set(err, ERROR_NOT_FOUND, "pod %.*s", SLICE_ARG(name));
 */
#ifndef CONFIG_BASE_SLICE_H
#define CONFIG_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define MUST_USE __attribute__((warn_unused_result))
#define PRINTF_LIKE(format_index, first_index) \
    __attribute__((format(printf, format_index, first_index)))

struct slice {
    const char *ptr;
    size_t len;
};

/* A slice over a string literal. */
#define SLICE(literal) ((struct slice){(literal), sizeof(literal) - 1})

/* The two arguments of a "%.*s". */
#define SLICE_ARG(s) (int)(s).len, ((s).ptr != NULL ? (s).ptr : "")

static inline struct slice slice_of(const char *text)
{
    return (struct slice){text, text == NULL ? 0 : strlen(text)};
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Equal, without regard to the case of ASCII letters: how Go matches the keys of a JSON object. */
static inline bool slice_equal_fold(struct slice a, struct slice b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++) {
        unsigned x = (unsigned char)a.ptr[i], y = (unsigned char)b.ptr[i];
        x |= x - 'A' < 26U ? 0x20U : 0;
        y |= y - 'A' < 26U ? 0x20U : 0;
        if (x != y)
            return false;
    }
    return true;
}

/* Order by bytes, shorter first among equals: <0, 0, >0 as memcmp. */
static inline int slice_compare(struct slice a, struct slice b)
{
    size_t shorter = a.len < b.len ? a.len : b.len;
    int order = shorter == 0 ? 0 : memcmp(a.ptr, b.ptr, shorter);
    if (order != 0)
        return order;
    return (a.len > b.len) - (a.len < b.len);
}

/* Whether part, which is not empty, is anywhere in s. */
static inline bool slice_has(struct slice s, struct slice part)
{
    return s.len >= part.len && memmem(s.ptr, s.len, part.ptr, part.len) != NULL;
}

static inline bool slice_ends_with(struct slice s, struct slice suffix)
{
    return s.len >= suffix.len &&
           slice_equal((struct slice){s.ptr + (s.len - suffix.len), suffix.len}, suffix);
}

#endif
