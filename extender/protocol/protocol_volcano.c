/*
 * What Volcano's plug-in `extender` sends and reads (pkg/scheduler/plugins/extender/argument.go).
 * The keys `task`, `node`, `status` and `code` have tags; all others are the names of Go's fields.
 */
#include "extender/protocol/protocol_internal.h"

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
        {.key = "task", .type = PULL_OBJECT, PULL_MEMBERS(task)},
        {.key = "node", .type = PULL_OBJECT, PULL_MEMBERS(node)},
    };

    *out = (struct predicate_request){.node = {NULL, 0}};
    if (protocol_read_body(fields, PULL_FIELD_COUNT(fields), body, arena, out, err) < 0 ||
        protocol_check_pod(&out->pod, err) < 0)
        return err->code;
    if (out->node.len == 0)
        return error_set(err, ERROR_INVALID, "body: node.Name is missing");
    return protocol_limit(out->node, POD_NAME_BYTES_MAX, "node.Name", err);
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
