/* The table of advice, and docs/advice.md, which is the same table. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/report/advice_rows.h"

static char *read_page(void)
{
    FILE *file = fopen(SOURCE_DIR "/docs/advice.md", "r");
    char *text = calloc(1, 1 << 20);

    cr_assert(file != NULL && text != NULL);
    cr_assert(fread(text, 1, (1 << 20) - 1, file) > 0);
    cr_assert_eq(fclose(file), 0);
    return text;
}

/* A cell of a Markdown table. */
static void put_cell(struct buf *line, const char *text, bool is_command)
{
    if (text == NULL)
        buf_printf(line, " |");
    else
        buf_printf(line, is_command ? " `%s` |" : " %s |", text);
}

static void put_row(struct buf *line, const struct advice_texts *texts)
{
    buf_put(line, SLICE("|"));
    put_cell(line, texts->name, true);
    put_cell(line, texts->needs, false);
    put_cell(line, texts->command, true);
    if (texts->stops != NULL || texts->back != NULL || texts->undo != NULL) {
        put_cell(line, texts->stops, false);
        put_cell(line, texts->back, false);
        put_cell(line, texts->undo, true);
    }
    buf_put(line, SLICE("\n"));
}

Test(advice, the_page_has_each_row_as_it_is)
{
    char *page = read_page();
    size_t missing = 0;

    for (int row = ADVICE_NONE + 1; row < ADVICE_ROW_COUNT; row++) {
        struct buf line;
        buf_init(&line, 1 << 16);
        put_row(&line, advice_texts((enum advice_row)row));
        if (strstr(page, buf_text(&line)) == NULL) {
            (void)fprintf(stderr, "docs/advice.md lacks: %s", buf_text(&line));
            missing++;
        }
        buf_dispose(&line);
    }
    free(page);
    cr_assert_eq(missing, 0);
}

Test(advice, a_row_with_a_hole_that_no_word_fills_gives_no_command)
{
    struct buf out;

    buf_init(&out, 1024);
    cr_assert_not(advice_command_text(&out, ADVICE_DELETE_POD,
                                      &(const struct advice_words){
                                          .ns = SLICE("shop"),
                                      }));
    buf_dispose(&out);
}

Test(advice, each_row_says_what_it_needs_and_each_command_that_stops_something_how_to_go_back)
{
    for (int row = ADVICE_NONE + 1; row < ADVICE_ROW_COUNT; row++) {
        const struct advice_texts *texts = advice_texts((enum advice_row)row);
        cr_assert(texts->name != NULL && texts->needs != NULL && texts->command != NULL);
        cr_assert(texts->undo == NULL || texts->back != NULL, "%s", texts->name);
    }
}
