/* A counter moves when the thing that it counts happens, and not before. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "support/http.h"
#include "support/scenario.h"

enum { VIOLATED = 60 }; /* over EVENTS_BURST: Events of one reason at once */

/* ---- requests to the API server ---- */

#define REQUESTS(verb_, resource_, code_) \
    "claimguard_apiserver_requests_total{verb=\"" verb_ "\",resource=\"" resource_ \
    "\",code=\"" code_ "\"}"
#define TIMED(verb_) "claimguard_apiserver_request_duration_seconds_count{verb=\"" verb_ "\"}"

static void requests_to_the_api_server_are_counted(void)
{
    struct guard guard;

    put_pair("node-1");
    put_pod(&(struct test_pod){.name = "c"});
    put_pod(&(struct test_pod){.name = "d"});
    guard_start(&guard, "");
    check(!filter_passes(&guard, "b"), "b waits");
    check(guard_metric(&guard, REQUESTS("get", "pods", "200")) == 1, "the holder was asked about");
    check(bind_succeeds(&guard, "c", "node-1"), "c is bound");
    check(guard_metric(&guard, REQUESTS("create", "pods/binding", "201")) == 1, "its Binding");
    check(guard_metric(&guard, TIMED("create")) == 1, "which took a time");
    api_fault(&(struct api_fault){.method = "POST", .path = "/binding", .status = 503});
    check(!bind_succeeds(&guard, "d", "node-1"), "d is not bound");
    check(guard_metric(&guard, REQUESTS("create", "pods/binding", "503")) > 0, "a refusal");
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods/a", .ending = API_CLOSE});
    (void)filter_passes(&guard, "b");
    check(guard_metric(&guard, REQUESTS("get", "pods", "error")) > 0, "no answer");
    guard_stop(&guard);
}

#define OF_PODS(name_) "claimguard_" name_ "{resource=\"pods\""

static void watches_count_when_they_end_and_take_no_time(void)
{
    struct guard guard;

    guard_start(&guard, "");
    double before = guard_metric(&guard, REQUESTS("watch", "pods", "200"));
    double restarts = guard_metric(&guard, OF_PODS("watch_restarts_total"));
    api_cut("pods");
    AWAIT(guard_metric(&guard, REQUESTS("watch", "pods", "200")) == before + 1,
          "a watch has ended");
    AWAIT(guard_metric(&guard, OF_PODS("watch_restarts_total")) >= restarts + 1,
          "and is started again");
    check(guard_metric(&guard, TIMED("watch")) == 0, "it took as long as it is to");
    guard_stop(&guard);
}

static void an_event_says_when_it_came(void)
{
    struct guard guard;

    guard_start(&guard, "");
    double before = guard_metric(&guard, OF_PODS("cache_last_event_timestamp_seconds"));
    sleep_ms(10);
    time_t begun = time(NULL);
    put_pod(&(struct test_pod){.name = "news"});
    AWAIT(guard_metric(&guard, OF_PODS("cache_last_event_timestamp_seconds")) > before, "it came");
    double at = guard_metric(&guard, OF_PODS("cache_last_event_timestamp_seconds"));
    check(at >= (double)begun && at <= (double)time(NULL) + 1, "%.3f, begun at %lld", at,
          (long long)begun);
    check(guard_metric(&guard, OF_PODS("cache_objects")) == 1, "it is known");
    guard_stop(&guard);
}

static void lists_in_pages_count_as_lists(void)
{
    struct guard guard;

    api_serve_pages();
    guard_start(&guard, "");
    check(guard_metric(&guard, REQUESTS("list", "pods", "200")) == 1, "a list");
    check(guard_metric(&guard, REQUESTS("watch", "pods", "422")) == 1,
          "which could not be streamed");
    check(guard_metric(&guard, TIMED("list")) > 0, "it took a time");
    check(guard_page_has(&guard, "/metrics",
                         "\nclaimguard_list_duration_seconds{resource=\"pods\"} "),
          "which the page has in milliseconds: it may be 0");
    guard_stop(&guard);
}

static void open_files_are_counted(void)
{
    struct guard guard;

    guard_start(&guard, "");
    double files = guard_metric(&guard, "process_open_fds ");
    check(files > 10 && files <= guard_metric(&guard, "process_max_fds "), "%.0f", files);
    guard_stop(&guard);
}

/* ---- calls ---- */

#define CALLS(verb_, result_) \
    "claimguard_extender_requests_total{verb=\"" verb_ "\",result=\"" result_ "\"}"

static int status_of(const struct guard *guard, const char *request)
{
    struct response response;

    http_raw(guard->port, request, strlen(request), &response);
    int status = response.status;
    response_free(&response);
    return status;
}

#define POST(headers_) "POST /filter HTTP/1.1\r\nHost: h\r\n" headers_ "\r\n\r\n"

static void what_is_refused_unread_is_no_call(void)
{
    char chunk[sizeof POST("Transfer-Encoding: chunked") + 5000];
    struct guard guard;

    guard_start(&guard, "server: {maxRequestBytes: 4Ki}\n");
    check(status_of(&guard, "GET /filter HTTP/1.1\r\nHost: h\r\n\r\n") == 405, "a GET");
    check(status_of(&guard, POST("Content-Length: 5000")) == 413, "it is too big");
    (void)snprintf(chunk, sizeof chunk, "%s1194\r\n%04500d\r\n0\r\n\r\n",
                   POST("Transfer-Encoding: chunked"), 0);
    check(status_of(&guard, chunk) == 413, "finally, so is this");
    check(guard_metric(&guard, "claimguard_extender_requests_total{") == 0, "none is evaluated");
    check(status_of(&guard, POST("Content-Length: 1") "{") == 400, "no JSON");
    check(guard_metric(&guard, CALLS("filter", "invalid")) == 1, "which is read");
    guard_stop(&guard);
}

static void calls_before_the_sync_count_as_errors(void)
{
    struct guard guard;

    api_fault(&(struct api_fault){.method = "GET", .path = "/pods?", .status = 503});
    put_pair("node-1");
    guard_launch(&guard, "");
    check(!filter_passes(&guard, "b"), "a 200 with Error");
    check(guard_metric(&guard, CALLS("filter", "error")) == 1, "filter");
    check(status_of(&guard, "POST /preempt HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}") ==
              503,
          "it has no Error");
    check(guard_metric(&guard, CALLS("preempt", "error")) == 1, "preempt");
    guard_stop(&guard);
}

static void a_refused_bind_counts_as_a_conflict(void)
{
    struct guard guard;

    put_pair("node-1");
    guard_start(&guard, "");
    check(guard_metric(&guard, "claimguard_bind_conflicts_total ") == 0, "none yet");
    check(!bind_succeeds(&guard, "b", "node-1"), "a has the claim");
    check(guard_metric(&guard, "claimguard_bind_conflicts_total ") == 1, "a conflict");
    check(guard_metric(&guard, CALLS("bind", "error")) == 1, "an answer with Error");
    guard_stop(&guard);
}

static void an_eviction_counts_its_attempt_and_its_victims(void)
{
    struct guard guard;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "low", .claim = "data", .node = "node-1", .priority = 10});
    guard_start(&guard, "readWriteOncePod: {preemptionGrace: 10ms, reservationTTL: 2s}\n");
    put_pod(&(struct test_pod){.name = "high", .claim = "data", .priority = 100});
    AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"pods\"}") == 2, "high is seen");
    check(!filter_passes(&guard, "high"), "low has the claim");
    check(guard_metric(&guard, "claimguard_unschedulable_pods{") == 1, "high waits");
    AWAIT(guard_metric(&guard, "claimguard_preemption_attempts_total{result=\"evicted\"}") == 1,
          "an attempt");
    check(guard_metric(&guard, "claimguard_preemption_victims_total ") == 1, "a victim");
    check(guard_metric(&guard, REQUESTS("create", "pods/eviction", "200")) > 0, "an Eviction");
    guard_stop(&guard);
}

/* ---- the cluster ---- */

static void claims_are_counted_by_class_and_phase(void)
{
    static const char bound[] = "claimguard_persistentvolumeclaims{namespace=\"default\","
                                "storage_class=\"fast-storage\",volume_attributes_class=\"\","
                                "phase=\"Bound\"}";
    struct guard guard;

    put_claim("data");
    put_claim("logs");
    guard_start(&guard, "");
    check(guard_metric(&guard, bound) == 2, "two claims");
    check(guard_metric(&guard, "claimguard_build_info{") == 1, "and one claimguard");
    api_remove("persistentvolumeclaims", "default", "logs");
    AWAIT(guard_metric(&guard, bound) == 1, "one is left");
    guard_stop(&guard);
}

static void put_violated_claims(void)
{
    char claim[32], pod[32];

    for (int i = 0; i < VIOLATED; i++) {
        (void)snprintf(claim, sizeof claim, "data-%d", i);
        put_claim(claim);
        for (int which = 0; which < 2; which++) {
            (void)snprintf(pod, sizeof pod, "pod-%d-%d", i, which);
            put_pod(&(struct test_pod){.name = pod, .claim = claim, .node = "node-1"});
        }
    }
}

static void violations_and_events_that_are_too_many_are_counted(void)
{
    struct guard guard;

    put_violated_claims();
    guard_start(&guard, "");
    check(guard_metric(&guard, "claimguard_exclusive_claim_violations ") == VIOLATED, "violations");
    /* on a slow machine the rate limit recovers meanwhile */
    AWAIT(guard_metric(&guard, "claimguard_events_dropped_total ") > 0 &&
              guard_metric(&guard, "claimguard_events_dropped_total ") +
                      guard_metric(&guard, REQUESTS("create", "events", "201")) ==
                  VIOLATED,
          "some Events are posted, the others counted");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(requests_to_the_api_server_are_counted),
        SCENARIO(watches_count_when_they_end_and_take_no_time),
        SCENARIO(an_event_says_when_it_came),
        SCENARIO(open_files_are_counted),
        SCENARIO(lists_in_pages_count_as_lists),
        SCENARIO(what_is_refused_unread_is_no_call),
        SCENARIO(calls_before_the_sync_count_as_errors),
        SCENARIO(a_refused_bind_counts_as_a_conflict),
        SCENARIO(an_eviction_counts_its_attempt_and_its_victims),
        SCENARIO(claims_are_counted_by_class_and_phase),
        SCENARIO(violations_and_events_that_are_too_many_are_counted),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
