#include "extender/commands/inquiry/places.h"

#include <stdlib.h>

#include "policy/volume.h"

enum { NODE_BYTES_MAX = 32 << 20 };

/* The details of a resource as text of the arena; empty: not known. False: no memory. */
static bool find_text(const struct inquiry *inquiry, enum kind kind, struct slice ns,
                      struct slice name, struct arena *arena, struct slice *out)
{
    struct slice text = inquiry_find_details(inquiry, kind, ns, name);

    *out = text.ptr == NULL ? SLICE("") : arena_copy(arena, text);
    inquiry_forget_details(inquiry);
    return out->ptr != NULL;
}

/* ---- for all pods ---- */

static int compare_nodes(const void *a, const void *b)
{
    return slice_compare(((const struct placed_node *)a)->name,
                         ((const struct placed_node *)b)->name);
}

/* Only its labels are kept: a node's text is long. */
static bool read_node(struct places *places, struct placed_node *out)
{
    struct slice text = inquiry_find_details(places->inquiry, KIND_NODE, SLICE(""), out->name);
    struct node_details details = {.labels = {"", 0}};
    struct arena scratch;

    out->is_unread = text.ptr == NULL;
    arena_init(&scratch, NODE_BYTES_MAX);
    bool is_read = out->is_unread || node_details_read(text, &scratch, &details);
    if (is_read)
        out->labels = arena_copy(places->arena, details.labels);
    arena_dispose(&scratch);
    inquiry_forget_details(places->inquiry);
    return is_read && out->labels.ptr != NULL;
}

static bool read_nodes(struct places *places)
{
    const struct cluster *cluster = &places->inquiry->cluster;
    struct placement *all = &places->all;
    struct table_walk walk = {.at = 0};
    struct placed_node *nodes =
        arena_alloc(places->arena, (cluster->counts[KIND_NODE] + 1) * sizeof *nodes);

    for (const struct node *node;
         nodes != NULL && (node = cluster_next_node(cluster, &walk)) != NULL;) {
        struct placed_node *out = &nodes[all->node_count];
        if (!node->exists)
            continue;
        out->name = name_slice(node->name);
        if (!read_node(places, out))
            return false;
        all->node_count++;
        all->has_labels = all->has_labels || out->labels.len != 0;
    }
    if (nodes != NULL)
        qsort(nodes, all->node_count, sizeof *nodes, compare_nodes);
    all->nodes = nodes;
    return nodes != NULL;
}

static int compare_volumes(const void *a, const void *b)
{
    const struct placed_volume *x = a, *y = b;

    if (x->capacity != y->capacity)
        return x->capacity < y->capacity ? -1 : 1;
    return slice_compare(x->name, y->name);
}

static bool read_volume(struct places *places, const struct resource *volume,
                        struct placed_volume *out)
{
    char buffer[PROVISIONED_NAME_BYTES];
    struct volume_details details = {.terms = {0}};
    struct slice text;

    *out = (struct placed_volume){
        .volume = volume,
        .name = arena_copy(places->arena, resource_name(volume, buffer)),
        .capacity = resource_shape_at(volume->shape)->key.capacity,
    };
    if (out->name.ptr == NULL ||
        !find_text(places->inquiry, KIND_VOLUME, SLICE(""), out->name, places->arena, &text) ||
        (text.len != 0 && !volume_details_read(text, places->arena, &details)))
        return false;
    out->terms = details.terms;
    return true;
}

static bool read_volumes(struct places *places)
{
    struct placed_volume *volumes = NULL;
    struct placement *all = &places->all;
    struct table_walk walk = {.at = 0};

    for (const struct resource *volume;
         (volume = cluster_next_resource(&places->inquiry->cluster, KIND_VOLUME, &walk)) != NULL;) {
        if (resource_attribute(volume, VOLUME_OFFER).len == 0)
            continue;
        volumes = arena_grow(places->arena, volumes, all->volume_count, sizeof *volumes);
        if (volumes == NULL || !read_volume(places, volume, &volumes[all->volume_count++]))
            return false;
    }
    if (volumes != NULL)
        qsort(volumes, all->volume_count, sizeof *volumes, compare_volumes);
    all->volumes = volumes;
    return true;
}

static bool read_places(struct places *places)
{
    if (places->is_read)
        return true;
    places->is_read = read_nodes(places) && read_volumes(places);
    places->all.knows_volumes = inquiry_knows(places->inquiry, KIND_VOLUME);
    places->all.knows_classes = inquiry_knows(places->inquiry, KIND_STORAGE_CLASS);
    return places->is_read;
}

/* ---- a pod ---- */

static bool read_claim(const struct inquiry *inquiry, const struct claim *claim,
                       struct arena *arena, struct placed_claim *out)
{
    struct claim_details details = {.selected_node = {"", 0}};
    struct volume_details volume = {.terms = {0}};
    struct storage_class_details class = {.binding_mode = {"", 0}};
    char buffer[PROVISIONED_NAME_BYTES];
    struct slice name = claim_volume_name(claim, buffer), text;

    if (!find_text(inquiry, KIND_CLAIM, name_text(claim->ns), claim_name(claim), arena, &text) ||
        (text.len != 0 && !claim_details_read(text, arena, &details)) ||
        !find_text(inquiry, KIND_VOLUME, SLICE(""), name, arena, &text) ||
        (text.len != 0 && !volume_details_read(text, arena, &volume)) ||
        !find_text(inquiry, KIND_STORAGE_CLASS, SLICE(""), name_slice(claim_storage_class(claim)),
                   arena, &text) ||
        (text.len != 0 && !storage_class_details_read(text, arena, &class)))
        return false;
    *out = (struct placed_claim){.claim = claim,
                                 .selected_node = details.selected_node,
                                 .terms = volume.terms,
                                 .volume_labels = volume.labels,
                                 .binding_mode = class.binding_mode,
                                 .topologies = class.topologies};
    return true;
}

static bool add_claim(struct places *places, const struct pod_object *pod, struct slice name,
                      struct arena *arena, struct placement *out)
{
    const struct claim *claim = cluster_find_claim(&places->inquiry->cluster, pod->meta.ns, name);
    struct placed_claim placed;

    if (claim == NULL)
        return true;
    struct placed_claim *claims = arena_grow(arena, out->claims, out->claim_count, sizeof *claims);
    if (claims == NULL || !read_claim(places->inquiry, claim, arena, &placed))
        return false;
    for (size_t i = 0; i < pod->claim_count; i++)
        placed.is_ephemeral = placed.is_ephemeral || (pod->claims[i].is_ephemeral &&
                                                      slice_equal(pod->claims[i].name, name));
    claims[out->claim_count++] = placed;
    out->claims = claims;
    return true;
}

bool places_find(struct places *places, const struct pod_object *pod, struct arena *arena,
                 struct placement *out)
{
    struct pod_object completed = *pod;
    bool has_memory =
        read_places(places) && cluster_complete_pod(&places->inquiry->cluster, &completed, arena);

    *out = places->all;
    const struct pod_mounts *mounts = completed.mounts;
    for (size_t i = 0; has_memory && mounts == NULL && i < pod->claim_count; i++)
        has_memory = add_claim(places, pod, pod->claims[i].name, arena, out);
    for (size_t i = 0; has_memory && mounts != NULL && i < mounts->volume_count; i++)
        has_memory = mounts->volumes[i].claim.len == 0 ||
                     add_claim(places, pod, mounts->volumes[i].claim, arena, out);
    return has_memory;
}
