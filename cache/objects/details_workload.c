/* Details of Deployments, StatefulSets, Jobs, and others that create pods. */
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

static bool read_controller(struct pull *json, struct arena *arena, void *field)
{
    struct pull_items owners = {.count = 0};

    if (!details_read_owners(json, arena, &owners))
        return false;
    const struct owner *controller = details_controller(&owners);
    if (controller != NULL)
        *(struct owner *)field = *controller;
    return true;
}

static const struct pull_field workload_annotations[] = {
    PULL_FIELD("deployment.kubernetes.io/revision", PULL_STRING, workload_details, revision),
    PULL_FIELD("argocd.argoproj.io/tracking-id", PULL_STRING, workload_details, argo),
};
static const struct pull_field workload_labels[] = {
    PULL_FIELD("argocd.argoproj.io/instance", PULL_STRING, workload_details, argo),
    PULL_FIELD("kustomize.toolkit.fluxcd.io/name", PULL_STRING, workload_details, flux),
    PULL_FIELD("helm.toolkit.fluxcd.io/name", PULL_STRING, workload_details, flux),
};
static const struct pull_field workload_meta[] = {
    PULL_FIELD("namespace", PULL_STRING, workload_details, ns),
    PULL_FIELD("name", PULL_STRING, workload_details, name),
    PULL_NESTED("annotations", workload_annotations),
    PULL_NESTED("labels", workload_labels),
    PULL_READER("ownerReferences", workload_details, controller, read_controller),
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
    PULL_FIELD("suspend", PULL_BOOLEAN, workload_details, is_suspended),
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

/* ---- HorizontalPodAutoscalers ---- */

static const struct pull_field autoscaler_meta[] = {
    PULL_FIELD("namespace", PULL_STRING, autoscaler_details, ns),
    PULL_FIELD("name", PULL_STRING, autoscaler_details, name),
    PULL_READER("ownerReferences", autoscaler_details, controller, read_controller),
};
static const struct pull_field target_fields[] = {
    PULL_FIELD("kind", PULL_STRING, autoscaler_details, target_kind),
    PULL_FIELD("name", PULL_STRING, autoscaler_details, target),
};
static const struct pull_field autoscaler_spec[] = {
    PULL_NESTED("scaleTargetRef", target_fields),
    PULL_FIELD("minReplicas", PULL_INTEGER, autoscaler_details, least),
};
static const struct pull_field autoscaler_fields[] = {
    PULL_NESTED("metadata", autoscaler_meta),
    PULL_NESTED("spec", autoscaler_spec),
};

bool autoscaler_details_read(struct slice text, struct arena *arena, struct autoscaler_details *out)
{
    struct pull json;

    *out = (struct autoscaler_details){.least = 1}; /* the default of the API */
    pull_init(&json, text);
    return pull_fields(&json, PULL_CASE_EXACT, autoscaler_fields,
                       PULL_FIELD_COUNT(autoscaler_fields), arena, out) &&
           pull_finish(&json) && is_int32(out->least);
}

struct autoscaler_list {
    struct slice rest; /* metadata.continue */
    struct pull_items items;
};

static bool read_autoscalers(struct pull *json, struct arena *arena, void *field)
{
    ((struct pull_items *)field)->size = sizeof(struct autoscaler_details);
    return pull_field_array(json, PULL_CASE_EXACT, autoscaler_fields,
                            PULL_FIELD_COUNT(autoscaler_fields), arena, field);
}

static const struct pull_field list_meta[] = {
    PULL_FIELD("continue", PULL_STRING, autoscaler_list, rest),
};
static const struct pull_field list_fields[] = {
    PULL_NESTED("metadata", list_meta),
    PULL_READER("items", autoscaler_list, items, read_autoscalers),
};

bool autoscaler_list_read(struct slice text, struct arena *arena, struct pull_items *out)
{
    struct autoscaler_list list = {.rest = {"", 0}};
    struct pull json;

    pull_init(&json, text);
    if (!pull_fields(&json, PULL_CASE_EXACT, list_fields, PULL_FIELD_COUNT(list_fields), arena,
                     &list) ||
        !pull_finish(&json) || list.rest.len != 0)
        return false;
    *out = list.items;
    return true;
}
