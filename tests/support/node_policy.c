#include "support/node_policy.h"

#include "policy/read_write_once_pod.h"

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

static bool test_node(const void *context, struct slice node, struct arena *arena,
                      struct slice *reason)
{
    (void)context, (void)arena;
    *reason = SLICE(NODE_POLICY_TESTED);
    return node.len != 0 && (node.ptr[node.len - 1] & 1) == 0;
}

static void prefilter_tested(const struct view *view, const struct pod_object *pod,
                             struct arena *arena, struct verdict *out)
{
    (void)view;
    *out = (struct verdict){.code = CODE_SKIP};
    if (slice_has(pod->meta.name, SLICE("tested")))
        pass(out, arena, (struct node_filter){.test = test_node});
}

static const struct policy listed = {.name = "Listed", .prefilter = prefilter_listed};
static const struct policy tested = {.name = "Tested", .prefilter = prefilter_tested};

const struct policy *const policies[] = {&read_write_once_pod, &listed, &tested, NULL};
