/* Every text that is kept has a bound (docs/risks.md): of each kind, objects with long texts in
 * all fields that its decoder reads take little memory. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/cluster/cluster.h"
#include "cache/objects/label_selector.h"
#include "cache/objects/objects_internal.h"
#include "support/every_field.h"

enum {
    TEXT_BYTES = 256 << 10,
    OBJECTS = 8,
    KEPT_BYTES_MAX = 48 << 10, /* of an object: labels, and an annotation that names volumes */
};

static struct cluster cluster;
static struct arena arena;

static void setup(void)
{
    cluster_init(&cluster);
    arena_init(&arena, 64 << 20);
}

static void teardown(void)
{
    arena_dispose(&arena);
    cluster_dispose(&cluster);
}

TestSuite(bounds, .init = setup, .fini = teardown);

static void apply(enum kind kind, json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT);
    struct error err = {0};
    struct object out;
    struct pull json;

    pull_init(&json, slice_of(text));
    cr_assert(object_read(&json, kind, &arena, &out), "%s: %s: %s", kind_text(kind), json.path,
              json.problem);
    cr_assert_eq(cluster_apply(&cluster, &out, &err), 0, "%s", err.message);
    free(text);
    arena_reset(&arena);
    json_decref(object);
}

/* An object whose fields all have a text of that length, and of no other object. */
static json_t *object_of(enum kind kind, unsigned number, size_t bytes)
{
    char *text = malloc(bytes + 1);

    cr_assert_not_null(text);
    memset(text, 'x', bytes);
    text[bytes] = '\0';
    text[0] = (char)('0' + number);
    json_t *object = every_field(object_tables(kind)->core, text);
    free(text);
    if (kind == KIND_VOLUME) { /* as of an offer, of which more is kept */
        json_object_set_new(json_object_get(object, "status"), "phase", json_string("Available"));
        json_object_del(json_object_get(object, "metadata"), "deletionTimestamp");
    }
    return object;
}

static size_t used_bytes(void)
{
    return cluster.pool.page_count * POOL_PAGE_BYTES;
}

Test(bounds, of_each_kind_an_object_of_long_texts_keeps_little)
{
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        size_t before = used_bytes();
        for (unsigned i = 0; i < OBJECTS; i++)
            apply((enum kind)kind, object_of((enum kind)kind, i, TEXT_BYTES));
        cr_expect_eq(cluster.counts[kind], OBJECTS, "%s: they stay different",
                     kind_text((enum kind)kind));
        cr_expect_leq(used_bytes() - before, OBJECTS * KEPT_BYTES_MAX, "%s: %zu bytes",
                      kind_text((enum kind)kind), used_bytes() - before);
    }
}

/* Texts that may be of any length: their readers keep no more than a bound of them. */
static bool has_a_bound_of_its_own(const char *key)
{
    static const char *const keys[] = {DEFER_FS_MOUNT_ANNOTATION, DEFERRED_FOR_ANNOTATION,
                                       CLAIM_HOLDER_ANNOTATION,
                                       "storage.alpha.kubernetes.io/migrated-plugins"};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

static void expect_names(enum kind kind, struct pull_table table)
{
    if (table.fields == condition_fields) /* nothing of them is kept but a bool */
        return;
    for (size_t i = 0; i < table.count; i++) {
        const struct pull_field *field = &table.fields[i];
        cr_expect(field->type != PULL_STRING || has_a_bound_of_its_own(field->key),
                  "%s: %s has no bound: PULL_NAME", kind_text(kind), field->key);
        expect_names(kind, (struct pull_table){field->members, field->count});
    }
}

Test(bounds, each_text_of_a_table_has_one)
{
    for (int kind = 0; kind < KIND_COUNT; kind++)
        expect_names((enum kind)kind, object_tables((enum kind)kind)->core);
}

/* ---- lists of many short words ---- */

enum { WORDS = 20000 };

static json_t *many_words(void)
{
    json_t *list = json_array();
    char word[16];

    for (unsigned i = 0; i < WORDS; i++) {
        (void)snprintf(word, sizeof word, "word-%u", i);
        json_array_append_new(list, json_string(word));
    }
    return list;
}

static json_t *many_pairs(void)
{
    json_t *pairs = json_object();
    char word[16];

    for (unsigned i = 0; i < WORDS; i++) {
        (void)snprintf(word, sizeof word, "key-%u", i);
        json_object_set_new(pairs, word, json_string("value"));
    }
    return pairs;
}

/* Applies the object, and expects it to keep little. */
static void expect_little(enum kind kind, json_t *object)
{
    size_t before = used_bytes();

    cr_assert_not_null(object);
    apply(kind, object);
    cr_expect_leq(used_bytes() - before, KEPT_BYTES_MAX, "%s: %zu bytes", kind_text(kind),
                  used_bytes() - before);
}

Test(bounds, a_list_of_many_words_keeps_little)
{
    expect_little(KIND_POD, json_pack("{s:{s:s, s:o}, s:{s:[{s:s, s:{s:s}}]}}", "metadata", "name",
                                      "p", "labels", many_pairs(), "spec", "volumes", "name", "v",
                                      "persistentVolumeClaim", "claimName", "c"));
    expect_little(KIND_CLAIM,
                  json_pack("{s:{s:s}, s:{s:{s:o}, s:[s]}, s:{s:s}}", "metadata", "name", "c",
                            "spec", "selector", "matchLabels", many_pairs(), "accessModes",
                            "ReadWriteOnce", "status", "phase", "Pending"));
    expect_little(KIND_VOLUME, json_pack("{s:{s:s, s:o}, s:{s:s}}", "metadata", "name", "v",
                                         "labels", many_pairs(), "status", "phase", "Available"));
    expect_little(KIND_POD_DISRUPTION_BUDGET,
                  json_pack("{s:{s:s}, s:{s:{s:o}}}", "metadata", "name", "b", "spec", "selector",
                            "matchLabels", many_pairs()));
    expect_little(KIND_CSI_DRIVER, json_pack("{s:{s:s}, s:{s:o}}", "metadata", "name", "d", "spec",
                                             "volumeLifecycleModes", many_words()));
}

/* ---- what is too long ---- */

static struct slice read_labels(json_t *labels)
{
    struct slice out = {NULL, 0};
    struct pull json;
    char *text = json_dumps(labels, JSON_COMPACT);

    pull_init(&json, arena_copy(&arena, slice_of(text)));
    cr_assert(labels_read_kept(&json, &arena, &out));
    free(text);
    json_decref(labels);
    return out;
}

Test(bounds, too_many_labels_match_each_selector_and_are_written_as_they_are_read)
{
    struct slice labels = read_labels(many_pairs());
    struct buf out;

    cr_expect(selector_matches(SLICE("*\napp in web"), labels, SLICE("")));
    cr_expect(selector_matches(SLICE("*\napp absent"), labels, SLICE("")));
    cr_expect_not(selector_matches(SLICE(""), labels, SLICE("")), "it is none");
    buf_init(&out, 1 << 20);
    labels_write(labels, SLICE(""), &out);
    json_t *written = json_loads(buf_text(&out), 0, NULL);
    cr_assert_not_null(written);
    cr_expect(slice_equal(read_labels(written), labels), "%s", buf_text(&out));
    buf_dispose(&out);
}
