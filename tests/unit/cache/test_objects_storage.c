/* The fields of storage.k8s.io, PersistentVolumes, claims and Nodes that decide where a volume can
 * be used; and that a capture keeps them. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "cache/objects/details.h"

static struct arena arena;

static void setup(void)
{
    arena_init(&arena, 1 << 20);
}

static void teardown(void)
{
    arena_dispose(&arena);
}

TestSuite(objects_storage, .init = setup, .fini = teardown);

static bool try_read(enum kind kind, const char *text, struct object *out)
{
    struct pull json;

    pull_init(&json, slice_of(text));
    return object_read(&json, kind, &arena, out);
}

/* members: what comes behind the metadata. */
static struct object read_object(enum kind kind, const char *members)
{
    struct object object;
    struct slice text = arena_printf(&arena, "{\"metadata\":{\"name\":\"x\"}%s}", members);

    cr_assert(try_read(kind, text.ptr, &object), "%s", members);
    return object;
}

static struct slice attribute(enum kind kind, const char *members, unsigned index)
{
    return read_object(kind, members).resource.attributes[index];
}

static int64_t number(enum kind kind, const char *members)
{
    return read_object(kind, members).resource.number;
}

static void expect_text(struct slice got, const char *want)
{
    cr_expect(slice_equal(got, slice_of(want)), "got \"%.*s\", want \"%s\"", SLICE_ARG(got), want);
}

/* ---- claims ---- */

Test(objects_storage, a_claim_has_its_attributes_class_and_how_far_that_is)
{
    struct object object = read_object(
        KIND_CLAIM, ",\"spec\":{\"volumeAttributesClassName\":\"gold\"},\"status\":{\"phase\":"
                    "\"Bound\",\"currentVolumeAttributesClassName\":\"silver\","
                    "\"modifyVolumeStatus\":{\"status\":\"Infeasible\","
                    "\"targetVolumeAttributesClassName\":\"bronze\"}}");

    expect_text(object.claim.volume_attributes_class, "gold");
    expect_text(object.claim.current_class, "silver");
    expect_text(object.claim.target_class, "bronze");
    expect_text(object.claim.modify_status, "Infeasible");
    object = read_object(KIND_CLAIM, ",\"spec\":{\"volumeAttributesClassName\":null},\"status\":{"
                                     "\"currentVolumeAttributesClassName\":null,"
                                     "\"modifyVolumeStatus\":null}");
    cr_expect_eq(object.claim.volume_attributes_class.len + object.claim.current_class.len +
                     object.claim.target_class.len + object.claim.modify_status.len,
                 0);
}

/* ---- volumes ---- */

Test(objects_storage, a_volume_is_an_offer_while_it_is_available)
{
    static const struct {
        const char *members;
        const char *attributes_class; /* of the offer; NULL: it is none */
    } rows[] = {
        {",\"spec\":{\"storageClassName\":\"fast\",\"volumeAttributesClassName\":\"gold\"},"
         "\"status\":{\"phase\":\"Available\"}",
         "gold"},
        {",\"status\":{\"phase\":\"Available\"},"
         "\"spec\":{\"volumeAttributesClassName\":\"gold\",\"storageClassName\":\"fast\"}",
         "gold"},
        {",\"spec\":{\"storageClassName\":\"fast\",\"volumeAttributesClassName\":\"gold\"},"
         "\"status\":{\"phase\":\"Bound\"}",
         NULL},
        {",\"spec\":{\"storageClassName\":\"fast\",\"volumeAttributesClassName\":\"gold\"},"
         "\"status\":{\"phase\":\"Released\"}",
         NULL},
        {",\"spec\":{\"storageClassName\":\"fast\",\"volumeAttributesClassName\":\"gold\"}", NULL},
        {",\"spec\":{\"storageClassName\":\"fast\",\"volumeAttributesClassName\":\"\"},"
         "\"status\":{\"phase\":\"Available\"}",
         ""},
        {",\"spec\":{\"storageClassName\":\"fast\"},\"status\":{\"phase\":\"Available\"}", ""},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *class = rows[i].attributes_class;
        struct slice wanted =
            class == NULL ? SLICE("") : volume_offer(SLICE("fast"), slice_of(class), &arena);
        expect_text(attribute(KIND_VOLUME, rows[i].members, VOLUME_OFFER), wanted.ptr);
    }
    struct slice offer = volume_offer(SLICE("fast"), SLICE("gold"), &arena);
    cr_expect_not(slice_equal(offer, volume_offer(SLICE("fastg"), SLICE("old"), &arena)));
    cr_expect_not(slice_equal(offer, volume_offer(SLICE("gold"), SLICE("fast"), &arena)));
}

Test(objects_storage, a_volume_is_for_one_node_if_it_has_no_other_mode)
{
    static const char *const modes[] = {"ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany",
                                        "ReadWriteOncePod"};

    for (unsigned set = 0; set < 1U << 4; set++) {
        char members[256] = ",\"spec\":{\"accessModes\":[";
        for (unsigned i = 0; i < 4; i++)
            if ((set & 1U << i) != 0) {
                size_t len = strlen(members);
                (void)snprintf(members + len, sizeof members - len, "%s\"%s\"",
                               members[len - 1] == '[' ? "" : ",", modes[i]);
            }
        size_t len = strlen(members);
        (void)snprintf(members + len, sizeof members - len, "]}");
        cr_expect_eq(number(KIND_VOLUME, members), set == 1 ? VOLUME_IS_FOR_ONE_NODE : 0, "%s",
                     members);
    }
    cr_expect_eq(number(KIND_VOLUME, ",\"spec\":{}"), 0);
    cr_expect_eq(number(KIND_VOLUME, ",\"spec\":{\"accessModes\":null}"), 0);
    cr_expect_eq(number(KIND_VOLUME, ",\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],"
                                     "\"volumeMode\":\"Block\"}"),
                 VOLUME_IS_FOR_ONE_NODE | VOLUME_IS_BLOCK);
    cr_expect_eq(number(KIND_VOLUME, ",\"spec\":{\"volumeMode\":\"Filesystem\"}"), 0);
}

Test(objects_storage, sources_in_tree_have_plug_ins_and_drivers)
{
    static const struct {
        const char *source, *plugin, *driver;
    } rows[] = {
        {"awsElasticBlockStore", "kubernetes.io/aws-ebs", "ebs.csi.aws.com"},
        {"gcePersistentDisk", "kubernetes.io/gce-pd", "pd.csi.storage.gke.io"},
        {"cinder", "kubernetes.io/cinder", "cinder.csi.openstack.org"},
        {"azureDisk", "kubernetes.io/azure-disk", "disk.csi.azure.com"},
        {"azureFile", "kubernetes.io/azure-file", "file.csi.azure.com"},
        {"vsphereVolume", "kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"},
        {"portworxVolume", "kubernetes.io/portworx-volume", "pxd.portworx.com"},
        {"iscsi", "kubernetes.io/iscsi", ""},
        {"fc", "kubernetes.io/fc", ""},
        {"hostPath", "", ""},
        {"csi", "", ""},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char members[128];
        (void)snprintf(members, sizeof members, ",\"spec\":{\"%s\":{\"path\":[1,{}]}}",
                       rows[i].source);
        struct slice plugin = attribute(KIND_VOLUME, members, VOLUME_IN_TREE);
        expect_text(plugin, rows[i].plugin);
        expect_text(in_tree_driver(plugin), rows[i].driver);
    }
    expect_text(in_tree_driver(SLICE("ebs.csi.aws.com")), "");
    expect_text(attribute(KIND_VOLUME, ",\"spec\":{\"fc\":null}", VOLUME_IN_TREE), "");
}

/* ---- drivers ---- */

Test(objects_storage, a_driver_attaches_unless_it_says_otherwise)
{
    cr_expect_eq(number(KIND_CSI_DRIVER, ""), 0);
    cr_expect_eq(number(KIND_CSI_DRIVER, ",\"spec\":{\"attachRequired\":null}"), 0);
    cr_expect_eq(number(KIND_CSI_DRIVER, ",\"spec\":{\"attachRequired\":true}"), 0);
    cr_expect_eq(number(KIND_CSI_DRIVER, ",\"spec\":{\"attachRequired\":false}"),
                 CSI_DRIVER_DOES_NOT_ATTACH);
}

Test(objects_storage, the_drivers_of_a_node_are_sorted_and_named_once)
{
    struct object object;

    cr_assert(try_read(KIND_CSI_NODE,
                       "{\"metadata\":{\"name\":\"n\",\"annotations\":{\"other\":\"x\","
                       "\"storage.alpha.kubernetes.io/migrated-plugins\":"
                       "\"kubernetes.io/gce-pd,a.example.com,,kubernetes.io/aws-ebs\"},"
                       "\"ownerReferences\":[{\"kind\":\"Pod\",\"uid\":\"p\",\"controller\":true},{"
                       "\"kind\":\"Node\",\"uid\":\"node-uid\"}]},\"spec\":{\"drivers\":[{\"name\":"
                       "\"b.example.com\",\"nodeID\":\"n\"},{\"name\":\"a.example.com\"},{\"name\":"
                       "\"b.example.com\"},{\"nodeID\":\"without a name\"}]}}",
                       &object));
    expect_text(object.resource.attributes[CSI_NODE_DRIVERS],
                "a.example.com,b.example.com,kubernetes.io/aws-ebs,kubernetes.io/gce-pd");
    expect_text(object.resource.attributes[CSI_NODE_OWNER], "node-uid");
    expect_text(attribute(KIND_CSI_NODE, ",\"spec\":{\"drivers\":null}", CSI_NODE_DRIVERS), "");
    expect_text(attribute(KIND_CSI_NODE, "", CSI_NODE_OWNER), "");
}

Test(objects_storage, of_a_node_with_too_many_drivers_the_first_are_kept)
{
    struct object object;
    struct buf text;

    buf_init(&text, 1 << 20);
    buf_put(&text, SLICE("{\"metadata\":{\"name\":\"n\"},\"spec\":{\"drivers\":["));
    for (int i = NODE_DRIVERS_MAX; i >= 0; i--)
        buf_printf(&text, "{\"name\":\"driver-%04d\"}%s", i, i == 0 ? "]}}" : ",");
    cr_assert(try_read(KIND_CSI_NODE, buf_text(&text), &object));
    struct slice drivers = object.resource.attributes[CSI_NODE_DRIVERS], word;
    size_t count = 0;
    cr_expect(words_have(drivers, SLICE("driver-0000")));
    cr_expect(words_have(drivers, SLICE("driver-0255")));
    cr_expect_not(words_have(drivers, SLICE("driver-0256")));
    while (words_next(&drivers, &word))
        count++;
    cr_expect_eq(count, NODE_DRIVERS_MAX);
    buf_dispose(&text);
}

/* ---- nodes and classes ---- */

Test(objects_storage, a_node_is_ready_unless_its_condition_says_otherwise)
{
    static const struct {
        const char *members;
        int64_t number;
    } rows[] = {
        {"", 0},
        {",\"status\":{\"conditions\":[]}", 0},
        {",\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}", 0},
        {",\"status\":{\"conditions\":[{\"type\":\"DiskPressure\",\"status\":\"False\"},{"
         "\"status\":\"True\",\"type\":\"Ready\"}]}",
         0},
        {",\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}]}",
         NODE_IS_NOT_READY},
        {",\"status\":{\"conditions\":[{\"status\":\"Unknown\",\"type\":\"Ready\"}]}",
         NODE_IS_NOT_READY},
        {",\"spec\":{\"unschedulable\":true}", NODE_IS_UNSCHEDULABLE},
        {",\"spec\":{\"unschedulable\":false}", 0},
        {",\"spec\":{\"unschedulable\":true},\"status\":{\"conditions\":[{\"type\":\"Ready\","
         "\"status\":\"Unknown\"}]}",
         NODE_IS_NOT_READY | NODE_IS_UNSCHEDULABLE},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(number(KIND_NODE, rows[i].members), rows[i].number, "%s", rows[i].members);
}

Test(objects_storage, an_attributes_class_has_a_driver_and_may_be_leaving)
{
    struct object object;

    cr_assert(try_read(KIND_VOLUME_ATTRIBUTES_CLASS,
                       "{\"metadata\":{\"name\":\"gold\",\"deletionTimestamp\":"
                       "\"2026-11-22T10:00:00Z\"},\"driverName\":\"a.example.com\"}",
                       &object));
    expect_text(object.resource.attributes[VOLUME_ATTRIBUTES_CLASS_DRIVER], "a.example.com");
    cr_expect_eq(object.resource.number, VOLUME_ATTRIBUTES_CLASS_IS_DELETING);
    cr_expect_eq(number(KIND_VOLUME_ATTRIBUTES_CLASS, ""), 0);
}

Test(objects_storage, wrong_types_are_errors)
{
    static const struct {
        enum kind kind;
        const char *members;
    } rows[] = {
        {KIND_CLAIM, ",\"status\":{\"currentVolumeAttributesClassName\":1}"},
        {KIND_CLAIM, ",\"status\":{\"modifyVolumeStatus\":\"Pending\"}"},
        {KIND_VOLUME, ",\"spec\":{\"accessModes\":\"ReadWriteOnce\"}"},
        {KIND_VOLUME, ",\"spec\":{\"accessModes\":[1]}"},
        {KIND_VOLUME, ",\"status\":{\"phase\":[]}"},
        {KIND_CSI_DRIVER, ",\"spec\":{\"attachRequired\":\"false\"}"},
        {KIND_CSI_NODE, ",\"spec\":{\"drivers\":{}}"},
        {KIND_CSI_NODE, ",\"spec\":{\"drivers\":[{\"name\":7}]}"},
        {KIND_NODE, ",\"spec\":{\"unschedulable\":\"true\"}"},
        {KIND_NODE, ",\"status\":{\"conditions\":{}}"},
        {KIND_VOLUME_ATTRIBUTES_CLASS, ",\"driverName\":{}"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct object object;
        struct slice text =
            arena_printf(&arena, "{\"metadata\":{\"name\":\"x\"}%s}", rows[i].members);
        cr_expect_not(try_read(rows[i].kind, text.ptr, &object), "%s", rows[i].members);
    }
}

/* ---- captures ---- */

/* Each object has all fields that are read, and "secret" in those that are not. */
static const struct {
    enum kind kind;
    const char *text;
} captured[] = {
    {KIND_CLAIM,
     "{\"metadata\":{\"name\":\"c\",\"annotations\":{\"a\":\"secret\"}},\"spec\":{\"accessModes\":["
     "\"ReadWriteOncePod\"],\"volumeAttributesClassName\":\"gold\",\"resources\":{\"requests\":{"
     "\"storage\":\"1Gi\"},"
     "\"limits\":\"secret\"},\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"dataSource\":"
     "\"secret\"},"
     "\"status\":{\"phase\":\"Bound\",\"currentVolumeAttributesClassName\":\"silver\","
     "\"modifyVolumeStatus\":{\"status\":\"Pending\",\"targetVolumeAttributesClassName\":\"gold\"},"
     "\"conditions\":[{\"type\":\"Unused\",\"status\":\"True\",\"message\":\"secret\"}]}}"},
    {KIND_VOLUME_ATTACHMENT,
     "{\"metadata\":{\"name\":\"a\",\"deletionTimestamp\":\"2026-11-22T10:00:00Z\",\"annotations\":"
     "{"
     "\"a\":\"secret\"}},\"spec\":{\"attacher\":\"d\",\"nodeName\":\"n\",\"source\":{"
     "\"persistentVolumeName\":\"v\",\"inlineVolumeSpec\":\"secret\"}},\"status\":{\"attached\":"
     "true,"
     "\"attachmentMetadata\":{\"a\":\"secret\"},\"attachError\":{\"message\":\"m\",\"time\":"
     "\"secret\"},\"detachError\":{\"message\":\"n\",\"time\":\"secret\"}}}"},
    {KIND_VOLUME,
     "{\"metadata\":{\"name\":\"v\",\"labels\":{\"a\":\"b\"}},\"spec\":{\"capacity\":{\"storage\":"
     "\"1Gi\"},\"accessModes\":[\"ReadWriteOnce\"],\"volumeMode\":"
     "\"Block\",\"storageClassName\":\"fast\",\"volumeAttributesClassName\":\"gold\",\"csi\":{"
     "\"driver\":\"d\",\"fsType\":\"ext4\",\"volumeHandle\":\"h\",\"volumeAttributes\":{\"a\":"
     "\"secret\"},\"nodePublishSecretRef\":{"
     "\"name\":\"n\"}},\"claimRef\":{\"namespace\":\"a\",\"name\":\"b\",\"uid\":\"u\"}},\"status\":"
     "{"
     "\"phase\":\"Available\",\"reason\":\"secret\"}}"},
    {KIND_VOLUME, "{\"metadata\":{\"name\":\"v\"},\"spec\":{\"iscsi\":{\"targetPortal\":\"secret\","
                  "\"secretRef\":{\"name\":\"secret\"}}}}"},
    {KIND_STORAGE_CLASS,
     "{\"metadata\":{\"name\":\"s\"},\"provisioner\":\"p\",\"parameters\":{\"a\":\"secret\"}}"},
    {KIND_VOLUME_ATTRIBUTES_CLASS,
     "{\"metadata\":{\"name\":\"g\",\"deletionTimestamp\":\"2026-11-22T10:00:00Z\"},\"driverName\":"
     "\"p\",\"parameters\":{\"a\":\"secret\"}}"},
    {KIND_CSI_DRIVER,
     "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"attachRequired\":false,\"volumeLifecycleModes\":["
     "\"Persistent\",\"Ephemeral\"],\"tokenRequests\":[{\"audience\":\"secret\"}]}}"},
    {KIND_CSI_NODE,
     "{\"metadata\":{\"name\":\"n\",\"annotations\":{\"storage.alpha.kubernetes.io/"
     "migrated-plugins\":\"kubernetes.io/aws-ebs\",\"a\":\"secret\"},\"ownerReferences\":[{"
     "\"kind\":\"Node\",\"uid\":\"u\",\"name\":\"secret\"}]},\"spec\":{\"drivers\":[{\"name\":"
     "\"d\",\"nodeID\":\"secret\",\"topologyKeys\":[\"k\"]}]}}"},
    {KIND_NODE,
     "{\"metadata\":{\"name\":\"n\",\"annotations\":{\"a\":\"secret\"}},\"spec\":{"
     "\"unschedulable\":"
     "true,\"podCIDR\":\"secret\"},\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":"
     "\"False\",\"message\":\"secret\"}],\"addresses\":\"secret\"}}"},
};

static struct object read_text(enum kind kind, struct slice text)
{
    struct object object;

    cr_assert(try_read(kind, arena_copy(&arena, text).ptr, &object), "%.*s", SLICE_ARG(text));
    return object;
}

static void expect_equal_claims(const struct claim_object *a, const struct claim_object *b)
{
    cr_expect_eq(a->is_rwop, b->is_rwop);
    cr_expect_eq(a->access_modes, b->access_modes);
    cr_expect_eq(a->requested, b->requested);
    cr_expect(slice_equal(a->selector, b->selector));
    cr_expect(slice_equal(a->phase, b->phase));
    cr_expect(slice_equal(a->volume_attributes_class, b->volume_attributes_class));
    cr_expect(slice_equal(a->current_class, b->current_class));
    cr_expect(slice_equal(a->target_class, b->target_class));
    cr_expect(slice_equal(a->modify_status, b->modify_status));
}

static void expect_equal(const struct object *a, const struct object *b)
{
    cr_expect(slice_equal(a->meta.name, b->meta.name));
    cr_expect(slice_equal(a->meta.deletion_timestamp, b->meta.deletion_timestamp));
    if (a->kind == KIND_CLAIM) {
        expect_equal_claims(&a->claim, &b->claim);
        return;
    }
    cr_expect_eq(a->resource.number, b->resource.number);
    cr_expect_eq(a->resource.capacity, b->resource.capacity);
    for (size_t i = 0; i < RESOURCE_ATTRIBUTES; i++)
        cr_expect(slice_equal(a->resource.attributes[i], b->resource.attributes[i]), "%s %zu",
                  kind_text(a->kind), i);
}

Test(objects_storage, a_capture_has_the_fields_that_are_read_and_no_others)
{
    for (size_t i = 0; i < sizeof captured / sizeof *captured; i++) {
        struct slice text = slice_of(captured[i].text);
        struct error err = {0};
        struct buf once, twice;
        buf_init(&once, 1 << 16);
        buf_init(&twice, 1 << 16);
        cr_assert_eq(object_project(text, captured[i].kind, NULL, &once, &err), 0, "%s",
                     err.message);
        cr_expect_null(strstr(buf_text(&once), "secret"), "%s", buf_text(&once));
        struct object whole = read_text(captured[i].kind, text);
        struct object kept = read_text(captured[i].kind, buf_slice(&once));
        expect_equal(&whole, &kept);
        cr_assert_eq(object_project(buf_slice(&once), captured[i].kind, NULL, &twice, &err), 0);
        cr_expect(slice_equal(buf_slice(&once), buf_slice(&twice)), "%s\n%s", buf_text(&once),
                  buf_text(&twice));
        buf_dispose(&once);
        buf_dispose(&twice);
    }
}
