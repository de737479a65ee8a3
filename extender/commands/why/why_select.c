/* The pods that are asked about: by name, by what created them, by a claim or a node that they wait
 * for, or all that wait. And who would undo what is changed at what created them. */
#include <stdlib.h>

#include "extender/commands/why/why_internal.h"
#include "policy/volume.h"

enum { SELECT_BYTES_MAX = 64 << 20 };

/* The pods so far, and the one that is checked. */
struct selection {
    struct why *why;
    const struct inquiry *inquiry;
    const struct config *config;
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

/* For a node or volumes, or to end. */
static bool is_waiting(struct selection *selection, const struct pod *pod)
{
    if (pod->is_terminating &&
        who_cannot_end(details_of(selection, pod), selection->inquiry->now_ms))
        return true;
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

/* Whether the node has the volume of the claim. */
static bool is_attached(const struct cluster *cluster, const struct claim *claim, struct slice node)
{
    char name[PROVISIONED_NAME_BYTES];
    struct slice volume = claim_volume_name(claim, name);
    struct table_walk walk = {.at = 0};

    for (const struct resource *attachment;
         volume.len != 0 &&
         (attachment = cluster_next_resource(cluster, KIND_VOLUME_ATTACHMENT, &walk)) != NULL;)
        if (slice_equal(resource_attribute(attachment, VOLUME_ATTACHMENT_NODE), node) &&
            slice_equal(who_volume_of(attachment), volume))
            return true;
    return false;
}

/* Whether the pod needs a claim for one node or one pod at a time that the node has. */
static bool needs_node(const struct cluster *cluster, const struct pod *pod, struct slice node)
{
    for (size_t i = 0; i < pod->use_count; i++) {
        const struct claim *claim = claim_at(pod->uses[i].claim);
        const struct resource *volume = volume_of(cluster, claim);
        if (!claim->is_rwop && (volume == NULL || !volume_is_on_one_node(cluster, volume)))
            continue;
        for (const struct use *use = use_at(claim->uses); use != NULL; use = use_at(use->next))
            if (pod_holds(use_pod(use)) && slice_equal(pod_node(use_pod(use)), node))
                return true;
        if (is_attached(cluster, claim, node))
            return true;
    }
    return false;
}

/* Whether the operand, which names no pod, means this one. */
static bool means(struct selection *selection, const struct operand *operand, const struct pod *pod)
{
    bool is_in_ns = operand->ns.len == 0 || slice_equal(operand->ns, name_text(pod->ns));

    if (!is_in_ns || (pod->is_terminal && !is_waiting(selection, pod)))
        return false;
    if (operand->kind == KIND_NODE)
        return slice_equal(pod_node(pod), operand->name) ||
               slice_equal(pod_nominated_node(pod), operand->name) ||
               (is_waiting(selection, pod) &&
                needs_node(&selection->inquiry->cluster, pod, operand->name));
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
               (!pod_is_assigned(pod) || pod->is_pending || pod->is_terminating) &&
               is_waiting(selection, pod);
    for (size_t i = 0; i < question->count; i++) {
        const struct operand *operand = &question->operands[i];
        struct why_owner *owner = &selection->why->owners[i];
        if (operand->kind == KIND_POD) {
            is_chosen = is_chosen || operand_is(operand, name_text(pod->ns), pod_name(pod));
        } else if (means(selection, operand, pod)) {
            bool waits = is_waiting(selection, pod) || (operand->kind == KIND_STATEFUL_SET &&
                                                        pod->is_terminating); /* it makes none */
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
    const struct autoscaler_details *autoscaler =
        workloads_autoscaler(selection->inquiry->workloads, operand->ns,
                             slice_of(kind_text(operand->kind)), operand->name, NULL);

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

static void set_state(struct selection *selection, struct why_owner *owner, const char *format, ...)
    PRINTF_LIKE(3, 4);
static void set_state(struct selection *selection, struct why_owner *owner, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    owner->state = arena_vprintf(&selection->why->texts, format, args);
    va_end(args);
    selection->has_failed = selection->has_failed || owner->state.ptr == NULL;
}

static void describe_node(struct selection *selection, struct why_owner *owner)
{
    struct slice name = owner->operand->name;
    const struct node *node = cluster_find_node(&selection->inquiry->cluster, name);
    enum node_state state = who_node_state(selection->inquiry, name, &selection->scratch);

    owner->exists = node != NULL && node->exists;
    if (state == NODE_UNREACHABLE || state == NODE_NOT_READY)
        set_state(selection, owner, "%s",
                  state == NODE_UNREACHABLE ? "it does not answer" : "it is not ready");
}

/* The same as `who` says. */
static void help_claim(struct selection *selection, struct why_owner *owner,
                       const struct claim *claim)
{
    struct arena *arena = &selection->scratch;
    struct who_claim known = {
        .inquiry = selection->inquiry, .config = selection->config, .arena = arena};
    struct who_index index = {.naming_count = 0};
    size_t count = 1;

    if (!who_index_init(&index, arena, &selection->inquiry->cluster, &claim, &count) ||
        !who_gather(&known, &index, claim))
        selection->has_failed = true;
    else
        owner->helps = who_freed_by(&known, true, &selection->why->texts);
}

/* What a claim waits for that no pod uses, or that is being deleted. */
static void describe_claim(struct selection *selection, struct why_owner *owner)
{
    const struct inquiry *inquiry = selection->inquiry;
    const struct operand *operand = owner->operand;
    const struct claim *claim = cluster_find_claim(&inquiry->cluster, operand->ns, operand->name);

    owner->exists = claim != NULL && claim->exists;
    if (!owner->exists || (owner->pods != 0 && !claim->is_deleting))
        return;
    struct slice class = name_slice(claim_storage_class(claim)), text;
    struct storage_class_details details = {.binding_mode = SLICE("")};
    bool is_pending = claim_phase(claim) == CLAIM_PENDING;
    text = inquiry_find_details(inquiry, KIND_STORAGE_CLASS, SLICE(""), class);
    if (text.ptr != NULL && !storage_class_details_read(text, &selection->scratch, &details))
        selection->has_failed = true;
    bool is_first = is_pending && slice_equal(details.binding_mode, SLICE("WaitForFirstConsumer"));
    if (claim->is_deleting)
        set_state(selection, owner, "it is being deleted%s",
                  owner->pods == 0 ? ", and no pod uses it" : "");
    else if (is_first)
        set_state(selection, owner,
                  "no pod uses it yet, and StorageClass %.*s waits for the first one: nothing is "
                  "wrong",
                  SLICE_ARG(class));
    else
        set_state(selection, owner, "no pod uses it%s", is_pending ? ", and it is not bound" : "");
    if (owner->waiting == 0 &&
        (claim->is_deleting || claim_phase(claim) == CLAIM_LOST || (is_pending && !is_first)))
        help_claim(selection, owner, claim);
}

/* What creates pods, and has none. */
static void describe_workload(struct selection *selection, struct why_owner *owner,
                              const struct workload_details *details)
{
    const struct operand *operand = owner->operand;
    struct slice kind = slice_of(kind_text(operand->kind));

    if (owner->pods != 0 || !workload_scales(kind))
        return;
    if (details->replicas == 0) {
        set_state(selection, owner, "it is scaled to 0");
        return;
    }
    set_state(selection, owner, "it has none of its %lld pods", (long long)details->replicas);
    advice_list_add(&owner->helps, "its events say why none is made (a quota, a webhook)");
    struct slice resource = slice_of(kind_resource(operand->kind));
    advice_list_row(&owner->helps, ADVICE_SEE_ROLLOUT,
                    &(const struct advice_words){.ns = operand->ns,
                                                 .kind = {resource.ptr, resource.len - 1},
                                                 .name = operand->name});
}

static void describe(struct selection *selection, struct why_owner *owner)
{
    const struct operand *operand = owner->operand;

    owner->helps.arena = &selection->why->texts;
    if (operand->kind == KIND_NODE) {
        describe_node(selection, owner);
    } else if (operand->kind == KIND_CLAIM) {
        describe_claim(selection, owner);
    } else if (operand_is_owner(operand) && operand->ns.len != 0) {
        const struct workload_answer *workload =
            workloads_find(selection->inquiry->workloads, slice_of(kind_text(operand->kind)),
                           operand->ns, operand->name);
        selection->has_failed = selection->has_failed || workload == NULL;
        owner->exists = workload != NULL && workload->state == WORKLOAD_KNOWN;
        if (owner->exists) {
            find_undoers(selection, owner, &workload->details);
            describe_workload(selection, owner, &workload->details);
        }
    }
    selection->has_failed = selection->has_failed || owner->helps.has_failed;
}

bool why_select(struct why *why, const struct inquiry *inquiry, const struct config *config,
                const struct pod ***out, size_t *count)
{
    size_t operands = why->question->count;
    struct selection selection = {.why = why, .inquiry = inquiry, .config = config};

    why->owners = arena_alloc(&why->texts, (operands + 1) * sizeof *why->owners);
    if (why->owners == NULL)
        return false;
    for (size_t i = 0; i < operands; i++)
        why->owners[i] = (struct why_owner){.operand = &why->question->operands[i]};
    arena_init(&selection.scratch, SELECT_BYTES_MAX);
    choose(&selection);
    for (size_t i = 0; i < operands; i++)
        describe(&selection, &why->owners[i]);
    arena_dispose(&selection.scratch);
    *out = selection.pods;
    *count = selection.count;
    return !selection.has_failed;
}
