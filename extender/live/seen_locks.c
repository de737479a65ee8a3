#include "extender/live/seen_locks.h"

#include <stdio.h>
#include <stdlib.h>

enum { KEY_BYTES_MAX = 1024 };

struct seen_lock {
    uint64_t since_ns;
    bool was_there; /* the pod of the lock */
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

/* NULL: no memory. */
static struct seen_lock *add(struct seen_lock **table, struct slice key)
{
    struct seen_lock *lock = calloc(1, sizeof *lock + key.len);

    if (lock == NULL)
        return NULL;
    lock->since_ns = monotonic_ns();
    memcpy(lock->key, key.ptr, key.len);
    HASH_ADD_KEYPTR(hh, *table, lock->key, key.len, lock);
    if (lock->hh.tbl != NULL)
        return lock;
    free(lock);
    return NULL;
}

/* Forgets a lock, if there are too many for the new one. They are in the order of their age. */
static void make_room(struct seen_lock **table, struct slice key)
{
    const char *slash = memchr(key.ptr, '/', key.len);
    size_t ns_len = slash == NULL ? key.len : (size_t)(slash - key.ptr) + 1;
    struct seen_lock *oldest = NULL;
    unsigned count = 0;

    if (HASH_COUNT(*table) < NAMESPACE_LOCKS_MAX)
        return;
    for (struct seen_lock *lock = *table; lock != NULL; lock = lock->hh.next) {
        if (lock->hh.keylen < ns_len || memcmp(lock->key, key.ptr, ns_len) != 0)
            continue;
        oldest = oldest == NULL ? lock : oldest;
        count++;
    }
    if (count >= NAMESPACE_LOCKS_MAX)
        forget(table, oldest);
    else if (HASH_COUNT(*table) >= LOCKS_SEEN_MAX)
        forget(table, *table);
}

/* NULL: no memory. */
static struct seen_lock *get_or_add(struct seen_lock **table, struct slice key)
{
    struct seen_lock *lock = find(*table, key);

    if (lock != NULL)
        return lock;
    make_room(table, key);
    return add(table, key);
}

void seen_locks_dispose(struct seen_locks *seen)
{
    while (seen->first != NULL)
        forget(&seen->first, seen->first);
}

/* ---- the annotation, and keys ---- */

/* Whether the text has only the characters of names and UIDs, and is no longer. It becomes part of
 * a request, and of what is remembered. */
static bool is_plain(struct slice text, size_t max)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-' && c != '.')
            return false;
    }
    return text.len != 0 && text.len <= max;
}

bool seen_locks_read_holder(struct slice holder, struct slice *uid, struct slice *name)
{
    const char *slash = holder.len == 0 ? NULL : memchr(holder.ptr, '/', holder.len);

    if (slash == NULL)
        return false;
    *uid = (struct slice){holder.ptr, (size_t)(slash - holder.ptr)};
    *name = (struct slice){slash + 1, holder.len - uid->len - 1};
    return is_plain(*uid, UID_TEXT_BYTES) && is_plain(*name, POD_NAME_BYTES_MAX);
}

struct slice seen_locks_creation_key(struct slice ns, struct slice holder, struct arena *arena)
{
    return arena_printf(arena, "%.*s/%.*s", SLICE_ARG(ns), SLICE_ARG(holder));
}

/* The same key, NAMESPACE/UID/NAME, in a buffer; {NULL, 0}: no claimguard has locked anything for
 * such a pod. */
static struct slice pod_key(struct slice ns, struct slice uid, struct slice name,
                            char buffer[KEY_BYTES_MAX])
{
    int len = snprintf(buffer, KEY_BYTES_MAX, "%.*s/%.*s/%.*s", SLICE_ARG(ns), SLICE_ARG(uid),
                       SLICE_ARG(name));

    return len < 0 || len >= KEY_BYTES_MAX ? (struct slice){NULL, 0}
                                           : (struct slice){buffer, (size_t)len};
}

/* ---- locks of other pods ---- */

bool seen_locks_is_old(struct state *state, struct slice key, uint64_t patience_ms, bool is_there)
{
    bool is_old = false;

    (void)pthread_rwlock_wrlock(&state->lock);
    struct seen_lock *lock = get_or_add(&state->seen_locks->first, key);
    if (lock != NULL) {
        is_old = monotonic_ns() - lock->since_ns >= patience_ms * NS_PER_MS ||
                 (lock->was_there && !is_there);
        lock->was_there = lock->was_there || is_there;
    }
    (void)pthread_rwlock_unlock(&state->lock);
    return is_old;
}

/* Its pod may be known already: the watch of claims may be the later one. */
void seen_locks_see_claim(struct state *state, const struct claim_object *claim)
{
    struct slice ns = claim->meta.ns, uid, name;
    char buffer[KEY_BYTES_MAX];

    if (!slice_equal(claim->admitted, SLICE(CLAIM_ADMITTED_CREATION)) ||
        !seen_locks_read_holder(claim->holder, &uid, &name))
        return;
    struct slice key = pod_key(ns, uid, name, buffer);
    if (key.ptr == NULL)
        return;
    (void)pthread_rwlock_wrlock(&state->lock);
    const struct pod *pod = cluster_find_pod(&state->cluster, ns, name);
    struct seen_lock *lock = get_or_add(&state->seen_locks->first, key);
    if (lock != NULL && pod != NULL && uid_is(&pod->uid, uid))
        lock->was_there = true;
    (void)pthread_rwlock_unlock(&state->lock);
}

/* Of most pods there is nothing to note, which costs a look only. */
void seen_locks_see_pod(struct state *state, const struct meta *pod)
{
    struct seen_locks *seen = state->seen_locks;
    char buffer[KEY_BYTES_MAX];
    struct slice key = pod_key(pod->ns, pod->uid, pod->name, buffer);

    if (key.ptr == NULL)
        return;
    (void)pthread_rwlock_rdlock(&state->lock);
    const struct seen_lock *lock = find(seen->first, key);
    bool is_news = lock != NULL && !lock->was_there;
    (void)pthread_rwlock_unlock(&state->lock);
    if (!is_news)
        return;
    (void)pthread_rwlock_wrlock(&state->lock);
    struct seen_lock *changed = find(seen->first, key);
    if (changed != NULL)
        changed->was_there = true;
    (void)pthread_rwlock_unlock(&state->lock);
}
