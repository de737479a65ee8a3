#include "cache/cluster/unconfirmed.h"

#include <stdlib.h>

#include "config/base/clock.h"

struct unconfirmed *unconfirmed_find(const struct cluster *cluster, struct slice uid)
{
    struct unconfirmed *found = NULL;

    if (cluster->unconfirmed != NULL && uid.len == UID_TEXT_BYTES)
        HASH_FIND(hh, cluster->unconfirmed, uid.ptr, UID_TEXT_BYTES, found);
    return found;
}

static void end(struct cluster *cluster, struct unconfirmed *answer)
{
    HASH_DEL(cluster->unconfirmed, answer);
    free(answer);
}

/* Appends the answer: it is the last that is due. Frees it without memory. */
static void append(struct cluster *cluster, struct unconfirmed *answer)
{
    HASH_ADD(hh, cluster->unconfirmed, uid, UID_TEXT_BYTES, answer);
    if (answer->hh.tbl == NULL)
        free(answer);
}

static struct unconfirmed *answer_new(const struct object_reference *object, bool is_gone)
{
    struct unconfirmed *answer = calloc(1, sizeof *answer + object_reference_bytes(object));

    if (answer == NULL)
        return NULL;
    memcpy(answer->uid, object->uid.ptr, UID_TEXT_BYTES);
    answer->is_gone = is_gone;
    answer->object = object_reference_copy(object, answer->text);
    return answer;
}

void unconfirmed_add(struct cluster *cluster, const struct object_reference *object, bool is_gone,
                     uint64_t now_ns)
{
    if (object->uid.len != UID_TEXT_BYTES)
        return;
    struct unconfirmed *known = unconfirmed_find(cluster, object->uid);
    uint64_t first_ns = known != NULL && known->is_gone == is_gone ? known->first_ns : now_ns;
    if (known != NULL)
        end(cluster, known);
    if (now_ns - first_ns > UNCONFIRMED_LIFE_MS * NS_PER_MS)
        return;
    if (HASH_COUNT(cluster->unconfirmed) >= UNCONFIRMED_MAX)
        end(cluster, cluster->unconfirmed);
    struct unconfirmed *answer = answer_new(object, is_gone);
    if (answer == NULL)
        return;
    answer->first_ns = first_ns;
    answer->since_ns = now_ns;
    answer->due_ns = now_ns + UNCONFIRMED_CHECK_MS * NS_PER_MS;
    append(cluster, answer);
}

bool unconfirmed_is_older(const struct cluster *cluster, struct slice uid, uint64_t asked_ns)
{
    const struct unconfirmed *answer = unconfirmed_find(cluster, uid);

    return answer != NULL && asked_ns > answer->since_ns;
}

void unconfirmed_forget(struct cluster *cluster, struct slice uid)
{
    struct unconfirmed *answer = unconfirmed_find(cluster, uid);

    if (answer != NULL)
        end(cluster, answer);
}

void unconfirmed_forget_gone(struct cluster *cluster, enum kind kind, uint64_t asked_ns)
{
    struct unconfirmed *answer, *next;

    HASH_ITER (hh, cluster->unconfirmed, answer, next)
        if (answer->is_gone && answer->object.kind == kind && asked_ns > answer->since_ns)
            end(cluster, answer);
}

bool cluster_next_unconfirmed(struct cluster *cluster, uint64_t now_ns, struct kept_reference **out,
                              struct arena *arena)
{
    struct unconfirmed *first = cluster->unconfirmed;

    if (first == NULL || now_ns < first->due_ns ||
        !object_reference_keep(out, &first->object, arena))
        return false;
    HASH_DEL(cluster->unconfirmed, first);
    first->due_ns = now_ns + UNCONFIRMED_CHECK_MS * NS_PER_MS;
    append(cluster, first);
    return true;
}

void unconfirmed_dispose(struct cluster *cluster)
{
    while (cluster->unconfirmed != NULL)
        end(cluster, cluster->unconfirmed);
}
