/*
 * sheet: rows of text in aligned columns, for people.
 *
 *     static const char *const headings[] = {"CODE", "WHERE", "WHAT", NULL};
 *     const char *const texts[] = {"CG102", "shop/web", "the rollout cannot end", NULL};
 *     struct sheet sheet = {0};
 *     struct sheet_style style = sheet_style(stdout);
 *     bool ok = sheet_add(&sheet, headings) && sheet_add(&sheet, texts) &&
 *               sheet_print(&sheet, &style, stdout);
 *     sheet_dispose(&sheet);
 *
 * On a terminal, the last column is wrapped at its width, and cells that are one of some words have
 * colours: what is good ("Success"), bad ("error", "Unschedulable"), or between ("warning").
 * Elsewhere a row is a line, for grep. Control characters are replaced: objects of a cluster must
 * not write to the terminal.
 *
 * Threads: one for each sheet.
 */
#ifndef EXTENDER_REPORT_SHEET_H
#define EXTENDER_REPORT_SHEET_H

#include <stdbool.h>
#include <stdio.h>

enum { SHEET_COLUMNS_MAX = 8 };

struct sheet_row {
    char *cells[SHEET_COLUMNS_MAX]; /* up to a NULL; owned */
    bool is_whole;                  /* not wrapped: to be copied and pasted */
};

/* All zero: empty. */
struct sheet {
    struct sheet_row *rows; /* the first is the heading */
    size_t count;
};

struct sheet_style {
    size_t width; /* of the terminal; 0: a row is a line */
    bool has_colours;
};

/* As for a person who reads the file: its width if it is a terminal, and colours unless NO_COLOR is
 * set (https://no-color.org) or TERM is dumb. */
struct sheet_style sheet_style(FILE *file);

/* Adds a row with copies of the texts, which end with NULL. False without memory. */
bool sheet_add(struct sheet *sheet, const char *const *texts);

/* The same; the row is never wrapped. */
bool sheet_add_whole(struct sheet *sheet, const char *const *texts);

/* As sheet_add; the row takes over the cells, and frees them also if it returns false. False, too,
 * if a cell before `count` is NULL: there was no memory for it. */
bool sheet_add_owned(struct sheet *sheet, char *const *cells, size_t count);

/* False if something could not be written. */
bool sheet_print(const struct sheet *sheet, const struct sheet_style *style, FILE *file);

void sheet_dispose(struct sheet *sheet);

/* Rows of a long sheet: add puts the index-th one, and no other, into a sheet. False: no memory. */
struct sheet_rows {
    size_t count; /* with the heading */
    bool (*add)(struct sheet *sheet, const void *context, size_t index);
    const void *context;
};

/* Prints them as sheet_print does, with the memory of one row: each is made twice, since the widths
 * come first. False without memory, or if something could not be written. */
bool sheet_stream(const struct sheet_rows *rows, const struct sheet_style *style, FILE *file);

/* Prints words from column `from` on, where the line has come to; a line ends before column
 * `width`, and the next one begins at `from`. */
void print_wrapped(const char *words, size_t from, size_t width, FILE *file);

#endif
