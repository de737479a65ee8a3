/* Details of Deployments, StatefulSets, and others that `kubectl scale` scales. */
#include "cache/objects/details.h"
#include "cache/objects/objects_internal.h"

static const struct pull_field claim_template_meta[] = {
    PULL_FIELD("name", PULL_STRING, claim_template, name),
};
static const struct pull_field claim_template_fields[] = {
    PULL_NESTED("metadata", claim_template_meta)};

static bool read_claim_templates(struct pull *json, struct arena *arena, void *field)
{
    ((struct pull_items *)field)->size = sizeof(struct claim_template);
    return pull_field_array(json, PULL_CASE_EXACT, claim_template_fields,
                            PULL_FIELD_COUNT(claim_template_fields), arena, field);
}

static const struct pull_field workload_annotations[] = {
    PULL_FIELD("deployment.kubernetes.io/revision", PULL_STRING, workload_details, revision),
};
static const struct pull_field workload_meta[] = {
    PULL_FIELD("namespace", PULL_STRING, workload_details, ns),
    PULL_FIELD("name", PULL_STRING, workload_details, name),
    PULL_NESTED("annotations", workload_annotations),
};
static const struct pull_field strategy_fields[] = {
    PULL_FIELD("type", PULL_STRING, workload_details, strategy),
};
static const struct pull_field retention_fields[] = {
    PULL_FIELD("whenScaled", PULL_STRING, workload_details, when_scaled),
};
static const struct pull_field ordinals_fields[] = {
    PULL_FIELD("start", PULL_INTEGER, workload_details, first_ordinal),
};
static const struct pull_field workload_spec[] = {
    PULL_FIELD("replicas", PULL_INTEGER, workload_details, replicas),
    PULL_NESTED("strategy", strategy_fields),
    PULL_NESTED("persistentVolumeClaimRetentionPolicy", retention_fields),
    PULL_NESTED("ordinals", ordinals_fields),
    PULL_READER("volumeClaimTemplates", workload_details, claim_templates, read_claim_templates),
};
static const struct pull_field workload_fields[] = {
    PULL_NESTED("metadata", workload_meta),
    PULL_NESTED("spec", workload_spec),
};

/* What the API server accepts. */
static bool is_int32(int64_t number)
{
    return number >= 0 && number <= INT32_MAX;
}

bool workload_details_read(struct slice text, struct arena *arena, struct workload_details *out)
{
    struct pull json;

    *out = (struct workload_details){.replicas = 1}; /* the default of the API */
    pull_init(&json, text);
    return pull_fields(&json, PULL_CASE_EXACT, workload_fields, PULL_FIELD_COUNT(workload_fields),
                       arena, out) &&
           pull_finish(&json) && is_int32(out->replicas) && is_int32(out->first_ordinal);
}
