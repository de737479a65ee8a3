/* process_metrics: the metrics process_* of Prometheus' client libraries, from /proc/self. */
#ifndef EXTENDER_METRICS_PROCESS_METRICS_H
#define EXTENDER_METRICS_PROCESS_METRICS_H

#include "config/base/buf.h"

/* Appends them in the Prometheus text format, or in OpenMetrics. */
void process_metrics_write(struct buf *out, bool is_open_metrics);

#endif
