#include "config/base/file_mark.h"

#include <sys/stat.h>

struct file_mark file_mark(const char *path)
{
    struct stat status;

    if (path == NULL || stat(path, &status) != 0)
        return (struct file_mark){0};
    return (struct file_mark){status.st_dev, status.st_ino, status.st_size, status.st_mtim};
}

bool file_mark_equal(const struct file_mark *a, const struct file_mark *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->modified.tv_sec == b->modified.tv_sec && a->modified.tv_nsec == b->modified.tv_nsec;
}
