/*
 * arena: memory that is freed all at once, with a cap. One arena lives as long as one request or
 * one decoded object; nothing that points into it may outlive the next arena_reset.
 *
 * One thread at a time.
 */
#ifndef CONFIG_BASE_ARENA_H
#define CONFIG_BASE_ARENA_H

#include "config/base/quota.h"
#include "config/base/slice.h"

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first */
    size_t used_bytes;          /* over all blocks, against max_bytes */
    size_t max_bytes;
    struct quota_share *share; /* of its blocks; NULL, as arena_init leaves it: of nothing */
};

/* An empty arena that hands out at most max_bytes. Dispose of it with arena_dispose. */
void arena_init(struct arena *arena, size_t max_bytes);
void arena_dispose(struct arena *arena);

/* Takes everything back; keeps the largest block that is not huge for the next use. */
void arena_reset(struct arena *arena);

/* size bytes, zeroed, aligned for any type; NULL when memory or the cap is used up. */
void *arena_alloc(struct arena *arena, size_t size);

/* A formatted string; {NULL, 0} when memory or the cap is used up. */
struct slice arena_printf(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);

/* Appends to a text that is empty or was made by this function alone. It grows by doubling, so that
 * many appends cost as much as one. False when memory or the cap is used up. */
bool arena_append(struct arena *arena, struct slice *text, struct slice more);

/*
 * Room for one more element in an array of count elements of `size` bytes: returns the array, moved
 * when it had to grow (at every power of two), or NULL.
 */
void *arena_grow(struct arena *arena, void *array, size_t count, size_t size);

#endif
