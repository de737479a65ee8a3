#include "extender/commands/who/who.h"

#include <stdlib.h>

#include "extender/commands/who/who_claim.h"

enum {
    ANSWER_BYTES_MAX = 1 << 30,
    KEPT_BYTES_MAX = 16 << 20, /* of what is known of the claims */
};

/* ---- what is asked ---- */

static bool asks_for(const struct who_question *question, struct slice ns, struct slice name)
{
    if (question->is_all)
        return question->ns.len == 0 || slice_equal(question->ns, ns);
    for (size_t i = 0; i < question->count; i++)
        if (operand_is(&question->operands[i], ns, name))
            return true;
    return false;
}

static bool keeps(void *context, const struct object *object)
{
    const struct who_question *question = context;

    if (object->kind == KIND_CLAIM)
        return asks_for(question, object->meta.ns, object->meta.name);
    if (object->kind != KIND_POD)
        return object->kind == KIND_NODE || object->kind == KIND_VOLUME ||
               object->kind == KIND_STORAGE_CLASS || object->kind == KIND_CSI_NODE ||
               object->kind == KIND_POD_DISRUPTION_BUDGET;
    for (size_t i = 0; i < object->pod.claim_count; i++)
        if (asks_for(question, object->meta.ns, object->pod.claims[i].name))
            return true;
    return false;
}

struct inquiry_wish who_wish(const struct who_question *question)
{
    return (struct inquiry_wish){
        .kinds = 1U << KIND_POD | 1U << KIND_NODE | 1U << KIND_CLAIM | 1U << KIND_VOLUME |
                 1U << KIND_STORAGE_CLASS | 1U << KIND_CSI_DRIVER | 1U << KIND_CSI_NODE |
                 1U << KIND_POD_DISRUPTION_BUDGET | 1U << KIND_VOLUME_ATTACHMENT,
        .keeps_workloads = true,
        .reads_finished = !question->is_all, /* there may be many */
        .ns = question->is_all ? question->ns
                               : operands_namespace(question->operands, question->count),
        .keeps = keeps,
        .context = (void *)(uintptr_t)question,
    };
}

/* ---- the claims ---- */

struct claims {
    const struct claim **items;
    size_t count;
    struct arena *arena;
};

/* False: no memory. */
static bool add_claim(struct claims *claims, const struct claim *claim)
{
    const struct claim **grown =
        arena_grow(claims->arena, (void *)claims->items, claims->count, sizeof *grown);

    if (grown == NULL)
        return false;
    grown[claims->count++] = claim;
    claims->items = grown;
    return true;
}

/* A pod may wait for its claims until it has started: its volume may be on another node. */
static bool waits(const struct pod *pod)
{
    return !pod->is_terminal && (!pod_holds(pod) || pod->is_pending);
}

/* Finds the claims that pods wait for, some of them twice. */
static bool find_waited(struct claims *out, const struct cluster *cluster,
                        const struct who_question *question)
{
    struct table_walk walk = {.at = 0};

    for (const struct pod *pod; (pod = cluster_next_pod(cluster, &walk)) != NULL;)
        for (size_t i = 0; waits(pod) && i < pod->use_count; i++)
            if (asks_for(question, name_text(pod->ns), SLICE("")) &&
                !add_claim(out, claim_at(pod->uses[i].claim)))
                return false;
    return true;
}

/* Finds the claims that are asked for, also those that are only named. */
static bool find_asked(struct claims *out, const struct cluster *cluster,
                       const struct who_question *question)
{
    struct table_walk walk = {.at = 0};

    for (const struct claim *claim; (claim = cluster_next_claim(cluster, &walk)) != NULL;)
        if (asks_for(question, name_text(claim->ns), claim_name(claim)) && !add_claim(out, claim))
            return false;
    return true;
}

/* ---- what is known of them ---- */

/* A claim of the answer. */
struct who_item {
    const struct claim *claim;
    struct slice since;            /* of the longest wait; empty: not known */
    const struct who_claim *known; /* NULL: it is found out again when it is visited */
};

/* What is known of the claim, in the arena. NULL: no memory. */
static struct who_claim *describe(const struct who_answer *answer, const struct claim *claim,
                                  struct arena *arena)
{
    struct who_claim *known = arena_alloc(arena, sizeof *known);

    inquiry_forget_details(answer->inquiry);
    if (known == NULL)
        return NULL;
    *known =
        (struct who_claim){.inquiry = answer->inquiry, .config = answer->config, .arena = arena};
    return who_gather(known, answer->index, claim) ? known : NULL;
}

static bool advise(struct who_claim *claim)
{
    claim->freed_by = who_freed_by(claim, true, claim->arena);
    return !claim->freed_by.has_failed;
}

/* claim: only that one; NULL: each. */
static bool visit_claims(const struct who_answer *answer, const struct claim *claim,
                         bool (*visit)(void *context, const struct who_claim *claim), void *context)
{
    struct arena arena;
    bool ok = true;

    arena_init(&arena, ANSWER_BYTES_MAX);
    for (size_t i = 0; i < answer->count && ok; i++) {
        const struct who_item *item = &answer->items[i];
        if (claim != NULL && claim != item->claim)
            continue;
        struct who_claim *again =
            item->known != NULL ? NULL : describe(answer, item->claim, &arena);
        ok = item->known != NULL ? visit(context, item->known)
                                 : again != NULL && advise(again) && visit(context, again);
        arena_reset(&arena);
    }
    arena_dispose(&arena);
    return ok;
}

bool who_each(const struct who_answer *answer,
              bool (*visit)(void *context, const struct who_claim *claim), void *context)
{
    return visit_claims(answer, NULL, visit, context);
}

bool who_visit(const struct who_answer *answer, const struct claim *claim,
               bool (*visit)(void *context, const struct who_claim *claim), void *context)
{
    return visit_claims(answer, claim, visit, context);
}

static int by_name(const struct claim *a, const struct claim *b)
{
    int order = slice_compare(name_text(a->ns), name_text(b->ns));

    return order != 0 ? order : slice_compare(claim_name(a), claim_name(b));
}

static int compare_claims(const void *a, const void *b)
{
    return by_name(*(const struct claim *const *)a, *(const struct claim *const *)b);
}

/* Longest wait first; a time that is not known last. */
static int by_wait(const void *a, const void *b)
{
    const struct who_item *x = a, *y = b;

    if ((x->since.len == 0) != (y->since.len == 0))
        return x->since.len == 0 ? 1 : -1;
    int order = slice_compare(x->since, y->since);
    return order != 0 ? order : by_name(x->claim, y->claim);
}

/* ---- what the input lacks ---- */

/* What the answer would have to be read from. */
struct needs {
    bool kinds[KIND_COUNT];
    bool reservations, owners;
};

/* An attachment only says something if no pod runs with the volume. */
static void add_needs(struct needs *needs, const struct who_claim *claim)
{
    bool is_held = claim->holder_count != 0, is_bound = claim->volume.len != 0;
    bool is_running = is_held && slice_equal(who_state(&claim->holders[0]), SLICE("Running"));

    if (is_bound && (claim->access == ACCESS_UNKNOWN || claim->claim->is_deleting))
        needs->kinds[KIND_VOLUME] = true;
    if (claim->access == ACCESS_ANY)
        return;
    if (is_bound && !is_running)
        needs->kinds[KIND_VOLUME_ATTACHMENT] = true;
    if (is_held || claim->attachment_count != 0)
        needs->kinds[KIND_NODE] = true;
    if (is_held) {
        needs->kinds[KIND_POD_DISRUPTION_BUDGET] = true;
        needs->owners = true;
    } else if (claim->waiter_count != 0) {
        needs->reservations = needs->reservations || claim->access == ACCESS_ONE_POD;
    }
}

static void find_gaps(struct who_answer *out, const struct needs *needs)
{
    const struct inquiry *inquiry = out->inquiry;
    bool is_of_claimguard = inquiry->report.is_of_claimguard;

    out->gaps = (struct gaps){.arena = &out->arena};
    for (int kind = 0; kind < KIND_COUNT; kind++)
        if (needs->kinds[kind])
            inquiry_add_gaps(inquiry, &out->gaps, &(const enum kind){(enum kind)kind}, 1);
    inquiry_add_object_gaps(inquiry, &out->gaps);
    if (needs->owners && is_of_claimguard)
        gaps_add(&out->gaps, 0, "owners, states and times of pods: /debug/snapshot has none");
    if (needs->reservations && !is_of_claimguard && inquiry->cluster.reservations == NULL)
        gaps_add(&out->gaps, 0, GAP_RESERVATIONS);
}

/* ---- the answer ---- */

static void mark_found(const struct who_question *question, const struct claim *claim, bool *found)
{
    for (size_t i = 0; i < question->count; i++)
        if (operand_is(&question->operands[i], name_text(claim->ns), claim_name(claim)))
            found[i] = true;
}

/* False: no memory. */
static bool add_item(struct who_answer *out, const struct who_claim *claim)
{
    struct slice since = claim->waiter_count == 0 ? SLICE("") : claim->waiters[0].since;
    struct who_item *grown = arena_grow(&out->arena, out->items, out->count, sizeof *grown);

    since = arena_copy(&out->arena, since);
    if (grown == NULL || since.ptr == NULL)
        return false;
    grown[out->count++] =
        (struct who_item){claim->claim, since, claim->arena == &out->arena ? claim : NULL};
    out->items = grown;
    return true;
}

/* Adds the claims, by name: the workloads that are not known are named in the order in which advice
 * asks for them. False: no memory. */
static bool add_items(struct who_answer *out, const struct who_question *question,
                      const struct claims *claims, struct needs *needs, bool *found)
{
    struct arena passing;
    bool ok = true;

    arena_init(&passing, ANSWER_BYTES_MAX);
    for (size_t i = 0; i < claims->count && ok; i++) {
        const struct claim *claim = claims->items[i];
        bool is_kept = out->arena.used_bytes < KEPT_BYTES_MAX;
        if (!claim->exists && !who_index_has(out->index, claim))
            continue;
        mark_found(question, claim, found);
        struct who_claim *known = describe(out, claim, is_kept ? &out->arena : &passing);
        ok = known != NULL;
        if (ok && (!question->is_all || known->is_waited_for)) {
            add_needs(needs, known);
            ok = advise(known) && add_item(out, known);
        }
        arena_reset(&passing);
    }
    arena_dispose(&passing);
    return ok;
}

static bool find_answer(struct who_answer *out, const struct who_question *question,
                        struct claims *claims, struct needs *needs, bool *found)
{
    const struct cluster *cluster = &out->inquiry->cluster;

    out->index = arena_alloc(&out->arena, sizeof *out->index);
    if (out->index == NULL || !(question->is_all ? find_waited(claims, cluster, question)
                                                 : find_asked(claims, cluster, question)))
        return false;
    if (!who_index_init(out->index, &out->arena, cluster, claims->items, &claims->count))
        return false;
    if (claims->count != 0)
        qsort((void *)claims->items, claims->count, sizeof *claims->items, compare_claims);
    return add_items(out, question, claims, needs, found);
}

bool who_answer(struct who_answer *out, const struct inquiry *inquiry,
                const struct who_question *question, bool *found)
{
    struct claims claims = {.arena = &out->arena};
    struct needs needs = {.owners = false};

    workloads_forget(inquiry->workloads);
    *out = (struct who_answer){
        .is_all = question->is_all, .inquiry = inquiry, .config = question->config};
    arena_init(&out->arena, ANSWER_BYTES_MAX);
    if (!find_answer(out, question, &claims, &needs, found))
        return false;
    if (question->is_all && out->count != 0)
        qsort(out->items, out->count, sizeof *out->items, by_wait);
    find_gaps(out, &needs);
    return !out->gaps.has_failed;
}

void who_dispose(struct who_answer *answer)
{
    arena_dispose(&answer->arena);
}
