/*
 * fields: writes an answer as JSON or YAML, field by field, as it is read out of a command's own
 * structs. No tree of values is built, so a list of 100,000 items needs no memory.
 *
 *     struct fields out;
 *     fields_begin(&out, OUTPUT_YAML, stdout);
 *     fields_open(&out, NULL, '{');
 *     fields_text(&out, "name", name);
 *     fields_open(&out, "claims", '[');
 *     fields_text(&out, NULL, SLICE("data"));
 *     fields_close(&out);
 *     fields_close(&out);
 *     bool ok = fields_end(&out);
 *
 * A key is NULL in a list, and for the answer itself. Bytes of a text that are not UTF-8 become
 * U+FFFD. JSON has the form of jansson: JSON_INDENT(2) in a file, JSON_COMPACT in a buffer.
 *
 * Errors: remembered, and returned by fields_end. Threads: one.
 */
#ifndef EXTENDER_REPORT_FIELDS_H
#define EXTENDER_REPORT_FIELDS_H

#include <stdio.h>

#include "config/base/buf.h"

/* What --output takes. */
enum output_format {
    OUTPUT_TABLE,
    OUTPUT_WIDE,
    OUTPUT_JSON,
    OUTPUT_YAML,
    OUTPUT_SARIF,
    OUTPUT_JUNIT
};

/* Bits of formats: what most commands print, and what those print that find something. */
enum {
    OUTPUTS_PLAIN = 1 << OUTPUT_TABLE | 1 << OUTPUT_JSON | 1 << OUTPUT_YAML,
    OUTPUTS_OF_FINDINGS = 1 << OUTPUT_SARIF | 1 << OUTPUT_JUNIT,
};

/* Reads "table", "wide", "json", ...; NULL is a table. False for any other word, and for those of
 * other formats than these bits. */
bool output_format_parse(enum output_format *out, const char *word, unsigned formats);

enum { FIELDS_DEPTH_MAX = 16 };

struct fields {
    FILE *file;                  /* NULL: all is in the caller's buffer */
    struct buf *out;             /* what is not yet in the file */
    struct buf own, clean;       /* the buffer before a file; a text that was not UTF-8 */
    struct yaml_emitter_s *yaml; /* NULL: JSON */
    size_t depth;
    bool is_list;   /* of results: those are not indented */
    bool has_items; /* what is open has some */
    bool has_failed;
    char brackets[FIELDS_DEPTH_MAX]; /* of what is open */
};

/* Begins an answer. Ownership: fields_end. format: OUTPUT_JSON or OUTPUT_YAML. */
void fields_begin(struct fields *fields, enum output_format format, FILE *file);

/* Begins compact JSON, which is appended to the buffer. */
void fields_begin_compact(struct fields *fields, struct buf *out);

/* Ends the answer: all that is open is closed. False if something could not be written. */
bool fields_end(struct fields *fields);

/* Frees, and writes nothing more: after an error. */
void fields_discard(struct fields *fields);

/* '{': an object; '[': a list. fields_open_results: the outermost list, of results that come one by
 * one. */
void fields_open(struct fields *fields, const char *key, char bracket);
void fields_open_results(struct fields *fields);
void fields_close(struct fields *fields);

/* Closes the last `count` of what is open. */
static inline void fields_close_several(struct fields *fields, int count)
{
    for (int i = 0; i < count; i++)
        fields_close(fields);
}

void fields_text(struct fields *fields, const char *key, struct slice text);
void fields_number(struct fields *fields, const char *key, int64_t number);
void fields_flag(struct fields *fields, const char *key, bool flag);

/* The same, if there is a text. */
static inline void fields_text_if(struct fields *fields, const char *key, struct slice text)
{
    if (text.len != 0)
        fields_text(fields, key, text);
}

/* The text of the buffer, which is freed. */
void fields_buf(struct fields *fields, const char *key, struct buf *text);

#endif
