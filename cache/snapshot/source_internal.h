/* source_internal: what source.c and source_yaml.c share. Only they include it. */
#ifndef CACHE_SNAPSHOT_SOURCE_INTERNAL_H
#define CACHE_SNAPSHOT_SOURCE_INTERNAL_H

#include "cache/snapshot/source.h"

/*
 * A file or standard input, read through a window that slides over it. The window holds at least
 * the object that is being read, so memory does not grow with the file.
 */
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

static inline struct slice input_slice(const struct input *input)
{
    return (struct slice){input->window + input->begin, input->end - input->begin};
}

struct reading {
    const struct source *source;
    struct source_report *report;
    struct input *input;
    struct arena arena; /* of the object that is being read */
};

/* Decodes one object and passes it to the sinks. text: all but its path. */
int reading_take(struct reading *reading, struct source_text *text, struct error *err);

/* Appends more bytes to the window, with progress. 1: there may be more; 0: the end; negative: an
 * error (ERROR_TOO_BIG: an object does not fit the largest window). */
int reading_fill(struct reading *reading, struct error *err);

int source_read_yaml(struct reading *reading, struct error *err);

#endif
