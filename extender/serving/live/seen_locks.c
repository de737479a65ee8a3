#include "extender/serving/live/seen_locks.h"

#include <stdio.h>
#include <stdlib.h>

/* WRITTEN: what a claimguard writes beside the holder. */
enum { KEY_BYTES_MAX = 1024, WRITTEN_BYTES_MAX = 64 };

struct seen_lock {
    uint64_t since_ns;
    uint64_t there_ns;         /* when the pod of the lock was known to be there; 0: never */
    uint64_t last_ns;          /* of passed: when the last Binding was let pass; 0: none was */
    uint64_t locked_at;        /* of passed: version of the latest lock that was seen; 0: none */
    struct former_lock former; /* of former: it lies behind the key */
    UT_hash_handle hh;
    char key[];
};

static void forget(struct seen_lock **table, struct seen_lock *lock)
{
    HASH_DEL(*table, lock);
    free(lock);
}

/* NULL: it is not there. */
static struct seen_lock *find(struct seen_lock *table, struct slice key)
{
    struct seen_lock *lock = NULL;

    if (table != NULL)
        HASH_FIND(hh, table, key.ptr, key.len, lock);
    return lock;
}

static void forget_key(struct seen_lock **table, struct slice key)
{
    struct seen_lock *lock = find(*table, key);

    if (lock != NULL)
        forget(table, lock);
}

/* As the last one. Returns it; or NULL: no memory, and it is freed. */
static struct seen_lock *append(struct seen_lock **table, struct seen_lock *lock, size_t key_len)
{
    HASH_ADD_KEYPTR(hh, *table, lock->key, key_len, lock);
    if (lock->hh.tbl != NULL)
        return lock;
    free(lock);
    return NULL;
}

/* With room for more_len bytes behind its key. NULL: no memory. */
static struct seen_lock *add(struct seen_lock **table, struct slice key, size_t more_len)
{
    struct seen_lock *lock = calloc(1, sizeof *lock + key.len + more_len);

    if (lock == NULL)
        return NULL;
    lock->since_ns = monotonic_ns();
    memcpy(lock->key, key.ptr, key.len);
    return append(table, lock, key.len);
}

static unsigned share_of_key(const char *key, size_t len)
{
    struct slice rest = {key, len};

    return share_of(slice_cut(&rest, '/'));
}

/* Forgets a lock, if there are too many for the new one: the oldest of its namespace, if that has
 * its share; else, of the one that has most. They are in the order of their age; those in passed,
 * in that of the last Binding. */
static void make_room(struct seen_lock **table, struct slice key)
{
    unsigned counts[SHARES] = {0}, own = share_of_key(key.ptr, key.len), most = own;
    size_t used = HASH_COUNT(*table);

    if (used < NAMESPACE_LOCKS_MAX)
        return;
    for (struct seen_lock *lock = *table; lock != NULL; lock = lock->hh.next) {
        unsigned share = share_of_key(lock->key, lock->hh.keylen);
        counts[share]++;
        most = counts[share] > counts[most] ? share : most;
    }
    if (used < LOCKS_SEEN_MAX && counts[own] < NAMESPACE_LOCKS_MAX)
        return;
    struct seen_lock *oldest = *table;
    while (share_of_key(oldest->key, oldest->hh.keylen) !=
           (counts[own] >= NAMESPACE_LOCKS_MAX ? own : most))
        oldest = oldest->hh.next;
    forget(table, oldest);
}

/* NULL: no memory. */
static struct seen_lock *get_or_add(struct seen_lock **table, struct slice key)
{
    struct seen_lock *lock = find(*table, key);

    if (lock != NULL)
        return lock;
    make_room(table, key);
    return add(table, key, 0);
}

void seen_locks_dispose(struct seen_locks *seen)
{
    while (seen->first != NULL)
        forget(&seen->first, seen->first);
    while (seen->passed != NULL)
        forget(&seen->passed, seen->passed);
    while (seen->former != NULL)
        forget(&seen->former, seen->former);
}

/* ---- keys ---- */

/* What snprintf has written into a buffer; {NULL, 0}: it is longer than what a claimguard locks. */
static struct slice written(const char *buffer, int len)
{
    return len < 0 || len >= KEY_BYTES_MAX ? (struct slice){NULL, 0}
                                           : (struct slice){buffer, (size_t)len};
}

/* NAMESPACE/UID/NAME, in a buffer; {NULL, 0}: no claimguard has locked anything for such a pod. */
static struct slice pod_key(const struct object_reference *pod, char buffer[KEY_BYTES_MAX])
{
    return written(buffer, snprintf(buffer, KEY_BYTES_MAX, "%.*s/%.*s/%.*s", SLICE_ARG(pod->ns),
                                    SLICE_ARG(pod->uid), SLICE_ARG(pod->name)));
}

/* NULL: no memory, or no such pod. */
static struct seen_lock *get_or_add_pod(struct seen_lock **table,
                                        const struct object_reference *pod)
{
    char buffer[KEY_BYTES_MAX];
    struct slice key = pod_key(pod, buffer);

    return key.ptr == NULL ? NULL : get_or_add(table, key);
}

/* ---- locks of other pods ---- */

static void note_there(struct seen_lock *lock)
{
    if (lock->there_ns == 0)
        lock->there_ns = monotonic_ns();
}

bool seen_locks_is_old(struct state *state, struct slice key, uint64_t patience_ms,
                       const struct pod_answer *answer)
{
    bool is_old = false;

    SCOPED_WRITE_LOCK(&state->lock);
    struct seen_lock *lock = get_or_add(&state->seen_locks->first, key);
    if (lock != NULL) {
        bool was_there = lock->there_ns != 0 && lock->there_ns <= answer->asked_ns;
        is_old = answer->asked_ns >= lock->since_ns + patience_ms * NS_PER_MS ||
                 (was_there && !answer->is_there);
        if (answer->is_there)
            note_there(lock);
    }
    return is_old;
}

/* ---- Bindings of a pod that may be applied ---- */

/* Whether the last of them was let pass so long ago that the next one is a new beginning. */
static bool is_over(const struct seen_lock *passed, uint64_t now_ns)
{
    return now_ns - passed->last_ns >= GIVES_WAY_UNTIL_MS * (uint64_t)NS_PER_MS;
}

/* It becomes the last one. */
static void pass(struct seen_lock **table, struct seen_lock *passed)
{
    size_t key_len = passed->hh.keylen;
    uint64_t now_ns = monotonic_ns();

    if (passed->last_ns == 0 || is_over(passed, now_ns))
        passed->since_ns = now_ns;
    passed->last_ns = now_ns;
    HASH_DEL(*table, passed);
    (void)append(table, passed, key_len);
}

void seen_locks_pass(struct state *state, const struct object_reference *pod)
{
    struct seen_lock *passed = get_or_add_pod(&state->seen_locks->passed, pod);

    if (passed != NULL)
        pass(&state->seen_locks->passed, passed);
}

uint64_t seen_locks_gives_way_ms(const struct state *state, const struct object_reference *pod)
{
    char buffer[KEY_BYTES_MAX];
    struct slice key = pod_key(pod, buffer);
    const struct seen_lock *passed = key.ptr == NULL ? NULL : find(state->seen_locks->passed, key);
    uint64_t now_ns = monotonic_ns();

    if (passed == NULL || passed->last_ns == 0 || is_over(passed, now_ns) ||
        now_ns - passed->since_ns < GIVES_WAY_AFTER_MS * (uint64_t)NS_PER_MS)
        return 0;
    return GIVES_WAY_UNTIL_MS - (now_ns - passed->last_ns) / NS_PER_MS;
}

/* ---- what the watch brings ---- */

/* Of a pod that is being created. It may be known already: the watch of claims may be the later
 * one. */
static void see_creation(struct state *state, const struct object_reference *holder,
                         const struct pod *pod)
{
    struct seen_lock *lock = get_or_add_pod(&state->seen_locks->first, holder);

    if (lock != NULL && pod != NULL)
        note_there(lock);
}

/* Perhaps another claimguard has let the holder pass. A lock is reported again with each change of
 * its claim, and in lists; and how old the first one is, nobody knows. */
static void see_again(struct state *state, const struct object_reference *holder,
                      uint64_t locked_at)
{
    struct seen_lock *passed = get_or_add_pod(&state->seen_locks->passed, holder);

    if (passed == NULL || locked_at <= passed->locked_at)
        return;
    bool is_first = passed->locked_at == 0;
    passed->locked_at = locked_at;
    if (!is_first)
        pass(&state->seen_locks->passed, passed);
}

void seen_locks_see_claim(struct state *state, const struct claim_object *claim)
{
    struct object_reference holder = {.kind = KIND_POD, .ns = claim->meta.ns};
    bool is_creation = slice_equal(claim->admitted, SLICE(CLAIM_ADMITTED_CREATION));
    bool is_again = slice_equal(claim->admitted, SLICE(CLAIM_ADMITTED_AGAIN));

    if (!(is_creation || is_again) || !claim_holder_read(claim->holder, &holder.uid, &holder.name))
        return;
    SCOPED_WRITE_LOCK(&state->lock);
    const struct pod *pod = cluster_find_same_pod(&state->cluster, &holder);
    if (is_creation)
        see_creation(state, &holder, pod);
    else if (pod != NULL && !pod_is_assigned(pod))
        see_again(state, &holder, version_of(claim->locked_at));
}

/* Whether there is anything to note about a pod. The key is made only then. */
static bool is_news(const struct seen_locks *seen, const struct meta *meta, bool is_gone,
                    char buffer[KEY_BYTES_MAX], struct slice *key)
{
    struct object_reference pod = object_reference_of_pod(meta);

    if (seen->first == NULL && seen->passed == NULL)
        return false;
    *key = pod_key(&pod, buffer);
    if (key->ptr == NULL)
        return false;
    const struct seen_lock *lock = find(seen->first, *key);
    return (lock != NULL && lock->there_ns == 0 && !is_gone) || find(seen->passed, *key) != NULL;
}

/* Hundreds of thousands of pods come at a start: most cost only a look. */
void seen_locks_see_pod(struct state *state, const struct meta *pod, bool is_gone)
{
    struct seen_locks *seen = state->seen_locks;
    char buffer[KEY_BYTES_MAX];
    struct slice key = {NULL, 0};

    (void)pthread_rwlock_rdlock(&state->lock);
    bool has_news = is_news(seen, pod, is_gone, buffer, &key);
    (void)pthread_rwlock_unlock(&state->lock);
    if (!has_news)
        return;
    SCOPED_WRITE_LOCK(&state->lock);
    struct seen_lock *changed = find(seen->first, key);
    if (changed != NULL && !is_gone)
        note_there(changed);
    forget_key(&seen->passed, key);
}

/* ---- claims that are gone ---- */

/* NAMESPACE/CLAIM, in a buffer; {NULL, 0}: no claimguard has locked such a claim. */
static struct slice claim_key(struct slice ns, struct slice claim, char buffer[KEY_BYTES_MAX])
{
    return written(buffer,
                   snprintf(buffer, KEY_BYTES_MAX, "%.*s/%.*s", SLICE_ARG(ns), SLICE_ARG(claim)));
}

/* The text, at *end, which moves behind it. */
static struct slice put_text(char **end, struct slice text)
{
    struct slice put = {*end, text.len};

    if (text.len != 0)
        memcpy(*end, text.ptr, text.len);
    *end += text.len;
    return put;
}

static void put_former(struct seen_lock **table, struct slice key, const struct claim_object *claim)
{
    forget_key(table, key);
    make_room(table, key);
    struct seen_lock *lock =
        add(table, key, claim->holder.len + claim->admitted.len + claim->locked_at.len);
    if (lock == NULL)
        return;
    char *end = lock->key + key.len;
    lock->former.holder = put_text(&end, claim->holder);
    lock->former.admitted = put_text(&end, claim->admitted);
    lock->former.locked_at = put_text(&end, claim->locked_at);
}

void seen_locks_see_claim_gone(struct state *state, const struct claim_object *claim)
{
    struct object_reference holder = {.kind = KIND_POD, .ns = claim->meta.ns};
    char buffer[KEY_BYTES_MAX];
    struct slice key = claim_key(claim->meta.ns, claim->meta.name, buffer);

    if (key.ptr == NULL || !claim_holder_read(claim->holder, &holder.uid, &holder.name) ||
        claim->admitted.len + claim->locked_at.len > WRITTEN_BYTES_MAX)
        return;
    SCOPED_WRITE_LOCK(&state->lock);
    const struct pod *pod = cluster_find_same_pod(&state->cluster, &holder);
    if (pod != NULL && (pod_is_assigned(pod) || pod->is_terminal))
        return;
    put_former(&state->seen_locks->former, key, claim);
    if (pod == NULL)
        return; /* most of these are gone: their ages would make others forgotten */
    /* its age begins now, since nobody locks the claim after this: key_of of claim_lock.c */
    key = written(buffer, snprintf(buffer, KEY_BYTES_MAX, "%.*s/%.*s/%.*s/%.*s",
                                   SLICE_ARG(claim->meta.ns), SLICE_ARG(claim->meta.name),
                                   SLICE_ARG(claim->holder), SLICE_ARG(claim->locked_at)));
    if (key.ptr != NULL)
        (void)get_or_add(&state->seen_locks->first, key);
}

struct former_lock seen_locks_former(struct state *state, struct slice ns, struct slice claim,
                                     struct arena *arena)
{
    struct former_lock former = {.holder = {NULL, 0}};
    char buffer[KEY_BYTES_MAX];
    struct slice key = claim_key(ns, claim, buffer);

    SCOPED_READ_LOCK(&state->lock);
    const struct seen_lock *lock = key.ptr == NULL ? NULL : find(state->seen_locks->former, key);
    if (lock == NULL)
        return former;
    former.holder = arena_copy(arena, lock->former.holder);
    former.admitted = arena_copy(arena, lock->former.admitted);
    former.locked_at = arena_copy(arena, lock->former.locked_at);
    return former;
}

void seen_locks_forget_former(struct state *state, struct slice ns, struct slice claim)
{
    char buffer[KEY_BYTES_MAX];
    struct slice key = claim_key(ns, claim, buffer);

    SCOPED_WRITE_LOCK(&state->lock);
    if (key.ptr != NULL)
        forget_key(&state->seen_locks->former, key);
}
