/*
 * node_selector: Kubernetes node selectors (v1.NodeSelector), as a PersistentVolume's nodeAffinity
 * has one. As in k8s.io/component-helpers: one term has to match; in a term, every requirement has
 * to be met; a term without requirements matches no node.
 *
 * Ownership: what is read points into the text or into the arena. Threads: any.
 */
#ifndef CACHE_OBJECTS_NODE_SELECTOR_H
#define CACHE_OBJECTS_NODE_SELECTOR_H

#include "cache/json/pull_fields.h"

struct node_requirement {
    struct slice key, operator;
    struct pull_items values; /* struct slice */
};

struct node_term {
    struct pull_items expressions; /* struct node_requirement, on labels */
    struct pull_items fields;      /* struct node_requirement, on metadata.name */
};

enum { NODE_TERM_FIELDS = 2 };
extern const struct pull_field node_term_fields[NODE_TERM_FIELDS];

/* Reads nodeSelectorTerms into struct pull_items of struct node_term, for pull_fields. */
bool node_terms_read(struct pull *json, struct arena *arena, void *field);

/* Whether one of the terms matches a node. labels: as in label_selector.h. */
bool node_terms_match(const struct pull_items *terms, struct slice node, struct slice labels);

/* "topology.kubernetes.io/zone in zone-a, zone-b; or ...": the terms for people. {NULL, 0}: the
 * arena is full. */
struct slice node_terms_text(const struct pull_items *terms, struct arena *arena);

#endif
