/*
 * selector: Kubernetes label selectors (metav1.LabelSelector) and label sets, in the flat text in
 * which the cache keeps them, so that a thousand replicas share one copy and matching needs no
 * JSON.
 *
 * A label set is "key=value" lines. A selector is a line "*" (it is there), then a line for each
 * requirement, all of which have to hold: "in", "notin", "exists" or "absent", the key, and the
 * values, divided by spaces. Neither keys nor values of labels can hold a space, '=' or a line
 * feed.
 */
#ifndef CACHE_SELECTOR_H
#define CACHE_SELECTOR_H

#include "cache/pull.h"

/* Readers for pull_fields, into a struct slice. */
bool labels_read(struct pull *json, struct arena *arena, void *field);
bool selector_read(struct pull *json, struct arena *arena, void *field);

/* Whether the selector matches a pod with these labels. An empty text is no selector and matches
 * nothing; an empty selector ("*") matches everything, as in policy/v1. */
bool selector_matches(struct slice selector, struct slice labels);

#endif
