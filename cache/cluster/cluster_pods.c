/*
 * What the API server and schedulers say about pods; and until when their nominations count.
 */
#include <utlist.h>

#include "cache/cluster/cluster_internal.h"
#include "cache/cluster/reservation.h"
#include "cache/cluster/unconfirmed.h"
#include "config/base/clock.h"

static bool pod_matches(const void *record, const void *key)
{
    const struct pod *pod = record;
    const struct object_key *wanted = key;
    return name_at(pod->ns) == wanted->ns && slice_equal(pod_name(pod), wanted->name);
}

struct pod *cluster_find_pod(const struct cluster *cluster, struct slice ns, struct slice name)
{
    struct object_key key = {names_find(&cluster->names, ns), name};

    if (key.ns == NULL)
        return NULL;
    return table_find(&cluster->pods, object_key_hash(key), pod_matches, &key);
}

struct pod *cluster_find_same_pod(const struct cluster *cluster,
                                  const struct object_reference *reference)
{
    struct pod *pod = cluster_find_pod(cluster, reference->ns, reference->name);

    return pod != NULL && uid_is(&pod->uid, reference->uid) ? pod : NULL;
}

struct object_reference pod_reference(const struct pod *pod, char uid[UID_TEXT_BYTES])
{
    return (struct object_reference){KIND_POD, name_text(pod->ns), pod_name(pod),
                                     uid_text(&pod->uid, uid)};
}

/* ---- nominations ---- */

static void stop_checking(struct cluster *cluster, struct nomination *nomination)
{
    if (!nomination->is_checked)
        return;
    DL_DELETE(cluster->nominations, nomination);
    nomination->is_checked = false;
}

/* In front, since it is due at once: the first check only begins. */
void nominated_add(struct cluster *cluster, struct pod *pod)
{
    struct nomination *nomination = nomination_at(pod->nomination);

    if (nomination == NULL || pod->use_count == 0)
        return;
    nomination->pod = pod;
    nomination->is_checked = true;
    DL_PREPEND(cluster->nominations, nomination);
}

void nominated_remove(struct cluster *cluster, struct pod *pod)
{
    struct nomination *nomination = nomination_at(pod->nomination);

    if (nomination != NULL)
        stop_checking(cluster, nomination);
}

/* The record replaces the former one of the same pod: a nomination to the same node is the same. */
static void nominated_replace(struct cluster *cluster, struct pod *former, struct pod *pod)
{
    struct nomination *old = nomination_at(former->nomination);
    struct nomination *new = nomination_at(pod->nomination);

    if (old == NULL || new == NULL || old->node != new->node)
        return;
    if (old->has_lapsed || old->is_checked)
        stop_checking(cluster, new);
    new->has_lapsed = old->has_lapsed;
    if (!old->is_checked)
        return;
    new->free_checks = old->free_checks;
    new->due_ns = old->due_ns;
    DL_REPLACE_ELEM(cluster->nominations, old, new);
    old->is_checked = false;
    new->is_checked = true;
}

bool cluster_nomination_counts(const struct cluster *cluster, const struct pod *pod)
{
    return pod_is_nominated(pod) && !pod->is_terminating &&
           !nomination_at(pod->nomination)->has_lapsed &&
           node_is_usable(cluster_find_node(cluster, pod_nominated_node(pod)));
}

bool nominated_is_due(const struct cluster *cluster, uint64_t now_ns)
{
    return cluster->nominations != NULL && cluster->nominations->due_ns <= now_ns;
}

/* Whether other pods have one of the pod's claims that are for one pod. */
static bool is_kept_out(const struct pod *pod)
{
    for (unsigned i = 0; i < pod->use_count; i++) {
        const struct claim *claim = claim_at(pod->uses[i].claim);
        if (claim->refs != 0 && (claim->is_rwop || claim->deferred != 0))
            return true;
    }
    return false;
}

const struct pod *nominated_check(struct cluster *cluster, uint64_t now_ns)
{
    struct nomination *nomination = cluster->nominations;

    if (!nominated_is_due(cluster, now_ns))
        return NULL;
    const struct pod *pod = nomination->pod;
    bool waits = !pod_is_assigned(pod) && !pod->is_terminal && !pod->is_terminating;
    bool is_first = nomination->due_ns == 0;
    nomination->free_checks = is_first || is_kept_out(pod) ? 0 : nomination->free_checks + 1;
    nomination->has_lapsed = nomination->free_checks == NOMINATED_CHECKS;
    DL_DELETE(cluster->nominations, nomination);
    nomination->is_checked = waits && !nomination->has_lapsed;
    nomination->due_ns = now_ns + NOMINATED_CHECK_MS * NS_PER_MS;
    if (nomination->is_checked)
        DL_APPEND(cluster->nominations, nomination);
    return waits && nomination->has_lapsed ? pod : NULL;
}

/* ---- the record of a pod ---- */

/* The pod is gone: ends its reservation, and forgets unconfirmed answers about it. */
static void forget_uid(struct cluster *cluster, const struct uid *uid)
{
    char text[UID_TEXT_BYTES];

    if (cluster->unconfirmed != NULL)
        unconfirmed_forget(cluster, uid_text(uid, text));
    reservation_release(cluster, uid);
}

void pod_remove(struct cluster *cluster, struct pod *pod)
{
    forget_uid(cluster, &pod->uid);
    pod_drop(cluster, pod);
}

/* Whether the object may be older than our own bind of the pod: then it may lack the node or a
 * deferral, which nobody removes from a pod. An object without a node that was requested after the
 * answer to our Binding arrived is not older: the Binding was not applied. */
static bool may_be_behind(const struct cluster *cluster, const struct pod *known,
                          const struct pod_object *object, uint64_t asked_ns)
{
    return known != NULL && pod_is_assigned(known) && uid_is(&known->uid, object->meta.uid) &&
           !cluster->lists[KIND_POD].overrides &&
           (object->node.len != 0 || !unconfirmed_is_older(cluster, object->meta.uid, asked_ns));
}

/* The mounts of a bound pod, if the object lacks one of their deferrals; else NULL. The deferral
 * stays: the runtime has mounted the volume, even if someone removed the annotation since, or the
 * watch is behind our own write. */
static const struct pod_mounts *missed_deferrals(const struct pod *known,
                                                 const struct pod_object *object)
{
    const struct pod_mounts *mounts = pod_mounts(known);

    for (uint32_t i = 0; mounts != NULL && i < mounts->volume_count; i++) {
        const struct pod_volume *volume = &mounts->volumes[i];
        const struct pod_volume *seen =
            object->mounts == NULL ? NULL : mounts_find_near(object->mounts, volume->name, i);
        if (volume_is_deferred(volume) && (seen == NULL || !volume_is_deferred(seen)))
            return mounts;
    }
    return NULL;
}

/* pod is the new record; known, the former one, is dropped. */
static void replace_record(struct cluster *cluster, struct pod *known, struct pod *pod)
{
    if (known != NULL && memcmp(&known->uid, &pod->uid, sizeof pod->uid) != 0)
        forget_uid(cluster, &known->uid);
    else if (known != NULL)
        nominated_replace(cluster, known, pod);
    if (pod_is_assigned(pod) || pod->is_terminal) /* it holds its claims itself, or needs none */
        reservation_release(cluster, &pod->uid);
    if (known != NULL)
        pod_drop(cluster, known);
}

int pod_apply(struct cluster *cluster, struct pod *known, const struct pod_object *object,
              uint64_t asked_ns, struct error *err)
{
    if (object->claim_count > POD_CLAIMS_MAX || object->meta.name.len > UINT16_MAX)
        return error_set(err, ERROR_TOO_BIG, "a pod with over %d claims, or %d bytes of name",
                         POD_CLAIMS_MAX, UINT16_MAX);
    struct pod_object corrected = *object;
    bool is_behind = may_be_behind(cluster, known, object, asked_ns);
    if (is_behind && object->node.len == 0)
        corrected.node = pod_node(known);
    const struct pod_mounts *missed = is_behind ? missed_deferrals(known, object) : NULL;
    if (missed != NULL)
        corrected.mounts = missed;
    struct pod *pod = pod_new(cluster, &corrected);
    if (pod == NULL)
        return error_no_memory(err);
    for (uint32_t i = 0; missed != NULL && i < missed->volume_count; i++)
        if (volume_is_deferred(&missed->volumes[i]))
            cluster_defer(cluster, pod, missed->volumes[i].name);
    if (!pod_add(cluster, pod))
        return error_no_memory(err);
    replace_record(cluster, known, pod); /* last, so that a failure above changes nothing */
    if (object->node.len != 0 || !pod_is_assigned(pod))
        unconfirmed_forget(cluster, object->meta.uid); /* the bind is confirmed, or refuted */
    return 0;
}

/* ---- pods as decoded objects ---- */

bool cluster_describe_pod(const struct pod *pod, struct arena *arena, struct pod_object *out)
{
    char *uid = arena_alloc(arena, UID_TEXT_BYTES);

    *out = (struct pod_object){
        .meta = {.ns = name_text(pod->ns), .name = pod_name(pod)},
        .node = pod_node(pod),
        .created = pod_created(pod),
        .nominated_node = pod_nominated_node(pod),
        .priority = pod->priority,
        .has_priority = !pod->has_no_priority,
        .is_grouped = pod->is_grouped,
        .claims = arena_alloc(arena, pod->use_count * sizeof *out->claims),
        .claim_count = pod->use_count,
        .mounts = pod_mounts(pod),
    };
    if (uid == NULL || out->claims == NULL)
        return false;
    out->meta.uid = uid_text(&pod->uid, uid);
    if (pod->is_terminating)
        out->meta.deletion_timestamp = SLICE("set");
    if (pod->never_preempts)
        out->preemption_policy = SLICE("Never");
    for (unsigned i = 0; i < pod->use_count; i++)
        out->claims[i] =
            (struct claim_reference){claim_name(claim_at(pod->uses[i].claim)),
                                     pod->uses[i].is_ephemeral, pod->uses[i].is_deferred};
    return true;
}

/* The stored mounts of a request's pod; NULL: none are stored. */
static const struct pod_mounts *known_mounts(const struct cluster *cluster,
                                             const struct pod_object *pod)
{
    struct object_reference reference = object_reference_of_pod(&pod->meta);
    const struct pod *known = cluster->deferring == NULL || pod->meta.uid.len == 0
                                  ? NULL
                                  : cluster_find_same_pod(cluster, &reference);

    return known == NULL ? NULL : pod_mounts(known);
}

bool cluster_complete_pod(const struct cluster *cluster, struct pod_object *pod,
                          struct arena *arena)
{
    const struct pod_mounts *known = pod->mounts == NULL ? NULL : known_mounts(cluster, pod);

    if (known == NULL || known == pod->mounts || !mounts_miss_field(pod->mounts, known))
        return true;
    void *memory = arena_alloc(arena, mounts_bytes(pod->mounts));
    struct claim_reference *claims = arena_alloc(arena, pod->claim_count * sizeof *claims);
    if (memory == NULL || claims == NULL)
        return false;
    struct pod_mounts *mounts = mounts_copy(pod->mounts, memory);
    mounts_take_fields(mounts, known);
    for (size_t i = 0; i < pod->claim_count; i++) {
        claims[i] = pod->claims[i];
        for (uint32_t j = 0; j < mounts->volume_count && !claims[i].is_deferred; j++)
            claims[i].is_deferred = volume_is_deferred(&mounts->volumes[j]) &&
                                    mounts->volumes[j].claim.len != 0 &&
                                    slice_equal(mounts->volumes[j].claim, claims[i].name);
    }
    pod->mounts = mounts;
    pod->claims = claims;
    return true;
}
