/*
 * own_network: a network of the benchmark's own, with nothing but loopback, where TCP uses Reno.
 *
 * The kernel's default may be BBR, which estimates a speed for each connection and keeps to it. On
 * loopback, that speed is a matter of luck: of two connections with the same calls, with answers of
 * 640 KiB, one took 140 us for each and the other 350, the no-op server's and claimguard's alike.
 */
#ifndef TESTS_BENCH_OWN_NETWORK_H
#define TESTS_BENCH_OWN_NETWORK_H

/* Moves this process and its future children there. Only root may: else nothing changes. Returns
 * what the page says about it. */
const char *bench_own_network(void);

#endif
