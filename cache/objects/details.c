#include "cache/objects/details.h"

#include <errno.h>
#include <stdlib.h>

#include "cache/objects/label_selector.h"
#include "cache/objects/objects_internal.h"

/* ---- workloads ---- */

static const struct pull_field claim_template_fields[] = {
    PULL_IN("metadata", PULL_FIELD("name", PULL_NAME, claim_template, name))};

enum { CONTROLLER_FIELDS = OWNER_API_VERSION - OWNER_KIND + 1 };

static bool read_controller(struct pull *json, struct arena *arena, void *field)
{
    struct pull_items owners = {.size = sizeof(struct owner)};

    if (!pull_field_array(json, PULL_CASE_EXACT, &owner_fields[OWNER_KIND], CONTROLLER_FIELDS,
                          arena, &owners))
        return false;
    const struct owner *controller = details_controller(&owners);
    if (controller != NULL)
        *(struct owner *)field = *controller;
    return true;
}

#define CONTROLLER_OF(struct_) \
    { \
        .key = "ownerReferences", .type = PULL_READ, \
        .offset = offsetof(struct struct_, controller), .members = &owner_fields[OWNER_KIND], \
        .count = CONTROLLER_FIELDS, .read = read_controller \
    }

static const struct pull_field workload_annotations[] = {
    PULL_FIELD("deployment.kubernetes.io/revision", PULL_NAME, workload_details, revision),
    PULL_FIELD("argocd.argoproj.io/tracking-id", PULL_NAME, workload_details, argo),
};
static const struct pull_field workload_labels[] = {
    PULL_FIELD("argocd.argoproj.io/instance", PULL_NAME, workload_details, argo),
    PULL_FIELD("kustomize.toolkit.fluxcd.io/name", PULL_NAME, workload_details, flux),
    PULL_FIELD("helm.toolkit.fluxcd.io/name", PULL_NAME, workload_details, flux),
    PULL_FIELD("app.kubernetes.io/managed-by", PULL_NAME, workload_details, manager),
};
static const struct pull_field workload_meta[] = {
    PULL_FIELD("namespace", PULL_NAME, workload_details, ns),
    PULL_FIELD("name", PULL_NAME, workload_details, name),
    PULL_NESTED("annotations", workload_annotations),
    PULL_NESTED("labels", workload_labels),
    CONTROLLER_OF(workload_details),
};
static const struct pull_field workload_spec[] = {
    PULL_FIELD("replicas", PULL_INTEGER, workload_details, replicas),
    PULL_FIELD("suspend", PULL_BOOLEAN, workload_details, is_suspended),
    PULL_FIELD("paused", PULL_BOOLEAN, workload_details, is_paused),
    PULL_IN("strategy", PULL_FIELD("type", PULL_NAME, workload_details, strategy),
            PULL_IN("rollingUpdate", PULL_FIELD("maxSurge", PULL_RAW, workload_details, surge),
                    PULL_FIELD("maxUnavailable", PULL_RAW, workload_details, unavailable))),
    PULL_IN("persistentVolumeClaimRetentionPolicy",
            PULL_FIELD("whenScaled", PULL_NAME, workload_details, when_scaled)),
    PULL_IN("ordinals", PULL_FIELD("start", PULL_INTEGER, workload_details, first_ordinal)),
    PULL_ITEMS_OF("volumeClaimTemplates", workload_details, claim_templates, claim_template,
                  claim_template_fields),
};
static const struct pull_field workload_fields[] = {
    PULL_NESTED("metadata", workload_meta),
    PULL_NESTED("spec", workload_spec),
};
const struct object_tables workload_tables = {.details = TABLE(workload_fields)};

/* ---- HorizontalPodAutoscalers ---- */

static const struct pull_field autoscaler_meta[] = {
    PULL_FIELD("namespace", PULL_NAME, autoscaler_details, ns),
    PULL_FIELD("name", PULL_NAME, autoscaler_details, name),
    CONTROLLER_OF(autoscaler_details),
};
static const struct pull_field target_fields[] = {
    PULL_FIELD("kind", PULL_NAME, autoscaler_details, target_kind),
    PULL_FIELD("name", PULL_NAME, autoscaler_details, target),
};
static const struct pull_field autoscaler_spec[] = {
    PULL_NESTED("scaleTargetRef", target_fields),
    PULL_FIELD("minReplicas", PULL_INTEGER, autoscaler_details, least),
};
static const struct pull_field autoscaler_fields[] = {
    PULL_NESTED("metadata", autoscaler_meta),
    PULL_NESTED("spec", autoscaler_spec),
};
const struct object_tables autoscaler_tables = {.details = TABLE(autoscaler_fields)};

/* ---- reading ---- */

struct pull_table details_table(enum kind kind)
{
    const struct object_tables *tables = object_tables(kind);
    return tables == NULL ? (struct pull_table){NULL, 0} : tables->details;
}

bool details_read(struct slice text, enum kind kind, struct arena *arena, void *out)
{
    struct pull_table table = details_table(kind);
    return pull_fields_of(text, table.fields, table.count, arena, out);
}

/* What the API server accepts. */
static bool is_int32(int64_t number)
{
    return number >= 0 && number <= INT32_MAX;
}

bool workload_details_read(struct slice text, struct arena *arena, struct workload_details *out)
{
    *out = (struct workload_details){.replicas = 1}; /* the default of the API */
    return details_read(text, KIND_DEPLOYMENT, arena, out) && is_int32(out->replicas) &&
           is_int32(out->first_ordinal);
}

bool autoscaler_details_read(struct slice text, struct arena *arena, struct autoscaler_details *out)
{
    *out = (struct autoscaler_details){.least = 1}; /* the default of the API */
    return details_read(text, KIND_AUTOSCALER, arena, out) && is_int32(out->least);
}

#define EVENT_NAME(key_, member_) PULL_FIELD(key_, PULL_NAME, event_details, member_)
static const struct pull_field event_fields[] = {
    PULL_IN("metadata", EVENT_NAME("creationTimestamp", created)),
    PULL_IN("involvedObject", EVENT_NAME("apiVersion", api_version), EVENT_NAME("kind", kind),
            EVENT_NAME("namespace", ns), EVENT_NAME("name", name), EVENT_NAME("uid", uid)),
    PULL_IN("series", EVENT_NAME("lastObservedTime", last_observed),
            PULL_FIELD("count", PULL_INTEGER, event_details, series_count)),
    EVENT_NAME("type", type),
    PULL_FIELD("reason", PULL_BOUNDED, event_details, reason),
    PULL_FIELD("message", PULL_STRING, event_details, message),
    EVENT_NAME("eventTime", event_time),
    EVENT_NAME("lastTimestamp", last_timestamp),
    PULL_FIELD("count", PULL_INTEGER, event_details, count),
};

bool event_details_read(struct slice text, struct arena *arena, struct event_details *out)
{
    *out = (struct event_details){.count = 0};
    return pull_fields_of(text, event_fields, PULL_FIELD_COUNT(event_fields), arena, out);
}

struct autoscaler_list {
    struct slice rest; /* metadata.continue */
    struct pull_items items;
};

static const struct pull_field list_fields[] = {
    PULL_IN("metadata", PULL_FIELD("continue", PULL_STRING, autoscaler_list, rest)),
    PULL_ITEMS_OF("items", autoscaler_list, items, autoscaler_details, autoscaler_fields),
};

bool autoscaler_list_read(struct slice text, struct arena *arena, struct pull_items *out)
{
    struct autoscaler_list list = {.rest = {"", 0}};

    if (!pull_fields_of(text, list_fields, PULL_FIELD_COUNT(list_fields), arena, &list) ||
        list.rest.len != 0)
        return false;
    *out = list.items;
    return true;
}

/* ---- lists ---- */

const struct owner *details_controller(const struct pull_items *owners)
{
    const struct owner *items = owners->items;

    for (size_t i = 0; i < owners->count; i++)
        if (items[i].is_controller)
            return &items[i];
    return NULL;
}

const struct condition *details_condition(const struct pull_items *conditions, struct slice type)
{
    const struct condition *items = conditions->items;

    for (size_t i = 0; i < conditions->count; i++)
        if (slice_equal(items[i].type, type))
            return &items[i];
    return NULL;
}

/* ---- projection ---- */

int object_project(struct slice text, enum kind kind, const struct pull_table *more,
                   struct buf *out, struct error *err)
{
    struct buf fields;
    struct pull json;

    buf_init(&fields, out->max_bytes);
    pull_init(&json, text);
    const struct object_tables *own = object_tables(kind);
    struct pull_tables tables = {{own->core, own->details}};
    if (more != NULL)
        tables.readers[2] = *more;
    bool is_good = pull_project(&json, &tables, &fields) && pull_finish(&json);
    if (is_good) {
        buf_printf(out, "{\"apiVersion\":\"%s\",\"kind\":\"%s\"%s", kind_api_version(kind),
                   kind_text(kind), fields.len > 2 ? "," : "");
        if (fields.len != 0)
            buf_put(out, (struct slice){fields.bytes + 1, fields.len - 1}); /* without its brace */
    }
    bool has_failed = fields.failed || out->failed;
    buf_dispose(&fields);
    if (!is_good)
        return pull_fail(&json, kind_resource(kind), (struct place){1, 1}, err);
    return has_failed ? error_no_memory(err) : 0;
}

/* ---- node selectors ---- */

static const struct pull_field requirement_fields[] = {
    PULL_FIELD("key", PULL_STRING, node_requirement, key),
    PULL_FIELD("operator", PULL_STRING, node_requirement, operator),
    PULL_READER("values", node_requirement, values, words_read_items),
};

const struct pull_field node_term_fields[NODE_TERM_FIELDS] = {
    PULL_ITEMS_OF("matchExpressions", node_term, expressions, node_requirement, requirement_fields),
    PULL_ITEMS_OF("matchFields", node_term, fields, node_requirement, requirement_fields),
};

/* As strconv.ParseInt of Go: no blanks before the number, and nothing behind it. */
static bool parse_number(struct slice text, long long *out)
{
    char digits[24], *end;

    if (text.len == 0 || text.len >= sizeof digits)
        return false;
    memcpy(digits, text.ptr, text.len);
    digits[text.len] = '\0';
    if (digits[0] != '+' && digits[0] != '-' && (digits[0] < '0' || digits[0] > '9'))
        return false;
    errno = 0;
    *out = strtoll(digits, &end, 10);
    return errno == 0 && end == digits + text.len;
}

/* Gt and Lt. */
static bool compares(const struct node_requirement *requirement, struct slice value, bool is_less)
{
    const struct slice *limit = requirement->values.items;
    long long x, y;

    return requirement->values.count == 1 && parse_number(value, &x) && parse_number(*limit, &y) &&
           (is_less ? x < y : x > y);
}

/* value: of the label; has: whether there is one. */
static bool is_met(const struct node_requirement *requirement, bool has, struct slice value)
{
    bool is_among =
        has && slice_is_among(value, requirement->values.items, requirement->values.count);

    if (slice_equal(requirement->operator, SLICE("In")))
        return is_among;
    if (slice_equal(requirement->operator, SLICE("NotIn")))
        return !is_among;
    if (slice_equal(requirement->operator, SLICE("Exists")))
        return has;
    if (slice_equal(requirement->operator, SLICE("DoesNotExist")))
        return !has;
    if (slice_equal(requirement->operator, SLICE("Gt")))
        return has && compares(requirement, value, false);
    return slice_equal(requirement->operator, SLICE("Lt")) && has &&
           compares(requirement, value, true);
}

static bool term_matches(const struct node_term *term, struct slice node, struct slice labels)
{
    const struct node_requirement *expressions = term->expressions.items;
    const struct node_requirement *fields = term->fields.items;

    for (size_t i = 0; i < term->expressions.count; i++) {
        struct slice value = SLICE("");
        bool has = labels_find(labels, expressions[i].key, &value);
        if (!is_met(&expressions[i], has, value))
            return false;
    }
    for (size_t i = 0; i < term->fields.count; i++)
        if (!slice_equal(fields[i].key, SLICE("metadata.name")) || !is_met(&fields[i], true, node))
            return false;
    return term->expressions.count + term->fields.count != 0;
}

bool node_terms_match(const struct pull_items *terms, struct slice node, struct slice labels)
{
    const struct node_term *items = terms->items;

    for (size_t i = 0; i < terms->count; i++)
        if (term_matches(&items[i], node, labels))
            return true;
    return false;
}

/* "in", ...; else the operator itself. */
static struct slice operator_text(struct slice operator)
{
    static const struct {
        const char *operator, * text;
    } rows[] = {{"In", " in "},        {"NotIn", " not in "},
                {"Exists", " exists"}, {"DoesNotExist", " does not exist"},
                {"Gt", " > "},         {"Lt", " < "}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (slice_equal(operator, slice_of(rows[i].operator)))
            return slice_of(rows[i].text);
    return operator;
}

static bool put_requirements(const struct pull_items *items, bool *is_first, struct arena *arena,
                             struct slice *text)
{
    const struct node_requirement *requirements = items->items;
    bool ok = true;

    for (size_t i = 0; i < items->count && ok; i++) {
        const struct slice *values = requirements[i].values.items;
        ok = arena_append(arena, text, *is_first ? SLICE("") : SLICE(" and ")) &&
             arena_append(arena, text, requirements[i].key) &&
             arena_append(arena, text, operator_text(requirements[i].operator));
        for (size_t j = 0; j < requirements[i].values.count && ok; j++)
            ok = arena_append(arena, text, j == 0 ? SLICE("") : SLICE(", ")) &&
                 arena_append(arena, text, values[j]);
        *is_first = false;
    }
    return ok;
}

struct slice node_terms_text(const struct pull_items *terms, struct arena *arena)
{
    const struct node_term *items = terms->items;
    struct slice text = SLICE("");
    bool ok = true;

    for (size_t i = 0; i < terms->count && ok; i++) {
        bool is_first = true;
        ok = arena_append(arena, &text, i == 0 ? SLICE("") : SLICE("; or ")) &&
             put_requirements(&items[i].expressions, &is_first, arena, &text) &&
             put_requirements(&items[i].fields, &is_first, arena, &text);
    }
    return ok ? text : (struct slice){NULL, 0};
}
