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
 * Shared labels: each pod of a StatefulSet has its name and its ordinal as labels
 * (statefulset.kubernetes.io/pod-name, apps.kubernetes.io/pod-index), and no two of them would
 * share a text. So labels_share puts a mark in place of a value that is the pod's name or its
 * ordinal, and who reads the labels also passes the pod's name. The first line of such a text
 * is "@".
 *
 * Threads: any.
 */
#ifndef CACHE_OBJECTS_LABEL_SELECTOR_H
#define CACHE_OBJECTS_LABEL_SELECTOR_H

#include "cache/json/pull.h"
#include "config/base/buf.h"

/* Readers for pull_fields, into a struct slice. A selector of over SELECTOR_BYTES_MAX becomes "*":
 * it is compared with thousands of label sets. */
enum { SELECTOR_BYTES_MAX = 4096 };
bool labels_read(struct pull *json, struct arena *arena, void *field);
bool selector_read(struct pull *json, struct arena *arena, void *field);

/* The same for labels that are kept: over LABELS_BYTES_MAX, they become a set that each selector
 * matches. So a victim counts as protected by each budget, rather than by none. */
enum { LABELS_BYTES_MAX = 16 * 1024 };
bool labels_read_kept(struct pull *json, struct arena *arena, void *field);

/* The labels of the pod of that name, shared if they can be; valid as long as labels and buffer. A
 * text of LABELS_SHARED_MAX bytes or more stays as it is: no other pod shares it, then. */
enum { LABELS_SHARED_MAX = 4096 };
struct slice labels_share(struct slice labels, struct slice pod, char buffer[LABELS_SHARED_MAX]);

/* Whether the selector matches a pod with these labels. pod: its name, if they are shared. An empty
 * text is no selector and matches nothing; an empty selector ("*") matches everything, as in
 * policy/v1. The cost is linear in the length of both texts. */
bool selector_matches(struct slice selector, struct slice labels, struct slice pod);

/* The value of a label; false: there is none of that key. The labels are not shared. */
bool labels_find(struct slice labels, struct slice key, struct slice *value);

/* Write the text as JSON that the reader above makes the same text of. pod: as above. A selector's
 * requirements are all written as matchExpressions. */
void labels_write(struct slice labels, struct slice pod, struct buf *out);
void selector_write(struct slice selector, struct buf *out);

/* Whether the text is no selector, or a selector without requirements. */
bool selector_is_empty(struct slice selector);

#endif
