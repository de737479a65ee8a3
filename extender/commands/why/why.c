#include "extender/commands/why/why.h"

#include <stdlib.h>

#include "extender/commands/why/why_internal.h"

enum {
    READING_BYTES_MAX = 256 << 20,
    POD_BYTES_MAX = 512 << 20,
    ANSWER_BYTES_MAX = 1 << 30,
};

static const struct {
    const char *word;
    unsigned stages; /* enum why_stage */
    void (*find)(struct why_pod *pod);
    void (*find_of_claim)(struct why_pod *pod, const struct why_claim *claim);
} causes[] = {
#define OF_POD(find, word, stages)   {word, stages, find, NULL},
#define OF_CLAIM(find, word, stages) {word, stages, NULL, find},
    WHY_CAUSES(OF_POD, OF_CLAIM)
#undef OF_POD
#undef OF_CLAIM
};

struct why *why_new(const struct why_question *question)
{
    struct why *why = calloc(1, sizeof *why);

    if (why == NULL)
        return NULL;
    why->question = question;
    why->unseen = question->count;
    arena_init(&why->reading, READING_BYTES_MAX);
    arena_init(&why->texts, ANSWER_BYTES_MAX);
    why->seen = arena_alloc(&why->reading, (question->count + 1) * sizeof *why->seen);
    if (why->seen != NULL)
        return why;
    why_free(why);
    return NULL;
}

void why_free(struct why *why)
{
    if (why == NULL)
        return;
    arena_dispose(&why->reading);
    arena_dispose(&why->texts);
    free(why);
}

/* ---- the pods that are asked about ---- */

/* Marks the operands that the pod is meant by. Whether there are any. */
static bool asks_for(struct why *why, struct slice ns, struct slice name)
{
    bool is_asked = false;

    for (size_t i = 0; i < why->question->count; i++) {
        const struct operand *operand = &why->question->operands[i];
        if (!operand_is(operand, ns, name))
            continue;
        is_asked = true;
        if (operand->ns.len != 0 && !why->seen[i])
            why->unseen--;
        why->seen[i] = true;
    }
    return is_asked;
}

static struct why_asked *find_asked(const struct why *why, const struct meta *meta)
{
    struct why_asked *asked = why->asked;

    while (asked != NULL &&
           !(slice_equal(asked->name, meta->name) && slice_equal(asked->ns, meta->ns)))
        asked = asked->next;
    return asked;
}

static const struct pod_mounts *copy_mounts(struct why *why, const struct pod_mounts *mounts)
{
    void *memory = mounts == NULL ? NULL : arena_alloc(&why->reading, mounts_bytes(mounts));

    if (memory == NULL) {
        why->has_no_memory = why->has_no_memory || mounts != NULL;
        return NULL;
    }
    return mounts_copy(mounts, memory);
}

/* Remembers the pod; of one that is read twice, the last text counts. */
static void remember(struct why *why, const struct pod_object *pod)
{
    struct why_asked *asked = find_asked(why, &pod->meta);

    if (asked == NULL) {
        asked = arena_alloc(&why->reading, sizeof *asked);
        if (asked == NULL) {
            why->has_no_memory = true;
            return;
        }
        asked->ns = arena_copy(&why->reading, pod->meta.ns);
        asked->name = arena_copy(&why->reading, pod->meta.name);
        asked->next = why->asked;
        why->asked = asked;
    }
    asked->claim_count = 0;
    asked->claims = arena_alloc(&why->reading, (pod->claim_count + 1) * sizeof *asked->claims);
    for (size_t i = 0; asked->claims != NULL && i < pod->claim_count; i++) {
        asked->claims[asked->claim_count] = arena_copy(&why->reading, pod->claims[i].name);
        if (asked->claims[asked->claim_count++].ptr == NULL)
            why->has_no_memory = true;
    }
    asked->mounts = copy_mounts(why, pod->mounts);
    if (asked->claims == NULL || asked->ns.ptr == NULL || asked->name.ptr == NULL)
        why->has_no_memory = true;
}

/* ---- what has to do with them ---- */

static bool is_asked_namespace(const struct why *why, struct slice ns)
{
    for (size_t i = 0; i < why->question->count; i++) {
        struct slice asked = why->question->operands[i].ns;
        if (asked.len == 0 || slice_equal(asked, ns))
            return true;
    }
    return false;
}

/* Whether a pod that is asked about may name the claim. Until all of them are read, any claim of
 * their namespaces may be one. */
static bool may_be_named(const struct why *why, struct slice ns, struct slice claim)
{
    if (!is_asked_namespace(why, ns))
        return false;
    if (why->unseen != 0)
        return true;
    for (const struct why_asked *asked = why->asked; asked != NULL; asked = asked->next)
        for (size_t i = 0; slice_equal(asked->ns, ns) && i < asked->claim_count; i++)
            if (slice_equal(asked->claims[i], claim))
                return true;
    return false;
}

static bool keeps_pod(struct why *why, const struct pod_object *pod)
{
    if (asks_for(why, pod->meta.ns, pod->meta.name)) {
        remember(why, pod);
        return true;
    }
    for (size_t i = 0; !phase_is_terminal(pod->phase) && i < pod->claim_count; i++)
        if (may_be_named(why, pod->meta.ns, pod->claims[i].name))
            return true;
    return false;
}

static bool keeps(void *context, const struct object *object)
{
    struct why *why = context;
    const struct slice *attributes = object->resource.attributes;

    switch (object->kind) {
    case KIND_POD: return keeps_pod(why, &object->pod);
    case KIND_CLAIM: return may_be_named(why, object->meta.ns, object->meta.name);
    case KIND_VOLUME:
        return attributes[VOLUME_CLAIM_NAME].len == 0 ||
               may_be_named(why, attributes[VOLUME_CLAIM_NAMESPACE], attributes[VOLUME_CLAIM_NAME]);
    default: return true;
    }
}

struct inquiry_wish why_wish(struct why *why)
{
    return (struct inquiry_wish){
        .kinds = 1U << KIND_POD | 1U << KIND_NODE | 1U << KIND_CLAIM | 1U << KIND_VOLUME |
                 1U << KIND_STORAGE_CLASS | 1U << KIND_CSI_DRIVER | 1U << KIND_CSI_NODE |
                 1U << KIND_VOLUME_ATTRIBUTES_CLASS | 1U << KIND_POD_DISRUPTION_BUDGET |
                 1U << KIND_VOLUME_ATTACHMENT,
        .ns = operands_namespace(why->question->operands, why->question->count),
        .keeps = keeps,
        .keeps_workloads = true,
        .reads_finished = true,
        .context = why,
    };
}

/* ---- what the input lacks ---- */

/* Whose absence matters to all answers. */
static const enum kind needed[] = {
    KIND_NODE,       KIND_CLAIM,    KIND_VOLUME,           KIND_STORAGE_CLASS,
    KIND_CSI_DRIVER, KIND_CSI_NODE, KIND_VOLUME_ATTACHMENT};
enum { NEEDED = sizeof needed / sizeof *needed };

static bool lacks_kind(const struct inquiry *inquiry, bool names_attributes_class)
{
    for (size_t i = 0; i < NEEDED; i++)
        if (inquiry_gap(inquiry, needed[i]) != NULL)
            return true;
    return names_attributes_class && inquiry_gap(inquiry, KIND_VOLUME_ATTRIBUTES_CLASS) != NULL;
}

/* Adds what this pod's claims lack to what others do. */
static void note_claims(struct why_notes *notes, const struct why_pod *pod)
{
    bool is_scheduling = pod->stage == WHY_SCHEDULING;

    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct why_claim *claim = &pod->claims[i];
        notes->lacks_labels = notes->lacks_labels ||
                              (pod->node_count != 0 && !pod->has_labels && claim->volume != NULL);
        notes->lacks_pods = notes->lacks_pods || (notes->is_of_namespace && is_scheduling);
        notes->names_attributes_class = notes->names_attributes_class ||
                                        claim_volume_attributes_class(claim->who.claim) != NULL;
        notes->has_unbound =
            notes->has_unbound || (is_scheduling && claim->who.claim->exists && !claim->is_bound);
    }
}

static void note(struct why_notes *notes, struct why_pod *pod)
{
    const struct inquiry *inquiry = pod->inquiry;
    struct why_notes own = {.is_of_namespace = notes->is_of_namespace};
    bool has_volumes = pod->claim_count != 0 ||
                       (pod->object.mounts != NULL && mounts_have_inline(pod->object.mounts));

    note_claims(&own, pod);
    note_claims(notes, pod);
    notes->has_starting = notes->has_starting || pod->stage == WHY_STARTING;
    pod->is_complete = !has_volumes || (WHY_WAITING & (unsigned)pod->stage) == 0 ||
                       (!own.lacks_labels && !own.lacks_pods && !own.has_unbound &&
                        !lacks_kind(inquiry, own.names_attributes_class) &&
                        !inquiry->report.is_of_claimguard && inquiry->without_details == 0);
}

static void find_gaps(struct gaps *gaps, const struct inquiry *inquiry,
                      const struct why_notes *notes)
{
    bool is_of_claimguard = inquiry->report.is_of_claimguard;
    const struct {
        bool is_so;
        const char *text;
    } rows[] = {
        {notes->lacks_pods, "pods of other namespaces: not read, so of the volumes on a node "
                            "(AttachLimit), theirs are not counted"},
        {is_of_claimguard, "limits of drivers, binding modes, owners, labels, and messages of "
                           "schedulers: /debug/snapshot has none"},
        {notes->lacks_labels, "labels of nodes: the input has none, so where volumes can be used "
                              "is not checked"},
        {notes->has_starting, "what a node says when it mounts a volume: Events of the pod "
                              "(FailedMount)"},
        {notes->has_unbound, "room for volumes that are not made yet (CSIStorageCapacity): only "
                             "the scheduler checks it"},
        {inquiry->cluster.reservations == NULL && !is_of_claimguard, GAP_RESERVATIONS},
        {true, "room on nodes, taints, nodeSelector, and affinities of pods: only the scheduler "
               "checks them"},
    };

    inquiry_add_gaps(inquiry, gaps, needed, NEEDED);
    if (notes->names_attributes_class)
        inquiry_add_gaps(inquiry, gaps, &(const enum kind){KIND_VOLUME_ATTRIBUTES_CLASS}, 1);
    inquiry_add_object_gaps(inquiry, gaps);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].is_so)
            gaps_add(gaps, 0, "%s", rows[i].text);
}

/* ---- one pod ---- */

static void find_causes(struct why_pod *pod)
{
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
        pod->word = causes[i].word;
        if ((causes[i].stages & (unsigned)pod->stage) == 0)
            continue;
        if (causes[i].find != NULL)
            causes[i].find(pod);
        for (size_t c = 0; causes[i].find == NULL && c < pod->claim_count; c++)
            causes[i].find_of_claim(pod, &pod->claims[c]);
    }
    for (size_t i = 0; i < pod->cause_count; i++)
        pod->has_failed = pod->has_failed || pod->causes[i].helps.has_failed;
}

static void find_left(struct why_pod *pod)
{
    pod->left.total = pod->node_count;
    for (size_t i = 0; i < pod->node_count; i++) {
        const struct why_node *node = &pod->nodes[i];
        if (node->is_out)
            continue;
        pod->left.closed += node->node->is_unschedulable || node->node->is_not_ready ? 1 : 0;
        if (pod->left.left < WHY_NAMES_SHOWN_MAX)
            pod->left.names[pod->left.left] = node->name;
        pod->left.left++;
    }
}

/* What the verdict reads of a pod without a node. False: no memory. */
static bool find_placement(struct why_pod *pod)
{
    struct placement *placement = arena_alloc(pod->texts, sizeof *placement);

    pod->view.placement = placement;
    return placement != NULL &&
           places_find(&pod->shared->places, &pod->object, pod->texts, placement);
}

/* False: no memory. */
static bool add_pod(struct why *why, const struct inquiry *inquiry, const struct config *config,
                    const struct who_index *index, const struct why_asked *asked)
{
    struct arena arena;
    struct why_pod *pod = &why->pods[why->pod_count++];

    inquiry_forget_details(inquiry);
    arena_init(&arena, WHY_POD_BYTES_MAX);
    *pod = (struct why_pod){.inquiry = inquiry,
                            .shared = &why->shared,
                            .view = {.cluster = &inquiry->cluster, .config = config},
                            .pod = cluster_find_pod(&inquiry->cluster, asked->ns, asked->name),
                            .texts = &why->texts,
                            .arena = &arena};
    bool is_whole = pod->pod != NULL && why_gather(pod, index, asked);
    if (is_whole) {
        note(&why->notes, pod);
        find_causes(pod);
        find_left(pod);
        is_whole = pod->stage != WHY_SCHEDULING || find_placement(pod);
    }
    arena_dispose(&arena);
    return is_whole && !pod->has_failed;
}

/* ---- the answer ---- */

static int compare_asked(const void *a, const void *b)
{
    const struct why_asked *x = *(struct why_asked *const *)a, *y = *(struct why_asked *const *)b;
    int order = slice_compare(x->ns, y->ns);

    return order != 0 ? order : slice_compare(x->name, y->name);
}

/* The pods that are asked about, by name; NULL: no memory. */
static struct why_asked **sort_asked(struct why *why, size_t *count)
{
    *count = 0;
    for (const struct why_asked *asked = why->asked; asked != NULL; asked = asked->next)
        ++*count;
    struct why_asked **sorted = arena_alloc(&why->texts, (*count + 1) * sizeof(struct why_asked *));
    size_t at = 0;
    for (struct why_asked *asked = why->asked; sorted != NULL && asked != NULL; asked = asked->next)
        sorted[at++] = asked;
    if (sorted != NULL)
        qsort((void *)sorted, *count, sizeof(struct why_asked *), compare_asked);
    return sorted;
}

/* Fills the index for the claims that the pods name. False: no memory. */
static bool find_index(struct why *why, struct who_index *index, const struct cluster *cluster,
                       struct why_asked *const *asked, size_t asked_count)
{
    size_t room = 0, count = 0;

    for (size_t i = 0; i < asked_count; i++)
        room += asked[i]->claim_count;
    const struct claim **claims =
        arena_alloc(&why->texts, (room + 1) * sizeof(const struct claim *));
    for (size_t i = 0; claims != NULL && i < asked_count; i++) {
        const struct pod *pod = cluster_find_pod(cluster, asked[i]->ns, asked[i]->name);
        for (size_t j = 0; pod != NULL && j < pod->use_count && count < room; j++)
            claims[count++] = claim_at(pod->uses[j].claim);
    }
    return claims != NULL && who_index_init(index, &why->texts, cluster, claims, &count);
}

static void mark_found(const struct why *why, bool *found)
{
    for (size_t i = 0; i < why->question->count; i++) {
        found[i] = false;
        for (size_t j = 0; j < why->pod_count && !found[i]; j++)
            found[i] = operand_is(&why->question->operands[i], name_text(why->pods[j].pod->ns),
                                  pod_name(why->pods[j].pod));
    }
}

bool why_answer(struct why *why, const struct inquiry *inquiry, const struct config *config,
                bool *found)
{
    struct who_index index = {.naming_count = 0};
    size_t count;

    workloads_forget(inquiry->workloads);
    arena_reset(&why->texts);
    why->shared = (struct why_shared){.arena = &why->texts,
                                      .places = {.inquiry = inquiry, .arena = &why->texts}};
    why->notes = (struct why_notes){.is_of_namespace =
                                        inquiry->snapshot == NULL && why_wish(why).ns.len != 0};
    why->pod_count = 0;
    struct why_asked **asked = sort_asked(why, &count);
    why->pods = arena_alloc(&why->texts, (count + 1) * sizeof *why->pods);
    bool is_whole = !why->has_no_memory && asked != NULL && why->pods != NULL &&
                    find_index(why, &index, &inquiry->cluster, asked, count);
    for (size_t i = 0; i < count && is_whole; i++)
        is_whole = add_pod(why, inquiry, config, &index, asked[i]);
    if (!is_whole)
        return false;
    mark_found(why, found);
    why->gaps = (struct gaps){.arena = &why->texts};
    find_gaps(&why->gaps, inquiry, &why->notes);
    return !why->gaps.has_failed;
}
