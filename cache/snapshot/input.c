#include "cache/snapshot/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int input_open(struct input *input, const char *path, struct error *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    struct stat status;

    *input = (struct input){.path = is_stdin ? "<stdin>" : path, .place = {1, 1}};
    input->fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (input->fd < 0)
        return error_system(err, errno, "%s", input->path);
    input->window = malloc(INPUT_WINDOW_BYTES);
    if (input->window == NULL) {
        (void)close(input->fd);
        return error_no_memory(err);
    }
    input->capacity = INPUT_WINDOW_BYTES;
    if (fstat(input->fd, &status) == 0 && S_ISREG(status.st_mode)) {
        input->bytes_total = (size_t)status.st_size;
        input->is_file = !is_stdin;
    }
    return 0;
}

void input_close(struct input *input)
{
    free(input->window);
    (void)close(input->fd); /* read only: nothing is lost */
}

/* Makes room after the bytes: moves them to the front, or enlarges the window. */
static int make_room(struct input *input, struct error *err)
{
    size_t kept = input->end - input->begin;

    if (input->begin != 0) {
        memmove(input->window, input->window + input->begin, kept);
        input->begin = 0;
        input->end = kept;
    }
    if (kept < input->capacity / 2)
        return 0;
    if (input->capacity >= INPUT_OBJECT_BYTES_MAX)
        return error_set(err, ERROR_TOO_BIG, "%s:%zu:%zu: one object is over %d MiB", input->path,
                         input->place.line, input->place.column, INPUT_OBJECT_BYTES_MAX >> 20);
    char *larger = realloc(input->window, input->capacity * 2);
    if (larger == NULL)
        return error_no_memory(err);
    input->window = larger;
    input->capacity *= 2;
    return 0;
}

int input_fill(struct input *input, struct error *err)
{
    ssize_t count;

    if (input->at_eof)
        return 0;
    if (make_room(input, err) < 0)
        return err->code;
    do
        count = read(input->fd, input->window + input->end, input->capacity - input->end);
    while (count < 0 && errno == EINTR);
    if (count < 0)
        return error_system(err, errno, "%s", input->path);
    input->at_eof = count == 0;
    input->end += (size_t)count;
    input->bytes_read += (size_t)count;
    return count > 0;
}

void input_consume(struct input *input, size_t count)
{
    const char *start = input->window + input->begin;

    input->place = place_of(start, start + count, input->place);
    input->begin += count;
}
