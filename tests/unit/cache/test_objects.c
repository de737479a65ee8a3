/* Objects as a real kube-apiserver answered them (tests/fixtures/apiserver). */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/objects/objects.h"
#include "support/load.h"
#include "support/process.h"

static struct cluster cluster;

static void setup(void)
{
    cluster_init(&cluster);
}

static void teardown(void)
{
    cluster_dispose(&cluster);
}

TestSuite(objects, .init = setup, .fini = teardown);

static struct object decode(const char *file, enum kind kind, struct arena *arena, char **text)
{
    struct object object;
    struct pull json;
    char path[512];

    (void)snprintf(path, sizeof path, TESTS_DIR "/fixtures/apiserver/%s", file);
    *text = read_file(path);
    arena_init(arena, 1 << 20);
    pull_init(&json, slice_of(*text));
    cr_assert(object_read(&json, kind, arena, &object), "%s", json.problem);
    return object;
}

Test(objects, a_pod_with_all_volume_kinds)
{
    struct arena arena;
    char *text;
    struct object object = decode("get-pod-all-volume-kinds.json", KIND_POD, &arena, &text);
    const struct pod_object *pod = &object.pod;

    cr_expect(slice_equal(pod->meta.name, SLICE("mixed")));
    cr_expect(slice_equal(pod->meta.uid, SLICE("5f4a9f07-db44-4d6e-8882-f29146a10876")));
    cr_assert_eq(pod->claim_count, 2);
    cr_expect(slice_equal(pod->claims[0].name, SLICE("data-db-0")));
    cr_expect_not(pod->claims[0].is_ephemeral);
    cr_expect(slice_equal(pod->claims[1].name, SLICE("mixed-scratch")));
    cr_expect(pod->claims[1].is_ephemeral);
    arena_dispose(&arena);
    free(text);
}

Test(objects, a_claim_and_a_volume)
{
    struct arena arena;
    char *text;
    struct object object = decode("get-pvc-rwop.json", KIND_CLAIM, &arena, &text);

    cr_expect(object.claim.is_rwop);
    cr_expect(slice_equal(object.claim.volume, SLICE("pv-data-db-0")));
    cr_expect(slice_equal(object.claim.storage_class, SLICE("fast-storage")));
    cr_expect(slice_equal(object.claim.phase, SLICE("Bound")));
    arena_dispose(&arena);
    free(text);
    object = decode("get-pv-csi.json", KIND_VOLUME, &arena, &text);
    cr_expect(slice_equal(object.resource.attributes[VOLUME_DRIVER], SLICE("plugin1.example.com")));
    cr_expect(slice_equal(object.resource.attributes[VOLUME_FS_TYPE], SLICE("ext4")));
    cr_expect(slice_equal(object.resource.attributes[VOLUME_CLAIM_NAME], SLICE("data-db-0")));
    arena_dispose(&arena);
    free(text);
}

Test(objects, every_recorded_list_is_read)
{
    load_file(&cluster, TESTS_DIR "/fixtures/apiserver");
    static const struct {
        enum kind kind;
        size_t count;
    } rows[] = {
        {KIND_CSI_NODE, 2},      {KIND_CSI_DRIVER, 2},
        {KIND_RUNTIME_CLASS, 1}, {KIND_VOLUME_ATTRIBUTES_CLASS, 2},
        {KIND_VOLUME, 1},        {KIND_POD_DISRUPTION_BUDGET, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_geq(cluster.counts[rows[i].kind], rows[i].count, "%s",
                      kind_resource(rows[i].kind));
    cr_expect_neq(cluster.counts[KIND_POD], 0);
    cr_expect_neq(cluster.counts[KIND_CLAIM], 0);
    cr_expect_neq(cluster.counts[KIND_NODE], 0);
    cr_expect_neq(cluster.counts[KIND_STORAGE_CLASS], 0);
}

Test(objects, a_kind_of_another_group_is_another_kind)
{
    cr_expect_eq(kind_of(SLICE("v1"), SLICE("Node")), KIND_NODE);
    cr_expect_eq(kind_of(SLICE("longhorn.io/v1beta2"), SLICE("Node")), KIND_OTHER);
    cr_expect_eq(kind_of(SLICE("storage.k8s.io/v1beta1"), SLICE("VolumeAttributesClass")),
                 KIND_VOLUME_ATTRIBUTES_CLASS);
    cr_expect_eq(kind_of(SLICE("v1"), SLICE("ConfigMap")), KIND_OTHER);
}

Test(objects, the_claim_of_an_ephemeral_volume_does_not_depend_on_the_order_of_keys)
{
    load_text(&cluster,
              "{\"spec\":{\"nodeName\":\"n\",\"volumes\":[{\"ephemeral\":{},\"name\":\"v\"}]},"
              "\"metadata\":{\"name\":\"p\"},\"kind\":\"Pod\",\"apiVersion\":\"v1\"}\n"
              "{\"kind\":\"PersistentVolumeClaim\",\"apiVersion\":\"v1\",\"metadata\":"
              "{\"name\":\"p-v\"}}");
    const struct claim *claim = cluster_find_claim(&cluster, SLICE("default"), SLICE("p-v"));
    cr_assert_not_null(claim);
    cr_expect_eq(claim->refs, 1);
}

Test(objects, wrong_types_are_named_with_their_path)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":1}}",
         "metadata.name: expected a string"},
        {"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"},\"spec\":{"
         "\"volumes\":"
         "[{\"name\":\"v\"},{\"persistentVolumeClaim\":{\"claimName\":[]}}]}}",
         "spec.volumes[1].persistentVolumeClaim.claimName: expected a string"},
        {"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"},"
         "\"spec\":{\"priority\":3000000000}}",
         "spec.priority does not fit 32 bits"},
        {"{\"kind\":\"PriorityClass\",\"apiVersion\":\"scheduling.k8s.io/"
         "v1\",\"metadata\":{\"name\":"
         "\"a\"},\"value\":2147483648}",
         "value does not fit 32 bits"},
        {"{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}", "a Pod without metadata.name"},
        {"{\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"}}", "an object without kind"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err = {0};
        cr_expect_eq(try_load_text(&cluster, rows[i].text, &err), ERROR_INVALID);
        cr_expect_not_null(strstr(err.message, rows[i].message), "got %s", err.message);
    }
}

Test(objects, only_a_refusal_of_the_scheduler_that_names_nobody_is_one)
{
#define TRIED(status, message) \
    "[{\"type\":\"Ready\",\"status\":\"True\"},{\"message\":\"" message "\",\"type\":" \
    "\"PodScheduled\",\"status\":\"" status "\",\"reason\":\"Unschedulable\"}]"
    static const struct {
        const char *conditions;
        bool is_refused;
    } rows[] = {
        {TRIED("False", "2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod "
                        "access mode already in-use by another pod."),
         true},
        {TRIED("False", "1 node has pod using PersistentVolumeClaim with the same name and "
                        "ReadWriteOncePod access mode, 1 Insufficient cpu."),
         true},
        {TRIED("True", "with ReadWriteOncePod access mode"), false},
        {TRIED("False", "with ReadWriteOncePod access mode is in use by pod default/a"), false},
        {TRIED("False", "2 Insufficient cpu."), false},
        {"[{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"Unschedulable\",\"message\":"
         "\"ReadWriteOncePod access mode\"}]",
         false},
        {"[{\"type\":\"PodScheduled\",\"status\":\"False\",\"message\":"
         "\"ReadWriteOncePod access mode\"}]",
         false},
        {"null", false},
        {"[]", false},
        {"{\"a\":\"ReadWriteOncePod access mode\"}", false},
        {"[\"ReadWriteOncePod access mode\"]", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pod_object pod;
        struct arena arena;
        struct pull json;
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "{\"metadata\":{\"name\":\"a\"},\"status\":{\"conditions\":%s}}",
                       rows[i].conditions);
        arena_init(&arena, 1 << 20);
        pull_init(&json, slice_of(text));
        cr_assert(pod_read(&json, &arena, &pod), "%s: %s", text, json.problem);
        cr_expect_eq(pod.is_refused_unnamed, rows[i].is_refused, "%s", text);
        arena_dispose(&arena);
    }
}

static size_t count_words(struct slice text)
{
    size_t count = text.len != 0;

    for (size_t i = 0; i < text.len; i++)
        count += text.ptr[i] == ',';
    return count;
}

Test(objects, of_a_budget_as_many_disrupted_pods_are_kept_as_the_api_server_lets_it_have)
{
    struct object object;
    struct arena arena;
    struct pull json;
    struct buf text;

    buf_init(&text, 1 << 20);
    buf_printf(&text,
               "{\"metadata\":{\"name\":\"b\"},\"status\":{\"disruptedPods\":{\"%0300d\":\"t\"", 1);
    for (int i = 0; i <= DISRUPTED_PODS_MAX; i++)
        buf_printf(&text, ",\"pod-%d\":\"2026-11-21T10:00:00Z\"", i);
    buf_put(&text, SLICE("}}}"));
    arena_init(&arena, 1 << 20);
    pull_init(&json, buf_slice(&text));
    cr_assert(object_read(&json, KIND_POD_DISRUPTION_BUDGET, &arena, &object), "%s", json.problem);
    struct slice kept = object.resource.attributes[BUDGET_DISRUPTED_PODS];
    cr_expect_eq(count_words(kept), DISRUPTED_PODS_MAX);
    cr_expect(slice_ends_with(kept, SLICE(",pod-1999")), "what is no pod's name is not kept");
    arena_dispose(&arena);
    buf_dispose(&text);
}
