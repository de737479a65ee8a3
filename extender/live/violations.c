#include "extender/live/violations.h"

#include <stdlib.h>

#include "config/base/log.h"
#include "extender/live/events.h"
#include "policy/exclusive.h"

enum { MESSAGE_BYTES_MAX = 16 * 1024 };

/* A violation that was reported. */
struct reported {
    struct reported_key {
        struct uid pod, claim;
    } key;
    UT_hash_handle hh;
};

void violations_dispose(struct violations *violations)
{
    struct reported *first = violations->reported;

    HASH_CLEAR(hh, violations->reported); /* the entries stay linked to one another */
    for (struct reported *reported = first, *next; reported != NULL; reported = next) {
        next = reported->hh.next;
        free(reported);
    }
}

/* Whether the violation has not been reported yet; remembers it. */
static bool is_news(struct violations *violations, const struct pod *pod, const struct claim *claim)
{
    struct reported_key key = {pod->uid, claim->uid};
    struct reported *known = NULL;

    HASH_FIND(hh, violations->reported, &key, sizeof key, known);
    if (known != NULL)
        return false;
    if (HASH_COUNT(violations->reported) >= VIOLATIONS_REPORTED_MAX) {
        known = violations->reported; /* the oldest */
        HASH_DEL(violations->reported, known);
        free(known);
    }
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
static void report(struct violations *violations, const struct pod *pod, const struct claim *claim)
{
    const struct pod *first = other_holder(claim, pod);
    struct slice ns = name_text(pod->ns);
    char uid[UID_TEXT_BYTES];
    struct arena arena;

    if (first == NULL || !is_news(violations, pod, claim))
        return;
    arena_init(&arena, MESSAGE_BYTES_MAX);
    struct slice message = arena_printf(
        &arena, "claim %.*s/%.*s belongs to one pod (%s), and pod %.*s/%.*s on %.*s also uses it",
        SLICE_ARG(ns), SLICE_ARG(claim_name(claim)),
        claim->is_rwop ? "ReadWriteOncePod" : "a container runtime mounts it: deferFSMount",
        SLICE_ARG(ns), SLICE_ARG(pod_name(first)), SLICE_ARG(pod_node(first)));
    log_warn("two pods hold an exclusive claim", LOG_SLICE("namespace", ns),
             LOG_SLICE("claim", claim_name(claim)), LOG_SLICE("pod", pod_name(pod)),
             LOG_SLICE("node", pod_node(pod)), LOG_SLICE("with", pod_name(first)));
    events_post(violations->state->events, violations->state->api,
                &(struct object_reference){KIND_POD, ns, pod_name(pod), uid_text(&pod->uid, uid)},
                "Warning", "ExclusiveClaimViolated", message);
    arena_dispose(&arena);
}

/* Reports the violation of a claim whose pods were seen together: the pod that changed last counts
 * as the second. */
static void report_claim(struct violations *violations, const struct claim *claim)
{
    const struct pod *latest = NULL;

    for (const struct use *use = use_at(claim->uses); use != NULL; use = use_at(use->next)) {
        const struct pod *pod = use_pod(use);
        if (pod_holds(pod) && (latest == NULL || pod->version > latest->version))
            latest = pod;
    }
    if (latest != NULL)
        report(violations, latest, claim);
}

void violations_report(struct violations *violations, const struct claim *claim)
{
    if (is_violated(violations, claim))
        report_claim(violations, claim);
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
        violations_report(violations, claim);
    if (pod == NULL || was_holding || !pod_holds(pod))
        return;
    for (unsigned i = 0; i < pod->use_count; i++)
        if (is_violated(violations, claim_at(pod->uses[i].claim)))
            report(violations, pod, claim_at(pod->uses[i].claim));
}

void violations_report_all(struct violations *violations)
{
    struct state *state = violations->state;
    struct table_walk walk = {.at = 0};
    bool has_more = true;

    while (has_more) {
        (void)pthread_rwlock_rdlock(&state->lock);
        has_more = table_next_page(&state->cluster.claims, &walk);
        for (; has_more && walk.next < walk.count; walk.next++)
            violations_report(violations, (const struct claim *)(void *)walk.records[walk.next]);
        (void)pthread_rwlock_unlock(&state->lock);
    }
}
