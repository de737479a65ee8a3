/*
 * unconfirmed: answers of the API server that no watch has confirmed yet. There are two: a GET has
 * found that a pod or claim is gone; a Binding has bound a pod. Watches are late, so the answer
 * counts until a watch reports the same, even if a watch or an older answer says otherwise.
 *
 * An answer may be wrong (a faulty server or proxy, a write that was lost after a crash). Therefore
 * the answer to a list or a GET that was sent later overrides it: both are consistent reads. An
 * event of a watch does not override it: the watch may be late, and the answer has no version to
 * compare with. If no list comes, the object is read again after UNCONFIRMED_CHECK_MS. After
 * UNCONFIRMED_LIFE_MS the answer is forgotten, because no watch is that late.
 *
 * All times are nanoseconds of the caller's monotonic clock. Threads: as the cluster.
 */
#ifndef CACHE_CLUSTER_UNCONFIRMED_H
#define CACHE_CLUSTER_UNCONFIRMED_H

#include "cache/cluster/cluster.h"

enum {
    UNCONFIRMED_MAX = 2048, /* of more answers, the one that is due first is forgotten */
    UNCONFIRMED_CHECK_MS = 10000,
    UNCONFIRMED_LIFE_MS = 60000,
};

struct unconfirmed {
    char uid[UID_TEXT_BYTES];       /* the key */
    bool is_gone;                   /* the object is gone; false: it is a pod, and bound */
    uint64_t first_ns;              /* when the first such answer arrived */
    uint64_t since_ns;              /* when the last one arrived */
    uint64_t due_ns;                /* when the object is read again */
    UT_hash_handle hh;              /* in the order of due_ns */
    struct object_reference object; /* its strings are in text */
    char text[];
};

/* Records an answer that arrived at now_ns. Without memory, or for a UID that is no UUID, it is not
 * recorded: then a late watch counts until it catches up. */
void unconfirmed_add(struct cluster *cluster, const struct object_reference *object, bool is_gone,
                     uint64_t now_ns);

/* The answer about the object of that UID; NULL: there is none. */
struct unconfirmed *unconfirmed_find(const struct cluster *cluster, struct slice uid);

/* Whether there is an answer, and a request that was sent at asked_ns is newer. 0: a watch. */
bool unconfirmed_is_older(const struct cluster *cluster, struct slice uid, uint64_t asked_ns);

/* Forgets the answer, if there is one: it is confirmed, or known to be wrong. */
void unconfirmed_forget(struct cluster *cluster, struct slice uid);

/* Forgets which objects of that kind were gone before a list that was requested at asked_ns:
 * neither that list nor the watch after it reports them. */
void unconfirmed_forget_gone(struct cluster *cluster, enum kind kind, uint64_t asked_ns);

void unconfirmed_dispose(struct cluster *cluster);

#endif
