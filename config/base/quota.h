/*
 * quota: a bound on the memory of many users together, each of which has a bound of its own. It is
 * counted, not reserved: who asks for more than is left gets none, and may try again later.
 *
 * Threads: any, but a share is one thread's.
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
    bool was_refused; /* once, since the user last set it to false */
};

/* A NULL share has no bound. */
bool quota_take(struct quota_share *share, size_t bytes);
void quota_give(struct quota_share *share, size_t bytes);

/* Whether less than a quarter is in use. */
bool quota_is_ample(struct quota *quota);

#endif
