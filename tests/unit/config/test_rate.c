#include <criterion/criterion.h>

#include "config/base/quota.h"

#define S UINT64_C(1000000000)

Test(rate, lets_a_burst_through_and_then_so_many_a_second)
{
    struct rate rate;
    int taken = 0;

    rate_init(&rate, 2, 3, 100 * S);
    for (int i = 0; i < 10; i++)
        taken += rate_take(&rate, 100 * S);
    cr_expect_eq(taken, 3);
    cr_expect(!rate_take(&rate, 100 * S + S / 4));
    cr_expect(rate_take(&rate, 100 * S + S / 2));
    cr_expect(!rate_take(&rate, 100 * S + S / 2));
    for (int i = 0; i < 10; i++)
        taken += rate_take(&rate, 1000 * S);
    cr_expect_eq(taken, 6, "what was not used is not saved up");
}
