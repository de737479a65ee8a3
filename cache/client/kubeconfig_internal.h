/*
 * kubeconfig_internal: what kubeconfig.c and kubeconfig_entries.c share. Only they include it.
 *
 * Threads: any; nothing is shared.
 */
#ifndef CACHE_CLIENT_KUBECONFIG_INTERNAL_H
#define CACHE_CLIENT_KUBECONFIG_INTERNAL_H

#include "cache/client/kubeconfig.h"
#include "config/yaml_node.h"

/* A named entry (a cluster, a user, a context), and the file that has it. */
struct kubeconfig_entry {
    const char *path;
    const char *list; /* "clusters", ... */
    const struct yaml_node *name, *body;
};

/* Fills err with "FILE:LINE:COL: clusters[prod].server: problem"; returns its code. at: NULL for
 * the entry itself. */
int kubeconfig_fail(struct error *err, const struct kubeconfig_entry *entry,
                    const struct yaml_node *at, const char *key, const char *problem);

/* A string of the mapping. *out stays unchanged if the key is missing or null. Ownership: the text
 * is the YAML node's, and ends with NUL. */
int kubeconfig_text(const struct kubeconfig_entry *entry, const struct yaml_node *mapping,
                    const char *key, const char **out, struct error *err);

int kubeconfig_read_cluster(const struct kubeconfig_entry *entry, struct kubeconfig *out,
                            struct error *err);
int kubeconfig_read_user(const struct kubeconfig_entry *entry, struct kubeconfig *out,
                         struct error *err);

#endif
