/* What a real kube-scheduler sent (tests/fixtures/scheduler), answered over a real socket. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/http.h"
#include "support/process.h"

static struct daemon server;

static void setup(void)
{
    cr_assert(daemon_start(
        &server, (const char *const[]){"--snapshot", TESTS_DIR "/fixtures/recorded.yaml",
                                       "--config", TESTS_DIR "/fixtures/debug-config.yaml", NULL}));
}

static void teardown(void)
{
    cr_expect_eq(daemon_stop(&server), 0);
}

TestSuite(recorded, .init = setup, .fini = teardown);

static char *ask_text(const char *method, const char *path, const char *body, int status)
{
    struct response response;

    http_call(server.port, method, path, body, &response);
    cr_assert_eq(response.status, status, "%s: %d %s", path, response.status, response.body);
    free(response.head);
    return response.body;
}

/* Sends a request of a folder of fixtures; the answer has to be this. */
static void expect_of(const char *folder, const char *path, const char *file, const char *want)
{
    char name[512];

    (void)snprintf(name, sizeof name, TESTS_DIR "/fixtures/%s/%s", folder, file);
    char *body = read_file(name), *answer = ask_text("POST", path, body, 200);
    cr_expect_str_eq(answer, want, "%s: got %s", file, answer);
    free(answer);
    free(body);
}

static void expect(const char *path, const char *file, const char *want)
{
    expect_of("scheduler", path, file, want);
}

#define PASSED(names) \
    "{\"Nodes\":null,\"NodeNames\":" names \
    ",\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{}," \
    "\"Error\":\"\"}"
#define BOUND "{\"Error\":\"\"}"

Test(recorded, filter_with_node_names_passes_a_free_claim)
{
    expect("/filter", "filter-nodenames-request.json",
           PASSED("[\"node-1\",\"node-3\",\"node-2\"]"));
}

Test(recorded, filter_with_node_objects_passes_them_as_they_came)
{
    char *body = read_file(TESTS_DIR "/fixtures/scheduler/filter-nodelist-request.json");
    char *answer = ask_text("POST", "/filter", body, 200);
    json_t *sent = json_loads(body, 0, NULL), *got = json_loads(answer, 0, NULL);

    cr_assert(sent != NULL && got != NULL);
    cr_expect(json_equal(json_object_get(got, "Nodes"), json_object_get(sent, "Nodes")));
    cr_expect(json_is_null(json_object_get(got, "NodeNames")));
    json_decref(sent);
    json_decref(got);
    free(body);
    free(answer);
}

#define B_IN_USE "\"claim default/claim-b is in use by pod default/b-low on node-1\""
#define A_IN_USE "\"claim default/claim-a is in use by pod default/a-low on node-2\""

Test(recorded, filter_of_a_conflict_fails_every_node_with_one_reason)
{
    expect("/filter", "filter-nodenames-conflict-request.json",
           "{\"Nodes\":null,\"NodeNames\":[],\"FailedAndUnresolvableNodes\":{},\"FailedNodes\":"
           "{\"node-1\":" B_IN_USE ",\"node-2\":" B_IN_USE ",\"node-3\":" B_IN_USE
           "},\"Error\":\"\"}");
}

Test(recorded, volcano_gets_its_codes)
{
    expect_of("volcano", "/volcano/predicate", "predicate-conflict-request.json",
              "{\"status\":" B_IN_USE ",\"code\":3}");
    expect_of("volcano", "/volcano/predicate", "predicate-request.json",
              "{\"status\":\"\",\"code\":0}");
    char *cache = ask_text("GET", "/debug/cache", NULL, 200);
    cr_expect_not_null(strstr(cache, "\"binding\": false, \"claims\": [\"claim-a\"]"), "%s", cache);
    free(cache);
}

Test(recorded, bind_makes_the_pod_a_holder_and_is_idempotent)
{
    expect("/bind", "bind-request.json", BOUND);
    expect("/filter", "filter-nominated-node-request.json",
           "{\"Nodes\":null,\"NodeNames\":[],\"FailedAndUnresolvableNodes\":{},\"FailedNodes\":"
           "{\"node-2\":" A_IN_USE "},\"Error\":\"\"}");
    expect("/bind", "bind-request.json", BOUND);
    char *text = ask_text("GET", "/debug/cache", NULL, 200);
    json_t *cache = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    int on_node_2 = -1, on_node_1 = -1, refs = -1, exclusive = 0;
    const char *name = "", *as = "";
    cr_assert_eq(json_unpack(cache, "{s:{s:{s:i},s:{s:i}},s:{s:{s:b,s:i,s:[{s:s,s:s}]}},s:[]}",
                             "nodes", "node-2", "default/claim-a", &on_node_2, "node-1",
                             "default/claim-b", &on_node_1, "claims", "default/claim-a",
                             "exclusive", &exclusive, "refs", &refs, "holders", "name", &name, "as",
                             &as, "reservations"),
                 0, "%s", text);
    cr_expect(on_node_2 == 1 && on_node_1 == 1 && refs == 1 && exclusive);
    cr_expect_str_eq(name, "a-low");
    cr_expect_str_eq(as, "Bound");
    json_decref(cache);
    free(text);
}

Test(recorded, preempt_with_meta_victims_keeps_the_node_of_the_holder)
{
    expect("/bind", "bind-request.json", BOUND);
    expect("/preempt", "preempt-metavictims-request.json",
           "{\"NodeNameToMetaVictims\":{\"node-2\":{\"Pods\":[{\"UID\":\"8233afb8-19e2-4262-8666-"
           "fd543e24857d\"}],\"NumPDBViolations\":0}}}");
}

Test(recorded, preempt_with_victims_answers_with_meta_victims)
{
    char *body = ask_text("POST", "/bind",
                          "{\"PodName\":\"c-low\",\"PodNamespace\":\"default\",\"PodUID\":"
                          "\"0c6e37b3-79c7-4aa9-a331-7fd222a76262\",\"Node\":\"node-3\"}",
                          200);
    cr_expect_str_eq(body, BOUND);
    free(body);
    expect("/preempt", "preempt-victims-request.json",
           "{\"NodeNameToMetaVictims\":{\"node-3\":{\"Pods\":[{\"UID\":\"0c6e37b3-79c7-4aa9-a331-"
           "7fd222a76262\"}],\"NumPDBViolations\":0}}}");
}

Test(recorded, prefilter_says_why_and_changes_nothing)
{
    char *body = read_file(TESTS_DIR "/fixtures/scheduler/filter-nodenames-conflict-request.json");
    char *before = ask_text("GET", "/debug/cache", NULL, 200);
    char *answer = ask_text("POST", "/prefilter", body, 200);

    cr_expect_str_eq(
        answer, "{\"code\":\"Unschedulable\",\"reasons\":[" B_IN_USE
                "],\"warnings\":[],\"claims\":[{\"name\":\"claim-b\",\"found\":true,\"exclusive\":"
                "true,\"heldBy\":["
                "{\"namespace\":\"default\",\"name\":\"b-low\",\"uid\":\"b0000000-0000-4000-8000-"
                "000000000001\",\"node\":\"node-1\",\"priority\":10,\"as\":\"Bound\"}]}],"
                "\"deferFSMount\":[]}");
    char *after = ask_text("GET", "/debug/cache", NULL, 200);
    cr_expect_str_eq(after, before);
    free(body);
    free(answer);
    free(before);
    free(after);
}

struct refused {
    const char *name, *body, *error;
};

static const struct refused refused_binds[] = {
    {"no such pod",
     "{\"PodName\":\"x\",\"PodNamespace\":\"default\",\"PodUID\":\"u\",\"Node\":\"node-1\"}",
     "pods \\\"x\\\" not found"},
    {"another UID",
     "{\"PodName\":\"a-low\",\"PodNamespace\":\"default\",\"PodUID\":\"u\",\"Node\":\"node-1\"}",
     "pod default/a-low has another UID than u"},
    {"another node",
     "{\"PodName\":\"b-low\",\"PodNamespace\":\"default\",\"PodUID\":\"b0000000-0000-4000-8000-"
     "000000000001\",\"Node\":\"node-3\"}",
     "pod b-low is already assigned to node \\\"node-1\\\""},
    {"a claim in use",
     "{\"PodName\":\"b-high\",\"PodNamespace\":\"default\",\"PodUID\":\"8c9907a8-a9e0-4c2e-b657-"
     "56bb7a5848b1\",\"Node\":\"node-3\"}",
     "claim default/claim-b is in use by pod default/b-low on node-1"},
};

Test(recorded, binds_that_cannot_be_are_answered_with_error)
{
    for (size_t i = 0; i < sizeof refused_binds / sizeof *refused_binds; i++) {
        char want[512];
        char *answer = ask_text("POST", "/bind", refused_binds[i].body, 200);
        (void)snprintf(want, sizeof want, "{\"Error\":\"%s\"}", refused_binds[i].error);
        cr_expect_str_eq(answer, want, "%s: got %s", refused_binds[i].name, answer);
        free(answer);
    }
}

Test(recorded, of_two_binds_for_one_claim_one_succeeds)
{
    expect("/bind", "bind-request.json", BOUND);
    char *answer = ask_text("POST", "/bind",
                            "{\"PodName\":\"a-high\",\"PodNamespace\":\"default\",\"PodUID\":"
                            "\"67228878-2989-4885-9db0-a65367cba3c8\",\"Node\":\"node-1\"}",
                            200);
    cr_expect_not_null(strstr(answer, "claim default/claim-a is in use by pod default/a-low"), "%s",
                       answer);
    free(answer);
}
