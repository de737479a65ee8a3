/* A snapshot as commands read it, and the names of objects on a command line. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "extender/commands/inquiry/inquiry.h"
#include "extender/commands/inquiry/operand.h"

static struct inquiry inquiry;
static struct error err;
static char path[] = "/tmp/claimguard-test-XXXXXX";

/* Reads the text, as a file. */
static int read_text(const char *text, const struct inquiry_wish *wish)
{
    const struct inquiry_origin origin = {.snapshot = path};
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");

    cr_assert_not_null(file);
    (void)fputs(text, file);
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(inquiry_open(&inquiry, &origin, &err), 0);
    int rc = inquiry_read(&inquiry, wish, &err);
    (void)unlink(path);
    return rc;
}

static bool keeps_not_b(void *context, const struct object *object)
{
    (void)context;
    return !slice_equal(object->meta.name, SLICE("b"));
}

static const char cluster[] =
    "kind: Pod\nmetadata: {name: a, namespace: n, finalizers: [f]}\nspec: {containers: [{env: "
    "[{name: "
    "A, value: secret}]}]}\n---\n"
    "kind: Pod\nmetadata: {name: b, namespace: n, finalizers: [g]}\n---\n"
    "kind: Node\nmetadata: {name: a}\nspec: {taints: [{key: k, effect: NoExecute}]}\n---\n"
    "apiVersion: storage.k8s.io/v1\nkind: VolumeAttachment\nmetadata: {name: va}\nspec: {attacher: "
    "d, "
    "nodeName: a, source: {persistentVolumeName: v}}\nstatus: {attached: true}\n";

Test(inquiry, keeps_the_details_that_are_wanted_and_nothing_else_of_the_text)
{
    struct pod_details details;
    struct arena arena;

    arena_init(&arena, 1 << 20);
    cr_assert_eq(read_text(cluster, &(struct inquiry_wish){.keeps = keeps_not_b}), 0, "%s",
                 err.message);
    struct slice text = inquiry_find_details(&inquiry, KIND_POD, SLICE("n"), SLICE("a"));
    cr_assert(pod_details_read(text, &arena, &details));
    cr_expect_eq(details.finalizers.count, 1);
    cr_expect_not(slice_has(text, SLICE("secret")));
    cr_expect_null(inquiry_find_details(&inquiry, KIND_POD, SLICE("n"), SLICE("b")).ptr);
    cr_expect_null(inquiry_find_details(&inquiry, KIND_POD, SLICE("m"), SLICE("a")).ptr);
    cr_expect_not_null(inquiry_find_details(&inquiry, KIND_NODE, SLICE(""), SLICE("a")).ptr);
    cr_expect_eq(inquiry.cluster.counts[KIND_POD], 2);
    const struct resource *attachment =
        cluster_find_resource(&inquiry.cluster, KIND_VOLUME_ATTACHMENT, SLICE("va"));
    cr_assert_not_null(attachment);
    cr_expect(slice_equal(resource_attribute(attachment, VOLUME_ATTACHMENT_VOLUME), SLICE("v")));
    cr_expect_eq(resource_number(attachment), VOLUME_ATTACHMENT_IS_ATTACHED);
    inquiry_close(&inquiry);
    arena_dispose(&arena);
}

Test(inquiry, says_what_the_snapshot_does_not_have)
{
    const enum kind kinds[] = {KIND_NODE, KIND_VOLUME};
    struct arena arena;
    struct gaps gaps = {.arena = &arena};

    arena_init(&arena, 1 << 20);
    cr_assert_eq(read_text(cluster, &(struct inquiry_wish){.kinds = 0}), 0);
    inquiry_add_gaps(&inquiry, &gaps, kinds, 2);
    cr_assert_eq(gaps.count, 1);
    cr_expect(slice_equal(gaps.items[0].text, SLICE("persistentvolumes: the snapshot has none")));
    cr_expect_str_eq(inquiry.default_ns, "default");
    inquiry_close(&inquiry);
    arena_dispose(&arena);
}

/* ---- files in JSON, whose objects are read again ---- */

static const char pods[] =
    "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[\n{\"kind\":\"Pod\",\"metadata\":"
    "{\"name\":\"a\",\"namespace\":\"n\",\"finalizers\":[\"f\"]}},\n {\"kind\":\"Pod\","
    "\"metadata\":{\"name\":\"a\",\"namespace\":\"m\",\"finalizers\":[\"g\",\"h\"]}}]}\n"
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"},\"spec\":{\"taints\":[{\"key\":\"k\"}]}}";

static void write_file(const char *file, const char *text)
{
    FILE *out = fopen(file, "we");

    cr_assert_not_null(out);
    (void)fputs(text, out);
    cr_assert_eq(fclose(out), 0);
}

static void read_path(const char *file, const struct inquiry_wish *wish)
{
    cr_assert_eq(inquiry_open(&inquiry, &(struct inquiry_origin){.snapshot = file}, &err), 0);
    cr_assert_eq(inquiry_read(&inquiry, wish, &err), 0, "%s", err.message);
}

/* Finalizers of the pod; -1: its details are not known. */
static int count_finalizers(const char *ns)
{
    struct slice text = inquiry_find_details(&inquiry, KIND_POD, slice_of(ns), SLICE("a"));
    struct pod_details details;
    struct arena arena;

    if (text.ptr == NULL)
        return -1;
    arena_init(&arena, 1 << 20);
    cr_assert(pod_details_read(text, &arena, &details));
    int count = (int)details.finalizers.count;
    arena_dispose(&arena);
    return count;
}

Test(inquiry, reads_an_object_of_a_json_file_again_when_it_is_asked_for)
{
    const struct inquiry_wish wish = {.keeps = keeps_not_b};

    cr_assert_eq(close(mkstemp(path)), 0);
    write_file(path, pods);
    read_path(path, &wish);
    cr_expect_eq(count_finalizers("n"), 1);
    cr_expect_eq(count_finalizers("m"), 2);
    inquiry_forget_details(&inquiry);
    cr_expect_eq(count_finalizers("n"), 1);
    cr_expect_eq(count_finalizers("other"), -1);
    cr_expect(slice_equal(inquiry_find_details(&inquiry, KIND_NODE, SLICE(""), SLICE("a")),
                          SLICE("{\"spec\":{\"taints\":[{\"key\":\"k\"}]}}")));
    cr_expect_eq(inquiry.without_details, 0);
    inquiry_close(&inquiry);
    (void)unlink(path);
}

/* Whatever stands there now, it is not taken for the object; and it counts once. */
Test(inquiry, details_of_a_file_that_has_changed_are_lost)
{
    static const char *const later[] = {
        "", "{",
        "                                                                               "
        "                                                                            "};

    cr_assert_eq(close(mkstemp(path)), 0);
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        write_file(path, pods);
        read_path(path, &(struct inquiry_wish){.keeps = keeps_not_b});
        write_file(path, later[i]);
        cr_expect_eq(count_finalizers("n"), -1);
        cr_expect_eq(count_finalizers("n"), -1);
        cr_expect_eq(inquiry.without_details, 1);
        inquiry_close(&inquiry);
    }
    /* another pod is where this one was */
    write_file(path, pods);
    read_path(path, &(struct inquiry_wish){.keeps = keeps_not_b});
    char *other = strdup(pods), *name = strstr(other, "\"namespace\":\"n\"");
    name[strlen("\"namespace\":\"")] = 'x';
    write_file(path, other);
    cr_expect_eq(count_finalizers("n"), -1);
    cr_expect_eq(count_finalizers("m"), 2);
    inquiry_close(&inquiry);
    free(other);
    (void)unlink(path);
}

/* As the cluster does: with an object in two files, the later one counts, whatever they are. */
Test(inquiry, the_last_file_counts)
{
    static const char *const rows[][2] = {
        {"1.json", "2.json"}, {"1.json", "2.yaml"}, {"1.yaml", "2.json"}, {"1.yaml", "2.yaml"}};
    static const char *const texts[] = {
        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"finalizers\":[\"f\"]}}",
        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"finalizers\":[\"g\",\"h\"]}}"};
    char folder[] = "/tmp/claimguard-test-XXXXXX", files[2][64];
    struct buf text;

    cr_assert_not_null(mkdtemp(folder));
    buf_init(&text, 4096);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int f = 0; f < 2; f++) {
            bool is_yaml = strstr(rows[i][f], ".yaml") != NULL;
            (void)snprintf(files[f], sizeof files[f], "%s/%s", folder, rows[i][f]);
            buf_reset(&text, 4096);
            buf_printf(&text, "%s%s\n", is_yaml ? "--- \n" : "", texts[f]);
            write_file(files[f], buf_text(&text));
        }
        read_path(folder, &(struct inquiry_wish){.keeps = keeps_not_b});
        cr_expect_eq(count_finalizers("default"), 2, "%s, then %s", rows[i][0], rows[i][1]);
        inquiry_close(&inquiry);
        (void)unlink(files[0]);
        (void)unlink(files[1]);
    }
    buf_dispose(&text);
    (void)rmdir(folder);
}

/* An object that is read twice, as from two files, has the later details. */
Test(inquiry, the_last_object_of_a_name_counts)
{
    struct pod_details details;
    struct arena arena;

    arena_init(&arena, 1 << 20);
    cr_assert_eq(read_text("kind: Pod\nmetadata: {name: a, finalizers: [f]}\n---\nkind: Pod\n"
                           "metadata: {name: a}\n",
                           &(struct inquiry_wish){.keeps = keeps_not_b}),
                 0);
    struct slice text = inquiry_find_details(&inquiry, KIND_POD, SLICE("default"), SLICE("a"));
    cr_assert(pod_details_read(text, &arena, &details));
    cr_expect_eq(details.finalizers.count, 0);
    inquiry_close(&inquiry);
    arena_dispose(&arena);
}

Test(inquiry, details_are_bounded_and_wrong_ones_are_named)
{
    struct buf text;

    buf_init(&text, 1 << 20);
    buf_put(&text, SLICE("kind: Pod\nmetadata:\n  name: a\n  finalizers:\n"));
    for (int i = 0; i < 20000; i++)
        buf_put(&text, SLICE("  - abcd\n"));
    cr_assert_eq(read_text(buf_text(&text), &(struct inquiry_wish){.keeps = keeps_not_b}), 0);
    cr_expect_eq(inquiry.without_details, 1);
    cr_expect_null(inquiry_find_details(&inquiry, KIND_POD, SLICE("default"), SLICE("a")).ptr);
    inquiry_close(&inquiry);
    buf_dispose(&text);
    (void)snprintf(path, sizeof path, "/tmp/claimguard-test-XXXXXX");
    cr_expect_lt(read_text("kind: Pod\nmetadata: {name: a}\nstatus: {conditions: [1]}\n",
                           &(struct inquiry_wish){.keeps = keeps_not_b}),
                 0);
    cr_expect_not_null(strstr(err.message, "expected an object"), "%s", err.message);
    inquiry_close(&inquiry);
}

Test(inquiry, a_snapshot_and_a_live_cluster_are_not_given_together)
{
    cr_expect_lt(
        inquiry_open(&inquiry, &(struct inquiry_origin){.snapshot = "s", .context = "c"}, &err), 0);
    cr_expect_str_eq(err.message, "--snapshot and --context: give only one of them");
    inquiry_close(&inquiry);
}

Test(operand, reads_what_users_of_kubectl_write)
{
    static const struct {
        const char *text;
        enum kind kind;
        const char *ns, *name; /* NULL: refused */
    } rows[] = {
        {"data", KIND_CLAIM, "shop", "data"},
        {"web/data", KIND_CLAIM, "web", "data"},
        {"pvc/data", KIND_CLAIM, "shop", "data"},
        {"PVC/data", KIND_CLAIM, "shop", "data"},
        {"persistentvolumeclaim/data", KIND_CLAIM, "shop", "data"},
        {"persistentvolumeclaims/web/data", KIND_CLAIM, "web", "data"},
        {"pod/db-0", KIND_POD, "shop", "db-0"},
        {"pods/web/db-0", KIND_POD, "web", "db-0"},
        {"pod/db-0", KIND_CLAIM, NULL, NULL},
        {"pvc/data", KIND_POD, "shop", "data"},
        {"deploy/web", KIND_POD, "shop", "web"},
        {"statefulsets.apps/web/db", KIND_POD, "web", "db"},
        {"Job/x", KIND_POD, "shop", "x"},
        {"cj/x", KIND_POD, "shop", "x"},
        {"node/n1", KIND_POD, "", "n1"},
        {"no/n1", KIND_POD, "", "n1"},
        {"no/n1", KIND_CLAIM, NULL, NULL},
        {"node/shop/n1", KIND_POD, NULL, NULL},
        {"deploy/web", KIND_CLAIM, NULL, NULL},
        {"pv/data", KIND_POD, NULL, NULL},
        {"", KIND_CLAIM, NULL, NULL},
        {"/", KIND_CLAIM, NULL, NULL},
        {"web/", KIND_CLAIM, NULL, NULL},
        {"/data", KIND_CLAIM, NULL, NULL},
        {"pvc/", KIND_CLAIM, NULL, NULL},
        {"a/b/c", KIND_CLAIM, NULL, NULL},
        {"pvc/a/b/c", KIND_CLAIM, NULL, NULL},
        {"web/..", KIND_CLAIM, NULL, NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct operand got;
        int rc = operand_parse(&got, rows[i].text, rows[i].kind, SLICE("shop"), &err);
        cr_expect_eq(rc == 0, rows[i].name != NULL, "%s", rows[i].text);
        if (rc == 0)
            cr_expect(operand_is(&got, slice_of(rows[i].ns), slice_of(rows[i].name)), "%s",
                      rows[i].text);
    }
}

Test(operand, without_a_namespace_is_in_any)
{
    struct operand got;

    cr_assert_eq(operand_parse(&got, "data", KIND_CLAIM, SLICE(""), &err), 0);
    cr_expect(operand_is(&got, SLICE("web"), SLICE("data")));
    cr_expect_not(operand_is(&got, SLICE("web"), SLICE("logs")));
}
