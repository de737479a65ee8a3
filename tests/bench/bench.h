/*
 * bench: what the benchmark measures. Each function prints a section in Markdown, and ends the run
 * when something fails.
 */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

/* ---- round_trips.c ---- */

/* where: client and server run, for the heading. */
void bench_round_trips(const char *where);

/* A pod that defers its mounts, and one that does not. */
void bench_deferral(void);

/* A pod whose claim needs a CSI driver, or is in use on one node. */
void bench_volumes(void);

/* ---- reviews.c ---- */

/* A review of a Binding, beside a webhook that does nothing. where: as above. */
void bench_reviews(const char *where);

/* ---- loading.c: a snapshot ---- */

void bench_loading(unsigned pods);

/* ---- memory.c: of the server ---- */

void bench_memory(unsigned pods);

/* ---- commands.c: who, why, audit ---- */

void bench_commands(unsigned pods);

/* ---- latency.c: filter calls under load ---- */

void bench_latency(unsigned pods);

/* ---- events.c: a watch of many events a second ---- */

void bench_events(unsigned pods);

/* ---- sync.c: the first sync ---- */

void bench_sync(unsigned pods);

/* tests/bench/run copies the section by its heading. */
#define CLUSTER_HEADING "## The first sync from a real API server"

extern const char *bench_cluster_kubeconfig; /* NULL: there is no such server */

void bench_cluster(void);

/* ---- scale.c: the largest clusters ---- */

void bench_scale(void);

/* ---- parsing.c: MB/s of JSON ---- */

void bench_parsing(void);

/* ---- verdicts.c ---- */

void bench_verdicts(void);

/* ---- peers.c: a Go extender, and the plugin of kube-scheduler ---- */

/* tests/bench/run copies the section by its heading. */
#define PEERS_HEADING "## Beside a Go extender and the plugin VolumeRestrictions"

extern const char *bench_peers_folder; /* of their programs; NULL: they are not measured */

void bench_peers(unsigned pods);

#endif
