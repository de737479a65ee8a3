/* An answer for programs, and for people. */
#include <string.h>

#include "cache/cluster/reservation.h"
#include "config/base/text.h"
#include "extender/commands/who/triage.h"
#include "policy/verdict.h"

enum { NAME_BYTES_MAX = 4096 };

static const char *const waits[] = {
    [WAITS_OTHER] = "Other",
    [WAITS_PLACE] = "Place",
    [WAITS_HOLDER] = "Holder",
    [WAITS_DETACH] = "Detach",
    [WAITS_CLAIM] = "Claim",
    [WAITS_BINDING] = "Binding",
    [WAITS_RESERVATION] = "Reservation",
    [WAITS_LOCK] = "Lock",
};

/* ---- for programs ---- */

static void put_strings(struct fields *out, const char *key, const struct pull_items *items)
{
    const struct slice *texts = items->items;

    fields_open(out, key, '[');
    for (size_t i = 0; i < items->count; i++)
        fields_text(out, NULL, texts[i]);
    fields_close(out);
}

/* When the grace of a terminating pod ends, and how it was given. */
static void put_grace(struct fields *out, int64_t now_ms, const struct pod_details *details)
{
    int64_t end_ms = time_parse(details->deletion_timestamp);

    if (end_ms != 0)
        fields_text(out, "graceEnds", details->deletion_timestamp);
    if (details->grace_seconds >= 0)
        fields_number(out, "graceSeconds", details->grace_seconds);
    if (now_ms != 0 && end_ms != 0)
        fields_number(out, "graceSecondsLeft", (end_ms - now_ms) / 1000);
}

static void put_budgets(struct fields *out, const struct cluster *cluster, const struct pod *pod)
{
    struct budgets budgets;
    char name[PROVISIONED_NAME_BYTES];

    who_find_budgets(&budgets, cluster, pod);
    fields_open(out, "budgets", '[');
    for (size_t i = 0; i < budgets.count; i++) {
        fields_open(out, NULL, '{');
        fields_text(out, "name", resource_name(budgets.items[i], name));
        fields_number(out, "disruptionsAllowed", resource_number(budgets.items[i]));
        fields_close(out);
    }
    fields_close(out);
    if (budgets.left_out != 0)
        fields_number(out, "budgetsLeftOut", (int64_t)budgets.left_out);
}

static void put_holder(struct fields *out, const struct inquiry *inquiry,
                       const struct who_pod *holder)
{
    bool is_terminating = holder->pod->is_terminating;

    fields_open(out, NULL, '{');
    who_put_pod(out, holder);
    fields_text(out, "node", pod_node(holder->pod));
    fields_text(out, "nodeState", slice_of(who_node_state_text(holder->node_state)));
    fields_text(out, "as", is_terminating ? SLICE("Terminating") : SLICE("Bound"));
    fields_text_if(out, "state", who_state(holder));
    put_strings(out, "finalizers", &holder->details.finalizers);
    put_budgets(out, &inquiry->cluster, holder->pod);
    if (is_terminating)
        put_grace(out, inquiry->now_ms, &holder->details);
    fields_close(out);
}

static void put_waiter(struct fields *out, const struct who_pod *waiter)
{
    fields_open(out, NULL, '{');
    who_put_pod(out, waiter);
    fields_text_if(out, "nominatedNode", pod_nominated_node(waiter->pod));
    fields_flag(out, "gated", waiter->pod->is_gated);
    fields_text(out, "waitsFor", slice_of(waits[waiter->waits_for]));
    fields_text_if(out, "node", pod_node(waiter->pod));
    if (pod_is_assigned(waiter->pod))
        fields_text_if(out, "state", who_state(waiter));
    fields_text_if(out, "message", who_message(waiter));
    fields_close(out);
}

static void put_attachments(struct fields *out, const struct who_claim *claim)
{
    char name[PROVISIONED_NAME_BYTES];

    fields_open(out, "attachments", '[');
    for (size_t i = 0; i < claim->attachment_count; i++) {
        const struct who_attachment *attachment = &claim->attachments[i];
        fields_open(out, NULL, '{');
        fields_text(out, "name", resource_name(attachment->record, name));
        fields_text(out, "node", attachment->node);
        fields_text(out, "nodeState", slice_of(who_node_state_text(attachment->node_state)));
        fields_flag(out, "attached", attachment->is_attached);
        fields_flag(out, "detaching", attachment->is_detaching);
        fields_text(out, "attachError", attachment->attach_error);
        fields_text(out, "detachError", attachment->detach_error);
        fields_close(out);
    }
    fields_close(out);
}

static void put_pods(struct fields *out, const struct who_claim *claim)
{
    fields_open(out, "heldBy", '[');
    for (size_t i = 0; i < claim->holder_count; i++)
        put_holder(out, claim->inquiry, &claim->holders[i]);
    fields_close(out);
    fields_open(out, "waiting", '[');
    for (size_t i = 0; i < claim->waiter_count; i++)
        put_waiter(out, &claim->waiters[i]);
    fields_close(out);
}

/* The pod of the lock; and that for which the claim is reserved, if the input has reservations. */
static void put_takers(struct fields *out, const struct who_claim *claim)
{
    const struct reservation *reservation = reservation_at(claim->claim->reservation);
    char text[UID_TEXT_BYTES];
    struct slice uid, name;

    if (who_lock(claim, &uid, &name)) {
        fields_open(out, "lock", '{');
        fields_text(out, "name", name);
        fields_text(out, "uid", uid);
        fields_flag(out, "found", who_locker(claim) != NULL);
        fields_close(out);
    }
    if (reservation == NULL)
        return;
    fields_open(out, "reservedFor", '{');
    fields_text(out, "namespace", name_slice(reservation->ns));
    fields_text(out, "name", name_slice(reservation->name));
    fields_text(out, "uid", uid_text(&reservation->uid, text));
    fields_flag(out, "binding", reservation->binds != 0 || reservation->is_doubtful);
    fields_close(out);
}

static bool put_claim(void *context, const struct who_claim *claim)
{
    static const char *const accesses[] = {[ACCESS_UNKNOWN] = "Unknown",
                                           [ACCESS_ANY] = "Any",
                                           [ACCESS_ONE_NODE] = "OneNode",
                                           [ACCESS_ONE_POD] = "OnePod"};
    const struct claim *record = claim->claim;
    struct fields *out = context;
    char uid[UID_TEXT_BYTES];

    fields_open(out, NULL, '{');
    fields_text(out, "namespace", name_text(record->ns));
    fields_text(out, "name", claim_name(record));
    fields_flag(out, "found", record->exists);
    fields_text(out, "uid", uid_text(&record->uid, uid));
    fields_text(out, "phase", claim->details.phase);
    put_strings(out, "accessModes", &claim->details.access_modes);
    fields_text(out, "usableBy", slice_of(accesses[claim->access]));
    fields_flag(out, "violated", who_is_violated(claim));
    fields_flag(out, "deleting", record->is_deleting);
    fields_flag(out, "free", who_is_free(claim));
    fields_text(out, "reclaimPolicy", claim->volume_details.reclaim_policy);
    fields_text(out, "volume", claim->volume);
    put_strings(out, "finalizers", &claim->details.finalizers);
    put_attachments(out, claim);
    put_pods(out, claim);
    put_takers(out, claim);
    advice_list_put(out, "freedBy", &claim->freed_by);
    fields_close(out);
    return !out->has_failed;
}

void who_put(struct fields *out, const struct who_answer *answer)
{
    fields_open(out, "claims", '[');
    out->has_failed = !who_each(answer, put_claim, out) || out->has_failed;
    fields_close(out);
    gaps_put(out, "notKnown", &answer->gaps);
}

/* ---- one claim, for people ---- */

/* "a, b" */
static void put_list(struct buf *line, const struct pull_items *list)
{
    const struct slice *items = list->items;

    for (size_t i = 0; i < list->count; i++)
        buf_printf(line, "%s%.*s", i == 0 ? "" : ", ", SLICE_ARG(items[i]));
}

/* "pod shop/db-0", and what holders and waiters have in common. state: empty: not said. */
static void put_pod(struct block *block, const struct who_pod *pod, struct slice state)
{
    buf_printf(&block->line, "pod %.*s/%.*s", POD_ARG(pod->pod));
    block_put_if(block, " on ", pod_node(pod->pod));
    block_put_if(block, " since ", pod->since);
    block_put_if(block, ", ", state);
    if (pod->pod->priority != 0)
        buf_printf(&block->line, ", priority %lld", (long long)pod->pod->priority);
    who_put_owner(block, pod);
}

static void put_node_state(struct block *block, enum node_state state)
{
    static const char *const texts[] = {[NODE_NOT_READY] = "; the node is not ready",
                                        [NODE_UNREACHABLE] = "; the node does not answer",
                                        [NODE_MISSING] = "; the node does not exist"};

    if (texts[state] != NULL)
        buf_put(&block->line, slice_of(texts[state]));
}

static void add_holder(struct block *block, const struct who_claim *claim,
                       const struct who_pod *holder, const char *label)
{
    struct budgets budgets;
    char name[PROVISIONED_NAME_BYTES];

    put_pod(block, holder, who_state(holder));
    put_node_state(block, holder->node_state);
    if (node_at(holder->pod->node) != NULL && node_at(holder->pod->node)->is_unschedulable)
        buf_put(&block->line, SLICE("; the node is cordoned"));
    block_row(block, label);
    who_find_budgets(&budgets, &claim->inquiry->cluster, holder->pod);
    for (size_t i = 0; i < budgets.count; i++) {
        buf_printf(&block->line, "PodDisruptionBudget %.*s allows %lld eviction%s",
                   SLICE_ARG(resource_name(budgets.items[i], name)),
                   (long long)resource_number(budgets.items[i]),
                   resource_number(budgets.items[i]) == 1 ? "" : "s");
        block_row(block, " ");
    }
    if (budgets.left_out != 0) {
        buf_printf(&block->line, "and %zu more PodDisruptionBudgets", budgets.left_out);
        block_row(block, " ");
    }
}

/* before: the one above it; NULL: none. What a scheduler says of both stands once. */
static void add_waiter(struct block *block, const struct who_pod *waiter,
                       const struct who_pod *before, const char *label)
{
    bool is_assigned = pod_is_assigned(waiter->pod);
    bool is_new = before == NULL || !slice_equal(who_message(waiter), who_message(before));

    put_pod(block, waiter, is_assigned ? who_state(waiter) : SLICE(""));
    block_put_if(block, ", nominated to ", pod_nominated_node(waiter->pod));
    if (waiter->pod->is_gated)
        buf_put(&block->line, SLICE(", has scheduling gates"));
    if (waiter->waits_for == WAITS_OTHER)
        buf_put(&block->line, SLICE(", not for this claim"));
    else if (waiter->waits_for == WAITS_PLACE)
        buf_put(&block->line,
                SLICE(", for where its volume can be used (claimguard why says more)"));
    else if (waiter->waits_for == WAITS_DETACH)
        buf_put(&block->line, SLICE(" (Multi-Attach)"));
    if (is_new)
        block_put_if(block, ": ", who_message(waiter));
    block_row(block, label);
}

static void add_pods(struct block *block, const struct who_claim *claim)
{
    if (claim->holder_count == 0) {
        buf_put(&block->line, SLICE("no pod"));
        block_row(block, "  held by");
    }
    for (size_t i = 0; i < claim->holder_count; i++)
        add_holder(block, claim, &claim->holders[i], i == 0 ? "  held by" : " ");
    for (size_t i = 0; i < claim->waiter_count; i++)
        add_waiter(block, &claim->waiters[i], i == 0 ? NULL : &claim->waiters[i - 1],
                   i == 0 ? "  waiting" : " ");
}

static void add_attachments(struct block *block, const struct who_claim *claim)
{
    for (size_t i = 0; i < claim->attachment_count; i++) {
        const struct who_attachment *attachment = &claim->attachments[i];
        block_put_if(block, "to ", attachment->node);
        if (attachment->is_detaching)
            buf_put(&block->line, SLICE(", being detached"));
        else if (!attachment->is_attached)
            buf_put(&block->line, SLICE(", not yet"));
        put_node_state(block, attachment->node_state);
        block_put_if(block, ": ", attachment->attach_error);
        block_row(block, i == 0 ? "  attached" : " ");
    }
}

static void add_takers(struct block *block, const struct who_claim *claim)
{
    const struct reservation *reservation = reservation_at(claim->claim->reservation);
    struct slice uid, name;

    if (who_lock(claim, &uid, &name)) {
        block_put_if(block, "pod ", name);
        if (who_locker(claim) == NULL)
            buf_put(&block->line, SLICE(", which is not there"));
        block_row(block, "  locked for");
    }
    if (reservation != NULL) {
        buf_printf(&block->line, "pod %.*s/%.*s", SLICE_ARG(name_slice(reservation->ns)),
                   SLICE_ARG(name_slice(reservation->name)));
        if (reservation->binds != 0 || reservation->is_doubtful)
            buf_put(&block->line, SLICE(", which is being bound"));
        block_row(block, "  reserved for");
    }
}

/* All but the one that each claim has. */
static void put_finalizers(struct buf *line, const struct pull_items *finalizers)
{
    const struct slice *items = finalizers->items;

    for (size_t i = 0; i < finalizers->count; i++)
        if (!slice_equal(items[i], SLICE("kubernetes.io/pvc-protection")))
            buf_printf(line, "%s%.*s", line->len == 0 ? "" : ", ", SLICE_ARG(items[i]));
}

static void add_notes(struct block *block, const struct who_claim *claim)
{
    const char *label = "  note";

    put_finalizers(&block->line, &claim->details.finalizers);
    if (block->line.len != 0)
        block_row(block, "  finalizers");
    if (who_is_violated(claim))
        buf_printf(&block->line, "it is for one pod, and %zu pods hold it", claim->assigned_count);
    else if (claim->access == ACCESS_ONE_NODE && !claim->claim->is_deleting)
        buf_put(&block->line, SLICE("pods on one node may use it together"));
    else if (claim->access == ACCESS_ANY && claim->claim->exists)
        buf_put(&block->line, SLICE("any number of pods may use it"));
    if (block->line.len != 0) {
        block_row(block, label);
        label = " ";
    }
    bool is_missed = claim->waiter_count != 0 && claim->waiters[0].waits_for == WAITS_PLACE;
    if (who_is_free(claim) && claim->access != ACCESS_ANY && !is_missed) {
        buf_put(&block->line, SLICE("it is free: no pod has it"));
        block_row(block, label);
    }
}

/* What is in front of an item of a list that begins there. */
static const char *before_item(const struct buf *line, size_t begin)
{
    return line->len == begin ? " (" : ", ";
}

/* " (ReadWriteOncePod, Bound, volume pv-1)"; nothing, if nothing is known. */
static void put_state(struct buf *line, const struct who_claim *claim)
{
    const struct claim_details *details = &claim->details;
    size_t begin = line->len;

    if (!claim->claim->exists) {
        buf_put(line, SLICE(" (does not exist)"));
        return;
    }
    buf_put(line, details->access_modes.count == 0 ? SLICE("") : SLICE(" ("));
    put_list(line, &details->access_modes);
    if (details->phase.len != 0)
        buf_printf(line, "%s%.*s", before_item(line, begin), SLICE_ARG(details->phase));
    if (claim->volume.len != 0)
        buf_printf(line, "%svolume %.*s", before_item(line, begin), SLICE_ARG(claim->volume));
    if (claim->claim->is_deleting)
        buf_printf(line, "%sbeing deleted", before_item(line, begin));
    buf_put(line, line->len == begin ? SLICE("") : SLICE(")"));
}

static void put_heading(struct block *block, const struct who_claim *claim)
{
    buf_printf(&block->line, "claim %.*s/%.*s", CLAIM_NAME_ARG(claim->claim));
    put_state(&block->line, claim);
    block_heading(block);
}

/* What claims are printed to. */
struct printing {
    FILE *file;
    struct sheet_style style;
    bool has_printed; /* a claim */
};

static bool print_claim(void *context, const struct who_claim *claim)
{
    struct printing *printing = context;
    struct block block;

    (void)fputs(printing->has_printed ? "\n" : "", printing->file);
    printing->has_printed = true;
    block_init(&block);
    put_heading(&block, claim);
    add_pods(&block, claim);
    add_attachments(&block, claim);
    add_takers(&block, claim);
    add_notes(&block, claim);
    block_advice(&block, "  freed by", &claim->freed_by);
    return block_print(&block, &printing->style, printing->file);
}

/* ---- the answer to --all: a line for what many wait for ---- */

/* What a pod waits for, as far as it is the same for several claims: "node node-1", "StatefulSet
 * shop/db", "pod shop/db-0". */
static void put_blocker(struct buf *out, const struct who_claim *claim,
                        const struct who_pod *waiter)
{
    const struct who_pod *holder = claim->holder_count == 0 ? NULL : claim->holders;
    struct slice ns = name_text(claim->claim->ns);

    const struct node *blocker = cluster_find_node(&claim->inquiry->cluster, waiter->blocked_by);
    bool is_lost = blocker == NULL || !blocker->exists || blocker->is_not_ready;

    if (waiter->waits_for == WAITS_DETACH && is_lost) /* which many pods wait for */
        buf_printf(out, "node %.*s", SLICE_ARG(waiter->blocked_by));
    else if (waiter->waits_for == WAITS_CLAIM)
        buf_put(out, !claim->claim->exists                     ? SLICE("it does not exist")
                     : claim->claim->is_deleting               ? SLICE("it is being deleted")
                     : claim_phase(claim->claim) == CLAIM_LOST ? SLICE("it is Lost")
                                                               : SLICE("its volume is gone"));
    else if (waiter->waits_for == WAITS_BINDING)
        buf_printf(out, "class %.*s", SLICE_ARG(name_slice(claim_storage_class(claim->claim))));
    else if (waiter->waits_for != WAITS_HOLDER || holder == NULL)
        buf_printf(out, "claim %.*s/%.*s", CLAIM_NAME_ARG(claim->claim));
    else if (holder->node_state > NODE_READY)
        buf_printf(out, "node %.*s", SLICE_ARG(pod_node(holder->pod)));
    else if (holder->owner.name.len != 0)
        buf_printf(out, "%.*s %.*s/%.*s", SLICE_ARG(holder->owner.kind), SLICE_ARG(ns),
                   SLICE_ARG(holder->owner.name));
    else
        buf_printf(out, "pod %.*s/%.*s", POD_ARG(holder->pod));
}

static bool add_waiting(struct triage *triage, const struct who_claim *claim,
                        const struct who_pod *waiter)
{
    struct triage_member member = {
        .cause = slice_of(waits[waiter->waits_for]), .subject = claim->claim, .pod = waiter};
    struct buf what, name;

    buf_init(&what, NAME_BYTES_MAX);
    buf_init(&name, NAME_BYTES_MAX);
    put_blocker(&what, claim, waiter);
    buf_printf(&name, "%.*s/%.*s", CLAIM_NAME_ARG(claim->claim));
    member.what = buf_slice(&what);
    member.name = buf_slice(&name);
    bool ok = !what.failed && !name.failed && triage_add(triage, &member);
    buf_dispose(&what);
    buf_dispose(&name);
    return ok;
}

static bool add_claim(void *context, const struct who_claim *claim)
{
    bool ok = true;

    for (size_t i = 0; i < claim->waiter_count && ok; i++)
        if (claim->waiters[i].waits_for > WAITS_PLACE)
            ok = add_waiting(context, claim, &claim->waiters[i]);
    return ok;
}

/* What to do first. */
struct first {
    const struct triage_group *group;
    const struct sheet_style *style;
    FILE *file;
};

static bool print_first(void *context, const struct who_claim *claim)
{
    const struct first *first = context;
    struct block block;

    block_init(&block);
    triage_put_heading(&block.line, first->group);
    block_heading(&block);
    put_heading(&block, claim);
    add_pods(&block, claim);
    const struct advice_list advice = advice_list_first(&claim->freed_by);
    block_advice(&block, "  first", &advice);
    bool ok = block_print(&block, first->style, first->file);
    (void)fputc('\n', first->file);
    return ok;
}

static bool print_triage(const struct who_answer *answer, const struct triage *triage,
                         const struct sheet_style *style, FILE *file)
{
    struct first first = {triage->groups, style, file};

    return who_visit(answer, triage->groups->entries->subject, print_first, &first) &&
           triage_print(triage, style, file);
}

static bool print_all(const struct who_answer *answer, const struct sheet_style *style, FILE *file)
{
    struct triage triage;

    if (answer->count == 0)
        return fputs("No pod waits for a claim.\n", file) >= 0;
    triage_init(&triage);
    bool ok = who_each(answer, add_claim, &triage) && triage_sort(&triage) &&
              print_triage(answer, &triage, style, file);
    triage_dispose(&triage);
    return ok;
}

/* ---- the whole answer ---- */

static bool print_table(const struct who_answer *answer, FILE *file)
{
    struct printing printing = {file, sheet_style(file), false};
    bool ok = answer->is_all ? print_all(answer, &printing.style, file)
                             : who_each(answer, print_claim, &printing);

    if (answer->count != 0 && answer->gaps.count != 0) {
        (void)fputs(GAPS_HEADING, file);
        gaps_print(&answer->gaps, "- ", "", file);
    }
    return ok && !ferror(file);
}

bool who_print(const struct who_answer *answer, enum output_format format, FILE *file)
{
    struct fields out;

    if (format == OUTPUT_TABLE)
        return print_table(answer, file);
    fields_begin(&out, format, file);
    fields_open(&out, NULL, '{');
    who_put(&out, answer);
    return fields_end(&out);
}
