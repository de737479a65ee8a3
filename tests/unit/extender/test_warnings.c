/* What a policy that only warns says: of a filter call nothing, in the dry run, and at the bind;
 * and what follows where filters reject every node. With support/node_policy.h. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>

#include "extender/cli/services.h"
#include "extender/serving/verbs/verbs.h"
#include "support/explained.h"
#include "support/node_policy.h"

enum { BODY_BYTES_MAX = 1 << 20, WARNED = 3 /* its place among the policies */ };

static struct state state;
static struct config *config;
static struct scratch scratch;

static void apply(const struct object *object)
{
    struct error err = {0};

    cr_assert_eq(cluster_apply(&state.cluster, object, &err), 0, "%s", err.message);
}

#define HELD "claim ns/held is in use by pod ns/holder on node-2"

/* The ReadWriteOncePod claim "held", by a pod of priority 0 on node-2. */
static void setup(void)
{
    struct error err = {0};
    struct claim_reference held = {.name = SLICE("held")};
    struct object object = {.kind = KIND_CLAIM};

    cr_assert_eq(config_load(&config, NULL, &err), 0);
    cr_assert_eq(services_init(&state, config, &err), 0);
    object.meta = (struct meta){.ns = SLICE("ns"), .name = SLICE("held")};
    object.claim = (struct claim_object){.meta = object.meta, .is_rwop = true};
    apply(&object);
    object = (struct object){.kind = KIND_POD};
    object.meta = (struct meta){.ns = SLICE("ns"),
                                .name = SLICE("holder"),
                                .uid = SLICE("10000000-0000-4000-8000-000000000000")};
    object.pod = (struct pod_object){
        .meta = object.meta, .node = SLICE("node-2"), .claims = &held, .claim_count = 1};
    apply(&object);
    scratch_init(&scratch, BODY_BYTES_MAX, NULL);
}

static void teardown(void)
{
    scratch_dispose(&scratch);
    services_dispose(&state);
}

TestSuite(warnings, .init = setup, .fini = teardown, .timeout = 60);

#define UID_OF_POD "20000000-0000-4000-8000-000000000000"

/* The answer, which the caller frees. */
static json_t *ask(enum verb verb, const char *body)
{
    scratch_reset(&scratch);
    buf_put(&scratch.body, slice_of(body));
    cr_assert_eq(verb_answer(&state, verb, &scratch), 200, "%.*s", SLICE_ARG(scratch.result));
    json_t *answer = json_loadb(scratch.result.ptr, scratch.result.len, 0, NULL);
    cr_assert_not_null(answer, "%.*s", SLICE_ARG(scratch.result));
    return answer;
}

static void expect_equal(const json_t *answer, const char *key, const char *want)
{
    json_t *expected = json_loads(want, JSON_DECODE_ANY, NULL);
    char *text = json_dumps(json_object_get(answer, key), JSON_ENCODE_ANY);

    cr_expect(json_equal(json_object_get(answer, key), expected), "%s is %s", key, text);
    json_decref(expected);
    free(text);
}

/* ---- filter, and preempt ---- */

#define POD(name_, volumes_) \
    "{\"metadata\":{\"name\":\"" name_ "\",\"namespace\":\"ns\",\"uid\":\"" UID_OF_POD \
    "\"},\"spec\":{\"priority\":10,\"volumes\":[" volumes_ "]}}"
#define CLAIMED              "{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"held\"}}"
#define INLINE               "{\"name\":\"v\",\"csi\":{\"driver\":\"d\"}}"
#define FILTER(pod_, nodes_) "{\"Pod\":" pod_ ",\"NodeNames\":[" nodes_ "]}"

Test(warnings, a_pod_that_is_warned_of_passes_on_every_node)
{
    static const char list[] = "[ \"node-1\" , \"node-2\"]";
    json_t *answer = ask(VERB_FILTER, "{\"Pod\":" POD("warned", "") ",\"NodeNames\":"
                                                                    "[ \"node-1\" , \"node-2\"]}");

    cr_expect_not_null(memmem(scratch.result.ptr, scratch.result.len, list, sizeof list - 1),
                       "the list comes back as it came");
    expect_equal(answer, "FailedAndUnresolvableNodes", "{}");
    json_decref(answer);
}

/* A reader of the pod's events sees both. */
Test(warnings, a_pod_that_no_node_takes_has_its_own_reason_and_that_of_each_node)
{
    json_t *answer =
        ask(VERB_FILTER, FILTER(POD("tested", CLAIMED), "\"node-1\",\"node-3\",\"node-5\""));

    expect_equal(answer, "FailedNodes", "{}");
    expect_equal(answer, "FailedAndUnresolvableNodes",
                 "{\"node-1\":\"" HELD "; " NODE_POLICY_TESTED "\",\"node-3\":\"" HELD
                 "; " NODE_POLICY_TESTED "\",\"node-5\":\"" HELD "; " NODE_POLICY_TESTED "\"}");
    cr_expect_eq(atomic_load(&state.metrics.verdicts[0][CODE_UNSCHEDULABLE_AND_UNRESOLVABLE]), 1,
                 "the first policy decides");
    json_decref(answer);
}

Test(warnings, each_node_has_the_reason_of_the_policy_that_rejects_it)
{
    config->read_write_once.mode = MODE_ENFORCE;
    json_t *answer =
        ask(VERB_FILTER, FILTER(POD("listed-and-warned", CLAIMED), "\"node-1\",\"node-2\""));

    expect_equal(answer, "FailedAndUnresolvableNodes",
                 "{\"node-1\":\"" HELD "; " NODE_POLICY_LISTED "\",\"node-2\":\"" HELD
                 "; " NODE_POLICY_WARNED "\"}");
    json_decref(answer);
}

Test(warnings, where_one_node_would_take_the_pod_evictions_help)
{
    json_t *answer = ask(VERB_FILTER, FILTER(POD("tested", CLAIMED), "\"node-1\",\"node-2\""));

    expect_equal(answer, "FailedNodes", "{\"node-1\":\"" HELD "\",\"node-2\":\"" HELD "\"}");
    expect_equal(answer, "FailedAndUnresolvableNodes", "{}");
    json_decref(answer);
}

#define VICTIMS \
    ":{\"Pods\":[{\"UID\":\"10000000-0000-4000-8000-000000000000\"}]," \
    "\"NumPDBViolations\":0}"

/* The holder is offered on each: a stale list, for it runs on one. */
Test(warnings, preempt_drops_a_candidate_that_a_filter_rejects)
{
    json_t *answer =
        ask(VERB_PREEMPT,
            "{\"Pod\":" POD("tested", CLAIMED) ",\"NodeNameToMetaVictims\":{"
                                               "\"node-1\"" VICTIMS ",\"node-2\"" VICTIMS
                                               ",\"node-3\"" VICTIMS ",\"node-4\"" VICTIMS "}}");
    const json_t *kept = json_object_get(answer, "NodeNameToMetaVictims");

    cr_expect_eq(json_object_size(kept), 2, "%.*s", SLICE_ARG(scratch.result));
    cr_expect_not_null(json_object_get(kept, "node-2"));
    cr_expect_not_null(json_object_get(kept, "node-4"));
    json_decref(answer);
}

/* ---- /prefilter and the dry run ---- */

Test(warnings, prefilter_says_what_enforce_would)
{
    json_t *answer = ask(VERB_PREFILTER, FILTER(POD("doomed", INLINE), "\"node-1\""));

    expect_equal(answer, "code", "\"Skip\"");
    expect_equal(answer, "reasons", "[]");
    expect_equal(answer, "warnings", "[\"" NODE_POLICY_DOOMED "\",\"" NODE_POLICY_INLINE "\"]");
    json_decref(answer);
}

static json_t *explain(const char *name, size_t count, bool are_listed, struct arena *arena)
{
    static const struct slice names[] = {{"node-1", 6}, {"node-2", 6}, {"node-3", 6}};
    struct claim_reference held = {.name = SLICE("held")};
    struct pod_object pod = {.meta = {.ns = SLICE("ns"), .name = slice_of(name)},
                             .priority = 10,
                             .claims = &held,
                             .claim_count = slice_has(slice_of(name), SLICE("held"))};
    struct explained_nodes nodes = {names, count, are_listed};
    struct view view = state_view(&state);

    return explained_json(&view, &pod, &nodes, arena);
}

static json_t *dry_run(const char *name, size_t count, bool are_listed)
{
    struct arena arena;

    arena_init(&arena, 1 << 20);
    json_t *result = explain(name, count, are_listed, &arena);
    arena_dispose(&arena);
    cr_assert_not_null(result);
    return result;
}

Test(warnings, the_dry_run_lists_nodes_of_which_only_warnings_differ)
{
    json_t *result = dry_run("warned", 2, false);

    expect_equal(result, "warnings", "[]");
    expect_equal(result, "schedulable", "true");
    expect_equal(result, "nodes",
                 "[{\"name\":\"node-1\",\"code\":\"Success\",\"reasons\":[]},"
                 "{\"name\":\"node-2\",\"code\":\"Success\",\"reasons\":[],"
                 "\"warnings\":[\"" NODE_POLICY_WARNED "\"]}]");
    json_decref(result);
}

Test(warnings, the_dry_run_does_not_say_that_preemption_helps_where_no_node_takes_the_pod)
{
    json_t *result = dry_run("tested-held", 1, false);

    expect_equal(result, "preemption", "{\"helps\":false,\"victims\":[]}");
    expect_equal(result, "preFilter", "{\"code\":\"Unschedulable\",\"reasons\":[\"" HELD "\"]}");
    expect_equal(result, "nodes",
                 "[{\"name\":\"node-1\",\"code\":\"UnschedulableAndUnresolvable\","
                 "\"reasons\":[\"" HELD "\",\"" NODE_POLICY_TESTED "\"]}]");
    json_decref(result);
    result = dry_run("tested-held", 2, false);
    cr_expect(json_is_true(json_object_get(json_object_get(result, "preemption"), "helps")),
              "node-2 takes it");
    json_decref(result);
}

Test(warnings, without_memory_there_is_no_dry_run)
{
    unsigned failed = 0, made = 0;

    for (size_t bytes = 64; bytes <= 8192; bytes += 64) {
        struct arena arena;
        arena_init(&arena, bytes);
        json_t *result = explain("tested-held-warned", 1, true, &arena);
        if (result != NULL) {
            const char *code =
                json_string_value(json_object_get(json_object_get(result, "preFilter"), "code"));
            const json_t *nodes = json_object_get(result, "nodes");
            made += strcmp(code, "Error") != 0;
            cr_expect(strcmp(code, "Error") == 0 || json_array_size(nodes) == 1, "%zu", bytes);
        }
        failed += result == NULL;
        json_decref(result);
        arena_dispose(&arena);
    }
    cr_expect_gt(failed, 0);
    cr_expect_gt(made, 0);
}

/* ---- bind ---- */

static void put_pending(const char *name, const struct pod_mounts *mounts)
{
    struct object pod = {.kind = KIND_POD};

    pod.meta = (struct meta){.ns = SLICE("ns"), .name = slice_of(name), .uid = SLICE(UID_OF_POD)};
    pod.pod = (struct pod_object){.meta = pod.meta, .mounts = mounts};
    apply(&pod);
}

/* Returns whether the pod is bound. */
static bool bind(const char *name, const char *node)
{
    char body[512];

    (void)snprintf(body, sizeof body,
                   "{\"PodName\":\"%s\",\"PodNamespace\":\"ns\",\"PodUID\":\"" UID_OF_POD
                   "\",\"Node\":\"%s\"}",
                   name, node);
    json_t *answer = ask(VERB_BIND, body);
    bool is_bound = json_string_length(json_object_get(answer, "Error")) == 0;
    json_decref(answer);
    return is_bound;
}

static uint64_t counted(void)
{
    return atomic_load(&state.metrics.warnings[WARNED]);
}

Test(warnings, a_pod_that_is_bound_counts_its_warnings_once)
{
    put_pending("doomed", NULL);
    cr_expect_not(bind("other", "node-1"), "there is no such pod");
    cr_expect_eq(counted(), 0);
    cr_expect(bind("doomed", "node-1"));
    cr_expect_eq(counted(), 1);
    cr_expect(bind("doomed", "node-1"), "it is bound already");
    cr_expect_eq(counted(), 1);
    cr_expect_not(bind("doomed", "node-2"));
    cr_expect_eq(counted(), 1);
}

Test(warnings, a_bind_counts_what_is_wrong_with_its_node)
{
    put_pending("warned", NULL);
    cr_expect(bind("warned", "node-2"));
    cr_expect_eq(counted(), 1);
}

Test(warnings, a_bind_does_not_count_what_is_wrong_with_other_nodes)
{
    put_pending("warned", NULL);
    cr_expect(bind("warned", "node-1"));
    cr_expect_eq(counted(), 0);
}

Test(warnings, a_bind_that_another_policy_refuses_counts_none)
{
    put_pending("doomed-and-tested", NULL);
    cr_expect_not(bind("doomed-and-tested", "node-1"));
    cr_expect_eq(counted(), 0);
}

Test(warnings, off_says_nothing)
{
    config->read_write_once.mode = MODE_OFF;
    put_pending("doomed", NULL);
    cr_expect(bind("doomed", "node-1"));
    cr_expect_eq(counted(), 0);
}

Test(warnings, enforce_refuses_the_bind)
{
    config->read_write_once.mode = MODE_ENFORCE;
    put_pending("warned", NULL);
    cr_expect_not(bind("warned", "node-2"));
    cr_expect(bind("warned", "node-1"));
    cr_expect_eq(counted(), 0);
}

/* A pod without a runtime class: its mounts are stored for this alone. */
Test(warnings, a_bind_sees_the_pods_inline_volumes)
{
    struct pod_volume volume = {
        .name = SLICE("v"), .driver = SLICE("d"), .source = VOLUME_SOURCE_CSI};
    struct pod_mounts mounts = {.volume_count = 1, .volumes = &volume};

    put_pending("warned", &mounts);
    cr_expect(bind("warned", "node-1"));
    cr_expect_eq(counted(), 1);
}
