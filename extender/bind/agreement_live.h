/*
 * agreement_live: reads the agreement (agreement.h) every five seconds (every ten, while there is
 * none), and writes this claimguard's part of it.
 *
 * Threads: that of agreement_tick; the state's lock guards what is read.
 */
#ifndef EXTENDER_BIND_AGREEMENT_LIVE_H
#define EXTENDER_BIND_AGREEMENT_LIVE_H

#include "extender/bind/agreement.h"

/* From now on, the state follows the agreement in that namespace. Before other threads start.
 * Without this call it follows none. */
void agreement_start(struct state *state, struct slice ns);

/* Reads and writes what is due, and waits for the API server, for AGREEMENT_REQUEST_MS each at
 * most. To be called once a second, by one thread; not under the lock. */
void agreement_tick(struct state *state);

/* Whether it was ever read, or absent where it may be: else no pod with claims can be bound. Any
 * thread, without the lock. */
bool agreement_is_ready(const struct state *state);

/* Whether this claimguard may bind pods with claims. The message says why not. 0 if it
 * follows no agreement. Under the lock. */
int agreement_permits(const struct state *state, struct error *err);

enum { AGREEMENT_REQUEST_MS = 4000 };

#endif
