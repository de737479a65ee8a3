#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/base/arena.h"
#include "config/base/buf.h"
#include "config/base/clock.h"
#include "config/base/error.h"
#include "config/base/file.h"
#include "config/base/quota.h"
#include "config/base/text.h"

Test(quota, who_takes_much_leaves_the_reserve_to_who_takes_little)
{
    struct quota quota = {.max_bytes = 1000, .small_bytes = 100, .reserve_bytes = 500};
    struct quota_share large = {.quota = &quota}, small = {.quota = &quota};

    cr_expect(quota_take(&large, 500));
    cr_expect(!quota_take(&large, 1));
    cr_expect(large.was_refused);
    cr_expect(quota_take(&small, 60));
    cr_expect(!quota_take(&small, 41), "it would take much");
    cr_expect(quota_take(&small, 40));
    quota_give(&large, 200);
    cr_expect(quota_take(&small, 41));
    quota_give(&small, 141);
    cr_expect(quota_take(&small, 100));
    quota_give(&small, 100);
    quota_give(&large, 300);
    cr_expect_eq(atomic_load(&quota.used_bytes), 0);
}

Test(buf, refuses_to_grow_over_its_maximum)
{
    struct buf buf;

    buf_init(&buf, 10);
    buf_put(&buf, SLICE("12345"));
    cr_expect(!buf.failed);
    buf_put(&buf, SLICE("678901"));
    cr_expect(buf.failed);
    cr_expect_eq(buf.len, 5);
    buf_put(&buf, SLICE("6")); /* would fit, but the text would have a hole */
    cr_expect_eq(buf.len, 5);
    buf_reset(&buf, 0);
    cr_expect(!buf.failed);
    buf_dispose(&buf);
}

Test(buf, escapes_json)
{
    struct buf buf;

    buf_init(&buf, 1000);
    buf_json(&buf, SLICE("a\"b\\c\nx\tz\x01 \xc3\xa9"));
    cr_expect(slice_equal(buf_slice(&buf), SLICE("\"a\\\"b\\\\c\\nx\\tz\\u0001 \xc3\xa9\"")));
    buf_dispose(&buf);
}

/* Each byte at each place of a text of each length: plain text is copied eight bytes at a time. */
Test(buf, escapes_a_byte_wherever_it_stands)
{
    char text[20], want[200];

    for (size_t length = 1; length < sizeof text; length++)
        for (size_t at = 0; at < length; at++)
            for (unsigned c = 0; c < 256; c++) {
                struct buf buf;
                memset(text, 'a', length);
                text[at] = (char)c;
                buf_init(&buf, 1000);
                buf_json(&buf, (struct slice){text, length});
                bool is_odd = c < 0x20 || c == '"' || c == '\\' || c > 0x7f;
                bool is_short = c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t';
                size_t added = !is_odd ? 0 : is_short ? 1 : 5;
                cr_assert_eq(buf.len, length + 2 + added, "byte %u at %zu of %zu", c, at, length);
                (void)snprintf(want, sizeof want, "\"%.*s\"", (int)length, text);
                cr_assert(is_odd || slice_equal(buf_slice(&buf), slice_of(want)));
                buf_dispose(&buf);
            }
}

Test(buf, replaces_what_is_not_utf8)
{
    struct buf buf;

    buf_init(&buf, 1000);
    buf_json(&buf, SLICE("a\xff z\xc3\xa9\xed\xa0\x80 cut\xe2\x82"));
    cr_expect(
        slice_equal(buf_slice(&buf), SLICE("\"a\\ufffd z\xc3\xa9\\ufffd\\ufffd\\ufffd cut\\ufffd"
                                           "\\ufffd\"")),
        "%.*s", (int)buf.len, buf.bytes);
    buf_dispose(&buf);
}

Test(arena, hands_out_no_more_than_its_cap)
{
    struct arena arena;

    arena_init(&arena, 100000);
    cr_expect_not_null(arena_alloc(&arena, 50000));
    cr_expect_null(arena_alloc(&arena, 60000));
    cr_expect_null(arena_alloc(&arena, SIZE_MAX));
    arena_reset(&arena);
    cr_expect_not_null(arena_alloc(&arena, 60000));
    arena_dispose(&arena);
}

Test(arena, grows_arrays_at_powers_of_two)
{
    struct arena arena;
    int *numbers = NULL;

    arena_init(&arena, 1 << 20);
    for (int i = 0; i < 1000; i++) {
        numbers = arena_grow(&arena, numbers, (size_t)i, sizeof *numbers);
        cr_assert_not_null(numbers);
        numbers[i] = i;
    }
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(numbers[i], i);
    cr_expect_null(arena_grow(&arena, numbers, SIZE_MAX / 2 + 1, sizeof *numbers));
    arena_dispose(&arena);
}

Test(arena, appends_in_place_and_by_doubling)
{
    struct arena arena;
    struct slice text = {NULL, 0};
    char want[3001] = "";

    arena_init(&arena, 1 << 16);
    for (int i = 0; i < 300; i++) {
        cr_assert(arena_append(&arena, &text, SLICE("0123456789")));
        memcpy(want + 10 * i, "0123456789", 11);
    }
    cr_expect(slice_equal(text, slice_of(want)));
    cr_expect_lt(arena.used_bytes, 10000);
    arena_dispose(&arena);
}

Test(error, wraps_with_context_and_cuts_what_is_too_long)
{
    struct error err = {0};
    char long_text[2 * ERROR_MESSAGE_BYTES];

    cr_expect_eq(error_set(&err, ERROR_INVALID, "port: %s", "not a number"), ERROR_INVALID);
    cr_expect_eq(error_wrap(&err, "config.yaml:%d:%d", 12, 7), ERROR_INVALID);
    cr_expect_str_eq(err.message, "config.yaml:12:7: port: not a number");
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    error_wrap(&err, "%s", long_text);
    cr_expect_eq(strlen(err.message), ERROR_MESSAGE_BYTES - 1);
}

Test(slice, folds_the_case_of_ascii_letters_only)
{
    cr_expect(slice_equal_fold(SLICE("NodeNames"), SLICE("nodenames")));
    cr_expect(!slice_equal_fold(SLICE("a@"), SLICE("a`")));
    cr_expect(!slice_equal_fold(SLICE("a["), SLICE("a{")));
    cr_expect(!slice_equal_fold(SLICE("ab"), SLICE("abc")));
}

Test(time, times_are_rfc_3339)
{
    cr_expect_eq(time_parse(SLICE("1970-01-02T00:00:00Z")), INT64_C(86400000));
    cr_expect_eq(time_parse(SLICE("1970-01-02T00:00:00.999999Z")), INT64_C(86400000));
    cr_expect_eq(time_parse(SLICE("1970-01-02T02:00:00+02:00")), INT64_C(86400000));
    cr_expect_eq(time_parse(SLICE("1970-01-01T18:30:00.5-05:30")), INT64_C(86400000));
    cr_expect_eq(time_parse(SLICE("1970-01-02T00:00:00+0100")), 0);
    cr_expect_eq(time_parse(SLICE("1970-01-02T00:00:00+01:60")), 0);
    cr_expect_eq(time_parse(SLICE("1970-01-02T00:00:00+24:00")), 0);
    cr_expect_eq(time_parse(SLICE("1970-01-02T00:00:00")), 0);
    cr_expect_eq(time_parse(SLICE("1970-01-02")), 0);
    cr_expect_eq(time_parse(SLICE("")), 0);
}

/* What is read of a FIFO whose writer, if there is one, writes the text and stays. */
static int read_fifo(const char *text, char *out, size_t size, size_t *length, struct error *err)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/tmp/fifo-%d", (int)getpid());
    cr_assert_eq(mkfifo(path, 0600), 0);
    int writer = text == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (text != NULL)
        cr_assert_eq(write(writer, text, strlen(text)), (ssize_t)strlen(text));
    int rc = file_read(path, out, size, length, err);
    if (writer >= 0)
        (void)close(writer);
    (void)unlink(path);
    return rc;
}

Test(file_read, a_fifo_does_not_block, .timeout = 20)
{
    uint64_t begun = monotonic_ns();
    struct error err = {0};
    char text[8];
    size_t length = 1;

    cr_expect_eq(read_fifo(NULL, text, sizeof text, &length, &err), 0);
    cr_expect_eq(length, 0, "nobody writes");
    cr_expect_eq(read_fifo("12345678", text, sizeof text, &length, &err), 0);
    cr_expect_eq(length, 8, "no more is read than there is room for");
    cr_expect_eq(read_fifo("1", text, sizeof text, &length, &err), ERROR_TIMEOUT);
    cr_expect_not_null(strstr(err.message, ": nothing to read for 2 s"), "%s", err.message);
    cr_expect_lt(monotonic_ns() - begun, 5000 * NS_PER_MS);
}

/* Who names an object must not be able to move the cursor, or to turn the line around. */
Test(printable, control_characters_are_replaced_byte_by_byte)
{
    char text[] = "a\x1b[31m\n\xc2\x9b\xe2\x80\xaegpj\xe2\x81\xa6\xe2\x80\x8e\xd8\x9c"
                  "b\xc3\xa9\xe2\x80\xa6\xe2\x82\xac";

    make_printable(text);
    cr_expect_str_eq(text, "a?[31m "
                           "??"
                           "???"
                           "gpj"
                           "???"
                           "???"
                           "??"
                           "b\xc3\xa9\xe2\x80\xa6\xe2\x82\xac");
    char cut[] = "\xe2\x80";
    make_printable(cut);
    cr_expect_str_eq(cut, "\xe2\x80");
}

Test(error, is_not_cut_inside_a_character)
{
    char long_text[ERROR_MESSAGE_BYTES + 8];
    struct error err;

    for (size_t before = 0; before < 4; before++) {
        memset(long_text, 'a', sizeof long_text);
        memcpy(long_text + ERROR_MESSAGE_BYTES - 4 + before, "\xe2\x82\xac", 4);
        (void)error_set(&err, ERROR_INVALID, "%s", long_text);
        size_t len = strlen(err.message);
        cr_expect_eq(len, before == 0 ? ERROR_MESSAGE_BYTES - 1 : ERROR_MESSAGE_BYTES - 4 + before);
        cr_expect((unsigned char)err.message[len - 1] < 0x80 || before == 0);
    }
}
