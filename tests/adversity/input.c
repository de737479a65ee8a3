/* What the API server sends, and what anyone who may create objects can make it send: nothing of it
 * stops the cache, and no answer that is none frees a claim. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/scenario.h"

#define PODS    "/pods?fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed&"
#define WATCHES PODS "watch=1&allowWatchBookmarks=true&timeoutSeconds"
#define LISTS   PODS "limit=500"

/* Pod a holds the claim, and b waits for it. */
static void put_holder(void)
{
    put_pair("node-1");
}

static void deep_text(char *out, size_t levels)
{
    for (size_t i = 0; i < levels; i++)
        out += sprintf(out, "{\"f:a\":");
    out += sprintf(out, "{}");
    memset(out, '}', levels);
    out[levels] = '\0';
}

/* What a user of one namespace may create, as a kube-apiserver sends it. */
static void put_poison(void)
{
    static char deep[8 * 400];

    api_put("{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"nul\",\"namespace\":"
            "\"evil\",\"annotations\":{\"claimguard.io/defer-fs-mount\":\"x\\u0000y\"}},\"spec\":{"
            "\"containers\":[{\"name\":\"c\",\"args\":[\"\\u0000\"],\"env\":[{\"name\":\"E\","
            "\"value\":\"a\\u0000\"}]}]}}");
    api_put("{\"kind\":\"PersistentVolumeClaim\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
            "\"nul\",\"namespace\":\"evil\",\"annotations\":{\"x\":\"\\u0000\"}},\"spec\":{"
            "\"accessModes\":[\"ReadWriteOncePod\"]}}");
    deep_text(deep, 300);
    api_put("{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"deep\",\"namespace\":"
            "\"evil\",\"managedFields\":[{\"fieldsV1\":%s}]},\"spec\":{}}",
            deep);
}

static void is_evaluated(const struct guard *guard, const char *when)
{
    char name[32];
    static unsigned count;

    (void)snprintf(name, sizeof name, "claim-%u", ++count);
    put_claim(name);
    put_pod(&(struct test_pod){.name = "holder", .claim = name, .node = "node-1"});
    put_pod(&(struct test_pod){.name = "second", .claim = name});
    AWAIT(!filter_passes(guard, "second"), when);
    check(guard_is_ready(guard), "it is ready: %s", when);
    api_remove("pods", "default", "holder");
    AWAIT(filter_passes(guard, "second"), when);
    api_remove("pods", "default", "second");
}

static void what_a_user_of_one_namespace_creates_stops_no_other(void)
{
    struct guard guard;

    put_holder();
    guard_start(&guard, "");
    put_poison();
    is_evaluated(&guard, "in a watch");
    guard_stop(&guard);
    guard_start(&guard, "");
    is_evaluated(&guard, "in a list, after a restart");
    guard_stop(&guard);
    api_serve_pages();
    guard_start(&guard, "");
    is_evaluated(&guard, "in a list in pages");
    api_remove("pods", "evil", "nul");
    api_remove("pods", "evil", "deep");
    api_remove("persistentvolumeclaims", "evil", "nul");
    is_evaluated(&guard, "when they are deleted");
    check(guard_metric(&guard, "claimguard_cache_skipped_objects_total") == 0, "all were read");
    guard_stop(&guard);
}

#define UNREADABLE ",\"deletionTimestamp\":7" /* it has to be a string */
#define BROKEN     ",\"annotations\":{\"x\":\"\\q\"}"

/* An event about the holder, with more in its metadata. */
static void log_event(const char *type, const char *more)
{
    static char lines[8][1024];
    static size_t count;
    char *line = lines[count++ % 8];

    (void)snprintf(
        line, sizeof lines[0],
        "{\"type\":\"%s\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{"
        "\"name\":\"a\",\"namespace\":\"default\",\"uid\":\"%s\",\"resourceVersion\":"
        "\"VERSION\"%s}}}",
        type, api_text("pods", "default", "a", "metadata.uid"), more);
    api_log_line("pods", line);
}

static void a_pod_that_cannot_be_read_still_holds_and_the_watch_continues(void)
{
    struct guard guard;

    put_holder();
    guard_start(&guard, "");
    log_event("MODIFIED", UNREADABLE);
    is_evaluated(&guard, "behind an object that cannot be read");
    check(!filter_passes(&guard, "b"), "a still holds the claim");
    check(guard_metric(&guard, "claimguard_cache_skipped_objects_total{resource=\"pods\"}") == 1,
          "it is counted");
    check(guard_logs(&guard, "an object is skipped"), "it is logged");
    log_event("DELETED", UNREADABLE);
    AWAIT(filter_passes(&guard, "b"), "a deletion is one, whatever else it says");
    guard_stop(&guard);
}

static void a_line_that_is_no_json_is_finally_skipped(void)
{
    struct guard guard;

    put_holder();
    guard_start(&guard, "");
    log_event("MODIFIED", BROKEN);
    is_evaluated(&guard, "behind a line that is no JSON");
    check(!filter_passes(&guard, "b"), "a still holds the claim");
    guard_stop(&guard);
}

static void a_line_that_says_nothing_leads_to_a_list(void)
{
    struct guard guard;

    put_holder();
    guard_start(&guard, "");
    api_log_line("pods", "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"Pod\",\"VERSION");
    is_evaluated(&guard, "behind a line that says nothing");
    check(api_count("GET", LISTS) != 0, "a list was read");
    guard_stop(&guard);
}

static void a_list_does_not_take_what_cannot_be_read_for_gone(void)
{
    struct guard guard;

    put_holder();
    guard_start(&guard, "");
    api_hold("pods");
    api_put(
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"namespace\":"
        "\"default\",\"uid\":\"%s\",\"deletionTimestamp\":7},\"spec\":{\"nodeName\":\"node-1\"}}",
        api_text("pods", "default", "a", "metadata.uid"));
    api_compact();
    api_cut("pods");
    api_release("pods");
    is_evaluated(&guard, "behind the list");
    check(!filter_passes(&guard, "b"), "a still holds the claim");
    guard_stop(&guard);
}

static void a_watch_that_is_refused_leads_to_a_list(void)
{
    static const char *const answers[] = {
        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
        "\"status\":\"Failure\",\"reason\":\"InternalError\",\"code\":500}}\n",
        "{}",
    };
    struct guard guard;

    put_holder();
    guard_start(&guard, "");
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        api_fault(&(struct api_fault){
            .method = "GET", .path = WATCHES, .status = 200, .answer = answers[i]});
        size_t lists = api_count("GET", LISTS);
        api_cut("pods");
        put_pod(&(struct test_pod){.name = i == 0 ? "c" : "d"});
        check(api_wait("GET", LISTS, lists + 1), "a list is asked for");
        AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"pods\"}") == (double)i + 3,
              "the pod that came is seen");
        api_heal();
        is_evaluated(&guard, "when watches work again");
    }
    guard_stop(&guard);
}

/* Answers to the lists of pods that are no list of pods. */
static const char *const no_lists[] = {
    "{}",
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"900000\"},"
    "\"status\":\"Failure\",\"code\":500}",
    "{\"kind\":\"SecretList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"900000\"},"
    "\"items\":[]}",
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"900000\"}}",
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[]}",
};

static void no_list_frees_a_held_claim(void)
{
    struct guard guard;

    put_holder();
    api_serve_pages();
    guard_start(&guard, "");
    for (size_t i = 0; i < sizeof no_lists / sizeof *no_lists; i++) {
        sleep_ms(1200); /* a watch that has worked: so the next list is read at once */
        api_fault(&(struct api_fault){
            .method = "GET", .path = LISTS, .status = 200, .answer = no_lists[i]});
        size_t lists = api_count("GET", LISTS);
        put_pod(&(struct test_pod){.name = "news"});
        api_compact();
        api_hold("pods"); /* the pod's own event does not come */
        api_cut("pods");
        check(api_wait("GET", LISTS, lists + 2), "a list is asked for, and again");
        check(!filter_passes(&guard, "b"), "a still holds the claim: %s", no_lists[i]);
        api_heal();
        api_release("pods");
        is_evaluated(&guard, no_lists[i]);
    }
    guard_stop(&guard);
}

/* Takes half a minute: for 20 s no answer may help. */
static void a_resource_that_does_not_advance_is_reported_and_repaired(void)
{
    struct guard guard;
    int64_t begun = clock_ms();

    put_holder();
    guard_start(&guard, "");
    api_fault(&(struct api_fault){.method = "GET", .path = PODS, .status = 200, .answer = "{}"});
    api_cut("pods");
    while (guard_is_ready(&guard) && clock_ms() < begun + 60000)
        sleep_ms(100);
    check(clock_ms() > begun + 19000, "it was given time");
    check(guard_page_has(&guard, "/readyz", "[-] pods does not advance"), "/readyz says it");
    check(guard_page_has(&guard, "/livez", "ok"), "and a restart would not help");
    check(guard_metric(&guard, "claimguard_cache_stalled{resource=\"pods\"}") == 1, "a metric");
    check(guard_metric(&guard, "claimguard_cache_stalled{resource=\"nodes\"}") == 0, "no other");
    check(guard_page_has(&guard, "/statusz", "stalled"), "/statusz says it");
    check(guard_logs(&guard, "a resource does not advance"), "the log says it");
    check(!filter_passes(&guard, "b"), "a still holds the claim");
    api_heal();
    begun = clock_ms();
    while (!guard_is_ready(&guard) && clock_ms() < begun + 60000)
        sleep_ms(100);
    is_evaluated(&guard, "when it advances again");
    AWAIT(guard_metric(&guard, "claimguard_cache_stalled{resource=\"pods\"}") == 0, "none");
    guard_stop(&guard);
}

static void an_answer_about_another_object_changes_nothing(void)
{
    static const struct {
        unsigned status;
        const char *answer;
    } rows[] = {
        {200, "{}"},
        {200, "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"namespace\":"
              "\"other\",\"uid\":\"u\",\"resourceVersion\":\"900000\"},\"spec\":{}}"},
        {200,
         "{\"kind\":\"Secret\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"namespace\":"
         "\"default\",\"uid\":\"u\",\"resourceVersion\":\"900000\"},\"spec\":{}}"},
        {200, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"default\",\"uid\":\"u\","
              "\"resourceVersion\":\"900000\"},\"spec\":{}}"},
        {404, "default backend - 404"},
        {404, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
              "\"message\":\"the server could not find the requested resource\",\"reason\":"
              "\"NotFound\",\"details\":{},\"code\":404}"},
    };
    struct guard guard;

    put_holder();
    guard_start(&guard, "");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t asked = api_count("GET", "/pods/a");
        api_fault(&(struct api_fault){.method = "GET",
                                      .path = "/namespaces/default/pods/a",
                                      .status = rows[i].status,
                                      .answer = rows[i].answer});
        check(!filter_passes(&guard, "b"), "a holds it: %s", rows[i].answer);
        check(api_count("GET", "/pods/a") > asked, "it was asked");
        api_heal();
        check(!filter_passes(&guard, "b"), "a holds it behind that: %s", rows[i].answer);
    }
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_resource_that_does_not_advance_is_reported_and_repaired),
        SCENARIO(what_a_user_of_one_namespace_creates_stops_no_other),
        SCENARIO(a_pod_that_cannot_be_read_still_holds_and_the_watch_continues),
        SCENARIO(a_line_that_is_no_json_is_finally_skipped),
        SCENARIO(a_line_that_says_nothing_leads_to_a_list),
        SCENARIO(a_list_does_not_take_what_cannot_be_read_for_gone),
        SCENARIO(a_watch_that_is_refused_leads_to_a_list),
        SCENARIO(no_list_frees_a_held_claim),
        SCENARIO(an_answer_about_another_object_changes_nothing),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
