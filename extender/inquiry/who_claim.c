/* One claim: what is known of it, and the same as JSON. */
#include <stdlib.h>

#include "cache/cluster/reservation.h"
#include "extender/inquiry/who_internal.h"
#include "policy/bound_volume.h"

static bool has_mode(const struct claim_details *details, struct slice mode)
{
    const struct slice *modes = details->access_modes.items;

    for (size_t i = 0; i < details->access_modes.count; i++)
        if (slice_equal(modes[i], mode))
            return true;
    return false;
}

bool who_attaches(const struct cluster *cluster, const struct resource *volume)
{
    const struct resource *driver =
        cluster_find_resource(cluster, KIND_CSI_DRIVER, bound_volume_driver(volume));

    return (resource_attribute(volume, VOLUME_DRIVER).len != 0 ||
            resource_attribute(volume, VOLUME_IN_TREE).len != 0) &&
           (driver == NULL || (resource_number(driver) & CSI_DRIVER_DOES_NOT_ATTACH) == 0);
}

/* Without its volume, a ReadWriteOnce claim may be for one node, or for several,
 * if its driver does not attach it. */
static enum access find_access(const struct who_claim *claim, const struct resource *volume)
{
    const struct cluster *cluster = &claim->inquiry->cluster;

    if (claim->claim->is_rwop || claim->claim->deferred != 0)
        return ACCESS_ONE_POD;
    if (volume == NULL)
        return has_mode(&claim->details, SLICE("ReadWriteMany")) ||
                       has_mode(&claim->details, SLICE("ReadOnlyMany"))
                   ? ACCESS_ANY
                   : ACCESS_UNKNOWN;
    return who_attaches(cluster, volume) && (resource_number(volume) & VOLUME_IS_FOR_ONE_NODE) != 0
               ? ACCESS_ONE_NODE
               : ACCESS_ANY;
}

/* The attachments of the volume are in a row. */
static void link_attachments(const struct who_index *index, struct who_claim *claim)
{
    size_t low = 0, high = index->attachment_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_compare(who_volume_of(index->attachments[middle]), claim->volume) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    claim->attachments = index->attachments + low;
    while (claim->volume.len != 0 && low + claim->attachment_count < index->attachment_count &&
           slice_equal(who_volume_of(claim->attachments[claim->attachment_count]), claim->volume))
        claim->attachment_count++;
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

static bool take_pods(struct who_claim *claim, const struct naming *namings, size_t count)
{
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
        if (!who_pod_init(pod, claim, namings[i].pod))
            return false;
    }
    who_find_waits(claim);
    qsort(claim->waiters, claim->waiter_count, sizeof *claim->waiters, compare_since);
    return true;
}

/* The volume's name. If the volume is not in the input, the claim may know it. {NULL, 0}: no
 * memory. */
static struct slice volume_name(const struct claim *claim, const struct resource *volume,
                                struct arena *arena)
{
    char uid[UID_TEXT_BYTES], name[PROVISIONED_NAME_BYTES];

    if (volume != NULL)
        return arena_copy(arena, resource_name(volume, name));
    return claim->is_volume_provisioned
               ? arena_printf(arena, "pvc-%.*s", SLICE_ARG(uid_text(&claim->uid, uid)))
               : name_slice(claim_volume(claim));
}

/* As IsVolumeBoundToClaim of Kubernetes. */
static bool is_of_earlier(const struct who_claim *claim)
{
    const struct resource *volume =
        cluster_find_resource(&claim->inquiry->cluster, KIND_VOLUME, claim->volume);
    struct slice uid = claim->volume_details.claim_uid;

    return volume != NULL && claim->claim->exists && uid.len != 0 &&
           !uid_is(&claim->claim->uid, uid) && bound_volume_is_of(volume, claim->claim);
}

/* False: no memory. */
static bool take_volume(struct who_claim *claim)
{
    struct slice text = inquiry_find_details(claim->inquiry, KIND_VOLUME, SLICE(""), claim->volume);

    if (text.ptr == NULL || claim->volume.len == 0)
        return true;
    bool ok = volume_details_read(text, claim->arena, &claim->volume_details);
    claim->is_of_earlier = ok && is_of_earlier(claim);
    return ok;
}

/* Anybody may write any volumeName into a claim: only the volume's claimRef says whose it is. */
static bool has_volume(const struct who_claim *claim)
{
    const struct resource *volume =
        cluster_find_resource(&claim->inquiry->cluster, KIND_VOLUME, claim->volume);
    enum claim_phase phase = claim_phase(claim->claim);

    if (claim->volume.len == 0 || claim->is_of_earlier || phase == CLAIM_LOST)
        return false;
    return volume == NULL ? phase == CLAIM_BOUND : bound_volume_is_of(volume, claim->claim);
}

bool who_gather(struct who_claim *out, const struct who_index *index, const struct claim *claim,
                const struct naming *namings, size_t count)
{
    const struct resource *volume =
        claim->exists ? bound_volume_find(&out->inquiry->cluster, claim) : NULL;
    struct slice text =
        inquiry_find_details(out->inquiry, KIND_CLAIM, name_text(claim->ns), claim_name(claim));

    out->claim = claim;
    if (text.ptr != NULL && !claim_details_read(text, out->arena, &out->details))
        return false;
    out->volume = volume_name(claim, volume, out->arena);
    if (out->volume.ptr == NULL || !take_volume(out))
        return false;
    out->has_volume = has_volume(out);
    out->access = find_access(out, volume);
    bool is_of_another = volume == NULL && cluster_find_resource(&out->inquiry->cluster,
                                                                 KIND_VOLUME, out->volume) != NULL;
    if (!is_of_another)
        link_attachments(index, out);
    return take_pods(out, namings, count);
}

bool who_lock(const struct who_claim *claim, struct slice *uid, struct slice *name)
{
    struct slice lock = claim->details.holder;
    const char *slash = lock.len == 0 ? NULL : memchr(lock.ptr, '/', lock.len);

    if (slash == NULL)
        return false;
    *uid = (struct slice){lock.ptr, (size_t)(slash - lock.ptr)};
    *name = (struct slice){slash + 1, lock.len - uid->len - 1};
    return true;
}

const struct pod *who_locker(const struct who_claim *claim)
{
    struct slice uid, name;

    if (!who_lock(claim, &uid, &name))
        return NULL;
    const struct pod *pod =
        cluster_find_pod(&claim->inquiry->cluster, name_text(claim->claim->ns), name);
    return pod != NULL && uid_is(&pod->uid, uid) ? pod : NULL;
}

/* ---- one claim as JSON ---- */

static json_t *describe_attachments(const struct who_claim *claim)
{
    json_t *list = json_array();
    char name[PROVISIONED_NAME_BYTES];
    int rc = list == NULL ? -1 : 0;

    for (size_t i = 0; i < claim->attachment_count && rc == 0; i++) {
        const struct resource *attachment = claim->attachments[i];
        struct slice node = resource_attribute(attachment, VOLUME_ATTACHMENT_NODE);
        rc = json_array_append_new(
            list,
            json_pack(
                "{s:o,s:o,s:s,s:b,s:b,s:o,s:o}", "name",
                value_text(resource_name(attachment, name)), "node", value_text(node), "nodeState",
                who_node_state_text(who_node_state(claim->inquiry, node, claim->arena)), "attached",
                (resource_number(attachment) & VOLUME_ATTACHMENT_IS_ATTACHED) != 0, "detaching",
                (resource_number(attachment) & VOLUME_ATTACHMENT_IS_DELETING) != 0, "attachError",
                value_text(resource_attribute(attachment, VOLUME_ATTACHMENT_ATTACH_ERROR)),
                "detachError",
                value_text(resource_attribute(attachment, VOLUME_ATTACHMENT_DETACH_ERROR))));
    }
    return value_whole(list, rc);
}

static int put_pods(json_t *object, const struct who_claim *claim)
{
    json_t *holders = json_array(), *waiters = json_array();
    int rc = holders == NULL || waiters == NULL ? -1 : 0;

    for (size_t i = 0; i < claim->holder_count && rc == 0; i++)
        rc = json_array_append_new(holders, who_holder(claim, &claim->holders[i]));
    for (size_t i = 0; i < claim->waiter_count && rc == 0; i++)
        rc = json_array_append_new(waiters, who_waiter(&claim->waiters[i]));
    return rc | value_put(object, "heldBy", holders) | value_put(object, "waiting", waiters);
}

static int put_lock(json_t *object, const struct who_claim *claim)
{
    struct slice uid, name;

    if (!who_lock(claim, &uid, &name))
        return 0;
    return value_put(object, "lock",
                     json_pack("{s:o,s:o,s:b}", "name", value_text(name), "uid", value_text(uid),
                               "found", who_locker(claim) != NULL));
}

/* The pod that the claim is reserved for, if the input has reservations. */
static int put_reservation(json_t *object, const struct reservation *reservation)
{
    char uid[UID_TEXT_BYTES];

    if (reservation == NULL)
        return 0;
    return value_put(object, "reservedFor",
                     json_pack("{s:o,s:o,s:o,s:b}", "namespace",
                               value_text(name_slice(reservation->ns)), "name",
                               value_text(name_slice(reservation->name)), "uid",
                               value_text(uid_text(&reservation->uid, uid)), "binding",
                               reservation->binds != 0 || reservation->is_doubtful));
}

/* Whether the next pod gets it at once. */
static bool is_free(const struct who_claim *claim)
{
    const struct claim *record = claim->claim;
    struct slice uid, name;

    return record->exists && !record->is_deleting && claim->assigned_count == 0 &&
           claim_phase(record) != CLAIM_LOST && claim_phase(record) != CLAIM_PENDING &&
           !claim_is_reserved(record) && claim->attachment_count == 0 &&
           !who_lock(claim, &uid, &name);
}

json_t *who_describe(const struct who_claim *claim)
{
    static const char *const accesses[] = {[ACCESS_UNKNOWN] = "Unknown",
                                           [ACCESS_ANY] = "Any",
                                           [ACCESS_ONE_NODE] = "OneNode",
                                           [ACCESS_ONE_POD] = "OnePod"};
    char uid[UID_TEXT_BYTES];
    const struct claim *record = claim->claim;
    json_t *object = json_object();
    int rc = value_put(object, "namespace", value_text(name_text(record->ns))) |
             value_put(object, "name", value_text(claim_name(record))) |
             value_put(object, "found", json_boolean(record->exists)) |
             value_put(object, "uid", value_text(uid_text(&record->uid, uid))) |
             value_put(object, "phase", value_text(claim->details.phase)) |
             value_put(object, "accessModes", who_strings(&claim->details.access_modes)) |
             value_put(object, "usableBy", json_string(accesses[claim->access])) |
             value_put(object, "violated",
                       json_boolean(claim->access == ACCESS_ONE_POD && claim->assigned_count > 1)) |
             value_put(object, "deleting", json_boolean(record->is_deleting)) |
             value_put(object, "free", json_boolean(is_free(claim))) |
             value_put(object, "reclaimPolicy", value_text(claim->volume_details.reclaim_policy)) |
             value_put(object, "volume", value_text(claim->volume)) |
             value_put(object, "finalizers", who_strings(&claim->details.finalizers)) |
             value_put(object, "attachments", describe_attachments(claim));

    rc |= put_pods(object, claim) | put_lock(object, claim) |
          put_reservation(object, reservation_at(record->reservation));
    return value_whole(object, rc | value_put(object, "freedBy", who_freed_by(claim, true)));
}
