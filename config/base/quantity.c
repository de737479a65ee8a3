#include "config/base/quantity.h"

#include <stdio.h>

struct unit {
    const char *suffix;
    int64_t factor;
};

/* The largest first, because print() uses the first that divides the value. */
static const struct unit byte_units[] = {
    {"Ti", INT64_C(1) << 40},
    {"T", INT64_C(1000000000000)},
    {"Gi", 1 << 30},
    {"G", 1000000000},
    {"Mi", 1 << 20},
    {"M", 1000000},
    {"Ki", 1 << 10},
    {"k", 1000},
    {"", 1},
    {NULL, 0},
};
static const struct unit time_units[] = {
    {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}, {NULL, 0},
};

/* Reads the digits at *at. False if there are none, or if the number does not fit. */
static bool take_digits(int64_t *out, struct slice text, size_t *at)
{
    size_t begin = *at;

    *out = 0;
    for (; *at < text.len && text.ptr[*at] >= '0' && text.ptr[*at] <= '9'; ++*at)
        if (__builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, text.ptr[*at] - '0', out))
            return false;
    return *at != begin;
}

/* Reads the unit at *at, which ends before the next digit. NULL if it is unknown. */
static const struct unit *take_unit(const struct unit *units, struct slice text, size_t *at)
{
    size_t end = *at;

    while (end < text.len && !(text.ptr[end] >= '0' && text.ptr[end] <= '9'))
        end++;
    struct slice suffix = {text.ptr + *at, end - *at};
    *at = end;
    for (; units->suffix != NULL; units++)
        if (slice_equal(suffix, slice_of(units->suffix)))
            return units;
    return NULL;
}

bool quantity_bytes(int64_t *out, struct slice text)
{
    size_t at = 0;

    if (!take_digits(out, text, &at))
        return false;
    const struct unit *unit = take_unit(byte_units, text, &at);
    return unit != NULL && at == text.len && !__builtin_mul_overflow(*out, unit->factor, out);
}

/* ---- any quantity ---- */

__extension__ typedef unsigned __int128 wide;

enum { EXPONENT_MAX = 18, FRACTION_MAX = 9 }; /* further digits of a fraction do not count */

static bool is_digit(struct slice text, size_t at)
{
    return at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9';
}

/* Digits, and perhaps a fraction: the digits as one number, and how many of them are behind the
 * point. Of a number that is too large, *digits is the largest. False: there is no digit. */
static bool take_decimal(struct slice text, size_t *at, uint64_t *digits, int *behind)
{
    bool is_behind = false, is_over = false;
    size_t count = 0;

    for (; is_digit(text, *at) || (!is_behind && *at < text.len && text.ptr[*at] == '.'); ++*at) {
        if (text.ptr[*at] == '.') {
            is_behind = true;
            continue;
        }
        count++;
        if (is_over || (is_behind && *behind == FRACTION_MAX))
            continue;
        *behind += is_behind;
        is_over = __builtin_mul_overflow(*digits, UINT64_C(10), digits) ||
                  __builtin_add_overflow(*digits, (uint64_t)(text.ptr[*at] - '0'), digits);
    }
    if (is_over) {
        *digits = UINT64_MAX;
        *behind = 0;
    }
    return count != 0;
}

/* "Ki", ...: a power of 1024; "n", ..., "E": a power of ten; "e3", "E-3": any power of ten. */
static bool take_scale(struct slice suffix, int *ten, int *two)
{
    static const char *const twos[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    static const char *const tens[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
    int64_t exponent;
    size_t at = 1;

    for (int i = 1; i < 7; i++)
        if (slice_equal(suffix, slice_of(twos[i]))) {
            *two = 10 * i;
            return true;
        }
    for (int i = 0; i < 10; i++)
        if (slice_equal(suffix, slice_of(tens[i]))) {
            *ten = 3 * (i - 3);
            return true;
        }
    if (suffix.len < 2 || (suffix.ptr[0] != 'e' && suffix.ptr[0] != 'E'))
        return false;
    bool is_negative = suffix.ptr[1] == '-';
    at += is_negative || suffix.ptr[1] == '+';
    if (!take_digits(&exponent, suffix, &at) || at != suffix.len)
        return false;
    *ten = exponent > EXPONENT_MAX ? EXPONENT_MAX + 1 : (int)exponent;
    *ten = is_negative ? -*ten : *ten;
    return true;
}

bool quantity_round_up(int64_t *out, struct slice text)
{
    uint64_t digits = 0;
    int behind = 0, ten = 0, two = 0;
    size_t at = 0;

    if (!take_decimal(text, &at, &digits, &behind) ||
        !take_scale((struct slice){text.ptr + at, text.len - at}, &ten, &two))
        return false;
    wide value = (wide)digits << two, divisor = 1;
    for (ten -= behind; ten > 0 && value <= INT64_MAX; ten--)
        value *= 10;
    for (; ten < 0 && divisor <= INT64_MAX; ten++)
        divisor *= 10;
    value = (value + divisor - 1) / divisor;
    *out = value > INT64_MAX ? INT64_MAX : (int64_t)value;
    return true;
}

bool quantity_duration_ms(int64_t *out, struct slice text)
{
    int64_t total = 0;
    size_t at = 0;

    do {
        int64_t number;
        if (!take_digits(&number, text, &at))
            return false;
        const struct unit *unit = take_unit(time_units, text, &at);
        if (unit == NULL || __builtin_mul_overflow(number, unit->factor, &number) ||
            __builtin_add_overflow(total, number, &total))
            return false;
    } while (at < text.len);
    *out = total;
    return true;
}

static const char *print(int64_t value, const struct unit *unit, char *buffer)
{
    while (unit->factor > 1 && (value == 0 || value % unit->factor != 0))
        unit++;
    (void)snprintf(buffer, QUANTITY_TEXT_BYTES, "%lld%s", (long long)(value / unit->factor),
                   unit->suffix);
    return buffer;
}

const char *quantity_bytes_text(int64_t bytes, char buffer[QUANTITY_TEXT_BYTES])
{
    return print(bytes, byte_units, buffer);
}

const char *quantity_duration_text(int64_t ms, char buffer[QUANTITY_TEXT_BYTES])
{
    return print(ms, time_units, buffer);
}
