#include "extender/serving/live/claim_reports.h"

#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "config/base/log.h"
#include "extender/serving/live/events.h"
#include "policy/exclusive.h"
#include "policy/holders.h"

/* ---- exclusive claims that two pods hold ---- */

enum { MESSAGE_BYTES_MAX = 16 * 1024 };

/* A violation that was reported. */
struct reported {
    struct reported_key {
        struct uid pod, claim;
    } key;
    UT_hash_handle hh;
};

static void forget_oldest(struct violations *violations)
{
    struct reported *oldest = violations->reported;

    HASH_DEL(violations->reported, oldest);
    free(oldest);
}

void violations_dispose(struct violations *violations)
{
    while (violations->reported != NULL)
        forget_oldest(violations);
}

/* Whether the violation has not been reported yet; remembers it. */
static bool is_news(struct violations *violations, const struct pod *pod, const struct claim *claim)
{
    struct reported_key key = {pod->uid, claim->uid};
    struct reported *known = NULL;

    HASH_FIND(hh, violations->reported, &key, sizeof key, known);
    if (known != NULL)
        return false;
    if (HASH_COUNT(violations->reported) >= VIOLATIONS_REPORTED_MAX)
        forget_oldest(violations);
    known = calloc(1, sizeof *known);
    if (known == NULL)
        return true;
    known->key = key;
    HASH_ADD(hh, violations->reported, key, sizeof known->key, known);
    if (known->hh.tbl == NULL)
        free(known);
    return true;
}

/* Another pod that holds the claim; NULL: none does. */
static const struct pod *other_holder(const struct claim *claim, const struct pod *pod)
{
    for (const struct use *use = use_at(claim->uses); use != NULL; use = use_at(use->next))
        if (use_pod(use) != pod && pod_holds(use_pod(use)))
            return use_pod(use);
    return NULL;
}

static bool is_violated(const struct violations *violations, const struct claim *claim)
{
    struct view view = state_view(violations->state);

    return claim_is_violated(claim) || exclusive_is_violated(&view, claim);
}

/* Reports that the pod has violated the claim. */
static void report_violation(struct violations *violations, const struct pod *pod,
                             const struct claim *claim)
{
    const struct pod *first = other_holder(claim, pod);
    struct slice ns = name_text(pod->ns);
    SCOPED_ARENA(arena, MESSAGE_BYTES_MAX);
    char uid[UID_TEXT_BYTES];

    if (first == NULL || !is_news(violations, pod, claim))
        return;
    struct slice message = arena_printf(
        &arena, "claim %.*s/%.*s belongs to one pod (%s), and pod %.*s/%.*s on %.*s also uses it",
        SLICE_ARG(ns), SLICE_ARG(claim_name(claim)),
        claim->is_rwop ? "ReadWriteOncePod" : "a container runtime mounts it: deferFSMount",
        SLICE_ARG(ns), SLICE_ARG(pod_name(first)), SLICE_ARG(pod_node(first)));
    log_warn("two pods hold an exclusive claim", LOG_SLICE("namespace", ns),
             LOG_SLICE("claim", claim_name(claim)), LOG_SLICE("pod", pod_name(pod)),
             LOG_SLICE("node", pod_node(pod)), LOG_SLICE("with", pod_name(first)));
    struct object_reference about = pod_reference(pod, uid);
    events_post(violations->state->events, violations->state->api, &about, "Warning",
                "ExclusiveClaimViolated", message);
}

/* Reports the claim, if two pods hold it. Of pods that were seen together, the one that changed
 * last counts as the second. */
static void report_claim(struct violations *violations, const struct claim *claim)
{
    const struct pod *latest = NULL;

    if (!is_violated(violations, claim))
        return;
    for (const struct use *use = use_at(claim->uses); use != NULL; use = use_at(use->next)) {
        const struct pod *pod = use_pod(use);
        if (pod_holds(pod) && (latest == NULL || pod->version > latest->version))
            latest = pod;
    }
    if (latest != NULL)
        report_violation(violations, latest, claim);
}

void violations_report_change(struct violations *violations, const struct object *object,
                              bool was_holding)
{
    const struct cluster *cluster = &violations->state->cluster;
    struct slice ns = object->meta.ns, name = object->meta.name;
    const struct claim *claim =
        object->kind == KIND_CLAIM ? cluster_find_claim(cluster, ns, name) : NULL;
    const struct pod *pod = object->kind == KIND_POD ? cluster_find_pod(cluster, ns, name) : NULL;

    if (cluster->violations == 0 && cluster->deferring == NULL)
        return;
    if (claim != NULL)
        report_claim(violations, claim);
    if (pod == NULL || was_holding || !pod_holds(pod))
        return;
    for (unsigned i = 0; i < pod->use_count; i++)
        if (is_violated(violations, claim_at(pod->uses[i].claim)))
            report_violation(violations, pod, claim_at(pod->uses[i].claim));
}

void violations_report_all(struct violations *violations)
{
    struct state *state = violations->state;
    struct table_walk walk = {.at = 0};
    bool has_more = true;

    while (has_more) {
        SCOPED_READ_LOCK(&state->lock);
        has_more = table_next_page(&state->cluster.claims, &walk);
        for (; has_more && walk.next < walk.count; walk.next++)
            report_claim(violations, (const struct claim *)(void *)walk.records[walk.next]);
    }
}

/* ---- claims for which kube-scheduler rejects a pod ---- */

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
    struct object_reference pod; /* its UID is the key; its strings lie in `text` */
    UT_hash_handle hh;
    struct holding reported[CLAIM_IN_USE_REPORTED_MAX]; /* the last one at reported_count - 1,
                                                           modulo its size */
    unsigned reported_count;
    uint32_t claims[CLAIM_IN_USE_CLAIMS_MAX]; /* hashes of their names */
    size_t claim_count;
    bool is_due;
    struct refused *prev, *next; /* pods that are due, if it is */
    char text[];
};

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
    struct object_reference about = object_reference_of_pod(&pod->meta);
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
    const struct pod *pod = cluster_find_same_pod(view.cluster, &refused->pod);
    struct conflicts conflicts = {.count = 0};
    struct pod_object object;
    struct verdict verdict;
    unsigned count = 0;

    if (pod == NULL || pod_is_assigned(pod) || pod->is_terminating)
        return true;
    if (!cluster_describe_pod(pod, arena, &object) ||
        !conflicts_find(&view, &object, arena, &conflicts))
        return false;
    policy_prefilter(&view, &object, arena, &verdict);
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
    SCOPED_ARENA(arena, REPORT_BYTES_MAX);

    in_use->has_dropped = false;
    SCOPED_READ_LOCK(&in_use->state->lock);
    (void)report_all(in_use, refused, &arena);
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
    uint64_t next_ns = UINT64_MAX;

    if (!in_use->is_synced || in_use->due == NULL)
        return UINT64_MAX;
    if (now_ns < in_use->tick_ns)
        return in_use->tick_ns;
    int left = LOOKS_A_TICK;
    in_use->tick_ns = now_ns + TICK_MS * NS_PER_MS;
    for (struct refused *refused = in_use->due, *next; refused != NULL; refused = next) {
        uint64_t *full_ns = &in_use->full_ns[share_of(refused->pod.ns)];
        next = refused->next;
        if (*full_ns <= now_ns && left-- > 0) {
            bool is_done = look(in_use, refused);
            make_done(in_use, refused);
            if (is_done)
                continue;
            *full_ns = now_ns + FULL_MS * NS_PER_MS;
            make_due(in_use, refused); /* behind the others, of which one may cause no Event */
        }
        uint64_t again_ns = *full_ns <= now_ns ? in_use->tick_ns : *full_ns;
        next_ns = again_ns < next_ns ? again_ns : next_ns;
    }
    return next_ns;
}

/* ---- who waits ---- */

/* NULL: it is not remembered. */
static struct refused *find(const struct claim_in_use *in_use, struct slice uid)
{
    struct refused *found = NULL;

    HASH_FIND(hh, in_use->refused, uid.ptr, uid.len, found);
    return found;
}

/* NULL is ignored. */
static void forget(struct claim_in_use *in_use, struct refused *refused)
{
    if (refused == NULL)
        return;
    make_done(in_use, refused);
    in_use->refused_in[share_of(refused->pod.ns)]--;
    HASH_DEL(in_use->refused, refused);
    free(refused);
}

void claim_in_use_dispose(struct claim_in_use *in_use)
{
    while (in_use->refused != NULL)
        forget(in_use, in_use->refused);
}

static struct refused *refused_new(const struct pod_object *pod)
{
    struct object_reference reference = object_reference_of_pod(&pod->meta);
    struct refused *refused = calloc(1, sizeof *refused + object_reference_bytes(&reference));

    if (refused == NULL)
        return NULL;
    refused->pod = object_reference_copy(&reference, refused->text);
    for (size_t i = 0; i < pod->claim_count && i < CLAIM_IN_USE_CLAIMS_MAX; i++)
        refused->claims[refused->claim_count++] = names_hash(pod->claims[i].name);
    return refused;
}

/* NULL: there is none. */
static struct refused *oldest_of(const struct claim_in_use *in_use, unsigned share)
{
    struct refused *oldest = in_use->refused;

    while (oldest != NULL && share_of(oldest->pod.ns) != share)
        oldest = oldest->hh.next;
    return oldest;
}

/* NULL: no memory, or it has no UID. */
static struct refused *remember(struct claim_in_use *in_use, const struct pod_object *pod)
{
    struct refused *refused = find(in_use, pod->meta.uid);

    if (refused != NULL || pod->meta.uid.len == 0 || pod->meta.uid.len > UID_TEXT_BYTES)
        return refused;
    if (HASH_COUNT(in_use->refused) >= CLAIM_IN_USE_PODS_MAX)
        forget(in_use, oldest_of(in_use, share_largest(in_use->refused_in)));
    refused = refused_new(pod);
    if (refused == NULL)
        return NULL;
    HASH_ADD_KEYPTR(hh, in_use->refused, refused->pod.uid.ptr, refused->pod.uid.len, refused);
    if (refused->hh.tbl == NULL) {
        free(refused);
        return NULL;
    }
    in_use->refused_in[share_of(refused->pod.ns)]++;
    return refused;
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
            if (slice_equal(refused->pod.ns, holder->meta.ns) && may_name(refused, claim))
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
    struct refused *refused = find(in_use, pod->uid);

    if (refused != NULL && object_reference_has_name(&refused->pod, pod))
        forget(in_use, refused);
}

void claim_in_use_synced(struct claim_in_use *in_use)
{
    in_use->is_synced = true;
}
