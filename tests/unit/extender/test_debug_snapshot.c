/* What /debug/snapshot writes, read again: the same records, and the same verdicts. Every case of
 * tests/cases, and a cluster that has all that is kept of an object. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "cases/cases.h"
#include "extender/cli/services.h"
#include "extender/commands/inquiry/load.h"
#include "extender/serving/zpages/zpages.h"
#include "support/explained.h"
#include "support/process.h"

/* A claimguard with the configuration, and objects of these files. NULL: none. */
static void start(struct state *state, const char *config_path, const char *path, const char *more)
{
    struct load_report report;
    struct config *config;
    struct error err = {0};

    cr_assert_eq(config_load(&config, config_path, &err), 0, "%s", err.message);
    config->server.debug_endpoints = true;
    cr_assert_eq(services_init(state, config, &err), 0);
    cr_assert_eq(load_snapshot(&state->cluster, path, NULL, &report, &err), 0, "%s", err.message);
    if (more != NULL)
        cr_assert_eq(load_snapshot(&state->cluster, more, NULL, &report, &err), 0, "%s",
                     err.message);
}

/* Its page. */
static void dump(struct state *state, struct buf *out)
{
    struct zpages_request request = {.path = SLICE("/debug/snapshot")};

    buf_init(out, SIZE_MAX);
    struct zpages_answer page = zpages_answer(state, &request, out);
    cr_assert_eq(page.status, 200);
    while (page.rest->next(page.rest, out))
        continue;
    pieces_free(page.rest);
    cr_assert_not(out->failed);
}

static void write_file(char path[], struct slice text)
{
    int fd = mkstemp(path);

    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text.ptr, text.len), (ssize_t)text.len);
    (void)close(fd);
}

/* A claimguard that has read the page of another one. */
static void start_from(struct state *state, const char *config_path, struct state *other)
{
    char path[] = "/tmp/claimguard-XXXXXX";
    struct buf text;

    dump(other, &text);
    write_file(path, buf_slice(&text));
    start(state, config_path, path, NULL);
    (void)unlink(path);
    buf_dispose(&text);
}

/* ---- the same records ---- */

static int compare_items(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The page's objects, in an order of their own: an array of texts. */
static json_t *items_of(struct state *state)
{
    struct buf text;

    dump(state, &text);
    json_t *root = json_loadb(text.bytes, text.len, JSON_REJECT_DUPLICATES, NULL);
    cr_assert_not_null(root, "%.*s", (int)text.len, text.bytes);
    const json_t *items = json_object_get(root, "items");
    size_t count = json_array_size(items);
    char **texts = calloc(count + 1, sizeof *texts);
    json_t *sorted = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *spec = json_object_get(json_array_get(items, i), "spec");
        (void)json_object_del(spec, "expiresInMilliseconds"); /* it is less by now */
        texts[i] = json_dumps(json_array_get(items, i), JSON_SORT_KEYS);
    }
    qsort((void *)texts, count, sizeof *texts, compare_items);
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(sorted, json_string(texts[i]));
        free(texts[i]);
    }
    free((void *)texts);
    json_decref(root);
    buf_dispose(&text);
    return sorted;
}

static bool are_equal(const struct name *a, const struct name *b)
{
    return slice_equal(name_slice(a), name_slice(b));
}

static void expect_same_volume(const struct pod_volume *a, const struct pod_volume *b)
{
    cr_expect(slice_equal(a->name, b->name) && slice_equal(a->claim, b->claim) &&
              slice_equal(a->driver, b->driver) && slice_equal(a->fs_type, b->fs_type));
    cr_expect(a->source == b->source && a->field == b->field &&
                  a->is_annotated == b->is_annotated && a->has_secret == b->has_secret &&
                  a->has_sub_path == b->has_sub_path && a->has_selinux == b->has_selinux,
              "%.*s", SLICE_ARG(a->name));
}

static void expect_same_mounts(const struct pod_mounts *a, const struct pod_mounts *b)
{
    cr_expect(slice_equal(a->runtime_class, b->runtime_class) &&
              slice_equal(a->fs_group_change_policy, b->fs_group_change_policy));
    cr_expect(a->has_fs_group == b->has_fs_group && a->has_selinux == b->has_selinux);
    cr_assert_eq(a->volume_count, b->volume_count);
    for (uint32_t i = 0; i < a->volume_count; i++)
        expect_same_volume(&a->volumes[i], &b->volumes[i]);
}

static void expect_same_pod(const struct pod *a, const struct pod *b)
{
    cr_expect(a->priority == b->priority && a->is_terminal == b->is_terminal &&
                  a->is_terminating == b->is_terminating &&
                  a->never_preempts == b->never_preempts && a->is_pending == b->is_pending &&
                  a->is_gated == b->is_gated && a->is_grouped == b->is_grouped &&
                  a->has_no_priority == b->has_no_priority && a->version == b->version,
              "%.*s", SLICE_ARG(pod_name(a)));
    cr_expect(slice_equal(pod_node(a), pod_node(b)) &&
              slice_equal(pod_nominated_node(a), pod_nominated_node(b)) &&
              slice_equal(pod_created(a), pod_created(b)) &&
              are_equal(name_at(a->labels), name_at(b->labels)));
    cr_assert(a->use_count == b->use_count && a->has_mounts == b->has_mounts);
    for (unsigned i = 0; i < a->use_count; i++)
        cr_expect(slice_equal(claim_name(claim_at(a->uses[i].claim)),
                              claim_name(claim_at(b->uses[i].claim))) &&
                  a->uses[i].is_ephemeral == b->uses[i].is_ephemeral &&
                  a->uses[i].is_deferred == b->uses[i].is_deferred);
    if (a->has_mounts)
        expect_same_mounts(pod_mounts(a), pod_mounts(b));
}

static void expect_same_claim(const struct claim *a, const struct claim *b)
{
    static const struct modification none;
    const struct modification *x = claim_modification(a) == NULL ? &none : claim_modification(a);
    const struct modification *y = claim_modification(b) == NULL ? &none : claim_modification(b);
    cr_expect(claim_phase(a) == claim_phase(b) && a->is_rwop == b->is_rwop &&
                  a->is_deleting == b->is_deleting && a->is_block == b->is_block &&
                  a->is_volume_provisioned == b->is_volume_provisioned &&
                  a->version == b->version && a->refs == b->refs,
              "%.*s", SLICE_ARG(claim_name(a)));
    cr_expect(are_equal(claim_storage_class(a), claim_storage_class(b)) &&
              are_equal(claim_volume_attributes_class(a), claim_volume_attributes_class(b)) &&
              are_equal(claim_volume(a), claim_volume(b)) &&
              are_equal(claim_owner_name(a), claim_owner_name(b)) &&
              are_equal(claim_owner_uid(a), claim_owner_uid(b)));
    cr_expect((claim_modification(a) == NULL) == (claim_modification(b) == NULL) &&
              are_equal(x->current, y->current) && are_equal(x->target, y->target) &&
              are_equal(x->status, y->status));
    const struct reservation *of_a = reservation_at(a->reservation);
    const struct reservation *of_b = reservation_at(b->reservation);
    cr_assert_eq(of_a == NULL, of_b == NULL);
    cr_expect(of_a == NULL ||
              (of_a->is_of_preemptor == of_b->is_of_preemptor && of_a->priority == of_b->priority &&
               reservation_binds(of_a) == reservation_binds(of_b)));
}

static void expect_same_node(const struct node *a, const struct node *b)
{
    cr_expect(a->exists == b->exists && a->has_csi_node == b->has_csi_node &&
              a->is_not_ready == b->is_not_ready && a->is_unschedulable == b->is_unschedulable &&
              a->version == b->version && are_equal(a->drivers, b->drivers));
    cr_assert_eq(a->csi_node == NULL, b->csi_node == NULL);
    cr_expect(a->csi_node == NULL || are_equal(a->csi_node->drivers, b->csi_node->drivers));
}

static void expect_same_resources(const struct cluster *a, const struct cluster *b, enum kind kind)
{
    char first[PROVISIONED_NAME_BYTES], second[PROVISIONED_NAME_BYTES];
    struct table_walk walk = {.at = 0};

    cr_expect_eq(a->counts[kind], b->counts[kind]);
    for (const struct resource *x; (x = cluster_next_resource(a, kind, &walk)) != NULL;) {
        struct table_walk others = {.at = 0};
        const struct resource *y;
        while ((y = cluster_next_resource(b, kind, &others)) != NULL &&
               !(are_equal(resource_ns(x), resource_ns(y)) &&
                 slice_equal(resource_name(x, first), resource_name(y, second))))
            continue;
        cr_assert_not_null(y, "%.*s", SLICE_ARG(resource_name(x, first)));
        cr_expect(resource_number(x) == resource_number(y) && x->version == y->version);
        for (unsigned i = 0; i < RESOURCE_ATTRIBUTES; i++)
            cr_expect(slice_equal(resource_attribute(x, i), resource_attribute(y, i)), "%.*s: %u",
                      SLICE_ARG(resource_name(x, first)), i);
    }
}

/* What is left out when it is written is missing in both pages. */
static void expect_same_records(const struct cluster *a, const struct cluster *b)
{
    struct table_walk pods = {.at = 0}, claims = {.at = 0}, nodes = {.at = 0};

    for (const struct pod *pod; (pod = cluster_next_pod(a, &pods)) != NULL;)
        expect_same_pod(pod, cluster_find_pod(b, name_text(pod->ns), pod_name(pod)));
    for (const struct claim *claim; (claim = cluster_next_claim(a, &claims)) != NULL;)
        if (claim->exists)
            expect_same_claim(claim,
                              cluster_find_claim(b, name_text(claim->ns), claim_name(claim)));
    for (const struct node *node; (node = cluster_next_node(a, &nodes)) != NULL;)
        if (node->exists)
            expect_same_node(node, cluster_find_node(b, name_slice(node->name)));
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        cr_expect_eq(a->is_unserved[kind], b->is_unserved[kind]);
        expect_same_resources(a, b, (enum kind)kind);
    }
}

static void expect_same(struct state *a, struct state *b)
{
    json_t *x = items_of(a), *y = items_of(b);

    cr_expect_eq(json_array_size(x), json_array_size(y));
    for (size_t i = 0; i < json_array_size(x) && i < json_array_size(y); i++)
        cr_expect_str_eq(json_string_value(json_array_get(x, i)),
                         json_string_value(json_array_get(y, i)));
    json_decref(x);
    json_decref(y);
}

/* ---- the same verdicts ---- */

/* What a dry run says of the pod, without what needs names of volumes that are not kept. */
static json_t *explain(const struct state *state, const struct pod *pod, bool has_mounts)
{
    static const struct slice names[] = {{"node-1", 6}, {"node-2", 6}};
    struct explained_nodes nodes = {names, 2, true};
    struct view view = state_view(state);
    struct pod_object object;
    struct arena arena;

    arena_init(&arena, 64 << 20);
    cr_assert(cluster_describe_pod(pod, &arena, &object));
    json_t *result = explained_json(&view, &object, &nodes, &arena);
    if (!has_mounts)
        (void)json_object_del(result, "deferFSMount");
    arena_dispose(&arena);
    return result;
}

/* Each pod of the one has the same verdict in the other. */
static void expect_same_verdicts(const struct state *a, const struct state *b)
{
    struct table_walk walk = {.at = 0};

    for (const struct pod *pod; (pod = cluster_next_pod(&a->cluster, &walk)) != NULL;) {
        const struct pod *other = cluster_find_pod(&b->cluster, name_text(pod->ns), pod_name(pod));
        cr_assert_not_null(other);
        json_t *x = explain(a, pod, pod->has_mounts), *y = explain(b, other, pod->has_mounts);
        char *got = json_dumps(y, 0), *want = json_dumps(x, 0);
        cr_expect(json_equal(x, y), "got %s, want %s", got, want);
        free(got);
        free(want);
        json_decref(x);
        json_decref(y);
    }
}

/* Of a pod that has too many volumes to be known, the page has the claims that are deferred, and no
 * more: a reader knows all of its mounts then. */
static bool has_unknown_mounts(const struct cluster *cluster)
{
    struct table_walk walk = {.at = 0};

    for (const struct pod *pod; (pod = cluster_next_pod(cluster, &walk)) != NULL;)
        for (unsigned i = 0; !pod->has_mounts && i < pod->use_count; i++)
            if (pod->uses[i].is_deferred)
                return true;
    return false;
}

static void check_copy(const char *config, const char *path, const char *more)
{
    struct state first, second;

    start(&first, config, path, more);
    start_from(&second, config, &first);
    if (!has_unknown_mounts(&first.cluster)) {
        expect_same(&first, &second);
        expect_same_records(&first.cluster, &second.cluster);
        cr_expect_eq(first.cluster.namespaces_given_up, second.cluster.namespaces_given_up);
    }
    expect_same_verdicts(&first, &second);
    services_dispose(&second);
    services_dispose(&first);
}

/* ---- every case ---- */

/* The dry run of the case's pod on the page of a claimguard that has read its cluster. */
static void check_dry_run(const char *cluster, const char *config, const char *pod,
                          const char *want_path)
{
    char path[] = "/tmp/claimguard-XXXXXX", *out, *err;
    json_t *want = json_load_file(want_path, 0, NULL);
    struct state state;
    struct buf text;

    start(&state, config, cluster, NULL);
    dump(&state, &text);
    write_file(path, buf_slice(&text));
    (void)process_run((const char *const[]){"dry-run", "--snapshot", path, "--pod", pod, "-o",
                                            "json", config == NULL ? NULL : "--config", config,
                                            NULL},
                      NULL, &out, &err);
    json_t *got = json_loads(out, 0, NULL);
    cr_expect(json_equal(got, want), "got %s%s", out, err);
    (void)unlink(path);
    json_decref(got);
    json_decref(want);
    free(out);
    free(err);
    buf_dispose(&text);
    services_dispose(&state);
}

static void check_case(const char *name)
{
    char cluster[512], config[512], pod[512], want[512];

    (void)snprintf(cluster, sizeof cluster, TESTS_DIR "/cases/%s/cluster.yaml", name);
    (void)snprintf(config, sizeof config, TESTS_DIR "/cases/%s/config.yaml", name);
    (void)snprintf(pod, sizeof pod, TESTS_DIR "/cases/%s/pod.json", name);
    (void)snprintf(want, sizeof want, TESTS_DIR "/cases/%s/want.json", name);
    const char *config_path = access(config, F_OK) == 0 ? config : NULL;
    check_dry_run(cluster, config_path, pod, want);
    check_copy(config_path, cluster, pod);
}

#define CASE(policy, row) \
    Test(debug_snapshot_case, policy##_##row) \
    { \
        check_case(#policy "/" #row); \
    }
ALL_CASES(CASE)

/* ---- all that is kept ---- */

Test(debug_snapshot, all_that_is_kept_is_written)
{
    check_copy(TESTS_DIR "/fixtures/everything-config.yaml", TESTS_DIR "/fixtures/everything.yaml",
               NULL);
}

/* The names of these members and values, and no others, are in the page. */
Test(debug_snapshot, nothing_else_is_written)
{
    static const char *const parts[] = {"planted", "\"env\"", "Secret\"", "last-applied"};
    struct state state;
    struct buf text;

    start(&state, NULL, TESTS_DIR "/fixtures/everything.yaml", NULL);
    dump(&state, &text);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        cr_expect_null(strstr(buf_text(&text), parts[i]), "%s", parts[i]);
    cr_expect_not_null(strstr(buf_text(&text), "\"kind\":\"Pod\""));
    buf_dispose(&text);
    services_dispose(&state);
}
