/*
 * shares: what is limited (calls to the API server, binds, pods that wait to be requeued, ...) is
 * shared by namespaces: one of them has a part at most, so that others still get in. Namespaces are
 * counted by a hash: two of 1,024 may share one counter, and then its limit. A table of exact
 * counters would need memory, which may fail.
 *
 * One may have so many times what is left (share_is_over): alone, `parts` of parts + 1; of several,
 * each has less, so that something is always left for one more. So who has many namespaces does not
 * get all.
 *
 * Threads: any.
 */
#ifndef CACHE_STORE_SHARES_H
#define CACHE_STORE_SHARES_H

#include "cache/store/names.h"

enum { SHARES = 1024 };

/* The namespace's counter, less than SHARES. */
static inline unsigned share_of(struct slice ns)
{
    return names_hash(ns) % SHARES;
}

/* Whether a namespace that has used so many, of `used` by all, may have no more of the maximum. */
static inline bool share_is_over(size_t used_in, size_t used, size_t max, unsigned parts)
{
    return used >= max || used_in >= parts * (max - used);
}

#endif
