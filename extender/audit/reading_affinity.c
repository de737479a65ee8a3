/* Affinities that pods require. */
#include "extender/audit/reading_internal.h"

#define HOSTNAME "kubernetes.io/hostname"

/* matchExpressions or matchFields of a term. */
struct expression_reading {
    struct slice key, operator;
    size_t values;
};

struct term_reading {
    bool is_host; /* it allows one node, by its name */
};

static bool count_values(struct pull *json, struct arena *arena, void *field)
{
    if (!pull_array(json))
        return json->problem == NULL;
    while (pull_item(json)) {
        struct slice value = {NULL, 0};
        if (!pull_string(json, arena, &value))
            return false;
        ++*(size_t *)field;
    }
    return json->problem == NULL;
}

static const struct pull_field expression_fields[] = {
    PULL_FIELD("key", PULL_STRING, expression_reading, key),
    PULL_FIELD("operator", PULL_STRING, expression_reading, operator),
    PULL_READER("values", expression_reading, values, count_values),
};

static bool read_expressions(struct pull *json, struct arena *arena, void *field)
{
    struct pull_items items = {.size = sizeof(struct expression_reading)};

    if (!read_items(json, arena, expression_fields, PULL_FIELD_COUNT(expression_fields), &items))
        return false;
    const struct expression_reading *expressions = items.items;
    for (size_t i = 0; i < items.count; i++)
        *(bool *)field |= (slice_equal(expressions[i].key, SLICE(HOSTNAME)) ||
                           slice_equal(expressions[i].key, SLICE("metadata.name"))) &&
                          slice_equal(expressions[i].operator, SLICE("In")) &&
                          expressions[i].values == 1;
    return true;
}

static const struct pull_field term_fields[] = {
    PULL_READER_OF("matchExpressions", term_reading, is_host, read_expressions, expression_fields),
    PULL_READER_OF("matchFields", term_reading, is_host, read_expressions, expression_fields),
};

static bool read_terms(struct pull *json, struct arena *arena, void *whole)
{
    struct reading *reading = whole;
    struct pull_items items = {.size = sizeof(struct term_reading)};

    if (!read_items(json, arena, term_fields, PULL_FIELD_COUNT(term_fields), &items))
        return false;
    const struct term_reading *terms = items.items;
    reading->requires_nodes = true; /* without terms, no node is allowed */
    reading->requires_host |= items.count == 1 && terms[0].is_host; /* one of the terms is enough */
    return true;
}

static const struct pull_field terms_fields[] = {
    READ_WHOLE_OF("nodeSelectorTerms", read_terms, term_fields),
};

struct pod_term_reading {
    struct slice topology;
};

static const struct pull_field pod_term_fields[] = {
    PULL_FIELD("topologyKey", PULL_STRING, pod_term_reading, topology),
};

static bool read_pod_terms(struct pull *json, struct arena *arena, void *whole)
{
    struct reading *reading = whole;
    struct pull_items items = {.size = sizeof(struct pod_term_reading)};

    if (!read_items(json, arena, pod_term_fields, PULL_FIELD_COUNT(pod_term_fields), &items))
        return false;
    const struct pod_term_reading *terms = items.items;
    for (size_t i = 0; i < items.count; i++)
        reading->requires_pods |= slice_equal(terms[i].topology, SLICE(HOSTNAME));
    return true;
}

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
static const struct pull_field node_affinity_fields[] = {PULL_NESTED(REQUIRED, terms_fields)};
static const struct pull_field pod_affinity_fields[] = {
    READ_WHOLE_OF(REQUIRED, read_pod_terms, pod_term_fields),
};
const struct pull_field reading_affinity[READING_AFFINITY_FIELDS] = {
    PULL_NESTED("nodeAffinity", node_affinity_fields),
    PULL_NESTED("podAffinity", pod_affinity_fields),
};
