/*
 * load: a snapshot into a cluster, with progress where stderr is a terminal.
 */
#ifndef EXTENDER_CLI_LOAD_H
#define EXTENDER_CLI_LOAD_H

#include "cache/cluster/cluster.h"
#include "cache/snapshot/source.h"

struct load_report {
    struct source_report source;
    bool lacks_classes; /* pods name PriorityClasses that are not there */
};

/* A pod without a priority gets that of its PriorityClass, as from the API server (has_no_priority:
 * there is no such class). Errors: as source_read, and ERROR_INVALID where there is no object; the
 * cluster then holds what was read before. */
int load_snapshot(struct cluster *cluster, const char *path, struct load_report *report,
                  struct error *err);

enum { LOAD_WARNINGS_MAX = 3 };

/* What a person who made the snapshot should know about it (static strings); returns how many. */
size_t load_warnings(const struct cluster *cluster, const struct load_report *report,
                     const char *warnings[LOAD_WARNINGS_MAX]);

#endif
