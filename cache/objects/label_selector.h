/*
 * selector: Kubernetes label selectors (metav1.LabelSelector) and label sets, in the flat text in
 * which the cache keeps them, so that a thousand replicas share one copy and matching needs no
 * JSON.
 *
 * A label set is an empty line, then a line for each label: the key, a space, the value. A selector
 * is a line "*" (it is there), then a line for each requirement, all of which have to hold: the
 * key, "in", "notin", "exists" or "absent", and the values, divided by spaces. Neither keys nor
 * values of labels can hold a space or a line feed. The lines are sorted by their keys, so that a
 * match is one walk through both texts: users choose how many they are.
 */
#ifndef CACHE_OBJECTS_LABEL_SELECTOR_H
#define CACHE_OBJECTS_LABEL_SELECTOR_H

#include "cache/json/pull.h"

/* Readers for pull_fields, into a struct slice. */
bool labels_read(struct pull *json, struct arena *arena, void *field);
bool selector_read(struct pull *json, struct arena *arena, void *field);

/* Whether the selector matches a pod with these labels. An empty text is no selector and matches
 * nothing; an empty selector ("*") matches everything, as in policy/v1. It costs as much as the two
 * texts are long. */
bool selector_matches(struct slice selector, struct slice labels);

/* Whether there is none, or one without requirements. */
bool selector_is_empty(struct slice selector);

#endif
