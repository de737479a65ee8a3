/* An answer for programs, and for people. */
#include "extender/commands/who/triage.h"
#include "extender/commands/why/why_internal.h"
#include "extender/report/explain.h"

enum { WHAT_BYTES_MAX = 4096 };

/* ---- for programs ---- */

static void put_cause(struct fields *out, const struct why_cause *cause)
{
    static const char *const effects[] = {[WHY_BLOCKS] = "Blocks",
                                          [WHY_NARROWS] = "Narrows",
                                          [WHY_LATER] = "Later",
                                          [WHY_NORMAL] = "Normal"};

    fields_open(out, NULL, '{');
    fields_text(out, "cause", slice_of(cause->word));
    fields_text(out, "effect", slice_of(effects[cause->effect]));
    fields_open(out, "object", '{');
    fields_text(out, "kind", slice_of(kind_text(cause->object.kind)));
    fields_text(out, "name", cause->object.name);
    fields_text_if(out, "namespace", cause->object.ns);
    fields_close(out);
    fields_text(out, "text", cause->text);
    advice_list_put(out, "helps", &cause->helps);
    if (cause->rejected_nodes != 0)
        fields_number(out, "rejectedNodes", (int64_t)cause->rejected_nodes);
    fields_close(out);
}

static size_t names_shown(const struct why_left *left)
{
    return left->left < WHY_NAMES_SHOWN_MAX ? left->left : WHY_NAMES_SHOWN_MAX;
}

static void put_left(struct fields *out, const struct why_left *left)
{
    fields_open(out, "nodes", '{');
    fields_number(out, "total", (int64_t)left->total);
    fields_number(out, "left", (int64_t)left->left);
    fields_number(out, "leftClosed", (int64_t)left->closed);
    fields_open(out, "names", '[');
    for (size_t i = 0; i < names_shown(left); i++)
        fields_text(out, NULL, left->names[i]);
    fields_close(out);
    fields_open(out, "rejectedBy", '[');
    for (size_t i = 0; i < left->out_count; i++) {
        fields_open(out, NULL, '{');
        fields_text(out, "cause", slice_of(left->out[i].word));
        fields_number(out, "nodes", (int64_t)left->out[i].nodes);
        fields_close(out);
    }
    fields_close_several(out, 2);
}

/* claimguard's verdict on a pod without a node, as in a dry run, without each node. */
static void put_verdict(struct fields *out, const struct why_pod *pod)
{
    const struct placement *placement = pod->view.placement;
    struct explained explained;
    struct arena arena;

    arena_init(&arena, WHY_POD_BYTES_MAX);
    struct slice *names = arena_alloc(&arena, (placement->node_count + 1) * sizeof *names);
    for (size_t i = 0; names != NULL && i < placement->node_count; i++)
        names[i] = placement->nodes[i].name;
    const struct explained_nodes nodes = {names, placement->node_count, false};
    fields_open(out, "verdict", '{');
    if (names != NULL && explain_pod(&explained, &pod->view, &pod->object, &nodes, &arena))
        explained_put_verdict(out, &explained);
    else
        out->has_failed = true;
    fields_close(out);
    arena_dispose(&arena);
}

static const char *stage_text(const struct why_pod *pod)
{
    switch (pod->stage) {
    case WHY_SCHEDULING: return pod->pod->is_gated ? "Gated" : "Scheduling";
    case WHY_STARTING: return "Starting";
    case WHY_RUNNING: return "Running";
    default: return "Finished";
    }
}

static void put_pod(struct fields *out, const struct why_pod *pod)
{
    struct slice state = who_state(&pod->who), message = who_message(&pod->who);
    bool has_node = pod_is_assigned(pod->pod), has_state = has_node && state.len != 0;

    fields_open(out, NULL, '{');
    who_put_pod(out, &pod->who);
    fields_text_if(out, "nominatedNode", pod_nominated_node(pod->pod));
    fields_flag(out, "gated", pod->pod->is_gated);
    const struct scheduling_gate *gates = pod->who.details.gates.items;
    if (pod->pod->is_gated)
        fields_open(out, "schedulingGates", '[');
    for (size_t i = 0; pod->pod->is_gated && i < pod->who.details.gates.count; i++)
        fields_text(out, NULL, gates[i].name);
    if (pod->pod->is_gated)
        fields_close(out);
    if (has_node)
        fields_text(out, "node", pod_node(pod->pod));
    if (has_state)
        fields_text(out, "state", state);
    fields_text_if(out, "message", message);
    fields_text(out, "stage", slice_of(stage_text(pod)));
    fields_flag(out, "terminating", pod->pod->is_terminating);
    if (has_node)
        fields_text(out, "nodeState", slice_of(who_node_state_text(pod->who.node_state)));
    else
        fields_text(out, "node", SLICE(""));
    if (!has_state)
        fields_text(out, "state", state);
    fields_open(out, "causes", '[');
    for (size_t i = 0; i < pod->cause_count; i++)
        put_cause(out, &pod->causes[i]);
    fields_close(out);
    why_put_events(out, pod);
    if (pod->looks.count != 0)
        advice_list_put(out, "helps", &pod->looks);
    fields_flag(out, "complete", pod->is_complete);
    if (pod->stage == WHY_SCHEDULING) {
        put_verdict(out, pod);
        put_left(out, &pod->left);
    }
    fields_close(out);
}

/* ---- pods that wait for the same ---- */

/* "driver disk.example.com": what a cause is put together by. */
static void put_root(struct buf *out, const struct object_reference *root)
{
    static const struct {
        enum kind kind;
        const char *word;
    } words[] = {{KIND_POD, "pod"},
                 {KIND_NODE, "node"},
                 {KIND_CLAIM, "claim"},
                 {KIND_VOLUME, "volume"},
                 {KIND_CSI_DRIVER, "driver"}};
    const char *word = kind_text(root->kind);

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        word = words[i].kind == root->kind ? words[i].word : word;
    buf_printf(out, "%s %.*s%s%.*s", word, SLICE_ARG(root->ns), root->ns.len == 0 ? "" : "/",
               SLICE_ARG(root->name));
}

/* "claims shop/data-db-*": each pod of a StatefulSet has its own. */
static bool put_claims(struct buf *out, const struct why_pod *pod,
                       const struct object_reference *root)
{
    struct slice name = root->name, of_pod = pod_name(pod->pod), set = pod->who.owner.name;

    if (root->kind != KIND_CLAIM || !slice_equal(pod->who.owner.kind, SLICE("StatefulSet")) ||
        name.len <= of_pod.len || of_pod.len <= set.len || !slice_ends_with(name, of_pod))
        return false;
    buf_printf(out, "claims %.*s/%.*s-*", SLICE_ARG(root->ns),
               (int)(name.len - of_pod.len + set.len), name.ptr);
    return true;
}

static bool add_member(struct triage *triage, const struct why_pod *pod)
{
    const struct why_cause *cause = why_first_cause(pod);
    struct triage_member member = {.subject = pod, .pod = &pod->who, .is_last = cause == NULL};
    struct buf what;

    buf_init(&what, WHAT_BYTES_MAX);
    if (cause != NULL && cause->where.len != 0)
        buf_printf(&what, "a node with %.*s", SLICE_ARG(cause->where));
    else if (cause != NULL && cause->root.kind != KIND_POD && /* a pod of its own is no group */
             !put_claims(&what, pod, &cause->root))
        put_root(&what, &cause->root);
    member.cause = cause == NULL ? SLICE("") : slice_of(cause->word);
    member.what = cause == NULL ? SLICE("other things than claims") : buf_slice(&what);
    bool ok = !what.failed && triage_add(triage, &member);
    buf_dispose(&what);
    return ok;
}

/* Puts all pods together. Ownership: triage_dispose, also after false: no memory. */
static bool find_groups(const struct why *why, struct triage *out)
{
    bool ok = true;

    triage_init(out);
    for (size_t i = 0; i < why->pod_count && ok; i++)
        ok = add_member(out, &why->pods[i]);
    return ok && triage_sort(out);
}

/* ---- the whole answer, for programs ---- */

static void put_groups(struct fields *out, const struct why *why)
{
    struct triage triage;

    if (find_groups(why, &triage))
        triage_put(out, &triage);
    else
        out->has_failed = true;
    triage_dispose(&triage);
}

static void put_owner(struct fields *out, const struct why_owner *owner)
{
    const struct slice *undoers = owner->undoers.items;

    if (owner->operand->kind == KIND_POD)
        return;
    fields_open(out, NULL, '{');
    fields_text(out, "kind", slice_of(kind_text(owner->operand->kind)));
    fields_text_if(out, "namespace", owner->operand->ns);
    fields_text(out, "name", owner->operand->name);
    fields_number(out, "pods", (int64_t)owner->pods);
    fields_number(out, "waiting", (int64_t)owner->waiting);
    fields_open(out, "undoneBy", '[');
    for (size_t i = 0; i < owner->undoers.count; i++)
        fields_text(out, NULL, undoers[i]);
    fields_close(out);
    fields_text_if(out, "state", owner->state);
    if (owner->helps.count != 0)
        advice_list_put(out, "helps", &owner->helps);
    fields_close(out);
}

static bool has_owner(const struct why *why)
{
    for (size_t i = 0; i < why->question->count; i++)
        if (why->owners[i].operand->kind != KIND_POD)
            return true;
    return false;
}

static void put_owners(struct fields *out, const struct why *why)
{
    if (!has_owner(why))
        return;
    fields_open(out, "asked", '[');
    for (size_t i = 0; i < why->question->count; i++)
        put_owner(out, &why->owners[i]);
    fields_close(out);
}

static bool print_fields(const struct why *why, enum output_format format, FILE *file)
{
    struct fields out;

    fields_begin(&out, format, file);
    fields_open(&out, NULL, '{');
    fields_open(&out, "pods", '[');
    for (size_t i = 0; i < why->pod_count; i++)
        put_pod(&out, &why->pods[i]);
    fields_close(&out);
    if (why->question->is_all)
        put_groups(&out, why);
    put_owners(&out, why);
    gaps_put(&out, "notKnown", &why->gaps);
    return fields_end(&out);
}

/* ---- one pod, for people ---- */

static const char *heading_of(const struct why_pod *pod)
{
    switch (pod->stage) {
    case WHY_SCHEDULING:
        return pod->pod->is_gated ? " is tried by no scheduler, while it has scheduling gates"
                                  : " waits for a node";
    case WHY_STARTING: return " waits for its volumes";
    case WHY_RUNNING: return " has its volumes";
    default: return " has ended";
    }
}

/* " (kueue.x-k8s.io/admission)": what has set a gate has to remove it. */
static void put_gates(struct buf *line, const struct pull_items *items)
{
    const struct scheduling_gate *gates = items->items;

    for (size_t i = 0; i < items->count && i < WHY_NAMES_SHOWN_MAX; i++)
        buf_printf(line, "%s%.*s", i == 0 ? " (" : ", ", SLICE_ARG(gates[i].name));
    if (items->count != 0)
        buf_put(line, items->count > WHY_NAMES_SHOWN_MAX ? SLICE(", ...)") : SLICE(")"));
}

/* "pod shop/web-1 waits for a node, priority 0, of Deployment web" */
static void put_heading(struct block *block, const struct why_pod *pod)
{
    static const char *const states[] = {[NODE_NOT_READY] = " (which is not ready)",
                                         [NODE_UNREACHABLE] = " (which does not answer)",
                                         [NODE_MISSING] = " (which does not exist)"};
    const char *state = pod_is_assigned(pod->pod) ? states[pod->who.node_state] : NULL;

    buf_printf(&block->line, "pod %.*s/%.*s%s", POD_ARG(pod->pod), heading_of(pod));
    put_gates(&block->line, &pod->who.details.gates);
    block_put_if(block, " on ", pod_node(pod->pod));
    buf_put(&block->line, slice_of(state == NULL ? "" : state));
    block_put_if(block, ", ", who_state(&pod->who));
    block_put_if(block, " since ", pod->pod->is_terminating ? pod->who.deleted : pod->who.since);
    buf_printf(&block->line, ", priority %lld", (long long)pod->pod->priority);
    who_put_owner(block, &pod->who);
    block_heading(block);
}

static bool are_same(const struct advice_list *a, const struct advice_list *b)
{
    bool same = a->count == b->count;

    for (size_t i = 0; same && i < a->count; i++)
        same = slice_equal(a->items[i].text, b->items[i].text) &&
               slice_equal(a->items[i].command, b->items[i].command);
    return same;
}

/* Whether a cause above this one helps by the same. */
static bool is_repeated(const struct why_pod *pod, const struct why_cause *cause)
{
    for (const struct why_cause *above = pod->causes; above < cause; above++)
        if (are_same(&above->helps, &cause->helps))
            return true;
    return false;
}

/* "ClaimInUse", and what to know at once of a cause that does not block. */
static void add_cause(struct block *block, const struct why_pod *pod, const struct why_cause *cause)
{
    char label[64];

    (void)snprintf(label, sizeof label, "  %s", cause->word);
    if (cause->effect == WHY_NORMAL)
        buf_put(&block->line, SLICE("(nothing is wrong) "));
    else if (cause->effect == WHY_LATER)
        buf_put(&block->line, SLICE("(not now, but later) "));
    block_put_if(block, "", cause->text);
    block_row(block, label);
    if (!is_repeated(pod, cause))
        block_advice(block, "    helps", &cause->helps);
}

static bool blocks_or_narrows(const struct why_pod *pod)
{
    for (size_t i = 0; i < pod->cause_count; i++)
        if (pod->causes[i].effect == WHY_BLOCKS || pod->causes[i].effect == WHY_NARROWS)
            return true;
    return false;
}

static void add_causes(struct block *block, const struct why_pod *pod)
{
    bool is_tried = pod->stage == WHY_SCHEDULING && !pod->pod->is_gated;

    for (size_t i = 0; i < pod->cause_count; i++)
        if (strcmp(pod->causes[i].word, "NoNodeLeft") != 0) /* add_left says it */
            add_cause(block, pod, &pod->causes[i]);
    if (blocks_or_narrows(pod))
        return;
    buf_put(&block->line,
            pod->event_count != 0
                ? SLICE("none was found that has to do with its claims; its Events say more")
            : pod->is_complete ? SLICE("none that has to do with its claims")
                               : SLICE("none was found that has to do with its claims, but not all "
                                       "is known (see below)"));
    if (is_tried)
        buf_put(&block->line, who_message(&pod->who).len == 0
                                  ? SLICE("; no message of a scheduler is known")
                              : pod->is_complete ? SLICE("; the scheduler's message has the reason")
                                                 : SLICE("; the scheduler's message says more"));
    block_row(block, "  causes");
    block_advice(block, "    helps", &pod->looks);
}

/* "2 of 6 are left: node-1, node-2; rejected: 3 by VolumeNodeAffinity, 1 by NodeTainted" */
static void add_left(struct block *block, const struct why_left *left)
{
    size_t shown = names_shown(left);

    if (left->left == left->total)
        return;
    buf_printf(&block->line, "%zu of %zu are left", left->left, left->total);
    for (size_t i = 0; i < shown; i++)
        buf_printf(&block->line, "%s%.*s", i == 0 ? ": " : ", ", SLICE_ARG(left->names[i]));
    if (left->left > shown)
        buf_printf(&block->line, " and %zu more", left->left - shown);
    if (left->closed != 0)
        buf_printf(&block->line, "; of these, %zu cordoned or not ready", left->closed);
    for (size_t i = 0; i < left->out_count; i++)
        buf_printf(&block->line, "%s%zu by %s", i == 0 ? "; rejected: " : ", ", left->out[i].nodes,
                   left->out[i].word);
    block_row(block, "  nodes");
}

/* Pods that wait for the same, but for that whose block it is. */
static void add_same(struct block *block, const struct triage_group *group)
{
    for (size_t i = 1; i < group->pods && i <= WHY_NAMES_SHOWN_MAX; i++)
        buf_printf(&block->line, "%s%.*s/%.*s", i == 1 ? "" : ", ",
                   POD_ARG(((const struct why_pod *)group->entries[i].subject)->pod));
    if (group->pods > WHY_NAMES_SHOWN_MAX + 1)
        buf_printf(&block->line, " and %zu more", group->pods - 1 - WHY_NAMES_SHOWN_MAX);
    if (group->pods > 1)
        block_row(block, "  the same");
}

/* group: of the pod; NULL: not put together. */
static bool print_pod(const struct why_pod *pod, const struct triage_group *group,
                      const struct sheet_style *style, FILE *file)
{
    struct slice message = who_message(&pod->who);
    struct block block;

    block_init(&block);
    put_heading(&block, pod);
    if (message.len != 0) {
        buf_put(&block.line, message);
        block_row(&block, "  scheduler");
    }
    add_causes(&block, pod);
    why_add_events(&block, pod);
    if (pod->stage == WHY_SCHEDULING)
        add_left(&block, &pod->left);
    if (group != NULL)
        add_same(&block, group);
    return block_print(&block, style, file);
}

/* "Deployment shop/web: 3 of 5 pods wait", and who would undo what is changed there. */
static bool print_owner(const struct why_owner *owner, const struct sheet_style *style, FILE *file)
{
    const struct operand *operand = owner->operand;
    const struct slice *undoers = owner->undoers.items;
    struct block block;

    block_init(&block);
    buf_printf(&block.line, "%s %.*s%s%.*s: ", kind_text(operand->kind), SLICE_ARG(operand->ns),
               operand->ns.len == 0 ? "" : "/", SLICE_ARG(operand->name));
    block_put_if(&block, "", owner->state);
    if (owner->pods == 0)
        buf_put(&block.line, owner->state.len == 0 ? SLICE("it has no pods") : SLICE(""));
    else
        buf_printf(&block.line, "%s%zu of %zu pods wait%s", owner->state.len == 0 ? "" : ", and ",
                   owner->waiting, owner->pods, owner->waiting == 1 ? "s" : "");
    block_heading(&block);
    for (size_t i = 0; i < owner->undoers.count; i++)
        block_put_if(&block, i == 0 ? "" : ", ", undoers[i]);
    if (owner->undoers.count != 0)
        block_row(&block, "  undone by");
    block_advice(&block, "  helps", &owner->helps);
    return block_print(&block, style, file);
}

/* For each group its first pod, which waits longest, and the names of the others. */
static bool print_groups(const struct why *why, const struct sheet_style *style, FILE *file)
{
    struct triage triage;
    bool ok = find_groups(why, &triage);

    for (size_t i = 0; i < why->question->count && ok; i++)
        if (why->owners[i].operand->kind != KIND_POD &&
            (why->owners[i].exists || why->owners[i].pods != 0))
            ok = print_owner(&why->owners[i], style, file);
    for (size_t i = 0; i < triage.group_count && ok; i++) {
        (void)fputc('\n', file);
        ok = print_pod(triage.groups[i].entries->subject, &triage.groups[i], style, file);
    }
    triage_dispose(&triage);
    return ok;
}

/* What to do first, and a line for each cause. */
static bool print_triage(const struct triage *triage, const struct sheet_style *style, FILE *file)
{
    const struct why_pod *pod = triage->groups->entries->subject;
    const struct why_cause *cause = why_first_cause(pod);
    struct block block;

    if (cause == NULL)
        return triage_print(triage, style, file);
    block_init(&block);
    triage_put_heading(&block.line, triage->groups);
    block_heading(&block);
    buf_printf(&block.line, "pod %.*s/%.*s: %.*s", POD_ARG(pod->pod), SLICE_ARG(cause->text));
    block_row(&block, "  such as");
    const struct advice_list advice = advice_list_first(&cause->helps);
    block_advice(&block, "  first", &advice);
    bool ok = block_print(&block, style, file);
    (void)fputc('\n', file);
    return ok && triage_print(triage, style, file);
}

static bool print_all(const struct why *why, const struct sheet_style *style, FILE *file)
{
    struct triage triage;
    bool ok = find_groups(why, &triage);

    if (ok && triage.count == 0)
        (void)fputs("No pod waits.\n", file);
    else
        ok = ok && print_triage(&triage, style, file);
    triage_dispose(&triage);
    return ok;
}

static bool print_pods(const struct why *why, const struct sheet_style *style, FILE *file)
{
    bool ok = true;

    for (size_t i = 0; i < why->pod_count && ok; i++) {
        (void)fputs(i == 0 ? "" : "\n", file);
        ok = print_pod(&why->pods[i], NULL, style, file);
    }
    return ok;
}

bool why_print(const struct why *why, enum output_format format, FILE *file)
{
    const struct sheet_style style = sheet_style(file);

    if (format != OUTPUT_TABLE)
        return print_fields(why, format, file);
    bool ok = why->question->is_all ? print_all(why, &style, file)
              : has_owner(why)      ? print_groups(why, &style, file)
                                    : print_pods(why, &style, file);
    if (why->pod_count != 0 && why->gaps.count != 0) {
        (void)fputs(GAPS_HEADING, file);
        gaps_print(&why->gaps, "- ", "", file);
    }
    return ok && !ferror(file);
}
