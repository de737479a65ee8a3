/*
 * slice: borrowed text, as pointer and length, without a NUL at its end.
 *
 * Every string from outside (a request, a snapshot, a file) is a slice, so its length is always
 * known. A slice owns nothing; it is valid as long as the memory that it points to.
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

/* The two arguments for "%.*s". */
#define SLICE_ARG(s) (int)(s).len, ((s).ptr != NULL ? (s).ptr : "")

static inline struct slice slice_of(const char *text)
{
    return (struct slice){text, text == NULL ? 0 : strlen(text)};
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Whether they are equal if the case of ASCII letters is ignored. So Go matches keys of a JSON
 * object. */
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

/* Whether it has only the characters of Kubernetes' names and UIDs. */
static inline bool slice_is_plain(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-' && c != '.')
            return false;
    }
    return true;
}

/* <0, 0 or >0, as memcmp; if one is a prefix of the other, the shorter one is first. */
static inline int slice_compare(struct slice a, struct slice b)
{
    size_t shorter = a.len < b.len ? a.len : b.len;
    int order = shorter == 0 ? 0 : memcmp(a.ptr, b.ptr, shorter);
    if (order != 0)
        return order;
    return (a.len > b.len) - (a.len < b.len);
}

/* The same for qsort and bsearch, of slices. */
static inline int slice_order(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* Whether the text is one of so many. */
static inline bool slice_is_among(struct slice text, const struct slice *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(list[i], text))
            return true;
    return false;
}

/* Whether s contains part, which is not empty. */
static inline bool slice_has(struct slice s, struct slice part)
{
    return s.len >= part.len && memmem(s.ptr, s.len, part.ptr, part.len) != NULL;
}

/* Removes from *rest the text before the separator, and the separator; without one, all of the
 * text, and then rest->ptr is NULL. Returns that text. */
static inline struct slice slice_cut(struct slice *rest, char separator)
{
    const char *end = rest->len == 0 ? NULL : memchr(rest->ptr, separator, rest->len);
    struct slice first = {rest->ptr, end == NULL ? rest->len : (size_t)(end - rest->ptr)};

    *rest =
        (struct slice){end == NULL ? NULL : end + 1, end == NULL ? 0 : rest->len - first.len - 1};
    return first;
}

static inline bool slice_ends_with(struct slice s, struct slice suffix)
{
    return s.len >= suffix.len &&
           slice_equal((struct slice){s.ptr + (s.len - suffix.len), suffix.len}, suffix);
}

#endif
