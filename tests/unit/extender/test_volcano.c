/* Volcano's calls: their bodies, the verdict on one node, and what trials reserve. With the
 * policies of support/node_policy.h, and a clock of our own. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/cli/services.h"
#include "extender/serving/live/evaluate.h"
#include "extender/serving/live/requeue.h"
#include "extender/serving/protocol/protocol.h"
#include "extender/serving/verbs/verbs.h"
#include "support/node_policy.h"
#include "support/process.h"

enum { BODY_BYTES_MAX = 1 << 20 };

static struct state state;
static struct scratch scratch;

static uint64_t now_ns = 1000 * NS_PER_SECOND;

uint64_t __wrap_monotonic_ns(void);
uint64_t __wrap_monotonic_ns(void)
{
    return now_ns;
}

static void apply(const struct object *object)
{
    struct error err = {0};

    cr_assert_eq(cluster_apply(&state.cluster, object, &err), 0, "%s", err.message);
}

/* A pod of priority 0 on node-2 has the claim. */
static void hold(const char *claim, const char *pod, const char *uid)
{
    struct claim_reference held = {.name = slice_of(claim)};
    struct object holder = {.kind = KIND_POD};

    holder.meta = (struct meta){.ns = SLICE("ns"), .name = slice_of(pod), .uid = slice_of(uid)};
    holder.pod = (struct pod_object){
        .meta = holder.meta, .node = SLICE("node-2"), .claims = &held, .claim_count = 1};
    apply(&holder);
}

/* The ReadWriteOncePod claims "free", and "held", by a pod. */
static void setup(void)
{
    struct config *config;
    struct error err = {0};
    struct object claim = {.kind = KIND_CLAIM};

    cr_assert_eq(config_load(&config, NULL, &err), 0);
    cr_assert_eq(services_init(&state, config, &err), 0);
    for (int i = 0; i < 2; i++) {
        claim.meta = (struct meta){.ns = SLICE("ns"), .name = slice_of(i == 0 ? "free" : "held")};
        claim.claim = (struct claim_object){.meta = claim.meta, .is_rwop = true};
        apply(&claim);
    }
    hold("held", "holder", "10000000-0000-4000-8000-000000000000");
    scratch_init(&scratch, BODY_BYTES_MAX, NULL);
}

static void teardown(void)
{
    scratch_dispose(&scratch);
    services_dispose(&state);
}

TestSuite(volcano, .init = setup, .fini = teardown, .timeout = 60);

/* ---- bodies ---- */

#define POD(name_, claim_, priority_) \
    "{\"metadata\":{\"name\":\"" name_ "\",\"namespace\":\"ns\",\"uid\":\"u-" name_ \
    "\"},\"spec\":{\"priority\":" priority_ ",\"volumes\":[{\"name\":\"v\"," \
    "\"persistentVolumeClaim\":{\"claimName\":\"" claim_ "\"}}]}}"
#define CALL(pod_, node_) "{\"task\":{\"Pod\":" pod_ "},\"node\":{\"Name\":\"" node_ "\"}}"

static int read_call(const char *body, struct predicate_request *out, struct error *err)
{
    scratch_reset(&scratch);
    return protocol_read_predicate(out, slice_of(body), &scratch.arena, err);
}

Test(volcano, a_body_of_volcanos_own_structs_is_read)
{
    char *body = read_file(TESTS_DIR "/fixtures/volcano/predicate-conflict-request.json");
    struct predicate_request request;
    struct error err = {0};

    cr_assert_eq(read_call(body, &request, &err), 0, "%s", err.message);
    cr_expect(slice_equal(request.node, SLICE("node-1")));
    cr_expect(slice_equal(request.pod.meta.name, SLICE("b-high")));
    cr_expect(slice_equal(request.pod.meta.ns, SLICE("default")));
    cr_expect(slice_equal(request.pod.meta.uid, SLICE("8c9907a8-a9e0-4c2e-b657-56bb7a5848b1")));
    cr_expect_eq(request.pod.priority, 1000);
    cr_assert_eq(request.pod.claim_count, 1);
    cr_expect(slice_equal(request.pod.claims[0].name, SLICE("claim-b")));
    free(body);
}

Test(volcano, every_cut_of_a_body_is_refused)
{
    char *body = read_file(TESTS_DIR "/fixtures/volcano/predicate-conflict-request.json");
    struct predicate_request request;
    size_t length = strlen(body);

    while (length > 0 && body[length - 1] != '}')
        length--;
    while (length-- > 0) {
        struct error err = {0};
        body[length] = '\0';
        cr_expect_eq(read_call(body, &request, &err), ERROR_INVALID, "cut at %zu", length);
    }
    free(body);
}

static const char ns_254[] = /* a name of 254 bytes */
    "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
    "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
    "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn";

#define META "{\"metadata\":{\"name\":\"a\"}}"

static const struct {
    const char *body, *problem; /* NULL: it is read */
} bodies[] = {
    {"{\"task\":{\"Pod\":" META "},\"node\":{\"Name\":\"n\"}}", NULL},
    {"{\"TASK\":{\"pod\":" META "},\"Node\":{\"name\":\"n\"}}", NULL},
    {"{\"node\":{\"Node\":null,\"Name\":\"n\",\"Tasks\":{\"x\":[{}]}},\"task\":{\"Name\":7,"
     "\"Pod\":" META "},\"more\":null}",
     NULL},
    {"", "unexpected end"},
    {"null", "expected an object"},
    {"[]", "expected an object"},
    {"{}", "Pod is missing"},
    {"{\"task\":null,\"node\":{\"Name\":\"n\"}}", "Pod is missing"},
    {"{\"task\":{},\"node\":{\"Name\":\"n\"}}", "Pod is missing"},
    {"{\"task\":{\"Pod\":null},\"node\":{\"Name\":\"n\"}}", "task.Pod: expected an object"},
    {"{\"task\":[],\"node\":{\"Name\":\"n\"}}", "task: expected an object"},
    {"{\"task\":{\"Pod\":7},\"node\":{\"Name\":\"n\"}}", "task.Pod: expected an object"},
    {"{\"task\":{\"Pod\":" META ",\"pod\":" META "},\"node\":{\"Name\":\"n\"}}",
     "task.Pod: this key appears twice"},
    {"{\"task\":{\"Pod\":" META "}}", "node.Name is missing"},
    {"{\"task\":{\"Pod\":" META "},\"node\":null}", "node.Name is missing"},
    {"{\"task\":{\"Pod\":" META "},\"node\":{\"Name\":\"\"}}", "node.Name is missing"},
    {"{\"task\":{\"Pod\":" META "},\"node\":{\"Node\":" META "}}", "node.Name is missing"},
    {"{\"task\":{\"Pod\":" META "},\"node\":{\"Name\":[\"n\"]}}", "node.Name: expected a string"},
    {"{\"task\":{\"Pod\":" META "},\"node\":{\"Name\":\"n\",\"name\":\"m\"}}",
     "node.Name: this key appears twice"},
    {"{\"task\":{\"Pod\":" META "},\"node\":{\"Name\":\"n\"},\"node\":{\"Name\":\"m\"}}",
     "node: this key appears twice"},
    {"{\"task\":{\"Pod\":" META "},\"node\":{\"Tasks\":{\"x\":[}},\"Name\":\"n\"}}", "body:1:"},
    {"{\"task\":{\"Pod\":" META "},\"node\":{\"Name\":\"n\"}} {}", "expected the end"},
};

Test(volcano, what_is_no_call_is_refused_with_its_place)
{
    struct predicate_request request;

    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct error err = {0};
        int want = bodies[i].problem == NULL ? 0 : ERROR_INVALID;
        cr_expect_eq(read_call(bodies[i].body, &request, &err), want, "%s: %s", bodies[i].body,
                     err.message);
        cr_expect(want == 0 || strstr(err.message, bodies[i].problem) != NULL, "%s: %s",
                  bodies[i].body, err.message);
    }
}

Test(volcano, a_nodes_name_has_at_most_253_bytes)
{
    for (size_t cut = 0; cut < 2; cut++) {
        struct predicate_request request;
        struct error err = {0};
        char *body = NULL;
        cr_assert_gt(asprintf(&body, "{\"task\":{\"Pod\":" META "},\"node\":{\"Name\":\"%s\"}}",
                              ns_254 + cut),
                     0);
        cr_expect_eq(read_call(body, &request, &err), cut == 0 ? ERROR_INVALID : 0, "%s",
                     err.message);
        free(body);
    }
}

/* ---- answers ---- */

static void expect_written(enum verdict_code code, const char *reason, const char *want)
{
    struct buf out;

    buf_init(&out, 4096);
    protocol_write_predicate(&out, code, slice_of(reason));
    cr_expect(slice_equal(buf_slice(&out), slice_of(want)), "%.*s", SLICE_ARG(buf_slice(&out)));
    buf_dispose(&out);
}

Test(volcano, an_answer_has_volcanos_codes)
{
    expect_written(CODE_SUCCESS, "", "{\"status\":\"\",\"code\":0}");
    expect_written(CODE_SKIP, "", "{\"status\":\"\",\"code\":0}");
    expect_written(CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, "a \"b\"",
                   "{\"status\":\"a \\\"b\\\"\",\"code\":3}");
    expect_written(CODE_UNSCHEDULABLE, "held", "{\"status\":\"held\",\"code\":3}");
    expect_written(CODE_ERROR, "no memory", "{\"status\":\"no memory\",\"code\":1}");
}

Test(volcano, a_rejection_never_has_an_empty_text)
{
    expect_written(CODE_UNSCHEDULABLE, "", "{\"status\":\"out of memory\",\"code\":3}");
    expect_written(CODE_ERROR, "", "{\"status\":\"out of memory\",\"code\":1}");
}

/* ---- verdicts ---- */

static unsigned call(const char *body)
{
    scratch_reset(&scratch);
    buf_put(&scratch.body, slice_of(body));
    return verb_answer(&state, VERB_VOLCANO_PREDICATE, &scratch);
}

static void expect_answer(const char *body, const char *want)
{
    cr_expect_eq(call(body), 200);
    cr_expect(slice_equal(scratch.result, slice_of(want)), "%s: %.*s", body,
              SLICE_ARG(scratch.result));
}

#define PASSES      "{\"status\":\"\",\"code\":0}"
#define REJECTED(s) "{\"status\":\"" s "\",\"code\":3}"
#define IN_USE      "claim ns/held is in use by pod ns/holder on node-2"

/* Of the pod of that name; NULL: it has none. */
static const struct reservation *reservation(const char *name)
{
    char uid[64];

    (void)snprintf(uid, sizeof uid, "u-%s", name);
    return reservation_of(
        &state.cluster,
        &(struct object_reference){KIND_POD, SLICE("ns"), slice_of(name), slice_of(uid)});
}

Test(volcano, a_pod_that_passes_reserves_its_claim)
{
    expect_answer(CALL(POD("web", "free", "0"), "node-1"), PASSES);
    cr_expect_not_null(reservation("web"));
    expect_answer(CALL(POD("other", "free", "0"), "node-1"),
                  REJECTED("claim ns/free is reserved for pod ns/web"));
}

Test(volcano, a_held_claim_is_refused_and_nothing_is_requeued_or_evicted_for_it)
{
    expect_answer(CALL(POD("web", "held", "0"), "node-1"), REJECTED(IN_USE));
    expect_answer(CALL(POD("web", "held", "100"), "node-1"), REJECTED(IN_USE));
    cr_expect_eq(requeue_waiting(state.requeue), 0);
    cr_expect_null(state.cluster.reservations);
}

Test(volcano, the_node_decides_where_the_verdict_differs)
{
    expect_answer(CALL(POD("tested", "free", "0"), "node-2"), PASSES);
    expect_answer(CALL(POD("tested", "free", "0"), "node-1"), REJECTED(NODE_POLICY_TESTED));
    expect_answer(CALL(POD("tested", "held", "9"), "node-1"),
                  REJECTED(IN_USE "; " NODE_POLICY_TESTED));
}

Test(volcano, a_node_that_is_refused_does_not_end_the_reservation_of_another)
{
    expect_answer(CALL(POD("tested", "free", "0"), "node-2"), PASSES);
    expect_answer(CALL(POD("tested", "free", "0"), "node-1"), REJECTED(NODE_POLICY_TESTED));
    cr_expect_not_null(reservation("tested"), "Volcano binds it to node-2");
}

Test(volcano, a_pod_that_is_rejected_on_every_node_has_no_reservation)
{
    expect_answer(CALL(POD("tested", "free", "0"), "node-2"), PASSES);
    hold("free", "second", "10000000-0000-4000-8000-000000000001");
    expect_answer(CALL(POD("tested", "free", "0"), "node-1"),
                  REJECTED("claim ns/free is in use by pod ns/second on node-2"));
    cr_expect_null(reservation("tested"));
}

Test(volcano, a_pod_that_one_node_rejects_is_not_unschedulable)
{
    size_t counts[POLICIES_MAX];

    expect_answer(CALL(POD("tested", "free", "0"), "node-1"), REJECTED(NODE_POLICY_TESTED));
    metrics_count_rejected(&state.metrics, counts);
    cr_expect_eq(counts[0] + counts[1] + counts[2] + counts[3], 0);
    expect_answer(CALL(POD("tested", "held", "0"), "node-1"), REJECTED(IN_USE));
    metrics_count_rejected(&state.metrics, counts);
    cr_expect_eq(counts[0], 1);
}

Test(volcano, before_the_sync_no_pod_passes)
{
    atomic_store(&state.status[KIND_POD].is_synced, false);
    expect_answer(CALL(POD("web", "free", "0"), "node-1"),
                  "{\"status\":\"the cache is not synced yet: pods\",\"code\":1}");
}

Test(volcano, a_bad_body_is_a_400)
{
    cr_expect_eq(call("{\"task\":{}}"), 400);
    cr_expect(slice_equal(scratch.result, SLICE("{\"error\":\"body: Pod is missing\"}")), "%.*s",
              SLICE_ARG(scratch.result));
}

/* ---- what repeated trials reserve ---- */

enum { TTL_S = 30 };

static void pass_seconds(uint64_t seconds)
{
    now_ns += seconds * NS_PER_SECOND;
}

static void try_free(void)
{
    expect_answer(CALL(POD("web", "free", "0"), "node-1"), PASSES);
}

Test(volcano, trials_do_not_prolong_a_reservation)
{
    uint64_t first_ns = now_ns;

    for (int i = 0; i <= TTL_S - 6; i++, pass_seconds(1)) {
        try_free();
        cr_expect_eq(reservation("web")->expires_ns, first_ns + TTL_S * NS_PER_SECOND);
    }
}

Test(volcano, a_trial_reserves_for_the_bind_that_may_follow)
{
    try_free();
    pass_seconds(TTL_S - 1);
    try_free();
    cr_assert_not_null(reservation("web"));
    cr_expect_eq(reservation("web")->expires_ns, now_ns + TRIAL_LEAD_MS * NS_PER_MS);
}

Test(volcano, a_pod_that_is_tried_on_and_on_lets_others_have_their_turn)
{
    for (int i = 0; i < TTL_S; i++, pass_seconds(1))
        try_free();
    while (reservation("web") != NULL) {
        pass_seconds(1);
        try_free();
    }
    expect_answer(CALL(POD("other", "free", "0"), "node-1"), PASSES);
    expect_answer(CALL(POD("web", "free", "0"), "node-1"),
                  REJECTED("claim ns/free is reserved for pod ns/other"));
}

Test(volcano, a_pod_that_nobody_else_wants_reserves_again)
{
    uint64_t first_ns = now_ns;

    try_free();
    pass_seconds(TTL_S + 5);
    try_free();
    cr_expect_null(reservation("web"), "the others' turn");
    pass_seconds(5);
    try_free();
    cr_assert_not_null(reservation("web"));
    cr_expect_eq(reservation("web")->expires_ns, first_ns + (2 * TTL_S + 10) * NS_PER_SECOND);
}

Test(volcano, a_pod_that_was_rejected_reserves_at_once_when_it_passes)
{
    try_free();
    pass_seconds(TTL_S + 5); /* its turn is over */
    expect_answer(CALL(POD("web", "held", "0"), "node-1"), REJECTED(IN_USE));
    try_free();
    cr_expect_not_null(reservation("web"));
}
