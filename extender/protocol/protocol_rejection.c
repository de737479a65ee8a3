/*
 * The rejection of a pod on every node of a call: some twenty bytes of the request become more than
 * a hundred of the answer, which has each node's name and the reason.
 *
 * With many nodes, the answer is larger than the processor's cache. Written to memory, from where
 * the kernel copies it once more, it takes longer than all else of the call. So the server asks for
 * it in pieces, each in the same memory, which stays in the cache: with 15,000 names, a call took
 * 600 us in place of 710, beside 500 of a server that only writes as many bytes. With 5,000, the
 * calls of the kernel cost more than that, so these are written at once (scratch.h). The body stays
 * in memory until its answer is sent, and each piece reads further in it. protocol_write_rejected
 * writes the same as one piece; tests compare both.
 */
#include "extender/protocol/protocol_internal.h"

static const char end_of_answer[] = "},\"Error\":\"\"}";

/* What is before the first name. */
static struct slice find_head(enum verdict_code code, bool is_names)
{
#define NAMES "{\"Nodes\":null,\"NodeNames\":[],"
#define NODES "{\"Nodes\":{\"metadata\":{},\"items\":[]},\"NodeNames\":null,"
#define FINAL "\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{"
#define OPEN  "\"FailedAndUnresolvableNodes\":{},\"FailedNodes\":{"
    static const char *const heads[2][2] = {{NODES OPEN, NODES FINAL}, {NAMES OPEN, NAMES FINAL}};
#undef NAMES
#undef NODES
#undef FINAL
#undef OPEN
    return slice_of(heads[is_names][code == CODE_UNSCHEDULABLE_AND_UNRESOLVABLE]);
}

bool protocol_put_tail(struct buf *tail, struct slice reason)
{
    tail->len = 0;
    buf_put(tail, SLICE(":"));
    buf_json(tail, protocol_shorten(reason));
    buf_put(tail, SLICE(","));
    return !tail->failed;
}

/* What is behind each name, with the room that json_text_join needs. {NULL, 0}: no memory. */
static struct slice make_tail(struct slice reason, struct arena *arena)
{
    struct slice copy = {NULL, 0};
    struct buf tail;

    buf_init(&tail, TAIL_BYTES_MAX);
    if (protocol_put_tail(&tail, reason) && buf_reserve(&tail, JSON_JOIN_ROOM)) {
        memset(tail.bytes + tail.len, 0, JSON_JOIN_ROOM);
        copy = arena_copy(arena, (struct slice){tail.bytes, tail.len + JSON_JOIN_ROOM});
    }
    buf_dispose(&tail);
    return copy.ptr == NULL ? copy : (struct slice){copy.ptr, copy.len - JSON_JOIN_ROOM};
}

static void begin(struct rejection *out, const struct filter_request *request,
                  enum verdict_code code, struct slice tail)
{
    struct slice names = request->node_names, head = find_head(code, true);
    bool has_nodes = request->node_count != 0;

    *out = (struct rejection){
        .head = head,
        .tail = tail,
        .last = has_nodes ? (struct slice){tail.ptr, tail.len - 1} : SLICE(""),
        .at = names.ptr,
        .end = names.ptr + names.len,
        .bytes = head.len + request->names_bytes + request->node_count * tail.len - has_nodes +
                 sizeof end_of_answer - 1,
    };
}

int protocol_begin_rejection(struct rejection *out, const struct filter_request *request,
                             enum verdict_code code, struct slice reason, struct arena *arena,
                             struct error *err)
{
    struct slice tail = make_tail(reason, arena);

    if (tail.ptr == NULL)
        return error_no_memory(err);
    begin(out, request, code, tail);
    return 0;
}

static void put(char **to, struct slice text)
{
    memcpy(*to, text.ptr, text.len);
    *to += text.len;
}

size_t protocol_next_piece(struct rejection *rejection, char *out, size_t room)
{
    struct slice end = SLICE(end_of_answer);
    struct json_join join = {.to = out, .end = out + room, .between = rejection->tail};

    if (room < rejection->head.len)
        return 0;
    put(&join.to, rejection->head);
    rejection->head.len = 0;
    rejection->at = json_text_join(rejection->at, rejection->end, &join);
    size_t left = (size_t)(join.end - join.to);
    if (*rejection->at == ']' && left >= rejection->last.len + end.len) {
        put(&join.to, rejection->last);
        put(&join.to, end);
    }
    return (size_t)(join.to - out);
}

void protocol_put_rejection(struct buf *out, struct rejection *rejection)
{
    if (buf_reserve(out, rejection->bytes))
        out->len += protocol_next_piece(rejection, out->bytes + out->len, rejection->bytes);
}

/* The same of a call with whole Node objects. */
static void put_failed_nodes(struct buf *out, const struct filter_request *request,
                             enum verdict_code code, struct slice tail)
{
    buf_put(out, find_head(code, false));
    size_t before = out->len;
    for (size_t i = 0; i < request->node_count; i++) {
        buf_json(out, request->names[i]);
        buf_put(out, tail);
    }
    protocol_end_list(out, before);
    buf_put(out, SLICE(end_of_answer));
}

int protocol_write_rejected(struct buf *out, const struct filter_request *request,
                            enum verdict_code code, struct slice reason, struct arena *arena,
                            struct error *err)
{
    struct slice tail = make_tail(reason, arena);
    struct rejection whole;

    if (tail.ptr == NULL)
        return error_no_memory(err);
    if (request->node_names.ptr == NULL) {
        put_failed_nodes(out, request, code, tail);
        return 0;
    }
    begin(&whole, request, code, tail);
    protocol_put_rejection(out, &whole);
    return 0;
}
