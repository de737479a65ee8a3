/*
 * label_selector: Kubernetes label selectors (metav1.LabelSelector) and label sets as flat text. So
 * a thousand replicas share one copy in the cache, and matching needs no JSON.
 *
 * A label set is an empty line, then a line for each label: key, space, value. A selector is a line
 * "*", then a line for each requirement: the key, "in", "notin", "exists" or "absent", and the
 * values, separated by spaces. All requirements must be met. Neither keys nor values of labels can
 * contain a space or a line feed. The lines are sorted by their keys, so a match is one pass
 * through both texts, even if users write thousands.
 *
 * Threads: any.
 */
#ifndef CACHE_OBJECTS_LABEL_SELECTOR_H
#define CACHE_OBJECTS_LABEL_SELECTOR_H

#include "cache/json/pull.h"
#include "config/base/buf.h"

/* Readers for pull_fields, into a struct slice. */
bool labels_read(struct pull *json, struct arena *arena, void *field);
bool selector_read(struct pull *json, struct arena *arena, void *field);

/* Whether the selector matches a pod with these labels. An empty text is no selector and matches
 * nothing; an empty selector ("*") matches everything, as in policy/v1. The cost is linear in the
 * length of both texts. */
bool selector_matches(struct slice selector, struct slice labels);

/* The value of a label; false: there is none of that key. */
bool labels_find(struct slice labels, struct slice key, struct slice *value);

/* Write the text as JSON that the reader above makes the same text of. A selector's requirements
 * are all written as matchExpressions. */
void labels_write(struct slice labels, struct buf *out);
void selector_write(struct slice selector, struct buf *out);

/* Whether the text is no selector, or a selector without requirements. */
bool selector_is_empty(struct slice selector);

#endif
