/* load: snapshots into a cluster, inside the test process. */
#ifndef TESTS_SUPPORT_LOAD_H
#define TESTS_SUPPORT_LOAD_H

#include "cache/cluster/cluster.h"
#include "config/config.h"

/* Of one that defers nothing. */
extern const struct config plain_config;

/* Reads a file into the cluster; aborts with the error when that fails. */
void load_file(struct cluster *cluster, const char *path);

/* The same from text (YAML or JSON). */
void load_text(struct cluster *cluster, const char *text);

/* Reads text through a temporary file into a cluster; 0, or the error. */
int try_load_text(struct cluster *cluster, const char *text, struct error *err);

/* Gives the first Pod of a file to `evaluate`. */
void with_pod(const char *path, void (*evaluate)(void *context, const struct pod_object *pod),
              void *context);

#endif
