/*
 * load: a snapshot into a cluster, with progress where stderr is a terminal.
 */
#ifndef EXTENDER_LOAD_H
#define EXTENDER_LOAD_H

#include "cache/cluster.h"
#include "cache/source.h"

/* Errors: as source_read; the cluster then holds what was read before. */
int load_snapshot(struct cluster *cluster, const char *path, struct source_report *report,
                  struct error *err);

/* What a person who made the snapshot should know about it (a static string), or NULL. */
const char *load_warning(const struct cluster *cluster);

#endif
