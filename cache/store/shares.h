/*
 * shares: what is limited (calls to the API server, binds, pods that wait to be requeued, ...) is
 * shared by namespaces: one of them has a part at most, so that others still get in. Namespaces are
 * counted by a hash: two of 1,024 may share one counter, and then its limit. A table of exact
 * counters would need memory, which may fail.
 *
 * One may have so many times what is left (share_is_over): alone, `parts` of parts + 1; of several,
 * each has less. The last eighth is for namespaces that have nothing yet. So who would take all
 * needs more namespaces than that eighth has room for.
 *
 * Threads: any.
 */
#ifndef CACHE_STORE_SHARES_H
#define CACHE_STORE_SHARES_H

#include <stdatomic.h>

#include "cache/store/names.h"

enum { SHARES = 1024 };

/* The namespace's counter, less than SHARES. */
static inline unsigned share_of(struct slice ns)
{
    return names_hash(ns) % SHARES;
}

/* Whether a namespace that has used so many, of `used` by all, may not have `wanted` more of the
 * maximum. */
static inline bool share_is_over(size_t used_in, size_t used, size_t wanted, size_t max,
                                 unsigned parts)
{
    return wanted > max || used > max - wanted || used_in + wanted > parts * (max - used) ||
           (used_in != 0 && used > max - max / 8 - wanted);
}

/* What was used since a time: by all, and by the namespaces of each share. */
struct share_window {
    uint64_t since_ns;
    uint32_t used, used_in[SHARES];
};

/* Begins a new window, if the present one has lasted so long. */
static inline void share_window_pass(struct share_window *window, uint64_t now_ns, uint64_t span_ns)
{
    if (now_ns - window->since_ns >= span_ns)
        *window = (struct share_window){.since_ns = now_ns};
}

/* How many there are at a time: of all, and of one namespace. */
struct shared_count {
    atomic_uint *all, *in;
};

static inline void share_give(const struct shared_count *count)
{
    atomic_fetch_sub(count->in, 1);
    atomic_fetch_sub(count->all, 1);
}

/* Counts one more. False: the namespace may have no more of the maximum. */
static inline bool share_take(const struct shared_count *count, size_t max, unsigned parts)
{
    unsigned used = atomic_fetch_add(count->all, 1), used_in = atomic_fetch_add(count->in, 1);
    bool is_over = share_is_over(used_in, used, 1, max, parts);

    if (is_over)
        share_give(count);
    return !is_over;
}

/* The share that has most. */
static inline unsigned share_largest(const uint32_t used_in[static SHARES])
{
    unsigned largest = 0;

    for (unsigned share = 1; share < SHARES; share++)
        if (used_in[share] > used_in[largest])
            largest = share;
    return largest;
}

#endif
