/* The thread that writes the log, with and without a reader. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/base/clock.h"
#include "config/base/log.h"

enum { LINES = 4000, LINE_BYTES = 1000 };

static int reading_end;

/* stderr is a pipe from now on. */
static void replace_stderr(void)
{
    int ends[2];

    cr_assert(pipe2(ends, O_CLOEXEC) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    (void)close(ends[1]);
    reading_end = ends[0];
}

/* Fills the pipe with empty lines, so that the next write blocks. */
static void fill_stderr(void)
{
    char lines[4096];
    int flags = fcntl(STDERR_FILENO, F_GETFL);

    memset(lines, '\n', sizeof lines);
    (void)fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
    for (size_t size = sizeof lines; size != 0; size /= 2)
        while (write(STDERR_FILENO, lines, size) > 0)
            continue;
    (void)fcntl(STDERR_FILENO, F_SETFL, flags);
}

/* Lines with their numbers. */
static void log_lines(unsigned from, unsigned count)
{
    char text[LINE_BYTES], number[16];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (unsigned i = from; i < from + count; i++) {
        (void)snprintf(number, sizeof number, "%u", i);
        log_info("line", LOG_STR("number", number), LOG_STR("text", text));
    }
}

static double seconds_since(uint64_t start_ns)
{
    return (double)(monotonic_ns() - start_ns) / 1e9;
}

static char line[4 * LINE_BYTES];

/* Reads numbered lines, the first of which has the number *read, up to the line with the text, or
 * up to `most` lines. Returns the count that the last line names, or 0. */
static unsigned long read_until(FILE *file, const char *last, unsigned *read, unsigned most)
{
    while (*read < most && fgets(line, sizeof line, file) != NULL && strstr(line, last) == NULL) {
        const char *number = strstr(line, " number=");
        if (line[0] == '\n')
            continue;
        cr_assert_not_null(number, "%s", line);
        cr_expect_eq(strtoul(strchr(number, '=') + 1, NULL, 10), (*read)++);
    }
    const char *count = strstr(line, " count=");
    return count == NULL ? 0 : strtoul(strchr(count, '=') + 1, NULL, 10);
}

Test(log, lines_that_nobody_reads_are_dropped_and_counted, .timeout = 30)
{
    struct error err = {0};
    unsigned read = 0;

    replace_stderr();
    fill_stderr();
    cr_assert_eq(log_start(&err), 0);
    uint64_t start_ns = monotonic_ns();
    log_lines(0, LINES);
    cr_expect_lt(seconds_since(start_ns), 5);
    uint64_t dropped = log_dropped();
    cr_expect(dropped > 0 && dropped < LINES);
    unsigned long missing =
        read_until(fdopen(reading_end, "re"), "log lines were dropped", &read, LINES);
    cr_expect_eq(missing, dropped);
    cr_expect_eq(read + missing, LINES);
    log_stop();
}

Test(log, dropped_lines_are_reported_at_their_place, .timeout = 30)
{
    struct error err = {0};
    unsigned read = 0;
    uint64_t before;

    replace_stderr();
    FILE *file = fdopen(reading_end, "re");
    fill_stderr();
    cr_assert_eq(log_start(&err), 0);
    log_lines(0, LINES);
    (void)read_until(file, "nothing", &read, 200);
    do { /* until there is room again */
        before = log_dropped();
        log_info("behind the gap", LOG_NONE);
    } while (log_dropped() != before);
    cr_expect_eq(read_until(file, "log lines were dropped", &read, LINES), before);
    cr_assert_not_null(fgets(line, sizeof line, file));
    cr_expect_not_null(strstr(line, "behind the gap"), "%s", line);
    log_stop();
}

Test(log, lines_are_written_in_order, .timeout = 30)
{
    struct error err = {0};
    unsigned read = 0;

    replace_stderr();
    (void)fcntl(reading_end, F_SETPIPE_SZ, 1 << 20);
    cr_assert_eq(log_start(&err), 0);
    log_lines(0, 500);
    log_info("the last", LOG_NONE);
    log_stop();
    cr_expect_eq(read_until(fdopen(reading_end, "re"), "the last", &read, LINES), 0);
    cr_expect_eq(read, 500);
    cr_expect_eq(log_dropped(), 0);
}

Test(log, log_stop_does_not_wait_for_a_reader, .timeout = 30)
{
    struct error err = {0};

    replace_stderr();
    cr_assert_eq(log_start(&err), 0);
    log_lines(0, LINES);
    uint64_t start_ns = monotonic_ns();
    log_stop();
    cr_expect_lt(seconds_since(start_ns), 5);
    cr_expect_gt(log_dropped(), 0);
}

Test(log, a_reader_that_closes_the_pipe_delays_no_thread, .timeout = 30)
{
    struct error err = {0};

    (void)signal(SIGPIPE, SIG_IGN);
    replace_stderr();
    (void)close(reading_end);
    cr_assert_eq(log_start(&err), 0);
    log_lines(0, 10);
    log_stop();
    cr_expect_eq(log_dropped(), 10);
}
