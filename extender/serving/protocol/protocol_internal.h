/* What protocol.c and protocol_filter.c share. Only they include this. */
#ifndef EXTENDER_SERVING_PROTOCOL_PROTOCOL_INTERNAL_H
#define EXTENDER_SERVING_PROTOCOL_PROTOCOL_INTERNAL_H

#include "cache/json/pull_fields.h"
#include "extender/serving/protocol/protocol.h"

/* A body is one object with a table of fields. */
int protocol_read_body(const struct pull_field *fields, size_t count, struct slice body,
                       struct arena *arena, void *out, struct error *err);

/* For a field that is a pod. */
bool protocol_pull_pod(struct pull *json, struct arena *arena, void *field);

/* As much of a reason as the API server lets an Event have; whole characters. */
struct slice protocol_shorten(struct slice reason);

/* Refuses a pod without a name; and as protocol_limit_pod. */
int protocol_check_pod(const struct pod_object *pod, struct error *err);

/* Refuses a node's name that is longer than any that the API server takes: it is not to be
 * remembered. An empty one is also refused. */
bool protocol_check_node_name(struct pull *json, struct slice name);

#endif
