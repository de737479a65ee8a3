/*
 * report: prints findings on standard output: as a table, JSON or YAML.
 *
 * Threads: one.
 */
#ifndef EXTENDER_DOCTOR_REPORT_H
#define EXTENDER_DOCTOR_REPORT_H

#include "extender/doctor/findings.h"
#include "extender/report/render.h"

/* False if it could not be written, or without memory. format: not OUTPUT_WIDE. */
bool doctor_report(const struct findings *findings, enum output_format format);

#endif
