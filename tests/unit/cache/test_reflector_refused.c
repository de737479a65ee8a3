/* What a reflector does with answers that are none, and with objects that cannot be read. */
#include "unit/cache/reflector_bench.h"

/* An event whose object has these members behind its metadata's, and those behind its own. */
#define EVENT(type_, name_, version_, more_meta_, more_) \
    "{\"type\":\"" type_ "\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{" \
    "\"name\":\"" name_ "\",\"namespace\":\"d\",\"uid\":\"u-" name_ \
    "\",\"resourceVersion\":\"" version_ "\"" more_meta_ "}" more_ "}}\n"
#define UNREADABLE ",\"deletionTimestamp\":7"  /* it has to be a string */
#define BROKEN     ",\"spec\":{\"x\":\"\\q\"}" /* no JSON */

Test(reflector_refused, what_kubernetes_takes_stops_nothing)
{
    struct bench *bench = watching();
    char deep[4096] = EVENT("ADDED", "deep", "13", ",\"managedFields\":", "");
    char *at = strstr(deep, "\"managedFields\":") + strlen("\"managedFields\":");
    char tail[64];

    cr_expect(gets(bench, 200,
                   EVENT("ADDED", "nul", "11", ",\"annotations\":{\"x\":\"a\\u0000b\"}", "")));
    cr_expect(gets(bench, 200,
                   EVENT("ADDED", "args", "12", "",
                         ",\"spec\":{\"containers\":[{\"args\":[\"\\u0000\",\"\\ud800\",\"\xff\"],"
                         "\"env\":[{\"name\":\"E\",\"value\":\"\\u0000\"}],\"x\":1e999}]}")));
    (void)snprintf(tail, sizeof tail, "%s", at);
    for (int i = 0; i < 300; i++)
        at += sprintf(at, "{\"f\":");
    at += sprintf(at, "{}");
    for (int i = 0; i < 300; i++)
        *at++ = '}';
    (void)strcpy(at, tail); /* NOLINT: fits */
    cr_expect(gets(bench, 200, deep));
    saw(bench, "+nul@11 +args@12 +deep@13 ");
    cr_expect(atomic_load(&bench->status.skipped) == 0);
    bench_free(bench);
}

Test(reflector_refused, the_watch_goes_on_behind_an_object_that_cannot_be_read)
{
    struct bench *bench = watching();

    cr_expect(gets(bench, 200, EVENT("MODIFIED", "a", "11", UNREADABLE, "")));
    saw(bench, "");
    cr_expect(atomic_load(&bench->status.skipped) == 1);
    cr_expect_str_eq(bench->reflector.version, "11");
    cr_expect(gets(bench, 200, POD("ADDED", "b", "12")));
    saw(bench, "+b@12 ");
    bench_free(bench);
}

Test(reflector_refused, what_is_deleted_is_gone_even_if_it_cannot_be_read)
{
    struct bench *bench = watching();

    cr_expect(gets(bench, 200, EVENT("DELETED", "a", "11", UNREADABLE, "")));
    saw(bench, "-a@11 ");
    /* but not if nobody knows which one it is */
    cr_expect(
        gets(bench, 200,
             "{\"type\":\"DELETED\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\","
             "\"uid\":\"u\",\"resourceVersion\":\"12\",\"deletionTimestamp\":7}}}\n"
             "{\"type\":\"DELETED\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\","
             "\"namespace\":\"d\",\"resourceVersion\":\"13\",\"deletionTimestamp\":7}}}\n"));
    saw(bench, "");
    cr_expect_str_eq(bench->reflector.version, "13");
    bench_free(bench);
}

Test(reflector_refused, a_list_keeps_what_it_names_and_nobody_can_read)
{
    struct bench *bench = paging();

    asks(bench, "limit=500");
    cr_expect(gets_in(bench, 200,
                      PAGE("10", "",
                           ITEM("a", "1") ",{\"metadata\":{\"name\":\"b\","
                                          "\"namespace\":\"e\",\"deletionTimestamp\":7}},"
                                          "{\"metadata\":{\"name\":\"c\","
                                          "\"deletionTimestamp\":7}},{\"metadata\":7}"),
                      9));
    ends(bench, 200);
    saw(bench, "begin +a@1 =e/b =/ =/ end@10 ");
    bench_free(bench);

    bench = bench_new(KIND_POD);
    asks(bench, "sendInitialEvents=true");
    cr_expect(gets(bench, 200,
                   EVENT("ADDED", "b", "5", UNREADABLE, "") EVENT("ADDED", "a", "6", "", "")
                       INITIAL_END("10")));
    saw(bench, "begin =d/b +a@6 end@10 ");
    bench_free(bench);
}

Test(reflector_refused, a_line_that_is_no_json_is_asked_for_again_and_then_passed_over)
{
    static const struct {
        const char *line, *seen;
    } rows[] = {{EVENT("MODIFIED", "a", "11", "", BROKEN), ""},
                {EVENT("DELETED", "a", "11", "", BROKEN), "-a@11 "}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bench *bench = watching();
        for (int j = 0; j < REFUSED_MAX - 1; j++) {
            cr_expect(!gets(bench, 200, rows[i].line));
            is_cut(bench);
            probes(bench);
            asks(bench, "watch=1 resourceVersion=10");
        }
        cr_expect(gets(bench, 200, rows[i].line));
        saw(bench, rows[i].seen);
        cr_expect_str_eq(bench->reflector.version, "11");
        cr_expect(atomic_load(&bench->status.skipped) == 1);
        cr_expect(gets(bench, 200, POD("ADDED", "b", "12")));
        saw(bench, "+b@12 ");
        bench_free(bench);
    }
}

Test(reflector_refused, a_watch_that_is_refused_three_times_is_listed_again)
{
    static const char *const answers[] = {
        ERROR_EVENT("500", "InternalError", "no"),
        ERROR_EVENT("503", "ServiceUnavailable", "no"),
        "nonsense\n",
        "{}\n",
        "{}",
        "",
        "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":500}",
        EVENT("PUSHED", "a", "11", "", ""),
        "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Secret\",\"metadata\":{\"name\":\"a\","
        "\"namespace\":\"d\",\"resourceVersion\":\"11\"}}}\n",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\","
        "\"resourceVersion\":\"11\"}}}\n",
        "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Node\",\"metadata\":{\"resourceVersion\":"
        "\"11\"}}}\n",
        BOOKMARK(""),
        BOOKMARK("x"),
        BOOKMARK("0"),
        BOOKMARK("10") ERROR_EVENT("500", "InternalError", "no"), /* it has nothing new */
        /* truncated before its name */
        "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"x\":\n",
    };

    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct bench *bench = watching();
        is_cut(bench); /* that is none: something good came */
        double wait = 0;
        for (int j = 0; j < REFUSED_MAX; j++) {
            probes(bench);
            asks(bench, "watch=1 resourceVersion=10");
            is_refused(bench, answers[i]);
            cr_expect(wait_seconds(bench) > wait / 3, "%s", answers[i]);
            wait = wait_seconds(bench);
        }
        cr_expect(wait >= 0.7, "%g s: %s", wait, answers[i]);
        saw(bench, "");
        asks(bench, "limit=500 !continue !resourceVersion=");
        cr_expect(gets(bench, 200, PAGE("20", "", ITEM("b", "12"))), "%s", answers[i]);
        ends(bench, 200);
        saw(bench, "begin +b@12 end@20 ");
        asks(bench, "watch=1 resourceVersion=20");
        bench_free(bench);
    }
}

Test(reflector_refused, a_watch_that_lasts_and_ends_well_is_no_refusal_and_ends_their_row)
{
    struct bench *bench = watching();

    is_cut(bench);
    for (int i = 0; i < 3 * REFUSED_MAX; i++) {
        probes(bench);
        asks(bench, "watch=1 resourceVersion=10");
        if (i % REFUSED_MAX != REFUSED_MAX - 1) {
            is_refused(bench, ERROR_EVENT("500", "InternalError", "no"));
            continue;
        }
        bench->now += 45 * S; /* nothing happened */
        ends(bench, 200);
    }
    probes(bench); /* it was never listed */
    bench_free(bench);
}

Test(reflector_refused, lists_are_farther_and_farther_apart_where_no_watch_works)
{
    struct bench *bench = watching();
    double last = 0;

    for (int i = 0; i < 12; i++) {
        for (int j = 0; j < REFUSED_MAX; j++) {
            is_refused(bench, ERROR_EVENT("500", "InternalError", "no"));
            if (j < REFUSED_MAX - 1) {
                probes(bench);
                asks(bench, "watch=1");
            }
        }
        last = wait_seconds(bench);
        asks(bench, "limit=500");
        cr_expect(gets(bench, 200, PAGE("20", "", "")));
        ends(bench, 200);
        asks(bench, "watch=1");
    }
    cr_expect(last >= 30 && last <= 60, "it is %g s", last);
    cr_expect_not(is_stalled(bench), "the lists advance");
    bench_free(bench);
}

/* The page comes in pieces of this size. */
static void is_no_list(const char *page, size_t size)
{
    struct bench *bench = paging();

    asks(bench, "limit=500");
    if (gets_in(bench, 200, page, size))
        ends(bench, 200);
    else
        is_cut(bench);
    saw(bench, "");
    restarted(bench, RESTART_MALFORMED);
    cr_expect_not(atomic_load(&bench->status.is_synced));
    cr_expect(wait_seconds(bench) > 0);
    asks(bench, "limit=500 !continue");
    cr_expect(bench->reflector.news == 0);
    bench_free(bench);
}

Test(reflector_refused, a_page_that_is_no_list_changes_nothing)
{
    static const char *const pages[] = {
        "{}",
        "[]",
        "",
        "null",
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"9\"},"
        "\"status\":\"Failure\",\"code\":500}",
        "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"9\"}}",
        "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[]}",
        "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":[]}",
        "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"0\"},"
        "\"items\":[]}",
        "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"x\"},"
        "\"items\":[]}",
        "{\"kind\":\"PodList\",\"apiVersion\":\"apps/v1\",\"metadata\":{\"resourceVersion\":\"9\"},"
        "\"items\":[]}",
        "{\"kind\":\"SecretList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"9\"},"
        "\"items\":[" ITEM("a", "1") "]}",
        "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"9\"},"
        "\"items\":[]}",
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"9\"},"
        "\"items\":[]}",
        "{\"items\":[" ITEM("a", "1") "],\"kind\":\"PodList\",\"apiVersion\":\"v1\","
                                      "\"metadata\":{\"resourceVersion\":\"9\"}}",
        "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"9\"},"
        "\"items\":{}}",
    };

    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        for (size_t size = 1; size < 200; size += 60)
            is_no_list(pages[i], size);
}

Test(reflector_refused, initial_events_end_at_a_version)
{
    static const char *const ends[] = {INITIAL_END(""), INITIAL_END("0"), INITIAL_END("[10")};

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct bench *bench = bench_new(KIND_POD);
        asks(bench, "sendInitialEvents=true");
        cr_expect_not(gets(bench, 200, ends[i]), "%s", ends[i]);
        is_cut(bench);
        saw(bench, "");
        restarted(bench, RESTART_MALFORMED);
        bench_free(bench);
    }
}

Test(reflector_refused, an_item_of_another_kind_is_no_item)
{
    struct bench *bench = paging();

    asks(bench, "limit=500");
    cr_expect_not(gets(bench, 200,
                       PAGE("10", "",
                            "{\"kind\":\"Secret\",\"apiVersion\":\"v1\",\"metadata\":{"
                            "\"name\":\"a\",\"namespace\":\"d\"}}")));
    is_cut(bench);
    saw(bench, "begin ");
    bench_free(bench);
}

Test(reflector_refused, a_next_page_that_never_comes_starts_the_list_again)
{
    struct bench *bench = paging();

    asks(bench, "limit=500");
    cr_expect(gets(bench, 200, PAGE("10", "t1", ITEM("a", "1"))));
    ends(bench, 200);
    for (int i = 0; i < REFUSED_MAX; i++) {
        asks(bench, "limit=500 continue=t1");
        ends(bench, 500);
    }
    asks(bench, "limit=500 !continue");
    bench_free(bench);
}

Test(reflector_refused, a_probe_that_is_no_list_is_not_passed)
{
    static const char *const answers[] = {
        "",
        "Welcome!",
        "{}",
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\"}",
        "{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"11\"},\"items\":[]}",
        "{\"kind\":\"PodList\",\"metadata\":{},\"items\":[]}",
        "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"11\"",
    };

    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct bench *bench = watching();
        is_cut(bench);
        for (int times = 0; times < REFUSED_MAX; times++) {
            asks(bench, "limit=1 resourceVersion=10");
            cr_expect(gets(bench, 200, answers[i]));
            ends(bench, 200);
            cr_expect(atomic_load(&bench->status.restarts[RESTART_MALFORMED]) ==
                      (unsigned)times + 1);
            cr_expect(wait_seconds(bench) > 0, "%s", answers[i]);
        }
        asks(bench, "limit=500 !continue !resourceVersion=");
        bench_free(bench);
    }
}

Test(reflector_refused, a_probe_may_be_long_and_its_object_is_of_no_account)
{
    struct bench *bench = watching();

    is_cut(bench);
    asks(bench, "limit=1");
    cr_expect(gets_in(bench, 200, PAGE("12", "t/1", ITEM("a", "5")), 7));
    for (int i = 0; i < 1000; i++)
        cr_expect(gets(bench, 200, "nothing that anybody could read\n"));
    ends(bench, 200);
    asks(bench, "watch=1 resourceVersion=10");
    saw(bench, "");
    bench_free(bench);
}

Test(reflector_refused, a_probe_of_an_older_version_lists_again)
{
    struct bench *bench = watching();

    is_cut(bench);
    asks(bench, "limit=1 resourceVersion=10");
    cr_expect(gets(bench, 200, PAGE("8", "", ITEM("a", "5"))));
    ends(bench, 200);
    cr_expect(atomic_load(&bench->status.restarts[RESTART_OLDER_HISTORY]) == 1);
    asks(bench, "limit=500 !watch !resourceVersion=");
    cr_expect(gets(bench, 200, PAGE("8", "", ITEM("z", "3"))));
    ends(bench, 200);
    saw(bench, "!begin +z@3 end@8 ");
    bench_free(bench);
}
