/*
 * own_object: objects of claimguard's own kinds, which no API server has: what a claimguard knows
 * besides the cluster's objects, as /debug/snapshot writes it for the commands.
 *
 *     apiVersion: claimguard.io/v1alpha1
 *     kind: Reservation                   # cache/cluster/reservation.h
 *     metadata: {namespace: shop, name: web-0}
 *     spec:
 *       podUID: 4e5f8d0c-...
 *       priority: 10
 *       node: node-1                      # of its bind
 *       claims: [data]                    # exclusive
 *       sharedClaims: [logs]              # of a pod that is being bound
 *       binding: true                     # it is being bound, or may be
 *       preemptor: true                   # pods are evicted for it
 *       expiresInMilliseconds: 29500
 *
 *     apiVersion: claimguard.io/v1alpha1
 *     kind: UnservedResource              # the API server does not serve it
 *     metadata: {name: volumeattributesclasses}
 *
 *     apiVersion: claimguard.io/v1alpha1
 *     kind: ListedResource                # the file has all objects that there were, perhaps none
 *     metadata: {name: poddisruptionbudgets}
 *
 *     apiVersion: claimguard.io/v1alpha1
 *     kind: NamespaceGivenUp              # cache/cluster/allowance.h
 *     metadata: {name: shop}
 *
 * Ownership: as objects.h. Threads: any.
 */
#ifndef CACHE_OBJECTS_OWN_OBJECT_H
#define CACHE_OBJECTS_OWN_OBJECT_H

#include "cache/objects/objects.h"

#define OWN_API_VERSION "claimguard.io/v1alpha1"

enum own_kind {
    OWN_RESERVATION,
    OWN_UNSERVED_RESOURCE,
    OWN_LISTED_RESOURCE,
    OWN_NAMESPACE_GIVEN_UP,
    OWN_KIND_COUNT,
    OWN_NONE = OWN_KIND_COUNT
};

/* The name of a ListedResource for reservations, which are in /debug/snapshot. */
#define OWN_RESERVATIONS "reservations"

struct own_object {
    enum own_kind kind;
    struct meta meta; /* namespace and name: of the pod; or the name of what it is about */
    struct slice pod_uid, node;
    int64_t priority;                 /* fits 32 bits */
    struct pull_items claims, shared; /* struct slice; POD_CLAIMS_MAX together at most */
    bool binds, is_of_preemptor;
    int64_t expires_in_ms; /* not negative */
};

/* The kind of {apiVersion, kind}; OWN_NONE for any other. Versions do not matter. */
enum own_kind own_kind_of(struct slice api_version, struct slice kind);

/* "Reservation", ... */
const char *own_kind_text(enum own_kind kind);

/* Reads the next value of json, an object of that kind. Errors: as object_read. */
bool own_object_read(struct pull *json, enum own_kind kind, struct arena *arena,
                     struct own_object *out);

/* A copy of all that it has, in the arena; NULL: the arena is full. */
struct own_object *own_object_copy(const struct own_object *object, struct arena *arena);

#endif
