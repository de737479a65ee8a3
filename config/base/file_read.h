/*
 * file_read: reads a small file that a user names. It may be a FIFO, as `<(...)` of a shell is; a
 * FIFO without a writer is an empty file, and a silent writer is not waited for.
 *
 * Threads: any; it waits for FILE_READ_MS at most.
 */
#ifndef CONFIG_BASE_FILE_READ_H
#define CONFIG_BASE_FILE_READ_H

#include <stddef.h>

#include "config/base/error.h"

enum { FILE_READ_MS = 2000 };

/* Reads the first bytes of the file, `size` at most, into text. */
int file_read(const char *path, char *text, size_t size, size_t *length, struct error *err);

#endif
