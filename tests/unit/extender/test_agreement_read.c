/* What claimguards agree on, when it cannot be read; and that it never lets two of them contradict
 * each other. */
#include <stdio.h>
#include <stdlib.h>

#include "unit/extender/agreement_bench.h"

TestSuite(agreement_read, .init = agreement_setup, .fini = agreement_teardown);

Test(agreement_read, a_read_counts_for_its_time_from_when_it_began)
{
    struct replica *one = replica(CLAIM_LOCK_LOCAL, NULL);

    (void)tick(one);
    now_ns += AGREEMENT_FRESH_MS * NS_PER_MS - 1;
    cr_expect(may_bind(one));
    now_ns += 1;
    cr_expect(!may_bind(one));
    cr_expect(!may_bind(one), "it does not know what it may share");
    (void)tick(one);
    cr_expect(may_bind(one));
    free(one);
}

Test(agreement_read, without_the_config_map_local_goes_on_and_annotation_does_not)
{
    struct replica *local = replica(CLAIM_LOCK_LOCAL, NULL);
    struct replica *annotation = replica(CLAIM_LOCK_ANNOTATION, NULL);
    struct buf patch;

    cr_expect(!may_bind(local), "nobody has answered");
    agreement_miss(&local->agreement);
    agreement_miss(&annotation->agreement);
    now_ns += 1000 * SECOND;
    cr_expect(may_bind(local) && may_bind(local));
    cr_expect(!may_bind(annotation) && !may_bind(annotation));
    buf_init(&patch, 1 << 20);
    cr_expect(!agreement_propose(&annotation->agreement, &annotation->config, now_ns, 0, &patch));
    buf_dispose(&patch);
    free(local);
    free(annotation);
}

/* A proxy's answer, or rights that are applied again, say nothing about other claimguards. */
Test(agreement_read, what_was_read_once_counts_although_it_may_not_be_read_any_more)
{
    for (int kind = CLAIM_LOCK_LOCAL; kind <= CLAIM_LOCK_ANNOTATION; kind++) {
        struct replica *one = replica(kind, NULL);
        (void)json_object_clear(data);
        (void)json_object_set_new(
            data, kind == CLAIM_LOCK_LOCAL ? "claimLock.Local" : "claimLock.Annotation",
            json_string("in force"));
        (void)tick(one);
        agreement_miss(&one->agreement);
        cr_expect(may_bind(one), "it is as it was read");
        now_ns += AGREEMENT_FRESH_MS * NS_PER_MS;
        cr_expect(!may_bind(one) && !may_bind(one), "it is too old");
        (void)tick(one);
        cr_expect(may_bind(one));
        free(one);
    }
}

Test(agreement_read, an_announcement_is_not_forgotten_with_the_right_to_read_it)
{
    struct replica *local = replica(CLAIM_LOCK_LOCAL, NULL);
    struct replica *annotation = replica(CLAIM_LOCK_ANNOTATION, NULL);

    (void)tick(local);
    (void)tick(annotation);
    (void)tick(local);
    agreement_miss(&local->agreement);
    cr_expect(!may_bind(local));
    free(local);
    free(annotation);
}

/* A review that fails may let its pod through; one that is refused does not. */
Test(agreement_read, what_says_wait_refuses_and_what_is_not_known_does_not)
{
    struct replica *one = replica(CLAIM_LOCK_ANNOTATION, NULL);
    struct error err = {0};

    cr_expect_eq(agreement_check(&one->agreement, CLAIM_LOCK_ANNOTATION, now_ns, &err),
                 ERROR_UNAVAILABLE);
    cr_expect_not_null(strstr(err.message, "was never read"), "%s", err.message);
    (void)tick(one);
    cr_expect_eq(agreement_check(&one->agreement, CLAIM_LOCK_ANNOTATION, now_ns, &err),
                 ERROR_INVALID, "it is announced");
    cr_expect_eq(agreement_check(&one->agreement, CLAIM_LOCK_LOCAL, now_ns, &err), ERROR_INVALID,
                 "another one is announced");
    now_ns += AGREEMENT_FRESH_MS * NS_PER_MS;
    cr_expect_eq(agreement_check(&one->agreement, CLAIM_LOCK_ANNOTATION, now_ns, &err),
                 ERROR_UNAVAILABLE);
    cr_expect_not_null(strstr(err.message, "was last read over 15 s ago"), "%s", err.message);
    free(one);
}

Test(agreement_read, an_answer_that_is_not_the_config_map_changes_nothing)
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
    cr_expect(!may_bind(one));
    free(one);
}

/* Of an object of which a part would be forgotten, nothing is believed. */
Test(agreement_read, too_many_entries_cannot_be_followed_and_other_keys_do_not_count)
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

Test(agreement_read, what_is_added_leaves_an_object_that_can_be_followed)
{
    struct replica *one = replica(CLAIM_LOCK_ANNOTATION, "fast");
    char key[64];

    for (unsigned i = 0; i < AGREEMENT_ENTRIES_MAX; i++) {
        (void)snprintf(key, sizeof key, "exclusive.class-%u", i);
        (void)json_object_set_new(data, key, json_string("in force"));
    }
    cr_expect(!tick(one), "it is full");
    (void)json_object_del(data, "exclusive.class-0");
    version++;
    cr_expect(tick(one));
    IS("claimLock.Annotation", "announced");
    cr_expect(!tick(one), "it is full");
    (void)json_object_del(data, "exclusive.class-1");
    version++;
    cr_expect(!tick(one), "the last one is for the other kind of lock");
    (void)json_object_del(data, "exclusive.class-2");
    version++;
    cr_expect(tick(one));
    IS("exclusive.fast", "announced");
    cr_expect_eq(json_object_size(data), AGREEMENT_ENTRIES_MAX - 1);
    free(one);
}

/* ---- all of it at once ---- */

enum { REPLICAS = 4, RANDOM_SECONDS = 200000, LAST_KINDS = 2 };

/* Until when something that was decided may be applied; 0: nothing was. */
struct last {
    uint64_t by_lock[LAST_KINDS];  /* exclusive claims, by the claimLock of who did it */
    uint64_t unlocked[LAST_KINDS]; /* a pod that shares a claim of the class without a lock */
    uint64_t deferred[LAST_KINDS]; /* a pod that is deferred because of the entry */
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
    bool is_alone = kind == CLAIM_LOCK_LOCAL; /* it knows what it does itself */

    if (may_bind(r)) {
        cr_assert_leq(last->by_lock[1 - kind], now_ns, "the other kind may still bind");
        last->by_lock[kind] = end_ns();
    }
    if (!class.is_exclusive && may_bind(r)) {
        cr_assert_leq(last->deferred[1 - kind], now_ns, "one that is deferred may be bound there");
        cr_assert(is_alone || last->deferred[kind] <= now_ns, "and in a claimguard of this kind");
        last->unlocked[kind] = end_ns();
    }
    if (has_entry && !class.is_announced && may_bind(r)) {
        cr_assert_leq(last->unlocked[1 - kind], now_ns, "one without a lock may be bound there");
        cr_assert(is_alone || last->unlocked[kind] <= now_ns, "and in a claimguard of this kind");
        last->deferred[kind] = end_ns();
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
        /* Not as an argument: C leaves open in which order they are made. */
        const char *class = chance() % 2 == 0 ? "fast" : NULL;
        free(*r);
        *r = replica(chance() % 4 == 0 ? CLAIM_LOCK_LOCAL : CLAIM_LOCK_ANNOTATION, class);
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
Test(agreement_read, in_random_worlds_no_two_kinds_and_no_unlocked_pod_meet)
{
    struct replica *all[REPLICAS] = {NULL};
    char *late[REPLICAS] = {NULL};
    struct last last = {.unlocked = {0}};

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
    for (size_t kind = 0; kind < LAST_KINDS; kind++)
        cr_expect(last.by_lock[kind] != 0 && last.unlocked[kind] != 0 && last.deferred[kind] != 0);
}
