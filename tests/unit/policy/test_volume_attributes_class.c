/* What tests/cases/volume_attributes_class cannot show: what a pod waits for, an API server without
 * the kind, and too little memory. */
#include <criterion/criterion.h>

#include "policy/policy.h"
#include "support/load.h"

static struct cluster cluster;
static struct arena arena;
static struct config config;

static void setup(void)
{
    cluster_init(&cluster);
    arena_init(&arena, 1 << 20);
    config = (struct config){.volume_attributes_classes = {.mode = MODE_ENFORCE}};
}

static void teardown(void)
{
    arena_dispose(&arena);
    cluster_dispose(&cluster);
}

TestSuite(volume_attributes_class, .init = setup, .fini = teardown);

#define CLASS(name_, driver_) \
    "{apiVersion: storage.k8s.io/v1, kind: VolumeAttributesClass, metadata: {name: " name_ \
    "}, driverName: " driver_ "}\n---\n"
#define STORAGE \
    "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}, provisioner: " \
    "a.example.com}\n---\n"
#define CLAIM(spec_, status_) \
    "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, uid: claim-1}, spec: " \
    "{storageClassName: fast, volumeAttributesClassName: gold" spec_ "}, status: {" status_ \
    "}}\n---\n"
#define UNBOUND CLAIM("", "phase: Pending")
#define CHANGING \
    CLAIM(", volumeName: v", "phase: Bound, currentVolumeAttributesClassName: " \
                             "silver, modifyVolumeStatus: {status: Pending}")

static struct claim_reference claims[] = {{.name = {"data", 4}}, {.name = {"last", 4}}};
static size_t claim_count = 1;

static struct verdict ask(struct arena *memory)
{
    struct view view = {.cluster = &cluster, .config = &config};
    struct pod_object pod = {.claims = claims, .claim_count = claim_count};
    struct verdict verdict;

    pod.meta.ns = SLICE("default");
    volume_attributes_class.prefilter(&view, &pod, memory, &verdict);
    return verdict;
}

static void expect_reference(const struct object_reference *got, enum kind kind, const char *name)
{
    cr_expect_eq(got->kind, kind);
    cr_expect(slice_equal(got->name, slice_of(name)), "%.*s", SLICE_ARG(got->name));
}

static void expect_cause(const struct verdict *verdict)
{
    cr_assert_eq(verdict->cause_count, 1);
    expect_reference(&verdict->causes[0], KIND_CLAIM, "data");
    cr_expect(slice_equal(verdict->causes[0].ns, SLICE("default")));
    cr_expect(slice_equal(verdict->causes[0].uid, SLICE("claim-1")));
}

Test(volume_attributes_class, a_pod_waits_for_the_missing_class_or_a_volume_of_it)
{
    load_text(&cluster, STORAGE UNBOUND);
    struct verdict verdict = ask(&arena);

    cr_assert_eq(verdict.code, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    expect_cause(&verdict);
    cr_assert_eq(verdict.awaited_count, 2);
    expect_reference(&verdict.awaited[0], KIND_VOLUME_ATTRIBUTES_CLASS, "gold");
    expect_reference(&verdict.awaited[1], KIND_VOLUME,
                     volume_offer(SLICE("fast"), SLICE("gold"), &arena).ptr);
}

Test(volume_attributes_class, a_pod_waits_for_another_class_of_that_name_or_another_provisioner)
{
    load_text(&cluster, STORAGE CLASS("gold", "b.example.com") UNBOUND);
    struct verdict verdict = ask(&arena);

    cr_assert_eq(verdict.code, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    expect_cause(&verdict);
    cr_assert_eq(verdict.awaited_count, 3);
    expect_reference(&verdict.awaited[0], KIND_VOLUME_ATTRIBUTES_CLASS, "gold");
    expect_reference(&verdict.awaited[2], KIND_STORAGE_CLASS, "fast");
}

Test(volume_attributes_class, a_pod_that_waits_for_a_change_waits_for_its_claim)
{
    load_text(&cluster, CLASS("gold", "a.example.com") CHANGING);
    config.volume_attributes_classes.waits_for_modify = true;
    struct verdict verdict = ask(&arena);

    cr_assert_eq(verdict.code, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    expect_cause(&verdict);
    cr_assert_eq(verdict.awaited_count, 1);
    expect_reference(&verdict.awaited[0], KIND_CLAIM, "data");
    cr_expect(slice_equal(verdict.awaited[0].ns, SLICE("default")));
}

Test(volume_attributes_class, where_the_kind_is_not_served_no_class_counts_as_missing)
{
    cluster.is_unserved[KIND_VOLUME_ATTRIBUTES_CLASS] = true;
    load_text(&cluster, STORAGE UNBOUND);
    cr_expect_eq(ask(&arena).code, CODE_SUCCESS);
    load_text(&cluster, CHANGING);
    struct verdict verdict = ask(&arena);
    cr_expect_eq(verdict.code, CODE_SUCCESS);
    cr_expect_eq(verdict.warning_count, 0);
    cluster.is_unserved[KIND_VOLUME_ATTRIBUTES_CLASS] = false;
    cr_expect_eq(ask(&arena).warning_count, 1);
}

/* As a snapshot that was written by hand may have it. */
Test(volume_attributes_class, what_is_not_known_is_not_wrong)
{
    load_text(&cluster, "{apiVersion: storage.k8s.io/v1, kind: VolumeAttributesClass, metadata: "
                        "{name: gold}}\n---\n" STORAGE UNBOUND);
    cr_expect_eq(ask(&arena).code, CODE_SUCCESS, "the class has no driver");
    load_text(&cluster, CLASS("gold", "b.example.com"));
    cr_expect_eq(ask(&arena).code, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    load_text(&cluster, "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: "
                        "fast}}\n");
    cr_expect_eq(ask(&arena).code, CODE_SUCCESS, "the storage class has no provisioner");
}

Test(volume_attributes_class, a_claim_without_a_status_is_bound_if_it_names_its_volume)
{
    static const struct {
        const char *claim;
        enum verdict_code code;
        size_t warnings;
    } rows[] = {
        {CLAIM("", ""), CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, 0},
        {CLAIM(", volumeName: v", ""), CODE_SUCCESS, 1},
        {CLAIM(", volumeName: pvc-claim-1", ""), CODE_SUCCESS, 1},
        {CLAIM(", volumeName: pvc-claim-1", "phase: Pending"), CODE_SUCCESS, 0},
        {CLAIM("", "phase: Bound, currentVolumeAttributesClassName: silver"), CODE_SUCCESS, 1},
        {CLAIM(", volumeName: v", "currentVolumeAttributesClassName: silver"), CODE_SUCCESS, 1},
        {CLAIM(", volumeName: v", "phase: Pending, currentVolumeAttributesClassName: silver"),
         CODE_SUCCESS, 0},
        {CLAIM("", "phase: Lost"), CODE_SUCCESS, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        load_text(&cluster, rows[i].claim);
        struct verdict verdict = ask(&arena);
        cr_expect_eq(verdict.code, rows[i].code, "row %zu: %s", i, code_text(verdict.code));
        cr_expect_eq(verdict.warning_count, rows[i].warnings, "row %zu: %zu", i,
                     verdict.warning_count);
    }
}

Test(volume_attributes_class, a_claim_that_passes_does_not_spare_one_behind_it)
{
    static const char *const rows[] = {
        "{apiVersion: v1, kind: PersistentVolume, metadata: {name: offer}, spec: "
        "{storageClassName: "
        "fast, volumeAttributesClassName: gold}, status: {phase: Available}}\n---\n" UNBOUND,
        CLASS("gold", "a.example.com") UNBOUND,
        CLAIM(", volumeName: v", "phase: Bound, currentVolumeAttributesClassName: gold"),
        CLAIM(", volumeName: v", "phase: Pending"),
        CLAIM("", "phase: Lost"),
        CHANGING,
    };

    claim_count = 2;
    load_text(
        &cluster,
        STORAGE CLASS(
            "tin",
            "b.example.com") "{apiVersion: v1, kind: "
                             "PersistentVolumeClaim, metadata: {name: last}, spec: "
                             "{storageClassName: "
                             "fast, volumeAttributesClassName: tin}, status: {phase: Pending}}\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        load_text(&cluster, rows[i]);
        struct verdict verdict = ask(&arena);
        cr_expect_eq(verdict.code, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, "row %zu", i);
        cr_assert_eq(verdict.cause_count, 1, "row %zu", i);
        expect_reference(&verdict.causes[0], KIND_CLAIM, "last");
    }
}

/* With less memory than the verdict needs, it is Error, and never another one. */
static void expect_with_little_memory(enum verdict_code code)
{
    bool is_enough = false;
    size_t bytes = 0;

    for (; !is_enough && bytes < 1 << 16; bytes += 8) {
        struct arena little;
        arena_init(&little, bytes);
        struct verdict verdict = ask(&little);
        is_enough = verdict.code == code;
        cr_expect(is_enough || verdict.code == CODE_ERROR, "%zu bytes: %s", bytes,
                  code_text(verdict.code));
        arena_dispose(&little);
    }
    cr_expect(is_enough && bytes > 8);
}

Test(volume_attributes_class, without_memory_the_verdict_is_error)
{
    load_text(&cluster, STORAGE UNBOUND);
    expect_with_little_memory(CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    load_text(&cluster, CLASS("gold", "b.example.com"));
    expect_with_little_memory(CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    load_text(&cluster, "{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: {csi: "
                        "{driver: a.example.com}}}\n---\n" CHANGING);
    expect_with_little_memory(CODE_SUCCESS);
    config.volume_attributes_classes.waits_for_modify = true;
    expect_with_little_memory(CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
}
