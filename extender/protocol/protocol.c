#include "extender/protocol/protocol.h"

#include <stdlib.h>

#include "cache/json/json_text.h"
#include "cache/json/pull_fields.h"

#define FIELD(key_, type_, struct_, member_) \
    { \
        .key = (key_), .type = (type_), .offset = offsetof(struct struct_, member_) \
    }
#define READ(key_, struct_, member_, read_) \
    { \
        .key = (key_), .type = PULL_READ, .offset = offsetof(struct struct_, member_), \
        .read = (read_) \
    }

enum {
    REASON_BYTES_MAX = 1024, /* as much of it as the API server lets an Event have */
    TAIL_BYTES_MAX = 16 * 1024,
    EPHEMERAL_BYTES_MAX = POD_NAME_BYTES_MAX + 1 + 63, /* of a claim's name: "pod-volume" */
};

static const char too_big[] = "too big for the memory of one request";

/* A body is one object with a table of fields. */
static int read_body(const struct pull_field *fields, size_t count, struct slice body,
                     struct arena *arena, void *out, struct error *err)
{
    struct pull json;

    pull_init(&json, body);
    if (pull_null(&json))
        (void)pull_problem(&json, "expected an object");
    (void)pull_fields(&json, PULL_CASE_FOLD, fields, count, arena, out);
    if (!pull_finish(&json))
        return pull_fail(&json, "body", (struct place){1, 1}, err);
    return 0;
}

static bool read_pod(struct pull *json, struct arena *arena, void *field)
{
    return pod_read(json, arena, field);
}

/* What is longer is no name that the API server would take, and is not to be remembered. */
static int limit(struct slice name, size_t max, const char *what, struct error *err)
{
    return name.len <= max
               ? 0
               : error_set(err, ERROR_INVALID, "body: %s has over %zu bytes", what, max);
}

static int limit_claims(const struct pod_object *pod, struct error *err)
{
    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct claim_reference *claim = &pod->claims[i];
        size_t max = claim->is_ephemeral ? EPHEMERAL_BYTES_MAX : POD_NAME_BYTES_MAX;
        if (limit(claim->name, max, "a claim's name", err) < 0)
            return err->code;
    }
    return 0;
}

static int check_pod(const struct pod_object *pod, struct error *err)
{
    if (pod->meta.name.len == 0)
        return error_set(err, ERROR_INVALID, "body: Pod is missing");
    if (limit(pod->meta.name, POD_NAME_BYTES_MAX, "Pod.metadata.name", err) < 0 ||
        limit(pod->meta.ns, POD_NAME_BYTES_MAX, "Pod.metadata.namespace", err) < 0 ||
        limit(pod->meta.uid, UID_TEXT_BYTES, "Pod.metadata.uid", err) < 0 ||
        limit(pod->node, POD_NAME_BYTES_MAX, "Pod.spec.nodeName", err) < 0 ||
        limit(pod->nominated_node, POD_NAME_BYTES_MAX, "Pod.status.nominatedNodeName", err) < 0)
        return err->code;
    return limit_claims(pod, err);
}

/* ---- filter ---- */

static bool read_node_names(struct pull *json, struct arena *arena, void *field)
{
    struct filter_request *request = field;

    (void)arena;
    return pull_null(json) || pull_string_array(json, &request->node_names, &request->node_count);
}

struct named {
    struct slice name; /* alone, so that an array of them is one of names */
};

static bool check_node_name(struct pull *json, struct slice name)
{
    if (name.len == 0)
        return pull_problem(json, "a node without a name");
    return name.len <= POD_NAME_BYTES_MAX || pull_problem(json, "a name of over 253 bytes");
}

static bool read_items(struct pull *json, struct arena *arena, void *field)
{
    static const struct pull_field meta[] = {FIELD("name", PULL_STRING, named, name)};
    static const struct pull_field fields[] = {
        {.key = "metadata", .type = PULL_OBJECT, PULL_MEMBERS(meta)},
    };
    struct filter_request *request = field;
    void *items = NULL;
    size_t count = 0;
    bool ok = pull_field_array(json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields),
                               sizeof(struct named), arena, &items, &count);

    request->names = items;
    request->node_count = count; /* NodeNames may have come before: that is refused below */
    for (size_t i = 0; ok && i < count; i++)
        ok = check_node_name(json, request->names[i]);
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
        READ("Pod", filter_request, pod, read_pod),
        {.key = "Nodes", .type = PULL_READ, .read = read_nodes},
        {.key = "NodeNames", .type = PULL_READ, .read = read_node_names},
    };

    *out = (struct filter_request){0};
    if (read_body(fields, PULL_FIELD_COUNT(fields), body, arena, out, err) < 0 ||
        check_pod(&out->pod, err) < 0)
        return err->code;
    if ((out->nodes.ptr == NULL) == (out->node_names.ptr == NULL))
        return error_set(err, ERROR_INVALID, "body: %s",
                         out->nodes.ptr == NULL ? "NodeNames and Nodes are both missing"
                                                : "NodeNames and Nodes are both there: send one");
    return 0;
}

int protocol_read_pod(struct pod_object *out, struct slice body, struct arena *arena,
                      struct error *err)
{
    static const struct pull_field fields[] = {{.key = "Pod", .type = PULL_READ, .read = read_pod}};

    *out = (struct pod_object){0};
    if (read_body(fields, PULL_FIELD_COUNT(fields), body, arena, out, err) < 0)
        return err->code;
    return check_pod(out, err);
}

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

/* {"node-1":REASON,"node-2":REASON}, the names copied as they came. `tail` is what follows each
 * name: a colon, the reason, a comma. */
static void put_failed_names(struct buf *out, const struct filter_request *request,
                             struct slice tail)
{
    const struct slice *names = &request->node_names;
    size_t count;

    if (!buf_reserve(out, names->len + request->node_count * tail.len + 2))
        return;
    struct json_join join = {out->bytes + out->len, tail};
    *join.to++ = '{';
    /* the array was checked when it was read: this finds the same names again */
    (void)json_text_strings(names->ptr, names->ptr + names->len, &count, &join);
    if (count != 0)
        join.to--; /* the last comma */
    *join.to++ = '}';
    out->len = (size_t)(join.to - out->bytes);
}

/* The same for whole Node objects. */
static void put_failed_nodes(struct buf *out, const struct filter_request *request,
                             struct slice tail)
{
    buf_put(out, SLICE("{"));
    for (size_t i = 0; i < request->node_count; i++) {
        buf_json(out, request->names[i]);
        buf_put(out, tail);
    }
    if (request->node_count != 0 && !out->failed)
        out->len--; /* the last comma */
    buf_put(out, SLICE("}"));
}

struct slice protocol_join_reasons(const struct verdict *verdict, struct arena *arena)
{
    struct slice joined = {"", 0};

    if (verdict->reason_count == 1)
        return verdict->reasons[0];
    for (size_t i = 0; i < verdict->reason_count && joined.ptr != NULL; i++)
        joined = arena_printf(arena, "%.*s%s%.*s", SLICE_ARG(joined), i == 0 ? "" : "; ",
                              SLICE_ARG(verdict->reasons[i]));
    return joined.ptr == NULL ? SLICE(too_big) : joined;
}

/* The reason as it is repeated for each node. */
static struct slice shorten(struct slice reason)
{
    size_t length = REASON_BYTES_MAX;

    if (reason.len <= REASON_BYTES_MAX)
        return reason;
    while (length != 0 && ((unsigned char)reason.ptr[length] & 0xC0U) == 0x80)
        length--; /* whole characters */
    return (struct slice){reason.ptr, length};
}

int protocol_write_rejected(struct buf *out, const struct filter_request *request,
                            enum verdict_code code, struct slice reason, struct error *err)
{
    bool is_names = request->node_names.ptr != NULL;
    bool is_final = code == CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
    struct buf tail; /* behind each name */
    int rc = 0;

    buf_init(&tail, TAIL_BYTES_MAX);
    buf_put(&tail, SLICE(":"));
    buf_json(&tail, shorten(reason));
    buf_put(&tail, SLICE(","));
    buf_put(out, is_names ? SLICE("{\"Nodes\":null,\"NodeNames\":[],")
                          : SLICE("{\"Nodes\":{\"metadata\":{},\"items\":[]},\"NodeNames\":null,"));
    buf_put(out, is_final ? SLICE("\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":")
                          : SLICE("\"FailedAndUnresolvableNodes\":{},\"FailedNodes\":"));
    if (tail.failed)
        rc = error_no_memory(err);
    else if (is_names)
        put_failed_names(out, request, buf_slice(&tail));
    else
        put_failed_nodes(out, request, buf_slice(&tail));
    buf_put(out, SLICE(",\"Error\":\"\"}"));
    buf_dispose(&tail);
    return rc;
}

/* ---- preempt ---- */

struct victim {
    struct slice uid; /* alone, so that an array of victims is one of UIDs */
};

struct victims {
    struct slice *uids;
    size_t count;
    int64_t budget_violations;
};

/* Pods by their UID: {"UID": ...} in meta victims, else whole objects. */
static bool read_victim_pods(struct pull *json, struct arena *arena, void *field)
{
    static const struct pull_field meta[] = {FIELD("uid", PULL_STRING, victim, uid)};
    static const struct pull_field fields[] = {
        FIELD("UID", PULL_STRING, victim, uid),
        {.key = "metadata", .type = PULL_OBJECT, PULL_MEMBERS(meta)},
    };
    struct victims *victims = field;
    void *items = NULL;

    if (!pull_field_array(json, PULL_CASE_FOLD, fields, PULL_FIELD_COUNT(fields),
                          sizeof(struct victim), arena, &items, &victims->count))
        return false;
    victims->uids = items;
    for (size_t i = 0; i < victims->count; i++)
        if (victims->uids[i].len == 0 || victims->uids[i].len > UID_TEXT_BYTES)
            return pull_problem(json, "a victim without UID, or with one of over 36 bytes");
    return true;
}

static bool add_candidate(struct preempt_request *request, struct slice node,
                          const struct victims *victims, struct arena *arena)
{
    struct candidate *grown =
        arena_grow(arena, request->candidates, request->candidate_count, sizeof *grown);
    struct slice name = arena_printf(arena, "%.*s", SLICE_ARG(node));

    if (grown == NULL || name.ptr == NULL)
        return false;
    request->candidates = grown;
    grown[request->candidate_count++] = (struct candidate){
        .node = name,
        .offered = victims->uids,
        .offered_count = victims->count,
        .offered_violations = victims->budget_violations,
    };
    return true;
}

/* {"node-1": {"Pods": [...], "NumPDBViolations": 0}, ...} */
static bool read_candidates(struct pull *json, struct arena *arena, void *field)
{
    static const struct pull_field fields[] = {
        READ("Pods", victims, uids, read_victim_pods),
        FIELD("NumPDBViolations", PULL_INTEGER, victims, budget_violations),
    };
    struct slice node;

    if (!pull_object(json))
        return json->problem == NULL;
    while (pull_key(json, &node)) {
        struct victims victims = {0};
        if (!check_node_name(json, node))
            return false;
        char kept[PULL_KEY_MAX];
        if (node.ptr == json->key) /* the reader's own memory, which the next key overwrites */
            node.ptr = memcpy(kept, node.ptr, node.len);
        if (!pull_fields(json, PULL_CASE_FOLD, fields, PULL_FIELD_COUNT(fields), arena, &victims))
            return false;
        if (victims.budget_violations < 0 || victims.budget_violations > INT32_MAX)
            return pull_problem(json, "NumPDBViolations: expected 0 to 2147483647");
        if (!add_candidate(field, node, &victims, arena))
            return pull_problem(json, too_big);
    }
    return json->problem == NULL;
}

static int compare_names(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* No node is named twice, nor in both maps: the answer has each once. */
static int check_candidates(const struct preempt_request *request, struct arena *arena,
                            struct error *err)
{
    size_t count = request->candidate_count;
    struct slice *names = arena_alloc(arena, count * sizeof *names);

    if (names == NULL)
        return error_set(err, ERROR_INVALID, "body: %s", too_big);
    for (size_t i = 0; i < count; i++)
        names[i] = request->candidates[i].node;
    if (count != 0)
        qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 1; i < count; i++)
        if (slice_equal(names[i - 1], names[i]))
            return error_set(err, ERROR_INVALID, "body: node \"%.*s\" is named twice",
                             SLICE_ARG(names[i]));
    return 0;
}

int protocol_read_preempt(struct preempt_request *out, struct slice body, struct arena *arena,
                          struct error *err)
{
    /* both maps fill the same list; the scheduler sends one, and null for the other */
    static const struct pull_field fields[] = {
        READ("Pod", preempt_request, pod, read_pod),
        {.key = "NodeNameToVictims", .type = PULL_READ, .read = read_candidates},
        {.key = "NodeNameToMetaVictims", .type = PULL_READ, .read = read_candidates},
    };

    *out = (struct preempt_request){0};
    if (read_body(fields, PULL_FIELD_COUNT(fields), body, arena, out, err) < 0 ||
        check_pod(&out->pod, err) < 0)
        return err->code;
    return check_candidates(out, arena, err);
}

static void put_meta_pod(struct buf *out, struct slice uid, bool is_first)
{
    buf_put(out, is_first ? SLICE("{\"UID\":") : SLICE(",{\"UID\":"));
    buf_json(out, uid);
    buf_put(out, SLICE("}"));
}

size_t protocol_write_preempt(struct buf *out, const struct preempt_request *request)
{
    size_t kept = 0;

    buf_put(out, SLICE("{\"NodeNameToMetaVictims\":{"));
    for (size_t i = 0; i < request->candidate_count; i++) {
        const struct candidate *candidate = &request->candidates[i];
        char uid[UID_TEXT_BYTES];
        if (!candidate->keeps_node || candidate->offered_count + candidate->added_count == 0)
            continue;
        buf_put(out, kept++ == 0 ? SLICE("") : SLICE(","));
        buf_json(out, candidate->node);
        buf_put(out, SLICE(":{\"Pods\":["));
        for (size_t j = 0; j < candidate->offered_count; j++)
            put_meta_pod(out, candidate->offered[j], j == 0);
        for (size_t j = 0; j < candidate->added_count; j++)
            put_meta_pod(out, uid_text(&candidate->added[j]->uid, uid),
                         candidate->offered_count + j == 0);
        buf_printf(out, "],\"NumPDBViolations\":%lld}",
                   (long long)candidate->offered_violations +
                       (long long)candidate->added_violations);
    }
    buf_put(out, SLICE("}}"));
    return kept;
}

/* ---- bind ---- */

int protocol_read_bind(struct bind_request *out, struct slice body, struct arena *arena,
                       struct error *err)
{
    static const struct pull_field fields[] = {
        FIELD("PodName", PULL_STRING, bind_request, pod_name),
        FIELD("PodNamespace", PULL_STRING, bind_request, pod_namespace),
        FIELD("PodUID", PULL_STRING, bind_request, pod_uid),
        FIELD("Node", PULL_STRING, bind_request, node),
    };
    const struct {
        const char *key;
        const struct slice *value;
        size_t max;
    } required[] = {
        {"PodName", &out->pod_name, POD_NAME_BYTES_MAX},
        {"PodNamespace", &out->pod_namespace, POD_NAME_BYTES_MAX},
        {"PodUID", &out->pod_uid, UID_TEXT_BYTES},
        {"Node", &out->node, POD_NAME_BYTES_MAX},
    };

    *out = (struct bind_request){0};
    if (read_body(fields, PULL_FIELD_COUNT(fields), body, arena, out, err) < 0)
        return err->code;
    for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
        if (required[i].value->len == 0)
            return error_set(err, ERROR_INVALID, "body: %s is missing", required[i].key);
        if (limit(*required[i].value, required[i].max, required[i].key, err) < 0)
            return err->code;
    }
    return 0;
}

void protocol_write_error(struct buf *out, struct slice message)
{
    buf_put(out, SLICE("{\"Error\":"));
    buf_json(out, message);
    buf_put(out, SLICE("}"));
}
