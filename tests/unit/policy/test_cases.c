/* Every case of tests/cases, through the policies: the verdict, and the decision about each volume.
 */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cases/cases.h"
#include "policy/defer_fs_mount.h"
#include "policy/policy.h"
#include "support/load.h"

struct loaded {
    struct cluster cluster;
    struct config *config;
    json_t *want;
};

static struct slice text_of(const json_t *object, const char *key)
{
    return slice_of(json_string_value(json_object_get(object, key)));
}

static void expect_texts(const json_t *want, const struct slice *texts, size_t count)
{
    cr_assert_eq(json_array_size(want), count);
    for (size_t i = 0; i < count; i++)
        cr_expect(slice_equal(slice_of(json_string_value(json_array_get(want, i))), texts[i]),
                  "reason: %.*s", SLICE_ARG(texts[i]));
}

static void expect_warnings(const json_t *want, const struct verdict *verdict)
{
    struct slice texts[WARNINGS_MAX];

    for (size_t i = 0; i < verdict->warning_count; i++)
        texts[i] = verdict->warnings[i].text;
    expect_texts(want, texts, verdict->warning_count);
}

/* What policies that only warn say of the node. */
static void expect_node_warnings(const json_t *node, const struct verdict *verdict,
                                 struct arena *arena)
{
    struct slice texts[WARNINGS_MAX], name = text_of(node, "name");
    const struct node_filter *filter = NULL;
    size_t count = 0;

    while (count < WARNINGS_MAX &&
           (filter = policy_warn(verdict, filter, name, arena, &texts[count])) != NULL)
        count++;
    expect_texts(json_object_get(node, "warnings"), texts, count);
}

/* The verdict on each node, where the pod itself passes. */
static void expect_nodes(const json_t *want, const struct verdict *verdict, struct arena *arena)
{
    size_t i;
    json_t *node;

    json_array_foreach (json_object_get(want, "nodes"), i, node) {
        struct slice reason;
        expect_node_warnings(node, verdict, arena);
        if (code_is_rejection(verdict->code))
            continue;
        const struct node_filter *filter =
            policy_filter(verdict, text_of(node, "name"), arena, &reason);
        expect_texts(json_object_get(node, "reasons"), &reason, filter != NULL);
    }
}

static bool rejects_all_nodes(const struct verdict *verdict, const json_t *want,
                              struct arena *arena)
{
    const json_t *nodes = json_object_get(want, "nodes");
    size_t rejected = 0, i;
    struct slice reason;
    json_t *node;

    json_array_foreach (nodes, i, node)
        rejected += policy_filter(verdict, text_of(node, "name"), arena, &reason) != NULL;
    return rejected != 0 && rejected == json_array_size(nodes);
}

static void expect_verdict(const struct view *view, const struct pod_object *pod,
                           const json_t *want, struct arena *arena)
{
    const json_t *prefilter = json_object_get(want, "preFilter");
    const json_t *victims = json_object_get(json_object_get(want, "preemption"), "victims");
    struct verdict verdict;

    policy_prefilter(view, pod, arena, &verdict);
    cr_expect(slice_equal(slice_of(code_text(verdict.code)), text_of(prefilter, "code")));
    expect_texts(json_object_get(prefilter, "reasons"), verdict.reasons, verdict.reason_count);
    expect_warnings(json_object_get(want, "warnings"), &verdict);
    expect_nodes(want, &verdict, arena);
    if (rejects_all_nodes(&verdict, want, arena)) /* then evictions do not help */
        verdict.victim_count = 0;
    cr_assert_eq(verdict.victim_count, json_array_size(victims));
    for (size_t i = 0; i < verdict.victim_count; i++)
        cr_expect(uid_is(&verdict.victims[i]->uid, text_of(json_array_get(victims, i), "uid")));
}

/* Where no configuration has an entry, the dry run reports nothing about volumes. */
static void expect_decisions(const struct view *view, const struct pod_object *pod,
                             const json_t *want, struct arena *arena)
{
    const json_t *decisions = json_object_get(want, "deferFSMount");

    for (size_t i = 0; i < json_array_size(decisions); i++) {
        const json_t *wanted = json_array_get(decisions, i);
        struct decision decision;
        cr_assert_lt(i, pod->mounts->volume_count);
        defer_decide(view, pod, &pod->mounts->volumes[i], &decision);
        struct slice reason = defer_reason(pod, &decision, arena);
        cr_expect(slice_equal(pod->mounts->volumes[i].name, text_of(wanted, "volume")));
        cr_expect_eq(decision.rule == RULE_NONE, json_is_true(json_object_get(wanted, "defer")));
        cr_expect(slice_equal(reason, text_of(wanted, "reason")), "%.*s", SLICE_ARG(reason));
    }
}

static void expect_all_of(const struct verdict *want, const struct verdict *got, size_t bytes)
{
    cr_expect(
        got->code == want->code && got->reason_count == want->reason_count &&
            got->cause_count == want->cause_count && got->awaited_count == want->awaited_count &&
            got->warning_count == want->warning_count && got->victim_count == want->victim_count,
        "%zu bytes: %s", bytes, code_text(got->code));
    for (size_t i = 0; i < got->reason_count; i++)
        cr_expect(got->reasons[i].ptr != NULL, "%zu bytes", bytes);
    for (size_t i = 0; i < got->warning_count; i++)
        cr_expect(got->warnings[i].text.ptr != NULL, "%zu bytes", bytes);
}

/* With too little memory, the verdict is an Error, and never a part of the whole one. */
static void expect_whole_or_error(const struct view *view, const struct pod_object *pod)
{
    struct verdict whole, verdict = {.code = CODE_ERROR};
    struct arena arena, little;

    arena_init(&arena, 1 << 20);
    policy_prefilter(view, pod, &arena, &whole);
    for (size_t bytes = 0; bytes < arena.used_bytes || verdict.code == CODE_ERROR; bytes += 16) {
        arena_init(&little, bytes);
        policy_prefilter(view, pod, &little, &verdict);
        if (verdict.code != CODE_ERROR)
            expect_all_of(&whole, &verdict, bytes);
        arena_dispose(&little);
    }
    arena_dispose(&arena);
}

static void evaluate(void *context, const struct pod_object *pod)
{
    struct loaded *loaded = context;
    struct view view = {.cluster = &loaded->cluster, .config = loaded->config};
    struct arena arena;

    arena_init(&arena, 1 << 20);
    expect_verdict(&view, pod, loaded->want, &arena);
    expect_decisions(&view, pod, loaded->want, &arena);
    expect_whole_or_error(&view, pod);
    arena_dispose(&arena);
}

/* `name`: POLICY/ROW. */
static void check(const char *name)
{
    struct loaded loaded;
    struct error err = {0};
    char path[512];

    (void)snprintf(path, sizeof path, TESTS_DIR "/cases/%s/filter.json", name); /* as HTTP */
    if (access(path, F_OK) != 0)
        (void)snprintf(path, sizeof path, TESTS_DIR "/cases/%s/want.json", name);
    loaded.want = json_load_file(path, 0, NULL);
    cr_assert_not_null(loaded.want);
    (void)snprintf(path, sizeof path, TESTS_DIR "/cases/%s/config.yaml", name);
    cr_assert_eq(config_load(&loaded.config, access(path, F_OK) == 0 ? path : NULL, &err), 0, "%s",
                 err.message);
    cluster_init(&loaded.cluster);
    (void)snprintf(path, sizeof path, TESTS_DIR "/cases/%s/cluster.yaml", name);
    load_file(&loaded.cluster, path);
    (void)snprintf(path, sizeof path, TESTS_DIR "/cases/%s/pod.json", name);
    with_pod(path, evaluate, &loaded);
    cluster_dispose(&loaded.cluster);
    config_free(loaded.config);
    json_decref(loaded.want);
}

#define CASE(policy, row) \
    Test(policy, policy##_##row) \
    { \
        check(#policy "/" #row); \
    }
ALL_CASES(CASE)
