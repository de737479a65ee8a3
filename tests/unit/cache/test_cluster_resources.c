/* What the cluster keeps of the kinds without a record type of their own, in little memory. */
#include <criterion/criterion.h>

#include "cache/cluster/cluster.h"

#define PROVISIONED "pvc-0f8fad5b-d9cb-469f-a165-70867728950e"

static struct cluster cluster;

static void setup(void)
{
    cluster_init(&cluster);
}

static void teardown(void)
{
    cluster_dispose(&cluster);
}

TestSuite(cluster_resources, .init = setup, .fini = teardown);

static struct object volume_object(const char *name, const char *claim)
{
    struct object object = {.kind = KIND_VOLUME};

    object.meta.name = slice_of(name);
    object.resource.attributes[VOLUME_DRIVER] = SLICE("plugin1.example.com");
    object.resource.attributes[VOLUME_CLAIM_NAMESPACE] = SLICE("default");
    object.resource.attributes[VOLUME_CLAIM_NAME] = slice_of(claim);
    return object;
}

static const struct resource *apply_volume(const char *name, const char *claim)
{
    struct object object = volume_object(name, claim);
    struct error err = {0};

    cr_assert_eq(cluster_apply(&cluster, &object, &err), 0, "%s", err.message);
    return cluster_find_resource(&cluster, KIND_VOLUME, object.meta.name);
}

static void expect_text(struct slice got, const char *want)
{
    cr_expect(slice_equal(got, slice_of(want)), "got \"%.*s\"", SLICE_ARG(got));
}

Test(cluster_resources, a_volume_has_its_name_and_its_claim_back)
{
    static const char *const names[] = {
        PROVISIONED,
        "pvc-",
        "pvc-0f8fad5b-d9cb-469f-a165-70867728950",  /* one byte is missing */
        "pvc-0F8FAD5B-D9CB-469F-A165-70867728950E", /* upper case, which no API server writes */
        "pvc-00000000-0000-0000-a165-70867728950e", /* it begins like a name: uid.h */
        "pvd-0f8fad5b-d9cb-469f-a165-70867728950e",
        "data-db-0",
    };
    char buffer[PROVISIONED_NAME_BYTES];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)apply_volume(names[i], i == 1 ? "" : names[i]);
    cr_expect_eq(cluster.counts[KIND_VOLUME], sizeof names / sizeof *names);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct resource *volume =
            cluster_find_resource(&cluster, KIND_VOLUME, slice_of(names[i]));
        cr_assert_not_null(volume, "%s", names[i]);
        expect_text(resource_name(volume, buffer), names[i]);
        expect_text(resource_attribute(volume, VOLUME_CLAIM_NAME), i == 1 ? "" : names[i]);
        expect_text(resource_attribute(volume, VOLUME_DRIVER), "plugin1.example.com");
        expect_text(resource_attribute(volume, VOLUME_OFFER), "");
    }
}

Test(cluster_resources, what_volumes_have_in_common_is_stored_once)
{
    const struct resource *first = apply_volume(PROVISIONED, "data-0");
    const struct resource *second = apply_volume("other", "data-1");
    struct object object = volume_object("other", "data-1");

    cr_expect_eq(first->shape.step, second->shape.step);
    object.resource.number = VOLUME_IS_BLOCK;
    cr_expect_eq(cluster_apply(&cluster, &object, NULL), 0);
    second = cluster_find_resource(&cluster, KIND_VOLUME, SLICE("other"));
    cr_expect_neq(first->shape.step, second->shape.step);
    cr_expect_eq(resource_number(second), VOLUME_IS_BLOCK);
    cr_expect_eq(cluster.shapes.count, 2);

    cluster_delete(&cluster, &object);
    cr_expect_eq(cluster.shapes.count, 1);
    object = volume_object(PROVISIONED, "");
    cluster_delete(&cluster, &object);
    cr_expect_eq(cluster.shapes.count, 0, "shapes of no object are freed");
    cr_expect_eq(cluster.names.table.count, 0, "so are their names");
}

Test(cluster_resources, a_name_that_no_object_can_have_is_an_error)
{
    static char name[RESOURCE_NAME_MAX + 2];
    struct object object = volume_object("v", "data");
    struct error err = {0};

    memset(name, 'n', sizeof name - 1);
    object.meta.name = (struct slice){name, RESOURCE_NAME_MAX + 1};
    cr_expect_eq(cluster_apply(&cluster, &object, &err), ERROR_TOO_BIG);
    object = volume_object("v", name);
    cr_expect_eq(cluster_apply(&cluster, &object, &err), ERROR_TOO_BIG);
    cr_expect_eq(cluster.counts[KIND_VOLUME] + cluster.names.table.count, 0);
}

/* Of a hand-written snapshot, where a UID need not be a UUID. */
Test(cluster_resources, a_claim_has_the_volume_with_its_uid_in_the_name)
{
    static const char *const volumes[] = {
        PROVISIONED, "pvc-u", "pvc-no-uuid-but-36-bytes-long-as-one-has",
        "pvc-longer-than-any-uuid-so-that-the-name-of-its-volume-fits-no-buffer-of-such-a-name"};
    struct object object = {.kind = KIND_CLAIM};
    struct error err = {0};
    char buffer[PROVISIONED_NAME_BYTES];

    for (size_t i = 0; i < sizeof volumes / sizeof *volumes; i++) {
        object.claim.volume = slice_of(volumes[i]);
        object.meta = (struct meta){
            .ns = SLICE("default"), .name = SLICE("data"), .uid = slice_of(volumes[i] + 4)};
        const struct resource *volume = apply_volume(volumes[i], "data");
        cr_assert_eq(cluster_apply(&cluster, &object, &err), 0, "%s", err.message);
        const struct claim *claim = cluster_find_claim(&cluster, SLICE("default"), SLICE("data"));
        expect_text(claim_volume_name(claim, buffer), volumes[i]);
        cr_expect_eq(cluster_find_volume(&cluster, claim), volume, "%s", volumes[i]);
    }
}
