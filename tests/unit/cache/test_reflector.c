#include "support/process.h"
#include "unit/cache/reflector_bench.h"

Test(reflector, streams_a_list_and_watches_on_in_the_same_answer_however_it_is_cut_up)
{
    static const char answer[] = POD("ADDED", "b", "7") POD("ADDED", "a", "5") INITIAL_END("10")
        POD("MODIFIED", "a", "11") BOOKMARK("15") POD("DELETED", "b", "16");

    for (size_t size = 1; size < sizeof answer; size++) {
        struct bench *bench = bench_new(KIND_POD);
        asks(bench,
             "/api/v1/pods? watch=1 sendInitialEvents=true resourceVersionMatch=NotOlderThan "
             "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed "
             "!&resourceVersion=");
        cr_expect(gets_in(bench, 200, answer, size));
        saw(bench, "begin +b@7 +a@5 end@10 +a@11 -b@16 ");
        cr_expect(atomic_load(&bench->status.is_synced));
        cr_expect_str_eq(bench->reflector.version, "16");
        bench_free(bench);
    }
}

Test(reflector, watches_from_the_last_version_after_a_probe)
{
    struct bench *bench = watching();

    cr_expect(gets(bench, 200, BOOKMARK("12")));
    bench->now += 45 * S;
    ends(bench, 200);
    restarted(bench, RESTART_TIMEOUT);
    cr_expect(wait_seconds(bench) == 0);
    asks(bench, "limit=1 resourceVersionMatch=NotOlderThan resourceVersion=12 !watch");
    cr_expect(gets(bench, 200, PAGE("12", "", ITEM("x", "1"))));
    ends(bench, 200);
    asks(bench,
         "watch=1 resourceVersion=12 allowWatchBookmarks=true timeoutSeconds= !sendInitialEvents");
    saw(bench, "");
    bench_free(bench);
}

Test(reflector, reads_pages_and_asks_for_one_again_wherever_it_was_cut)
{
    static const char second[] = PAGE("10", "", ITEM("c", "3") "," ITEM("d", "4"));

    for (size_t cut = 0; cut < sizeof second - 2; cut++) {
        struct bench *bench = paging();
        asks(bench, "limit=500 !continue");
        cr_expect(gets(bench, 200, PAGE("10", "t/1", ITEM("a", "1") "," ITEM("b", "2"))));
        ends(bench, 200);
        saw(bench, "begin +a@1 +b@2 ");
        asks(bench, "limit=500 continue=t%2F1");
        cr_expect(reflector_take(&bench->reflector, 200, (struct slice){second, cut}, bench->now));
        is_cut(bench);
        restarted(bench, RESTART_CONNECTION);
        cr_expect(!atomic_load(&bench->status.is_synced), "cut at %zu", cut);
        bench->seen[0] = '\0';
        asks(bench, "limit=500 continue=t%2F1");
        cr_expect(gets_in(bench, 200, second, 7));
        ends(bench, 200);
        saw(bench, "+c@3 +d@4 end@10 ");
        asks(bench, "watch=1 resourceVersion=10");
        bench_free(bench);
    }
}

Test(reflector, asks_for_one_namespace_if_the_kind_has_them)
{
    struct bench *bench = bench_new(KIND_POD);

    bench->reflector.ns = SLICE("a/b c");
    asks(bench, "/api/v1/namespaces/a%2Fb%20c/pods?");
    bench_free(bench);
    bench = bench_new(KIND_NODE);
    bench->reflector.ns = SLICE("a");
    asks(bench, "/api/v1/nodes? !namespaces");
    bench_free(bench);
}

Test(reflector, an_empty_list_begins_and_ends)
{
    struct bench *bench = paging();

    asks(bench, "limit=500");
    cr_expect(
        gets(bench, 200,
             "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"9\"},\"items\":null}"));
    ends(bench, 200);
    saw(bench, "begin end@9 ");
    bench_free(bench);
}

Test(reflector, takes_pages_where_the_server_cannot_stream_lists)
{
    static const unsigned statuses[] = {400, 405, 422};

    for (size_t i = 0; i < 4; i++) {
        struct bench *bench = bench_new(KIND_POD);
        asks(bench, "sendInitialEvents=true");
        if (i < 3)
            ends(bench, statuses[i]);
        else if (!gets(bench, 200, ERROR_EVENT("422", "Invalid", "etcd is too old")))
            is_cut(bench);
        restarted(bench, RESTART_FALLBACK);
        cr_expect(wait_seconds(bench) == 0);
        asks(bench, "limit=500 !watch");
        bench_free(bench);
    }
}

Test(reflector, lists_again_when_the_version_is_too_old)
{
    struct bench *bench = watching();

    cr_expect(
        !gets(bench, 200, ERROR_EVENT("410", "Expired", "too old resource version: 10 (99)")));
    is_cut(bench);
    restarted(bench, RESTART_EXPIRED);
    cr_expect(wait_seconds(bench) == 0);
    asks(bench, "sendInitialEvents=true");
    ends(bench, 410);
    asks(bench, "sendInitialEvents=true");
    cr_expect(atomic_load(&bench->status.is_synced), "what was read stays good");
    bench_free(bench);

    bench = paging();
    asks(bench, "limit=500");
    cr_expect(gets(bench, 200, PAGE("10", "t1", ITEM("a", "1"))));
    ends(bench, 200);
    asks(bench, "continue=t1");
    ends(bench, 410);
    restarted(bench, RESTART_EXPIRED);
    asks(bench, "limit=500 !continue");
    cr_expect(gets(bench, 200, PAGE("20", "", ITEM("a", "1"))));
    saw(bench, "begin +a@1 begin +a@1 end@20 ");
    bench_free(bench);
}

Test(reflector, a_continue_token_that_nobody_understands_starts_the_list_again)
{
    struct bench *bench = paging();

    asks(bench, "limit=500");
    cr_expect(gets(bench, 200, PAGE("10", "t1", ITEM("a", "1"))));
    ends(bench, 200);
    asks(bench, "continue=t1");
    ends(bench, 400);
    restarted(bench, RESTART_EXPIRED);
    asks(bench, "limit=500 !continue");
    bench_free(bench);
}

Test(reflector, lists_that_expire_again_and_again_are_waited_for)
{
    struct bench *bench = bench_new(KIND_POD);
    double waited = 0;

    for (int i = 0; i < 10; i++) {
        asks(bench, i < REFUSED_MAX ? "sendInitialEvents=true" : "limit=500");
        ends(bench, 410);
        waited += wait_seconds(bench);
    }
    cr_expect(waited > 5);
    bench_free(bench);

    bench = watching(); /* the list is fine each time, and what follows it is not */
    waited = 0;
    for (int i = 0; i < 10; i++) {
        cr_expect(!gets(bench, 200, ERROR_EVENT("410", "Expired", "too old")));
        is_cut(bench);
        waited += wait_seconds(bench);
        asks(bench, "sendInitialEvents=true");
        cr_expect(gets(bench, 200, INITIAL_END("10")));
    }
    cr_expect(waited > 1);
    bench->now += 2 * S;
    cr_expect(!gets(bench, 200, ERROR_EVENT("410", "Expired", "too old")));
    is_cut(bench);
    cr_expect(wait_seconds(bench) == 0, "a watch that has worked is listed again at once");
    bench_free(bench);
}

Test(reflector, an_older_history_is_listed_in_pages_and_overrides)
{
    for (int how = 0; how < 4; how++) {
        struct bench *bench = watching();
        if (how == 0) {
            cr_expect(!gets(bench, 200, BOOKMARK("9")));
            is_cut(bench);
        } else if (how == 1) {
            cr_expect(!gets(bench, 200, POD("MODIFIED", "a", "9")));
            is_cut(bench);
            bench->seen[0] = '\0';
        } else {
            bench->now += 45 * S;
            ends(bench, 200);
            atomic_store(&bench->status.restarts[RESTART_TIMEOUT], 0);
            asks(bench, "resourceVersionMatch=NotOlderThan resourceVersion=10");
            if (how == 2) {
                cr_expect(gets(bench, 504,
                               "{\"message\":\"Timeout: Too large resource version: 10, current: "
                               "9\",\"code\":504}"));
                ends(bench, 504);
            } else {
                cr_expect(gets(bench, 200, PAGE("10", "", "")));
                ends(bench, 200);
                asks(bench, "watch=1");
                cr_expect(
                    !gets(bench, 200, ERROR_EVENT("504", "Timeout", "Too large resource version")));
                is_cut(bench);
            }
        }
        restarted(bench, RESTART_OLDER_HISTORY);
        asks(bench, "limit=500 !watch");
        cr_expect(gets(bench, 200, PAGE("8", "", ITEM("z", "3"))));
        ends(bench, 200);
        saw(bench, "!begin +z@3 end@8 ");
        asks(bench, "watch=1 resourceVersion=8");
        cr_expect(gets(bench, 200, POD("ADDED", "y", "9")));
        saw(bench, "+y@9 ");
        bench_free(bench);
    }
}

Test(reflector, a_probe_that_fails_otherwise_is_made_again)
{
    struct bench *bench = watching();

    bench->now += 45 * S;
    ends(bench, 200);
    asks(bench, "limit=1");
    ends(bench, 500);
    cr_expect(wait_seconds(bench) > 0);
    asks(bench, "limit=1 resourceVersion=10");
    cr_expect(gets(bench, 504, "{\"message\":\"Timeout: request did not complete\",\"code\":504}"));
    ends(bench, 504);
    asks(bench, "limit=1 resourceVersion=10");
    bench_free(bench);
}

Test(reflector, waits_as_long_as_the_server_asks)
{
    struct bench *bench = watching();

    ends_with(bench, (struct reflector_ending){.status = 429, .retry_after_ms = 7000});
    restarted(bench, RESTART_THROTTLED);
    cr_expect(wait_seconds(bench) == 7);
    asks(bench, "limit=1");
    ends_with(bench, (struct reflector_ending){.status = 429, .retry_after_ms = 7000000});
    cr_expect(wait_seconds(bench) == 60, "but not for ever: %g", wait_seconds(bench));
    bench_free(bench);
}

Test(reflector, waits_longer_and_longer_but_not_too_long_and_not_after_a_success)
{
    struct bench *bench = bench_new(KIND_POD);
    double last = 0;

    for (int i = 0; i < 12; i++) {
        asks(bench, "sendInitialEvents");
        ends_with(bench, (struct reflector_ending){.error = "connection refused"});
        last = wait_seconds(bench);
        cr_expect(last > 0 && last <= 10);
    }
    cr_expect(last >= 5, "it is %g s", last);
    asks(bench, "sendInitialEvents");
    cr_expect(gets(bench, 200, INITIAL_END("10")));
    is_cut(bench);
    cr_expect(wait_seconds(bench) <= 0.2);
    bench_free(bench);
}

Test(reflector, counts_each_refusal_by_its_reason)
{
    static const struct {
        unsigned status;
        enum restart reason;
    } rows[] = {{401, RESTART_UNAUTHORIZED}, {403, RESTART_FORBIDDEN},
                {404, RESTART_SERVER_ERROR}, {429, RESTART_THROTTLED},
                {500, RESTART_SERVER_ERROR}, {503, RESTART_SERVER_ERROR},
                {302, RESTART_SERVER_ERROR}, {0, RESTART_CONNECTION}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bench *bench = watching();
        ends(bench, rows[i].status);
        restarted(bench, rows[i].reason);
        cr_expect(wait_seconds(bench) > 0);
        asks(bench, "limit=1 resourceVersion=10");
        bench_free(bench);
    }
}

Test(reflector, a_resource_that_is_not_served_is_left_out_and_asked_for_later)
{
    struct bench *bench = bench_new(KIND_VOLUME_ATTRIBUTES_CLASS);

    asks(bench, "/apis/storage.k8s.io/v1/volumeattributesclasses? !fieldSelector");
    ends(bench, 404);
    cr_expect(atomic_load(&bench->status.is_synced) && atomic_load(&bench->status.is_absent));
    saw(bench, "unserved ");
    cr_expect(wait_seconds(bench) == 600);
    asks(bench, "sendInitialEvents");
    cr_expect(gets(bench, 200,
                   "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"VolumeAttributesClass\","
                   "\"apiVersion\":\"storage.k8s.io/v1\",\"metadata\":{\"resourceVersion\":\"10\","
                   "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n"));
    cr_expect(!atomic_load(&bench->status.is_absent));
    bench_free(bench);

    bench = bench_new(KIND_POD);
    asks(bench, "/api/v1/pods");
    ends(bench, 404);
    cr_expect(!atomic_load(&bench->status.is_synced), "a cluster without pods is none");
    bench_free(bench);
}

Test(reflector, what_cannot_be_read_ends_the_watch_and_what_cannot_be_decoded_is_passed_over)
{
    static const char *const broken[] = {"{\"type\":\"ADDED\"}\n",
                                         "{\"type\":\"ADDED\",\"object\":{\"meta\n",
                                         "nonsense\n",
                                         "{\"type\":\"PUSHED\",\"object\":{}}\n",
                                         "{\"type\":\"BOOKMARK\",\"object\":{}}\n",
                                         "{\"type\":\"ERROR\",\"object\":[]}\n"};

    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        struct bench *bench = watching();
        cr_expect(!gets(bench, 200, broken[i]), "%s", broken[i]);
        is_cut(bench);
        restarted(bench, RESTART_MALFORMED);
        asks(bench, "limit=1 resourceVersion=10");
        bench_free(bench);
    }
    struct bench *bench = watching();
    cr_expect(
        gets(bench, 200,
             "\n{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"name\":7}}}\n" POD(
                 "ADDED", "b", "12")));
    cr_expect(atomic_load(&bench->status.skipped) == 1);
    saw(bench, "+b@12 ");
    bench->failing = ERROR_NO_MEMORY;
    cr_expect(!gets(bench, 200, POD("ADDED", "c", "13")));
    is_cut(bench);
    asks(bench, "sendInitialEvents=true"); /* what is known is not all any more */
    bench_free(bench);
}

Test(reflector, reads_what_a_real_api_server_sent)
{
    struct bench *bench = bench_new(KIND_CLAIM);
    char *text = read_file(TESTS_DIR "/fixtures/watch/watchlist-pvcs.jsonl");

    asks(bench, "/api/v1/persistentvolumeclaims?");
    cr_expect(gets_in(bench, 200, text, 11));
    saw(bench, "begin +data-db-0@226 end@250 ");
    free(text);
    bench_free(bench);

    bench = watching();
    text = read_file(TESTS_DIR "/fixtures/apiserver/watch-pods.jsonl");
    cr_expect(gets_in(bench, 200, text, 1000));
    cr_expect_str_eq(bench->reflector.version, "284");
    free(text);
    text = read_file(TESTS_DIR "/fixtures/watch/error-watch-old-rv.json");
    cr_expect(!gets(bench, 200, text));
    free(text);
    bench_free(bench);

    bench = paging();
    text = read_file(TESTS_DIR "/fixtures/apiserver/list-pods-page1.json");
    asks(bench, "limit=500");
    cr_expect(gets_in(bench, 200, text, 4096));
    ends(bench, 200);
    asks(bench, "continue=eyJ2Ijoi");
    free(text);
    text = read_file(TESTS_DIR "/fixtures/apiserver/list-pods-page2.json");
    cr_expect(gets_in(bench, 200, text, 4096));
    ends(bench, 200);
    asks(bench, "continue=eyJ2Ijoi"); /* there was a third one */
    cr_expect(strstr(bench->seen, "+page-0@") != NULL || strstr(bench->seen, "+page-2@") != NULL);
    free(text);
    bench_free(bench);
}

Test(reflector, keys_behind_the_items_are_skipped)
{
    struct bench *bench = paging();

    asks(bench, "limit=500");
    cr_expect(gets(bench, 200,
                   "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{"
                   "\"resourceVersion\":\"10\"},\"items\":[" ITEM(
                       "a", "1") "],"
                                 "\"status\":\"Success\",\"code\":200}"));
    ends(bench, 200);
    saw(bench, "begin +a@1 end@10 ");
    bench_free(bench);
}
