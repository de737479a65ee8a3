/*
 * Every allocation fails once: loading objects, answering each verb and showing the cache, with the
 * first allocation failing, then the second, and so on until none does; then the same for the calls
 * with all allocations behind it failing, too. Nothing may crash or leak, a failure has to be
 * reported, each call answered, and the counts have to stay exact. malloc and its kin are wrapped
 * by the linker; jansson is set to use the wrapped ones.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/base/log.h"
#include "extender/cli/services.h"
#include "extender/report/explain.h"
#include "extender/serving/verbs/verbs.h"
#include "extender/serving/zpages/zpages.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static long countdown = -1; /* allocations until one fails; negative: none does */
static bool goes_on;        /* and all behind it */
static bool has_failed;

static bool fails_now(void)
{
    if (countdown < 0)
        return false;
    if (countdown != 0) {
        countdown--;
        return false;
    }
    if (!goes_on)
        countdown = -1;
    has_failed = true;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails_now() ? NULL : __real_realloc(memory, size);
}

static struct state state;

static void check(bool holds, const char *what)
{
    if (!holds) {
        (void)fprintf(stderr, "without memory: %s\n", what);
        abort();
    }
}

static bool apply(enum kind kind, const char *text)
{
    struct arena arena;
    struct object object;
    struct pull json;
    struct error err = {0};

    arena_init(&arena, 1 << 20);
    pull_init(&json, slice_of(text));
    bool ok = object_read(&json, kind, &arena, &object) &&
              cluster_apply(&state.cluster, &object, &err) == 0;
    arena_dispose(&arena);
    return ok;
}

/* Holds the claim "both". */
#define SHARER(name_, node_) \
    "{\"metadata\":{\"name\":\"" name_ "\",\"uid\":\"" name_ "\"},\"spec\":{\"nodeName\":\"" node_ \
    "\",\"volumes\":[{\"persistentVolumeClaim\":{\"claimName\":\"both\"}}]}}"

static bool has_pod(const char *name)
{
    return cluster_find_pod(&state.cluster, SLICE("default"), slice_of(name)) != NULL;
}

static const struct {
    enum kind kind;
    const char *text;
} objects[] = {
    {KIND_NODE, "{\"metadata\":{\"name\":\"n\",\"uid\":\"nu\"}}"},
    {KIND_CSI_NODE, "{\"metadata\":{\"name\":\"n\",\"ownerReferences\":[{\"kind\":\"Node\",\"uid\":"
                    "\"nu\"}]},\"spec\":{\"drivers\":[{\"name\":\"a\"},{\"name\":\"b\"}]}}"},
    {KIND_CSI_NODE, "{\"metadata\":{\"name\":\"k\",\"ownerReferences\":[{\"kind\":\"Node\",\"uid\":"
                    "\"former\"}]},\"spec\":{\"drivers\":[{\"name\":\"c\"}]}}"},
    {KIND_NODE, "{\"metadata\":{\"name\":\"k\",\"uid\":\"ku\"}}"},
    {KIND_CLAIM,
     "{\"metadata\":{\"name\":\"data\",\"uid\":\"not-a-uuid\"},\"spec\":{\"accessModes\":["
     "\"ReadWriteOncePod\"],\"storageClassName\":\"s\",\"volumeName\":\"v\"}}"},
    {KIND_POD,
     "{\"metadata\":{\"name\":\"h\",\"uid\":\"u\",\"labels\":{\"a\":\"b\"}},\"spec\":{\"nodeName\""
     ":\"n\",\"volumes\":[{\"persistentVolumeClaim\":{\"claimName\":\"data\"}},{\"name\":\"x\","
     "\"ephemeral\":{}}]}}"},
    {KIND_POD, "{\"metadata\":{\"name\":\"w\",\"uid\":\"v\"},\"spec\":{\"volumes\":[{"
               "\"persistentVolumeClaim\":{\"claimName\":\"free\"}}]}}"},
    {KIND_CLAIM,
     "{\"metadata\":{\"name\":\"free\"},\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"]}}"},
    {KIND_POD_DISRUPTION_BUDGET,
     "{\"metadata\":{\"name\":\"b\"},\"spec\":{\"selector\":{\"matchLabels\":{"
     "\"a\":\"b\"}}}}"},
    {KIND_STORAGE_CLASS, "{\"metadata\":{\"name\":\"s\"},\"provisioner\":\"p\"}"},
    {KIND_CLAIM,
     "{\"metadata\":{\"name\":\"vm\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],"
     "\"storageClassName\":\"s\",\"volumeName\":\"v\"},\"status\":{\"phase\":\"Bound\"}}"},
    {KIND_CLAIM,
     "{\"metadata\":{\"name\":\"slow\"},\"spec\":{\"storageClassName\":\"s\",\"volumeName\":\"v\","
     "\"volumeAttributesClassName\":\"gold\"},\"status\":{\"phase\":\"Bound\","
     "\"currentVolumeAttributesClassName\":\"silver\",\"modifyVolumeStatus\":{\"status\":"
     "\"Infeasible\",\"targetVolumeAttributesClassName\":\"bronze\"}}}"},
    {KIND_VOLUME_ATTRIBUTES_CLASS, "{\"metadata\":{\"name\":\"bronze\"},\"driverName\":\"e\"}"},
    {KIND_VOLUME, "{\"metadata\":{\"name\":\"u\"},\"spec\":{\"storageClassName\":\"s\","
                  "\"volumeAttributesClassName\":\"gold\"},\"status\":{\"phase\":\"Available\"}}"},
    {KIND_VOLUME,
     "{\"metadata\":{\"name\":\"v\"},\"spec\":{\"csi\":{\"driver\":\"d\"},\"claimRef\":{"
     "\"namespace\":\"default\",\"name\":\"vm\"}}}"},
    {KIND_POD, "{\"metadata\":{\"name\":\"x\",\"uid\":\"y\"},\"spec\":{\"runtimeClassName\":\"m\","
               "\"volumes\":[{\"name\":\"a\",\"persistentVolumeClaim\":{\"claimName\":\"vm\"}}]}}"},
    {KIND_POD,
     "{\"metadata\":{\"name\":\"o\",\"uid\":\"p\",\"annotations\":{\"claimguard.io/"
     "defer-fs-mount\":\"b\"}},\"spec\":{\"runtimeClassName\":\"gone\",\"nodeName\":\"n\","
     "\"volumes\":[{\"name\":\"b\",\"csi\":{\"driver\":\"e\"}}]}}"},
    {KIND_POD, SHARER("s1", "n")},
    {KIND_POD, SHARER("s2", "k")},
};

static struct defer_entry entry = {.storage_class = {"s", 1},
                                   .runtime_class = {"m", 1},
                                   .non_exclusive_claims = NON_EXCLUSIVE_EXCLUSIVE};

/* Each object in turn: it is there, or an error was reported and all is as before. */
static void load(void)
{
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        size_t before = state.cluster.counts[objects[i].kind];
        bool ok = apply(objects[i].kind, objects[i].text);
        check(ok || has_failed, "an object was refused for no reason");
        check(state.cluster.counts[objects[i].kind] == before + ok, "a count is wrong");
    }
    const struct claim *claim = cluster_find_claim(&state.cluster, SLICE("default"), SLICE("data"));
    check(claim == NULL || claim->refs == has_pod("h"), "the references are wrong");
    check(state.cluster.refs.count == (has_pod("s1") && has_pod("s2") ? 2 : 0),
          "a stored count is wrong");
}

/* Volcano takes an answer without a text for a pod that passes. */
static bool is_rejected(struct slice answer)
{
    return !has_pod("h") || (slice_has(answer, SLICE("\"status\":\"")) &&
                             !slice_has(answer, SLICE("\"status\":\"\"")));
}

static void ask(enum verb verb, const char *body)
{
    struct scratch scratch;

    scratch_init(&scratch, 1 << 20, NULL);
    buf_put(&scratch.body, slice_of(body));
    if (!scratch.body.failed) {
        unsigned status = verb_answer(&state, verb, &scratch);
        check(status == 200 || has_failed, "a call was refused for no reason");
        check(scratch.result.len != 0, "a call was not answered");
        check(verb != VERB_VOLCANO_PREDICATE || status != 200 || is_rejected(scratch.result),
              "a pod passes without its claim");
    }
    scratch_dispose(&scratch);
}

#define POD \
    "\"Pod\":{\"metadata\":{\"name\":\"asks\",\"uid\":\"a\"},\"spec\":{\"priority\":9," \
    "\"volumes\":[{" \
    "\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]}}"

#define VM \
    "\"Pod\":{\"metadata\":{\"name\":\"vm\",\"uid\":\"z\"},\"spec\":{\"runtimeClassName\":\"m\"," \
    "\"containers\":[{\"volumeMounts\":[{\"name\":\"a\",\"subPath\":\"s\"}]}],\"volumes\":[{" \
    "\"name\":" \
    "\"a\",\"persistentVolumeClaim\":{\"claimName\":\"vm\"}}]}}"

#define SLOW \
    "\"Pod\":{\"metadata\":{\"name\":\"slow\"},\"spec\":{\"volumes\":[{" \
    "\"persistentVolumeClaim\":{\"claimName\":\"slow\"}}]}}"

static void ask_all(void)
{
    static const char *const paths[] = {"/metrics", "/statusz", "/debug/cache", "/debug/snapshot"};
    struct buf out;

    ask(VERB_FILTER, "{" POD ",\"NodeNames\":[\"n\",\"m\"]}");
    ask(VERB_FILTER, "{" POD ",\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"n\"}}]}}");
    ask(VERB_PREFILTER, "{" POD "}");
    ask(VERB_FILTER, "{" VM ",\"NodeNames\":[\"n\"]}");
    ask(VERB_PREFILTER, "{" VM "}");
    ask(VERB_PREFILTER, "{" SLOW "}");
    ask(VERB_PREEMPT, "{" POD ",\"NodeNameToMetaVictims\":{\"n\":{\"Pods\":[]}}}");
    ask(VERB_VOLCANO_PREDICATE, "{\"task\":{" POD "},\"node\":{\"Name\":\"n\"}}");
    ask(VERB_BIND,
        "{\"PodName\":\"w\",\"PodNamespace\":\"default\",\"PodUID\":\"v\",\"Node\":\"new\"}");
    ask(VERB_BIND,
        "{\"PodName\":\"x\",\"PodNamespace\":\"default\",\"PodUID\":\"y\",\"Node\":\"n\"}");
    const struct pod *vm = cluster_find_pod(&state.cluster, SLICE("default"), SLICE("x"));
    check(vm == NULL || !pod_is_assigned(vm) || vm->uses[0].is_deferred,
          "a pod is bound without its decision");
    buf_init(&out, 1 << 20);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct zpages_request request = {.path = slice_of(paths[i])};
        buf_reset(&out, 0);
        struct pieces *rest = zpages_answer(&state, &request, &out).rest;
        while (rest != NULL && rest->next(rest, &out))
            continue;
        pieces_free(rest);
    }
    buf_dispose(&out);
}

/* One round; true when an allocation failed in it. */
static bool round_with(long failing, bool fails_while_loading)
{
    struct config *config;
    struct error err = {0};

    check(config_load(&config, NULL, &err) == 0 && services_init(&state, config, &err) == 0,
          "set up");
    config->server.debug_endpoints = true;
    config->defer_fs_mount.entries = &entry;
    config->defer_fs_mount.entry_count = 1;
    has_failed = false;
    countdown = fails_while_loading ? failing : -1;
    load();
    if (!fails_while_loading)
        countdown = failing;
    ask_all();
    countdown = -1;
    services_dispose(&state);
    return has_failed;
}

int main(void)
{
    long loading = 0, asking = 0, without = 0;

    json_set_alloc_funcs(__wrap_malloc, free);
    log_configure(LOG_ERROR, LOG_TEXT);
    while (round_with(loading, true))
        loading++;
    while (round_with(asking, false))
        asking++;
    goes_on = true;
    while (round_with(without, false))
        without++;
    (void)printf("%ld and %ld allocations failed, one at a time, and %ld with all behind them\n",
                 loading, asking, without);
    return loading > 20 && asking > 20 && without > 20 ? 0 : 1;
}
