/* An answer as text. */
#include <string.h>

#include "extender/inquiry/who_internal.h"
#include "extender/inquiry/why.h"

enum { LINE_BYTES_MAX = 1 << 20 };

/* What one pod looks like: labels, and what is behind them. */
struct block {
    struct sheet sheet;
    struct buf line; /* the text of the row that is being made */
    bool has_failed;
};

static void end_row(struct block *block, const char *label)
{
    const char *const texts[] = {label, buf_text(&block->line), NULL};

    block->has_failed = block->has_failed || texts[1] == NULL || !sheet_add(&block->sheet, texts);
    buf_reset(&block->line, LINE_BYTES_MAX);
}

static bool is(const json_t *object, const char *key, const char *text)
{
    return strcmp(value_string(object, key), text) == 0;
}

/* ---- the pod ---- */

static void put_member(struct buf *line, const char *before, const json_t *object, const char *key)
{
    if (value_string(object, key)[0] != '\0')
        buf_printf(line, "%s%s", before, value_string(object, key));
}

/* "pod shop/web-1 waits for a node, priority 0, of Deployment web" */
static void put_heading(struct buf *line, const json_t *pod)
{
    static const struct {
        const char *stage, *text;
    } rows[] = {{"Scheduling", " waits for a node"},
                {"Gated", " has scheduling gates: no scheduler tries it yet"},
                {"Starting", " waits for its volumes"},
                {"Running", " has its volumes"},
                {"Finished", " has ended"}};
    const json_t *owner = json_object_get(pod, "owner");

    buf_printf(line, "pod %s/%s", value_string(pod, "namespace"), value_string(pod, "name"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (is(pod, "stage", rows[i].stage))
            buf_put(line, slice_of(rows[i].text));
    put_member(line, " on ", pod, "node");
    if (is(pod, "nodeState", "NotReady"))
        buf_put(line, SLICE(" (which is not ready)"));
    else if (is(pod, "nodeState", "Unreachable"))
        buf_put(line, SLICE(" (which does not answer)"));
    else if (is(pod, "nodeState", "Missing"))
        buf_put(line, SLICE(" (which does not exist)"));
    put_member(line, ", ", pod, "state");
    put_member(line, " since ", pod, "since");
    buf_printf(line, ", priority %lld",
               (long long)json_integer_value(json_object_get(pod, "priority")));
    put_member(line, ", of ", owner, "kind");
    put_member(line, " ", owner, "name");
}

static void add_message(struct block *block, const json_t *pod)
{
    const char *message = value_string(pod, "message");

    if (*message == '\0')
        return;
    buf_put(&block->line, slice_of(message));
    end_row(block, "  scheduler");
}

/* ---- causes ---- */

/* "ClaimInUse", and what to know at once of a cause that does not block. */
static void add_cause(struct block *block, const json_t *cause)
{
    char label[64];
    const json_t *help;
    size_t i;

    (void)snprintf(label, sizeof label, "  %s", value_string(cause, "cause"));
    if (is(cause, "effect", "Normal"))
        buf_put(&block->line, SLICE("(nothing is wrong) "));
    else if (is(cause, "effect", "Later"))
        buf_put(&block->line, SLICE("(not now, but later) "));
    put_member(&block->line, "", cause, "text");
    end_row(block, label);
    json_array_foreach (json_object_get(cause, "helps"), i, help)
        block->has_failed =
            !who_add_advice(&block->sheet, i == 0 ? "    helps" : " ", help) || block->has_failed;
}

static bool blocks_or_narrows(const json_t *pod)
{
    const json_t *cause;
    size_t i;

    json_array_foreach (json_object_get(pod, "causes"), i, cause)
        if (is(cause, "effect", "Blocks") || is(cause, "effect", "Narrows"))
            return true;
    return false;
}

static void add_causes(struct block *block, const json_t *pod)
{
    bool is_complete = json_is_true(json_object_get(pod, "complete"));
    const json_t *cause;
    size_t i;

    json_array_foreach (json_object_get(pod, "causes"), i, cause)
        add_cause(block, cause);
    if (blocks_or_narrows(pod))
        return;
    buf_put(&block->line, is_complete ? SLICE("none that has to do with its claims")
                                      : SLICE("none was found that has to do with its claims, but "
                                              "not all is known (see below)"));
    if (is(pod, "stage", "Scheduling"))
        buf_put(&block->line, value_string(pod, "message")[0] == '\0'
                                  ? SLICE("; no message of a scheduler is known")
                              : is_complete ? SLICE("; the scheduler's message has the reason")
                                            : SLICE("; the scheduler's message says more"));
    end_row(block, "  causes");
}

/* "2 of 3 pass: node-1, node-2" */
static void add_nodes(struct block *block, const json_t *nodes)
{
    long long total = json_integer_value(json_object_get(nodes, "total"));
    long long left = json_integer_value(json_object_get(nodes, "left"));
    const json_t *names = json_object_get(nodes, "names"), *name;

    long long closed = json_integer_value(json_object_get(nodes, "leftClosed"));
    size_t i;

    if (left == total)
        return;
    buf_printf(&block->line, "%lld of %lld can have its volumes", left, total);
    json_array_foreach (names, i, name)
        buf_printf(&block->line, "%s%s", i == 0 ? ": " : ", ", json_string_value(name));
    if (left > (long long)json_array_size(names))
        buf_printf(&block->line, " and %lld more", left - (long long)json_array_size(names));
    if (closed != 0)
        buf_printf(&block->line, "; of these, %lld cordoned or not ready", closed);
    end_row(block, "  nodes");
}

static bool print_pod(const json_t *pod, const struct sheet_style *style, FILE *file)
{
    struct block block = {.has_failed = false};
    struct sheet heading = {NULL, 0};

    buf_init(&block.line, LINE_BYTES_MAX);
    put_heading(&block.line, pod);
    const char *const texts[] = {buf_text(&block.line), NULL};
    block.has_failed = texts[0] == NULL || !sheet_add(&heading, texts);
    buf_reset(&block.line, LINE_BYTES_MAX);
    add_message(&block, pod);
    add_causes(&block, pod);
    add_nodes(&block, json_object_get(pod, "nodes"));
    bool ok = !block.has_failed && sheet_print(&heading, style, file) &&
              sheet_print(&block.sheet, style, file);
    sheet_dispose(&heading);
    sheet_dispose(&block.sheet);
    buf_dispose(&block.line);
    return ok;
}

bool why_print(const json_t *answer, FILE *file)
{
    const struct sheet_style style = sheet_style(file);
    const json_t *pods = json_object_get(answer, "pods");
    json_t *item;
    size_t i;
    bool ok = true;

    json_array_foreach (pods, i, item) {
        (void)fputs(i == 0 ? "" : "\n", file);
        ok = ok && print_pod(item, &style, file);
    }
    if (json_array_size(pods) == 0)
        return ok;
    (void)fputs("\nNot known from this input:\n", file);
    json_array_foreach (json_object_get(answer, "notKnown"), i, item)
        (void)fprintf(file, "- %s\n", json_string_value(item));
    return ok && !ferror(file);
}
