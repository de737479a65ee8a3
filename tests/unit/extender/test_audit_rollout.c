/* The arithmetic of a Deployment's rollout, as ResolveFenceposts and MaxUnavailable of
 * k8s.io/kubernetes/pkg/controller/deployment/util compute it. */
#include <criterion/criterion.h>

#include "extender/commands/inquiry/rollout.h"

struct row {
    int64_t replicas;
    const char *strategy, *surge, *unavailable; /* the last two as JSON */
    bool is_known, is_recreate, adds_first;
    int64_t want_surge, want_unavailable;
};

static void check(const struct row *row)
{
    struct rollout_spec spec = {.replicas = row->replicas,
                                .strategy = slice_of(row->strategy),
                                .surge = amount_of(slice_of(row->surge)),
                                .unavailable = amount_of(slice_of(row->unavailable))};
    struct rollout rollout = rollout_of(&spec);

#define NAME "%lld %s %s %s", (long long)row->replicas, row->strategy, row->surge, row->unavailable
    cr_expect_eq(rollout.is_known, row->is_known, NAME);
    cr_expect_eq(rollout.is_recreate, row->is_recreate, NAME);
    cr_expect_eq(rollout.surge, row->want_surge, NAME);
    cr_expect_eq(rollout.unavailable, row->want_unavailable, NAME);
    cr_expect_eq(rollout_adds_first(&spec), row->adds_first, NAME);
}

Test(rollout, percentages_are_rounded_as_the_controller_does)
{
    static const struct row rows[] = {
        /* the defaults, 25 % each */
        {1, "", "", "", true, false, true, 1, 0},
        {1, "RollingUpdate", "null", "null", true, false, true, 1, 0},
        {2, "", "", "", true, false, true, 1, 0},
        {3, "", "", "", true, false, true, 1, 0},
        {4, "", "", "", true, false, false, 1, 1},
        {5, "", "", "", true, false, false, 2, 1},
        {0, "", "", "", true, false, false, 0, 0},
        {150000, "", "", "", true, false, false, 37500, 37500},
        /* numbers, and one of both */
        {1, "", "1", "0", true, false, true, 1, 0},
        {1, "", "0", "1", true, false, false, 0, 1},
        {1, "", "0", "", true, false, false, 0, 1},
        {4, "", "0", "", true, false, false, 0, 1},
        {8, "", "", "0", true, false, true, 2, 0},
        {1, "", "", "1", true, false, false, 1, 1},
        {1, "", "", "5", true, false, false, 1, 1},
        /* both round to 0: one pod may be unavailable */
        {1, "", "0", "0", true, false, false, 0, 1},
        {1, "", "\"0%\"", "\"0%\"", true, false, false, 0, 1},
        {1, "", "\"0%\"", "\"99%\"", true, false, false, 0, 1},
        /* percentages */
        {10, "", "\"1%\"", "\"9%\"", true, false, true, 1, 0},
        {10, "", "\"11%\"", "\"10%\"", true, false, false, 2, 1},
        {3, "", "\"100%\"", "\"100%\"", true, false, false, 3, 3},
        /* Recreate */
        {1, "Recreate", "", "", true, true, false, 0, 0},
        {1, "Recreate", "1", "0", true, true, false, 0, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(&rows[i]);
}

Test(rollout, what_the_api_server_refuses_is_not_known)
{
    static const char *const amounts[] = {"-1",      "\"25\"",   "\"x%\"",      "\"%\"",
                                          "\"\"",    "1.5",      "true",        "{}",
                                          "\"-1%\"", "\"25%%\"", "12345678901", "\"12345678901%\""};

    for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++) {
        check(&(struct row){1, "", amounts[i], "0", false, false, false, 0, 0});
        check(&(struct row){1, "", "1", amounts[i], false, false, false, 0, 0});
    }
    check(&(struct row){1, "Canary", "", "", false, false, false, 0, 0});
    check(&(struct row){-1, "", "", "", false, false, false, 0, 0});
    check(&(struct row){INT64_MAX, "", "", "", false, false, false, 0, 0});
}
