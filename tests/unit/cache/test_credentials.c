/* Tokens, and what a plugin gave: when they are read again. */
#include "unit/cache/credentials_bench.h"

TestSuite(credentials, .init = setup, .fini = teardown);

Test(credentials, a_token_file_is_read_again_after_a_second)
{
    struct kubeconfig kubeconfig = {.token_file = write_file("token", "first\n", 0600)};
    struct credentials credentials;
    struct error err = {0};

    credentials_init(&credentials, &kubeconfig);
    cr_assert(get(&credentials, 0, &err) == 0, "%s", err.message);
    cr_expect(slice_equal(credentials.token, SLICE("first")));
    (void)write_file("token", "second", 0600);
    cr_assert(get(&credentials, 0, &err) == 0);
    cr_expect(slice_equal(credentials.token, SLICE("first")));
    cr_assert(get(&credentials, 1, &err) == 0);
    cr_expect(slice_equal(credentials.token, SLICE("second")));
    (void)write_file("token", "third", 0600);
    credentials_reject(&credentials, credentials.generation, at_ns(1));
    cr_assert(get(&credentials, 1, &err) == 0);
    cr_expect(slice_equal(credentials.token, SLICE("third")), "the API server has refused it");
    (void)write_file("token", "\n", 0600);
    cr_expect(get(&credentials, 2, &err) == ERROR_INVALID);
    (void)unlink(kubeconfig.token_file);
    cr_expect(get(&credentials, 2, &err) == ERROR_SYSTEM);
    cr_expect(strstr(err.message, "/token: No such file") != NULL, "%s", err.message);
    credentials_dispose(&credentials);
}

Test(credentials, a_plugin_runs_again_before_its_answer_expires)
{
    const char *argv[2];
    struct kubeconfig kubeconfig = plugin(
        ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"2026-11-20T12:05:00+02:00\"}"), argv);
    struct credentials credentials;
    struct error err = {0};

    credentials_init(&credentials, &kubeconfig);
    for (unsigned second = 0; second < 240; second += 60)
        cr_assert(get(&credentials, second, &err) == 0, "%s", err.message);
    cr_expect(slice_equal(credentials.token, SLICE("t")));
    cr_expect_eq(runs(), 1);
    cr_expect(credentials_get(&credentials, at_ns(241), 0, &err) == CREDENTIALS_READY,
              "what it gave is good while it runs");
    cr_assert(get(&credentials, 242, &err) == 0);
    cr_expect_eq(runs(), 2);
    credentials_dispose(&credentials);
}

Test(credentials, what_lasts_for_centuries_is_good_for_a_year)
{
    static const char *const answers[] = {
        ANSWER(
            "{\"token\":\"t\",\"expirationTimestamp\":\"2611-06-11T09:35:04Z\"}"), /* 2^64 ns, and a
                                                                                      bit */
        ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"9999-12-31T23:59:59Z\"}"),
    };

    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        const char *argv[2];
        struct kubeconfig kubeconfig = plugin(answers[i], argv);
        struct credentials credentials;
        struct error err = {0};
        credentials_init(&credentials, &kubeconfig);
        for (unsigned day = 0; day < 300; day += 100)
            cr_assert(get(&credentials, day * 86400, &err) == 0, "%s", err.message);
        cr_expect_eq(runs(), i + 1);
        credentials_dispose(&credentials);
    }
}

Test(credentials, a_step_of_the_wall_clock_changes_nothing)
{
    const char *argv[2];
    struct kubeconfig kubeconfig =
        plugin(ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"2026-11-20T11:00:00Z\"}"), argv);
    struct credentials credentials;
    struct error err = {0};

    credentials_init(&credentials, &kubeconfig);
    cr_assert(get(&credentials, 0, &err) == 0, "%s", err.message);
    for (int64_t step_ms = -86400000; step_ms <= 86400000; step_ms += 86400000)
        cr_expect(credentials_get(&credentials, at_ns(60), start_ms + step_ms, &err) == 0);
    cr_expect_eq(runs(), 1);
    credentials_dispose(&credentials);
}

Test(credentials, what_seems_to_have_expired_on_arrival_is_used_for_a_while)
{
    const char *argv[2];
    struct kubeconfig kubeconfig =
        plugin(ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"2026-11-20T09:00:00Z\"}"), argv);
    struct credentials credentials;
    struct error err = {0};

    credentials_init(&credentials, &kubeconfig);
    for (unsigned second = 0; second < 15; second++)
        cr_assert(get(&credentials, second, &err) == 0, "%s", err.message);
    cr_expect_eq(runs(), 1, "a clock is wrong, and the API server may know better");
    credentials_dispose(&credentials);
}

Test(credentials, a_plugin_runs_again_after_a_refusal_and_not_too_often)
{
    const char *argv[2];
    struct kubeconfig kubeconfig = plugin(ANSWER("{\"token\":\"t\"}"), argv);
    struct credentials credentials;
    struct error err = {0};

    credentials_init(&credentials, &kubeconfig);
    cr_assert(get(&credentials, 0, &err) == 0, "%s", err.message);
    credentials_reject(&credentials, credentials.generation - 1, at_ns(99));
    cr_assert(get(&credentials, 100, &err) == 0);
    cr_expect_eq(runs(), 1, "a former one was refused");
    credentials_reject(&credentials, credentials.generation, at_ns(100));
    cr_assert(get(&credentials, 100, &err) == 0);
    cr_expect_eq(runs(), 2, "it was good for long: at once");
    for (unsigned i = 0; i < 8; i++) {
        credentials_reject(&credentials, credentials.generation, at_ns(101 + i));
        (void)get(&credentials, 101 + i, &err);
    }
    cr_expect_eq(runs(), 4, "got %zu: after 1 s, then after 2 s", runs());
    cr_expect(get(&credentials, 109, &err) == ERROR_UNAVAILABLE &&
                  strstr(err.message, "(401)") != NULL,
              "%s", err.message);
    credentials_dispose(&credentials);
}

Test(credentials, a_plugin_that_fails_has_pauses_that_grow)
{
    const char *argv[2];
    struct kubeconfig kubeconfig = plugin("exit 3", argv);
    struct credentials credentials;
    struct error err = {0};

    credentials_init(&credentials, &kubeconfig);
    for (unsigned second = 0; second < 200; second++)
        cr_expect(get(&credentials, second, &err) == ERROR_UNAVAILABLE);
    cr_expect_eq(runs(), 9, "got %zu, want those at 0, 1, 3, 7, 15, 31, 63, 123, 183", runs());
    credentials_dispose(&credentials);
}

Test(credentials, what_is_good_stays_good_while_the_plugin_fails)
{
    const char *argv[2];
    struct kubeconfig kubeconfig =
        plugin("[ $(wc -l <$(dirname $0)/runs) = 1 ] || exit 3\n" ANSWER(
                   "{\"token\":\"t\",\"expirationTimestamp\":\"2026-11-20T10:10:00Z\"}"),
               argv);
    struct credentials credentials;
    struct error err = {0};

    credentials_init(&credentials, &kubeconfig);
    for (unsigned second = 0; second < 600; second += 10)
        cr_assert(get(&credentials, second, &err) == 0, "%s", err.message);
    cr_expect(runs() > 1);
    cr_expect(get(&credentials, 600, &err) == ERROR_UNAVAILABLE, "it has ended");
    credentials_dispose(&credentials);
}

Test(credentials, what_a_plugin_gives_takes_the_place_of_all_that_it_gave_before)
{
    const char *argv[2];
    struct kubeconfig kubeconfig =
        plugin("[ $(wc -l <$(dirname $0)/runs) = 1 ] || { " ANSWER(
                   "{\"token\":\"T\"}") "; exit; }\n" ANSWER("{\"clientCertificateData\":\"C\","
                                                             "\"clientKeyData\":\"K\"}"),
               argv);
    struct credentials credentials;
    struct error err = {0};

    credentials_init(&credentials, &kubeconfig);
    cr_assert(get(&credentials, 0, &err) == 0, "%s", err.message);
    cr_expect(slice_equal(credentials.cert.data, SLICE("C")) && credentials.token.len == 0);
    credentials_reject(&credentials, credentials.generation, at_ns(99));
    cr_assert(get(&credentials, 100, &err) == 0, "%s", err.message);
    cr_expect(slice_equal(credentials.token, SLICE("T")));
    cr_expect(credentials.cert.data.len == 0 && credentials.key.data.len == 0);
    credentials_dispose(&credentials);
}
