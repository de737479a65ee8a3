/* What the files of this folder share. */
#ifndef EXTENDER_PROTOCOL_PROTOCOL_INTERNAL_H
#define EXTENDER_PROTOCOL_PROTOCOL_INTERNAL_H

#include "cache/json/pull_fields.h"
#include "extender/protocol/protocol.h"

/* A body is one object with a table of fields. */
int protocol_read_body(const struct pull_field *fields, size_t count, struct slice body,
                       struct arena *arena, void *out, struct error *err);

/* For a field that is a pod. */
bool protocol_pull_pod(struct pull *json, struct arena *arena, void *field);

/* As much of a reason as the API server lets an Event have; whole characters. */
struct slice protocol_shorten(struct slice reason);

enum { TAIL_BYTES_MAX = 16 * 1024 };

/* What is behind each name of a map of nodes: a colon, the reason, a comma. False: no memory. */
bool protocol_put_tail(struct buf *tail, struct slice reason);

/* Removes the comma behind the last element, if there are any since `begin`. */
void protocol_end_list(struct buf *out, size_t begin);

/* Refuses a pod without a name; and as protocol_limit_pod. */
int protocol_check_pod(const struct pod_object *pod, struct error *err);

/* Refuses a name that is longer than any that the API server takes: it is not to be remembered. */
int protocol_limit(struct slice name, size_t max, const char *what, struct error *err);

/* The same for a node's name; an empty one is also refused. */
bool protocol_check_node_name(struct pull *json, struct slice name);

#endif
