/* Manifests of a repository, as a source: where fields are, and files that are no manifests. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cache/snapshot/source.h"

struct found {
    size_t objects;
    struct place mode; /* of the text "ReadWriteOncePod" */
};

static int find_mode(void *context, const struct source_text *text, const struct object *object,
                     struct error *err)
{
    struct found *found = context;
    const char *at =
        memmem(text->text.ptr, text->text.len, "ReadWriteOncePod", strlen("ReadWriteOncePod"));

    (void)err;
    cr_expect_null(object, "it is not decoded");
    found->objects++;
    if (at != NULL)
        found->mode = source_text_place(text, (struct slice){at, 1});
    return 1;
}

/* Reads a file of that name and text as manifests. */
static struct found read_manifests(const char *name, const char *text, struct source_report *report)
{
    char folder[] = "/tmp/claimguard-XXXXXX", path[64];
    struct found found = {.objects = 0};
    struct error err = {0};

    cr_assert_not_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    cr_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
    struct source source = {.path = path,
                            .text_sink = find_mode,
                            .context = &found,
                            .wants_places = true,
                            .skips_foreign = true};
    cr_expect_eq(source_read(&source, report, &err), 0, "%s", err.message);
    (void)unlink(path);
    (void)rmdir(folder);
    return found;
}

Test(source_manifests, finds_the_place_of_a_field)
{
    static const char yaml[] = "# first\n---\nkind: PersistentVolumeClaim\n"
                               "metadata: {name: \"a\\u0062\"}\nspec:\n  accessModes:\n"
                               "    - ReadWriteOncePod\n";
    static const char json[] =
        "{\"kind\":\"List\",\"items\":[\n{\"kind\":\"PersistentVolumeClaim\",\n"
        " \"spec\":{\"accessModes\":[\"ReadWriteOncePod\"]}}]}\n";
    struct source_report report;
    struct found found = read_manifests("a.yaml", yaml, &report);

    cr_expect_eq(found.mode.line, 7);
    cr_expect_eq(found.mode.column, 7);
    found = read_manifests("a.json", json, &report);
    cr_expect_eq(found.mode.line, 3);
    cr_expect_eq(found.mode.column, 26);
}

static int count_broken(void *context, struct error *err)
{
    struct error *last = context;

    *last = *err;
    last->code = last->code == ERROR_INVALID ? last->code : 0;
    return 0;
}

/* Each document is read alone: "---" at the begin of a line is nothing else, even in a text. */
Test(source_manifests, goes_on_behind_a_document_that_cannot_be_read)
{
    static const char text[] =
        "%YAML 1.1\n---\nkind: Pod\n---\nkind: Pod\nkind: Pod\nspec: [\n--- \n"
        "kind: Pod\na: |\n  ---\n---\n\tkind: Pod\n---\nkind: Pod\na: '\n---\n"
        "kind: Pod\na: --\n---";
    char folder[] = "/tmp/claimguard-XXXXXX", path[64];
    struct error err = {0}, last = {0};
    struct source_report report;

    cr_assert_not_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/a.yaml", folder);
    FILE *file = fopen(path, "we");
    cr_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
    struct source source = {.path = path, .broken = count_broken, .context = &last};
    cr_expect_eq(source_read(&source, &report, &err), 0, "%s", err.message);
    cr_expect_eq(report.skipped, 3, "the first, the third and the last: %zu", report.skipped);
    cr_expect_eq(last.code, ERROR_INVALID);
    cr_expect_not_null(strstr(last.message, "a.yaml:17:"), "%s", last.message);
    (void)unlink(path);
    (void)rmdir(folder);
}

/* A place in the text of another object, or of none, is not taken for one in this. */
Test(source_manifests, a_text_that_is_not_of_the_object_is_at_its_beginning)
{
    struct source_text text = {.text = SLICE("{}"), .place = {5, 1}};

    cr_expect_eq(source_text_place(&text, SLICE("elsewhere")).line, 5);
    text.is_made = true;
    cr_expect_eq(source_text_place(&text, text.text).line, 5);
    cr_expect_eq(source_text_place(&text, (struct slice){NULL, 0}).line, 5);
}

Test(source_manifests, skips_what_is_no_object_if_that_is_wanted)
{
    static const char text[] = "replicas: 1\nitems: [a, b]\n---\n- a list\n---\na scalar\n---\n"
                               "kind: Pod\nmetadata: {generateName: a-}\n";
    struct source_report report;
    struct found found = read_manifests("values.yaml", text, &report);

    cr_expect_eq(found.objects, 1);
    cr_expect_eq(report.objects, 1);
    cr_expect_geq(report.skipped, 3);
}
