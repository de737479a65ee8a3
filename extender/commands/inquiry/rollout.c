#include "extender/commands/inquiry/rollout.h"

enum { DEFAULT_PERCENT = 25, DIGITS_MAX = 9 };

/* The digits at the start of *text as a number. False: there are none, or too many. */
static bool take_digits(struct slice *text, int64_t *value)
{
    size_t i = 0;

    *value = 0;
    for (; i < text->len && i < DIGITS_MAX && text->ptr[i] >= '0' && text->ptr[i] <= '9'; i++)
        *value = *value * 10 + (text->ptr[i] - '0');
    *text = (struct slice){text->ptr + i, text->len - i};
    return i != 0;
}

struct amount amount_of(struct slice json)
{
    struct slice rest = json;
    struct amount amount = {AMOUNT_INVALID, 0};

    if (json.len == 0 || slice_equal(json, SLICE("null")))
        return (struct amount){AMOUNT_UNSET, 0};
    bool is_string = json.ptr[0] == '"';
    if (is_string)
        rest = (struct slice){json.ptr + 1, json.len - 1};
    if (!take_digits(&rest, &amount.value))
        return amount;
    if (!is_string && rest.len == 0)
        amount.unit = AMOUNT_PODS;
    else if (is_string && slice_equal(rest, SLICE("%\"")))
        amount.unit = AMOUNT_PERCENT;
    return amount;
}

static int64_t scale(struct amount amount, int64_t replicas, bool rounds_up)
{
    if (amount.unit == AMOUNT_PODS)
        return amount.value;
    int64_t percent = amount.unit == AMOUNT_UNSET ? DEFAULT_PERCENT : amount.value;
    return (percent * replicas + (rounds_up ? 99 : 0)) / 100;
}

struct rollout rollout_of(const struct rollout_spec *spec)
{
    struct rollout rollout = {.is_known = true};

    if (slice_equal(spec->strategy, SLICE("Recreate"))) {
        rollout.is_recreate = true;
        return rollout;
    }
    rollout.is_known =
        (spec->strategy.len == 0 || slice_equal(spec->strategy, SLICE("RollingUpdate"))) &&
        spec->surge.unit != AMOUNT_INVALID && spec->unavailable.unit != AMOUNT_INVALID &&
        spec->replicas >= 0 && spec->replicas <= INT32_MAX;
    if (!rollout.is_known)
        return rollout;
    rollout.surge = scale(spec->surge, spec->replicas, true);
    rollout.unavailable = scale(spec->unavailable, spec->replicas, false);
    if (rollout.surge == 0 && rollout.unavailable == 0)
        rollout.unavailable = 1; /* ResolveFenceposts: something has to be allowed */
    if (rollout.unavailable > spec->replicas)
        rollout.unavailable = spec->replicas;
    return rollout;
}

bool rollout_adds_first(const struct rollout_spec *spec)
{
    struct rollout rollout = rollout_of(spec);

    return spec->replicas > 0 && rollout.is_known && !rollout.is_recreate && rollout.surge > 0 &&
           rollout.unavailable == 0;
}
