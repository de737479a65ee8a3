/*
 * refcount: for one node, how many of the pods on it reference each claim: KEP-2485's "map the PVC
 * name to a reference count", but a count where the in-tree cache keeps a set.
 *
 * The claims are borrowed; a claim outlives its counts. 16 bytes a slot, at most 3/4 full.
 */
#ifndef CACHE_REFCOUNT_H
#define CACHE_REFCOUNT_H

#include <stdint.h>

#include "config/base/slice.h"

struct claim;

struct refcount {
    struct claim *claim; /* NULL: free */
    uint32_t count;
};

struct refcounts {
    struct refcount *slots;
    uint32_t capacity; /* a power of two, or 0 */
    uint32_t used;
};

void refcounts_dispose(struct refcounts *refs);

/* Makes room for `more` claims, so that as many refcounts_add cannot fail. False: no memory. */
bool refcounts_reserve(struct refcounts *refs, uint32_t more) MUST_USE;

/* One reference more (after refcounts_reserve), or one less. */
void refcounts_add(struct refcounts *refs, struct claim *claim);
void refcounts_remove(struct refcounts *refs, const struct claim *claim);

/* How many references there are to the claim. */
uint32_t refcounts_get(const struct refcounts *refs, const struct claim *claim);

#endif
