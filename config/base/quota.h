/*
 * quota: limits of memory, and of how often something happens.
 *
 * A quota limits the total memory of many users (arenas and buffers), each of which also has its
 * own maximum. Memory is counted when it is taken, not reserved in advance: a user that wants more
 * than is left gets nothing, and may try again later. With small_bytes, reserve_bytes of it are
 * left to users that have at most that, so that those who take much do not stop those who take
 * little.
 *
 * Threads: any for a quota; a share, and a rate, belong to one thread.
 */
#ifndef CONFIG_BASE_QUOTA_H
#define CONFIG_BASE_QUOTA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct quota {
    atomic_size_t used_bytes;
    atomic_size_t max_bytes;
    size_t small_bytes, reserve_bytes; /* set once; 0: all of it is for all */
};

/* One user's part. */
struct quota_share {
    struct quota *quota;
    size_t used_bytes;
    bool was_refused; /* the user sets it back to false */
};

/* Counts bytes that are allocated. A NULL share has no limit. Returns false, and counts nothing, if
 * less is left. */
static inline bool quota_take(struct quota_share *share, size_t bytes)
{
    if (share == NULL)
        return true;
    struct quota *quota = share->quota;
    size_t max = atomic_load(&quota->max_bytes);
    if (share->used_bytes + bytes > quota->small_bytes)
        max -= quota->reserve_bytes;
    size_t used = atomic_load(&quota->used_bytes);
    do { /* not added before it is known to fit: another user, who takes little, would not */
        if (bytes > max || used > max - bytes) {
            share->was_refused = true;
            return false;
        }
    } while (!atomic_compare_exchange_weak(&quota->used_bytes, &used, used + bytes));
    share->used_bytes += bytes;
    return true;
}

/* Counts bytes that are freed. */
static inline void quota_give(struct quota_share *share, size_t bytes)
{
    if (share == NULL)
        return;
    atomic_fetch_sub(&share->quota->used_bytes, bytes);
    share->used_bytes -= bytes;
}

/* Whether less than a quarter of it is in use. */
static inline bool quota_is_ample(struct quota *quota)
{
    return atomic_load(&quota->used_bytes) < atomic_load(&quota->max_bytes) / 4;
}

/* ---- rates ---- */

/* Limits how often something happens (a token bucket): `burst` times at once, and `per_second` on
 * average. */
struct rate {
    double per_second, burst;
    double left; /* tokens */
    uint64_t refilled_ns;
};

static inline void rate_init(struct rate *rate, double per_second, double burst, uint64_t now_ns)
{
    *rate = (struct rate){per_second, burst, burst, now_ns};
}

/* How often it may happen now. */
static inline double rate_left(struct rate *rate, uint64_t now_ns)
{
    rate->left += (double)(now_ns - rate->refilled_ns) / 1e9 * rate->per_second;
    rate->refilled_ns = now_ns;
    if (rate->left > rate->burst)
        rate->left = rate->burst;
    return rate->left;
}

/* Whether it may happen now; if so, it is counted. */
static inline bool rate_take(struct rate *rate, uint64_t now_ns)
{
    if (rate_left(rate, now_ns) < 1)
        return false;
    rate->left -= 1;
    return true;
}

#endif
