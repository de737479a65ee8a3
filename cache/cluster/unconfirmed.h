/*
 * unconfirmed: what the API server answered beside its watches, and no watch has told yet: to a
 * GET, that a pod or a claim is gone; to a Binding, that a pod is bound. Watches are late, so until
 * they have told it, the answer counts against what they and older answers say.
 *
 * An answer may be wrong (a server that lies, a write that was lost behind it). What was asked for
 * later than it came is the truth then, whatever it says: a list, or a GET; both are consistent
 * reads. An event of a watch is not, however new its version is: the answer has none, and a watch
 * that is late tells versions that came before the object's end. So that a wrong answer does not
 * last where no list comes, the object is asked about again after ANSWER_DOUBT_MS. An
 * answer that is repeated for ANSWER_BELIEVED_MS is forgotten: no watch is that late.
 *
 * All times are the owner's, of a clock that only runs forward. Threads: as the cluster.
 */
#ifndef CACHE_CLUSTER_UNCONFIRMED_H
#define CACHE_CLUSTER_UNCONFIRMED_H

#include "cache/cluster/cluster.h"

enum {
    UNCONFIRMED_MAX = 2048, /* with more, the one that is due first is forgotten */
    ANSWER_DOUBT_MS = 10000,
    ANSWER_BELIEVED_MS = 60000,
};

struct unconfirmed {
    char uid[UID_TEXT_BYTES];       /* the key */
    bool is_gone;                   /* the object; else it is a pod, and bound */
    uint64_t first_ns;              /* when the first one that said so came */
    uint64_t since_ns;              /* when the last one came */
    uint64_t due_ns;                /* when it is asked about again */
    UT_hash_handle hh;              /* in the order in which they are due */
    struct object_reference object; /* its strings are behind this */
    char text[];
};

/* The answer came now. One that cannot be kept (no memory, a UID that is no UUID) is forgotten:
 * then what a late watch says counts for a moment. */
void unconfirmed_add(struct cluster *cluster, const struct object_reference *object, bool is_gone,
                     uint64_t now_ns);

/* NULL: there is none. */
const struct unconfirmed *unconfirmed_find(const struct cluster *cluster, struct slice uid);

/* Whether there is one, and what was asked for at that time is newer. asked_ns 0: a watch. */
bool unconfirmed_is_refuted(const struct cluster *cluster, struct slice uid, uint64_t asked_ns);

/* The truth is known. */
void unconfirmed_forget(struct cluster *cluster, struct slice uid);

/* A list of that kind was asked for at that time: what it names is there, and neither it nor the
 * watch behind it names what was gone before. */
void unconfirmed_list(struct cluster *cluster, enum kind kind, uint64_t asked_ns);

void unconfirmed_dispose(struct cluster *cluster);

#endif
