#include "unit/extender/agreement_bench.h"

#include <stdio.h>
#include <stdlib.h>

#include "policy/exclusive.h"

json_t *data;
unsigned version;
uint64_t now_ns;

void agreement_setup(void)
{
    data = json_object();
    version = 1;
    now_ns = 1000 * SECOND;
}

void agreement_teardown(void)
{
    json_decref(data);
}

struct replica *replica(int claim_lock, const char *storage_class)
{
    struct replica *new = calloc(1, sizeof *new);

    cr_assert(new != NULL);
    new->entries[0] = new->entries[1] =
        (struct defer_entry){.storage_class = slice_of(storage_class),
                             .runtime_class = SLICE("microvm"),
                             .non_exclusive_claims = NON_EXCLUSIVE_EXCLUSIVE};
    new->config.read_write_once_pod.claim_lock = claim_lock;
    new->config.defer_fs_mount.entries = new->entries;
    new->config.defer_fs_mount.entry_count = storage_class == NULL ? 0 : 2;
    return new;
}

char *config_map(void)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%u", version);
    json_t *map = json_pack("{s:s,s:{s:s,s:s},s:O}", "kind", "ConfigMap", "metadata", "name",
                            AGREEMENT_NAME, "resourceVersion", text, "data", data);
    char *dumped = json_dumps(map, 0);
    json_decref(map);
    return dumped;
}

bool take(struct replica *r, const char *body, uint64_t began_ns)
{
    bool has_changed;

    return agreement_take(&r->agreement, slice_of(body), began_ns, now_ns, &has_changed);
}

/* Applies it if its precondition holds. */
bool server_patch(struct slice text)
{
    json_t *patch = json_loadb(text.ptr, text.len, 0, NULL), *value;
    const char *key;
    char expected[24];

    cr_assert(patch != NULL, "%.*s", SLICE_ARG(text));
    (void)snprintf(expected, sizeof expected, "%u", version);
    const char *read_version =
        json_string_value(json_object_get(json_object_get(patch, "metadata"), "resourceVersion"));
    cr_assert(read_version != NULL, "each write has a precondition");
    bool is_good = strcmp(read_version, expected) == 0;
    if (is_good)
        version++;
    json_object_foreach (json_object_get(patch, "data"), key, value) {
        if (is_good && json_is_null(value))
            json_object_del(data, key);
        else if (is_good)
            json_object_set(data, key, value);
    }
    json_decref(patch);
    return is_good;
}

bool tick(struct replica *r)
{
    char *body = config_map();
    struct buf patch;

    cr_assert(take(r, body, now_ns), "%s", body);
    free(body);
    buf_init(&patch, 1 << 20);
    bool writes =
        agreement_propose(&r->agreement, &r->config, now_ns, (int64_t)(now_ns / NS_PER_MS), &patch);
    if (writes && server_patch(buf_slice(&patch))) {
        body = config_map();
        cr_assert(take(r, body, now_ns));
        free(body);
    }
    buf_dispose(&patch);
    return writes;
}

void ticks(struct replica *r, unsigned seconds)
{
    for (unsigned i = 0; i < seconds; i++) {
        now_ns += SECOND;
        (void)tick(r);
    }
}

bool may_bind(struct replica *r)
{
    struct error err = {0};

    return agreement_check(&r->agreement, r->config.read_write_once_pod.claim_lock, now_ns, &err) ==
           0;
}

const char *value_of(const char *key)
{
    const char *value = json_string_value(json_object_get(data, key));

    return value == NULL ? "" : strncmp(value, "announced", 9) == 0 ? "announced" : value;
}

struct class_state see_class(const struct replica *r, const char *name)
{
    struct cluster cluster;
    struct class_state state;
    struct arena arena;
    struct object object;
    struct pull json;
    struct error err = {0};
    char text[512];

    cluster_init(&cluster);
    arena_init(&arena, 1 << 20);
    (void)snprintf(text, sizeof text,
                   "{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"a\","
                   "\"name\":\"c\",\"uid\":\"u\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],"
                   "\"storageClassName\":\"%s\"}}",
                   name);
    pull_init(&json, slice_of(text));
    cr_assert(object_read(&json, KIND_CLAIM, &arena, &object));
    cr_assert_eq(cluster_apply(&cluster, &object, &err), 0);
    struct view view = {.cluster = &cluster, .config = &r->config, .agreed = &r->agreement.classes};
    const struct claim *claim = cluster_find_claim(&cluster, SLICE("a"), SLICE("c"));
    state.is_exclusive = exclusive_by_class(&view, claim);
    state.is_locked = exclusive_by_lock(&view, claim);
    state.is_announced = exclusive_is_announced(&view, claim);
    arena_dispose(&arena);
    cluster_dispose(&cluster);
    return state;
}
