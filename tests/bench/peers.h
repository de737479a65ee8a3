/*
 * peers: what claimguard is compared with beside lower bounds. The programs of tests/bench/peers:
 * an extender in Go, and kube-scheduler's VolumeRestrictions as a library.
 */
#ifndef TESTS_BENCH_PEERS_H
#define TESTS_BENCH_PEERS_H

#include "programs.h"

enum peer { CLAIMGUARD, GO_EXTENDER, IN_TREE, PEERS };

struct checked {
    unsigned calls, rejected;
};

/* Makes the same filter calls to all, for pods with claims of each kind, and ends the run unless
 * all pass and reject the same nodes. */
struct checked peers_compare(const struct child children[PEERS], const struct model *model);

#endif
