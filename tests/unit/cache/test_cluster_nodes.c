/* Nodes and their CSI drivers: the counts that say whether a driver is on every node. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "config/base/buf.h"
#include "support/load.h"

static struct cluster cluster;

static void setup(void)
{
    cluster_init(&cluster);
}

static void teardown(void)
{
    cluster_dispose(&cluster);
}

TestSuite(cluster_nodes, .init = setup, .fini = teardown);

static struct object object_of(enum kind kind, const char *name, const char *uid,
                               const char *version)
{
    struct object object = {.kind = kind};

    object.meta = (struct meta){
        .name = slice_of(name), .uid = slice_of(uid), .resource_version = slice_of(version)};
    return object;
}

static void apply(const struct object *object)
{
    struct error err = {0};
    cr_assert_eq(cluster_apply(&cluster, object, &err), 0, "%s", err.message);
}

static void put_node(const char *name, const char *uid, const char *version)
{
    struct object object = object_of(KIND_NODE, name, uid, version);
    apply(&object);
}

/* drivers: sorted, joined by ','. */
static void put_csi_node(const char *name, const char *owner, const char *drivers,
                         const char *version)
{
    struct object object = object_of(KIND_CSI_NODE, name, "", version);

    object.resource.attributes[CSI_NODE_OWNER] = slice_of(owner);
    object.resource.attributes[CSI_NODE_DRIVERS] = slice_of(drivers);
    apply(&object);
}

static void delete (enum kind kind, const char *name, const char *version)
{
    struct object object = object_of(kind, name, "", version);
    cluster_delete(&cluster, &object);
}

static uint32_t nodes_with(const char *driver)
{
    return cluster_count_driver_nodes(&cluster, slice_of(driver));
}

static struct slice drivers_of(const char *name)
{
    const struct node *node = cluster_find_node(&cluster, slice_of(name));
    return node == NULL ? SLICE("(none)") : name_slice(node->drivers);
}

static void end_list(enum kind kind, uint64_t version)
{
    while (cluster_list_end(&cluster, kind, version, NULL))
        continue;
}

Test(cluster_nodes, a_node_without_a_csi_node_is_bare)
{
    put_node("n", "u1", "1");
    put_node("m", "u2", "1");
    cr_expect_eq(cluster.bare_nodes, 2);
    put_csi_node("n", "u1", "", "2");
    cr_expect_eq(cluster.bare_nodes, 1, "one that lists no driver counts, too");
    cr_expect(cluster_find_node(&cluster, SLICE("n"))->has_csi_node);
    cr_expect_not(cluster_find_node(&cluster, SLICE("m"))->has_csi_node);
}

Test(cluster_nodes, a_csi_node_may_come_before_its_node)
{
    put_csi_node("n", "u1", "a,b", "2");
    cr_expect(nodes_with("a") == 0 && cluster.bare_nodes == 0, "there is no node");
    put_node("n", "u1", "1");
    cr_expect(nodes_with("a") == 1 && nodes_with("b") == 1 && cluster.bare_nodes == 0);
    cr_expect_eq(nodes_with("a,b"), 0, "a list is no name");
}

Test(cluster_nodes, drivers_that_register_and_leave_count_at_once)
{
    put_node("n", "u1", "1");
    put_node("m", "u2", "1");
    put_csi_node("n", "u1", "a", "2");
    put_csi_node("m", "u2", "a", "2");
    cr_expect_eq(nodes_with("a"), 2);
    put_csi_node("n", "u1", "a,b", "3");
    cr_expect(nodes_with("a") == 2 && nodes_with("b") == 1);
    put_csi_node("n", "u1", "b,c", "4");
    cr_expect(nodes_with("a") == 1 && nodes_with("b") == 1 && nodes_with("c") == 1);
    put_csi_node("n", "u1", "a", "3");
    cr_expect(nodes_with("a") == 1 && nodes_with("c") == 1, "an event that arrives late");
    put_csi_node("n", "u1", "", "5");
    put_csi_node("m", "u2", "", "5");
    cr_expect(nodes_with("a") == 0 && cluster.drivers.count == 0, "no count is left");
    cr_expect_eq(cluster.bare_nodes, 0);
}

Test(cluster_nodes, without_its_csi_node_a_node_has_no_driver)
{
    put_node("n", "u1", "1");
    put_csi_node("n", "u1", "a", "2");
    delete (KIND_CSI_NODE, "n", "1");
    cr_expect_eq(nodes_with("a"), 1, "a deletion of an earlier one");
    delete (KIND_CSI_NODE, "n", "3");
    cr_expect(nodes_with("a") == 0 && cluster.bare_nodes == 1 && drivers_of("n").len == 0);
    delete (KIND_CSI_NODE, "n", "3");
    cr_expect_eq(cluster.bare_nodes, 1);
}

Test(cluster_nodes, a_deleted_node_counts_no_more_whether_it_is_bare_or_not)
{
    put_node("n", "u1", "1");
    put_node("m", "u2", "1");
    put_csi_node("n", "u1", "a", "2");
    delete (KIND_NODE, "n", "3");
    cr_expect(nodes_with("a") == 0 && cluster.bare_nodes == 1 && cluster.counts[KIND_NODE] == 1);
    delete (KIND_NODE, "m", "3");
    cr_expect(cluster.bare_nodes == 0 && cluster.counts[KIND_NODE] == 0);
    put_csi_node("n", "u1", "b", "4");
    cr_expect_eq(cluster.drivers.count, 0);
}

Test(cluster_nodes, a_recreated_node_does_not_have_the_drivers_of_the_former_one)
{
    put_node("n", "u1", "1");
    put_csi_node("n", "u1", "a", "2");
    delete (KIND_NODE, "n", "3");
    put_node("n", "u2", "4");
    cr_expect(nodes_with("a") == 0 && cluster.bare_nodes == 1);
    put_csi_node("n", "u2", "a", "5");
    cr_expect(nodes_with("a") == 1 && cluster.bare_nodes == 0);
    put_node("n", "u3", "6"); /* its deletion was not seen */
    cr_expect(nodes_with("a") == 0 && cluster.bare_nodes == 1);
    cr_expect_not(cluster_find_node(&cluster, SLICE("n"))->has_csi_node);
    put_csi_node("n", "u3", "a", "7");
    cr_expect(nodes_with("a") == 1 && cluster.bare_nodes == 0);
}

Test(cluster_nodes, an_owner_that_is_not_known_may_be_the_node)
{
    put_node("n", "u1", "1");
    put_csi_node("n", "", "a", "2");
    put_node("m", "", "1");
    put_csi_node("m", "u2", "a", "2");
    cr_expect(nodes_with("a") == 2 && cluster.bare_nodes == 0, "a snapshot written by hand");
}

Test(cluster_nodes, a_node_that_only_a_pod_names_is_none)
{
    struct claim_reference claim = {.name = SLICE("data")};
    struct object pod = {.kind = KIND_POD};

    pod.pod = (struct pod_object){.meta = {.ns = SLICE("default"), .name = SLICE("p")},
                                  .node = SLICE("n"),
                                  .claims = &claim,
                                  .claim_count = 1};
    put_csi_node("n", "u1", "a", "2");
    apply(&pod);
    cr_expect(nodes_with("a") == 0 && cluster.bare_nodes == 0);
    put_csi_node("n", "u1", "a", "3");
    cr_expect(nodes_with("a") == 0 && cluster.bare_nodes == 0);
    put_node("n", "u1", "3");
    cr_expect(nodes_with("a") == 1 && cluster.bare_nodes == 0);
    delete (KIND_NODE, "n", "4");
    cr_expect(nodes_with("a") == 0 && cluster.bare_nodes == 0);
}

Test(cluster_nodes, what_the_end_of_a_list_removes_is_not_counted)
{
    static const char *const names[] = {"k", "m", "n"};

    for (size_t i = 0; i < 3; i++) {
        put_node(names[i], names[i], "1");
        put_csi_node(names[i], names[i], "a", "2");
    }
    cluster_list_begin(&cluster, KIND_CSI_NODE, false, 0);
    put_csi_node("k", "k", "a", "2");
    cr_expect_eq(nodes_with("a"), 3, "until its end");
    end_list(KIND_CSI_NODE, 10);
    cr_expect(nodes_with("a") == 1 && cluster.bare_nodes == 2);
    cluster_list_begin(&cluster, KIND_NODE, false, 0);
    put_node("m", "m", "1");
    end_list(KIND_NODE, 10);
    cr_expect(nodes_with("a") == 0 && cluster.bare_nodes == 1 && cluster.counts[KIND_NODE] == 1);
}

Test(cluster_nodes, nodes_with_the_same_drivers_share_one_list)
{
    load_text(&cluster, "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":["
                        "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}},"
                        "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"m\"}},"
                        "{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"CSINode\",\"metadata\":{"
                        "\"name\":\"n\",\"annotations\":{\"storage.alpha.kubernetes.io/"
                        "migrated-plugins\":\"kubernetes.io/cinder,kubernetes.io/aws-ebs\"}},"
                        "\"spec\":{\"drivers\":[{\"name\":\"b\"},{\"name\":\"a\"}]}},"
                        "{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"CSINode\",\"metadata\":{"
                        "\"name\":\"m\",\"annotations\":{\"storage.alpha.kubernetes.io/"
                        "migrated-plugins\":\"kubernetes.io/aws-ebs,kubernetes.io/cinder\"}},"
                        "\"spec\":{\"drivers\":[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"a\"}"
                        "]}}]}");
    cr_expect_eq(cluster_find_node(&cluster, SLICE("n"))->drivers,
                 cluster_find_node(&cluster, SLICE("m"))->drivers);
    cr_expect(nodes_with("a") == 2 && nodes_with("kubernetes.io/aws-ebs") == 2);
}

Test(cluster_nodes, of_too_many_drivers_the_first_by_name_are_stored)
{
    struct buf text;

    buf_init(&text, 1 << 20);
    buf_printf(&text, "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"apiVersion\":\"v1\","
                      "\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}},{\"apiVersion\":"
                      "\"storage.k8s.io/v1\",\"kind\":\"CSINode\",\"metadata\":{\"name\":\"n\"},"
                      "\"spec\":{\"drivers\":[{\"name\":\"\"}");
    for (unsigned i = NODE_DRIVERS_MAX + 44; i-- != 0;)
        buf_printf(&text, ",{\"name\":\"d%03u\"}", i);
    buf_printf(&text, "]}}]}%c", '\0');
    load_text(&cluster, text.bytes);
    buf_dispose(&text);
    cr_expect_eq(cluster.drivers.count, NODE_DRIVERS_MAX);
    cr_expect(nodes_with("d000") == 1 && nodes_with("d255") == 1 && nodes_with("d256") == 0);
}

/* As the informer removes what is not watched: a list without objects, without a version. */
Test(cluster_nodes, csi_nodes_that_are_not_watched_any_more_leave_nothing)
{
    enum { MANY = 1000 };
    char name[16], drivers[64];

    put_node("node-0", "", "1");
    unsigned names = cluster.names.table.count;
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "node-%d", i);
        (void)snprintf(drivers, sizeof drivers, "all.example.com,d-%d.example.com", i);
        put_csi_node(name, "", drivers, "99");
    }
    cr_assert_eq(cluster.bare_nodes, 0);
    cluster_list_begin(&cluster, KIND_CSI_NODE, false, 1);
    while (cluster_list_end(&cluster, KIND_CSI_NODE, 0, NULL))
        continue;
    cr_expect_eq(cluster.counts[KIND_CSI_NODE], 0);
    cr_expect_eq(cluster.nodes.count, 1);
    cr_expect_leq(cluster.nodes.page_count, 1);
    cr_expect_eq(cluster.drivers.count, 0);
    cr_expect_eq(cluster.names.table.count, names, "%u names", cluster.names.table.count);
    cr_expect_eq(cluster.bare_nodes, 1);
    cr_expect_eq(cluster.counts[KIND_NODE], 1);
}
