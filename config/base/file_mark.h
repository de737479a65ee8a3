/*
 * file_mark: detects that a file was edited or replaced, also through a symbolic link, which is how
 * the kubelet updates mounted ConfigMaps and Secrets.
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

/* All zero if path is NULL, or if there is no such file. */
struct file_mark file_mark(const char *path);

bool file_mark_equal(const struct file_mark *a, const struct file_mark *b);

#endif
