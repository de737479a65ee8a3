/*
 * scrape: /metrics in pieces, in the Prometheus text format or in OpenMetrics, with the names of
 * docs/metrics.md.
 *
 * Threads: it takes the state's lock, for reading, for a piece.
 */
#ifndef EXTENDER_SCRAPE_H
#define EXTENDER_SCRAPE_H

#include "extender/pieces.h"
#include "extender/state.h"

/* Ownership: pieces_free. NULL without memory. */
struct pieces *scrape_new(struct state *state, bool is_open_metrics);

#endif
