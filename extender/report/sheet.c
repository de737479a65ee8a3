#include "extender/report/sheet.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "config/base/printable.h"

enum { GAP = 2, WRAPPED_MIN = 24 /* columns; a last column with fewer is not wrapped */ };

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

bool sheet_add_owned(struct sheet *sheet, char *const *cells, size_t count)
{
    struct sheet_row *grown = realloc(sheet->rows, (sheet->count + 1) * sizeof *grown);
    bool is_complete = grown != NULL;

    for (size_t i = 0; i < count; i++)
        is_complete = is_complete && cells[i] != NULL;
    if (grown != NULL)
        sheet->rows = grown;
    if (!is_complete) {
        for (size_t i = 0; i < count; i++)
            free(cells[i]);
        return false;
    }
    grown[sheet->count] = (struct sheet_row){.cells = {NULL}};
    for (size_t i = 0; i < count; i++) {
        grown[sheet->count].cells[i] = cells[i];
        make_printable(cells[i]);
    }
    sheet->count++;
    return true;
}

bool sheet_add(struct sheet *sheet, const char *const *texts)
{
    char *cells[SHEET_COLUMNS_MAX];
    size_t count = 0;

    for (; count < SHEET_COLUMNS_MAX && texts[count] != NULL; count++)
        cells[count] = strdup(texts[count]);
    return sheet_add_owned(sheet, cells, count);
}

bool sheet_add_whole(struct sheet *sheet, const char *const *texts)
{
    bool ok = sheet_add(sheet, texts);

    if (ok)
        sheet->rows[sheet->count - 1].is_whole = true;
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

bool sheet_print(const struct sheet *sheet, const struct sheet_style *style, FILE *file)
{
    size_t widths[SHEET_COLUMNS_MAX] = {0};

    widen(widths, sheet);
    for (size_t r = 0; r < sheet->count && !ferror(file); r++)
        print_row(&sheet->rows[r], widths, style, file);
    return !ferror(file);
}

/* Makes the row, and prints it; or widens the columns for it. */
static bool stream_row(const struct sheet_rows *rows, size_t index,
                       size_t widths[static SHEET_COLUMNS_MAX], const struct sheet_style *style,
                       FILE *file)
{
    struct sheet sheet = {0};
    bool ok = rows->add(&sheet, rows->context, index);

    if (ok && file != NULL)
        print_row(&sheet.rows[0], widths, style, file);
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
        ok = stream_row(rows, i, widths, style, NULL);
    for (size_t i = 0; i < rows->count && ok; i++)
        ok = stream_row(rows, i, widths, style, file);
    return ok;
}
