/* How a pod mounts its volumes: read, kept, and never taken back while the pod has them. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cache/cluster/cluster.h"
#include "cache/objects/details.h"
#include "support/load.h"
#include "support/process.h"

static struct cluster cluster;
static struct arena arena;

static void setup(void)
{
    cluster_init(&cluster);
    arena_init(&arena, 16 << 20);
}

static void teardown(void)
{
    cluster_dispose(&cluster);
    arena_dispose(&arena);
}

TestSuite(mounts, .init = setup, .fini = teardown);

static struct pod_object read_pod(const char *text)
{
    struct pod_object pod;
    struct pull json;

    pull_init(&json, slice_of(text));
    cr_assert(pod_read(&json, &arena, &pod), "%s", json.problem);
    return pod;
}

Test(mounts, a_pod_with_all_volume_kinds)
{
    char *text = read_file(TESTS_DIR "/fixtures/apiserver/get-pod-all-volume-kinds.json");
    const struct pod_mounts *mounts = read_pod(text).mounts;
    size_t sources[4] = {0};

    for (uint32_t i = 0; i < mounts->volume_count; i++)
        sources[mounts->volumes[i].source]++;
    cr_expect_eq(sources[VOLUME_SOURCE_CLAIM], 1);
    cr_expect_eq(sources[VOLUME_SOURCE_EPHEMERAL], 1);
    cr_expect_eq(sources[VOLUME_SOURCE_CSI], 1);
    cr_expect_geq(sources[VOLUME_SOURCE_OTHER], 1);
    cr_expect(slice_equal(mounts_find(mounts, SLICE("scratch"))->claim, SLICE("mixed-scratch")));
    free(text);
}

Test(mounts, a_snapshot_keeps_what_decides_and_no_more)
{
    static const char pod[] =
        "{\"metadata\":{\"name\":\"a\",\"annotations\":{\"x\":\"y\",\"claimguard.io/"
        "defer-fs-mount\":"
        "\"v\"}},\"spec\":{\"runtimeClassName\":\"m\",\"securityContext\":{\"fsGroup\":7,"
        "\"runAsUser\":1},\"containers\":[{\"name\":\"c\",\"env\":[{\"name\":\"PASSWORD\","
        "\"value\":"
        "\"secret\"}],\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/x\",\"subPath\":\"s\"}],"
        "\"securityContext\":{\"seLinuxOptions\":{\"level\":\"s0:c1\"},\"privileged\":false}}],"
        "\"volumes\":[{\"name\":\"v\",\"csi\":{\"driver\":\"d\",\"fsType\":\"xfs\","
        "\"volumeAttributes\":{\"k\":\"secret\"},\"nodePublishSecretRef\":{\"name\":\"n\"}}}]}}";
    struct error err = {0};
    struct buf out;

    buf_init(&out, 1 << 16);
    cr_assert_eq(object_project(slice_of(pod), KIND_POD, NULL, &out, &err), 0, "%s", err.message);
    const char *text = buf_text(&out);
    cr_expect_null(strstr(text, "secret"), "%s", text);
    cr_expect_null(strstr(text, "runAsUser"));
    const struct pod_mounts *mounts = read_pod(text).mounts;
    const struct pod_volume *volume = &mounts->volumes[0];
    cr_expect(mounts->has_fs_group && slice_equal(mounts->runtime_class, SLICE("m")));
    cr_expect(volume->has_sub_path && volume->has_selinux && volume->has_secret &&
              volume->is_annotated);
    cr_expect(slice_equal(volume->driver, SLICE("d")) &&
              slice_equal(volume->fs_type, SLICE("xfs")));
    buf_dispose(&out);
}

Test(mounts, of_a_pod_with_very_many_volumes_are_not_looked_at)
{
    struct buf text;

    buf_init(&text, 16 << 20);
    buf_printf(&text, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"volumes\":[");
    for (int i = 0; i < 5000; i++)
        buf_printf(&text, "%s{\"name\":\"v%d\",\"emptyDir\":{}}", i == 0 ? "" : ",", i);
    buf_printf(&text, "]}}");
    cr_expect_null(read_pod(buf_text(&text)).mounts);
    buf_dispose(&text);
}

Test(mounts, the_annotation_is_a_list)
{
    cr_expect(annotation_names(SLICE("data"), SLICE("data")));
    cr_expect(annotation_names(SLICE("logs, data ,x"), SLICE("data")));
    cr_expect_not(annotation_names(SLICE("data2,xdata"), SLICE("data")));
    cr_expect_not(annotation_names(SLICE(",,"), SLICE("data")));
    cr_expect_not(annotation_names(SLICE(""), SLICE("data")));
}

/* Each of so many volumes is mounted, and named by the annotation. */
static void put_many(struct buf *text, int count)
{
    buf_printf(text, "{\"metadata\":{\"name\":\"a\",\"annotations\":{"
                     "\"claimguard.io/defer-fs-mount\":\"v0");
    for (int i = 1; i < count; i++)
        buf_printf(text, ",v%d", i);
    buf_printf(text, "\"}},\"spec\":{\"runtimeClassName\":\"m\",\"containers\":[{\"name\":\"c\","
                     "\"volumeMounts\":[");
    for (int round = 0; round < 10; round++)
        for (int i = 0; i < count; i++)
            buf_printf(text, "%s{\"name\":\"v%d\",\"subPath\":\"x\"}", round + i == 0 ? "" : ",",
                       i);
    buf_printf(text, "]}],\"volumes\":[");
    for (int i = 0; i < count; i++)
        buf_printf(text, "%s{\"name\":\"v%d\",\"csi\":{}}", i == 0 ? "" : ",", i);
    buf_printf(text, "]}}");
}

/* What it costs to read such a pod, of the thread's time. */
static double reading_cost(int count)
{
    struct timespec begin, end;
    struct buf text;

    buf_init(&text, 8 << 20);
    put_many(&text, count);
    cr_assert_not(text.failed);
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    const struct pod_mounts *mounts = read_pod(buf_text(&text)).mounts;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    for (int i = 0; i < count; i++)
        cr_assert(mounts->volumes[i].is_annotated && mounts->volumes[i].has_sub_path);
    buf_dispose(&text);
    return (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
}

/* Of ten times as many, looking through all for each took a hundred times as long: the thread that
 * asks the API server reads pods. */
Test(mounts, many_volumes_cost_little_more_than_their_number)
{
    double few = reading_cost(100), many = reading_cost(1000);

    cr_expect_lt(many, 35 * few, "%.0f and %.0f ns", many, few);
}

/* A driver reads it, however long it is. */
Test(mounts, of_an_annotation_that_is_too_long_to_be_kept_the_deferrals_count)
{
    struct buf text;

    buf_init(&text, 1 << 20);
    buf_printf(&text,
               "{\"metadata\":{\"name\":\"a\",\"annotations\":{\"claimguard.io/defer-fs-mount\":"
               "\"v");
    for (int i = 0; i < DEFER_FS_MOUNT_BYTES_MAX; i++)
        buf_printf(&text, ",");
    buf_printf(&text, "w\"}},\"spec\":{\"volumes\":[");
    for (const char *name = "uvw"; *name != '\0'; name++)
        buf_printf(&text, "%s{\"name\":\"%c\",\"persistentVolumeClaim\":{\"claimName\":\"%c\"}}",
                   *name == 'u' ? "" : ",", *name, *name);
    buf_printf(&text, "]}}");
    struct pod_object pod = read_pod(buf_text(&text));
    cr_expect_null(pod.mounts, "claimguard defers none itself");
    cr_assert_eq(pod.claim_count, 3);
    cr_expect_not(pod.claims[0].is_deferred);
    cr_expect(pod.claims[1].is_deferred && pod.claims[2].is_deferred);
    buf_dispose(&text);
}

/* A pod with volumes v and w on claims c and d. */
static void put_pod(const char *version, const char *node, const char *annotation)
{
    char text[1024];

    (void)snprintf(text, sizeof text,
                   "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"uid\":"
                   "\"u\",\"resourceVersion\":\"%s\",\"annotations\":{\"claimguard.io/"
                   "defer-fs-mount\":\"%s\"}},\"spec\":{\"runtimeClassName\":\"microvm\","
                   "\"nodeName\":\"%s\",\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{"
                   "\"claimName\":\"c\"}},{\"name\":\"w\",\"persistentVolumeClaim\":{\"claimName\":"
                   "\"d\"}}]}}",
                   version, annotation, node);
    load_text(&cluster, text);
}

static struct pod *find_pod(void)
{
    return cluster_find_pod(&cluster, SLICE("default"), SLICE("p"));
}

static unsigned deferred(unsigned claim)
{
    return claim_at(find_pod()->uses[claim].claim)->deferred;
}

Test(mounts, are_kept_while_the_pod_is_pending_and_if_it_defers)
{
    put_pod("1", "", "");
    cr_assert_not_null(pod_mounts(find_pod()));
    cr_expect_null(cluster.deferring);
    put_pod("2", "n", "");
    cr_expect_null(pod_mounts(find_pod()), "it is bound, and defers nothing");
    put_pod("3", "n", "w");
    cr_assert_not_null(pod_mounts(find_pod()));
    cr_expect(slice_equal(pod_mounts(find_pod())->runtime_class, SLICE("microvm")));
    cr_expect_eq(cluster.deferring, find_pod());
    cr_expect_eq(deferred(0), 0);
    cr_expect_eq(deferred(1), 1);
}

/* A pod without a runtime class, with a volume of that source. */
static void put_plain_pod(const char *version, const char *node, const char *source)
{
    char text[512];

    (void)snprintf(text, sizeof text,
                   "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"uid\":"
                   "\"u\",\"resourceVersion\":\"%s\"},\"spec\":{\"nodeName\":\"%s\",\"volumes\":[{"
                   "\"name\":\"w\",\"emptyDir\":{}},{\"name\":\"v\",%s}]}}",
                   version, node, source);
    load_text(&cluster, text);
}

/* A bind has to check the volume's driver. */
Test(mounts, of_a_pod_with_an_inline_volume_are_kept_until_it_is_bound)
{
    put_plain_pod("1", "", "\"csi\":{\"driver\":\"d\"}");
    const struct pod_mounts *mounts = pod_mounts(find_pod());
    cr_assert_not_null(mounts);
    const struct pod_volume *volume = mounts_find(mounts, SLICE("v"));
    cr_assert_not_null(volume);
    cr_expect_eq(volume->source, VOLUME_SOURCE_CSI);
    cr_expect(slice_equal(volume->driver, SLICE("d")));
    put_plain_pod("2", "n", "\"csi\":{\"driver\":\"d\"}");
    cr_expect_null(pod_mounts(find_pod()), "it is bound");
}

Test(mounts, of_a_plain_pod_are_not_kept)
{
    put_plain_pod("1", "", "\"persistentVolumeClaim\":{\"claimName\":\"c\"}");
    cr_expect_null(pod_mounts(find_pod()));
}

Test(mounts, a_deferral_of_a_bound_pod_is_not_taken_back)
{
    struct error err = {0};

    put_pod("1", "", "");
    cluster_defer(&cluster, find_pod(), SLICE("v"));
    cr_assert_eq(cluster_assign(&cluster, find_pod(), SLICE("n"), &err), 0);
    cr_expect_eq(deferred(0), 1);
    put_pod("2", "", ""); /* the watch is behind the write and the Binding */
    cr_expect_eq(deferred(0), 1);
    cr_expect(volume_is_deferred(mounts_find(pod_mounts(find_pod()), SLICE("v"))));
    put_pod("3", "n", ""); /* someone removes the annotation */
    cr_expect_eq(deferred(0), 1);
    put_pod("4", "n", "w"); /* someone replaces it */
    cr_expect_eq(deferred(0), 1);
    cr_expect_eq(cluster.deferring, find_pod());
}

/* By claimguard, right before its Binding; the watch of that is late. */
Test(mounts, a_deferral_that_was_removed_before_the_binding_does_not_come_back)
{
    struct error err = {0};

    put_pod("1", "", "v");
    cluster_undefer(find_pod(), SLICE("v"));
    cr_expect_null(cluster.deferring);
    cr_assert_eq(cluster_assign(&cluster, find_pod(), SLICE("n"), &err), 0);
    cr_expect_eq(deferred(0), 0);
    put_pod("2", "n", "");
    cr_expect_eq(deferred(0), 0);
    cr_expect_null(pod_mounts(find_pod()));
}

Test(mounts, a_deferral_of_a_bound_pod_is_added)
{
    put_pod("1", "n", "v");
    put_pod("2", "n", "v,w");
    cr_expect(volume_is_deferred(mounts_find(pod_mounts(find_pod()), SLICE("v"))));
    cr_expect(volume_is_deferred(mounts_find(pod_mounts(find_pod()), SLICE("w"))));
}

Test(mounts, a_pending_pod_s_annotation_may_be_taken_back)
{
    put_pod("1", "", "v,w");
    cr_expect_eq(cluster.deferring, find_pod());
    put_pod("2", "", "disabled");
    cr_expect_null(cluster.deferring);
    cr_expect(mounts_opt_out(pod_mounts(find_pod())));
}

Test(mounts, pods_that_defer_are_found_and_forgotten)
{
    struct object object = {.kind = KIND_POD};

    put_pod("1", "n", "v");
    object.meta = (struct meta){.ns = SLICE("default"), .name = SLICE("p"), .uid = SLICE("u")};
    cluster_delete(&cluster, &object);
    cr_expect_null(cluster.deferring);
    cr_expect_eq(cluster.claims.count, 0);
}
