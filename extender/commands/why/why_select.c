/* The pods that are asked about: by name, by what created them, by a claim or a node that they wait
 * for, or all that wait. And who would undo what is changed at what created them. */
#include <stdlib.h>

#include "extender/commands/why/why_internal.h"

enum { SELECT_BYTES_MAX = 64 << 20 };

/* The pods so far, and the one that is checked. */
struct selection {
    struct why *why;
    const struct inquiry *inquiry;
    const struct pod **pods;
    size_t count;
    struct who_pod who;
    bool is_read;         /* who is of this pod */
    struct arena scratch; /* of who */
    bool has_failed;
};

/* ---- one pod ---- */

static const struct who_pod *details_of(struct selection *selection, const struct pod *pod)
{
    if (!selection->is_read &&
        !who_pod_init(&selection->who, selection->inquiry, pod, &selection->scratch))
        selection->has_failed = true;
    selection->is_read = true;
    return &selection->who;
}

static bool is_waiting(struct selection *selection, const struct pod *pod)
{
    if (pod->is_terminal)
        return false;
    return !pod_is_assigned(pod) || who_waits_for_mounts(details_of(selection, pod));
}

static bool has_claim(const struct operand *operand, const struct pod *pod)
{
    for (size_t i = 0; i < pod->use_count; i++) {
        const struct claim *claim = claim_at(pod->uses[i].claim);
        if (operand_is(operand, name_text(claim->ns), claim_name(claim)))
            return true;
    }
    return false;
}

/* Whether the operand, which names no pod, means this one. */
static bool means(struct selection *selection, const struct operand *operand, const struct pod *pod)
{
    bool is_in_ns = operand->ns.len == 0 || slice_equal(operand->ns, name_text(pod->ns));

    if (pod->is_terminal || !is_in_ns)
        return false;
    if (operand->kind == KIND_NODE)
        return slice_equal(pod_node(pod), operand->name) ||
               slice_equal(pod_nominated_node(pod), operand->name);
    if (operand->kind == KIND_CLAIM)
        return has_claim(operand, pod);
    return who_is_of(selection->inquiry, details_of(selection, pod), operand->kind, operand->name);
}

static bool is_chosen(struct selection *selection, const struct pod *pod)
{
    const struct why_question *question = selection->why->question;
    bool is_chosen = false;

    if (question->is_all) /* what a node has started again is Running, and is not looked for */
        return (question->ns.len == 0 || slice_equal(question->ns, name_text(pod->ns))) &&
               (!pod_is_assigned(pod) || pod->is_pending) && is_waiting(selection, pod);
    for (size_t i = 0; i < question->count; i++) {
        const struct operand *operand = &question->operands[i];
        struct why_owner *owner = &selection->why->owners[i];
        if (operand->kind == KIND_POD) {
            is_chosen = is_chosen || operand_is(operand, name_text(pod->ns), pod_name(pod));
        } else if (means(selection, operand, pod)) {
            bool waits = is_waiting(selection, pod);
            owner->pods++;
            owner->waiting += waits ? 1 : 0;
            is_chosen = is_chosen || waits;
        }
    }
    return is_chosen;
}

static int compare_pods(const void *a, const void *b)
{
    const struct pod *x = *(const struct pod *const *)a, *y = *(const struct pod *const *)b;
    int order = slice_compare(name_text(x->ns), name_text(y->ns));

    return order != 0 ? order : slice_compare(pod_name(x), pod_name(y));
}

static void choose(struct selection *selection)
{
    struct table_walk walk = {.at = 0};
    struct arena *arena = &selection->why->texts;

    for (const struct pod *pod;
         !selection->has_failed &&
         (pod = cluster_next_pod(&selection->inquiry->cluster, &walk)) != NULL;) {
        selection->is_read = false;
        if (is_chosen(selection, pod)) {
            const struct pod **grown = arena_grow(arena, (void *)selection->pods, selection->count,
                                                  sizeof(const struct pod *));
            selection->has_failed = selection->has_failed || grown == NULL;
            if (grown != NULL)
                grown[selection->count++] = pod;
            selection->pods = grown;
        }
        inquiry_forget_details(selection->inquiry);
        arena_reset(&selection->scratch);
    }
    if (selection->count != 0)
        qsort((void *)selection->pods, selection->count, sizeof *selection->pods, compare_pods);
}

/* ---- what is known of the operands ---- */

static void add_undoer(struct selection *selection, struct why_owner *owner, const char *format,
                       ...) PRINTF_LIKE(3, 4);
static void add_undoer(struct selection *selection, struct why_owner *owner, const char *format,
                       ...)
{
    struct arena *arena = &selection->why->texts;
    struct slice *grown =
        arena_grow(arena, owner->undoers.items, owner->undoers.count, sizeof *grown);
    va_list args;

    va_start(args, format);
    if (grown != NULL)
        grown[owner->undoers.count] = arena_vprintf(arena, format, args);
    va_end(args);
    if (grown == NULL || grown[owner->undoers.count].ptr == NULL) {
        selection->has_failed = true;
        return;
    }
    owner->undoers.items = grown;
    owner->undoers.count++;
}

/* What its metadata names, and what scales it. */
static void find_undoers(struct selection *selection, struct why_owner *owner,
                         const struct workload_details *details)
{
    const struct operand *operand = owner->operand;
    bool is_known;
    const struct autoscaler_details *autoscaler =
        workloads_autoscaler(selection->inquiry->workloads, operand->ns,
                             slice_of(kind_text(operand->kind)), operand->name, &is_known);

    if (details->controller.name.len != 0)
        add_undoer(selection, owner, "%.*s %.*s, which owns it",
                   SLICE_ARG(details->controller.kind), SLICE_ARG(details->controller.name));
    if (autoscaler != NULL)
        add_undoer(selection, owner, "HorizontalPodAutoscaler %.*s", SLICE_ARG(autoscaler->name));
    if (details->argo.len != 0)
        add_undoer(selection, owner, "Argo CD (%.*s)", SLICE_ARG(details->argo));
    if (details->flux.len != 0)
        add_undoer(selection, owner, "Flux (%.*s)", SLICE_ARG(details->flux));
    if (details->manager.len != 0)
        add_undoer(selection, owner, "%.*s (app.kubernetes.io/managed-by)",
                   SLICE_ARG(details->manager));
}

static void describe(struct selection *selection, struct why_owner *owner)
{
    const struct cluster *cluster = &selection->inquiry->cluster;
    const struct operand *operand = owner->operand;

    if (operand->kind == KIND_NODE) {
        const struct node *node = cluster_find_node(cluster, operand->name);
        owner->exists = node != NULL && node->exists;
    } else if (operand->kind == KIND_CLAIM) {
        const struct claim *claim = cluster_find_claim(cluster, operand->ns, operand->name);
        owner->exists = claim != NULL && claim->exists;
    } else if (operand_is_owner(operand) && operand->ns.len != 0) {
        const struct workload_answer *workload =
            workloads_find(selection->inquiry->workloads, slice_of(kind_text(operand->kind)),
                           operand->ns, operand->name);
        selection->has_failed = selection->has_failed || workload == NULL;
        owner->exists = workload != NULL && workload->state == WORKLOAD_KNOWN;
        if (owner->exists)
            find_undoers(selection, owner, &workload->details);
    }
}

bool why_select(struct why *why, const struct inquiry *inquiry, const struct pod ***out,
                size_t *count)
{
    size_t operands = why->question->count;
    struct selection selection = {.why = why, .inquiry = inquiry};

    why->owners = arena_alloc(&why->texts, (operands + 1) * sizeof *why->owners);
    if (why->owners == NULL)
        return false;
    for (size_t i = 0; i < operands; i++)
        why->owners[i] = (struct why_owner){.operand = &why->question->operands[i]};
    arena_init(&selection.scratch, SELECT_BYTES_MAX);
    choose(&selection);
    arena_dispose(&selection.scratch);
    for (size_t i = 0; i < operands; i++)
        describe(&selection, &why->owners[i]);
    *out = selection.pods;
    *count = selection.count;
    return !selection.has_failed;
}
