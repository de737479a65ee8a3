/*
 * audit_output: a report as a table, JSON, YAML, SARIF 2.1.0 or JUnit XML, on standard output.
 *
 * Threads: one.
 */
#ifndef EXTENDER_AUDIT_AUDIT_OUTPUT_H
#define EXTENDER_AUDIT_AUDIT_OUTPUT_H

#include <jansson.h>

#include "config/base/buf.h"
#include "extender/audit/audit_report.h"
#include "extender/report/render.h"

enum audit_format { AUDIT_TABLE, AUDIT_JSON, AUDIT_YAML, AUDIT_SARIF, AUDIT_JUNIT };

/* Reads "table", "json", "yaml", "sarif" or "junit". False for any other word. */
bool audit_format_parse(enum audit_format *out, const char *word);

/* Prints the report. False if it could not be written. */
bool audit_print(const struct audit_report *report, enum audit_format format);

/* One of them each. False if it could not be made or written. Findings are made and printed one by
 * one. */
bool audit_json(const struct audit_report *report, enum output_format format);
bool audit_sarif(const struct audit_report *report);
bool audit_junit(const struct audit_report *report);
bool audit_table(const struct audit_report *report);

/* "Deployment shop/web"; "web.yaml:12:9" or "-" of a live cluster. */
void audit_put_object(const struct record *record, struct buf *out);
void audit_put_spot(const struct spot *spot, struct buf *out);

#endif
