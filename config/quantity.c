#include "config/quantity.h"

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
