/* One pod: what is known of it, of its claims and volumes, and of the nodes; and the causes that
 * the finders add to it. */
#include "extender/commands/why/why_internal.h"

/* ---- claims ---- */

/* Of its claims, the pod is no holder that it waits for. */
static void leave_out(struct who_claim *claim, const struct pod *pod)
{
    size_t kept = 0;

    for (size_t i = 0; i < claim->holder_count; i++)
        if (claim->holders[i].pod != pod)
            claim->holders[kept++] = claim->holders[i];
    claim->holder_count = kept;
}

static void find_volume(struct why_claim *out, const struct inquiry *inquiry)
{
    static const struct volume_details none;

    out->is_bound = claim_has_volume(out->who.claim);
    out->volume = out->who.is_of_earlier ? NULL : volume_of(&inquiry->cluster, out->who.claim);
    out->volume_details = out->volume == NULL ? &none : &out->who.volume_details;
}

static bool take_claims(struct why_pod *out, const struct who_index *index)
{
    out->claims = arena_alloc(out->arena, (out->pod->use_count + 1U) * sizeof *out->claims);
    if (out->claims == NULL)
        return false;
    for (size_t i = 0; i < out->pod->use_count; i++) {
        struct why_claim *claim = &out->claims[out->claim_count++];
        const struct use *use = &out->pod->uses[i];
        *claim = (struct why_claim){.use = use};
        claim->who = (struct who_claim){.inquiry = out->inquiry,
                                        .config = out->view.config,
                                        .arena = out->arena,
                                        .asked = out->pod};
        if (!who_gather(&claim->who, index, claim_at(use->claim)))
            return false;
        find_volume(claim, out->inquiry);
        leave_out(&claim->who, out->pod);
    }
    return true;
}

/* ---- nodes ---- */

/* The labels are in the arena, for the text is forgotten before. False: no memory. */
static bool read_labels(const struct inquiry *inquiry, struct arena *arena, struct why_node *node)
{
    struct slice text = inquiry_find_details(inquiry, KIND_NODE, SLICE(""), node->name);
    struct node_details details;

    node->is_unread = text.ptr == NULL;
    if (node->is_unread)
        return true;
    if (!node_details_read(text, arena, &details))
        return false;
    node->labels = arena_copy(arena, details.labels);
    return node->labels.ptr != NULL;
}

/* What the verdict reads of a pod without a node. False: no memory. */
static bool find_placement(struct why_pod *out)
{
    struct placement *placement = arena_alloc(out->texts, sizeof *placement);

    out->view.placement = placement;
    return placement != NULL &&
           places_find(&out->shared->places, &out->object, out->texts, placement);
}

/* Of a pod without a node: all nodes. */
static bool take_all_nodes(struct why_pod *out)
{
    if (!find_placement(out))
        return false;
    const struct placement *placement = out->view.placement;
    out->nodes = arena_alloc(out->arena, (placement->node_count + 1) * sizeof *out->nodes);
    for (size_t i = 0; out->nodes != NULL && i < placement->node_count; i++) {
        const struct placed_node *placed = &placement->nodes[i];
        out->nodes[out->node_count++] = (struct why_node){.placed = placed,
                                                          .node = placed->node,
                                                          .name = placed->name,
                                                          .labels = placed->labels,
                                                          .is_unread = placed->is_unread};
    }
    return out->nodes != NULL;
}

static bool take_nodes(struct why_pod *out)
{
    const struct node *node = node_at(out->pod->node);

    if (out->stage == WHY_SCHEDULING
            ? !take_all_nodes(out)
            : (out->nodes = arena_alloc(out->arena, sizeof *out->nodes)) == NULL)
        return false;
    if (out->stage != WHY_SCHEDULING && node != NULL && node->exists) {
        out->nodes[out->node_count++] =
            (struct why_node){.node = node, .name = name_slice(node->name), .labels = {"", 0}};
        if (!read_labels(out->inquiry, out->arena, out->nodes))
            return false;
    }
    for (size_t i = 0; i < out->node_count; i++)
        out->has_labels = out->has_labels || out->nodes[i].labels.len != 0;
    return true;
}

/* Where the volumes of the claims can be used, by their nodeAffinity. */
static bool take_fits(struct why_pod *out)
{
    for (size_t i = 0; i < out->claim_count; i++) {
        struct why_claim *claim = &out->claims[i];
        if (!volume_terms_find(claim->volume, claim->volume_details, out->arena, &claim->terms))
            return false;
        if (!out->has_labels || (claim->terms.own.count == 0 && claim->terms.migrated.count == 0))
            continue;
        claim->fits = why_flags(out);
        if (claim->fits == NULL)
            return false;
        for (size_t n = 0; n < out->node_count; n++)
            claim->fits[n] =
                out->nodes[n].is_unread ||
                volume_terms_match(&claim->terms, out->nodes[n].node, out->nodes[n].labels);
    }
    return true;
}

/* ---- the pod ---- */

static enum why_stage find_stage(const struct why_pod *pod)
{
    if (pod->pod->is_terminal)
        return WHY_FINISHED;
    if (!pod_is_assigned(pod->pod))
        return WHY_SCHEDULING;
    return who_waits_for_mounts(&pod->who) ? WHY_STARTING : WHY_RUNNING;
}

/* Of a pod that is read twice, the last text counts. */
static const struct pod_mounts *find_mounts(const struct why_pod *pod,
                                            const struct why_mounts *mounts)
{
    while (mounts != NULL && !(slice_equal(mounts->name, pod_name(pod->pod)) &&
                               slice_equal(mounts->ns, name_text(pod->pod->ns))))
        mounts = mounts->next;
    return mounts == NULL ? NULL : mounts->mounts;
}

bool why_gather(struct why_pod *out, const struct who_index *index, const struct why_mounts *mounts)
{
    if (!who_pod_init(&out->who, out->inquiry, out->pod, out->texts) ||
        !cluster_describe_pod(out->pod, out->texts, &out->object))
        return false;
    if (out->object.mounts == NULL)
        out->object.mounts = find_mounts(out, mounts);
    out->view.node = pod_node(out->pod);
    out->stage = find_stage(out);
    return take_claims(out, index) && take_nodes(out) && take_fits(out);
}

/* ---- causes ---- */

/* The names are copied, as they may lie in a buffer of the caller. */
static struct object_reference copy_reference(struct object_reference object, struct arena *arena)
{
    object.ns = arena_copy(arena, object.ns);
    object.name = arena_copy(arena, object.name);
    return object;
}

void why_add_text(struct why_pod *pod, enum why_effect effect, struct object_reference object,
                  struct slice text)
{
    struct why_cause *grown = arena_grow(pod->texts, pod->causes, pod->cause_count, sizeof *grown);

    object = copy_reference(object, pod->texts);
    text = arena_copy(pod->texts, text);
    if (grown == NULL || text.ptr == NULL || object.ns.ptr == NULL || object.name.ptr == NULL) {
        pod->has_failed = true;
        return;
    }
    grown[pod->cause_count++] = (struct why_cause){.word = pod->word,
                                                   .effect = effect,
                                                   .object = object,
                                                   .root = object,
                                                   .text = text,
                                                   .helps = {.arena = pod->texts}};
    pod->causes = grown;
}

void why_add(struct why_pod *pod, enum why_effect effect, struct object_reference object,
             const char *format, ...)
{
    va_list args;

    va_start(args, format);
    why_add_text(pod, effect, object, arena_vprintf(pod->arena, format, args));
    va_end(args);
}

void why_root(struct why_pod *pod, struct object_reference root)
{
    root = copy_reference(root, pod->texts);
    pod->has_failed = pod->has_failed || root.ns.ptr == NULL || root.name.ptr == NULL;
    if (pod->cause_count != 0)
        pod->causes[pod->cause_count - 1].root = root;
}

const struct why_cause *why_first_cause(const struct why_pod *pod)
{
    const struct why_cause *first = NULL;

    for (size_t i = 0; i < pod->cause_count; i++) {
        const struct why_cause *cause = &pod->causes[i];
        bool is_sum = first != NULL && strcmp(cause->word, "NoNodeLeft") == 0; /* of those above */
        if (cause->effect <= WHY_NARROWS && !is_sum &&
            (first == NULL || cause->effect < first->effect))
            first = cause;
    }
    return first;
}

/* The advice of the last cause; NULL: there was no memory for one. */
static struct advice_list *last_helps(const struct why_pod *pod)
{
    return pod->cause_count == 0 ? NULL : &pod->causes[pod->cause_count - 1].helps;
}

void why_help(struct why_pod *pod, const char *format, ...)
{
    struct advice_list *helps = last_helps(pod);
    va_list args;

    va_start(args, format);
    if (helps != NULL)
        advice_list_vadd(helps, format, args);
    va_end(args);
}

void why_help_all(struct why_pod *pod, struct advice_list more)
{
    struct advice_list *helps = last_helps(pod);

    if (helps != NULL)
        advice_list_append(helps, &more);
}

void why_command(struct why_pod *pod, enum advice_row row, const struct advice_words *words)
{
    struct advice_list *helps = last_helps(pod);

    if (helps != NULL)
        advice_list_row(helps, row, words);
}

/* ---- causes that are about nodes ---- */

const char *why_node_state(enum node_state state)
{
    static const char *const texts[] = {[NODE_UNKNOWN] = "",
                                        [NODE_READY] = "",
                                        [NODE_NOT_READY] = ", which is not ready",
                                        [NODE_UNREACHABLE] = ", which does not answer",
                                        [NODE_MISSING] = ", which does not exist"};
    return texts[state];
}

bool *why_flags(struct why_pod *pod)
{
    bool *flags = arena_alloc(pod->arena, (pod->node_count + 1) * sizeof *flags);

    pod->has_failed = pod->has_failed || flags == NULL;
    return flags;
}

size_t why_count_nodes(const struct why_pod *pod, const bool *flags, bool wanted)
{
    size_t count = 0;

    for (size_t i = 0; i < pod->node_count; i++)
        count += flags[i] == wanted ? 1 : 0;
    return count;
}

struct slice why_node_names(const struct why_pod *pod, const bool *flags, bool wanted)
{
    size_t count = 0;
    struct slice text = SLICE("");
    bool ok = true;

    for (size_t i = 0; i < pod->node_count && ok; i++)
        if (flags[i] == wanted && count++ < WHY_NAMES_SHOWN_MAX)
            ok = arena_append(pod->arena, &text, count == 1 ? SLICE("") : SLICE(", ")) &&
                 arena_append(pod->arena, &text, pod->nodes[i].name);
    if (ok && count > WHY_NAMES_SHOWN_MAX)
        return arena_printf(pod->arena, "%.*s and %zu more", SLICE_ARG(text),
                            count - WHY_NAMES_SHOWN_MAX);
    return ok ? text : (struct slice){NULL, 0};
}

bool why_add_nodes(struct why_pod *pod, enum why_effect effect, const bool *rejected,
                   struct object_reference object, const char *format, ...)
{
    size_t count = rejected == NULL ? 0 : why_count_nodes(pod, rejected, true);
    size_t before = pod->cause_count;
    va_list args;

    if (count == 0)
        return false;
    if (effect == WHY_NARROWS && count == pod->node_count)
        effect = WHY_BLOCKS;
    for (size_t i = 0; effect != WHY_LATER && i < pod->node_count; i++)
        if (rejected[i] && pod->nodes[i].out_by == NULL)
            pod->nodes[i].out_by = pod->word;
    va_start(args, format);
    why_add_text(pod, effect, object, arena_vprintf(pod->arena, format, args));
    va_end(args);
    if (pod->cause_count == before)
        return false;
    pod->causes[before].rejected_nodes = count;
    return true;
}

/* ---- what causes are about ---- */

struct object_reference why_claim_reference(const struct why_claim *claim)
{
    return (struct object_reference){.kind = KIND_CLAIM,
                                     .ns = name_text(claim->who.claim->ns),
                                     .name = claim_name(claim->who.claim)};
}

struct object_reference why_volume_reference(const struct why_claim *claim)
{
    return (struct object_reference){.kind = KIND_VOLUME, .name = claim->who.volume};
}

struct object_reference why_pod_reference(const struct why_pod *pod)
{
    return (struct object_reference){
        .kind = KIND_POD, .ns = name_text(pod->pod->ns), .name = pod_name(pod->pod)};
}
