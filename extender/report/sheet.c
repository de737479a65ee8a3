#include "extender/report/sheet.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "config/base/text.h"

enum {
    GAP = 2,
    WRAPPED_MIN = 24, /* columns; a last column with fewer is not wrapped */
    CELL_BYTES_MAX = 16 << 20,
    LINE_BYTES_MAX = 1 << 20,
};

struct sheet_style sheet_style(FILE *file)
{
    struct winsize size = {0};
    const char *no_colour = getenv("NO_COLOR"); /* NOLINT(concurrency-mt-unsafe) */
    const char *term = getenv("TERM");          /* NOLINT(concurrency-mt-unsafe) */
    bool is_terminal = isatty(fileno(file)) != 0;

    if (!is_terminal)
        return (struct sheet_style){0, false};
    (void)ioctl(fileno(file), TIOCGWINSZ, &size);
    return (struct sheet_style){
        .width = size.ws_col,
        .has_colours =
            (no_colour == NULL || *no_colour == '\0') && term != NULL && strcmp(term, "dumb") != 0,
    };
}

/* ---- rows ---- */

/* is_whole: as in struct sheet_row. */
static bool add(struct sheet *sheet, const char *const *texts, bool is_whole)
{
    struct sheet_row *grown = realloc(sheet->rows, (sheet->count + 1) * sizeof *grown);
    struct sheet_row row = {.is_whole = is_whole};
    bool ok = grown != NULL;

    if (grown != NULL)
        sheet->rows = grown;
    for (size_t i = 0; ok && i < SHEET_COLUMNS_MAX && texts[i] != NULL; i++) {
        row.cells[i] = strdup(texts[i]);
        ok = row.cells[i] != NULL;
        if (ok)
            make_printable(row.cells[i]);
    }
    if (ok)
        grown[sheet->count++] = row;
    for (size_t i = 0; !ok && i < SHEET_COLUMNS_MAX; i++)
        free(row.cells[i]);
    return ok;
}

bool sheet_add(struct sheet *sheet, const char *const *texts)
{
    return add(sheet, texts, false);
}

struct buf *row_cell(struct row *row)
{
    struct buf *cell = &row->cells[row->count++];

    buf_init(cell, CELL_BYTES_MAX);
    return cell;
}

void row_text(struct row *row, struct slice text)
{
    buf_put(row_cell(row), text);
}

bool row_end(struct row *row, struct sheet *sheet)
{
    const char *texts[SHEET_COLUMNS_MAX + 1] = {NULL};
    bool ok = true;

    for (size_t i = 0; i < row->count; i++) {
        buf_put(&row->cells[i], row->cells[i].len == 0 ? SLICE("-") : SLICE(""));
        texts[i] = buf_text(&row->cells[i]);
        ok = ok && texts[i] != NULL;
    }
    ok = ok && sheet_add(sheet, texts);
    for (size_t i = 0; i < row->count; i++)
        buf_dispose(&row->cells[i]);
    return ok;
}

void sheet_dispose(struct sheet *sheet)
{
    for (size_t r = 0; r < sheet->count; r++)
        for (size_t c = 0; c < SHEET_COLUMNS_MAX; c++)
            free(sheet->rows[r].cells[c]);
    free(sheet->rows);
    *sheet = (struct sheet){NULL, 0};
}

/* ---- printing ---- */

/* The escape sequence of a cell's colour, or "". */
static const char *colour_of(const char *cell)
{
    static const struct {
        const char *word, *colour;
    } colours[] = {
        {"Success", "\033[32m"},       {"warning", "\033[33m"},
        {"error", "\033[31m"},         {"Error", "\033[31m"},
        {"Unschedulable", "\033[31m"}, {"UnschedulableAndUnresolvable", "\033[31m"},
    };

    for (size_t i = 0; i < sizeof colours / sizeof *colours; i++)
        if (strcmp(cell, colours[i].word) == 0)
            return colours[i].colour;
    return "";
}

/* Characters, not bytes: what continues a character of UTF-8 takes no column. */
static size_t columns_of(const char *text)
{
    size_t columns = 0;

    for (; *text != '\0'; text++)
        columns += ((unsigned char)*text & 0xc0) != 0x80;
    return columns;
}

void print_wrapped(const char *words, size_t from, size_t width, FILE *file)
{
    size_t column = from;

    for (size_t len; *words != '\0'; words += len + (words[len] == ' ')) {
        len = strcspn(words, " ");
        if (column != from && column + 1 + len > width) {
            (void)fprintf(file, "\n%*s", (int)from, "");
            column = from;
        } else if (column != from) {
            (void)fputc(' ', file);
            column++;
        }
        (void)fprintf(file, "%.*s", (int)len, words);
        column += len;
    }
}

static void print_row(const struct sheet_row *row, const size_t *widths,
                      const struct sheet_style *style, FILE *file)
{
    size_t from = 0;

    for (size_t c = 0; c < SHEET_COLUMNS_MAX && row->cells[c] != NULL; c++) {
        const char *cell = row->cells[c], *colour = style->has_colours ? colour_of(cell) : "";
        bool is_last = c + 1 == SHEET_COLUMNS_MAX || row->cells[c + 1] == NULL;
        (void)fputs(colour, file);
        if (is_last && !row->is_whole && style->width >= from + WRAPPED_MIN)
            print_wrapped(cell, from, style->width, file);
        else
            (void)fputs(cell, file);
        (void)fputs(*colour == '\0' ? "" : "\033[0m", file);
        if (!is_last)
            (void)fprintf(file, "%*s", (int)(widths[c] - columns_of(cell) + GAP), "");
        from += widths[c] + GAP;
    }
    (void)fputc('\n', file);
}

/* The columns become as wide as the cells of the sheet. */
static void widen(size_t widths[static SHEET_COLUMNS_MAX], const struct sheet *sheet)
{
    for (size_t r = 0; r < sheet->count; r++)
        for (size_t c = 0; c < SHEET_COLUMNS_MAX && sheet->rows[r].cells[c] != NULL; c++) {
            size_t columns = columns_of(sheet->rows[r].cells[c]);
            widths[c] = columns > widths[c] ? columns : widths[c];
        }
}

static void print_rows(const struct sheet *sheet, const size_t *widths,
                       const struct sheet_style *style, FILE *file)
{
    for (size_t r = 0; r < sheet->count && !ferror(file); r++)
        print_row(&sheet->rows[r], widths, style, file);
}

bool sheet_print(const struct sheet *sheet, const struct sheet_style *style, FILE *file)
{
    size_t widths[SHEET_COLUMNS_MAX] = {0};

    widen(widths, sheet);
    print_rows(sheet, widths, style, file);
    return !ferror(file);
}

/* Makes the rows of an item, and prints them; or widens the columns for them. */
static bool stream_item(const struct sheet_rows *rows, size_t index,
                        size_t widths[static SHEET_COLUMNS_MAX], const struct sheet_style *style,
                        FILE *file)
{
    struct sheet sheet = {0};
    bool ok = rows->add(&sheet, rows->context, index);

    if (ok && file != NULL)
        print_rows(&sheet, widths, style, file);
    else if (ok)
        widen(widths, &sheet);
    sheet_dispose(&sheet);
    return ok && (file == NULL || !ferror(file));
}

bool sheet_stream(const struct sheet_rows *rows, const struct sheet_style *style, FILE *file)
{
    size_t widths[SHEET_COLUMNS_MAX] = {0};
    bool ok = true;

    for (size_t i = 0; i < rows->count && ok; i++)
        ok = stream_item(rows, i, widths, style, NULL);
    for (size_t i = 0; i < rows->count && ok; i++)
        ok = stream_item(rows, i, widths, style, file);
    return ok;
}

/* ---- blocks ---- */

void block_init(struct block *block)
{
    *block = (struct block){.has_failed = false};
    buf_init(&block->line, LINE_BYTES_MAX);
}

void block_put_if(struct block *block, const char *before, struct slice text)
{
    if (text.len == 0)
        return;
    buf_put(&block->line, slice_of(before));
    buf_put(&block->line, text);
}

/* Adds what was put as the last of the cells. label: NULL: it is the only one. */
static void end_row(struct block *block, struct sheet *sheet, const char *label, bool is_whole)
{
    const char *text = buf_text(&block->line);
    const char *const texts[] = {label == NULL ? text : label, label == NULL ? NULL : text, NULL};

    block->has_failed = block->has_failed || text == NULL || !add(sheet, texts, is_whole);
    buf_reset(&block->line, LINE_BYTES_MAX);
}

void block_heading(struct block *block)
{
    end_row(block, &block->heading, NULL, false);
}

void block_row(struct block *block, const char *label)
{
    end_row(block, &block->rows, label, false);
}

/* A command, which is copied and pasted. */
static void put_command(struct block *block, struct slice command)
{
    buf_printf(&block->line, "  %.*s", SLICE_ARG(command));
    end_row(block, &block->rows, " ", true);
}

/* before: the piece above; NULL: none. A warning stands once. */
static void put_piece(struct block *block, const char *label, const struct advice_piece *piece,
                      const struct advice_piece *before)
{
    bool has_command = piece->command.len != 0, has_undo = has_command && piece->undo.len != 0;

    buf_printf(&block->line, "%.*s%s", SLICE_ARG(piece->text), has_command ? ":" : "");
    block_row(block, label);
    if (piece->warning.len != 0 &&
        (before == NULL || !slice_equal(piece->warning, before->warning))) {
        buf_printf(&block->line, "WARNING: %.*s", SLICE_ARG(piece->warning));
        block_row(block, " ");
    }
    if (!has_command)
        return;
    put_command(block, piece->command);
    if (piece->back.len != 0) {
        buf_printf(&block->line, "To go back: %.*s%s", SLICE_ARG(piece->back), has_undo ? ":" : "");
        block_row(block, " ");
    }
    if (has_undo)
        put_command(block, piece->undo);
}

void block_advice(struct block *block, const char *label, const struct advice_list *advice)
{
    for (size_t i = 0; i < advice->count; i++)
        put_piece(block, i == 0 ? label : " ", &advice->items[i],
                  i == 0 ? NULL : &advice->items[i - 1]);
    block->has_failed = block->has_failed || advice->has_failed;
}

bool block_print(struct block *block, const struct sheet_style *style, FILE *file)
{
    bool ok = !block->has_failed && sheet_print(&block->heading, style, file) &&
              sheet_print(&block->rows, style, file);

    sheet_dispose(&block->heading);
    sheet_dispose(&block->rows);
    buf_dispose(&block->line);
    return ok;
}
