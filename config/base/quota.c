#include "config/base/quota.h"

bool quota_take(struct quota_share *share, size_t bytes)
{
    if (share == NULL)
        return true;
    size_t max = atomic_load(&share->quota->max_bytes);
    size_t before = atomic_fetch_add(&share->quota->used_bytes, bytes);
    if (bytes <= max && before <= max - bytes)
        return true;
    atomic_fetch_sub(&share->quota->used_bytes, bytes);
    share->was_refused = true;
    return false;
}

void quota_give(struct quota_share *share, size_t bytes)
{
    if (share != NULL)
        atomic_fetch_sub(&share->quota->used_bytes, bytes);
}

bool quota_is_ample(struct quota *quota)
{
    return atomic_load(&quota->used_bytes) < atomic_load(&quota->max_bytes) / 4;
}
