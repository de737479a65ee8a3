/*
 * sheet: text for people: rows in aligned columns; and blocks, which answer about one thing: a
 * heading, and below it rows of a label and what is behind it.
 *
 *     static const char *const headings[] = {"CODE", "WHERE", "WHAT", NULL};
 *     const char *const texts[] = {"CG102", "shop/web", "the rollout cannot end", NULL};
 *     struct sheet sheet = {0};
 *     struct sheet_style style = sheet_style(stdout);
 *     bool ok = sheet_add(&sheet, headings) && sheet_add(&sheet, texts) &&
 *               sheet_print(&sheet, &style, stdout);
 *     sheet_dispose(&sheet);
 *
 *     extern const struct advice_list *advice;
 *     const struct sheet_style plain = {.width = 0};
 *     struct block block;
 *     block_init(&block);
 *     buf_printf(&block.line, "claim %s", "shop/data");
 *     block_heading(&block);
 *     buf_printf(&block.line, "pod %s", "db-0");
 *     block_put_if(&block, " on ", SLICE("node-1"));
 *     block_row(&block, "  held by");
 *     block_advice(&block, "  freed by", advice);
 *     bool is_printed = block_print(&block, &plain, stdout);
 *
 * On a terminal, the last column is wrapped at its width, and cells that are one of some words have
 * colours: what is good ("Success"), bad ("error", "Unschedulable"), or between ("warning").
 * Elsewhere a row is a line, for grep. Control characters are replaced: objects of a cluster must
 * not write to the terminal.
 *
 * Errors of a block are remembered, and returned by block_print. Threads: one for each sheet.
 */
#ifndef EXTENDER_REPORT_SHEET_H
#define EXTENDER_REPORT_SHEET_H

#include <stdio.h>

#include "extender/report/advice_rows.h"

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

/* A row that is made cell by cell. All zero: it has none yet. */
struct row {
    struct buf cells[SHEET_COLUMNS_MAX];
    size_t count;
};

/* The next cell, which is empty; or is that text. Ownership: row_end. */
struct buf *row_cell(struct row *row);
void row_text(struct row *row, struct slice text);

/* Adds the row, with "-" for each empty cell, and frees it. False without memory. */
bool row_end(struct row *row, struct sheet *sheet);

/* False if something could not be written. */
bool sheet_print(const struct sheet *sheet, const struct sheet_style *style, FILE *file);

void sheet_dispose(struct sheet *sheet);

/* Items of a long sheet: add puts the rows of the index-th one, and no others, into a sheet. False:
 * no memory. */
struct sheet_rows {
    size_t count; /* of items; the heading is one */
    bool (*add)(struct sheet *sheet, const void *context, size_t index);
    const void *context;
};

/* Prints them as sheet_print does, with the memory of one item: each is made twice, since the
 * widths come first. False without memory, or if something could not be written. */
bool sheet_stream(const struct sheet_rows *rows, const struct sheet_style *style, FILE *file);

/* Prints words from column `from` on, where the line has come to; a line ends before column
 * `width`, and the next one begins at `from`. */
void print_wrapped(const char *words, size_t from, size_t width, FILE *file);

/* ---- blocks ---- */

struct block {
    struct sheet heading, rows;
    struct buf line; /* of the row that is being made */
    bool has_failed;
};

/* Ownership: block_print. */
void block_init(struct block *block);

/* Adds both to the row that is being made, unless the text is empty. */
void block_put_if(struct block *block, const char *before, struct slice text);

/* What was put is the heading; or a row of that label. */
void block_heading(struct block *block);
void block_row(struct block *block, const char *label);

/* Rows for each piece: what to do, a warning of what that stops or destroys, the command, and how
 * to go back. Commands are never wrapped. The label is of the first one. */
void block_advice(struct block *block, const char *label, const struct advice_list *advice);

/* Prints the block, and frees it. False if something could not be made or written. */
bool block_print(struct block *block, const struct sheet_style *style, FILE *file);

#endif
