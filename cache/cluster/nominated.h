/*
 * nominated: until when a nomination counts. A pod that is nominated to a node holds its claims
 * against others. Nobody may ever clear a nomination: its scheduler has ended, its PATCH has
 * failed, or somebody else has made it. So one counts while other pods hold the pod's claims, as
 * the victims of its preemption do, and for a minute after these are free: within this time its
 * scheduler tries the pod again, and it passes, which reserves the claims.
 *
 * Each nomination is checked every NOMINATED_CHECK_MS, and lapses at the check number
 * NOMINATED_CHECKS in a row that finds the claims free. A nomination to another node is a new one.
 *
 * All times are nanoseconds of the caller's monotonic clock. Threads: as the cluster.
 */
#ifndef CACHE_CLUSTER_NOMINATED_H
#define CACHE_CLUSTER_NOMINATED_H

#include "cache/cluster/cluster.h"

enum { NOMINATED_CHECK_MS = 10000, NOMINATED_CHECKS = 6 };

/* Of the records of pods that appear and go; a pod without a nomination is ignored. */
void nominated_add(struct cluster *cluster, struct pod *pod);
void nominated_remove(struct cluster *cluster, struct pod *pod);

/* The record replaces the former one of the same pod: a nomination to the same node is the same. */
void nominated_replace(struct cluster *cluster, struct pod *former, struct pod *pod);

/* Whether nominated_check has something to do. */
bool nominated_is_due(const struct cluster *cluster, uint64_t now_ns);

/* Checks a nomination that is due; returns its pod if it has lapsed and the pod still waits, else
 * NULL. Nothing is due: NULL. */
const struct pod *nominated_check(struct cluster *cluster, uint64_t now_ns);

#endif
