/*
 * file: a small file that a user names: reads it, and detects that it has changed.
 *
 * Threads: any; file_read waits for FILE_READ_MS at most.
 */
#ifndef CONFIG_BASE_FILE_H
#define CONFIG_BASE_FILE_H

#include <sys/types.h>
#include <time.h>

#include "config/base/error.h"

enum { FILE_READ_MS = 2000 };

/* Reads the first bytes of the file, `size` at most, into text. It may be a FIFO, as `<(...)` of a
 * shell is; a FIFO without a writer is an empty file, and a silent writer is not waited for. */
int file_read(const char *path, char *text, size_t size, size_t *length, struct error *err);

/* Differs after the file was edited or replaced, also through a symbolic link, which is how the
 * kubelet updates mounted ConfigMaps and Secrets. */
struct file_mark {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified;
};

/* All zero if path is NULL, or if there is no such file. */
struct file_mark file_mark(const char *path);

bool file_mark_equal(const struct file_mark *a, const struct file_mark *b);

#endif
