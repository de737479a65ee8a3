/*
 * quota: limits the total memory of many users (arenas and buffers), each of which also has its own
 * maximum. Memory is counted when it is taken, not reserved in advance: a user that wants more than
 * is left gets nothing, and may try again later.
 *
 * Threads: any for a quota; a share belongs to one thread.
 */
#ifndef CONFIG_BASE_QUOTA_H
#define CONFIG_BASE_QUOTA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct quota {
    atomic_size_t used_bytes;
    atomic_size_t max_bytes;
};

/* One user's part. */
struct quota_share {
    struct quota *quota;
    bool was_refused; /* the user sets it back to false */
};

/* Counts bytes that are allocated or freed. A NULL share has no limit. quota_take returns false,
 * and counts nothing, if less is left. */
bool quota_take(struct quota_share *share, size_t bytes);
void quota_give(struct quota_share *share, size_t bytes);

/* Whether less than a quarter of it is in use. */
bool quota_is_ample(struct quota *quota);

#endif
