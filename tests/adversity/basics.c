/* What every other area rests on: claimguard in front of an API server, nothing lied about but
 * delays; and that the scriptable API server does what a test asks for. */
#include <stdlib.h>

#include "support/scenario.h"

static void a_claim_goes_from_pod_to_pod(void)
{
    struct guard guard;

    put_pair(NULL);
    guard_start(&guard, "");
    check(filter_passes(&guard, "a"), "the claim is free");
    check(bind_succeeds(&guard, "a", "node-1"), "a is bound");
    check(!filter_passes(&guard, "b"), "a has the claim");
    check(!bind_succeeds(&guard, "b", "node-2"), "a has the claim");
    api_remove("pods", "default", "a");
    check(filter_passes(&guard, "b"), "a is gone");
    check(bind_succeeds(&guard, "b", "node-2"), "a is gone");
    check(api_count("POST", "/binding") == 2, "two Bindings were sent");
    guard_stop(&guard);
}

static void a_rejection_is_confirmed_while_the_watch_is_late(void)
{
    struct guard guard;

    put_pair("node-1");
    guard_start(&guard, "");
    check(!filter_passes(&guard, "b"), "a has the claim");
    api_hold("pods");
    api_remove("pods", "default", "a");
    check(filter_passes(&guard, "b"), "a is gone, says the API server");
    api_release("pods");
    guard_stop(&guard);
}

static void an_older_server_serves_lists_in_pages(void)
{
    struct guard guard;

    api_serve_pages();
    put_pair("node-1");
    guard_start(&guard, "");
    check(!filter_passes(&guard, "b"), "a has the claim");
    check(api_count("GET", "limit=500") >= 2, "pages were asked for");
    guard_stop(&guard);
}

static void a_watch_that_is_cut_or_too_old_is_restarted(void)
{
    struct guard guard;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    guard_start(&guard, "");
    api_cut("pods");
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .node = "node-1"});
    AWAIT(!filter_passes(&guard, "b"), "the pod came behind the cut");
    api_hold("pods");
    api_remove("pods", "default", "a");
    api_compact();
    api_cut("pods");
    api_release("pods");
    AWAIT(filter_passes(&guard, "b"), "a new list was read");
    guard_stop(&guard);
}

static void a_violation_is_reported_in_an_event_with_its_time(void)
{
    struct guard guard;

    put_pair("node-1");
    guard_start(&guard, "");
    put_pod(&(struct test_pod){.name = "c", .claim = "data", .node = "node-2"});
    check(api_wait("POST", "ExclusiveClaimViolated", 1), "an Event says so");
    check(api_count("POST", "\"firstTimestamp\":\"20") == 1, "when it was seen first");
    check(api_count("POST", "Z\",\"lastTimestamp\":\"20") == 1, "and last");
    check(api_count("POST", "Z\",\"source\":") == 1, "with a zone");
    guard_stop(&guard);
}

static void faults_do_what_they_say(void)
{
    struct guard guard;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "a", .claim = "data"});
    guard_start(&guard, "");
    api_fault(&(struct api_fault){.method = "POST", .path = "/binding", .times = 1, .status = 500});
    check(!bind_succeeds(&guard, "a", "node-1"), "the first Binding is answered with 500");
    check(api_text("pods", "default", "a", "spec.nodeName")[0] == '\0', "and was not applied");
    check(bind_succeeds(&guard, "a", "node-1"), "the second is applied");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_claim_goes_from_pod_to_pod),
        SCENARIO(a_rejection_is_confirmed_while_the_watch_is_late),
        SCENARIO(an_older_server_serves_lists_in_pages),
        SCENARIO(a_watch_that_is_cut_or_too_old_is_restarted),
        SCENARIO(a_violation_is_reported_in_an_event_with_its_time),
        SCENARIO(faults_do_what_they_say),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
