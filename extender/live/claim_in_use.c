#include "extender/live/claim_in_use.h"

#include <stdio.h>
#include <stdlib.h>

#include "extender/live/events.h"
#include "policy/conflicts.h"

enum {
    REPORT_BYTES_MAX = 1 << 20,
    CLAIM_HASHES_MAX = 8,
    EVENT_NAME_BYTES = 128, /* three UIDs */
};

/* A claim and its holder. Compared only. */
struct holding {
    struct uid claim, holder;
};

/* A pod that waits. */
struct refused {
    char uid[UID_TEXT_BYTES]; /* the key: its text, then zeros */
    UT_hash_handle hh;
    struct holding reported[CLAIM_IN_USE_REPORTED_MAX]; /* the last one at reported_count - 1,
                                                           modulo its size */
    unsigned reported_count;
    uint32_t claims[CLAIM_HASHES_MAX]; /* hashes of their names */
    size_t claim_count;                /* more than CLAIM_HASHES_MAX: the others are not known */
    size_t ns_len, name_len;
    char text[]; /* namespace and name */
};

static struct slice ns_of(const struct refused *refused)
{
    return (struct slice){refused->text, refused->ns_len};
}

static struct slice name_of(const struct refused *refused)
{
    return (struct slice){refused->text + refused->ns_len, refused->name_len};
}

static struct slice uid_of(const struct refused *refused)
{
    return (struct slice){refused->uid, strnlen(refused->uid, sizeof refused->uid)};
}

void claim_in_use_dispose(struct claim_in_use *in_use)
{
    struct refused *first = in_use->refused;

    HASH_CLEAR(hh, in_use->refused); /* the entries stay linked to one another */
    for (struct refused *refused = first, *next; refused != NULL; refused = next) {
        next = refused->hh.next;
        free(refused);
    }
}

/* ---- what is reported ---- */

static bool was_reported(const struct refused *refused, const struct holding *holding)
{
    for (unsigned i = 0; i < refused->reported_count && i < CLAIM_IN_USE_REPORTED_MAX; i++)
        if (memcmp(&refused->reported[i], holding, sizeof *holding) == 0)
            return true;
    return false;
}

/* What preemption does for a pod with that verdict. */
static struct slice describe_outlook(const struct pod_object *pod, const struct conflict *conflict,
                                     const struct verdict *verdict, struct arena *arena)
{
    const struct pod *holder = conflict->holder;

    if (conflict->hold == HOLD_TERMINATING)
        return SLICE("the claim is free when that pod is gone");
    if (slice_equal(pod->preemption_policy, SLICE("Never")))
        return SLICE("preemption cannot help: this pod has preemptionPolicy Never");
    if (holder->priority >= pod->priority)
        return arena_printf(arena,
                            "preemption cannot help: that pod's priority (%d) is not lower than "
                            "this pod's (%d)",
                            holder->priority, (int)pod->priority);
    return verdict->code == CODE_UNSCHEDULABLE
               ? arena_printf(arena,
                              "preemption can help: that pod's priority (%d) is lower than this "
                              "pod's (%d)",
                              holder->priority, (int)pod->priority)
               : SLICE("preemption of that pod alone cannot help");
}

/* Under the lock. Without memory, or if too many Events were posted, it is tried again at the pod's
 * next change. */
static void report(struct claim_in_use *in_use, struct refused *refused,
                   const struct pod_object *pod, const struct conflict *conflict,
                   const struct verdict *verdict, struct arena *arena)
{
    const struct state *state = in_use->state;
    struct holding holding = {conflict->claim->uid, conflict->holder->uid};
    char name[EVENT_NAME_BYTES], claim[UID_TEXT_BYTES], holder[UID_TEXT_BYTES];

    if (was_reported(refused, &holding))
        return;
    struct slice what = conflict_describe(conflict, arena);
    struct slice outlook = describe_outlook(pod, conflict, verdict, arena);
    if (what.ptr == NULL || outlook.ptr == NULL)
        return;
    (void)snprintf(name, sizeof name, "%.*s.%.*s.%.*s", SLICE_ARG(pod->meta.uid),
                   SLICE_ARG(uid_text(&holding.claim, claim)),
                   SLICE_ARG(uid_text(&holding.holder, holder)));
    struct object_reference about = {KIND_POD, pod->meta.ns, pod->meta.name, pod->meta.uid};
    struct event_note note = {
        "Warning", "ClaimInUse",
        arena_printf(arena, "%.*s; %.*s", SLICE_ARG(what), SLICE_ARG(outlook)), name};
    if (events_post_once(state->events, state->api, &about, &note))
        refused->reported[refused->reported_count++ % CLAIM_IN_USE_REPORTED_MAX] = holding;
}

/* Whether kube-scheduler's plug-in rejects a pod for this. It knows no reservations. */
static bool is_refusal(const struct conflict *conflict)
{
    return conflict->holder != NULL && conflict->claim->is_rwop;
}

/* Reports each holder, if the pod still waits. Under the lock. */
static void report_all(struct claim_in_use *in_use, struct refused *refused, struct arena *arena)
{
    struct view view = state_view(in_use->state);
    const struct pod *pod = cluster_find_pod(view.cluster, ns_of(refused), name_of(refused));
    struct conflicts conflicts = {.count = 0};
    const struct policy *decided_by;
    struct pod_object object;
    struct verdict verdict;
    unsigned count = 0;

    if (pod == NULL || !uid_is(&pod->uid, uid_of(refused)) || pod->node != NULL ||
        pod->is_terminating || !cluster_describe_pod(pod, arena, &object))
        return;
    const struct claim **claims = conflicts_find_claims(view.cluster, &object, arena);
    if (claims == NULL || !conflicts_find(&view, &object, claims, arena, &conflicts))
        return;
    conflicts_sort(&conflicts);
    policy_prefilter(&view, &object, arena, &verdict, &decided_by);
    for (size_t i = 0; i < conflicts.count && count < CLAIM_IN_USE_REPORTED_MAX; i++) {
        if (!is_refusal(&conflicts.items[i]))
            continue;
        report(in_use, refused, &object, &conflicts.items[i], &verdict, arena);
        count++;
    }
}

static void look(struct claim_in_use *in_use, struct refused *refused)
{
    struct arena arena;

    if (!in_use->is_synced)
        return;
    arena_init(&arena, REPORT_BYTES_MAX);
    (void)pthread_rwlock_rdlock(&in_use->state->lock);
    report_all(in_use, refused, &arena);
    (void)pthread_rwlock_unlock(&in_use->state->lock);
    arena_dispose(&arena);
}

/* ---- who waits ---- */

/* NULL: it is not remembered. */
static struct refused *find(const struct claim_in_use *in_use, struct slice uid)
{
    struct refused *found = NULL;
    char key[UID_TEXT_BYTES] = {0};

    if (in_use->refused == NULL || uid.len > sizeof key)
        return NULL;
    memcpy(key, uid.ptr, uid.len);
    HASH_FIND(hh, in_use->refused, key, sizeof key, found);
    return found;
}

/* NULL is ignored. */
static void forget(struct claim_in_use *in_use, struct refused *refused)
{
    if (refused == NULL)
        return;
    HASH_DEL(in_use->refused, refused);
    free(refused);
}

static struct refused *refused_new(const struct pod_object *pod)
{
    const struct meta *meta = &pod->meta;
    struct refused *refused = calloc(1, sizeof *refused + meta->ns.len + meta->name.len);

    if (refused == NULL)
        return NULL;
    memcpy(refused->uid, meta->uid.ptr, meta->uid.len);
    refused->ns_len = meta->ns.len;
    refused->name_len = meta->name.len;
    memcpy(refused->text, meta->ns.ptr, meta->ns.len);
    memcpy(refused->text + meta->ns.len, meta->name.ptr, meta->name.len);
    refused->claim_count = pod->claim_count;
    for (size_t i = 0; i < pod->claim_count && i < CLAIM_HASHES_MAX; i++)
        refused->claims[i] = names_hash(pod->claims[i].name);
    return refused;
}

/* NULL: no memory, or it has no UID. */
static struct refused *remember(struct claim_in_use *in_use, const struct pod_object *pod)
{
    struct refused *refused = find(in_use, pod->meta.uid);

    if (refused != NULL || pod->meta.uid.len == 0 || pod->meta.uid.len > UID_TEXT_BYTES)
        return refused;
    if (HASH_COUNT(in_use->refused) >= CLAIM_IN_USE_PODS_MAX)
        forget(in_use, in_use->refused); /* the oldest */
    refused = refused_new(pod);
    if (refused == NULL)
        return NULL;
    HASH_ADD(hh, in_use->refused, uid, sizeof refused->uid, refused);
    if (refused->hh.tbl != NULL)
        return refused;
    free(refused);
    return NULL;
}

static bool may_name(const struct refused *refused, struct slice claim)
{
    uint32_t hash = names_hash(claim);

    for (size_t i = 0; i < refused->claim_count && i < CLAIM_HASHES_MAX; i++)
        if (refused->claims[i] == hash)
            return true;
    return refused->claim_count > CLAIM_HASHES_MAX;
}

static bool may_want(const struct refused *refused, const struct pod_object *holder)
{
    bool may_want = false;

    if (!slice_equal(ns_of(refused), holder->meta.ns))
        return false;
    for (size_t i = 0; i < holder->claim_count && !may_want; i++)
        may_want = may_name(refused, holder->claims[i].name);
    return may_want;
}

void claim_in_use_put(struct claim_in_use *in_use, const struct pod_object *pod, bool was_holding)
{
    if (pod->is_refused_unnamed && pod->node.len == 0) {
        struct refused *refused = remember(in_use, pod);
        if (refused != NULL)
            look(in_use, refused);
        return;
    }
    forget(in_use, find(in_use, pod->meta.uid));
    if (was_holding || pod->node.len == 0)
        return;
    for (struct refused *refused = in_use->refused; refused != NULL; refused = refused->hh.next)
        if (may_want(refused, pod))
            look(in_use, refused);
}

void claim_in_use_delete(struct claim_in_use *in_use, const struct meta *pod)
{
    forget(in_use, find(in_use, pod->uid));
}

void claim_in_use_synced(struct claim_in_use *in_use)
{
    in_use->is_synced = true;
    for (struct refused *refused = in_use->refused; refused != NULL; refused = refused->hh.next)
        look(in_use, refused);
}
