/*
 * render: the dry run's results for people and programs. Results are given one by one, so that JSON
 * and YAML of 100,000 pods need no memory; a table is printed at the end, when its widths are
 * known.
 */
#ifndef EXTENDER_REPORT_RENDER_H
#define EXTENDER_REPORT_RENDER_H

#include <jansson.h>
#include <stdbool.h>

enum output_format { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_JSON, OUTPUT_YAML };

struct render;

/* False when the word is none of table, wide, json, yaml. */
bool output_format_parse(enum output_format *out, const char *word);

/* is_list: the results make a list, even one of none. NULL without memory. */
struct render *render_new(enum output_format format, bool is_list);

/* One result of explain_pod; borrowed. False: it could not be written. */
bool render_put(struct render *render, const json_t *result);

/* Writes what is left and frees. False: something could not be written. */
bool render_finish(struct render *render);

/* Frees and writes nothing more, after an error. */
void render_discard(struct render *render);

#endif
