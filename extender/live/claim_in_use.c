#include "extender/live/claim_in_use.h"

#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "config/base/clock.h"
#include "extender/live/events.h"
#include "policy/conflicts.h"

enum {
    REPORT_BYTES_MAX = 1 << 20,
    EVENT_NAME_BYTES = 128, /* three UIDs */

    /* A look at a pod with hundreds of claims takes 0.2 ms, and 1,000 pods may wait for one claim:
     * the informer, which has other work, looks at few of them at a time. */
    LOOKS_A_TICK = 20,
    TICK_MS = 100,
    FULL_MS = 10000, /* until the next look, after an Event was dropped */
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
    uint32_t claims[CLAIM_IN_USE_CLAIMS_MAX]; /* hashes of their names */
    size_t claim_count;
    bool is_due;
    struct refused *prev, *next; /* pods that are due, if it is */
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

    in_use->due = NULL;
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

/* Under the lock. False: no memory, or too many Events were posted. */
static bool report(struct claim_in_use *in_use, struct refused *refused,
                   const struct pod_object *pod, const struct conflict *conflict,
                   const struct verdict *verdict, struct arena *arena)
{
    const struct state *state = in_use->state;
    struct holding holding = {conflict->claim->uid, conflict->holder->uid};
    char name[EVENT_NAME_BYTES], claim[UID_TEXT_BYTES], holder[UID_TEXT_BYTES];

    if (was_reported(refused, &holding))
        return true;
    struct slice what = conflict_describe(conflict, arena);
    struct slice outlook = describe_outlook(pod, conflict, verdict, arena);
    if (what.ptr == NULL || outlook.ptr == NULL)
        return false;
    (void)snprintf(name, sizeof name, "%.*s.%.*s.%.*s", SLICE_ARG(pod->meta.uid),
                   SLICE_ARG(uid_text(&holding.claim, claim)),
                   SLICE_ARG(uid_text(&holding.holder, holder)));
    struct object_reference about = {KIND_POD, pod->meta.ns, pod->meta.name, pod->meta.uid};
    struct event_note note = {
        "Warning", "ClaimInUse",
        arena_printf(arena, "%.*s; %.*s", SLICE_ARG(what), SLICE_ARG(outlook)), name};
    if (!events_post_once(state->events, state->api, &about, &note)) {
        in_use->has_dropped = true;
        return false;
    }
    refused->reported[refused->reported_count++ % CLAIM_IN_USE_REPORTED_MAX] = holding;
    return true;
}

/* Whether kube-scheduler's plug-in rejects a pod for this. It knows no reservations. */
static bool is_refusal(const struct conflict *conflict)
{
    return conflict->holder != NULL && conflict->claim->is_rwop;
}

/* Reports each holder, if the pod still waits. Under the lock. False: not all, as above. */
static bool report_all(struct claim_in_use *in_use, struct refused *refused, struct arena *arena)
{
    struct view view = state_view(in_use->state);
    const struct pod *pod = cluster_find_pod(view.cluster, ns_of(refused), name_of(refused));
    struct conflicts conflicts = {.count = 0};
    const struct policy *decided_by;
    struct pod_object object;
    struct verdict verdict;
    unsigned count = 0;

    if (pod == NULL || !uid_is(&pod->uid, uid_of(refused)) || pod_is_assigned(pod) ||
        pod->is_terminating)
        return true;
    if (!cluster_describe_pod(pod, arena, &object))
        return false;
    const struct claim **claims = conflicts_find_claims(view.cluster, &object, arena);
    if (claims == NULL || !conflicts_find(&view, &object, claims, arena, &conflicts))
        return false;
    conflicts_sort(&conflicts);
    policy_prefilter(&view, &object, arena, &verdict, &decided_by);
    for (size_t i = 0; i < conflicts.count && count < CLAIM_IN_USE_REPORTED_MAX; i++) {
        if (!is_refusal(&conflicts.items[i]))
            continue;
        if (!report(in_use, refused, &object, &conflicts.items[i], &verdict, arena))
            return false;
        count++;
    }
    return true;
}

/* False: an Event was dropped, so another look is needed. Without memory for all of a report, no
 * other look would succeed. */
static bool look(struct claim_in_use *in_use, struct refused *refused)
{
    struct arena arena;

    in_use->has_dropped = false;

    arena_init(&arena, REPORT_BYTES_MAX);
    (void)pthread_rwlock_rdlock(&in_use->state->lock);
    (void)report_all(in_use, refused, &arena);
    (void)pthread_rwlock_unlock(&in_use->state->lock);
    arena_dispose(&arena);
    return !in_use->has_dropped;
}

static void make_due(struct claim_in_use *in_use, struct refused *refused)
{
    if (refused->is_due)
        return;
    refused->is_due = true;
    DL_APPEND(in_use->due, refused);
}

static void make_done(struct claim_in_use *in_use, struct refused *refused)
{
    if (!refused->is_due)
        return;
    refused->is_due = false;
    DL_DELETE(in_use->due, refused);
}

uint64_t claim_in_use_tick(struct claim_in_use *in_use, uint64_t now_ns)
{
    if (!in_use->is_synced || in_use->due == NULL)
        return UINT64_MAX;
    if (now_ns < in_use->tick_ns)
        return in_use->tick_ns;
    in_use->tick_ns = now_ns + TICK_MS * NS_PER_MS;
    for (int i = 0; in_use->due != NULL && i < LOOKS_A_TICK; i++) {
        struct refused *refused = in_use->due;
        bool is_done = look(in_use, refused);
        make_done(in_use, refused);
        if (is_done)
            continue;
        make_due(in_use, refused); /* behind the others, of which one may cause no Event */
        in_use->tick_ns = now_ns + FULL_MS * NS_PER_MS;
        break;
    }
    return in_use->due == NULL ? UINT64_MAX : in_use->tick_ns;
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
    make_done(in_use, refused);
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
    for (size_t i = 0; i < pod->claim_count && i < CLAIM_IN_USE_CLAIMS_MAX; i++)
        refused->claims[refused->claim_count++] = names_hash(pod->claims[i].name);
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

static bool may_name(const struct refused *refused, uint32_t claim)
{
    for (size_t i = 0; i < refused->claim_count; i++)
        if (refused->claims[i] == claim)
            return true;
    return false;
}

/* The pods that wait, and name one of the pod's claims, are due. */
static void wake_waiting(struct claim_in_use *in_use, const struct pod_object *holder)
{
    for (size_t i = 0; i < holder->claim_count; i++) {
        uint32_t claim = names_hash(holder->claims[i].name);
        for (struct refused *refused = in_use->refused; refused != NULL; refused = refused->hh.next)
            if (may_name(refused, claim) && slice_equal(ns_of(refused), holder->meta.ns))
                make_due(in_use, refused);
    }
}

void claim_in_use_put(struct claim_in_use *in_use, const struct pod_object *pod, bool was_holding)
{
    if (pod->is_refused_unnamed && pod->node.len == 0) {
        struct refused *refused = remember(in_use, pod);
        if (refused != NULL)
            make_due(in_use, refused);
        return;
    }
    forget(in_use, find(in_use, pod->meta.uid));
    if (!was_holding && pod->node.len != 0)
        wake_waiting(in_use, pod);
}

void claim_in_use_delete(struct claim_in_use *in_use, const struct meta *pod)
{
    forget(in_use, find(in_use, pod->uid));
}

void claim_in_use_synced(struct claim_in_use *in_use)
{
    in_use->is_synced = true;
}
