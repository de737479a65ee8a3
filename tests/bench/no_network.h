/*
 * no_network: the informer and its requests without a network: every request succeeds at once. The
 * linker takes its functions in the place of the library's; the benchmark sends the events.
 */
#ifndef TESTS_BENCH_NO_NETWORK_H
#define TESTS_BENCH_NO_NETWORK_H

#include "cache/watch/informer.h"

/* What the informer that was started applies objects to; NULL: none was started. */
extern const struct informer_target *informer_feed;

#endif
