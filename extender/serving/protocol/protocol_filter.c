#include <stdint.h>

#include "cache/json/json_text.h"
#include "config/base/scope.h"
#include "extender/serving/protocol/protocol_internal.h"

enum { TAIL_BYTES_MAX = 16 * 1024 };

/* ---- the call ---- */

static bool read_node_names(struct pull *json, struct arena *arena, void *field)
{
    struct filter_request *request = field;
    struct json_strings found;

    (void)arena;
    if (pull_null(json))
        return true;
    if (!pull_string_array(json, &request->node_names, &found))
        return false;
    request->node_count = found.count;
    request->names_bytes = found.bytes;
    return true;
}

struct named {
    struct slice name; /* alone, so that an array of them is one of names */
};

static bool read_items(struct pull *json, struct arena *arena, void *field)
{
    static const struct pull_field meta[] = {PULL_FIELD("name", PULL_STRING, named, name)};
    static const struct pull_field fields[] = {
        PULL_NESTED("metadata", meta),
    };
    struct filter_request *request = field;
    struct pull_items items = {.size = sizeof(struct named)};
    bool ok =
        pull_field_array(json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields), arena, &items);

    request->names = items.items;
    request->node_count = items.count; /* NodeNames may have come before: that is refused below */
    for (size_t i = 0; ok && i < items.count; i++)
        ok = protocol_check_node_name(json, request->names[i]);
    return ok;
}

/* Names are read also where the list will only be copied: what is no NodeList is refused before
 * anything is reserved. */
static bool read_nodes(struct pull *json, struct arena *arena, void *field)
{
    static const struct pull_field fields[] = {
        {.key = "items", .type = PULL_READ, .read = read_items}};
    struct filter_request *request = field;

    if (pull_null(json))
        return true;
    const char *begin = json->at; /* pull_null has passed over what is before the value */
    if (!pull_fields(json, PULL_CASE_FOLD, fields, PULL_FIELD_COUNT(fields), arena, request))
        return false;
    request->nodes = (struct slice){begin, (size_t)(json->at - begin)};
    return true;
}

int protocol_read_filter(struct filter_request *out, struct slice body, struct arena *arena,
                         struct error *err)
{
    static const struct pull_field fields[] = {
        PULL_READER("Pod", filter_request, pod, protocol_pull_pod),
        {.key = "Nodes", .type = PULL_READ, .read = read_nodes},
        {.key = "NodeNames", .type = PULL_READ, .read = read_node_names},
    };

    *out = (struct filter_request){0};
    if (protocol_read_body(fields, PULL_FIELD_COUNT(fields), body, arena, out, err) < 0 ||
        protocol_check_pod(&out->pod, err) < 0)
        return err->code;
    if ((out->nodes.ptr == NULL) == (out->node_names.ptr == NULL))
        return error_set(err, ERROR_INVALID, "body: %s",
                         out->nodes.ptr == NULL ? "NodeNames and Nodes are both missing"
                                                : "NodeNames and Nodes are both there: send one");
    return 0;
}

/* ---- each node passes ---- */

/* ExtenderFilterResult around the node list of a call that passes. */
static const char passed_names[] = "{\"Nodes\":null,\"NodeNames\":";
static const char passed_nodes[] = "{\"NodeNames\":null,\"Nodes\":";
static const char passed_tail[] =
    ",\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}";

struct slice protocol_pass(struct buf *body, const struct filter_request *request, struct buf *out)
{
    bool is_names = request->node_names.ptr != NULL;
    struct slice list = is_names ? request->node_names : request->nodes;
    struct slice head = is_names ? SLICE(passed_names) : SLICE(passed_nodes);
    struct slice tail = SLICE(passed_tail);
    size_t begin = (size_t)(list.ptr - body->bytes), end = begin + list.len;

    if (begin >= head.len && body->capacity - end >= tail.len) {
        memcpy(body->bytes + begin - head.len, head.ptr, head.len);
        memcpy(body->bytes + end, tail.ptr, tail.len);
        return (struct slice){body->bytes + begin - head.len, head.len + list.len + tail.len};
    }
    buf_put(out, head);
    buf_put(out, list);
    buf_put(out, tail);
    return buf_slice(out);
}

/*
 * ---- no node passes ----
 *
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

/* Removes the comma behind the last element, if there are any since `begin`. */
static void end_list(struct buf *out, size_t begin)
{
    if (!out->failed && out->len > begin)
        out->len--;
}

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

/* What is behind each name of a map of nodes: a colon, the reason, a comma. False: no memory. */
static bool put_tail(struct buf *tail, struct slice reason)
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
    SCOPED_BUF(tail, TAIL_BYTES_MAX);

    if (!put_tail(&tail, reason) || !buf_reserve(&tail, JSON_JOIN_ROOM))
        return (struct slice){NULL, 0};
    memset(tail.bytes + tail.len, 0, JSON_JOIN_ROOM);
    struct slice copy = arena_copy(arena, (struct slice){tail.bytes, tail.len + JSON_JOIN_ROOM});
    return copy.ptr == NULL ? copy : (struct slice){copy.ptr, copy.len - JSON_JOIN_ROOM};
}

bool protocol_begin_rejection(struct rejection *out, const struct filter_request *request,
                              enum verdict_code code, struct slice reason, struct arena *arena)
{
    struct slice names = request->node_names, head = find_head(code, true);
    struct slice tail = make_tail(reason, arena);
    bool has_nodes = request->node_count != 0;

    if (tail.ptr == NULL)
        return false;
    *out = (struct rejection){
        .head = head,
        .tail = tail,
        .last = has_nodes ? (struct slice){tail.ptr, tail.len - 1} : SLICE(""),
        .at = names.ptr,
        .end = names.ptr + names.len,
        .bytes = head.len + request->names_bytes + request->node_count * tail.len - has_nodes +
                 sizeof end_of_answer - 1,
    };
    return true;
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
static int write_failed_nodes(struct buf *out, const struct filter_request *request,
                              enum verdict_code code, struct slice tail, struct error *err)
{
    if (tail.ptr == NULL)
        return error_no_memory(err);
    buf_put(out, find_head(code, false));
    size_t before = out->len;
    for (size_t i = 0; i < request->node_count; i++) {
        buf_json(out, request->names[i]);
        buf_put(out, tail);
    }
    end_list(out, before);
    buf_put(out, SLICE(end_of_answer));
    return 0;
}

int protocol_write_rejected(struct buf *out, const struct filter_request *request,
                            enum verdict_code code, struct slice reason, struct arena *arena,
                            struct error *err)
{
    struct rejection whole;

    if (request->node_names.ptr == NULL)
        return write_failed_nodes(out, request, code, make_tail(reason, arena), err);
    if (!protocol_begin_rejection(&whole, request, code, reason, arena))
        return error_no_memory(err);
    protocol_put_rejection(out, &whole);
    return 0;
}

/* ---- some nodes pass ---- */

/* Decodes the names that have escapes. False: there is no memory. */
static bool decode(struct slice *names, size_t count, struct arena *arena)
{
    for (size_t i = 0; i < count; i++) {
        if (memchr(names[i].ptr, '\\', names[i].len) == NULL)
            continue;
        char *decoded = arena_alloc(arena, JSON_DECODED_PER_BYTE * names[i].len);
        if (decoded == NULL)
            return false;
        names[i] = (struct slice){decoded, json_text_decode(decoded, names[i])};
    }
    return true;
}

const struct slice *protocol_node_names(const struct filter_request *request, struct arena *arena)
{
    struct slice list = request->node_names;
    struct json_strings found;

    if (list.ptr == NULL)
        return request->names;
    struct slice *names = arena_alloc(arena, (request->node_count + 1) * sizeof *names);
    if (names == NULL)
        return NULL;
    /* the array was checked when it was read */
    (void)json_text_strings(list.ptr, list.ptr + list.len, &found, names);
    bool has_escapes = memchr(list.ptr, '\\', list.len) != NULL;
    return has_escapes && !decode(names, found.count, arena) ? NULL : names;
}

/* The name as a JSON string: in the request, if it has no escapes there; else {NULL, 0}. */
static struct slice find_quoted(const struct filter_request *request, struct slice name)
{
    struct slice list = request->node_names.ptr != NULL ? request->node_names : request->nodes;
    uintptr_t begin = (uintptr_t)list.ptr, at = (uintptr_t)name.ptr;

    if (at <= begin || at - begin >= list.len)
        return (struct slice){NULL, 0};
    return (struct slice){name.ptr - 1, name.len + 2};
}

static void put_name(struct buf *out, struct slice name, struct slice quoted)
{
    if (quoted.ptr != NULL)
        buf_put(out, quoted);
    else
        buf_json(out, name);
}

/* Names that stand side by side in the request are copied as one piece. */
static void put_passed_names(struct buf *out, const struct filter_request *request,
                             const struct slice *names, const struct slice *reasons)
{
    size_t begin = out->len;

    for (size_t i = 0, next; i < request->node_count; i = next) {
        next = i + 1;
        if (reasons[i].len != 0)
            continue;
        struct slice piece = find_quoted(request, names[i]);
        for (; piece.ptr != NULL && next < request->node_count && reasons[next].len == 0; next++) {
            struct slice quoted = find_quoted(request, names[next]);
            if (quoted.ptr != piece.ptr + piece.len + 1) /* not only a comma between them */
                break;
            piece.len += 1 + quoted.len;
        }
        put_name(out, names[i], piece);
        buf_put(out, SLICE(","));
    }
    end_list(out, begin);
}

/* The Node objects that pass, copied as they came. */
static void put_passed_nodes(struct buf *out, struct slice nodes, const struct slice *reasons,
                             size_t count)
{
    const char *comma = "";
    struct slice key, item;
    struct pull json;
    size_t i = 0;

    pull_init_checked(&json, nodes); /* by read_nodes */
    (void)pull_object(&json);
    while (pull_key(&json, &key)) {
        if (!slice_equal_fold(key, SLICE("items")) || !pull_array(&json)) {
            (void)pull_skip(&json);
            continue;
        }
        for (; i < count && pull_item(&json) && pull_raw(&json, &item); i++)
            if (reasons[i].len == 0) {
                buf_put(out, slice_of(comma));
                buf_put(out, item);
                comma = ",";
            }
        return;
    }
}

/* Most nodes have the same reason, in the same memory: it is escaped once. */
static void put_reasons(struct buf *out, const struct filter_request *request,
                        const struct slice *names, const struct slice *reasons)
{
    size_t begin = out->len;
    struct slice last = {NULL, 0};
    SCOPED_BUF(tail, TAIL_BYTES_MAX);

    for (size_t i = 0; i < request->node_count; i++) {
        if (reasons[i].len == 0)
            continue;
        if (reasons[i].ptr != last.ptr || reasons[i].len != last.len) {
            last = reasons[i];
            if (!put_tail(&tail, last)) {
                out->failed = true;
                break;
            }
        }
        put_name(out, names[i], find_quoted(request, names[i]));
        buf_put(out, buf_slice(&tail));
    }
    end_list(out, begin);
}

void protocol_write_filtered(struct buf *out, const struct filter_request *request,
                             const struct slice *names, const struct slice *reasons)
{
    bool is_names = request->node_names.ptr != NULL;
    size_t count = request->node_count;

    buf_put(out, is_names ? SLICE("{\"Nodes\":null,\"NodeNames\":[")
                          : SLICE("{\"NodeNames\":null,\"Nodes\":{\"metadata\":{},\"items\":["));
    if (is_names)
        put_passed_names(out, request, names, reasons);
    else
        put_passed_nodes(out, request->nodes, reasons, count);
    buf_put(out, is_names ? SLICE("]") : SLICE("]}"));
    buf_put(out, SLICE(",\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{"));
    put_reasons(out, request, names, reasons);
    buf_put(out, SLICE("},\"Error\":\"\"}"));
}
