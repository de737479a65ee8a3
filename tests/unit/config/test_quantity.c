#include <criterion/criterion.h>
#include <stdio.h>

#include "config/base/quantity.h"

struct row {
    const char *text;
    bool ok;
    int64_t value;
    const char *printed;
};

/* As Quantity.Value() of k8s.io/apimachinery. */
Test(quantity, any_quantity_is_rounded_up)
{
    static const struct row rows[] = {
        {"0", true, 0, NULL},
        {"1Gi", true, INT64_C(1) << 30, NULL},
        {"1.5Gi", true, INT64_C(3) << 29, NULL},
        {"102400Mi", true, INT64_C(100) << 30, NULL},
        {"1Pi", true, INT64_C(1) << 50, NULL},
        {"7Ei", true, INT64_C(7) << 60, NULL},
        {"8Ei", true, INT64_MAX, NULL},
        {"1E", true, INT64_C(1000000000000000000), NULL},
        {"12E", true, INT64_MAX, NULL},
        {"99999999999999999999999999", true, INT64_MAX, NULL},
        {"1e3", true, 1000, NULL},
        {"1E+3", true, 1000, NULL},
        {"1e30", true, INT64_MAX, NULL},
        {"1500e-3", true, 2, NULL},
        {"1e-30", true, 1, NULL},
        {"100m", true, 1, NULL},
        {"2000m", true, 2, NULL},
        {"1n", true, 1, NULL},
        {".5Ki", true, 512, NULL},
        {"1.", true, 1, NULL},
        {"", false, 0, NULL},
        {".", false, 0, NULL},
        {"Gi", false, 0, NULL},
        {"-1", false, 0, NULL},
        {"1GiB", false, 0, NULL},
        {"1e", false, 0, NULL},
        {"1e3k", false, 0, NULL},
        {"1.5.5", false, 0, NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t value = -1;
        cr_expect_eq(quantity_round_up(&value, slice_of(rows[i].text)), rows[i].ok, "%s",
                     rows[i].text);
        if (rows[i].ok)
            cr_expect_eq(value, rows[i].value, "%s: %lld", rows[i].text, (long long)value);
    }
}

Test(quantity, bytes_are_kubernetes_quantities)
{
    static const struct row rows[] = {
        {"0", true, 0, "0"},
        {"4096", true, 4096, "4Ki"},
        {"64Mi", true, 64 << 20, "64Mi"},
        {"1Gi", true, 1 << 30, "1Gi"},
        {"10k", true, 10000, "10k"},
        {"5M", true, 5000000, "5M"},
        {"1537", true, 1537, "1537"},
        {"", false, 0, NULL},
        {"Mi", false, 0, NULL},
        {"64MB", false, 0, NULL},
        {"64 Mi", false, 0, NULL},
        {"-1", false, 0, NULL},
        {"1.5Gi", false, 0, NULL},
        {"9223372036854775808", false, 0, NULL},
        {"9223372036854775807Ki", false, 0, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t value;
        char text[QUANTITY_TEXT_BYTES];
        bool ok = quantity_bytes(&value, slice_of(rows[i].text));
        cr_expect_eq(ok, rows[i].ok, "%s", rows[i].text);
        if (!ok)
            continue;
        cr_expect_eq(value, rows[i].value, "%s", rows[i].text);
        cr_expect_str_eq(quantity_bytes_text(value, text), rows[i].printed);
    }
}

Test(quantity, durations_are_those_of_go)
{
    static const struct row rows[] = {
        {"30s", true, 30000, "30s"},   {"1m30s", true, 90000, "90s"},
        {"500ms", true, 500, "500ms"}, {"1h", true, 3600000, "1h"},
        {"120s", true, 120000, "2m"},  {"30", false, 0, NULL},
        {"", false, 0, NULL},          {"s", false, 0, NULL},
        {"1d", false, 0, NULL},        {"1m30", false, 0, NULL},
        {"-1s", false, 0, NULL},       {"9223372036854775807h", false, 0, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t value;
        char text[QUANTITY_TEXT_BYTES];
        bool ok = quantity_duration_ms(&value, slice_of(rows[i].text));
        cr_expect_eq(ok, rows[i].ok, "%s", rows[i].text);
        if (!ok)
            continue;
        cr_expect_eq(value, rows[i].value, "%s", rows[i].text);
        cr_expect_str_eq(quantity_duration_text(value, text), rows[i].printed);
    }
}
