#include "config/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/base/clock.h"

/* Waits until there is something to read, or the end. */
static int await_bytes(int fd, const char *path, uint64_t deadline_ns, struct error *err)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    if (poll(&ready, 1, (int)ms_until(deadline_ns)) != 0)
        return 0;
    return error_set(err, ERROR_TIMEOUT, "%s: nothing to read for %d s", path, FILE_READ_MS / 1000);
}

int file_read(const char *path, char *text, size_t size, size_t *length, struct error *err)
{
    uint64_t deadline_ns = monotonic_ns() + FILE_READ_MS * NS_PER_MS;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t count = 1;
    int rc = 0;

    *length = 0;
    if (fd < 0)
        return error_system(err, errno, "%s", path);
    while (rc == 0 && count != 0 && *length < size) {
        count = read(fd, text + *length, size - *length);
        if (count > 0)
            *length += (size_t)count;
        else if (count < 0 && errno == EAGAIN)
            rc = await_bytes(fd, path, deadline_ns, err);
        else if (count < 0 && errno != EINTR)
            rc = error_system(err, errno, "%s", path);
    }
    (void)close(fd); /* only read, so nothing is lost */
    return rc;
}

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
