/*
 * scrape: writes /metrics in pieces, in the Prometheus text format or in OpenMetrics.
 * docs/metrics.md lists the metrics.
 *
 * Threads: a scrape belongs to one thread. Each piece takes the state's lock for reading.
 */
#ifndef EXTENDER_ZPAGES_SCRAPE_H
#define EXTENDER_ZPAGES_SCRAPE_H

#include "extender/state.h"
#include "extender/zpages/pieces.h"

/* Ownership: pieces_free. NULL without memory. */
struct pieces *scrape_new(struct state *state, bool is_open_metrics);

#endif
