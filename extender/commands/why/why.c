#include "extender/commands/why/why.h"

#include <stdlib.h>

#include "extender/commands/why/why_internal.h"
#include "policy/volume.h"

enum {
    READING_BYTES_MAX = 256 << 20,
    EVENTS_BYTES_MAX = 128 << 20,
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
_Static_assert(sizeof causes / sizeof *causes <= WHY_CAUSE_WORDS, "struct why_left");

struct why *why_new(const struct why_question *question)
{
    struct why *why = calloc(1, sizeof *why);

    if (why == NULL)
        return NULL;
    why->question = question;
    arena_init(&why->reading, READING_BYTES_MAX);
    arena_init(&why->event_texts, EVENTS_BYTES_MAX);
    arena_init(&why->texts, ANSWER_BYTES_MAX);
    return why;
}

void why_free(struct why *why)
{
    if (why == NULL)
        return;
    arena_dispose(&why->reading);
    arena_dispose(&why->event_texts);
    arena_dispose(&why->texts);
    free(why);
}

/* ---- what has to do with the pods that are asked about ---- */

bool why_asks_namespace(const struct why *why, struct slice ns)
{
    const struct why_question *question = why->question;

    if (question->is_all)
        return question->ns.len == 0 || slice_equal(question->ns, ns);
    for (size_t i = 0; i < question->count; i++)
        if (question->operands[i].ns.len == 0 || slice_equal(question->operands[i].ns, ns))
            return true;
    return false;
}

/* Of a pod without a node, the cluster has the mounts. */
static void remember_mounts(struct why *why, const struct pod_object *pod)
{
    struct why_mounts *kept;

    if (pod->mounts == NULL || pod->node.len == 0)
        return;
    kept = arena_alloc(&why->reading, sizeof *kept);
    void *memory = arena_alloc(&why->reading, mounts_bytes(pod->mounts));
    why->has_no_memory = why->has_no_memory || kept == NULL || memory == NULL;
    if (why->has_no_memory)
        return;
    *kept = (struct why_mounts){.next = why->mounts,
                                .ns = arena_copy(&why->reading, pod->meta.ns),
                                .name = arena_copy(&why->reading, pod->meta.name),
                                .mounts = mounts_copy(pod->mounts, memory)};
    why->has_no_memory = kept->ns.ptr == NULL || kept->name.ptr == NULL;
    why->mounts = kept;
}

static bool is_named(const struct why *why, const struct meta *meta)
{
    for (size_t i = 0; i < why->question->count; i++)
        if (why->question->operands[i].kind == KIND_POD &&
            operand_is(&why->question->operands[i], meta->ns, meta->name))
            return true;
    return false;
}

/* One that has ended matters only if it is named. */
static bool keeps_pod(struct why *why, const struct pod_object *pod)
{
    bool is_asked = is_named(why, &pod->meta);
    bool has_ended = phase_is_terminal(pod->phase) && pod->meta.deletion_timestamp.len == 0;

    if (!is_asked && (has_ended || !why_asks_namespace(why, pod->meta.ns)))
        return false;
    if (is_asked || !slice_equal(pod->phase, SLICE("Running")))
        remember_mounts(why, pod);
    return true;
}

static bool keeps(void *context, const struct object *object)
{
    struct why *why = context;
    const struct slice *attributes = object->resource.attributes;

    switch (object->kind) {
    case KIND_POD: return keeps_pod(why, &object->pod);
    case KIND_CLAIM: return why_asks_namespace(why, object->meta.ns);
    case KIND_VOLUME:
        return attributes[VOLUME_CLAIM_NAME].len == 0 ||
               why_asks_namespace(why, attributes[VOLUME_CLAIM_NAMESPACE]);
    default: return true;
    }
}

static int take_text(void *context, const struct source_text *text, const struct object *object,
                     struct error *err)
{
    struct why *why = context;
    const struct type *type = text->type;

    (void)object;
    (void)err;
    if (kind_of_any(slice_of(type->api_version), slice_of(type->kind)) != KIND_EVENT)
        return 0;
    why_take_event(why, text->text);
    return 1;
}

struct inquiry_wish why_wish(struct why *why)
{
    const struct why_question *question = why->question;

    return (struct inquiry_wish){
        .kinds = 1U << KIND_POD | 1U << KIND_NODE | 1U << KIND_CLAIM | 1U << KIND_VOLUME |
                 1U << KIND_STORAGE_CLASS | 1U << KIND_CSI_DRIVER | 1U << KIND_CSI_NODE |
                 1U << KIND_VOLUME_ATTRIBUTES_CLASS | 1U << KIND_POD_DISRUPTION_BUDGET |
                 1U << KIND_VOLUME_ATTACHMENT | 1U << KIND_STORAGE_CAPACITY |
                 (question->is_all ? 0 : 1U << KIND_EVENT), /* there may be many */
        .optional = 1U << KIND_EVENT,
        .everywhere = 1U << KIND_STORAGE_CAPACITY, /* they are in the namespaces of drivers */
        .ns = question->is_all ? question->ns
                               : operands_namespace(question->operands, question->count),
        .keeps = keeps,
        .text_sink = take_text,
        .keeps_workloads = true,
        .reads_finished = !question->is_all, /* there may be many */
        .context = why,
    };
}

/* ---- what the input lacks ---- */

/* Whose absence matters to all answers, and to those about volumes that a driver attaches. */
static const enum kind needed[] = {
    KIND_NODE,       KIND_CLAIM,    KIND_VOLUME,           KIND_STORAGE_CLASS,
    KIND_CSI_DRIVER, KIND_CSI_NODE, KIND_VOLUME_ATTACHMENT /* the last ones: of CSI volumes, and
                                                              of those that nodes may have */};
enum { NEEDED = sizeof needed / sizeof *needed, NEEDED_WITHOUT_CSI = 4 };

static size_t count_needed(const struct why_notes *notes)
{
    return notes->has_attachable ? NEEDED : notes->has_csi ? NEEDED - 1 : NEEDED_WITHOUT_CSI;
}

static bool lacks_kind(const struct inquiry *inquiry, const struct why_notes *notes)
{
    for (size_t i = 0; i < count_needed(notes); i++)
        if (inquiry_gap(inquiry, needed[i]) != NULL)
            return true;
    return notes->names_attributes_class &&
           inquiry_gap(inquiry, KIND_VOLUME_ATTRIBUTES_CLASS) != NULL;
}

/* Whether the volume may be of a CSI driver: those of hostPath, local and NFS have neither driver
 * nor attachment. */
static bool may_be_csi(const struct why_pod *pod, const struct why_claim *claim)
{
    if (claim->volume != NULL)
        return volume_driver(claim->volume).len != 0 ||
               volume_attachment(&pod->inquiry->cluster, claim->volume, false) != ATTACHMENT_NO;
    if (claim->who.is_of_earlier)
        return true;
    if (claim->is_bound || claim->who.class == NULL)
        return !why_knows(pod, claim->is_bound ? KIND_VOLUME : KIND_STORAGE_CLASS);
    return !slice_equal(resource_attribute(claim->who.class, STORAGE_CLASS_PROVISIONER),
                        SLICE(NO_PROVISIONER));
}

/* Whether the claim has a volume that a node may have: only then attachments matter. */
static bool may_be_attached(const struct why_pod *pod, const struct why_claim *claim)
{
    return claim->volume != NULL
               ? volume_attachment(&pod->inquiry->cluster, claim->volume, false) != ATTACHMENT_NO
               : claim->is_bound && !why_knows(pod, KIND_VOLUME);
}

/* Adds what this pod's claims lack to what others do. */
static void note_claims(struct why_notes *notes, const struct why_pod *pod)
{
    bool is_scheduling = pod->stage == WHY_SCHEDULING;

    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct why_claim *claim = &pod->claims[i];
        notes->has_csi = notes->has_csi || may_be_csi(pod, claim);
        notes->has_attachable = notes->has_attachable || may_be_attached(pod, claim);
        notes->lacks_labels = notes->lacks_labels ||
                              (pod->node_count != 0 && !pod->has_labels && claim->volume != NULL);
        notes->lacks_pods = notes->lacks_pods || (notes->is_of_namespace && is_scheduling);
        notes->names_attributes_class = notes->names_attributes_class ||
                                        claim_volume_attributes_class(claim->who.claim) != NULL;
        notes->lacks_capacities =
            notes->lacks_capacities ||
            (is_scheduling && claim->who.claim->exists && !claim->is_bound &&
             claim->who.class != NULL && inquiry_gap(pod->inquiry, KIND_STORAGE_CAPACITY) != NULL &&
             placement_driver(pod->view.placement,
                              resource_attribute(claim->who.class, STORAGE_CLASS_PROVISIONER))
                 .has_capacities);
    }
}

static bool has_inline(const struct why_pod *pod)
{
    return pod->object.mounts != NULL && mounts_have_inline(pod->object.mounts);
}

static void note(struct why_notes *notes, struct why_pod *pod, bool has_events)
{
    const struct inquiry *inquiry = pod->inquiry;
    struct why_notes own = {.is_of_namespace = notes->is_of_namespace};
    bool has_volumes = pod->claim_count != 0 || has_inline(pod);

    note_claims(&own, pod);
    own.has_csi = own.has_csi || has_inline(pod);
    note_claims(notes, pod);
    notes->has_csi = notes->has_csi || own.has_csi;
    notes->has_starting = notes->has_starting || (pod->stage == WHY_STARTING && !has_events);
    notes->has_scheduling = notes->has_scheduling || pod->stage == WHY_SCHEDULING;
    pod->is_complete = !has_volumes || (WHY_WAITING & (unsigned)pod->stage) == 0 ||
                       ((pod->stage != WHY_STARTING || has_events) && !own.lacks_labels &&
                        !own.lacks_pods && !own.lacks_capacities && !lacks_kind(inquiry, &own) &&
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
        {notes->lacks_capacities, "room for volumes that are not made yet: the input has no "
                                  "CSIStorageCapacities"},
        {notes->has_scheduling && inquiry->cluster.reservations == NULL && !is_of_claimguard,
         GAP_RESERVATIONS},
        {notes->has_scheduling,
         "room on nodes, affinities between pods, and topology spread: only the scheduler "
         "checks them"},
    };

    inquiry_add_gaps(inquiry, gaps, needed, count_needed(notes));
    if (notes->names_attributes_class)
        inquiry_add_gaps(inquiry, gaps, &(const enum kind){KIND_VOLUME_ATTRIBUTES_CLASS}, 1);
    inquiry_add_object_gaps(inquiry, gaps);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].is_so)
            gaps_add(gaps, 0, "%s", rows[i].text);
}

static bool has_events(const struct why *why, const struct inquiry *inquiry)
{
    bool is_listed = inquiry->snapshot == NULL
                         ? !why->question->is_all && inquiry->gaps[KIND_EVENT] == GAP_NONE
                         : (inquiry->report.listed & 1U << KIND_EVENT) != 0;

    return why->has_events || is_listed;
}

/* ---- one pod ---- */

/* What is normal is said only if nothing else is. */
static void leave_out_normal(struct why_pod *pod)
{
    size_t kept = 0;

    if (why_first_cause(pod) == NULL)
        return;
    for (size_t i = 0; i < pod->cause_count; i++)
        if (pod->causes[i].effect != WHY_NORMAL)
            pod->causes[kept++] = pod->causes[i];
    pod->cause_count = kept;
}

static bool has_help(const struct why_cause *cause, struct slice text)
{
    for (size_t i = 0; i < cause->helps.count; i++)
        if (slice_equal(cause->helps.items[i].text, text))
            return true;
    return false;
}

/* Leaves out the help that an earlier cause of the same word has, of another claim. */
static void leave_out_repeated(const struct why_pod *pod, size_t index)
{
    struct advice_list *helps = &pod->causes[index].helps;
    size_t kept = 0;

    for (size_t i = 0; i < helps->count; i++) {
        bool is_new = true;
        for (size_t c = 0; c < index && is_new; c++)
            is_new = strcmp(pod->causes[c].word, pod->causes[index].word) != 0 ||
                     !has_help(&pod->causes[c], helps->items[i].text);
        if (is_new)
            helps->items[kept++] = helps->items[i];
    }
    helps->count = kept;
}

/* No cause: what its node says when it mounts a volume is in its Events, which this input lacks. */
static void look_for_events(struct why_pod *pod)
{
    pod->looks = (struct advice_list){.arena = pod->texts};
    if (pod->stage != WHY_STARTING || why_first_cause(pod) != NULL ||
        who_has_lost_node(&pod->who) || (pod->claim_count == 0 && !has_inline(pod)))
        return;
    advice_list_add(&pod->looks, "its events say whether its node cannot mount a volume, and why");
    advice_list_row(
        &pod->looks, ADVICE_SEE_POD,
        &(const struct advice_words){.ns = name_text(pod->pod->ns), .name = pod_name(pod->pod)});
    pod->has_failed = pod->has_failed || pod->looks.has_failed;
}

static void find_causes(struct why_pod *pod)
{
    for (size_t i = 0; i < sizeof causes / sizeof *causes && !pod->is_hopeless; i++) {
        pod->word = causes[i].word;
        if ((causes[i].stages & (unsigned)pod->stage) == 0)
            continue;
        if (causes[i].find != NULL)
            causes[i].find(pod);
        for (size_t c = 0; causes[i].find == NULL && c < pod->claim_count; c++)
            causes[i].find_of_claim(pod, &pod->claims[c]);
    }
    why_help_room(pod);
    leave_out_normal(pod);
    for (size_t i = 0; i < pod->cause_count; i++) {
        leave_out_repeated(pod, i);
        pod->has_failed = pod->has_failed || pod->causes[i].helps.has_failed;
    }
}

static int compare_out(const void *a, const void *b)
{
    const struct why_out *x = a, *y = b;

    return (x->nodes < y->nodes) - (x->nodes > y->nodes);
}

static void count_out(struct why_left *left, const char *word)
{
    size_t i = 0;

    while (i < left->out_count && strcmp(left->out[i].word, word) != 0)
        i++;
    if (i == left->out_count)
        left->out[left->out_count++].word = word;
    left->out[i].nodes++;
}

static void find_left(struct why_pod *pod)
{
    pod->left.total = pod->node_count;
    for (size_t i = 0; i < pod->node_count; i++) {
        const struct why_node *node = &pod->nodes[i];
        if (node->out_by != NULL) {
            count_out(&pod->left, node->out_by);
            continue;
        }
        pod->left.closed += node->node->is_unschedulable || node->node->is_not_ready ? 1 : 0;
        if (pod->left.left < WHY_NAMES_SHOWN_MAX)
            pod->left.names[pod->left.left] = node->name;
        pod->left.left++;
    }
    qsort(pod->left.out, pod->left.out_count, sizeof *pod->left.out, compare_out);
}

/* False: no memory. */
static bool add_pod(struct why *why, const struct inquiry *inquiry, const struct config *config,
                    const struct who_index *index, const struct pod *record)
{
    struct arena arena;
    struct why_pod *pod = &why->pods[why->pod_count++];

    inquiry_forget_details(inquiry);
    arena_init(&arena, WHY_POD_BYTES_MAX);
    *pod = (struct why_pod){.inquiry = inquiry,
                            .shared = &why->shared,
                            .view = {.cluster = &inquiry->cluster, .config = config},
                            .pod = record,
                            .texts = &why->texts,
                            .arena = &arena};
    bool is_whole = why_gather(pod, index, why->mounts);
    if (is_whole) {
        note(&why->notes, pod, has_events(why, inquiry));
        find_causes(pod);
        find_left(pod);
        why_find_events(why, pod);
        if (!has_events(why, inquiry))
            look_for_events(pod);
    }
    arena_dispose(&arena);
    return is_whole && !pod->has_failed;
}

/* ---- the answer ---- */

/* Fills the index for the claims that the pods name. False: no memory. */
static bool find_index(struct why *why, struct who_index *index, const struct cluster *cluster,
                       const struct pod *const *pods, size_t pod_count)
{
    size_t room = 0, count = 0;

    for (size_t i = 0; i < pod_count; i++)
        room += pods[i]->use_count;
    const struct claim **claims =
        arena_alloc(&why->texts, (room + 1) * sizeof(const struct claim *));
    for (size_t i = 0; claims != NULL && i < pod_count; i++)
        for (size_t j = 0; j < pods[i]->use_count; j++)
            claims[count++] = claim_at(pods[i]->uses[j].claim);
    return claims != NULL && who_index_init(index, &why->texts, cluster, claims, &count);
}

static void mark_found(const struct why *why, bool *found)
{
    for (size_t i = 0; i < why->question->count; i++) {
        const struct operand *operand = &why->question->operands[i];
        found[i] = why->owners[i].exists || why->owners[i].pods != 0;
        for (size_t j = 0; operand->kind == KIND_POD && j < why->pod_count && !found[i]; j++)
            found[i] =
                operand_is(operand, name_text(why->pods[j].pod->ns), pod_name(why->pods[j].pod));
    }
}

bool why_answer(struct why *why, const struct inquiry *inquiry, const struct config *config,
                bool *found)
{
    struct who_index index = {.naming_count = 0};
    const struct pod **pods;
    size_t count;

    workloads_forget(inquiry->workloads);
    arena_reset(&why->texts);
    why->shared = (struct why_shared){.places = {.inquiry = inquiry, .arena = &why->texts}};
    why->notes = (struct why_notes){.is_of_namespace =
                                        inquiry->snapshot == NULL && why_wish(why).ns.len != 0};
    why->pod_count = 0;
    why_sort_events(why);
    if (why->has_no_memory || !why_select(why, inquiry, config, &pods, &count))
        return false;
    why->pods = arena_alloc(&why->texts, (count + 1) * sizeof *why->pods);
    bool is_whole = why->pods != NULL && find_index(why, &index, &inquiry->cluster, pods, count);
    for (size_t i = 0; i < count && is_whole; i++)
        is_whole = add_pod(why, inquiry, config, &index, pods[i]);
    if (!is_whole)
        return false;
    mark_found(why, found);
    why->gaps = (struct gaps){.arena = &why->texts};
    find_gaps(&why->gaps, inquiry, &why->notes);
    return !why->gaps.has_failed;
}
