/* One claim: what is known of it. */
#include "extender/commands/who/who_claim.h"

#include <stdlib.h>

#include "cache/cluster/reservation.h"
#include "policy/exclusive.h"
#include "policy/volume.h"

/* ---- the index ---- */

static int compare_addresses(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t) * (const struct claim *const *)a;
    uintptr_t y = (uintptr_t) * (const struct claim *const *)b;

    return (x > y) - (x < y);
}

static void sort_claims(const struct claim **claims, size_t *count)
{
    size_t kept = 0;

    if (*count != 0)
        qsort((void *)claims, *count, sizeof *claims, compare_addresses);
    for (size_t i = 0; i < *count; i++)
        if (kept == 0 || claims[i] != claims[kept - 1])
            claims[kept++] = claims[i];
    *count = kept;
}

static int compare_namings(const void *a, const void *b)
{
    const struct naming *x = a, *y = b;
    int order = compare_addresses(&x->claim, &y->claim);

    return order != 0 ? order : slice_compare(pod_name(x->pod), pod_name(y->pod));
}

static bool add_naming(struct who_index *index, struct arena *arena, const struct naming *naming)
{
    struct naming *grown = arena_grow(arena, index->namings, index->naming_count, sizeof *grown);

    if (grown == NULL)
        return false;
    grown[index->naming_count++] = *naming;
    index->namings = grown;
    return true;
}

static bool find_namings(struct who_index *index, struct arena *arena,
                         const struct cluster *cluster, const struct claim *const *claims,
                         size_t claim_count)
{
    struct table_walk walk = {.at = 0};

    for (const struct pod *pod;
         claim_count != 0 && (pod = cluster_next_pod(cluster, &walk)) != NULL;)
        for (size_t i = 0; i < pod->use_count; i++) {
            const struct naming naming = {claim_at(pod->uses[i].claim), pod};
            if (bsearch((const void *)&naming.claim, (const void *)claims, claim_count,
                        sizeof *claims, compare_addresses) != NULL &&
                !add_naming(index, arena, &naming))
                return false;
        }
    if (index->naming_count != 0)
        qsort(index->namings, index->naming_count, sizeof *index->namings, compare_namings);
    return true;
}

static int compare_attachments(const void *a, const void *b)
{
    const struct resource *const *x = a, *const *y = b;
    char first[PROVISIONED_NAME_BYTES], second[PROVISIONED_NAME_BYTES];
    int order = slice_compare(who_volume_of(*x), who_volume_of(*y));

    return order != 0 ? order : slice_compare(resource_name(*x, first), resource_name(*y, second));
}

static bool find_attachments(struct who_index *index, struct arena *arena,
                             const struct cluster *cluster)
{
    struct table_walk walk = {.at = 0};

    index->attachments = arena_alloc(arena, (cluster->counts[KIND_VOLUME_ATTACHMENT] + 1) *
                                                sizeof *index->attachments);
    if (index->attachments == NULL)
        return false;
    for (const struct resource *attachment;
         (attachment = cluster_next_resource(cluster, KIND_VOLUME_ATTACHMENT, &walk)) != NULL;)
        index->attachments[index->attachment_count++] = attachment;
    qsort((void *)index->attachments, index->attachment_count, sizeof *index->attachments,
          compare_attachments);
    return true;
}

bool who_index_init(struct who_index *index, struct arena *arena, const struct cluster *cluster,
                    const struct claim **claims, size_t *claim_count)
{
    sort_claims(claims, claim_count);
    return find_namings(index, arena, cluster, claims, *claim_count) &&
           find_attachments(index, arena, cluster);
}

/* The pods that name the claim, in a row. */
static const struct naming *find_named(const struct who_index *index, const struct claim *claim,
                                       size_t *count)
{
    size_t low = 0, high = index->naming_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_addresses(&index->namings[middle].claim, &claim) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (*count = 0;
         low + *count < index->naming_count && index->namings[low + *count].claim == claim;)
        ++*count;
    return index->namings + low;
}

bool who_index_has(const struct who_index *index, const struct claim *claim)
{
    size_t count;

    (void)find_named(index, claim, &count);
    return count != 0;
}

/* ---- who may use it ---- */

bool who_details(struct slice *out, const struct inquiry *inquiry, enum kind kind, struct slice ns,
                 struct slice name, struct arena *arena)
{
    *out = inquiry_find_details(inquiry, kind, ns, name);
    if (out->ptr == NULL)
        return true;
    *out = arena_copy(arena, *out);
    return out->ptr != NULL;
}

/* Without its volume, a ReadWriteOnce claim may be for one node, or for several,
 * if its driver does not attach it. */
static enum access find_access(const struct who_claim *claim, const struct resource *volume)
{
    const struct cluster *cluster = &claim->inquiry->cluster;
    const struct pull_items *modes = &claim->details.access_modes;

    if (claim->claim->is_rwop || claim->claim->deferred != 0 ||
        exclusive_by_lock(&(struct view){.cluster = cluster, .config = claim->config},
                          claim->claim))
        return ACCESS_ONE_POD;
    if (volume == NULL)
        return slice_is_among(SLICE("ReadWriteMany"), modes->items, modes->count) ||
                       slice_is_among(SLICE("ReadOnlyMany"), modes->items, modes->count)
                   ? ACCESS_ANY
                   : ACCESS_UNKNOWN;
    return volume_is_on_one_node(cluster, volume) ? ACCESS_ONE_NODE : ACCESS_ANY;
}

bool who_is_attachable(const struct who_claim *claim)
{
    const struct cluster *cluster = &claim->inquiry->cluster;
    const struct resource *volume = volume_of(cluster, claim->claim);
    bool knows_drivers = inquiry_knows(claim->inquiry, KIND_CSI_DRIVER);
    enum attachment attachment = volume == NULL || claim->is_of_earlier
                                     ? ATTACHMENT_UNKNOWN
                                     : volume_attachment(cluster, volume, knows_drivers);

    return attachment == ATTACHMENT_YES ||
           (attachment == ATTACHMENT_UNKNOWN && claim->attachment_count != 0);
}

/* ---- its nodes and pods ---- */

static struct who_attachment describe_attachment(const struct who_claim *claim,
                                                 const struct resource *record)
{
    const struct inquiry *inquiry = claim->inquiry;
    int64_t flags = resource_number(record);
    struct who_attachment out = {
        .record = record,
        .node = resource_attribute(record, VOLUME_ATTACHMENT_NODE),
        .attach_error = resource_attribute(record, VOLUME_ATTACHMENT_ATTACH_ERROR),
        .detach_error = resource_attribute(record, VOLUME_ATTACHMENT_DETACH_ERROR),
        .is_attached = (flags & VOLUME_ATTACHMENT_IS_ATTACHED) != 0,
        .is_detaching = (flags & VOLUME_ATTACHMENT_IS_DELETING) != 0,
    };

    out.node_state = who_node_state(inquiry, out.node, claim->arena);
    out.is_out_of_service = who_is_out_of_service(inquiry, out.node, out.node_state, claim->arena);
    return out;
}

/* The attachments of the volume are in a row. False: no memory. */
static bool take_attachments(struct who_claim *claim, const struct who_index *index)
{
    size_t low = 0, high = index->attachment_count, end;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_compare(who_volume_of(index->attachments[middle]), claim->volume) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (end = low; claim->volume.len != 0 && end < index->attachment_count &&
                    slice_equal(who_volume_of(index->attachments[end]), claim->volume);)
        end++;
    claim->attachments = arena_alloc(claim->arena, (end - low + 1) * sizeof *claim->attachments);
    for (size_t i = low; claim->attachments != NULL && i < end; i++)
        claim->attachments[claim->attachment_count++] =
            describe_attachment(claim, index->attachments[i]);
    return claim->attachments != NULL;
}

/* Those that wait longest first; those whose time is not known last. */
static int compare_since(const void *a, const void *b)
{
    const struct who_pod *x = a, *y = b;

    if ((x->since.len == 0) != (y->since.len == 0))
        return x->since.len == 0 ? 1 : -1;
    int order = slice_compare(x->since, y->since);
    return order != 0 ? order : slice_compare(pod_name(x->pod), pod_name(y->pod));
}

/* Of a pod that waits beside the asked one, nothing is read: many may share the claim, and all of
 * them may be asked about, one after the other. The same of holders, where any number may be. */
static bool is_wanted(const struct who_claim *claim, const struct who_pod *pod)
{
    return claim->asked == NULL || claim->asked == pod->pod ||
           (pod_holds(pod->pod) && claim->access != ACCESS_ANY);
}

static bool take_pods(struct who_claim *claim, const struct who_index *index)
{
    size_t count;
    const struct naming *namings = find_named(index, claim->claim, &count);

    claim->holders = arena_alloc(claim->arena, (count + 1) * sizeof *claim->holders);
    claim->waiters = arena_alloc(claim->arena, (count + 1) * sizeof *claim->waiters);
    claim->finished = arena_alloc(claim->arena, (count + 1) * sizeof *claim->finished);
    if (claim->holders == NULL || claim->waiters == NULL || claim->finished == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (namings[i].pod->is_terminal) {
            claim->finished[claim->finished_count++] = namings[i].pod;
            continue;
        }
        struct who_pod *pod = pod_holds(namings[i].pod) ? &claim->holders[claim->holder_count++]
                                                        : &claim->waiters[claim->waiter_count++];
        *pod = (struct who_pod){.pod = namings[i].pod, .details.grace_seconds = -1};
        if (is_wanted(claim, pod) &&
            !who_pod_init(pod, claim->inquiry, namings[i].pod, claim->arena))
            return false;
    }
    if (!who_find_waits(claim))
        return false;
    if (claim->asked == NULL) /* or their times are not read */
        qsort(claim->waiters, claim->waiter_count, sizeof *claim->waiters, compare_since);
    return true;
}

/* ---- its volume ---- */

/* False: no memory. */
static bool take_volume(struct who_claim *claim)
{
    const struct cluster *cluster = &claim->inquiry->cluster;
    struct slice text;

    if (!who_details(&text, claim->inquiry, KIND_VOLUME, SLICE(""), claim->volume, claim->arena))
        return false;
    if (text.ptr != NULL && claim->volume.len != 0 &&
        !volume_details_read(text, claim->arena, &claim->volume_details))
        return false;
    enum volume_state state =
        volume_state_of(cluster, claim->claim, claim->volume_details.claim_uid);
    claim->is_of_earlier = state == VOLUME_OF_EARLIER;
    /* a volume that is not in the input is believed if the claim is Bound */
    claim->has_volume = state == VOLUME_BOUND ||
                        (state == VOLUME_UNKNOWN && claim_phase(claim->claim) == CLAIM_BOUND);
    return true;
}

/* False: no memory. */
static bool take_class(struct who_claim *claim)
{
    struct slice class = name_slice(claim_storage_class(claim->claim)), text;

    if (!who_details(&text, claim->inquiry, KIND_STORAGE_CLASS, SLICE(""), class, claim->arena))
        return false;
    claim->class = cluster_find_resource(&claim->inquiry->cluster, KIND_STORAGE_CLASS, class);
    return claim->class == NULL || text.ptr == NULL ||
           storage_class_details_read(text, claim->arena, &claim->class_details);
}

bool who_lacks_volume(const struct who_claim *claim)
{
    enum claim_phase phase = claim_phase(claim->claim);

    return phase == CLAIM_LOST ||
           (phase == CLAIM_BOUND && claim->volume.len != 0 &&
            inquiry_knows(claim->inquiry, KIND_VOLUME) &&
            cluster_find_resource(&claim->inquiry->cluster, KIND_VOLUME, claim->volume) == NULL);
}

/* ---- all together ---- */

bool who_gather(struct who_claim *out, const struct who_index *index, const struct claim *claim)
{
    const struct cluster *cluster = &out->inquiry->cluster;
    const struct resource *volume = volume_of(cluster, claim);
    char name[PROVISIONED_NAME_BYTES];
    struct slice text;

    out->claim = claim;
    if (!who_details(&text, out->inquiry, KIND_CLAIM, name_text(claim->ns), claim_name(claim),
                     out->arena))
        return false;
    if (text.ptr != NULL && !claim_details_read(text, out->arena, &out->details))
        return false;
    out->volume = arena_copy(out->arena, claim_volume_name(claim, name));
    if (out->volume.ptr == NULL || !take_volume(out) || !take_class(out))
        return false;
    out->access = find_access(out, volume);
    bool is_of_another = volume == NULL && cluster_find_volume(cluster, claim) != NULL;
    return (is_of_another || take_attachments(out, index)) && take_pods(out, index);
}

bool who_lock(const struct who_claim *claim, struct slice *uid, struct slice *name)
{
    return claim_holder_read(claim->details.holder, uid, name);
}

const struct pod *who_locker(const struct who_claim *claim)
{
    struct slice uid, name;

    if (!who_lock(claim, &uid, &name))
        return NULL;
    return cluster_find_same_pod(
        &claim->inquiry->cluster,
        &(struct object_reference){KIND_POD, name_text(claim->claim->ns), name, uid});
}

static bool is_nominated(const struct who_claim *claim)
{
    for (size_t i = 0; claim->access == ACCESS_ONE_POD && i < claim->waiter_count; i++)
        if (cluster_nomination_counts(&claim->inquiry->cluster, claim->waiters[i].pod))
            return true;
    return false;
}

bool who_is_free(const struct who_claim *claim)
{
    const struct claim *record = claim->claim;
    struct slice uid, name;

    return record->exists && !record->is_deleting && claim->assigned_count == 0 &&
           !who_lacks_volume(claim) && claim_phase(record) != CLAIM_PENDING &&
           !claim_is_reserved(record) && claim->attachment_count == 0 && !is_nominated(claim) &&
           !who_lock(claim, &uid, &name);
}
