/*
 * protocol: the bodies of the scheduler extender protocol (k8s.io/kube-scheduler/extender/v1), and
 * of Volcano's (volcano.sh/volcano/pkg/scheduler/plugins/extender), read and written without a
 * tree. Of a filter call, only the pod is decoded: the node list, which is most of the body, is
 * checked, counted, and copied as it came.
 *
 * Keys are matched without regard to case, as Go does, and written exactly. A key that appears
 * twice is refused. What is read borrows from the body and from the arena.
 *
 * Errors of all readers: ERROR_INVALID "body:LINE:COL: path: what is wrong".
 */
#ifndef EXTENDER_SERVING_PROTOCOL_PROTOCOL_H
#define EXTENDER_SERVING_PROTOCOL_PROTOCOL_H

#include "config/base/buf.h"
#include "policy/policy.h"

/* ExtenderArgs */
struct filter_request {
    struct pod_object pod;
    struct slice node_names; /* the array's extent; {NULL, 0} when the call has Nodes instead */
    struct slice nodes;      /* the NodeList's extent; {NULL, 0} when it has NodeNames */
    struct slice *names;     /* of the NodeList's items; NULL when it has NodeNames */
    size_t node_count;       /* in either form */
    size_t names_bytes;      /* of node_names: all strings with their quotes */
};

int protocol_read_filter(struct filter_request *out, struct slice body, struct arena *arena,
                         struct error *err);

/* The Pod of a filter call alone, whatever nodes come with it. */
int protocol_read_pod(struct pod_object *out, struct slice body, struct arena *arena,
                      struct error *err);

/* A text that a body has to have, with a bound: it may become part of a request, or be remembered.
 */
struct protocol_required {
    const char *path;
    const struct slice *value;
    size_t max; /* bytes */
    bool may_be_empty;
};

int protocol_check_required(const struct protocol_required *rows, size_t count, struct error *err);

/* Refuses a UID that is longer than any. Names have a bound when they are read (PULL_NAME). */
int protocol_limit_pod(const struct pod_object *pod, struct error *err);

/*
 * ExtenderFilterResult: every node passes. The answer is made in the body's own memory, around the
 * node list, which is most of both and need not be copied then: the body, and what borrows from it,
 * is gone. Where there is no room around the list, it is made in out. Returns the answer's extent.
 */
struct slice protocol_pass(struct buf *body, const struct filter_request *request, struct buf *out);

/* ExtenderFilterResult: a rejection, which stands on every node with the same reason. */
int protocol_write_rejected(struct buf *out, const struct filter_request *request,
                            enum verdict_code code, struct slice reason, struct arena *arena,
                            struct error *err);

/* The same answer, of a call with NodeNames, in pieces. It borrows from the
 * body and the arena. */
struct rejection {
    size_t bytes;      /* of the whole answer */
    struct slice head; /* before the first name, until it is written */
    struct slice tail; /* behind each name: ":REASON," */
    struct slice last; /* behind the last one: without the comma */
    const char *at;    /* where json_text_join continues in the request's array */
    const char *end;   /* of the array */
};

enum { REJECTION_PIECE_MIN = 16 * 1024 }; /* room for a name and its reason, in any case */

/* False: no memory. */
bool protocol_begin_rejection(struct rejection *out, const struct filter_request *request,
                              enum verdict_code code, struct slice reason, struct arena *arena);

/* Writes as much as there is room for, by whole names: at least REJECTION_PIECE_MIN, or for all
 * that is left of `bytes`. Returns how many bytes it has written, which is not 0 before the end. */
size_t protocol_next_piece(struct rejection *rejection, char *out, size_t room);

/* Appends all of one that was begun; out->failed: there is no memory. */
void protocol_put_rejection(struct buf *out, struct rejection *rejection);

/* The names of the request's nodes, in the order in which they came. NULL: there is no memory. */
const struct slice *protocol_node_names(const struct filter_request *request, struct arena *arena);

/* ExtenderFilterResult: nodes without a reason pass; the others are rejected for theirs, and no
 * preemption helps there. names: protocol_node_names; reasons: one for each name. */
void protocol_write_filtered(struct buf *out, const struct filter_request *request,
                             const struct slice *names, const struct slice *reasons);

/* ExtenderPreemptionArgs, in either of its forms: each candidate's offered victims by UID. */
struct preempt_request {
    struct pod_object pod;
    struct candidate *candidates;
    size_t candidate_count;
};

int protocol_read_preempt(struct preempt_request *out, struct slice body, struct arena *arena,
                          struct error *err);

/* ExtenderPreemptionResult: the candidates that keep their node. One without any victim is left
 * out: it would be an error for the whole attempt. Returns how many there are. */
size_t protocol_write_preempt(struct buf *out, const struct preempt_request *request);

/* ExtenderBindingArgs */
struct bind_request {
    struct object_reference pod;
    struct slice node;
};

int protocol_read_bind(struct bind_request *out, struct slice body, struct arena *arena,
                       struct error *err);

/* Volcano's PredicateRequest: a pod and one node. */
struct predicate_request {
    struct pod_object pod;
    struct slice node;
};

/* Of the task, only its Pod is decoded, and of the node only its Name; the rest, with all pods of
 * the node, is checked and skipped. */
int protocol_read_predicate(struct predicate_request *out, struct slice body, struct arena *arena,
                            struct error *err);

/* Volcano's PredicateResponse. The reason is ignored where the pod passes. */
void protocol_write_predicate(struct buf *out, enum verdict_code code, struct slice reason);

/* ExtenderBindingResult; also the answer to a filter or preempt call when no decision can be made.
 * An empty message is success. */
void protocol_write_error(struct buf *out, struct slice message);

#endif
