/* Reviews of Bindings that other clients post: of two pods for one claim, one is allowed, whatever
 * becomes of its Binding; and nothing is allowed that could not be decided. Watches are held, or
 * late, so that only claimguard's own looks can say what happened. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "support/reviews.h"

#define DEFERRAL \
    "deferFSMount:\n  apply: Annotation\n  entries:\n" \
    "  - {storageClass: fast-storage, runtimeClass: microvm}\n"
#define ANNOTATION "readWriteOncePod: {claimLock: Annotation}\n"

enum { DEAD_MS = 65000 /* BINDING_DEAD_MS */ };

static bool is_text(const char *text, const char *part)
{
    if (strstr(text, part) == text)
        return true;
    (void)fprintf(stderr, "%s\n", text);
    return false;
}

/* ---- two pods, one claim ---- */

static void of_two_reviews_for_one_claim_one_is_allowed(void)
{
    const struct test_review b = {.pod = "b", .node = "node-2"};
    struct guard guard;

    put_pair(NULL);
    admission_start(&guard, "");
    check(is_admitted(&guard, "a", "node-1"), "its claim is free");
    check(is_text(admit(&guard, &b), "denied: 409 claim default/data is "), "it is a's");
    check(!filter_passes(&guard, "b"), "for the extender, too");
    check(guard_metric(&guard, "claimguard_binds_in_doubt ") == 0, "no answer was lost");
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .node = "node-1"});
    AWAIT(guard_metric(&guard, "claimguard_reservations ") == 0, "a is seen bound");
    check(is_text(admit(&guard, &b),
                  "denied: 409 claim default/data is in use by pod default/a on node-1"),
          "the holder and its node");
    api_remove("pods", "default", "a");
    AWAIT(is_admitted(&guard, "b", "node-2"), "it is free again");
    check(guard_metric(&guard, "claimguard_admission_reviews_total{path=\"/admit/binding\","
                               "result=\"allowed\"}") >= 2,
          "two were allowed");
    check(guard_metric(&guard, "claimguard_admission_review_duration_seconds_count{") >= 4,
          "all took a time");
    guard_stop(&guard);
}

/* A review in parallel to the scenario. */
struct review_beside {
    pthread_t thread;
    const struct guard *guard;
    struct test_review review;
    const char *answer;
};

static void *run(void *context)
{
    struct review_beside *beside = context;

    beside->answer = admit(beside->guard, &beside->review);
    return NULL;
}

static void begin(struct review_beside *beside, const struct guard *guard,
                  struct test_review review)
{
    *beside = (struct review_beside){.guard = guard, .review = review};
    check(pthread_create(&beside->thread, NULL, run, beside) == 0, "a thread");
}

static const char *end(struct review_beside *beside)
{
    (void)pthread_join(beside->thread, NULL);
    return beside->answer;
}

static void of_reviews_at_the_same_time_one_is_allowed(void)
{
    enum { ROUNDS = 20 };
    struct guard guard;

    put_pair(NULL);
    admission_start(&guard, "");
    api_hold("pods");
    for (int i = 0; i < ROUNDS; i++) {
        struct review_beside a, b;
        const char *claim = scenario_printf("data-%d", i);
        const char *one = scenario_printf("a-%d", i), *two = scenario_printf("b-%d", i);
        put_claim(claim);
        put_pod(&(struct test_pod){.name = one, .claim = claim});
        put_pod(&(struct test_pod){.name = two, .claim = claim});
        begin(&a, &guard, (struct test_review){.pod = one, .node = "node-1"});
        begin(&b, &guard, (struct test_review){.pod = two, .node = "node-2"});
        bool is_a = strcmp(end(&a), "allowed") == 0, is_b = strcmp(end(&b), "allowed") == 0;
        check(is_a != is_b, "one: %s, %s", a.answer, b.answer);
    }
    api_release("pods");
    guard_stop(&guard);
}

/* The API server had a Binding refused by another webhook, or lost it. */
static void a_pod_that_is_never_bound_keeps_its_claim_for_a_time(void)
{
    struct guard guard;

    put_pair(NULL);
    admission_start(&guard, "");
    check(is_admitted(&guard, "a", "node-1"), "its claim is free");
    sleep_ms(DEAD_MS - 5000);
    check(!is_admitted(&guard, "b", "node-2"), "a's Binding may still be applied");
    sleep_ms(6000);
    check(is_admitted(&guard, "b", "node-2"), "no API server works on it any more");
    guard_stop(&guard);
}

static void a_review_that_is_sent_again_is_answered_again(void)
{
    struct guard guard;

    put_pair(NULL);
    admission_start(&guard, "");
    for (int i = 0; i < 3; i++)
        check(is_admitted(&guard, "a", "node-1"), "its own claim");
    check(!is_admitted(&guard, "b", "node-2"), "it is a's");
    api_hold("pods");
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .node = "node-1"});
    check(is_admitted(&guard, "a", "node-1"), "the API server says that it is bound");
    api_release("pods");
    AWAIT(guard_metric(&guard, "claimguard_reservations ") == 0, "a is seen bound");
    check(is_admitted(&guard, "a", "node-1"), "the same");
    check(
        is_text(admit(&guard, &(struct test_review){.pod = "a", .node = "node-2"}), "denied: 409 "),
        "it is on another node");
    guard_stop(&guard);
}

static void a_pod_that_goes_frees_its_claim_at_once(void)
{
    struct guard guard;

    put_pair(NULL);
    admission_start(&guard, "");
    check(is_admitted(&guard, "a", "node-1"), "its claim is free");
    api_remove("pods", "default", "a");
    AWAIT(is_admitted(&guard, "b", "node-2"), "a needs it no more");
    guard_stop(&guard);
}

static void a_denial_is_not_stale(void)
{
    struct guard guard;

    put_pair("node-1");
    admission_start(&guard, "");
    api_hold("pods");
    api_remove("pods", "default", "a");
    check(is_admitted(&guard, "b", "node-2"), "the API server says that a is gone");
    api_release("pods");
    guard_stop(&guard);
}

static void a_pod_that_no_watch_has_reported_is_found(void)
{
    struct guard guard;

    put_claim("data");
    admission_start(&guard, "");
    api_hold("pods");
    put_pod(&(struct test_pod){.name = "new", .claim = "data"});
    check(is_admitted(&guard, "new", "node-1"), "a GET finds it");
    check(is_text(admit(&guard, &(struct test_review){.pod = "nobody", .node = "node-1"}),
                  "denied: 409 pods \"nobody\" not found"),
          "and this one not");
    api_release("pods");
    guard_stop(&guard);
}

/* ---- kinds of reviews ---- */

static void a_dry_run_takes_and_writes_nothing(void)
{
    const struct test_review a = {.pod = "a", .node = "node-1", .is_dry_run = true};
    const struct test_review b = {.pod = "b", .node = "node-1", .is_dry_run = true};
    struct guard guard;

    put_claim("data");
    put_pod(&(struct test_pod){
        .name = "a", .claim = "data", .more_spec = ",\"runtimeClassName\":\"microvm\""});
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    admission_start(&guard, ANNOTATION DEFERRAL);
    check(strcmp(admit(&guard, &a), "allowed") == 0, "its claim is free");
    check(guard_metric(&guard, "claimguard_reservations ") == 0, "nothing is taken");
    check(api_count("PATCH", "") == 0 && api_count("POST", "") == 0, "nothing is written");
    check(is_admitted(&guard, "a", "node-1"), "its claim is still free");
    check(is_text(admit(&guard, &b), "denied: 409 claim default/data is "), "now it is a's");
    check(guard_metric(&guard, "claimguard_bind_conflicts_total ") == 0, "it would have been");
    guard_stop(&guard);
}

static void both_paths_are_judged(void)
{
    struct guard guard;

    put_pair(NULL);
    admission_start(&guard, "");
    check(strcmp(admit(&guard,
                       &(struct test_review){.pod = "a", .node = "node-1", .is_old_path = true}),
                 "allowed") == 0,
          "its claim is free");
    check(is_text(admit(&guard,
                        &(struct test_review){.pod = "b", .node = "node-2", .is_old_path = true}),
                  "denied: 409 "),
          "it is a's");
    guard_stop(&guard);
}

/* As some small schedulers send it. */
static void a_binding_without_uid_is_for_the_pod_that_is_there(void)
{
    const struct test_review a = {.pod = "a", .node = "node-1", .has_no_uid = true};
    const struct test_review b = {.pod = "b", .node = "node-2", .has_no_uid = true};
    struct guard guard;

    put_pair(NULL);
    admission_start(&guard, "");
    api_hold("pods");
    api_remove("pods", "default", "a");
    check(is_text(admit(&guard, &a), "denied: 409 pods \"a\" not found"), "it is gone");
    put_pod(&(struct test_pod){.name = "a", .claim = "data"});
    check(strcmp(admit(&guard, &a), "allowed") == 0, "another one, whose claim is free");
    check(is_text(admit(&guard, &b), "denied: 409 claim default/data is "), "it is a's");
    api_release("pods");
    guard_stop(&guard);
}

/* Their bind has judged them, and waits for the API server, which waits for the review. */
static void its_own_bindings_are_let_through(void)
{
    const struct test_review own = {
        .pod = "b", .node = "node-2", .user = "system:serviceaccount:claimguard:claimguard"};
    const struct test_review other = {.pod = "b", .node = "node-2", .user = "me"};
    struct guard guard;

    put_pair("node-1");
    admission_start(&guard, "");
    check(strcmp(admit(&guard, &own), "allowed") == 0, "by the default's name");
    check(is_text(admit(&guard, &other), "denied: 409 "), "nobody else's");
    guard_stop(&guard);
}

static void own_user_can_be_configured(void)
{
    const struct test_review own = {.pod = "b", .node = "node-2", .user = "me"};
    char config[512];
    struct guard guard;

    put_pair("node-1");
    admission_launch(&guard, "  ownUser: me\n");
    guard_await_ready(&guard);
    check(strcmp(admit(&guard, &own), "allowed") == 0, "by its name");
    (void)snprintf(config, sizeof config,
                   "admission:\n  listen: 127.0.0.1:0\n  ownUser: you\n"
                   "  tls: {certFile: %s/server.crt, keyFile: %s/server.key}\n",
                   scenario_folder(), scenario_folder());
    guard_reload(&guard, config);
    check(is_text(admit(&guard, &own), "denied: 409 "), "it is not its name any more");
    guard_stop(&guard);
}

/* ---- no decision ---- */

static void before_the_cache_is_synced_reviews_fail(void)
{
    const struct test_review own = {
        .pod = "a", .node = "node-1", .user = "system:serviceaccount:claimguard:claimguard"};
    struct guard guard;

    put_pair(NULL);
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods?", .status = 503});
    admission_launch(&guard, "");
    check(is_text(admit(&guard, &(struct test_review){.pod = "a", .node = "node-1"}),
                  "failed: 500 {\"error\":\"the cache is not synced yet: "),
          "nobody knows who has the claim");
    check(strcmp(admit(&guard, &own), "allowed") == 0, "its bind has decided");
    api_heal();
    guard_await_ready(&guard);
    check(is_admitted(&guard, "a", "node-1"), "its claim is free");
    guard_stop(&guard);
}

static void put_vm(void)
{
    put_claim("data");
    put_pod(&(struct test_pod){
        .name = "a", .claim = "data", .more_spec = ",\"runtimeClassName\":\"microvm\""});
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
}

static void a_deferral_is_written_before_the_answer(void)
{
    static const char annotation[] = "metadata.annotations.claimguard~io/defer-fs-mount";
    struct guard guard;

    put_vm();
    admission_start(&guard, DEFERRAL);
    check(is_admitted(&guard, "a", "node-1"), "its claim is free");
    check(strcmp(api_text("pods", "default", "a", annotation), "data") == 0 ||
              api_text("pods", "default", "a", annotation)[0] != '\0',
          "it is written");
    check(api_count("POST", "/binding") == 0, "claimguard itself binds nothing");
    guard_stop(&guard);
}

/* With failurePolicy: Ignore, the API server then applies the Binding. */
static void what_cannot_be_written_is_not_allowed_and_keeps_its_claim(void)
{
    struct guard guard;

    put_vm();
    admission_start(&guard, DEFERRAL);
    api_fault(&(struct api_fault){.method = "PATCH", .path = "/pods/a", .status = 503});
    check(is_text(admit(&guard, &(struct test_review){.pod = "a", .node = "node-1"}),
                  "failed: 500 {\"error\":\"deferFSMount could not be written"),
          "it is not known to be written");
    check(!is_admitted(&guard, "b", "node-2"), "a may be bound nevertheless");
    api_heal();
    check(is_admitted(&guard, "a", "node-1"), "asked again, it is written");
    guard_stop(&guard);
}

/* ---- a slow API server ---- */

/* How long the answers took, without the client's time. */
static double seconds_taken(const struct guard *guard)
{
    return guard_metric(guard, "claimguard_admission_review_duration_seconds_sum{");
}

static void nothing_is_allowed_too_late(void)
{
    const struct test_review a = {.pod = "a", .node = "node-1", .timeout = "2s"};
    struct guard guard;

    put_vm();
    admission_start(&guard, DEFERRAL);
    api_fault(&(struct api_fault){
        .method = "PATCH", .path = "/pods/a", .is_applied = true, .late_ms = 4000});
    check(is_text(admit(&guard, &a), "failed: 500 "), "its time is over");
    check(seconds_taken(&guard) < 2, "and it is answered in time: %g s", seconds_taken(&guard));
    guard_stop(&guard);
}

/* What the cache says stands, as for filter: an answer that fails may let the pod through. */
static void a_conflict_that_cannot_be_confirmed_is_a_denial(void)
{
    const struct test_review b = {.pod = "b", .node = "node-2", .timeout = "1s"};
    struct guard guard;

    put_pair("node-1");
    admission_start(&guard, "");
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods/", .ending = API_HANG});
    check(is_text(admit(&guard, &b), "denied: 409 claim default/data is in use by pod default/a"),
          "a has it, as far as is known");
    check(seconds_taken(&guard) < 1, "in time: %g s", seconds_taken(&guard));
    guard_stop(&guard);
}

/* 64 wait for a PATCH that is not answered. */
static void reviews_that_wait_do_not_pile_up(void)
{
    enum { REVIEWS = 64 };
    static struct review_beside waiting[REVIEWS];
    struct guard guard;

    put_vm();
    put_claim("free");
    put_pod(&(struct test_pod){.name = "plain", .claim = "free"});
    for (int i = 0; i < REVIEWS; i++) {
        put_claim(scenario_printf("claim-%d", i));
        put_pod(&(struct test_pod){.name = scenario_printf("vm-%d", i),
                                   .claim = scenario_printf("claim-%d", i),
                                   .more_spec = ",\"runtimeClassName\":\"microvm\""});
    }
    admission_start(&guard, DEFERRAL);
    api_fault(&(struct api_fault){.method = "PATCH", .path = "/pods/", .ending = API_HANG});
    for (int i = 0; i < REVIEWS; i++)
        begin(&waiting[i], &guard,
              (struct test_review){.pod = scenario_printf("vm-%d", i), .node = "node-1"});
    AWAIT(guard_metric(&guard, "claimguard_connections{port=\"admission\"}") >= REVIEWS,
          "they wait");
    sleep_ms(500);
    int64_t begun = clock_ms();
    check(is_text(admit(&guard, &(struct test_review){.pod = "a", .node = "node-1"}),
                  "failed: 500 {\"error\":\"over 64 reviews wait for the API server\"}"),
          "one more is refused");
    check(is_admitted(&guard, "plain", "node-1"), "what needs no answer is allowed");
    check(clock_ms() - begun < 8000, "at once: %lld ms", (long long)(clock_ms() - begun));
    for (int i = 0; i < REVIEWS; i++)
        check(is_text(end(&waiting[i]), "failed: 500 "), "none is allowed");
    guard_stop(&guard);
}

/* ---- claimLock: Annotation ---- */

static void an_admitted_pod_keeps_its_lock_longer_than_a_pending_one(void)
{
    static const char holder[] = "metadata.annotations.claimguard~io/holder";
    static const char admitted[] = "metadata.annotations.claimguard~io/admitted";
    struct guard one, two;

    put_pair(NULL);
    admission_start(&one, ANNOTATION);
    admission_start(&two, ANNOTATION);
    check(is_admitted(&one, "a", "node-1"), "its claim is free");
    check(strstr(api_text("persistentvolumeclaims", "default", "data", holder), "/a") != NULL,
          "it is locked");
    check(strcmp(api_text("persistentvolumeclaims", "default", "data", admitted), "true") == 0,
          "by a review");
    check(is_text(admit(&two, &(struct test_review){.pod = "b", .node = "node-2"}),
                  "denied: 409 claim default/data is locked for pod default/a"),
          "the other replica sees it");
    sleep_ms(6000); /* over LOCK_PATIENCE_MS */
    check(!is_admitted(&two, "b", "node-2"), "no fence stops a's Binding");
    check(!bind_succeeds(&two, "b", "node-2"), "nor for a bind");
    sleep_ms(DEAD_MS - 5000);
    check(is_admitted(&two, "b", "node-2"), "no API server works on it any more");
    guard_stop(&one);
    guard_stop(&two);
}

/* The second review of a locks data again, and fails for the other claim. */
static void a_lock_of_an_earlier_review_is_not_released(void)
{
    static const char holder[] = "metadata.annotations.claimguard~io/holder";
    struct guard guard;

    put_claim("data");
    put_claim("logs");
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .second_claim = "logs"});
    admission_start(&guard, ANNOTATION);
    check(is_admitted(&guard, "a", "node-1"), "its claims are free");
    api_fault(&(struct api_fault){
        .method = "GET", .path = "/persistentvolumeclaims/logs", .status = 503});
    check(!is_admitted(&guard, "a", "node-1"), "logs cannot be locked");
    check(strstr(api_text("persistentvolumeclaims", "default", "data", holder), "/a") != NULL,
          "the first Binding may still be applied");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(of_two_reviews_for_one_claim_one_is_allowed),
        SCENARIO(of_reviews_at_the_same_time_one_is_allowed),
        SCENARIO(a_pod_that_is_never_bound_keeps_its_claim_for_a_time),
        SCENARIO(a_review_that_is_sent_again_is_answered_again),
        SCENARIO(a_pod_that_goes_frees_its_claim_at_once),
        SCENARIO(a_denial_is_not_stale),
        SCENARIO(a_pod_that_no_watch_has_reported_is_found),
        SCENARIO(a_dry_run_takes_and_writes_nothing),
        SCENARIO(both_paths_are_judged),
        SCENARIO(a_binding_without_uid_is_for_the_pod_that_is_there),
        SCENARIO(its_own_bindings_are_let_through),
        SCENARIO(own_user_can_be_configured),
        SCENARIO(before_the_cache_is_synced_reviews_fail),
        SCENARIO(a_deferral_is_written_before_the_answer),
        SCENARIO(what_cannot_be_written_is_not_allowed_and_keeps_its_claim),
        SCENARIO(nothing_is_allowed_too_late),
        SCENARIO(a_conflict_that_cannot_be_confirmed_is_a_denial),
        SCENARIO(reviews_that_wait_do_not_pile_up),
        SCENARIO(an_admitted_pod_keeps_its_lock_longer_than_a_pending_one),
        SCENARIO(a_lock_of_an_earlier_review_is_not_released),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
