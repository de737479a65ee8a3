#include "policy/volume_terms.h"

#include "cache/objects/label_selector.h"

#define ZONE        "topology.kubernetes.io/zone"
#define REGION      "topology.kubernetes.io/region"
#define BETA_ZONE   "failure-domain.beta.kubernetes.io/zone"
#define BETA_REGION "failure-domain.beta.kubernetes.io/region"

/* ---- keys ---- */

static const struct node_requirement *expressions_of(const struct pull_items *terms, size_t i,
                                                     size_t *count)
{
    const struct node_term *term = (const struct node_term *)terms->items + i;

    *count = term->expressions.count;
    return term->expressions.items;
}

/* Whether an expression has the key; with_values: and values. */
static bool have_key(const struct pull_items *terms, struct slice key, bool with_values)
{
    size_t count;

    for (size_t i = 0; i < terms->count; i++) {
        const struct node_requirement *expressions = expressions_of(terms, i, &count);
        for (size_t j = 0; j < count; j++)
            if (slice_equal(expressions[j].key, key) &&
                (!with_values || expressions[j].values.count != 0))
                return true;
    }
    return false;
}

/* Whether the zones of the volume have the beta keys: by its terms, else by its labels. */
static bool is_beta(const struct volume_details *details)
{
    struct slice value;

    if (have_key(&details->terms, SLICE(ZONE), false))
        return false;
    return have_key(&details->terms, SLICE(BETA_ZONE), false) ||
           (!labels_find(details->labels, SLICE(ZONE), &value) &&
            labels_find(details->labels, SLICE(BETA_ZONE), &value));
}

/* ---- translation ---- */

/* What the terms become: a key for another one, and zones that each term gets. */
struct translation {
    struct slice zone, region, zone_key; /* zone, region: empty: it stays */
    struct slice zones;                  /* of the volume's label, "a__b"; empty: none */
};

static void set_key(const struct translation *translation, struct node_requirement *expression)
{
    if (translation->zone.len != 0 && slice_equal(expression->key, translation->zone))
        expression->key = translation->zone_key;
    else if (translation->region.len != 0 && slice_equal(expression->key, translation->region))
        expression->key = SLICE(REGION);
}

/* The zones of the label as an expression; without values: it has none. False: no memory. */
static bool find_zones(const struct translation *translation, struct arena *arena,
                       struct node_requirement *out)
{
    struct slice *values = NULL, rest = translation->zones;

    *out = (struct node_requirement){translation->zone_key, SLICE("In"), {sizeof *values, NULL, 0}};
    while (rest.len != 0) {
        const char *end = memmem(rest.ptr, rest.len, "__", 2);
        struct slice zone = {rest.ptr, end == NULL ? rest.len : (size_t)(end - rest.ptr)};
        rest =
            end == NULL ? (struct slice){"", 0} : (struct slice){end + 2, rest.len - zone.len - 2};
        if (zone.len == 0)
            continue;
        values = arena_grow(arena, values, out->values.count, sizeof *values);
        if (values == NULL)
            return false;
        values[out->values.count++] = zone;
        out->values.items = values;
    }
    return true;
}

/* False: no memory. */
static bool translate_term(const struct translation *translation,
                           const struct node_requirement *zones, struct arena *arena,
                           struct node_term *term)
{
    const struct pull_items before = term->expressions;
    struct node_requirement *expressions =
        arena_alloc(arena, (before.count + 1) * sizeof *expressions);

    if (expressions == NULL)
        return false;
    if (before.count != 0)
        memcpy(expressions, before.items, before.count * sizeof *expressions);
    for (size_t i = 0; i < before.count; i++)
        set_key(translation, &expressions[i]);
    expressions[before.count] = *zones;
    term->expressions = (struct pull_items){sizeof *expressions, expressions,
                                            before.count + (zones->values.count != 0 ? 1 : 0)};
    return true;
}

/* False: no memory. */
static bool translate(const struct translation *translation, const struct pull_items *terms,
                      struct arena *arena, struct pull_items *out)
{
    static const struct node_term empty;
    struct node_requirement zones;

    if (!find_zones(translation, arena, &zones))
        return false;
    bool is_new = terms->count == 0 && zones.values.count != 0; /* it had none, and gets one */
    size_t count = is_new ? 1 : terms->count;
    struct node_term *copies = arena_alloc(arena, (count + 1) * sizeof *copies);
    for (size_t i = 0; copies != NULL && i < count; i++) {
        copies[i] = is_new ? empty : ((const struct node_term *)terms->items)[i];
        if (!translate_term(translation, &zones, arena, &copies[i]))
            return false;
    }
    *out = (struct pull_items){sizeof *copies, copies, count};
    return copies != NULL;
}

bool volume_terms_find(const struct resource *volume, const struct volume_details *details,
                       struct arena *arena, struct volume_terms *out)
{
    struct slice plugin = volume == NULL || resource_attribute(volume, VOLUME_DRIVER).len != 0
                              ? SLICE("")
                              : resource_attribute(volume, VOLUME_IN_TREE);
    struct translation translation = {.zone_key = in_tree_zone_key(plugin)};

    *out = (struct volume_terms){.own = details->terms};
    if (translation.zone_key.len == 0)
        return true;
    bool beta = is_beta(details);
    struct slice zone = beta ? SLICE(BETA_ZONE) : SLICE(ZONE);
    if (have_key(&details->terms, zone, true))
        translation.zone = zone;
    else
        (void)labels_find(details->labels, zone, &translation.zones);
    if (beta && have_key(&details->terms, SLICE(BETA_REGION), true))
        translation.region = SLICE(BETA_REGION);
    out->plugin = plugin;
    return translate(&translation, &details->terms, arena, &out->migrated);
}

/* ---- nodes ---- */

const struct pull_items *volume_terms_on(const struct volume_terms *terms, const struct node *node)
{
    bool is_migrated = terms->plugin.len != 0 && node->csi_node != NULL &&
                       words_have(name_slice(node->csi_node->drivers), terms->plugin);

    return is_migrated ? &terms->migrated : &terms->own;
}

bool volume_terms_match(const struct volume_terms *terms, const struct node *node,
                        struct slice labels)
{
    const struct pull_items *there = volume_terms_on(terms, node);

    return there->count == 0 || node_terms_match(there, SLICE(""), labels);
}
