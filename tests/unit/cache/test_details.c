/* Details of pods, claims and nodes; and that a snapshot has them, and no more. */
#include <criterion/criterion.h>

#include "cache/objects/details.h"

static struct arena arena;

static void begin(void)
{
    arena_init(&arena, 1 << 20);
}

static void end(void)
{
    arena_dispose(&arena);
}

TestSuite(details, .init = begin, .fini = end);

/* What a snapshot has of the text, twice the same. */
static struct slice project(enum kind kind, const char *text)
{
    struct error err = {0};
    struct buf out;

    buf_init(&out, 1 << 16);
    cr_assert_eq(object_project(slice_of(text), kind, NULL, &out, &err), 0, "%s", err.message);
    struct slice copy = arena_copy(&arena, buf_slice(&out));
    buf_dispose(&out);
    cr_expect_null(strstr(copy.ptr, "secret"), "%s", copy.ptr);
    return copy;
}

static void expect_text(struct slice got, const char *want)
{
    cr_expect(slice_equal(got, slice_of(want)), "%.*s, not %s", SLICE_ARG(got), want);
}

static const char pod[] =
    "{\"metadata\":{\"name\":\"db-0\",\"creationTimestamp\":\"2026-11-22T10:00:00Z\","
    "\"deletionTimestamp\":\"2026-11-22T11:00:30Z\",\"deletionGracePeriodSeconds\":30,"
    "\"finalizers\":[\"a/b\",\"c\"],\"labels\":{\"pod-template-hash\":\"5d9c\"},"
    "\"annotations\":{\"a\":\"secret\"},\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":"
    "\"Node\",\"name\":\"n\",\"uid\":\"secret\"},{\"apiVersion\":\"apps/v1\",\"kind\":"
    "\"ReplicaSet\",\"name\":\"db-5d9c\",\"controller\":true}]},\"spec\":{\"schedulerName\":\"s\","
    "\"containers\":[{\"name\":\"c\",\"env\":[{\"name\":\"A\",\"value\":\"secret\"}],\"args\":["
    "\"secret\"],\"image\":\"secret\"}]},\"status\":{\"phase\":\"Pending\",\"reason\":\"r\","
    "\"startTime\":\"2026-11-22T10:00:05Z\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":"
    "\"False\",\"reason\":\"Unschedulable\",\"message\":\"0/2 "
    "nodes\",\"lastProbeTime\":\"secret\"}],"
    "\"containerStatuses\":[{\"name\":\"a\",\"image\":\"secret\",\"state\":{\"running\":{}}},{"
    "\"state\":{\"waiting\":{\"reason\":\"ContainerCreating\",\"message\":\"secret\"}}}]}}";

Test(details, of_a_pod_are_read_from_its_text_and_from_a_snapshot)
{
    struct slice texts[] = {slice_of(pod), project(KIND_POD, pod)};

    for (size_t i = 0; i < 2; i++) {
        struct pod_details got;
        cr_assert(pod_details_read(texts[i], &arena, &got));
        expect_text(got.created, "2026-11-22T10:00:00Z");
        expect_text(got.started, "2026-11-22T10:00:05Z");
        expect_text(got.deletion_timestamp, "2026-11-22T11:00:30Z");
        cr_expect_eq(got.grace_seconds, 30);
        expect_text(got.scheduler, "s");
        expect_text(got.template_hash, "5d9c");
        expect_text(got.reason, "r");
        expect_text(got.containers.waiting_reason, "ContainerCreating");
        cr_assert_eq(got.finalizers.count, 2);
        expect_text(((struct slice *)got.finalizers.items)[1], "c");
        cr_assert_not_null(details_controller(&got.owners));
        expect_text(details_controller(&got.owners)->name, "db-5d9c");
        const struct condition *scheduled =
            details_condition(&got.conditions, SLICE("PodScheduled"));
        cr_assert_not_null(scheduled);
        expect_text(scheduled->message, "0/2 nodes");
        cr_expect_null(details_condition(&got.conditions, SLICE("Ready")));
    }
}

Test(details, of_a_claim_are_read_from_its_text_and_from_a_snapshot)
{
    static const char claim[] =
        "{\"metadata\":{\"name\":\"data\",\"finalizers\":[\"kubernetes.io/pvc-protection\"],"
        "\"annotations\":{\"volume.kubernetes.io/selected-node\":\"n\","
        "\"claimguard.io/holder\":\"u/db-0\",\"claimguard.io/admitted\":\"true\","
        "\"a\":\"secret\"}},\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"],\"dataSource\":"
        "\"secret\"},\"status\":{\"phase\":\"Bound\",\"conditions\":[{\"type\":\"Unused\","
        "\"status\":\"True\",\"message\":\"secret\",\"lastTransitionTime\":"
        "\"2026-11-22T10:00:00Z\"}]}}";
    struct slice texts[] = {slice_of(claim), project(KIND_CLAIM, claim)};

    for (size_t i = 0; i < 2; i++) {
        struct claim_details got;
        cr_assert(claim_details_read(texts[i], &arena, &got));
        expect_text(got.holder, "u/db-0");
        expect_text(got.admitted, "true");
        expect_text(got.selected_node, "n");
        expect_text(got.phase, "Bound");
        cr_assert_eq(got.finalizers.count, 1);
        cr_assert_eq(got.access_modes.count, 1);
        expect_text(((struct slice *)got.access_modes.items)[0], "ReadWriteOncePod");
        const struct condition *unused = details_condition(&got.conditions, SLICE("Unused"));
        cr_assert_not_null(unused);
        expect_text(unused->changed, "2026-11-22T10:00:00Z");
        cr_expect_eq(unused->message.len, 0);
    }
}

Test(details, of_a_node_are_read_from_its_text_and_from_a_snapshot)
{
    static const char node[] =
        "{\"metadata\":{\"name\":\"n\",\"labels\":{\"a\":\"b\"},\"annotations\":"
        "{\"a\":\"secret\"}},\"spec\":{\"taints\":[{"
        "\"key\":\"k\",\"value\":\"v\",\"effect\":\"NoExecute\",\"timeAdded\":\"secret\"}]},"
        "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"Unknown\",\"reason\":"
        "\"NodeStatusUnknown\",\"message\":\"secret\"}],\"images\":[\"secret\"]}}";
    struct slice texts[] = {slice_of(node), project(KIND_NODE, node)};

    for (size_t i = 0; i < 2; i++) {
        struct node_details got;
        cr_assert(node_details_read(texts[i], &arena, &got));
        expect_text(got.labels, "\na b");
        cr_assert_eq(got.taints.count, 1);
        expect_text(((struct taint *)got.taints.items)[0].effect, "NoExecute");
        expect_text(details_condition(&got.conditions, SLICE("Ready"))->reason,
                    "NodeStatusUnknown");
    }
}

Test(details, of_a_volume_are_read_from_its_text_and_from_a_snapshot)
{
    static const char volume[] =
        "{\"metadata\":{\"name\":\"v\",\"deletionTimestamp\":\"2026-11-22T11:00:30Z\","
        "\"finalizers\":[\"f\"],\"labels\":{\"z\":\"a\"},\"annotations\":{\"a\":\"secret\"}},"
        "\"spec\":{\"persistentVolumeReclaimPolicy\":\"Retain\","
        "\"csi\":{\"driver\":\"d\",\"volumeAttributes\":{\"a\":\"secret\"}},"
        "\"nodeAffinity\":{\"required\":{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":"
        "\"k\",\"operator\":\"In\",\"values\":[\"x\"]}]}]}}}}";
    struct slice texts[] = {slice_of(volume), project(KIND_VOLUME, volume)};

    for (size_t i = 0; i < 2; i++) {
        struct volume_details got;
        cr_assert(volume_details_read(texts[i], &arena, &got));
        expect_text(got.reclaim_policy, "Retain");
        expect_text(got.deletion_timestamp, "2026-11-22T11:00:30Z");
        expect_text(got.labels, "\nz a");
        cr_expect_eq(got.finalizers.count, 1);
        cr_assert_eq(got.terms.count, 1);
        expect_text(node_terms_text(&got.terms, &arena), "k in x");
    }
}

Test(details, of_a_storage_class_are_read_from_its_text_and_from_a_snapshot)
{
    static const char class[] =
        "{\"metadata\":{\"name\":\"c\"},\"parameters\":{\"a\":\"secret\"},\"volumeBindingMode\":"
        "\"Immediate\",\"allowedTopologies\":[{\"matchLabelExpressions\":[{\"key\":\"k\","
        "\"values\":[\"x\"]}]}]}";
    struct slice texts[] = {slice_of(class), project(KIND_STORAGE_CLASS, class)};

    for (size_t i = 0; i < 2; i++) {
        struct storage_class_details got;
        cr_assert(storage_class_details_read(texts[i], &arena, &got));
        expect_text(got.binding_mode, "Immediate");
        cr_assert_eq(got.topologies.count, 1);
        const struct topology *topology = got.topologies.items;
        cr_assert_eq(topology->labels.count, 1);
        const struct topology_label *label = topology->labels.items;
        expect_text(label->key, "k");
        cr_assert_eq(label->values.count, 1);
    }
}

Test(details, of_a_csi_node_are_read_from_its_text_and_from_a_snapshot)
{
    static const char node[] =
        "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"drivers\":[{\"name\":\"a\",\"nodeID\":"
        "\"secret\",\"allocatable\":{\"count\":0}},{\"name\":\"b\",\"allocatable\":{\"count\":"
        "null}},{\"name\":\"c\"}]}}";
    struct slice texts[] = {slice_of(node), project(KIND_CSI_NODE, node)};

    for (size_t i = 0; i < 2; i++) {
        struct csi_node_details got;
        cr_assert(csi_node_details_read(texts[i], &arena, &got));
        cr_assert_eq(got.drivers.count, 3);
        const struct driver_limit *drivers = got.drivers.items;
        expect_text(drivers[0].name, "a");
        cr_expect(drivers[0].volumes.is_known);
        cr_expect_eq(drivers[0].volumes.count, 0);
        cr_expect_not(drivers[1].volumes.is_known);
        cr_expect_not(drivers[2].volumes.is_known);
    }
}

Test(details, what_is_no_such_object_is_refused)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{\"metadata\":{\"finalizers\":\"a\"}}",
        "{\"metadata\":{\"finalizers\":[1]}}",
        "{\"status\":{\"conditions\":[\"a\"]}}",
        "{} {}",
    };
    struct pod_details got;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        cr_expect_not(pod_details_read(slice_of(texts[i]), &arena, &got), "%s", texts[i]);
    cr_expect(pod_details_read(SLICE("{\"metadata\":{\"finalizers\":null}}"), &arena, &got));
    cr_expect_eq(got.grace_seconds, -1);
}

/* Finalizers until the arena is full. */
Test(details, many_items_end_with_an_error)
{
    struct buf text;
    struct pod_details got;

    buf_init(&text, 1 << 22);
    buf_put(&text, SLICE("{\"metadata\":{\"finalizers\":[\"a\""));
    for (int i = 0; i < 200000; i++)
        buf_put(&text, SLICE(",\"a\""));
    buf_put(&text, SLICE("]}}"));
    cr_expect_not(pod_details_read(buf_slice(&text), &arena, &got));
    buf_dispose(&text);
}

Test(details, of_a_workload_are_what_scaling_it_does)
{
    struct workload_details got;

    cr_assert(workload_details_read(
        SLICE("{\"metadata\":{\"name\":\"pg\",\"namespace\":\"shop\"},\"spec\":{\"replicas\":3,"
              "\"ordinals\":{\"start\":5},\"persistentVolumeClaimRetentionPolicy\":{\"whenScaled\":"
              "\"Delete\"},\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"data\"},\"spec\":{}}"
              "],\"strategy\":{\"type\":\"Recreate\",\"rollingUpdate\":null}}}"),
        &arena, &got));
    expect_text(got.ns, "shop");
    expect_text(got.name, "pg");
    cr_expect_eq(got.replicas, 3);
    cr_expect_eq(got.first_ordinal, 5);
    expect_text(got.when_scaled, "Delete");
    expect_text(got.strategy, "Recreate");
    cr_assert_eq(got.claim_templates.count, 1);
    expect_text(((const struct claim_template *)got.claim_templates.items)[0].name, "data");
}

/* The API server sets one replica where there is none, and refuses the others. */
Test(details, of_a_workload_have_a_number_of_replicas_that_an_api_server_accepts)
{
    static const char *const bad[] = {"-1", "2147483648", "9223372036854775807"};
    struct workload_details got;

    cr_assert(workload_details_read(SLICE("{\"spec\":{}}"), &arena, &got));
    cr_expect_eq(got.replicas, 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct slice text = arena_printf(&arena, "{\"spec\":{\"replicas\":%s}}", bad[i]);
        cr_expect_not(workload_details_read(text, &arena, &got), "%s", bad[i]);
        text = arena_printf(&arena, "{\"spec\":{\"ordinals\":{\"start\":%s}}}", bad[i]);
        cr_expect_not(workload_details_read(text, &arena, &got), "%s", bad[i]);
    }
}
