/*
 * allowance: how much memory the objects of each namespace take. A tenant may create pods and
 * claims that are as large as the API server allows, in any number; a namespace that takes too much
 * is given up, so that claimguard lives on for the others: its objects that count are removed at
 * once, and no more of it is stored. As claims belong to namespaces, nobody else needs them. A
 * policy rejects its pods as long as anything of it may be missing (allowance_is_over).
 *
 *     takes what it may --too much--> is over: no more of it is stored
 *            ^                             |
 *            |                   a list begins that was requested over 70 s later
 *            |                             v
 *            +----all are whole----- is filling: all of it is stored again --too much--> is over
 *
 * How that ends depends on the objects of that namespace alone.
 *
 * An object is not counted up to ALLOWANCE_FREE_BYTES: usual ones cost nothing here, however many
 * there are. Beyond what all namespaces together may take, the one that takes most is given up.
 * Without limits in the cluster, nothing is counted.
 *
 * Threads: as the cluster. A namespace is given up in one piece, under the lock: about 20 ms for
 * one of 16 MiB, and 0.2 s if each of its objects is just over ALLOWANCE_FREE_BYTES.
 */
#ifndef CACHE_CLUSTER_ALLOWANCE_H
#define CACHE_CLUSTER_ALLOWANCE_H

#include "cache/cluster/cluster.h"

enum {
    ALLOWANCE_FREE_BYTES = 512, /* of each object, which do not count */

    /* A Binding that was under way when the namespace was given up is applied, or never will be:
     * lists that were requested later show it. As state_reservation_end. */
    ALLOWANCE_FENCE_MS = 70000,
};

/* How much one namespace, and all of them, may take from now on. What takes too much is given up by
 * the next change; what was, is read again as before. The first call is before the first object. */
void allowance_limit(struct cluster *cluster, size_t namespace_bytes, size_t total_bytes);

/* An object of the namespace, one of the kinds that are removed, has so many bytes from now on, or
 * not any more. hash: of its record. */
void allowance_charge(struct cluster *cluster, enum kind kind, struct name *ns, uint32_t hash,
                      size_t bytes);
void allowance_release(struct cluster *cluster, const struct name *ns, size_t bytes);

/* Whether the object is to be stored: it is of no namespace that is given up, or a pod without
 * claims, which every scheduler must be able to bind; its mounts are not stored then. */
bool allowance_admits(const struct cluster *cluster, const struct object *object);

/* After a change: gives up namespaces that take too much. */
void allowance_keep(struct cluster *cluster);

/* A list of the kind begins; has an object of that namespace (empty: of any) that could not be
 * read; is complete. */
void allowance_begin_list(struct cluster *cluster, enum kind kind);
void allowance_miss(struct cluster *cluster, enum kind kind, struct slice ns);
void allowance_end_list(struct cluster *cluster, enum kind kind);

/* Whether objects of the namespace may be missing. */
bool allowance_is_over(const struct cluster *cluster, struct slice ns);

/* Another claimguard, whose cluster this one is, has given the namespace up: objects of it may be
 * missing. What comes is stored. False without memory. */
bool allowance_restore(struct cluster *cluster, struct slice ns);

/* The next namespace of which objects may be missing; {NULL, 0}: there is none. */
struct slice allowance_next(const struct cluster *cluster, struct table_walk *walk);

void allowances_dispose(struct cluster *cluster);

#endif
