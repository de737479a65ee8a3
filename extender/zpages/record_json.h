/*
 * record_json: writes the cluster's records as the objects that they were read from, in JSON, with
 * what the cluster has kept of them: read again, each gives the same record, and so the same
 * verdicts. What is known but not its value is written as a value that no object has: the time
 * 1970-01-01T00:00:00Z for when a deletion began, `{}` for a field of which only the presence
 * counts, "unknown" for a name.
 *
 * Threads: any, under the cluster's lock. Errors: the buffer's.
 */
#ifndef EXTENDER_ZPAGES_RECORD_JSON_H
#define EXTENDER_ZPAGES_RECORD_JSON_H

#include "cache/cluster/reservation.h"

/* The names of volumes are those of the pod if its mounts are kept (struct kept_mounts). Otherwise
 * there is a volume for each claim, and no other. */
void record_json_pod(struct buf *out, const struct pod *pod);

/* Which exist. */
void record_json_claim(struct buf *out, const struct claim *claim);
void record_json_node(struct buf *out, const struct node *node);

/* The node's, which is there. */
void record_json_csi_node(struct buf *out, const struct node *node);

/* Of any other kind. */
void record_json_resource(struct buf *out, enum kind kind, const struct resource *resource);

/* claimguard's own kinds: cache/objects/own_object.h. */
void record_json_reservation(struct buf *out, const struct reservation *reservation,
                             uint64_t now_ns);
void record_json_about(struct buf *out, enum own_kind about, struct slice name);

#endif
