#include "extender/serving/protocol/protocol.h"

#include <stdlib.h>

#include "extender/serving/protocol/protocol_internal.h"

enum { REASON_BYTES_MAX = 1024 };

int protocol_read_body(const struct pull_field *fields, size_t count, struct slice body,
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

bool protocol_pull_pod(struct pull *json, struct arena *arena, void *field)
{
    return pod_read(json, arena, field);
}

int protocol_check_required(const struct protocol_required *rows, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (rows[i].value->len == 0 && !rows[i].may_be_empty)
            return error_set(err, ERROR_INVALID, "body: %s is missing", rows[i].path);
        if (rows[i].value->len > rows[i].max)
            return error_set(err, ERROR_INVALID, "body: %s has over %zu bytes", rows[i].path,
                             rows[i].max);
    }
    return 0;
}

struct slice protocol_shorten(struct slice reason)
{
    size_t length = REASON_BYTES_MAX;

    if (reason.len <= REASON_BYTES_MAX)
        return reason;
    while (length != 0 && ((unsigned char)reason.ptr[length] & 0xC0U) == 0x80)
        length--;
    return (struct slice){reason.ptr, length};
}

int protocol_limit_pod(const struct pod_object *pod, struct error *err)
{
    const struct protocol_required uid = {"Pod.metadata.uid", &pod->meta.uid, UID_TEXT_BYTES, true};

    return protocol_check_required(&uid, 1, err);
}

int protocol_check_pod(const struct pod_object *pod, struct error *err)
{
    if (pod->meta.name.len == 0)
        return error_set(err, ERROR_INVALID, "body: Pod is missing");
    return protocol_limit_pod(pod, err);
}

bool protocol_check_node_name(struct pull *json, struct slice name)
{
    if (name.len == 0)
        return pull_problem(json, "a node without a name");
    return name.len <= POD_NAME_BYTES_MAX || pull_problem(json, "a name of over 253 bytes");
}

int protocol_read_pod(struct pod_object *out, struct slice body, struct arena *arena,
                      struct error *err)
{
    static const struct pull_field fields[] = {
        {.key = "Pod", .type = PULL_READ, .read = protocol_pull_pod}};

    *out = (struct pod_object){0};
    if (protocol_read_body(fields, PULL_FIELD_COUNT(fields), body, arena, out, err) < 0)
        return err->code;
    return protocol_check_pod(out, err);
}

/* ---- bind ---- */

int protocol_read_bind(struct bind_request *out, struct slice body, struct arena *arena,
                       struct error *err)
{
    static const struct pull_field fields[] = {
        PULL_FIELD("PodName", PULL_STRING, bind_request, pod.name),
        PULL_FIELD("PodNamespace", PULL_STRING, bind_request, pod.ns),
        PULL_FIELD("PodUID", PULL_STRING, bind_request, pod.uid),
        PULL_FIELD("Node", PULL_STRING, bind_request, node),
    };
    const struct protocol_required required[] = {
        {"PodName", &out->pod.name, POD_NAME_BYTES_MAX, false},
        {"PodNamespace", &out->pod.ns, POD_NAME_BYTES_MAX, false},
        {"PodUID", &out->pod.uid, UID_TEXT_BYTES, false},
        {"Node", &out->node, POD_NAME_BYTES_MAX, false},
    };

    *out = (struct bind_request){.pod.kind = KIND_POD};
    if (protocol_read_body(fields, PULL_FIELD_COUNT(fields), body, arena, out, err) < 0)
        return err->code;
    return protocol_check_required(required, sizeof required / sizeof *required, err);
}

void protocol_write_error(struct buf *out, struct slice message)
{
    buf_put(out, SLICE("{\"Error\":"));
    buf_json(out, message);
    buf_put(out, SLICE("}"));
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
    static const struct pull_field meta[] = {PULL_FIELD("uid", PULL_STRING, victim, uid)};
    static const struct pull_field fields[] = {
        PULL_FIELD("UID", PULL_STRING, victim, uid),
        PULL_NESTED("metadata", meta),
    };
    struct victims *victims = field;
    struct pull_items items = {.size = sizeof(struct victim)};

    if (!pull_field_array(json, PULL_CASE_FOLD, fields, PULL_FIELD_COUNT(fields), arena, &items))
        return false;
    victims->uids = items.items;
    victims->count = items.count;
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
    struct slice name = arena_copy(arena, node);

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
        PULL_READER("Pods", victims, uids, read_victim_pods),
        PULL_FIELD("NumPDBViolations", PULL_INTEGER, victims, budget_violations),
    };
    struct slice node;

    if (!pull_object(json))
        return json->problem == NULL;
    while (pull_key(json, &node)) {
        struct victims victims = {0};
        if (!protocol_check_node_name(json, node))
            return false;
        char kept[PULL_KEY_MAX];
        if (node.ptr == json->key) /* the reader's own memory, which the next key overwrites */
            node.ptr = memcpy(kept, node.ptr, node.len);
        if (!pull_fields(json, PULL_CASE_FOLD, fields, PULL_FIELD_COUNT(fields), arena, &victims))
            return false;
        if (victims.budget_violations < 0 || victims.budget_violations > INT32_MAX)
            return pull_problem(json, "NumPDBViolations: expected 0 to 2147483647");
        if (!add_candidate(field, node, &victims, arena))
            return pull_problem(json, pull_too_big);
    }
    return json->problem == NULL;
}

/* No node is named twice, nor in both maps: the answer has each once. */
static int check_candidates(const struct preempt_request *request, struct arena *arena,
                            struct error *err)
{
    size_t count = request->candidate_count;
    struct slice *names = arena_alloc(arena, count * sizeof *names);

    if (names == NULL)
        return error_set(err, ERROR_INVALID, "body: %s", pull_too_big);
    for (size_t i = 0; i < count; i++)
        names[i] = request->candidates[i].node;
    if (count != 0)
        qsort(names, count, sizeof *names, slice_order);
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
        PULL_READER("Pod", preempt_request, pod, protocol_pull_pod),
        {.key = "NodeNameToVictims", .type = PULL_READ, .read = read_candidates},
        {.key = "NodeNameToMetaVictims", .type = PULL_READ, .read = read_candidates},
    };

    *out = (struct preempt_request){0};
    if (protocol_read_body(fields, PULL_FIELD_COUNT(fields), body, arena, out, err) < 0 ||
        protocol_check_pod(&out->pod, err) < 0)
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

/*
 * ---- Volcano ----
 *
 * What its plug-in `extender` sends and reads (pkg/scheduler/plugins/extender/argument.go). The
 * keys `task`, `node`, `status` and `code` have tags; all others are the names of Go's fields.
 */

/* The codes of volcano.sh/volcano/pkg/scheduler/api. */
enum { VOLCANO_SUCCESS = 0, VOLCANO_ERROR = 1, VOLCANO_UNSCHEDULABLE_AND_UNRESOLVABLE = 3 };

int protocol_read_predicate(struct predicate_request *out, struct slice body, struct arena *arena,
                            struct error *err)
{
    static const struct pull_field task[] = {
        PULL_READER("Pod", predicate_request, pod, protocol_pull_pod)};
    static const struct pull_field node[] = {
        PULL_FIELD("Name", PULL_STRING, predicate_request, node)};
    static const struct pull_field fields[] = {
        PULL_NESTED("task", task),
        PULL_NESTED("node", node),
    };
    const struct protocol_required node_name = {"node.Name", &out->node, POD_NAME_BYTES_MAX, false};

    *out = (struct predicate_request){.node = {NULL, 0}};
    if (protocol_read_body(fields, PULL_FIELD_COUNT(fields), body, arena, out, err) < 0 ||
        protocol_check_pod(&out->pod, err) < 0)
        return err->code;
    return protocol_check_required(&node_name, 1, err);
}

/*
 * Volcano's own preemption chooses victims on the node by their resources, and cannot know which of
 * them has the claim. It looks at each node that is Unschedulable, so no answer is.
 */
static int code_for_volcano(enum verdict_code code)
{
    return code == CODE_ERROR ? VOLCANO_ERROR : VOLCANO_UNSCHEDULABLE_AND_UNRESOLVABLE;
}

void protocol_write_predicate(struct buf *out, enum verdict_code code, struct slice reason)
{
    if (!code_is_rejection(code)) {
        buf_printf(out, "{\"status\":\"\",\"code\":%d}", VOLCANO_SUCCESS);
        return;
    }
    /* Volcano takes an empty text for a pod that passes, whatever the code is */
    reason = reason.len == 0 ? SLICE("out of memory") : protocol_shorten(reason);
    buf_put(out, SLICE("{\"status\":"));
    buf_json(out, reason);
    buf_printf(out, ",\"code\":%d}", code_for_volcano(code));
}
