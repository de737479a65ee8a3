#include "extender/report/sheet.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *const headings[] = {"CODE", "WHAT", NULL};

/* What is printed; static. */
static const char *print_of(const struct sheet *sheet, struct sheet_style style)
{
    static char text[4096];
    FILE *file = fmemopen(text, sizeof text, "w");

    cr_assert_not_null(file);
    cr_assert(sheet_print(sheet, &style, file));
    (void)fclose(file);
    return text;
}

static struct sheet sheet_of(const char *code, const char *what)
{
    const char *const texts[] = {code, what, NULL};
    struct sheet sheet = {0};

    cr_assert(sheet_add(&sheet, headings));
    cr_assert(sheet_add(&sheet, texts));
    return sheet;
}

Test(sheet, columns_are_as_wide_as_their_widest_cell)
{
    struct sheet sheet = sheet_of("CG102", "a rollout");

    cr_expect_str_eq(print_of(&sheet, (struct sheet_style){0}), "CODE   WHAT\nCG102  a rollout\n");
    sheet_dispose(&sheet);
}

static bool add_row(struct sheet *sheet, const void *context, size_t index)
{
    const char *const texts[] = {index == 1 ? "CG102" : "1", context, NULL};
    return sheet_add(sheet, index == 0 ? headings : texts);
}

static bool fail_at_row(struct sheet *sheet, const void *context, size_t index)
{
    return index != 2 && add_row(sheet, context, index);
}

Test(sheet, a_stream_of_rows_looks_the_same)
{
    const struct sheet_rows rows = {3, add_row, "one two three four five six"};
    const struct sheet_rows broken = {3, fail_at_row, ""};
    const struct sheet_style style = {.width = 31};
    char text[256] = "";
    FILE *file = fmemopen(text, sizeof text, "w");

    cr_assert_not_null(file);
    cr_expect(sheet_stream(&rows, &style, file));
    cr_expect_not(sheet_stream(&broken, &style, file), "no memory: nothing is printed");
    (void)fclose(file);
    cr_expect_str_eq(text, "CODE   WHAT\nCG102  one two three four five\n       six\n"
                           "1      one two three four five\n       six\n");
}

Test(sheet, a_character_of_two_bytes_takes_one_column)
{
    struct sheet sheet = sheet_of("Caf\xc3\xa9s", "a");

    cr_expect_str_eq(print_of(&sheet, (struct sheet_style){0}), "CODE   WHAT\nCaf\xc3\xa9s  a\n");
    sheet_dispose(&sheet);
}

Test(sheet, the_last_column_is_wrapped_at_the_width_of_a_terminal)
{
    struct sheet sheet = sheet_of("1", "one two three four five six");

    cr_expect_str_eq(print_of(&sheet, (struct sheet_style){.width = 30}),
                     "CODE  WHAT\n1     one two three four five\n      six\n");
    cr_expect_str_eq(print_of(&sheet, (struct sheet_style){.width = 29}),
                     "CODE  WHAT\n1     one two three four five six\n", "too narrow for it");
    cr_expect_str_eq(print_of(&sheet, (struct sheet_style){0}),
                     "CODE  WHAT\n1     one two three four five six\n", "no terminal");
    sheet_dispose(&sheet);
    sheet = sheet_of("1", "a-word-that-is-wider-than-its-column b");
    cr_expect_str_eq(print_of(&sheet, (struct sheet_style){.width = 30}),
                     "CODE  WHAT\n1     a-word-that-is-wider-than-its-column\n      b\n");
    sheet_dispose(&sheet);
}

Test(sheet, a_verdict_has_a_colour)
{
    struct sheet sheet = sheet_of("error", "x");

    cr_expect_str_eq(print_of(&sheet, (struct sheet_style){.has_colours = true}),
                     "CODE   WHAT\n\033[31merror\033[0m  x\n");
    sheet_dispose(&sheet);
}

Test(sheet, a_cell_does_not_write_to_the_terminal)
{
    struct sheet sheet = sheet_of("\033[31m", "a\nb");

    cr_expect_null(strchr(print_of(&sheet, (struct sheet_style){.has_colours = true}), '\033'));
    cr_expect_null(strstr(print_of(&sheet, (struct sheet_style){0}), "a\nb"));
    sheet_dispose(&sheet);
}

Test(sheet, an_empty_cell_of_a_row_is_a_dash)
{
    struct sheet sheet = {0};
    struct row row = {.count = 0};

    row_text(&row, SLICE("a"));
    row_text(&row, SLICE(""));
    cr_expect(row_end(&row, &sheet));
    cr_expect_str_eq(print_of(&sheet, (struct sheet_style){0}), "a  -\n");
    sheet_dispose(&sheet);
}

Test(sheet, a_row_without_memory_is_not_added)
{
    struct sheet sheet = {0};
    struct row row = {.count = 0};

    row_text(&row, SLICE("a"));
    row_cell(&row)->failed = true;
    cr_expect_not(row_end(&row, &sheet));
    cr_expect_eq(sheet.count, 0);
    sheet_dispose(&sheet);
}

Test(sheet, a_full_disk_is_an_error)
{
    struct sheet sheet = sheet_of("1", "x");
    FILE *full = fopen("/dev/full", "w");
    struct sheet_style style = {0};

    cr_assert_not_null(full);
    (void)setvbuf(full, NULL, _IONBF, 0);
    cr_expect_not(sheet_print(&sheet, &style, full));
    (void)fclose(full);
    sheet_dispose(&sheet);
}

static struct advice_list advise(struct arena *arena)
{
    const struct advice_words words = {.ns = SLICE("shop"), .name = SLICE("db-0")};
    struct advice_list advice = {.arena = arena};

    advice_list_add(&advice, "pod %s is deleted", "shop/db-0");
    advice_list_row(&advice, ADVICE_DELETE_POD, &words);
    advice_list_warn(&advice, "its data is lost");
    advice_list_add(&advice, "the same again");
    advice_list_row(&advice, ADVICE_DELETE_POD, &words);
    advice_list_warn(&advice, "which is left out");
    return advice;
}

Test(sheet, advice_has_its_command_and_what_that_stops)
{
    const struct sheet_style style = {.width = 0};
    struct arena arena;
    char text[1024] = "";
    FILE *file = fmemopen(text, sizeof text, "w");
    struct block block;

    cr_assert_not_null(file);
    arena_init(&arena, 1 << 20);
    const struct advice_list advice = advise(&arena);
    block_init(&block);
    buf_printf(&block.line, "claim shop/data");
    block_put_if(&block, ", volume ", SLICE("pv-1"));
    block_put_if(&block, ", left out ", SLICE(""));
    block_heading(&block);
    block_advice(&block, "  freed by", &advice);
    cr_expect(block_print(&block, &style, file));
    (void)fclose(file);
    arena_dispose(&arena);
    cr_expect_str_eq(text,
                     "claim shop/data, volume pv-1\n"
                     "  freed by  pod shop/db-0 is deleted:\n"
                     "            WARNING: no controller creates the pod again; its data is lost\n"
                     "              kubectl delete pod -n shop db-0\n"
                     "            To go back: create the pod again from its manifest\n");
}
