/* Anchors, aliases and merge keys: what the text of an object is, what is refused, and how much
 * they may expand to. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cache/snapshot/source.h"
#include "config/base/buf.h"

/* The texts of all objects, a line each: KIND TEXT. */
static int keep_text(void *context, const struct source_text *text, const struct object *object,
                     struct error *err)
{
    (void)object;
    (void)err;
    buf_printf(context, "%s %.*s\n", text->type->kind, SLICE_ARG(text->text));
    return 1;
}

static int read_text(struct buf *out, const char *text, size_t length, struct error *err)
{
    char path[] = "/tmp/claimguard-yaml-XXXXXX";
    int fd = mkstemp(path);
    struct source source = {.path = path, .text_sink = keep_text, .context = out};
    struct source_report report;

    cr_assert(fd >= 0 && write(fd, text, length) == (ssize_t)length);
    (void)close(fd);
    source.wants_places = true;
    int rc = source_read(&source, &report, err);
    (void)unlink(path);
    return rc;
}

/* Rows are the members of an object of kind K. */
#define K "kind: K\n"

static const struct row {
    const char *name, *yaml, *json;
} rows[] = {
    {"a scalar", K "a: &x 1\nb: *x\n", "K {\"kind\":\"K\",\"a\":1,\"b\":1}\n"},
    {"text stays text", K "a: &x \"1\"\nb: *x\n", "K {\"kind\":\"K\",\"a\":\"1\",\"b\":\"1\"}\n"},
    {"a mapping", K "a: &x {m: 1, n: [2]}\nb: [*x, *x]\n",
     "K "
     "{\"kind\":\"K\",\"a\":{\"m\":1,\"n\":[2]},\"b\":[{\"m\":1,\"n\":[2]},{\"m\":1,\"n\":[2]}]}"
     "\n"},
    {"an anchor in an anchor", K "a: &x {m: &y [1]}\nb: *y\nc: *x\n",
     "K {\"kind\":\"K\",\"a\":{\"m\":[1]},\"b\":[1],\"c\":{\"m\":[1]}}\n"},
    {"the last anchor of a name counts", K "a: &x 1\nb: &x 2\nc: *x\n",
     "K {\"kind\":\"K\",\"a\":1,\"b\":2,\"c\":2}\n"},
    {"an anchor of a key", K "&x a: 1\nb: *x\n", "K {\"kind\":\"K\",\"a\":1,\"b\":\"a\"}\n"},
    {"an alias is the kind", "a: &x K\nkind: *x\n", "K {\"a\":\"K\",\"kind\":\"K\"}\n"},
    {"of another item", "kind: List\nitems:\n- {kind: K, a: &x [1]}\n- {kind: L, a: *x}\n",
     "K {\"kind\":\"K\",\"a\":[1]}\nL {\"kind\":\"L\",\"a\":[1]}\n"},
    {"an item", "kind: KList\nitems:\n- &x {a: 1}\n- *x\n", "K {\"a\":1}\nK {\"a\":1}\n"},
    {"a merge key", K "a: &x {m: 1, n: 2}\nb:\n  <<: *x\n  o: 3\n",
     "K {\"kind\":\"K\",\"a\":{\"m\":1,\"n\":2},\"b\":{\"o\":3,\"m\":1,\"n\":2}}\n"},
    {"own keys win, before and behind", K "a: &x {m: 1, n: 2}\nb: {m: 3, <<: *x, n: 4}\n",
     "K {\"kind\":\"K\",\"a\":{\"m\":1,\"n\":2},\"b\":{\"m\":3,\"n\":4}}\n"},
    {"nothing else is in the mapping", K "a: &x {m: 1}\nb: {<<: *x}\n",
     "K {\"kind\":\"K\",\"a\":{\"m\":1},\"b\":{\"m\":1}}\n"},
    {"an empty mapping is merged", K "b: {<<: {}, m: 1}\n", "K {\"kind\":\"K\",\"b\":{\"m\":1}}\n"},
    {"the first of a list wins", K "a: [&x {m: 1}, &y {m: 2, n: 3}]\nb: {<<: [*x, *y]}\n",
     "K {\"kind\":\"K\",\"a\":[{\"m\":1},{\"m\":2,\"n\":3}],\"b\":{\"m\":1,\"n\":3}}\n"},
    {"a merge in what is merged", K "b: {<<: {<<: {m: 1, n: 2}, m: 3}, o: {<<: {p: 4}}}\n",
     "K {\"kind\":\"K\",\"b\":{\"o\":{\"p\":4},\"m\":3,\"n\":2}}\n"},
    {"keys with quotes", K "a: &x {\"m\\\"\": 1}\nb: {<<: *x, \"m\\\"\": 2}\nc: {<<: *x}\n",
     "K {\"kind\":\"K\",\"a\":{\"m\\\"\":1},\"b\":{\"m\\\"\":2},\"c\":{\"m\\\"\":1}}\n"},
    {"merged into the object", "<<: {kind: K, a: 1}\nb: 2\n",
     "K {\"b\":2,\"kind\":\"K\",\"a\":1}\n"},
    {"a quoted << is a key", K "\"<<\": 1\n", "K {\"kind\":\"K\",\"<<\":1}\n"},
};

Test(yaml_alias, is_expanded)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err = {0};
        struct buf out;
        buf_init(&out, 1 << 20);
        cr_expect_eq(read_text(&out, rows[i].yaml, strlen(rows[i].yaml), &err), 0, "%s: %s",
                     rows[i].name, err.message);
        cr_expect_str_eq(buf_text(&out), rows[i].json, "%s: %s", rows[i].name, buf_text(&out));
        buf_dispose(&out);
    }
}

static const struct bad {
    const char *name, *yaml, *message;
} bads[] = {
    {"an unknown alias", K "b: *x\n", ":2:4: this document has no such anchor before this alias"},
    {"an anchor behind", K "b: *x\na: &x 1\n", ":2:4: this document has no such anchor"},
    {"of another document", K "a: &x 1\n---\n" K "b: *x\n",
     ":5:4: this document has no such anchor"},
    {"within itself", K "a: &x [*x]\n", ":2:8: this document has no such anchor"},
    {"within itself, with an older one", K "a: &x 1\nb: &x [*x]\n", ":3:8: this document has no"},
    {"as a key", K "a: &x m\nb: {*x : 1}\n", ":3:5: an alias cannot be a key"},
    {"as the items", "a: &x [{kind: K}]\nkind: List\nitems: *x\n",
     ":3:8: items: an alias of a list"},
    {"as an item, of no object", "kind: List\na: &x 1\nitems: [*x]\n", ":3:9: "},
    {"a scalar is merged", K "a: {<<: 1}\n", ":2:5: <<: expected a mapping"},
    {"a scalar of a list is merged", K "a: {<<: [{m: 1}, 2]}\n", ":2:5: <<: expected a mapping"},
    {"merged twice", K "a: {<<: {m: 1}, <<: {n: 1}}\n", ":2:17: this key appears twice"},
    {"a template", K "metadata:\n  name: {{ .Values.name }}\n",
     ": a key must be a scalar; the file has \"{{\": if it is a template, render it first"},
    {"a template's line", K "{{- if .Values.on }}\na: 1\n{{- end }}\n", "render it first"},
};

Test(yaml_alias, is_refused_with_its_place)
{
    for (size_t i = 0; i < sizeof bads / sizeof *bads; i++) {
        struct error err = {0};
        struct buf out;
        buf_init(&out, 1 << 20);
        cr_expect_eq(read_text(&out, bads[i].yaml, strlen(bads[i].yaml), &err), ERROR_INVALID, "%s",
                     bads[i].name);
        cr_expect_not_null(strstr(err.message, bads[i].message), "%s: got %s", bads[i].name,
                           err.message);
        buf_dispose(&out);
    }
}

/* A text that stands for one of 10^levels scalars. */
static void put_laughs(struct buf *yaml, int levels, bool merges)
{
    buf_printf(yaml, K "a0: &a0 {k: lol}\n");
    for (int i = 1; i < levels; i++) {
        buf_printf(yaml, "a%d: &a%d %s", i, i, merges ? "{" : "[");
        for (int j = 0; j < 10; j++) {
            if (merges)
                buf_printf(yaml, "k%d: {<<: *a%d}, ", j, i - 1);
            else
                buf_printf(yaml, "*a%d, ", i - 1);
        }
        buf_printf(yaml, merges ? "}\n" : "]\n");
    }
}

static void expect_limit(bool merges, const char *limit)
{
    struct error err = {0};
    struct buf yaml, out;

    buf_init(&yaml, 1 << 20);
    buf_init(&out, 64 << 20);
    put_laughs(&yaml, 12, merges);
    cr_expect_eq(read_text(&out, yaml.bytes, yaml.len, &err), ERROR_INVALID);
    cr_expect_not_null(strstr(err.message, limit), "%s", err.message);
    buf_dispose(&yaml);
    buf_dispose(&out);
}

Test(yaml_alias, of_an_alias_of_an_alias_has_a_limit)
{
    expect_limit(false, "one object is too big");
    expect_limit(true, "too big");
}

/* Each object is small enough, and all of them together are not. */
Test(yaml_alias, has_a_limit_for_the_file)
{
    struct error err = {0};
    struct buf yaml, out;

    buf_init(&yaml, 4 << 20);
    buf_init(&out, 256 << 20);
    buf_printf(&yaml, "kind: List\nitems:\n- kind: K\n  a: &x ");
    for (int i = 0; i < 100000; i++)
        buf_put(&yaml, SLICE("0123456789"));
    buf_put(&yaml, SLICE("\n"));
    for (int i = 0; i < 100; i++)
        buf_put(&yaml, SLICE("- {kind: K, a: *x}\n"));
    cr_assert_not(yaml.failed);
    cr_expect_eq(read_text(&out, yaml.bytes, yaml.len, &err), ERROR_INVALID);
    cr_expect_not_null(strstr(err.message, "expand to over 64 MiB"), "%s", err.message);
    buf_dispose(&yaml);
    buf_dispose(&out);
}
