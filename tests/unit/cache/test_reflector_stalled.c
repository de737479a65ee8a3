/* What a reflector does when nothing new comes: silence, answers without news, watches that end
 * early. */
#include "config/base/clock.h"
#include "unit/cache/reflector_bench.h"

Test(reflector_stalled, a_watch_that_was_silent_is_found_within_a_minute)
{
    struct bench *bench = watching();

    cr_expect(bench->reflector.deadline_ns - bench->now <= 60 * S, "in the list's own answer");
    ends_with(bench, (struct reflector_ending){.status = 200, .is_silent = true});
    restarted(bench, RESTART_TIMEOUT);
    asks(bench, "limit=1");
    cr_expect(gets(bench, 200, PAGE("10", "", "")));
    ends(bench, 200);
    asks(bench, "watch=1");
    cr_expect(bench->reflector.deadline_ns - bench->now <= 60 * S);
    cr_expect(bench->reflector.deadline_ns - bench->now >= 30 * S);
    ends_with(bench, (struct reflector_ending){.status = 200, .is_silent = true});
    cr_expect(atomic_load(&bench->status.restarts[RESTART_SILENT]) == 1);
    bench_free(bench);
}

Test(reflector_stalled, a_watch_that_ends_well_before_its_time_is_noticed)
{
    struct bench *bench = watching();

    bench->now += 20 * S;
    ends(bench, 200);
    restarted(bench, RESTART_TIMEOUT);
    cr_expect(atomic_load(&bench->status.early_ends) == 1, "the API server shuts down");
    asks(bench, "limit=1");
    cr_expect(gets(bench, 200, PAGE("12", "", ITEM("x", "1"))));
    ends(bench, 200);
    asks(bench, "watch=1");
    bench->now = bench->reflector.deadline_ns - 8 * S; /* the time that was asked for */
    ends(bench, 200);
    cr_expect(atomic_load(&bench->status.early_ends) == 1, "it was its time");
    bench_free(bench);
}

Test(reflector_stalled, a_list_may_take_long_but_not_be_silent)
{
    struct bench *bench = bench_new(KIND_POD);

    asks(bench, "sendInitialEvents timeoutSeconds=3600");
    for (int i = 0; i < 100; i++) {
        cr_expect(bench->now < bench->reflector.deadline_ns);
        bench->now += 19 * S;
        cr_expect(gets(bench, 200, POD("ADDED", "a", "1")));
    }
    cr_expect(bench->reflector.deadline_ns == bench->now + 20 * S);
    bench_free(bench);
}

Test(reflector_stalled, a_stream_of_which_nothing_comes_is_read_in_pages)
{
    struct bench *bench = bench_new(KIND_POD);

    for (int i = 0; i < REFUSED_MAX; i++) {
        asks(bench, "sendInitialEvents=true");
        is_refused(bench, i == 0 ? "{}" : i == 1 ? "" : ERROR_EVENT("500", "InternalError", "no"));
    }
    asks(bench, "limit=500");
    cr_expect(gets(bench, 200, PAGE("10", "", ITEM("a", "1"))));
    ends(bench, 200);
    saw(bench, "begin +a@1 end@10 ");
    asks(bench, "watch=1 resourceVersion=10");
    cr_expect(!gets(bench, 200, ERROR_EVENT("410", "Expired", "too old")));
    is_cut(bench);
    asks(bench, "sendInitialEvents=true"); /* the next one may be streamed again */
    bench_free(bench);
}

Test(reflector_stalled, a_resource_is_stalled_when_nothing_comes_of_answers_for_long)
{
    struct bench *bench = watching();
    uint64_t begun = 0;

    for (int i = 0; !is_stalled(bench) && i < 100; i++) {
        asks(bench, i == 0 ? "" : bench->reflector.phase == PHASE_WATCH ? "watch=1" : "limit=");
        begun = begun == 0 ? bench->now : begun;
        if (gets(bench, 200, bench->reflector.phase == PHASE_WATCH ? "nonsense\n" : "{}"))
            ends(bench, 200);
        else
            is_cut(bench);
    }
    cr_expect(is_stalled(bench));
    cr_expect(bench->now - begun >= 20 * S && bench->now - begun <= 60 * S, "%g s",
              (double)(bench->now - begun) / 1e9);
    asks(bench, "limit=500 !continue");
    cr_expect(gets(bench, 200, PAGE("20", "", ITEM("a", "1"))));
    ends(bench, 200);
    cr_expect_not(is_stalled(bench));
    bench_free(bench);
}

/* A cache in between that ignores the query answers each page with the first one. */
Test(reflector_stalled, a_list_whose_continue_token_repeats_is_malformed)
{
    struct bench *bench = paging();
    unsigned pages = 0;
    uint64_t begun = bench->now;

    for (; !is_stalled(bench) && pages < 1000; pages++) {
        asks(bench, pages == 0 ? "limit=500 !continue" : "limit=500");
        if (gets(bench, 200, PAGE("10", "again", "")))
            ends(bench, 200);
        else
            is_cut(bench);
    }
    cr_expect(is_stalled(bench));
    cr_expect(bench->now - begun <= 60 * S, "%g s", (double)(bench->now - begun) / 1e9);
    cr_expect(pages < 40, "it backs off: %u requests", pages);
    cr_expect_eq(atomic_load(&bench->status.restarts[RESTART_MALFORMED]), (pages + 1) / 2);
    bench_free(bench);
}

/* What came before it stays: a large list would not come to its end otherwise. */
Test(reflector_stalled, a_page_that_is_broken_in_the_middle_is_asked_for_again)
{
    struct bench *bench = paging();

    asks(bench, "limit=500 !continue");
    cr_expect(gets(bench, 200, PAGE("10", "second", "")));
    ends(bench, 200);
    asks(bench, "limit=500 continue=second");
    cr_expect_not(gets(bench, 200,
                       "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{"
                       "\"resourceVersion\":\"10\"},\"items\":[nonsense"));
    is_cut(bench);
    restarted(bench, RESTART_MALFORMED);
    asks(bench, "limit=500 continue=second");
    bench_free(bench);
}

Test(reflector_stalled, a_list_of_too_many_pages_is_malformed)
{
    struct bench *bench = paging();
    char page[256];

    for (unsigned i = 1; i <= PAGES_MAX; i++) {
        (void)snprintf(page, sizeof page, PAGE("10", "page-%u", ""), i);
        asks(bench, "limit=500");
        cr_assert_eq(gets(bench, 200, page), i < PAGES_MAX, "page %u", i);
        if (i < PAGES_MAX)
            ends(bench, 200);
    }
    is_cut(bench);
    restarted(bench, RESTART_MALFORMED);
    asks(bench, "limit=500 !continue");
    bench_free(bench);
}

Test(reflector_stalled, a_resource_is_not_stalled_while_the_api_server_is_away)
{
    static const unsigned statuses[] = {0, 429, 502, 503, 504};

    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        struct bench *bench = watching();
        is_refused(bench, "nonsense\n"); /* its last words */
        for (int j = 0; j < 100; j++) {
            asks(bench, "limit=1 resourceVersion=10");
            ends(bench, statuses[i]);
        }
        cr_expect_not(is_stalled(bench), "%u", statuses[i]);
        asks(bench, "limit=1");
        ends(bench, 500);
        cr_expect_not(is_stalled(bench), "%u: back for a moment", statuses[i]);
        bench_free(bench);
    }
    struct bench *bench = watching();
    for (int j = 0; j < 100; j++) {
        ends_with(bench, (struct reflector_ending){.status = 200, .is_silent = true});
        probes(bench);
        asks(bench, "watch=1 resourceVersion=10");
        bench->now += 50 * S;
    }
    cr_expect_not(is_stalled(bench), "an idle cluster behind a proxy that forgets connections");
    bench_free(bench);
}

Test(reflector_stalled, a_resource_that_may_not_be_read_is_stalled_but_not_listed)
{
    static const unsigned statuses[] = {401, 403};

    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        struct bench *bench = watching();
        for (int j = 0; j < 20; j++) {
            ends(bench, statuses[i]);
            asks(bench, "limit=1 resourceVersion=10");
        }
        cr_expect(is_stalled(bench));
        bench_free(bench);
    }
}

/* In an idle cluster no event says so. */
Test(reflector_stalled, a_resource_that_may_be_read_again_is_ready_soon)
{
    struct bench *bench = watching();

    for (int i = 0; i < 20; i++) {
        ends(bench, 403);
        asks(bench, "limit=1 resourceVersion=10");
    }
    cr_assert(is_stalled(bench));
    cr_expect(gets(bench, 200, PAGE("20", "", "")));
    ends(bench, 200);
    uint64_t begun = bench->now;
    asks(bench, "watch=1 resourceVersion=10");
    bench->now = bench->reflector.deadline_ns - SILENT_MS * NS_PER_MS; /* as long as requested */
    ends(bench, 200);
    cr_expect_not(is_stalled(bench));
    cr_expect(bench->now - begun <= 12 * S, "%g s", (double)(bench->now - begun) / 1e9);
    bench_free(bench);
}

Test(reflector_stalled, only_whole_events_and_pages_are_news)
{
    struct bench *bench = watching();
    uint64_t news = bench->reflector.news;

    cr_expect(gets(bench, 200, "\n \n{\"type\":\"ADDED\",\"obj"));
    is_cut(bench);
    asks(bench, "limit=1");
    cr_expect(gets(bench, 500, "{\"kind\":\"Status\"}"));
    ends(bench, 500);
    asks(bench, "limit=1");
    cr_expect(gets(bench, 200, PAGE("10", "", ITEM("a", "5"))));
    ends(bench, 200);
    asks(bench, "watch=1");
    is_refused(bench, ERROR_EVENT("500", "InternalError", "no"));
    cr_expect(bench->reflector.news == news);
    probes(bench);
    asks(bench, "watch=1");
    cr_expect(gets(bench, 200, BOOKMARK("10")));
    cr_expect(bench->reflector.news == news, "it is known");
    cr_expect(gets(bench, 200, BOOKMARK("11") POD("ADDED", "b", "12")));
    cr_expect(bench->reflector.news == news + 2);
    is_refused(bench, BOOKMARK("9"));
    cr_expect(bench->reflector.news == news + 2);
    bench_free(bench);
}

Test(reflector_stalled, a_watch_that_repeats_what_is_known_has_not_begun)
{
    static const char *const answers[] = {BOOKMARK("10"), POD("MODIFIED", "a", "10")};

    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct bench *bench = watching();
        ends(bench, 200);
        for (int times = 0; times < REFUSED_MAX; times++) {
            probes(bench);
            asks(bench, "watch=1 resourceVersion=10 !sendInitialEvents");
            is_refused(bench, answers[i]);
            cr_expect(wait_seconds(bench) > 0);
        }
        asks(bench, "limit=500 !resourceVersion");
        bench_free(bench);
    }
}

Test(reflector_stalled, a_quiet_watch_may_repeat_what_is_known)
{
    struct bench *bench = watching();

    for (int times = 0; times < 2 * REFUSED_MAX; times++) {
        cr_expect(gets(bench, 200, BOOKMARK("10")));
        bench->now += 40 * S;
        ends(bench, 200);
        cr_expect(wait_seconds(bench) == 0);
        probes(bench);
        asks(bench, "watch=1 resourceVersion=10 !sendInitialEvents");
    }
    cr_expect_not(is_stalled(bench));
    bench_free(bench);
}

Test(reflector_stalled, a_list_that_brings_bytes_and_no_objects_is_given_up)
{
    for (int i = 0; i < 2; i++) {
        struct bench *bench = i == 0 ? paging() : bench_new(KIND_POD);
        asks(bench, "/pods?");
        uint64_t deadline = bench->reflector.deadline_ns;
        cr_expect(gets(bench, 200, i == 0 ? "{\"kind\":" : "\n\n{\"type\":"));
        for (int j = 0; j < 10; j++) {
            bench->now += 1 * S;
            cr_expect(gets(bench, 200, " "));
        }
        cr_expect(bench->reflector.deadline_ns == deadline);
        bench_free(bench);
    }
}

/* What stands before the API server may answer so, for as long as it likes. */
Test(reflector_stalled, a_watch_that_ends_early_without_a_word_is_none)
{
    struct bench *bench = watching();

    ends(bench, 200);
    for (int times = 0; times < REFUSED_MAX; times++) {
        probes(bench);
        asks(bench, "watch=1 resourceVersion=10");
        bench->now += 2 * S;
        ends(bench, 200);
        cr_expect(wait_seconds(bench) > 0);
    }
    asks(bench, "limit=500 !continue !resourceVersion=");
    bench_free(bench);
}
