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

/* Of a reflector: lists, and events of watches. */
struct reflector_sink apply_sink(const struct informer_target *target);

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
