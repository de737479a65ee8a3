/*
 * apply: writes what the API server reports into the informer's cluster, then calls the listener
 * (informer_target.changed). Objects are decoded before the lock is taken, and the listener is
 * called after it is released, so the lock is held for one object, or one step of a list's end.
 *
 * Threads: only the informer's. These functions take the target's lock.
 */
#ifndef CACHE_WATCH_APPLY_H
#define CACHE_WATCH_APPLY_H

#include "cache/watch/informer.h"

/* Applies an object of a list, or an event of a watch. Errors: as cluster_apply. */
int apply_change(const struct informer_target *target, enum watch_change change,
                 const struct object *object, struct error *err);

/* As cluster_list_begin, cluster_list_keep and cluster_list_end. */
void apply_list_begin(const struct informer_target *target, enum kind kind, bool overrides,
                      uint64_t asked_ns);
void apply_list_keep(const struct informer_target *target, enum kind kind, struct slice ns,
                     struct slice name);
void apply_list_end(const struct informer_target *target, enum kind kind, uint64_t version);

/* The API server does not serve the kind: cluster.is_unserved, until a list of it is complete. */
void apply_unserved(const struct informer_target *target, enum kind kind);

/* Applies the answer to a GET of that object. The GET was sent at asked_ns; `watched` is the last
 * version that the watch of its kind has reported. Errors: the answer is not that object, or no
 * memory; nothing has changed. */
int apply_object(const struct informer_target *target, const struct object_reference *asked,
                 struct slice text, uint64_t watched, uint64_t asked_ns, struct error *err);

/* Whether the body of a 404 says that the object does not exist. A 404 may also come from a proxy,
 * or be the answer to an unknown path. */
bool apply_says_absent(const struct object_reference *asked, struct slice text);

/* Removes an object: a GET has answered that it does not exist. */
void apply_absence(const struct informer_target *target, const struct object_reference *gone);

#endif
