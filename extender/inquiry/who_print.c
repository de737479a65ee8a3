/* An answer as text. */
#include <string.h>

#include "extender/inquiry/who_internal.h"
#include "extender/report/sheet.h"
#include "extender/report/value.h"

enum { LINE_BYTES_MAX = 1 << 20 };

/* What one claim looks like: labels, and what is behind them. */
struct block {
    struct sheet sheet;
    const char *last; /* label */
    struct buf line;  /* the text of the row that is being made */
    bool has_failed;
};

/* Adds "before", and the member's text, unless it is empty. */
static void put_member(struct buf *line, const char *before, const json_t *object, const char *key)
{
    const char *text = value_string(object, key);

    if (*text == '\0')
        return;
    buf_put(line, slice_of(before));
    buf_put(line, slice_of(text));
}

/* Ends the row. A label that is the same as before is not repeated. */
static void end_row(struct block *block, const char *label)
{
    const char *text = buf_text(&block->line);
    bool is_same = block->last != NULL && strcmp(label, block->last) == 0;
    const char *const texts[] = {is_same ? " " : label, text, NULL};

    block->has_failed = block->has_failed || text == NULL || !sheet_add(&block->sheet, texts);
    block->last = label;
    buf_reset(&block->line, LINE_BYTES_MAX);
}

static void add_row(struct block *block, const char *label, const char *text)
{
    buf_put(&block->line, slice_of(text));
    end_row(block, label);
}

/* "a, b" */
static void put_list(struct buf *line, const json_t *list)
{
    json_t *item;
    size_t i;

    json_array_foreach (list, i, item) {
        buf_put(line, i == 0 ? SLICE("") : SLICE(", "));
        buf_put(line, slice_of(json_string_value(item)));
    }
}

/* "pod shop/db-0", and what holders and waiters have in common. */
static void put_pod(struct buf *line, const json_t *pod)
{
    const json_t *owner = json_object_get(pod, "owner");

    put_member(line, "pod ", pod, "namespace");
    put_member(line, "/", pod, "name");
    put_member(line, " on ", pod, "node");
    put_member(line, " since ", pod, "since");
    put_member(line, ", ", pod, "state");
    long long priority = json_integer_value(json_object_get(pod, "priority"));
    if (priority != 0)
        buf_printf(line, ", priority %lld", priority);
    put_member(line, ", of ", owner, "kind");
    put_member(line, " ", owner, "name");
}

static void put_node_state(struct buf *line, const json_t *object)
{
    const char *state = value_string(object, "nodeState");

    if (strcmp(state, "NotReady") == 0)
        buf_put(line, SLICE("; the node is not ready"));
    else if (strcmp(state, "Unreachable") == 0)
        buf_put(line, SLICE("; the node does not answer"));
    else if (strcmp(state, "Missing") == 0)
        buf_put(line, SLICE("; the node does not exist"));
}

static void add_holder(struct block *block, const json_t *holder)
{
    json_t *budget;
    size_t i;

    put_pod(&block->line, holder);
    put_node_state(&block->line, holder);
    end_row(block, "  held by");
    json_array_foreach (json_object_get(holder, "budgets"), i, budget) {
        put_member(&block->line, "PodDisruptionBudget ", budget, "name");
        buf_printf(&block->line, " allows %lld evictions",
                   (long long)json_integer_value(json_object_get(budget, "disruptionsAllowed")));
        end_row(block, "  held by");
    }
    long long left_out = json_integer_value(json_object_get(holder, "budgetsLeftOut"));
    if (left_out != 0) {
        buf_printf(&block->line, "and %lld more PodDisruptionBudgets", left_out);
        end_row(block, "  held by");
    }
}

static void add_waiter(struct block *block, const json_t *waiter)
{
    put_pod(&block->line, waiter);
    put_member(&block->line, ", nominated to ", waiter, "nominatedNode");
    if (json_is_true(json_object_get(waiter, "gated")))
        buf_put(&block->line, SLICE(", has scheduling gates"));
    if (strcmp(value_string(waiter, "waitsFor"), "Other") == 0)
        buf_put(&block->line, SLICE(", not for this claim"));
    put_member(&block->line, ": ", waiter, "message");
    end_row(block, "  waiting");
}

static void add_pods(struct block *block, const json_t *claim)
{
    json_t *pod;
    size_t i;

    if (json_array_size(json_object_get(claim, "heldBy")) == 0)
        add_row(block, "  held by", "no pod");
    json_array_foreach (json_object_get(claim, "heldBy"), i, pod)
        add_holder(block, pod);
    json_array_foreach (json_object_get(claim, "waiting"), i, pod)
        add_waiter(block, pod);
}

static void add_attachments(struct block *block, const json_t *claim)
{
    json_t *attachment;
    size_t i;

    json_array_foreach (json_object_get(claim, "attachments"), i, attachment) {
        put_member(&block->line, "to ", attachment, "node");
        if (json_is_true(json_object_get(attachment, "detaching")))
            buf_put(&block->line, SLICE(", being detached"));
        else if (!json_is_true(json_object_get(attachment, "attached")))
            buf_put(&block->line, SLICE(", not yet"));
        put_node_state(&block->line, attachment);
        put_member(&block->line, ": ", attachment, "attachError");
        end_row(block, "  attached");
    }
}

static void add_lock(struct block *block, const json_t *lock)
{
    if (lock == NULL)
        return;
    put_member(&block->line, "pod ", lock, "name");
    if (!json_is_true(json_object_get(lock, "found")))
        buf_put(&block->line, SLICE(", which is not there"));
    end_row(block, "  locked for");
}

static void add_reservation(struct block *block, const json_t *reserved)
{
    if (reserved == NULL)
        return;
    put_member(&block->line, "pod ", reserved, "namespace");
    put_member(&block->line, "/", reserved, "name");
    if (json_is_true(json_object_get(reserved, "binding")))
        buf_put(&block->line, SLICE(", which is being bound"));
    end_row(block, "  reserved for");
}

static void add_notes(struct block *block, const json_t *claim)
{
    const char *use = value_string(claim, "usableBy");

    if (json_array_size(json_object_get(claim, "finalizers")) != 0) {
        put_list(&block->line, json_object_get(claim, "finalizers"));
        end_row(block, "  finalizers");
    }
    if (json_is_true(json_object_get(claim, "violated"))) {
        buf_printf(&block->line, "it is for one pod, and %zu pods hold it",
                   json_array_size(json_object_get(claim, "heldBy")));
        end_row(block, "  note");
    } else if (strcmp(use, "OneNode") == 0) {
        add_row(block, "  note", "pods on one node may use it together");
    } else if (strcmp(use, "Any") == 0 && json_is_true(json_object_get(claim, "found"))) {
        add_row(block, "  note", "any number of pods may use it");
    }
    if (json_is_true(json_object_get(claim, "free")) && strcmp(use, "Any") != 0)
        add_row(block, "  note", "it is free: no pod has it");
}

/* "ReadWriteOncePod, Bound, volume pv-1" */
static void put_heading(struct buf *line, const json_t *claim)
{
    if (!json_is_true(json_object_get(claim, "found"))) {
        buf_put(line, SLICE("does not exist"));
        return;
    }
    size_t before = line->len;
    put_list(line, json_object_get(claim, "accessModes"));
    put_member(line, line->len == before ? "" : ", ", claim, "phase");
    put_member(line, line->len == before ? "volume " : ", volume ", claim, "volume");
    if (json_is_true(json_object_get(claim, "deleting")))
        buf_put(line, line->len == before ? SLICE("being deleted") : SLICE(", being deleted"));
}

static void put_whole_heading(struct block *block, const json_t *claim)
{
    struct buf inner;

    put_member(&block->line, "claim ", claim, "namespace");
    put_member(&block->line, "/", claim, "name");
    buf_init(&inner, LINE_BYTES_MAX);
    put_heading(&inner, claim);
    const char *text = buf_text(&inner);
    if (text != NULL && *text != '\0')
        buf_printf(&block->line, " (%s)", text);
    block->has_failed = block->has_failed || text == NULL;
    buf_dispose(&inner);
}

static bool print_block(const json_t *claim, const struct sheet_style *style, FILE *file)
{
    struct block block = {.last = NULL};
    json_t *advice;
    size_t i;

    buf_init(&block.line, LINE_BYTES_MAX);
    put_whole_heading(&block, claim);
    struct sheet heading = {NULL, 0};
    const char *const texts[] = {buf_text(&block.line), NULL};
    block.has_failed = block.has_failed || texts[0] == NULL || !sheet_add(&heading, texts);
    buf_reset(&block.line, LINE_BYTES_MAX);
    add_pods(&block, claim);
    add_attachments(&block, claim);
    add_lock(&block, json_object_get(claim, "lock"));
    add_reservation(&block, json_object_get(claim, "reservedFor"));
    add_notes(&block, claim);
    json_array_foreach (json_object_get(claim, "freedBy"), i, advice)
        block.has_failed =
            !who_add_advice(&block.sheet, i == 0 ? "  freed by" : " ", advice) || block.has_failed;
    bool ok = !block.has_failed && sheet_print(&heading, style, file) &&
              sheet_print(&block.sheet, style, file);
    sheet_dispose(&heading);
    sheet_dispose(&block.sheet);
    buf_dispose(&block.line);
    return ok;
}

/* A row without a label. */
static bool add_line(struct sheet *sheet, const char *label, bool is_whole, const char *before,
                     const char *text, const char *after)
{
    struct buf line;

    buf_init(&line, LINE_BYTES_MAX);
    buf_printf(&line, "%s%s%s", before, text, after);
    const char *const texts[] = {label, buf_text(&line), NULL};
    bool ok =
        texts[1] != NULL && (is_whole ? sheet_add_whole(sheet, texts) : sheet_add(sheet, texts));
    buf_dispose(&line);
    return ok;
}

bool who_add_advice(struct sheet *sheet, const char *label, const json_t *advice)
{
    const char *command = value_string(advice, "command"), *undo = value_string(advice, "undo");
    const char *warning = value_string(advice, "warning"), *back = value_string(advice, "back");
    bool has_command = *command != '\0', has_undo = has_command && *undo != '\0';

    return add_line(sheet, label, false, "", value_string(advice, "text"),
                    has_command ? ":" : "") &&
           (*warning == '\0' || add_line(sheet, " ", false, "WARNING: ", warning, "")) &&
           (!has_command || add_line(sheet, " ", true, "  ", command, "")) &&
           (!has_command || *back == '\0' ||
            add_line(sheet, " ", false, "To go back: ", back, has_undo ? ":" : "")) &&
           (!has_undo || add_line(sheet, " ", true, "  ", undo, ""));
}

bool who_print(const json_t *answer, bool is_all, FILE *file)
{
    const json_t *claims = json_object_get(answer, "claims");
    const struct sheet_style style = sheet_style(file);
    json_t *item;
    size_t i;
    bool ok = !is_all || who_print_all(claims, &style, file);

    if (!is_all)
        json_array_foreach (claims, i, item) {
            (void)fputs(i == 0 ? "" : "\n", file);
            ok = ok && print_block(item, &style, file);
        }
    if (json_array_size(claims) == 0 || json_array_size(json_object_get(answer, "notKnown")) == 0)
        return ok;
    (void)fputs("\nNot known from this input:\n", file);
    json_array_foreach (json_object_get(answer, "notKnown"), i, item)
        (void)fprintf(file, "- %s\n", json_string_value(item));
    return ok && !ferror(file);
}
