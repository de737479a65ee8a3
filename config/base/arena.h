/*
 * arena: memory that is freed all at once, with a maximum. One arena serves one request or one
 * decoded object. Pointers into it are invalid after arena_reset and arena_dispose.
 *
 * Threads: one at a time.
 */
#ifndef CONFIG_BASE_ARENA_H
#define CONFIG_BASE_ARENA_H

#include <stdarg.h>

#include "config/base/quota.h"
#include "config/base/slice.h"

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first */
    size_t used_bytes;          /* over all blocks, against max_bytes */
    size_t max_bytes;
    struct quota_share *share; /* counts the blocks; NULL after arena_init: no quota */
};

/* An empty arena that hands out at most max_bytes. Ownership: arena_dispose. */
void arena_init(struct arena *arena, size_t max_bytes);
void arena_dispose(struct arena *arena);

/* The same, for what had keys in it: overwrites all of it first. */
void arena_wipe(struct arena *arena);

/* Empties the arena. It keeps its largest block of at most 256 KiB for the next use. */
void arena_reset(struct arena *arena);

/* size bytes, zeroed, aligned for any type; NULL if memory or the maximum is used up. */
void *arena_alloc(struct arena *arena, size_t size);

/* A copy, with a NUL after it; {NULL, 0} if memory or the maximum is used up. */
struct slice arena_copy(struct arena *arena, struct slice text);

/* A formatted string, with a NUL after it; {NULL, 0} if memory or the maximum is used up. */
struct slice arena_printf(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);
struct slice arena_vprintf(struct arena *arena, const char *format, va_list arguments)
    PRINTF_LIKE(2, 0);

/* Appends to a text that is empty, or was made by this function. Its memory doubles when it is
 * full, so the cost of many appends is linear. False if memory or the maximum is used up. */
bool arena_append(struct arena *arena, struct slice *text, struct slice more);

/*
 * Makes room for one more element in an array of count elements of `size` bytes. Returns the array,
 * which moves when count is a power of two, or NULL if memory or the maximum is used up.
 */
void *arena_grow(struct arena *arena, void *array, size_t count, size_t size);

/* The same for an array of malloc. NULL: no memory; the array stays as it is. */
void *array_grow(void *array, size_t count, size_t size);

#endif
