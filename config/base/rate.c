#include "config/base/rate.h"

void rate_init(struct rate *rate, double per_second, double burst, uint64_t now_ns)
{
    *rate = (struct rate){per_second, burst, burst, now_ns};
}

double rate_left(struct rate *rate, uint64_t now_ns)
{
    rate->left += (double)(now_ns - rate->refilled_ns) / 1e9 * rate->per_second;
    rate->refilled_ns = now_ns;
    if (rate->left > rate->burst)
        rate->left = rate->burst;
    return rate->left;
}

bool rate_take(struct rate *rate, uint64_t now_ns)
{
    if (rate_left(rate, now_ns) < 1)
        return false;
    rate->left -= 1;
    return true;
}
