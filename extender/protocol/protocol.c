#include "extender/protocol/protocol_internal.h"

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

int protocol_limit(struct slice name, size_t max, const char *what, struct error *err)
{
    return name.len <= max
               ? 0
               : error_set(err, ERROR_INVALID, "body: %s has over %zu bytes", what, max);
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
    return protocol_limit(pod->meta.uid, UID_TEXT_BYTES, "Pod.metadata.uid", err);
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
        PULL_FIELD("PodName", PULL_STRING, bind_request, pod_name),
        PULL_FIELD("PodNamespace", PULL_STRING, bind_request, pod_namespace),
        PULL_FIELD("PodUID", PULL_STRING, bind_request, pod_uid),
        PULL_FIELD("Node", PULL_STRING, bind_request, node),
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
    if (protocol_read_body(fields, PULL_FIELD_COUNT(fields), body, arena, out, err) < 0)
        return err->code;
    for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
        if (required[i].value->len == 0)
            return error_set(err, ERROR_INVALID, "body: %s is missing", required[i].key);
        if (protocol_limit(*required[i].value, required[i].max, required[i].key, err) < 0)
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
