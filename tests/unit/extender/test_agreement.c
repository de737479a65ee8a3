/* What claimguards agree on: each transition, and that it never lets two of them contradict each
 * other. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "extender/bind/agreement.h"
#include "policy/exclusive.h"

#define SECOND NS_PER_SECOND

enum { AGREED_SECONDS = AGREEMENT_MS / 1000, DISPLACED_SECONDS = AGREEMENT_DISPLACED_MS / 1000 };

/* The ConfigMap at the API server, and the time. */
static json_t *data;
static unsigned version;
static uint64_t now_ns;

/* A claimguard. */
struct replica {
    struct agreement agreement;
    struct config config;
    struct defer_entry entries[2];
};

static void setup(void)
{
    data = json_object();
    version = 1;
    now_ns = 1000 * SECOND;
}

static void teardown(void)
{
    json_decref(data);
}

TestSuite(agreement, .init = setup, .fini = teardown);

static struct replica *replica(int claim_lock, const char *storage_class)
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

static char *config_map(void)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%u", version);
    json_t *map = json_pack("{s:s,s:{s:s,s:s},s:O}", "kind", "ConfigMap", "metadata", "name",
                            AGREEMENT_NAME, "resourceVersion", text, "data", data);
    char *dumped = json_dumps(map, 0);
    json_decref(map);
    return dumped;
}

static bool take(struct replica *r, const char *body, uint64_t began_ns)
{
    bool has_changed;

    return agreement_take(&r->agreement, slice_of(body), began_ns, now_ns, &has_changed);
}

/* Applies it if its precondition holds. */
static bool server_patch(struct slice text)
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

/* A tick: reads, and writes what is due. Whether it has written. */
static bool tick(struct replica *r)
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

static void ticks(struct replica *r, unsigned seconds)
{
    for (unsigned i = 0; i < seconds; i++) {
        now_ns += SECOND;
        (void)tick(r);
    }
}

static bool may_bind(struct replica *r, bool is_exclusive)
{
    struct error err = {0};

    return agreement_check(&r->agreement, r->config.read_write_once_pod.claim_lock, is_exclusive,
                           now_ns, &err) == 0;
}

static const char *value_of(const char *key)
{
    const char *value = json_string_value(json_object_get(data, key));

    return value == NULL ? "" : strncmp(value, "announced", 9) == 0 ? "announced" : value;
}

#define IS(key, value) cr_expect_str_eq(value_of(key), (value), "%s: %s", (key), value_of(key))

/* What a policy would do with a claim of the class. */
struct class_state {
    bool is_exclusive, is_locked, is_announced;
};

static struct class_state see_class(const struct replica *r, const char *name)
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

/* ---- one kind of lock ---- */

Test(agreement, the_first_local_is_in_force_at_once)
{
    struct replica *one = replica(CLAIM_LOCK_LOCAL, "fast");

    (void)tick(one);
    IS("claimLock.Local", "in force");
    cr_expect(may_bind(one, true));
    cr_expect_eq(json_object_size(data), 1, "Local locks nothing, and announces no class");
    free(one);
}

Test(agreement, the_first_annotation_is_in_force_when_it_was_announced_for_its_time)
{
    struct replica *one = replica(CLAIM_LOCK_ANNOTATION, NULL);

    (void)tick(one);
    IS("claimLock.Annotation", "announced");
    ticks(one, AGREED_SECONDS - 1);
    IS("claimLock.Annotation", "announced");
    cr_expect(!may_bind(one, true));
    cr_expect(may_bind(one, false), "a pod that shares claims needs no lock");
    ticks(one, 1);
    IS("claimLock.Annotation", "in force");
    cr_expect(may_bind(one, true));
    free(one);
}

Test(agreement, what_is_in_force_needs_no_wait_at_a_start)
{
    struct replica *one = replica(CLAIM_LOCK_ANNOTATION, "fast");
    struct replica *two = replica(CLAIM_LOCK_ANNOTATION, "fast");

    (void)tick(one);
    ticks(one, AGREED_SECONDS);
    cr_expect(!may_bind(two, true), "not before it was read");
    cr_expect(!tick(two), "there is nothing to write");
    cr_expect(may_bind(two, true));
    cr_expect(!see_class(two, "fast").is_announced);
    free(one);
    free(two);
}

Test(agreement, another_replica_puts_in_force_what_one_that_is_gone_has_announced)
{
    struct replica *one = replica(CLAIM_LOCK_ANNOTATION, "fast");
    struct replica *two = replica(CLAIM_LOCK_ANNOTATION, "fast");

    (void)tick(one);
    now_ns += 80 * SECOND;
    (void)tick(two);
    ticks(two, AGREED_SECONDS - 1);
    IS("exclusive.fast", "announced");
    ticks(two, 1);
    IS("exclusive.fast", "in force");
    IS("claimLock.Annotation", "in force");
    free(one);
    free(two);
}

Test(agreement, an_announcement_that_was_removed_and_written_again_begins_again)
{
    struct replica *one = replica(CLAIM_LOCK_ANNOTATION, "fast");

    (void)tick(one);
    ticks(one, AGREED_SECONDS - 1);
    (void)json_object_set_new(data, "exclusive.fast", json_string("announced at 7"));
    version++;
    ticks(one, AGREED_SECONDS);
    IS("exclusive.fast", "announced");
    ticks(one, 1);
    IS("exclusive.fast", "in force");
    free(one);
}

/* ---- classes ---- */

Test(agreement, a_class_of_another_replica_is_locked_from_the_first_read_on)
{
    struct replica *with = replica(CLAIM_LOCK_ANNOTATION, "fast");
    struct replica *without = replica(CLAIM_LOCK_ANNOTATION, NULL);

    (void)tick(without);
    cr_expect(!see_class(without, "fast").is_locked);
    (void)tick(with);
    cr_expect(see_class(with, "fast").is_locked && see_class(with, "fast").is_announced);
    (void)tick(without);
    cr_expect(see_class(without, "fast").is_locked);
    cr_expect(!see_class(without, "slow").is_locked);
    ticks(without, AGREED_SECONDS);
    IS("exclusive.fast", "announced"); /* it is not this one's */
    ticks(with, AGREED_SECONDS);
    IS("exclusive.fast", "in force");
    cr_expect(see_class(with, "fast").is_locked && !see_class(with, "fast").is_announced);
    free(with);
    free(without);
}

Test(agreement, an_entry_that_says_allow_changes_nothing_for_a_class_of_another_replica)
{
    struct replica *with = replica(CLAIM_LOCK_ANNOTATION, "fast");
    struct replica *allow = replica(CLAIM_LOCK_ANNOTATION, "fast");

    allow->entries[0].non_exclusive_claims = allow->entries[1].non_exclusive_claims =
        NON_EXCLUSIVE_ALLOW;
    (void)tick(allow);
    cr_expect_eq(json_object_size(data), 1, "it announces none");
    (void)tick(with);
    (void)tick(allow);
    cr_expect(see_class(allow, "fast").is_locked && see_class(allow, "fast").is_announced);
    free(with);
    free(allow);
}

Test(agreement, a_class_stays_when_its_entry_is_gone)
{
    struct replica *one = replica(CLAIM_LOCK_ANNOTATION, "fast");

    (void)tick(one);
    ticks(one, AGREED_SECONDS);
    one->config.defer_fs_mount.entry_count = 0;
    ticks(one, 2 * DISPLACED_SECONDS);
    IS("exclusive.fast", "in force");
    cr_expect(see_class(one, "fast").is_locked);
    (void)json_object_del(data, "exclusive.fast"); /* the operator */
    version++;
    cr_expect(!tick(one));
    cr_expect(!see_class(one, "fast").is_locked);
    free(one);
}

Test(agreement, with_apply_disabled_no_class_is_announced)
{
    struct replica *one = replica(CLAIM_LOCK_ANNOTATION, "fast");

    one->config.defer_fs_mount.apply = DEFER_DISABLED;
    (void)tick(one);
    cr_expect_eq(json_object_size(data), 1);
    free(one);
}

/* ---- two kinds of lock ---- */

Test(agreement, an_announcement_of_the_other_kind_stops_the_one_in_force)
{
    struct replica *local = replica(CLAIM_LOCK_LOCAL, NULL);
    struct replica *annotation = replica(CLAIM_LOCK_ANNOTATION, NULL);

    (void)tick(local);
    (void)tick(annotation);
    cr_expect(may_bind(local, true), "it has not read it yet");
    cr_expect(!may_bind(annotation, true));
    (void)tick(local);
    cr_expect(!may_bind(local, true));
    cr_expect(may_bind(local, false), "none of its claims belongs to one pod");
    ticks(annotation, AGREED_SECONDS);
    cr_expect(may_bind(annotation, true));
    IS("claimLock.Local", "");
    (void)tick(local);
    cr_expect(!may_bind(local, true));
    IS("claimLock.Local", ""); /* one that was there before does not come back at once */
    free(local);
    free(annotation);
}

Test(agreement, a_claimguard_that_starts_with_the_other_kind_announces_it)
{
    struct replica *annotation = replica(CLAIM_LOCK_ANNOTATION, NULL);
    struct replica *local = replica(CLAIM_LOCK_LOCAL, NULL);

    (void)tick(annotation);
    ticks(annotation, AGREED_SECONDS);
    (void)tick(local);
    IS("claimLock.Local", "announced");
    cr_expect(!may_bind(local, true));
    ticks(local, AGREED_SECONDS);
    IS("claimLock.Annotation", "");
    cr_expect(may_bind(local, true));
    free(local);
    free(annotation);
}

Test(agreement, a_new_configuration_announces_as_a_start_does)
{
    struct replica *one = replica(CLAIM_LOCK_LOCAL, NULL);

    (void)tick(one);
    one->config.read_write_once_pod.claim_lock = CLAIM_LOCK_ANNOTATION;
    (void)tick(one);
    IS("claimLock.Annotation", "announced");
    IS("claimLock.Local", "in force");
    cr_expect(!may_bind(one, true));
    ticks(one, AGREED_SECONDS);
    cr_expect(may_bind(one, true));
    free(one);
}

Test(agreement, while_both_kinds_run_each_is_in_force_in_turn)
{
    struct replica *local = replica(CLAIM_LOCK_LOCAL, NULL);
    struct replica *annotation = replica(CLAIM_LOCK_ANNOTATION, NULL);
    unsigned turns[2] = {0, 0};

    for (unsigned i = 0; i < 20 * DISPLACED_SECONDS; i++) {
        now_ns += SECOND;
        (void)tick(local);
        (void)tick(annotation);
        cr_assert(!(may_bind(local, true) && may_bind(annotation, true)));
        turns[0] += may_bind(local, true);
        turns[1] += may_bind(annotation, true);
    }
    cr_expect_gt(turns[0], 3 * DISPLACED_SECONDS);
    cr_expect_gt(turns[1], 3 * DISPLACED_SECONDS);
    free(local);
    free(annotation);
}

Test(agreement, an_announcement_that_nobody_puts_in_force_is_removed)
{
    struct replica *local = replica(CLAIM_LOCK_LOCAL, NULL);
    struct replica *annotation = replica(CLAIM_LOCK_ANNOTATION, NULL);

    (void)tick(local);
    (void)tick(annotation);
    (void)tick(local);
    ticks(local, DISPLACED_SECONDS - 1);
    IS("claimLock.Annotation", "announced");
    ticks(local, 1);
    IS("claimLock.Annotation", "");
    cr_expect(may_bind(local, true));
    free(local);
    free(annotation);
}

Test(agreement, an_announcement_that_was_left_alone_gives_way_to_the_other_kind)
{
    struct replica *annotation = replica(CLAIM_LOCK_ANNOTATION, NULL);
    struct replica *local = replica(CLAIM_LOCK_LOCAL, NULL);

    (void)tick(annotation);
    (void)tick(local);
    IS("claimLock.Local", "");
    ticks(local, DISPLACED_SECONDS);
    IS("claimLock.Annotation", "");
    IS("claimLock.Local", "announced");
    ticks(local, AGREED_SECONDS);
    cr_expect(may_bind(local, true));
    free(local);
    free(annotation);
}

Test(agreement, of_two_kinds_in_force_which_somebody_has_written_none_binds)
{
    struct replica *one = replica(CLAIM_LOCK_LOCAL, NULL);

    (void)json_object_set_new(data, "claimLock.Local", json_string("in force"));
    (void)json_object_set_new(data, "claimLock.Annotation", json_string("in force"));
    (void)tick(one);
    IS("claimLock.Local", "announced");
    cr_expect(!may_bind(one, true));
    ticks(one, AGREED_SECONDS);
    IS("claimLock.Annotation", "");
    cr_expect(may_bind(one, true));
    free(one);
}

Test(agreement, one_that_goes_back_withdraws_its_announcement_at_once)
{
    struct replica *one = replica(CLAIM_LOCK_LOCAL, NULL);

    (void)tick(one);
    one->config.read_write_once_pod.claim_lock = CLAIM_LOCK_ANNOTATION;
    (void)tick(one);
    ticks(one, 3);
    one->config.read_write_once_pod.claim_lock = CLAIM_LOCK_LOCAL;
    (void)tick(one);
    IS("claimLock.Annotation", "");
    cr_expect(may_bind(one, true));
    free(one);
}

/* ---- what cannot be read ---- */

Test(agreement, a_read_counts_for_its_time_from_when_it_began)
{
    struct replica *one = replica(CLAIM_LOCK_LOCAL, NULL);

    (void)tick(one);
    now_ns += AGREEMENT_FRESH_MS * NS_PER_MS - 1;
    cr_expect(may_bind(one, true));
    now_ns += 1;
    cr_expect(!may_bind(one, true));
    cr_expect(!may_bind(one, false), "it does not know what it may share");
    (void)tick(one);
    cr_expect(may_bind(one, true));
    free(one);
}

Test(agreement, without_the_config_map_local_goes_on_and_annotation_does_not)
{
    struct replica *local = replica(CLAIM_LOCK_LOCAL, NULL);
    struct replica *annotation = replica(CLAIM_LOCK_ANNOTATION, NULL);
    struct buf patch;

    cr_expect(!may_bind(local, true), "nobody has answered");
    agreement_miss(&local->agreement);
    agreement_miss(&annotation->agreement);
    now_ns += 1000 * SECOND;
    cr_expect(may_bind(local, true) && may_bind(local, false));
    cr_expect(!may_bind(annotation, true) && !may_bind(annotation, false));
    buf_init(&patch, 1 << 20);
    cr_expect(!agreement_propose(&annotation->agreement, &annotation->config, now_ns, 0, &patch));
    buf_dispose(&patch);
    free(local);
    free(annotation);
}

Test(agreement, an_answer_that_is_not_the_config_map_changes_nothing)
{
    static const char *const bodies[] = {
        "",
        "{}",
        "ok",
        "{\"kind\":\"Status\",\"metadata\":{\"name\":\"" AGREEMENT_NAME
        "\",\"resourceVersion\":\"7\"}}",
        "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"other\",\"resourceVersion\":\"7\"}}",
        "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"" AGREEMENT_NAME "\"}}",
        "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"" AGREEMENT_NAME
        "\",\"resourceVersion\":\"7\"},\"data\":{\"claimLock.Local\":7}}",
        "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"" AGREEMENT_NAME
        "\",\"resourceVersion\":\"7\"},\"data\":[]}",
    };
    struct replica *one = replica(CLAIM_LOCK_LOCAL, NULL);

    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        cr_expect(!take(one, bodies[i], now_ns), "%s", bodies[i]);
    cr_expect(!may_bind(one, false));
    free(one);
}

/* Of an object of which a part would be forgotten, nothing is believed. */
Test(agreement, too_many_entries_cannot_be_followed_and_other_keys_do_not_count)
{
    struct replica *one = replica(CLAIM_LOCK_ANNOTATION, NULL);
    char key[64];

    for (unsigned i = 0; i < 2 * AGREEMENT_ENTRIES_MAX; i++) {
        (void)snprintf(key, sizeof key, "a-note.%u", i);
        (void)json_object_set_new(data, key, json_string("x"));
    }
    for (unsigned i = 0; i < AGREEMENT_ENTRIES_MAX; i++) {
        (void)snprintf(key, sizeof key, "exclusive.class-%u", i);
        (void)json_object_set_new(data, key, json_string("in force"));
    }
    char *body = config_map();
    cr_expect(take(one, body, now_ns));
    free(body);
    cr_expect_eq(one->agreement.classes.count, AGREEMENT_ENTRIES_MAX);
    (void)json_object_set_new(data, "exclusive.one-more", json_string("in force"));
    body = config_map();
    cr_expect(!take(one, body, now_ns));
    free(body);
    free(one);
}

/* ---- all of it at once ---- */

enum { REPLICAS = 4, RANDOM_SECONDS = 200000, LAST_KINDS = 2 };

/* Until when something that was decided may be applied; 0: nothing was. */
struct last {
    uint64_t by_lock[LAST_KINDS]; /* exclusive claims, by the kind of their lock */
    uint64_t unlocked;            /* a pod that shares a claim of the class without a lock */
    uint64_t deferred;            /* a pod that is deferred because of the entry */
};

static uint64_t end_ns(void)
{
    return now_ns + (BIND_MS + BINDING_DEAD_MS) * NS_PER_MS;
}

/* What the replica does for pods of a claim of the class: one that shares it, one that is deferred.
 */
static void bind_some(struct replica *r, struct last *last)
{
    int kind = r->config.read_write_once_pod.claim_lock;
    struct class_state class = see_class(r, "fast");
    bool has_entry = r->config.defer_fs_mount.entry_count != 0;

    if (may_bind(r, true)) {
        cr_assert_leq(last->by_lock[1 - kind], now_ns, "the other kind may still bind");
        last->by_lock[kind] = end_ns();
    }
    if (!class.is_exclusive && may_bind(r, false)) {
        cr_assert_leq(last->deferred, now_ns, "one that is deferred may still be bound");
        last->unlocked = end_ns();
    }
    if (kind == CLAIM_LOCK_ANNOTATION && has_entry && !class.is_announced && may_bind(r, true)) {
        cr_assert_leq(last->unlocked, now_ns, "one without a lock may still be bound");
        last->deferred = end_ns();
    }
}

/* A tick whose write comes late. */
static char *tick_late(struct replica *r)
{
    char *body = config_map(), *text = NULL;
    struct buf patch;

    cr_assert(take(r, body, now_ns));
    free(body);
    buf_init(&patch, 1 << 20);
    if (agreement_propose(&r->agreement, &r->config, now_ns, (int64_t)(now_ns / NS_PER_MS), &patch))
        text = strdup(buf_text(&patch));
    buf_dispose(&patch);
    return text;
}

/* The same each time. */
static unsigned chance(void)
{
    static uint64_t state = 1;

    state = state * 6364136223846793005U + 1442695040888963407U;
    return (unsigned)(state >> 33);
}

static void live(struct replica **r, char **late, bool is_busy)
{
    if (*r == NULL || chance() % (is_busy ? 100 : 2000) == 0) {
        free(*r);
        *r = replica(chance() % 4 == 0 ? CLAIM_LOCK_LOCAL : CLAIM_LOCK_ANNOTATION,
                     chance() % 2 == 0 ? "fast" : NULL);
    }
    if (*late != NULL && chance() % 10 == 0) {
        (void)server_patch(slice_of(*late));
        free(*late);
        *late = NULL;
    }
    if (*late == NULL && chance() % 10 == 0)
        *late = tick_late(*r);
    else if (chance() % 2 == 0)
        (void)tick(*r);
}

/* Replicas start with any configuration, read late or not at all, and bind as soon as they may. */
Test(agreement, in_random_worlds_no_two_kinds_and_no_unlocked_pod_meet)
{
    struct replica *all[REPLICAS] = {NULL};
    char *late[REPLICAS] = {NULL};
    struct last last = {.unlocked = 0};

    for (unsigned i = 0; i < RANDOM_SECONDS; i++) {
        size_t at = chance() % REPLICAS;
        now_ns += SECOND;
        if (i % 20000 == 0) /* else the class is known for ever */
            (void)json_object_clear(data), version++, now_ns += 1000 * SECOND;
        live(&all[at], &late[at], i / 20000 % 2 == 1);
        if (all[at]->agreement.began_ns != 0)
            bind_some(all[at], &last);
    }
    for (size_t i = 0; i < REPLICAS; i++) {
        free(all[i]);
        free(late[i]);
    }
    cr_expect(last.unlocked != 0 && last.deferred != 0);
    cr_expect(last.by_lock[0] != 0 && last.by_lock[1] != 0);
}
