/*
 * input: a file or standard input, read through a window that slides over it. The window holds at
 * least the object that is being read, so memory does not grow with the file.
 *
 * Threads: one at a time.
 */
#ifndef CACHE_SNAPSHOT_INPUT_H
#define CACHE_SNAPSHOT_INPUT_H

#include "cache/json/pull.h"

enum {
    INPUT_WINDOW_BYTES = 256 * 1024,
    INPUT_OBJECT_BYTES_MAX = 16 * 1024 * 1024, /* the API server accepts about 3 MiB */
};

struct input {
    const char *path; /* borrowed; "<stdin>" for standard input */
    int fd;
    bool at_eof;
    bool is_file; /* can be read again by its path */
    char *window;
    size_t begin, end; /* bytes that are read but not consumed */
    size_t capacity;
    struct place place; /* of the first of these */
    size_t bytes_read;  /* in total */
    size_t bytes_total; /* the file's size; 0 when that is not known */
};

/* Opens path, or standard input for "-". Ownership: input_close, on success. */
int input_open(struct input *input, const char *path, struct error *err);
void input_close(struct input *input);

/* Appends more bytes to the window. 1: there may be more; 0: the end; negative: an error
 * (ERROR_TOO_BIG: an object does not fit the largest window). */
int input_fill(struct input *input, struct error *err);

static inline struct slice input_slice(const struct input *input)
{
    return (struct slice){input->window + input->begin, input->end - input->begin};
}

/* Where in the file a byte of the slice is. */
static inline uint64_t input_offset(const struct input *input, const char *byte)
{
    return input->bytes_read - (uint64_t)(input->window + input->end - byte);
}

/* Consumes count bytes. */
void input_consume(struct input *input, size_t count);

#endif
