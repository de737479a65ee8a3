/* What kube-scheduler says on a pod that it has tried. */
#include "cache/objects/objects_internal.h"

/*
 * Of its plug-in VolumeRestrictions, what all versions have in common:
 *
 *   node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already
 *   in-use by another pod                                                                  1.37
 *   node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode
 */
static const char refusal[] = "ReadWriteOncePod access mode";

/* Of our own, which also says which pod. */
static const char named[] = " is in use by pod ";

struct condition {
    struct slice type, status, reason, message;
};

const struct pull_field pod_condition_fields[POD_CONDITION_FIELDS] = {
    PULL_FIELD("type", PULL_STRING, condition, type),
    PULL_FIELD("status", PULL_STRING, condition, status),
    PULL_FIELD("reason", PULL_STRING, condition, reason),
    PULL_FIELD("message", PULL_STRING, condition, message),
};

static bool is_refusal(const struct condition *condition)
{
    return slice_equal(condition->type, SLICE("PodScheduled")) &&
           slice_equal(condition->status, SLICE("False")) &&
           slice_equal(condition->reason, SLICE("Unschedulable")) &&
           slice_has(condition->message, slice_of(refusal)) &&
           !slice_has(condition->message, slice_of(named));
}

/* Nearly no pod has the text, and for the others a search for it is all that this costs. No verdict
 * reads conditions, so those that cannot be read count as none. */
bool read_pod_conditions(struct pull *json, struct arena *arena, void *field)
{
    struct pull_items items = {.size = sizeof(struct condition)};
    struct pull conditions;
    struct slice text;

    if (!pull_raw(json, &text))
        return false;
    if (!slice_has(text, slice_of(refusal)))
        return true;
    pull_init(&conditions, text);
    if (!pull_field_array(&conditions, PULL_CASE_EXACT, pod_condition_fields, POD_CONDITION_FIELDS,
                          arena, &items))
        return true;
    const struct condition *found = items.items;
    for (size_t i = 0; i < items.count; i++)
        *(bool *)field = *(bool *)field || is_refusal(&found[i]);
    return true;
}
