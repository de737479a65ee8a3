#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/snapshot/source.h"
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

TestSuite(source, .init = setup, .fini = teardown);

#define POD(name) "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name "\"}}"

struct shape {
    const char *name, *text;
    size_t pods;
};

static const struct shape shapes[] = {
    {"one object", POD("a"), 1},
    {"a List", "{\"apiVersion\":\"v1\",\"items\":[" POD("a") "," POD("b") "],\"kind\":\"List\"}",
     2},
    {"a typed list, kind first",
     "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":[{\"metadata\":{\"name\":\"a\"}}]}", 1},
    {"an empty list", "{\"kind\":\"List\",\"items\":[]}", 0},
    {"items that are null", "{\"kind\":\"PodList\",\"items\":null}", 0},
    {"documents in a row", POD("a") "\n" POD("b") POD("c"), 3},
    {"white space around", "\n\t " POD("a") " \n", 1},
    {"nothing", "", 0},
    {"only white space", " \n", 0},
    {"an unknown kind", "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{}}", 0},
    {"YAML, one object", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", 1},
    {"YAML, a List",
     "apiVersion: v1\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n- apiVersion: "
     "v1\n"
     "  kind: Pod\n  metadata:\n    name: b\nkind: List\nmetadata:\n  resourceVersion: ''\n",
     2},
    {"YAML, a typed list", "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: a}\n", 1},
    {"YAML, an empty list", "kind: List\nitems: []\n", 0},
    {"YAML, items that are null", "kind: PodList\nitems:\n", 0},
    {"YAML, documents",
     "---\nkind: Pod\napiVersion: v1\nmetadata: {name: a}\n---\n---\nkind: Pod\napiVersion: v1\n"
     "metadata: {name: b}\n...\n",
     2},
    {"YAML, two lists",
     "kind: PodList\napiVersion: v1\nitems:\n- metadata: {name: a}\n---\nkind: PodList\n"
     "apiVersion: v1\nitems:\n- metadata: {name: b}\n",
     2},
    {"YAML, only a comment", "# nothing\n", 0},
    {"YAML that starts with a brace", "{apiVersion: v1, kind: Pod, metadata: {name: a}}\n", 1},
    {"YAML that starts as JSON does",
     "{\"apiVersion\": \"v1\", \"kind\": Pod, 'metadata': {name: a}}\n", 1},
    {"YAML, JSON with a comment and a comma too many",
     "{\n\"kind\": \"List\", # both\n\"items\": [\n" POD("a") ",\n" POD("b") ",\n]}\n", 2},
    {"YAML, JSON documents with a line between them", POD("a") "\n---\n" POD("b") "\n", 2},
};

Test(source, reads_every_shape_of_snapshot)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct error err = {0};
        cluster_dispose(&cluster);
        cr_expect_eq(try_load_text(&cluster, shapes[i].text, &err), 0, "%s: %s", shapes[i].name,
                     err.message);
        cr_expect_eq(cluster.counts[KIND_POD], shapes[i].pods, "%s: %zu pods", shapes[i].name,
                     cluster.counts[KIND_POD]);
    }
}

struct bad {
    const char *name, *text, *message; /* message: behind the file's name */
};

static const struct bad bads[] = {
    {"cut off", "{\"kind\":\"List\",\"items\":[" POD("a"), ":1:"},
    {"an array", "[]", ":1:1: expected an object"},
    {"no kind", "\n {\"metadata\":{\"name\":\"a\"}}", ":2:2: an object without kind"},
    {"an item's fault",
     "{\"kind\":\"List\",\"items\":[\n" POD("a") ",\n {\"apiVersion\":\"v1\",\"kind\":\"Pod\","
                                                 "\"metadata\":{\"name\":7}}]}",
     ":3:53: metadata.name: expected a string"},
    {"an item that is no object", "{\"kind\":\"List\",\"items\":[1]}", ":1:25: expected an object"},
    {"items twice", "{\"kind\":\"List\",\"items\":[],\"items\":[]}", "this key appears twice"},
    {"YAML syntax", "kind: [\n", ":2:1: did not find expected"},
    {"YAML, an item's fault",
     "kind: PodList\napiVersion: v1\nitems:\n- metadata: {name: a}\n- metadata: {name: 7}\n",
     ":5:3: metadata.name: expected a string"},
    {"YAML, an ambiguous name", "kind: Pod\napiVersion: v1\nmetadata: {name: on}\n",
     ":1:1: metadata.name: expected a string"},
    {"YAML, a key twice", "kind: Pod\napiVersion: v1\nmetadata: {name: a, x: 1, name: b}\n",
     ":3:27: this key appears twice"},
    {"YAML, items twice",
     "kind: List\nitems:\n- {kind: Pod, apiVersion: v1, metadata: {name: a}}\n"
     "items:\n- {}\n",
     ":5:1: items: this key appears twice"},
    {"YAML, a scalar", "hello\n", ":1:1: expected an object"},
    {"YAML, a sequence", "- a\n", ":1:1: expected an object"},
};

Test(source, says_where_a_snapshot_is_wrong)
{
    for (size_t i = 0; i < sizeof bads / sizeof *bads; i++) {
        struct error err = {0};
        cr_expect_eq(try_load_text(&cluster, bads[i].text, &err), ERROR_INVALID, "%s",
                     bads[i].name);
        cr_expect_not_null(strstr(err.message, bads[i].message), "%s: got %s", bads[i].name,
                           err.message);
    }
}

Test(source, nests_no_deeper_than_its_limit)
{
    static char text[40000];
    struct error err = {0};

    (void)strcpy(text, "{\"kind\":\"Pod\",\"x\":"); /* NOLINT: fits */
    memset(text + strlen(text), '[', 20000);
    cr_expect_eq(try_load_text(&cluster, text, &err), ERROR_INVALID);
    cr_expect_not_null(strstr(err.message, "nested too deep"), "%s", err.message);
    (void)strcpy(text, "kind: Pod\nx: "); /* NOLINT: fits */
    memset(text + strlen(text), '[', 20000);
    cr_expect_eq(try_load_text(&cluster, text, &err), ERROR_INVALID);
    cr_expect_not_null(strstr(err.message, "nested too deep"), "%s", err.message);
}

/* Objects that do not fit the first window, and items that lie across its end. */
Test(source, reads_objects_larger_than_its_window)
{
    struct buf text;
    struct error err = {0};

    buf_init(&text, 64 << 20);
    buf_put(&text, SLICE("{\"kind\":\"List\",\"items\":["));
    for (int i = 0; i < 40; i++) {
        buf_printf(
            &text,
            "%s{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"annotations\":{\"x\":\"",
            i == 0 ? "" : ",");
        for (int j = 0; j < 3001 * i; j++)
            buf_put(&text, SLICE("0123456789"));
        buf_printf(&text, "\"},\"name\":\"p%d\"}}", i);
    }
    buf_put(&text, SLICE("]}\0"));
    cr_assert_eq(try_load_text(&cluster, text.bytes, &err), 0, "%s", err.message);
    cr_expect_eq(cluster.counts[KIND_POD], 40);
    buf_dispose(&text);
}

Test(source, refuses_an_object_over_its_limit)
{
    struct buf text;
    struct error err = {0};

    buf_init(&text, 64 << 20);
    buf_put(&text, SLICE("{\"kind\":\"Pod\",\"x\":\""));
    for (int j = 0; j < 1800000; j++)
        buf_put(&text, SLICE("0123456789"));
    buf_put(&text, SLICE("\"}\0"));
    cr_expect_eq(try_load_text(&cluster, text.bytes, &err), ERROR_TOO_BIG);
    cr_expect_not_null(strstr(err.message, ":1:1: one object is over 16 MiB"), "%s", err.message);
    buf_dispose(&text);
}

static void write_text(const char *directory, const char *name, const char *text)
{
    char path[256];

    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "we");
    cr_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

Test(source, reads_the_json_and_yaml_files_of_a_directory)
{
    char directory[] = "/tmp/claimguard-XXXXXX", command[64];
    struct error err = {0};

    cr_assert_not_null(mkdtemp(directory));
    cr_expect_eq(try_load_text(&cluster, "", &err), 0);
    write_text(directory, "a.json", POD("a"));
    write_text(directory, "b.yaml", "kind: Pod\napiVersion: v1\nmetadata: {name: b}\n");
    write_text(directory, "c.yml", "kind: Pod\napiVersion: v1\nmetadata: {name: c}\n");
    write_text(directory, "README.md", "{{{");
    load_file(&cluster, directory);
    cr_expect_eq(cluster.counts[KIND_POD], 3);
    (void)snprintf(command, sizeof command, "rm -r %s", directory);
    cr_assert_eq(system(command), 0); /* NOLINT(cert-env33-c): a fixed command */
}

/* What is JSON is known from a file's first 64 KiB: a pipe cannot be read again. */
Test(source, a_fault_far_into_a_json_file_is_reported_as_json)
{
    struct error err = {0};
    struct buf text;

    buf_init(&text, 1 << 20);
    buf_put(&text, SLICE("{\"kind\":\"List\",\"items\":[" POD("a")));
    for (int i = 0; i < 2000; i++)
        buf_put(&text, SLICE(",\n" POD("b")));
    buf_put(&text, SLICE(",\n]}"));
    cr_expect_eq(try_load_text(&cluster, buf_text(&text), &err), ERROR_INVALID);
    cr_expect_not_null(strstr(err.message, ":2002:1: expected a value after ','"), "%s",
                       err.message);
    buf_dispose(&text);
}

/* ---- texts ---- */

/* "KIND LINE:COLUMN, " of each text; kinds that are not stored in brackets. */
static struct buf seen;

static int see(void *context, const struct source_text *text, const struct object *object,
               struct error *err)
{
    bool is_stored = object != NULL;

    (void)context;
    buf_printf(&seen, is_stored ? "%s %zu:%zu, " : "(%s %zu:%zu), ", text->type->kind,
               text->place.line, text->place.column);
    cr_expect(slice_has(text->text, SLICE("\"metadata\"")), "%.*s", SLICE_ARG(text->text));
    cr_expect_str_eq(strrchr(text->path, '.') + 1, text->text.ptr[1] == '"' ? "yaml" : "json");
    if (strcmp(text->type->kind, "Secret") == 0)
        return error_set(err, ERROR_INVALID, "no more");
    return strcmp(text->type->kind, "Deployment") == 0;
}

static int apply(void *context, const struct object *object, struct error *err)
{
    return cluster_apply(context, object, err);
}

static int read_seen(const char *name, const char *text, struct source_report *report,
                     struct error *err)
{
    char path[] = "/tmp/claimguard-test-XXXXXX", file[64];
    struct source source = {.path = file, .sink = apply, .text_sink = see, .context = &cluster};

    cr_assert_not_null(mkdtemp(path));
    (void)snprintf(file, sizeof file, "%s/%s", path, name);
    FILE *out = fopen(file, "w");
    cr_assert_not_null(out);
    (void)fputs(text, out);
    cr_assert_eq(fclose(out), 0);
    buf_init(&seen, 4096);
    int rc = source_read(&source, report, err);
    (void)unlink(file);
    (void)rmdir(path);
    return rc;
}

Test(source, passes_on_the_text_and_the_place_of_each_object)
{
    static const struct {
        const char *name, *text, *want;
    } rows[] = {
        {"a.json",
         "{ \"kind\":\"List\",\"items\":[\n  { \"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}},\n"
         "  { \"kind\":\"Deployment\",\"metadata\":{}}, { "
         "\"kind\":\"ConfigMap\",\"metadata\":{}}]}",
         "Pod 2:3, (Deployment 3:3), (ConfigMap 3:41), "},
        {"a.yaml",
         "kind: List\nitems:\n- kind: Pod\n  metadata: {name: a}\n- metadata:\n    name: b\n"
         "  kind: Deployment\n---\n\nkind: ConfigMap\nmetadata: {}\n",
         "Pod 3:3, (Deployment 5:3), (ConfigMap 10:1), "},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct source_report report;
        struct error err = {0};
        cr_assert_eq(read_seen(rows[i].name, rows[i].text, &report, &err), 0, "%s", err.message);
        cr_expect_str_eq(buf_text(&seen), rows[i].want);
        cr_expect_eq(report.objects, 2, "the Pod, and the Deployment that was used");
        cr_expect_eq(report.skipped, 1);
        cr_expect_eq(cluster.counts[KIND_POD], 1);
        buf_dispose(&seen);
    }
}

Test(source, a_text_sink_can_stop)
{
    struct source_report report;
    struct error err = {0};

    cr_expect_eq(read_seen("a.yaml", "kind: Secret\nmetadata: {}\n---\nkind: Pod\nmetadata: {}\n",
                           &report, &err),
                 ERROR_INVALID);
    cr_expect_str_eq(err.message, "no more");
    buf_dispose(&seen);
}
