#include "extender/commands/inquiry/places.h"

#include <stdlib.h>

#include "cache/objects/label_selector.h"
#include "policy/node_volume_limits.h"
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

static bool copy_taints(struct places *places, const struct pull_items *taints,
                        struct placed_node *out)
{
    struct taint *copies = arena_alloc(places->arena, (taints->count + 1) * sizeof *copies);
    bool has_memory = copies != NULL;

    for (size_t i = 0; i < taints->count && has_memory; i++) {
        const struct taint *taint = (const struct taint *)taints->items + i;
        copies[i] = (struct taint){arena_copy(places->arena, taint->key),
                                   arena_copy(places->arena, taint->value),
                                   arena_copy(places->arena, taint->effect)};
        has_memory = copies[i].key.ptr != NULL && copies[i].value.ptr != NULL &&
                     copies[i].effect.ptr != NULL;
    }
    out->taints = (struct pull_items){sizeof *copies, copies, taints->count};
    return has_memory;
}

/* Only its labels and taints are kept: a node's text is long. */
static bool read_node(struct places *places, struct placed_node *out)
{
    struct slice text = inquiry_find_details(places->inquiry, KIND_NODE, SLICE(""), out->name);
    struct node_details details = {.labels = {"", 0}};
    struct arena scratch;

    out->is_unread = text.ptr == NULL;
    arena_init(&scratch, NODE_BYTES_MAX);
    bool is_read = out->is_unread || node_details_read(text, &scratch, &details);
    if (is_read)
        out->labels = copy_taints(places, &details.taints, out)
                          ? arena_copy(places->arena, details.labels)
                          : (struct slice){NULL, 0};
    arena_dispose(&scratch);
    inquiry_forget_details(places->inquiry);
    return is_read && out->labels.ptr != NULL;
}

/* Its drivers, and how many volumes of each it can have. */
static bool read_csi_node(struct places *places, struct placed_node *out)
{
    struct csi_node_details details;
    struct slice text;

    if (!find_text(places->inquiry, KIND_CSI_NODE, SLICE(""), out->name, places->arena, &text))
        return false;
    out->knows_drivers = text.len != 0 && csi_node_details_read(text, places->arena, &details);
    if (out->knows_drivers)
        out->drivers = details.drivers;
    return true;
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
        *out = (struct placed_node){.node = node, .name = name_slice(node->name)};
        if (!read_node(places, out) || !read_csi_node(places, out))
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

static bool read_drivers(struct places *places)
{
    struct placement *all = &places->all;
    struct placed_driver *drivers = NULL;
    struct table_walk walk = {.at = 0};
    char buffer[PROVISIONED_NAME_BYTES];

    for (const struct resource *driver;
         (driver = cluster_next_resource(&places->inquiry->cluster, KIND_CSI_DRIVER, &walk)) !=
         NULL;) {
        struct placed_driver out = {.name =
                                        arena_copy(places->arena, resource_name(driver, buffer))};
        struct slice text;
        drivers = arena_grow(places->arena, drivers, all->driver_count, sizeof *drivers);
        if (drivers == NULL || out.name.ptr == NULL ||
            !find_text(places->inquiry, KIND_CSI_DRIVER, SLICE(""), out.name, places->arena, &text))
            return false;
        if (text.len != 0)
            (void)csi_driver_details_read(text, places->arena, &out.details);
        drivers[all->driver_count++] = out;
    }
    all->drivers = drivers;
    return true;
}

/* ---- the volumes on nodes ---- */

struct on_node {
    const struct placed_node *node;
    struct counted_volume volume;
};

struct on_nodes {
    struct places *places;
    struct on_node *items; /* by node, then by volume */
    size_t count;
    bool has_no_memory;
};

/* By node and volume. */
static int compare_on(const struct on_node *x, const struct on_node *y)
{
    uintptr_t left = (uintptr_t)x->node, right = (uintptr_t)y->node;

    if (left == right) {
        left = (uintptr_t)x->volume.volume;
        right = (uintptr_t)y->volume.volume;
    }
    return left != right ? (left > right) - (left < right)
                         : slice_compare(x->volume.driver, y->volume.driver);
}

static int compare_used_first(const void *a, const void *b)
{
    const struct on_node *x = a, *y = b;
    int order = compare_on(x, y);

    return order != 0 ? order : x->volume.is_only_attached - y->volume.is_only_attached;
}

static void list_volume(struct on_nodes *listing, struct slice node,
                        const struct counted_volume *volume)
{
    const struct placed_node key = {.name = node};
    const struct placement *all = &listing->places->all;
    const struct placed_node *found =
        bsearch(&key, all->nodes, all->node_count, sizeof key, compare_nodes);
    struct on_node *grown = found == NULL ? NULL
                                          : arena_grow(listing->places->arena, listing->items,
                                                       listing->count, sizeof *grown);

    listing->has_no_memory = listing->has_no_memory || (found != NULL && grown == NULL);
    if (grown == NULL)
        return;
    grown[listing->count++] = (struct on_node){found, *volume};
    listing->items = grown;
}

static void list_used(struct on_nodes *listing)
{
    const struct places *places = listing->places;
    const struct cluster *cluster = &places->inquiry->cluster;
    struct table_walk walk = {.at = 0};
    struct counted_volume volume;

    for (const struct pod *pod; (pod = cluster_next_pod(cluster, &walk)) != NULL;)
        for (size_t i = 0; pod_holds(pod) && i < pod->use_count; i++)
            if (counted_volume_of(cluster, claim_at(pod->uses[i].claim), places->all.knows_volumes,
                                  &volume))
                list_volume(listing, pod_node(pod), &volume);
}

static void list_attached(struct on_nodes *listing)
{
    const struct cluster *cluster = &listing->places->inquiry->cluster;
    struct table_walk walk = {.at = 0};
    struct counted_volume volume;

    for (const struct resource *attachment;
         (attachment = cluster_next_resource(cluster, KIND_VOLUME_ATTACHMENT, &walk)) != NULL;)
        if (counted_volume_attached(cluster, attachment, &volume))
            list_volume(listing, resource_attribute(attachment, VOLUME_ATTACHMENT_NODE), &volume);
}

/* Gives each node its part of the list, each volume once: of two, one that a pod uses comes first.
 * False: no memory. */
static bool share_list(const struct on_nodes *listing)
{
    struct placed_node *nodes = (struct placed_node *)listing->places->all.nodes;
    struct counted_volume *volumes =
        arena_alloc(listing->places->arena, (listing->count + 1) * sizeof *volumes);
    size_t kept = 0;

    for (size_t i = 0; volumes != NULL && i < listing->count; i++) {
        const struct on_node *item = &listing->items[i];
        struct placed_node *node = &nodes[item->node - nodes];
        if (i > 0 && compare_on(item, item - 1) == 0)
            continue;
        if (node->volume_count++ == 0)
            node->volumes = &volumes[kept];
        volumes[kept++] = item->volume;
    }
    return volumes != NULL;
}

/* Only where a limit is known. */
static bool read_volumes_on_nodes(struct places *places)
{
    struct on_nodes listing = {.places = places};
    bool has_limit = false;

    for (size_t n = 0; n < places->all.node_count; n++) {
        const struct driver_limit *drivers = places->all.nodes[n].drivers.items;
        for (size_t i = 0; i < places->all.nodes[n].drivers.count; i++)
            has_limit = has_limit || drivers[i].volumes.is_known;
    }
    if (!has_limit)
        return true;
    list_used(&listing);
    list_attached(&listing);
    if (listing.count != 0)
        qsort(listing.items, listing.count, sizeof *listing.items, compare_used_first);
    return !listing.has_no_memory && share_list(&listing);
}

/* ---- room for new volumes ---- */

/* Of a StorageClass. */
struct class_room {
    struct class_room *next;
    struct slice class;
    int64_t *room; /* as of struct placed_claim */
};

static void add_capacity(const struct placement *all, const struct resource *capacity,
                         int64_t *room)
{
    int64_t bytes = resource_shape_at(capacity->shape)->key.capacity;
    struct slice topology = resource_attribute(capacity, STORAGE_CAPACITY_TOPOLOGY);

    for (size_t n = 0; n < all->node_count; n++)
        if (bytes > room[n] && (!placement_knows_labels(all, &all->nodes[n]) ||
                                selector_matches(topology, all->nodes[n].labels, SLICE(""))))
            room[n] = bytes;
}

/* NULL: no memory. */
static int64_t *read_room(const struct places *places, struct slice class)
{
    const struct cluster *cluster = &places->inquiry->cluster;
    const struct placement *all = &places->all;
    int64_t *room = arena_alloc(places->arena, (all->node_count + 1) * sizeof *room);
    struct table_walk walk = {.at = 0};

    for (size_t n = 0; room != NULL && n < all->node_count; n++)
        room[n] = -1;
    for (const struct resource *capacity;
         room != NULL &&
         (capacity = cluster_next_resource(cluster, KIND_STORAGE_CAPACITY, &walk)) != NULL;)
        if (slice_equal(resource_attribute(capacity, STORAGE_CAPACITY_CLASS), class))
            add_capacity(all, capacity, room);
    return room;
}

/* The room of the claim's class; NULL: it does not count. False: no memory. */
static bool find_room(struct places *places, const struct claim *claim, const int64_t **out)
{
    struct slice class = name_slice(claim_storage_class(claim));
    const struct resource *record =
        cluster_find_resource(&places->inquiry->cluster, KIND_STORAGE_CLASS, class);
    struct class_room *known = places->rooms;

    *out = NULL;
    if (record == NULL || !inquiry_knows(places->inquiry, KIND_STORAGE_CAPACITY) ||
        !placement_driver(&places->all, resource_attribute(record, STORAGE_CLASS_PROVISIONER))
             .has_capacities)
        return true;
    while (known != NULL && !slice_equal(known->class, class))
        known = known->next;
    if (known == NULL) {
        known = arena_alloc(places->arena, sizeof *known);
        if (known == NULL)
            return false;
        *known = (struct class_room){places->rooms, class, read_room(places, class)};
        places->rooms = known;
    }
    *out = known->room;
    return known->room != NULL;
}

static bool read_places(struct places *places)
{
    if (places->is_read)
        return true;
    places->all.knows_volumes = inquiry_knows(places->inquiry, KIND_VOLUME);
    places->all.knows_classes = inquiry_knows(places->inquiry, KIND_STORAGE_CLASS);
    places->all.knows_csi_nodes = inquiry_knows(places->inquiry, KIND_CSI_NODE);
    places->is_read = read_nodes(places) && read_volumes(places) && read_drivers(places) &&
                      read_volumes_on_nodes(places);
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
                                 .volume_labels = volume.labels,
                                 .binding_mode = class.binding_mode,
                                 .topologies = class.topologies};
    return volume_terms_find(cluster_find_volume(&inquiry->cluster, claim), &volume, arena,
                             &out->terms);
}

static bool add_claim(struct places *places, const struct pod_object *pod, struct slice name,
                      struct arena *arena, struct placement *out)
{
    const struct claim *claim = cluster_find_claim(&places->inquiry->cluster, pod->meta.ns, name);
    struct placed_claim placed;

    if (claim == NULL)
        return true;
    struct placed_claim *claims = arena_grow(arena, out->claims, out->claim_count, sizeof *claims);
    if (claims == NULL || !read_claim(places->inquiry, claim, arena, &placed) ||
        !find_room(places, claim, &placed.room))
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
