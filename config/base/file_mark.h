/*
 * file_mark: tells that a file has changed: edited, replaced, or behind another symbolic link, as
 * mounted ConfigMaps and Secrets swap them.
 */
#ifndef CONFIG_BASE_FILE_MARK_H
#define CONFIG_BASE_FILE_MARK_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

struct file_mark {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified;
};

/* path: NULL, or of no file: all zero. */
struct file_mark file_mark(const char *path);

bool file_mark_equal(const struct file_mark *a, const struct file_mark *b);

#endif
