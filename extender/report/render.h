/*
 * render: prints the results of a dry run (explain.h) as a table, JSON or YAML. Results come one by
 * one, so JSON and YAML of 100,000 pods need little memory. A table is printed at the end, when the
 * widths of its columns are known.
 *
 * Threads: one. Everything is written to stdout.
 */
#ifndef EXTENDER_REPORT_RENDER_H
#define EXTENDER_REPORT_RENDER_H

#include <jansson.h>
#include <stdbool.h>

enum output_format { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_JSON, OUTPUT_YAML };

struct render;

/* Prints one value as JSON or YAML, which is borrowed; NULL: there was no memory for it. False if
 * it could not be written. */
bool render_value(const json_t *value, enum output_format format);

/* Reads "table", "wide", "json" or "yaml". False for any other word. */
bool render_format_parse(enum output_format *out, const char *word);

/* is_list: the results are printed as a list, even if there are none. NULL without memory.
 * Ownership: render_finish or render_discard. */
struct render *render_new(enum output_format format, bool is_list);

/* Prints a result of explain_pod, which is borrowed. False if it could not be written. */
bool render_put(struct render *render, const json_t *result);

/* Prints the rest, and frees. False if something could not be written. */
bool render_finish(struct render *render);

/* The items of a long array: make returns the index-th (NULL: no memory). Ownership: render_stream
 * frees it when it is printed. */
struct render_items {
    const char *key; /* of the array */
    size_t count;
    json_t *(*make)(const void *context, size_t index);
    const void *context;
};

/* Prints an object as JSON or YAML (OUTPUT_JSON, OUTPUT_YAML), with these items in the array of
 * that key, which is empty in the object; in YAML, it is a member of the object itself. So the
 * array needs the memory of one item. False if something could not be made or written. */
bool render_stream(enum output_format format, const json_t *object,
                   const struct render_items *items);

/* Frees, and prints nothing more: after an error. */
void render_discard(struct render *render);

#endif
