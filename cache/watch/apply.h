/*
 * fold: what the API server said, put into a cluster that is followed, and then told to the
 * listener there. Objects are decoded before the lock is taken, and told of when it is given up
 * again, so it is held for one object at a time, or for one step of a list's end.
 *
 * Threads: follow's alone, which takes the target's lock here.
 */
#ifndef CACHE_WATCH_APPLY_H
#define CACHE_WATCH_APPLY_H

#include "cache/watch/informer.h"

/* A list or a watch said so. Errors: as cluster_apply. */
int apply_change(const struct informer_target *target, enum watch_change change,
                 const struct object *object, struct error *err);

/* A list begins; names an object that cannot be read; is whole: as cluster_list_begin, _keep, _end.
 */
void apply_list_begin(const struct informer_target *target, enum kind kind, bool overrides,
                      uint64_t asked_ns);
void apply_list_keep(const struct informer_target *target, enum kind kind, struct slice ns,
                     struct slice name);
void apply_list_end(const struct informer_target *target, enum kind kind, uint64_t version);

/* A GET of that object, sent at asked_ns, said so; the watch of its kind has come as far as version
 * watched. Errors: what came is no such object, or there is no memory; nothing has changed. */
int apply_object(const struct informer_target *target, const struct object_reference *asked,
                 struct slice text, uint64_t watched, uint64_t asked_ns, struct error *err);

/* Whether the body of a 404 says that there is no such object: a path that is not known, or a
 * proxy, answers 404, too. */
bool apply_says_absent(const struct object_reference *asked, struct slice text);

/* A GET said that there is none. */
void apply_absence(const struct informer_target *target, const struct object_reference *gone);

#endif
