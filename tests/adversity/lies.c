/* An API server that once lies: it says that a pod is gone, that a Binding was applied, or that a
 * watch has news. Its later answers count, and the cache becomes right again. */
#include <stdio.h>
#include <string.h>

#include "support/scenario.h"

static const char gone_a[] = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","
                             "\"reason\":\"NotFound\",\"code\":404,\"details\":{\"name\":\"a\","
                             "\"kind\":\"pods\"}}";

static const char success[] =
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Success\",\"code\":201}";

/* The next watch of pods is refused, so that a list follows. */
static void list_again(void)
{
    api_compact();
    api_cut("pods");
}

/* ---- a NotFound for a pod that lives ---- */

/* The GET of pod a, which holds the claim or waits for it, is answered with 404. */
static void find_nothing(const struct guard *guard)
{
    api_fault(&(struct api_fault){
        .method = "GET", .path = "/pods/a", .times = 1, .status = 404, .answer = gone_a});
    check(filter_passes(guard, "b"), "a is gone, says the API server");
    api_heal();
}

static void a_list_names_a_pod_that_was_not_found(void)
{
    struct guard guard;

    put_pair("node-1");
    guard_start(&guard, "");
    find_nothing(&guard);
    put_pod(&(struct test_pod){
        .name = "a", .claim = "data", .node = "node-1", .more_meta = ",\"labels\":{\"x\":\"y\"}"});
    put_pod(&(struct test_pod){.name = "c", .claim = "data"});
    AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"pods\"}") == 2, "b and c");
    check(filter_passes(&guard, "b"), "a watch may be late");
    list_again();
    check(guard_logs(&guard, "an object exists, although the API server did not find it"),
          "it is logged");
    check(!filter_passes(&guard, "b") && !bind_succeeds(&guard, "b", "node-2"), "a has it");
    guard_stop(&guard);
}

static void a_pod_that_was_not_found_is_asked_about_again(void)
{
    struct guard guard;

    put_pair("node-1");
    guard_start(&guard, "");
    find_nothing(&guard);
    check(guard_logs(&guard, "an object exists, although the API server did not find it") ||
              guard_logs(&guard, "an object exists, although the API server did not find it"),
          "within a few seconds");
    check(api_count("GET", "/pods/a") == 2, "%zu GETs", api_count("GET", "/pods/a"));
    check(!filter_passes(&guard, "b") && !bind_succeeds(&guard, "b", "node-2"), "a has it");
    guard_stop(&guard);
}

static void a_pod_that_waits_is_bound_after_it_was_not_found(void)
{
    struct guard guard;

    put_pair(NULL);
    guard_start(&guard, "");
    api_fault(&(struct api_fault){
        .method = "POST", .path = "/pods/a/binding", .times = 1, .status = 409});
    api_fault(&(struct api_fault){
        .method = "GET", .path = "/pods/a", .times = 1, .status = 404, .answer = gone_a});
    check(!bind_succeeds(&guard, "a", "node-1"), "it is refused, and not found");
    api_heal();
    check(bind_succeeds(&guard, "a", "node-1"), "a GET finds it");
    check(strcmp(node_of("a"), "node-1") == 0, "it is bound");
    guard_stop(&guard);
}

/* No lie: the pod is gone, and its watch is late for longer than an answer counts. */
static void a_pod_that_is_gone_stays_gone_while_the_watch_is_late(void)
{
    struct guard guard;

    put_pair("node-1");
    guard_start(&guard, "");
    api_hold("pods");
    api_remove("pods", "default", "a");
    check(filter_passes(&guard, "b"), "a is gone");
    check(api_wait("GET", "/pods/a", 1), "it was asked about");
    sleep_ms(11000);
    check(api_wait("GET", "/pods/a", 2), "and again");
    check(filter_passes(&guard, "b"), "a is gone");
    api_release("pods");
    check(bind_succeeds(&guard, "b", "node-2"), "the claim is free");
    size_t looks = api_count("GET", "/pods/");
    sleep_ms(11000);
    check(api_count("GET", "/pods/") == looks, "the watch has sent all: nobody is asked");
    guard_stop(&guard);
}

/* ---- a 201 to a Binding that was not applied ---- */

static void bind_for_nothing(const struct guard *guard)
{
    api_fault(&(struct api_fault){
        .method = "POST", .path = "/pods/a/binding", .times = 1, .status = 201, .answer = success});
    check(bind_succeeds(guard, "a", "node-1"), "a 201 is believed");
}

static const char unbound[] = "a pod is not bound, although its Binding succeeded";

static void a_list_shows_that_a_binding_was_not_applied(void)
{
    struct guard guard;

    put_pair(NULL);
    guard_start(&guard, "");
    api_fault(&(struct api_fault){
        .method = "GET", .path = "/pods/a", .status = 503}); /* no GET may help */
    bind_for_nothing(&guard);
    put_pod(
        &(struct test_pod){.name = "a", .claim = "data", .more_meta = ",\"labels\":{\"x\":\"y\"}"});
    sleep_ms(300);
    check(!filter_passes(&guard, "b"), "a watch may be late: a has it");
    list_again();
    check(guard_logs(&guard, unbound), "it is logged");
    api_heal();
    check(bind_succeeds(&guard, "a", "node-1") && strcmp(node_of("a"), "node-1") == 0, "a may try");
    check(!bind_succeeds(&guard, "b", "node-2"), "the claim is a's");
    guard_stop(&guard);
}

static void a_look_shows_that_a_binding_was_not_applied(void)
{
    struct guard guard;

    put_pair(NULL);
    guard_start(&guard, "");
    bind_for_nothing(&guard);
    check(guard_logs(&guard, unbound) || guard_logs(&guard, unbound), "it is asked about");
    check(filter_passes(&guard, "b") && bind_succeeds(&guard, "b", "node-2"), "a has nothing");
    check(!bind_succeeds(&guard, "a", "node-1") && node_of("a")[0] == '\0', "the claim is b's");
    guard_stop(&guard);
}

/* No lie: the pod is bound, and its watch is late. */
static void a_pod_that_is_bound_stays_bound_while_the_watch_is_late(void)
{
    struct guard guard;

    put_pair(NULL);
    guard_start(&guard, "");
    api_hold("pods");
    check(bind_succeeds(&guard, "a", "node-1"), "it is free");
    check(api_wait("GET", "/pods/a", 1) || api_wait("GET", "/pods/a", 1), "a GET");
    sleep_ms(300);
    check(!filter_passes(&guard, "b") && !bind_succeeds(&guard, "b", "node-2"), "a has it");
    size_t looks = api_count("GET", "/pods/a");
    sleep_ms(11000);
    check(api_count("GET", "/pods/a") == looks, "one GET is enough");
    guard_stop(&guard);
}

/* ---- a watch that repeats what is known ---- */

/* Each watch of pods sends this, and ends. */
static void repeat(const char *line)
{
    api_fault(&(struct api_fault){.method = "GET",
                                  .path = "Failed&watch=1&allowWatchBookmarks=true&timeout",
                                  .status = 200,
                                  .answer = line});
    api_hold("pods");
    put_pod(&(struct test_pod){.name = "c", .claim = "data"});
    api_cut("pods");
}

static const char *bookmark(void)
{
    static char line[256];

    (void)snprintf(line, sizeof line,
                   "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\","
                   "\"metadata\":{\"resourceVersion\":\"%s\"}}}\n",
                   api_text("pods", "default", "b", "metadata.resourceVersion"));
    return line;
}

static const char *event(void)
{
    static char line[4096];

    (void)snprintf(line, sizeof line, "{\"type\":\"MODIFIED\",\"object\":%s}\n",
                   api_object("pods", "default", "b"));
    return line;
}

static void a_watch_that_repeats(const char *line(void))
{
    struct guard guard;

    put_pair(NULL);
    guard_start(&guard, "");
    size_t before = api_count("GET", "/pods?");
    repeat(line());
    AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"pods\"}") == 3, "a list");
    sleep_ms(8000);
    check(api_count("GET", "/pods?") - before < 60, "%zu requests",
          api_count("GET", "/pods?") - before);
    guard_stop(&guard);
}

static void a_watch_that_repeats_a_bookmark_leads_to_lists(void)
{
    a_watch_that_repeats(bookmark);
}

static void a_watch_that_repeats_an_event_leads_to_lists(void)
{
    a_watch_that_repeats(event);
}

/* The same, while no list works. */
static void a_watch_that_repeats_a_bookmark_stalls(void)
{
    struct guard guard;

    put_pair(NULL);
    guard_start(&guard, "");
    api_fault(&(struct api_fault){
        .method = "GET", .path = "Failed&limit=500", .status = 200, .answer = "{}"});
    api_fault(&(struct api_fault){
        .method = "GET", .path = "sendInitialEvents", .status = 200, .answer = "{}\n"});
    size_t before = api_count("GET", "/pods?");
    repeat(bookmark());
    for (int i = 0; i < 350 && guard_is_ready(&guard); i++)
        sleep_ms(100);
    check(!guard_is_ready(&guard), "it is stale, and says nothing");
    check(guard_metric(&guard, "claimguard_cache_stalled{resource=\"pods\"}") == 1, "which one");
    check(api_count("GET", "/pods?") - before < 60, "%zu requests",
          api_count("GET", "/pods?") - before);
    api_heal();
    api_release("pods");
    guard_await_ready(&guard);
    AWAIT(guard_metric(&guard, "claimguard_cache_stalled{resource=\"pods\"}") == 0, "none");
    guard_stop(&guard);
}

/* ---- answers that say too little, or are old ---- */

/* An API server was restored from a backup, and claimguard has not noticed yet: an earlier pod of
 * the same name has the claim. */
static void an_answer_of_older_times_frees_no_claim(void)
{
    static const char older[] =
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"namespace\":"
        "\"default\",\"uid\":\"00000000-0000-4000-8000-0000000000bb\",\"resourceVersion\":\"1\"},"
        "\"spec\":{\"nodeName\":\"node-1\",\"volumes\":[{\"name\":\"v\","
        "\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]}}";
    struct guard guard;

    put_pair("node-1");
    guard_start(&guard, "");
    api_fault(
        &(struct api_fault){.method = "GET", .path = "/pods/a", .status = 200, .answer = older});
    check(!filter_passes(&guard, "b") && !bind_succeeds(&guard, "b", "node-2"), "a has it");
    check(node_of("b")[0] == '\0', "b is not bound");
    guard_stop(&guard);
}

/* An event that does not name its object. */
static void an_event_frees_no_claim(const char *line)
{
    struct guard guard;

    put_pair("node-1");
    guard_start(&guard, "");
    api_fault(&(struct api_fault){.method = "GET", .path = "/default/", .status = 503});
    api_log_line("pods", line);
    sleep_ms(300);
    check(!filter_passes(&guard, "b"), "a has it");
    guard_stop(&guard);
}

static void a_deletion_that_names_nobody_frees_no_claim(void)
{
    an_event_frees_no_claim("{\"type\":\"DELETED\",\"object\":{\"kind\":\"Pod\","
                            "\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\","
                            "\"namespace\":\"default\"}}}");
}

static void a_deletion_of_another_pod_without_a_version_frees_no_claim(void)
{
    an_event_frees_no_claim("{\"type\":\"DELETED\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":"
                            "\"v1\",\"metadata\":{\"name\":\"a\",\"namespace\":\"default\",\"uid\":"
                            "\"00000000-0000-4000-8000-0000000000ff\"}}}");
}

/* An object without an identity, of which nothing was known. */
static void a_claim_without_a_uid_ends_nothing(void)
{
    struct guard guard;

    guard_start(&guard, "readWriteOncePod: {claimLock: Annotation}\n");
    api_hold("pods");
    put_pod(&(struct test_pod){.name = "p", .claim = "late"});
    api_fault(&(struct api_fault){
        .method = "GET",
        .path = "/persistentvolumeclaims/late",
        .status = 200,
        .answer = "{\"kind\":\"PersistentVolumeClaim\",\"apiVersion\":\"v1\",\"metadata\":{"
                  "\"namespace\":\"default\",\"name\":\"late\",\"resourceVersion\":\"999999\"},"
                  "\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"]},\"status\":{\"phase\":"
                  "\"Bound\"}}"});
    (void)filter_passes(&guard, "p");
    check(api_count("GET", "/persistentvolumeclaims/late") != 0, "it was asked about");
    (void)filter_passes(&guard, "p");
    guard_stop(&guard); /* it checks that claimguard lives */
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_watch_that_repeats_a_bookmark_stalls),
        SCENARIO(a_pod_that_is_gone_stays_gone_while_the_watch_is_late),
        SCENARIO(a_pod_that_is_bound_stays_bound_while_the_watch_is_late),
        SCENARIO(a_pod_that_was_not_found_is_asked_about_again),
        SCENARIO(a_look_shows_that_a_binding_was_not_applied),
        SCENARIO(a_watch_that_repeats_a_bookmark_leads_to_lists),
        SCENARIO(a_watch_that_repeats_an_event_leads_to_lists),
        SCENARIO(a_list_names_a_pod_that_was_not_found),
        SCENARIO(a_pod_that_waits_is_bound_after_it_was_not_found),
        SCENARIO(a_list_shows_that_a_binding_was_not_applied),
        SCENARIO(an_answer_of_older_times_frees_no_claim),
        SCENARIO(a_deletion_that_names_nobody_frees_no_claim),
        SCENARIO(a_deletion_of_another_pod_without_a_version_frees_no_claim),
        SCENARIO(a_claim_without_a_uid_ends_nothing),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
