/* claimguard doctor: texts as Go reads them, and limits. Its rules have cases in tests/commands. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "extender/commands/doctor/doctor.h"
#include "support/process.h"

static const struct {
    const char *text;
    bool is_duration;
    int64_t ms;
} durations[] = {
    {"5s", true, 5000},
    {"1m30s", true, 90000},
    {"1.5h", true, 5400000},
    {".5s", true, 500},
    {"1.s", true, 1000},
    {"-1s", true, -1000},
    {"+2ms", true, 2},
    {"0", true, 0},
    {"100us", true, 0},
    {"1500\xC2\xB5s", true, 1},
    {"2540400h", true, 9145440000000},
    {"", false, 0},
    {"5", false, 0},
    {"-", false, 0},
    {"s", false, 0},
    {"5 s", false, 0},
    {"1.2.3s", false, 0},
    {"5S", false, 0},
    {"5d", false, 0},
    {"2562048h", false, 0},
    {".s", false, 0},
    {"0x5s", false, 0},
    {"1e3s", false, 0},
};

Test(doctor, durations_are_read_as_go_reads_them)
{
    for (size_t i = 0; i < sizeof durations / sizeof *durations; i++) {
        int64_t ms = -77;
        bool is_duration = go_duration_ms(&ms, slice_of(durations[i].text));
        cr_expect_eq(is_duration, durations[i].is_duration, "%s", durations[i].text);
        if (is_duration)
            cr_expect_eq(ms, durations[i].ms, "%s: %lld", durations[i].text, (long long)ms);
    }
}

static const struct {
    const char *name;
    bool is_extended;
} names[] = {
    {"claimguard.io/claims", true},
    {"a/b", true},
    {"a/B_c.d-e", true},
    {"cpu", false},
    {"/b", false},
    {"a/", false},
    {"a/b/c", false},
    {"A/b", false},
    {"kubernetes.io/b", false},
    {"x.kubernetes.io/b", false},
    {"requests.a/b", false},
    {"a/-b", false},
    {"a b/c", false},
    {"", false},
};

Test(doctor, names_of_extended_resources_are_those_of_kubernetes)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        cr_expect_eq(go_is_extended_resource(slice_of(names[i].name)), names[i].is_extended, "%s",
                     names[i].name);
}

static const struct {
    const char *text, *scheme, *host, *path;
    unsigned port;
} urls[] = {
    {"http://a", "http", "a", "", 80},
    {"HTTPS://a.b:8888/", "https", "a.b", "", 8888},
    {"https://a/x//", "https", "a", "/x", 443},
    {"http://[::1]:1/x", "http", "::1", "/x", 1},
    {"a:8888", NULL, NULL, NULL, 0},
    {"ftp://a", NULL, NULL, NULL, 0},
    {"http://", NULL, NULL, NULL, 0},
    {"http://a:99999", NULL, NULL, NULL, 0},
    {"", NULL, NULL, NULL, 0},
};

Test(doctor, urls_are_split)
{
    struct arena arena;

    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        struct url url;
        bool is_url = go_url(&url, slice_of(urls[i].text), &arena);
        cr_expect_eq(is_url, urls[i].scheme != NULL, "%s", urls[i].text);
        if (!is_url || urls[i].scheme == NULL)
            continue;
        cr_expect(slice_equal(url.scheme, slice_of(urls[i].scheme)), "%s", urls[i].text);
        cr_expect(slice_equal(url.host, slice_of(urls[i].host)), "%s", urls[i].text);
        cr_expect(slice_equal(url.path, slice_of(urls[i].path)), "%s", urls[i].text);
        cr_expect_eq(url.port, urls[i].port, "%s", urls[i].text);
    }
    arena_dispose(&arena);
}

/* A scheduler's file with a list of that many empty items. Returns what reading it returns. */
static int read_items(const char *list, int count)
{
    char path[] = "/tmp/test-doctor-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    struct scheduler_file out;
    struct arena arena;
    struct error err = {0};

    (void)fprintf(file,
                  "apiVersion: kubescheduler.config.k8s.io/v1\n"
                  "kind: KubeSchedulerConfiguration\n%s:\n",
                  list);
    for (int i = 0; i < count; i++)
        (void)fputs("- {}\n", file);
    (void)fclose(file);
    arena_init(&arena, 64 << 20);
    int rc = scheduler_file_read(&out, path, NULL, &arena, &err);
    arena_dispose(&arena);
    (void)unlink(path);
    return rc;
}

Test(doctor, a_file_has_bounded_lists)
{
    cr_expect_eq(read_items("extenders", SCHEDULER_EXTENDERS_MAX), 0);
    cr_expect_eq(read_items("extenders", SCHEDULER_EXTENDERS_MAX + 1), ERROR_INVALID);
    cr_expect_eq(read_items("profiles", SCHEDULER_PROFILES_MAX), 0);
    cr_expect_eq(read_items("profiles", SCHEDULER_PROFILES_MAX + 1), ERROR_INVALID);
}

enum { DAY_S = 24 * 60 * 60 };

/* Of a file that is valid from 2020 to 2120. */
Test(doctor, certificates_end)
{
    char *pem = read_file(TESTS_DIR "/commands/doctor/cg610_not_with_one_between/tls.crt");
    struct certificate_list list;

    cr_assert(certificate_list_read(&list, slice_of(pem)));
    int64_t begin_s = gnutls_x509_crt_get_activation_time(list.items[0]);
    int64_t end_s = gnutls_x509_crt_get_expiration_time(list.items[0]);
    const struct {
        int64_t now_s;
        enum certificate_life life;
    } rows[] = {
        {begin_s - 1, LIFE_NOT_BEGUN},     {begin_s, LIFE_LONG},
        {end_s - 14LL * DAY_S, LIFE_LONG}, {end_s - 14LL * DAY_S + 1, LIFE_ENDS_SOON},
        {end_s - 1, LIFE_ENDS_SOON},       {end_s, LIFE_ENDED},
    };
    cr_expect_eq(list.count, 2);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(certificate_list_life(&list, rows[i].now_s), rows[i].life, "row %zu", i);
    certificate_list_free(&list);
    cr_expect_not(certificate_list_read(&list, SLICE("-----BEGIN CERTIFICATE-----\nAAAA\n")));
    cr_expect_eq(list.count, 0);
    free(pem);
}

Test(doctor, findings_beyond_the_limit_are_counted)
{
    struct findings findings;
    struct arena arena;

    arena_init(&arena, 16 << 20);
    findings_init(&findings, doctor_rules, "doctor", &arena);
    findings.most = 1000;
    for (int i = 0; i < 1003; i++)
        finding_add(&findings, CG501, (struct location){.file = "f"}, "", "%d", i);
    cr_expect_eq(findings.count, 1000);
    cr_expect_eq(findings.dropped, 3);
    cr_expect(findings_fail(&findings));
    findings_dispose(&findings);
    arena_dispose(&arena);
}
