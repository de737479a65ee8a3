/* process_metrics: the standard process_* set, read from /proc/self at each scrape. */
#ifndef EXTENDER_METRICS_PROCESS_METRICS_H
#define EXTENDER_METRICS_PROCESS_METRICS_H

#include "config/base/buf.h"

void process_metrics_write(struct buf *out, bool is_open_metrics);

#endif
