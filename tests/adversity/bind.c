/* A Binding passes for refused only when the pod was seen unbound; what a bind has taken is its own
 * until then; and nothing is sent too late. Watches are held, so that only claimguard's own looks
 * can say what happened. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/scenario.h"

#define DEFERRAL \
    "deferFSMount:\n  apply: Annotation\n  entries:\n" \
    "  - {storageClass: fast-storage, runtimeClass: microvm}\n"

/* ---- answers that lie about the first of two sendings ---- */

/* Another caller's GET is not answered: for three seconds after that, no GET is sent. */
static void let_nobody_look(const struct guard *guard)
{
    api_fault(&(struct api_fault){
        .method = "GET", .path = "/pods/holder", .times = 1, .ending = API_HANG});
    check(!filter_passes(guard, "waiter"), "its claim is held");
}

/* The Binding of pod a is applied, but claimguard's answer says that it is refused: at once, or
 * because the connection dies and a client that repeats it gets this status. After that, no GET
 * shows what was applied. */
static void refuse_what_was_applied(unsigned status, bool is_sent_again,
                                    void (*break_looks)(const struct guard *guard))
{
    struct api_fault first = {.method = "POST",
                              .path = "/pods/a/binding",
                              .times = 1,
                              .is_applied = true,
                              .ending = is_sent_again ? API_CLOSE : API_ANSWER,
                              .status = is_sent_again ? 0 : status};
    struct guard guard;

    put_pair(NULL);
    put_claim("held");
    put_pod(&(struct test_pod){.name = "holder", .claim = "held", .node = "node-2"});
    put_pod(&(struct test_pod){.name = "waiter", .claim = "held"});
    guard_start(&guard, "");
    check(filter_passes(&guard, "a"), "its claim is free");
    check(!filter_passes(&guard, "waiter"), "a GET that leaves a connection open");
    api_hold("pods");
    break_looks(&guard);
    api_fault(&(struct api_fault){.method = "POST", .path = "/pods/a/binding", .status = status});
    api_fault(&first);
    (void)bind_succeeds(&guard, "a", "node-1");
    check(strcmp(node_of("a"), "node-1") == 0, "a is bound");
    (void)filter_passes(&guard, "b");
    check(!bind_succeeds(&guard, "b", "node-2") && node_of("b")[0] == '\0', "the claim is a's");
    api_heal();
    api_release("pods");
    AWAIT(bind_succeeds(&guard, "a", "node-1"), "asked again, it is a success");
    check(!bind_succeeds(&guard, "b", "node-2"), "the claim is a's");
    guard_stop(&guard);
}

static void refuse_looks(const struct guard *guard)
{
    (void)guard;
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods/a", .status = 503});
}

static void hang_looks(const struct guard *guard)
{
    (void)guard;
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods/a", .ending = API_HANG});
}

#define REFUSED(status_, break_) \
    static void applied_and_refused_with_##status_##_and_##break_(void) \
    { \
        refuse_what_was_applied(status_, false, break_); \
    } \
    static void sent_again_and_refused_with_##status_##_and_##break_(void) \
    { \
        refuse_what_was_applied(status_, true, break_); \
    }
REFUSED(409, refuse_looks)
REFUSED(403, refuse_looks)
REFUSED(429, refuse_looks)
REFUSED(409, hang_looks)
REFUSED(409, let_nobody_look)
REFUSED(429, let_nobody_look)

static void a_binding_that_was_refused_gives_the_claim_back(void)
{
    static const unsigned statuses[] = {403, 409, 422, 429};
    struct guard guard;

    put_pair(NULL);
    guard_start(&guard, "");
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        api_fault(&(struct api_fault){
            .method = "POST", .path = "/binding", .times = 1, .status = statuses[i]});
        check(!bind_succeeds(&guard, "a", "node-1"), "it is refused");
        check(guard_metric(&guard, "claimguard_reservations ") == 0, "the claim is free");
    }
    check(filter_passes(&guard, "b") && bind_succeeds(&guard, "b", "node-2"), "b gets it");
    guard_stop(&guard);
}

static void an_unclear_answer_to_a_binding_keeps_the_claim(void)
{
    struct guard guard;

    put_pair(NULL);
    guard_start(&guard, "");
    api_fault(&(struct api_fault){.method = "POST", .path = "/binding", .times = 1, .status = 500});
    check(!bind_succeeds(&guard, "a", "node-1"), "the outcome is unknown");
    check(!filter_passes(&guard, "b"), "it may be applied yet");
    check(guard_metric(&guard, "claimguard_binds_in_doubt ") == 1, "a's is in doubt");
    check(bind_succeeds(&guard, "a", "node-1"), "a may try again");
    check(guard_metric(&guard, "claimguard_binds_in_doubt ") == 0, "none is");
    guard_stop(&guard);
}

static void a_false_success_is_checked(void)
{
    struct guard guard;

    put_pair(NULL);
    guard_start(&guard, "");
    api_fault(&(struct api_fault){
        .method = "POST", .path = "/binding", .times = 1, .status = 200, .answer = "Welcome!"});
    check(!bind_succeeds(&guard, "a", "node-1"), "it is not bound");
    check(!filter_passes(&guard, "b"), "it may be applied yet");
    check(bind_succeeds(&guard, "a", "node-1"), "a may try again");
    check(strcmp(node_of("a"), "node-1") == 0, "now it is bound");
    guard_stop(&guard);
}

/* One bind of the pod does not know the outcome, and cannot read the pod; another one has read that
 * it is bound. */
static void a_bind_sees_what_another_bind_has_found_out(void)
{
    struct guard guard;
    struct beside first;

    put_pair(NULL);
    guard_start(&guard, "");
    api_hold("pods");
    api_fault(
        &(struct api_fault){.method = "POST", .path = "/binding", .times = 1, .ending = API_HANG});
    bind_beside(&first, &guard, "a", "node-1");
    check(api_wait("POST", "/binding", 1), "the first Binding");
    check(bind_succeeds(&guard, "a", "node-1"), "the second is applied");
    refuse_looks(&guard);
    check(beside_end(&first), "the pod is bound as asked");
    guard_stop(&guard);
}

/* ---- too late ---- */

/* The requests before the Binding use up all of the bind's time. */
static void a_binding_is_not_sent_when_the_time_is_over(void)
{
    struct guard guard;

    put_claim("data");
    put_pod(&(struct test_pod){
        .name = "a", .claim = "data", .more_spec = ",\"runtimeClassName\":\"microvm\""});
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    guard_start(&guard, DEFERRAL);
    api_fault(&(struct api_fault){
        .method = "PATCH", .path = "/pods/a", .is_applied = true, .late_ms = 2930});
    api_fault(&(struct api_fault){.method = "POST", .path = "/binding", .delay_ms = 500});
    check(!bind_succeeds(&guard, "a", "node-1"), "it takes too long");
    check(api_count("POST", "/binding") == 0, "no Binding was sent");
    api_heal();
    check(filter_passes(&guard, "b") && bind_succeeds(&guard, "b", "node-2"), "the claim is free");
    guard_stop(&guard);
}

/* ---- calls that do not come from the scheduler ---- */

/* Calls of an attacker who knows the pod's UID. */
static void forge_calls(const struct guard *guard, const char *uid)
{
    static const char *const pods[] = {
        "\"name\":\"a\",\"namespace\":\"default\"},\"spec\":{\"volumes\":[]}",
        "\"name\":\"a\",\"namespace\":\"default\"},\"spec\":{\"volumes\":[{\"name\":\"v\","
        "\"persistentVolumeClaim\":{\"claimName\":\"other\"}}]}",
        "\"name\":\"a\",\"namespace\":\"default\"},\"spec\":{\"priority\":-1,\"volumes\":[{"
        "\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]}",
        "\"name\":\"a\",\"namespace\":\"elsewhere\"},\"spec\":{\"volumes\":[{\"name\":\"v\","
        "\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]}",
        "\"name\":\"z\",\"namespace\":\"default\"},\"spec\":{\"volumes\":[{\"name\":\"v\","
        "\"persistentVolumeClaim\":{\"claimName\":\"other\"}}]}",
    };

    for (size_t i = 0; i < sizeof pods / sizeof *pods; i++)
        free(guard_call(guard, "/filter",
                        scenario_printf("{\"Pod\":{\"metadata\":{\"uid\":\"%s\",%s},\"NodeNames\":["
                                        "\"node-1\"]}",
                                        uid, pods[i])));
    free(guard_call(
        guard, "/bind",
        scenario_printf("{\"PodName\":\"z\",\"PodNamespace\":\"default\",\"PodUID\":\"%s\","
                        "\"Node\":\"node-1\"}",
                        uid)));
}

static void forged_calls_free_nothing_that_is_being_bound(void)
{
    struct guard guard;
    struct beside first;

    put_claim("other");
    put_pair(NULL);
    put_pod(&(struct test_pod){.name = "b", .claim = "data", .priority = 10});
    guard_start(&guard, "");
    api_hold("pods");
    api_fault(&(struct api_fault){.method = "POST", .path = "/pods/a/binding", .delay_ms = 1500});
    bind_beside(&first, &guard, "a", "node-1");
    check(api_wait("POST", "/pods/a/binding", 1), "the Binding is under way");
    forge_calls(&guard, api_text("pods", "default", "a", "metadata.uid"));
    check(!filter_passes(&guard, "b"), "its claim is being bound");
    check(!bind_succeeds(&guard, "b", "node-2"), "its claim is being bound");
    check(beside_end(&first) && node_of("b")[0] == '\0', "it is a's");
    guard_stop(&guard);
}

/* A call has the pod's UID and another name, and no pod has that name: this does not show that the
 * pod is gone. */
static void the_absence_of_a_forged_name_frees_nothing(void)
{
    struct guard guard;
    struct beside bind, filter;

    put_pair(NULL);
    guard_start(&guard, "");
    api_hold("pods");
    const char *uid = api_text("pods", "default", "a", "metadata.uid");
    free(guard_call(
        &guard, "/filter",
        scenario_printf("{\"Pod\":{\"metadata\":{\"uid\":\"%s\",\"name\":\"z\",\"namespace\":"
                        "\"default\"},\"spec\":{\"volumes\":[{\"name\":\"v\","
                        "\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]}},\"NodeNames\":["
                        "\"node-1\"]}",
                        uid)));
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods/z", .times = 1, .delay_ms = 900});
    filter_beside(&filter, &guard, "b");
    check(api_wait("GET", "/pods/z", 1), "it is asked about");
    api_fault(&(struct api_fault){.method = "POST", .path = "/pods/a/binding", .delay_ms = 1500});
    bind_beside(&bind, &guard, "a", "node-1");
    check(!beside_end(&filter), "it is being bound");
    check(!bind_succeeds(&guard, "b", "node-2"), "it is being bound");
    check(beside_end(&bind) && node_of("b")[0] == '\0', "it is a's");
    guard_stop(&guard);
}

/* ---- a pod that was replaced ---- */

static void those_that_wait_for_a_pod_that_a_list_replaces_are_requeued(void)
{
    struct guard guard;

    put_pair("node-1");
    guard_start(&guard, "");
    api_hold("pods");
    refuse_looks(&guard);
    api_remove("pods", "default", "a");
    put_pod(&(struct test_pod){.name = "a", .node = "node-1"});
    check(!filter_passes(&guard, "b"), "no GET is answered");
    check(guard_metric(&guard, "claimguard_requeues_waiting ") == 1, "b waits");
    check(guard_metric(&guard, "claimguard_requeues_total{") == 0, "nobody was requeued");
    api_compact();
    api_cut("pods");
    api_release("pods");
    check(api_wait("PATCH", "claimguard.io/requeue-requested", 1), "b is requeued");
    check(guard_metric(&guard, "claimguard_requeues_total{result=\"sent\"}") == 1, "and counted");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(applied_and_refused_with_409_and_refuse_looks),
        SCENARIO(applied_and_refused_with_403_and_refuse_looks),
        SCENARIO(applied_and_refused_with_429_and_refuse_looks),
        SCENARIO(applied_and_refused_with_409_and_hang_looks),
        SCENARIO(applied_and_refused_with_409_and_let_nobody_look),
        SCENARIO(applied_and_refused_with_429_and_let_nobody_look),
        SCENARIO(sent_again_and_refused_with_409_and_refuse_looks),
        SCENARIO(sent_again_and_refused_with_403_and_refuse_looks),
        SCENARIO(sent_again_and_refused_with_429_and_refuse_looks),
        SCENARIO(sent_again_and_refused_with_409_and_hang_looks),
        SCENARIO(sent_again_and_refused_with_409_and_let_nobody_look),
        SCENARIO(sent_again_and_refused_with_429_and_let_nobody_look),
        SCENARIO(a_binding_that_was_refused_gives_the_claim_back),
        SCENARIO(an_unclear_answer_to_a_binding_keeps_the_claim),
        SCENARIO(a_false_success_is_checked),
        SCENARIO(a_bind_sees_what_another_bind_has_found_out),
        SCENARIO(a_binding_is_not_sent_when_the_time_is_over),
        SCENARIO(forged_calls_free_nothing_that_is_being_bound),
        SCENARIO(the_absence_of_a_forged_name_frees_nothing),
        SCENARIO(those_that_wait_for_a_pod_that_a_list_replaces_are_requeued),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
