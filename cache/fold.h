/*
 * fold: what the API server said of single objects, put into a cluster that is followed, and told
 * to whoever listens there.
 *
 * Threads: follow's alone.
 */
#ifndef CACHE_FOLD_H
#define CACHE_FOLD_H

#include "cache/follow.h"

/* A list or a watch said so. With the target's lock held for writing. Errors: as cluster_apply. */
int fold_change(const struct follow_target *target, enum change change, const struct object *object,
                struct error *err);

/* A list is whole, and what it did not name is gone. With the target's lock held for writing. */
void fold_list_end(const struct follow_target *target, enum kind kind, uint64_t version);

/* A GET of that object said so; the watch of its kind has come as far as version watched. Takes the
 * lock. Errors: what came is no such object, or there is no memory; nothing has changed. */
int fold_object(const struct follow_target *target, const struct object_reference *asked,
                struct slice text, uint64_t watched, struct error *err);

/* Whether the body of a 404 says that there is no such object: a path that is not known, or a
 * proxy, answers 404, too. */
bool fold_says_absent(const struct object_reference *asked, struct slice text);

/* A GET said that there is none. Takes the lock. */
void fold_absence(const struct follow_target *target, const struct object_reference *gone);

#endif
