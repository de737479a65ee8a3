/* What the cluster keeps of a claim's VolumeAttributesClass, and of volumes that are available. */
#include <criterion/criterion.h>

#include "cache/cluster/cluster.h"

static struct cluster cluster;
static struct arena arena;

static void setup(void)
{
    cluster_init(&cluster);
    arena_init(&arena, 1 << 16);
}

static void teardown(void)
{
    arena_dispose(&arena);
    cluster_dispose(&cluster);
}

TestSuite(cluster_storage, .init = setup, .fini = teardown);

static void apply(const struct object *object)
{
    struct error err = {0};
    cr_assert_eq(cluster_apply(&cluster, object, &err), 0, "%s", err.message);
}

/* ---- how far a claim is from its class ---- */

static struct object claim_object(const char *named, const char *current, const char *target,
                                  const char *status)
{
    struct object object = {.kind = KIND_CLAIM};

    object.meta = (struct meta){.ns = SLICE("default"), .name = SLICE("data")};
    object.claim.volume_attributes_class = slice_of(named);
    object.claim.current_class = slice_of(current);
    object.claim.target_class = slice_of(target);
    object.claim.modify_status = slice_of(status);
    return object;
}

static const struct modification *modification_of(const char *named, const char *current,
                                                  const char *target, const char *status)
{
    struct object object = claim_object(named, current, target, status);

    apply(&object);
    return claim_modification(cluster_find_claim(&cluster, SLICE("default"), SLICE("data")));
}

static void expect_name(const struct name *got, const char *want)
{
    cr_expect(slice_equal(name_slice(got), slice_of(want)), "got \"%.*s\"",
              SLICE_ARG(name_slice(got)));
}

Test(cluster_storage, a_claim_whose_class_is_in_force_costs_nothing)
{
    cr_expect_null(modification_of("", "", "", ""));
    cr_expect_null(modification_of("gold", "gold", "", ""));
}

Test(cluster_storage, a_claim_that_is_being_changed_says_how_far_it_is)
{
    const struct modification *modification =
        modification_of("gold", "silver", "bronze", "Pending");

    cr_assert_not_null(modification);
    expect_name(modification->current, "silver");
    expect_name(modification->target, "bronze");
    expect_name(modification->status, "Pending");
    cr_expect_not_null(modification_of("gold", "silver", "", ""), "nobody has begun");
    cr_expect_not_null(modification_of("gold", "", "", ""));
    cr_expect_not_null(modification_of("silver", "silver", "gold", "Infeasible"));
    modification = modification_of("gold", "gold", "gold", "");
    cr_assert_not_null(modification);
    expect_name(modification->target, "gold");
    expect_name(modification->status, "");
}

Test(cluster_storage, a_change_that_is_over_leaves_nothing_behind)
{
    cr_assert_not_null(modification_of("gold", "silver", "bronze", "Pending"));
    uint32_t before = cluster.names.table.count;
    cr_assert_not_null(modification_of("gold", "silver", "bronze", "InProgress"));
    cr_expect_eq(cluster.names.table.count, before, "one status is replaced by another");
    cr_expect_null(modification_of("gold", "gold", "", ""));
    cr_expect_eq(cluster.names.table.count, 2, "default and gold");
    cr_assert_not_null(modification_of("gold", "silver", "bronze", "Pending"));
    struct object gone = claim_object("", "", "", "");
    gone.meta.resource_version = SLICE("1");
    cluster_delete(&cluster, &gone);
    cr_expect_null(cluster_find_claim(&cluster, SLICE("default"), SLICE("data")));
    cr_expect_eq(cluster.names.table.count, 0, "%u names are left", cluster.names.table.count);
}

/* A pod keeps the record of its claim. */
Test(cluster_storage, a_claim_that_is_only_named_is_not_being_changed)
{
    struct claim_reference data = {.name = SLICE("data")};
    struct object pod = {.kind = KIND_POD};

    pod.meta = (struct meta){.ns = SLICE("default"), .name = SLICE("p"), .uid = SLICE("u")};
    pod.pod.claims = &data;
    pod.pod.claim_count = 1;
    apply(&pod);
    cr_assert_not_null(modification_of("gold", "silver", "bronze", "Pending"));
    struct object gone = claim_object("", "", "", "");
    gone.meta.resource_version = SLICE("1");
    cluster_delete(&cluster, &gone);
    cr_expect_eq(cluster.claims.count, 1);
    cr_expect_null(modification_of("gold", "gold", "", ""), "it is another claim");
}

/* ---- offers ---- */

static struct object volume_object(const char *name, const char *phase)
{
    struct object object = {.kind = KIND_VOLUME};

    object.meta.name = slice_of(name);
    if (slice_equal(slice_of(phase), SLICE("Available")))
        object.resource.attributes[VOLUME_OFFER] =
            volume_offer(SLICE("fast"), SLICE("gold"), &arena);
    return object;
}

static void put_volume(const char *name, const char *phase)
{
    struct object object = volume_object(name, phase);
    apply(&object);
}

static bool is_offered(const char *storage_class, const char *attributes_class)
{
    struct slice offer = volume_offer(slice_of(storage_class), slice_of(attributes_class), &arena);
    const struct resource_shape *shape = cluster.offers;

    while (shape != NULL && !slice_equal(name_slice(shape->key.attributes[VOLUME_OFFER]), offer))
        shape = shape->next_offer;
    return shape != NULL;
}

Test(cluster_storage, a_volume_is_offered_until_it_is_bound)
{
    cr_expect_not(is_offered("fast", "gold"));
    put_volume("pv-1", "Available");
    cr_expect(is_offered("fast", "gold"));
    cr_expect_not(is_offered("fast", "silver"));
    cr_expect_not(is_offered("slow", "gold"));
    put_volume("pv-1", "Bound");
    cr_expect_not(is_offered("fast", "gold"));
}

Test(cluster_storage, volumes_are_offered_until_the_last_is_gone)
{
    struct object gone = volume_object("pv-1", "Bound");

    put_volume("pv-1", "Available");
    put_volume("pv-2", "Available");
    put_volume("pv-2", "Available"); /* once more */
    cluster_delete(&cluster, &gone);
    cr_expect(is_offered("fast", "gold"));
    put_volume("pv-2", "Released");
    cr_expect_not(is_offered("fast", "gold"));
}

/* ---- kinds that are not served ---- */

Test(cluster_storage, a_kind_is_served_when_a_list_of_it_is_complete)
{
    enum kind kind = KIND_VOLUME_ATTRIBUTES_CLASS;

    cluster.is_unserved[kind] = cluster.is_unserved[KIND_CSI_DRIVER] = true;
    cluster_list_begin(&cluster, kind, false, 0);
    cr_expect(cluster.is_unserved[kind], "the list may be refused");
    while (cluster_list_end(&cluster, kind, 1, NULL))
        continue;
    cr_expect_not(cluster.is_unserved[kind]);
    cr_expect(cluster.is_unserved[KIND_CSI_DRIVER]);
}
