#include "support/node_policy.h"

#include "policy/policy.h"

static void pass(struct verdict *out, struct arena *arena, struct node_filter filter)
{
    struct node_filter *copy = arena_alloc(arena, sizeof *copy);

    if (copy == NULL) {
        verdict_out_of_memory(out);
        return;
    }
    *copy = filter;
    *out = (struct verdict){.code = CODE_SUCCESS, .nodes = copy};
}

static void prefilter_listed(const struct view *view, const struct pod_object *pod,
                             struct arena *arena, struct verdict *out)
{
    static const struct slice names[] = {{"node-2", 6}, {"node-4", 6}};

    (void)view;
    *out = (struct verdict){.code = CODE_SKIP};
    if (slice_has(pod->meta.name, SLICE("listed")))
        pass(out, arena,
             (struct node_filter){.names = names,
                                  .count = 2,
                                  .reason = SLICE(NODE_POLICY_LISTED),
                                  .nominates = true});
}

static void check_nodes(const void *context, const struct slice *nodes, size_t count,
                        struct arena *arena, struct slice *reasons)
{
    (void)context, (void)arena;
    for (size_t i = 0; i < count; i++)
        reasons[i] = nodes[i].len != 0 && (nodes[i].ptr[nodes[i].len - 1] & 1) == 0
                         ? SLICE("")
                         : SLICE(NODE_POLICY_TESTED);
}

static void prefilter_tested(const struct view *view, const struct pod_object *pod,
                             struct arena *arena, struct verdict *out)
{
    struct object_reference driver = {.kind = KIND_CSI_NODE, .name = SLICE(NODE_POLICY_AWAITED)};

    (void)view;
    *out = (struct verdict){.code = CODE_SKIP};
    if (slice_has(pod->meta.name, SLICE("tested")))
        pass(out, arena, (struct node_filter){.check = check_nodes});
    if (out->code == CODE_SUCCESS && slice_has(pod->meta.name, SLICE("waiting")))
        (void)verdict_add_awaited(out, arena, &driver);
}

static bool has_inline_volume(const struct pod_object *pod)
{
    for (uint32_t i = 0; pod->mounts != NULL && i < pod->mounts->volume_count; i++)
        if (pod->mounts->volumes[i].source == VOLUME_SOURCE_CSI)
            return true;
    return false;
}

static void prefilter_warned(const struct view *view, const struct pod_object *pod,
                             struct arena *arena, struct verdict *out)
{
    static const struct slice names[] = {{"node-1", 6}};
    bool is_doomed = slice_has(pod->meta.name, SLICE("doomed"));

    (void)view;
    *out = (struct verdict){.code = CODE_SKIP};
    if (!is_doomed && !slice_has(pod->meta.name, SLICE("warned")))
        return;
    out->code = CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
    if (is_doomed && !verdict_add_reason(out, arena, SLICE(NODE_POLICY_DOOMED)))
        return;
    if (has_inline_volume(pod) && !verdict_add_reason(out, arena, SLICE(NODE_POLICY_INLINE)))
        return;
    if (out->reason_count == 0)
        pass(out, arena,
             (struct node_filter){.names = names, .count = 1, .reason = SLICE(NODE_POLICY_WARNED)});
}

static int mode_of_warned(const struct config *config)
{
    return config->read_write_once.mode;
}

static const struct policy listed = {.name = "Listed", .prefilter = prefilter_listed};
static const struct policy tested = {
    .name = "Tested",
    .reads = (1U << KIND_WATCHED_COUNT) - 1,
    .prefilter = prefilter_tested,
};
static const struct policy warned = {
    .name = "Warned", .mode = mode_of_warned, .prefilter = prefilter_warned};

const struct policy *const policies[POLICIES_MAX + 1] = {&read_write_once_pod, &listed, &tested,
                                                         &warned, NULL};
