/* Results as tables: one of pods; one of warnings, and one of the decisions about deferFSMount, if
 * there are any. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/report/render_internal.h"

static const char *const headings[] = {
    "NAMESPACE", "POD", "SCHEDULABLE", "VERDICT", "PREEMPTION", "REASON", NULL,
};
static const char *const volume_headings[] = {
    "NAMESPACE", "POD", "VOLUME", "DEFER", "ENTRY", "REASON", NULL,
};
static const char *const warning_headings[] = {
    "NAMESPACE", "POD", "NODES", "WARNING", NULL,
};
static const char *const wide_headings[] = {
    "NAMESPACE", "POD", "SCHEDULABLE", "VERDICT", "NODES", "CLAIMS", "PREEMPTION", "REASON", NULL,
};

static const char *string_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

static size_t passing_nodes(const json_t *nodes)
{
    size_t count = 0, i;
    json_t *node;

    json_array_foreach (nodes, i, node)
        count += strcmp(string_at(node, "code"), "Success") == 0;
    return count;
}

/* Frees text, and returns text, separator and more as one; no separator after an empty text. NULL
 * without memory, or if a text is NULL. Ownership: the caller frees the result. */
static char *append_text(char *text, const char *separator, const char *more)
{
    char *joined = NULL;

    if (text == NULL || more == NULL ||
        asprintf(&joined, "%s%s%s", text, *text == '\0' ? "" : separator, more) < 0)
        joined = NULL;
    free(text);
    return joined;
}

/* "-" for an empty cell. */
static char *or_dash(char *cell)
{
    return append_text(cell, "", cell != NULL && *cell == '\0' ? "-" : "");
}

/* How many of the nodes have each text of a list of theirs. NULL without memory. */
static json_t *count_texts(const json_t *nodes, const char *key)
{
    json_t *counts = json_object(), *node, *item;
    size_t i, j;

    json_array_foreach (nodes, i, node)
        json_array_foreach (json_object_get(node, key), j, item) {
            const char *text = json_string_value(item);
            json_int_t count = json_integer_value(json_object_get(counts, text));
            if (json_object_set_new(counts, text, json_integer(count + 1)) != 0) {
                json_decref(counts);
                return NULL;
            }
        }
    return counts;
}

/* Appends the reasons of nodes that are not the pod's own: "; the node is odd (on 2 of 5 nodes)".
 */
static char *append_node_reasons(char *cell, const json_t *result)
{
    const json_t *nodes = json_object_get(result, "nodes"), *own;
    json_t *counts = count_texts(nodes, "reasons"), *count, *reason;
    const char *text;
    char share[64];
    size_t i;

    own = json_object_get(json_object_get(result, "preFilter"), "reasons");
    json_array_foreach (own, i, reason)
        (void)json_object_del(counts, json_string_value(reason));
    if (counts == NULL) {
        free(cell);
        return NULL;
    }
    json_object_foreach (counts, text, count) {
        (void)snprintf(share, sizeof share, " (on %lld of %zu nodes)",
                       (long long)json_integer_value(count), json_array_size(nodes));
        cell = append_text(append_text(cell, "; ", text), "", share);
    }
    json_decref(counts);
    return cell;
}

static char *reasons_cell(const json_t *result)
{
    char *cell = strdup("");
    json_t *reason;
    size_t i;

    json_array_foreach (json_object_get(json_object_get(result, "preFilter"), "reasons"), i, reason)
        cell = append_text(cell, "; ", json_string_value(reason));
    return or_dash(append_node_reasons(cell, result));
}

/* The verdict on the pod; if it passes by that, and on no node, the verdict on those. */
static const char *verdict_of(const json_t *result)
{
    const json_t *first = json_array_get(json_object_get(result, "nodes"), 0);

    if (first != NULL && !json_is_true(json_object_get(result, "schedulable")))
        return string_at(first, "code");
    return string_at(json_object_get(result, "preFilter"), "code");
}

/* "evict db-0", "no help", or "-" for a pod that needs none. */
static char *preemption_cell(struct render *render, const json_t *result)
{
    const json_t *preemption = json_object_get(result, "preemption");
    char *cell = strdup("");
    json_t *victim;
    size_t i;

    if (json_is_true(json_object_get(result, "schedulable")))
        return append_text(cell, "", "-");
    if (!json_is_true(json_object_get(preemption, "helps")))
        return append_text(cell, "", "no help");
    render->has_victims = true;
    json_array_foreach (json_object_get(preemption, "victims"), i, victim)
        cell = append_text(cell, ", ", string_at(victim, "name"));
    char *named = NULL;
    if (cell != NULL && asprintf(&named, "evict %s", cell) < 0)
        named = NULL;
    free(cell);
    return named;
}

/* Appends " (missing)", " (exclusive, free)", " (exclusive, held by db-0 and db-1)", or nothing. */
static char *append_claim_state(char *cell, const json_t *claim)
{
    const json_t *holders = json_object_get(claim, "heldBy");
    json_t *holder;
    size_t i;

    if (!json_is_true(json_object_get(claim, "found")))
        return append_text(cell, " ", "(missing)");
    if (!json_is_true(json_object_get(claim, "exclusive")))
        return cell;
    if (json_array_size(holders) == 0)
        return append_text(cell, " ", "(exclusive, free)");
    json_array_foreach (holders, i, holder)
        cell = append_text(cell, i == 0 ? " (exclusive, held by " : " and ",
                           string_at(holder, "name"));
    return append_text(cell, "", ")");
}

/* "data (exclusive, held by db-0), logs" */
static char *claims_cell(const json_t *result)
{
    char *cell = strdup("");
    json_t *claim;
    size_t i;

    json_array_foreach (json_object_get(result, "claims"), i, claim) {
        cell = append_text(cell, ", ", string_at(claim, "name"));
        cell = append_claim_state(cell, claim);
    }
    return or_dash(cell);
}

static char *nodes_cell(const json_t *result)
{
    const json_t *nodes = json_object_get(result, "nodes");
    char *cell = NULL;

    if (asprintf(&cell, "%zu/%zu", passing_nodes(nodes), json_array_size(nodes)) < 0)
        return NULL;
    return cell;
}

static void add_texts(struct render *render, struct sheet *sheet, const char *const *texts)
{
    render->ok = sheet_add(sheet, texts) && render->ok;
}

/* A row for each decision about a volume of the pod. */
static void put_volumes(struct render *render, const json_t *result)
{
    const json_t *pod = json_object_get(result, "pod");
    json_t *decision;
    size_t i;

    json_array_foreach (json_object_get(result, "deferFSMount"), i, decision) {
        const char *entry = string_at(decision, "entry");
        const char *const texts[] = {
            string_at(pod, "namespace"),
            string_at(pod, "name"),
            string_at(decision, "volume"),
            json_is_true(json_object_get(decision, "defer")) ? "yes" : "no",
            entry[0] == '\0' ? "-" : entry,
            string_at(decision, "reason"),
            NULL,
        };
        if (render->volumes.count == 0)
            add_texts(render, &render->volumes, volume_headings);
        add_texts(render, &render->volumes, texts);
    }
}

static void put_warning(struct render *render, const json_t *result, const char *nodes,
                        const char *warning)
{
    const json_t *pod = json_object_get(result, "pod");
    const char *const texts[] = {string_at(pod, "namespace"), string_at(pod, "name"), nodes,
                                 warning, NULL};

    if (render->warnings.count == 0)
        add_texts(render, &render->warnings, warning_headings);
    add_texts(render, &render->warnings, texts);
}

/* A row for each warning about the pod, and for each that some nodes have: "2 of 5". */
static void put_warnings(struct render *render, const json_t *result)
{
    const json_t *nodes = json_object_get(result, "nodes");
    json_t *counts = count_texts(nodes, "warnings"), *value;
    const char *text;
    char share[64];
    size_t i;

    render->ok = render->ok && counts != NULL;
    json_array_foreach (json_object_get(result, "warnings"), i, value)
        put_warning(render, result, "all", json_string_value(value));
    json_object_foreach (counts, text, value) {
        (void)snprintf(share, sizeof share, "%lld of %zu", (long long)json_integer_value(value),
                       json_array_size(nodes));
        put_warning(render, result, share, text);
    }
    json_decref(counts);
}

void render_table_begin(struct render *render)
{
    add_texts(render, &render->pods, render->format == OUTPUT_WIDE ? wide_headings : headings);
}

void render_table_put(struct render *render, const json_t *result)
{
    const json_t *pod = json_object_get(result, "pod");
    char *cells[SHEET_COLUMNS_MAX];
    size_t i = 0;

    cells[i++] = strdup(string_at(pod, "namespace"));
    cells[i++] = strdup(string_at(pod, "name"));
    cells[i++] = strdup(json_is_true(json_object_get(result, "schedulable")) ? "yes" : "no");
    cells[i++] = strdup(verdict_of(result));
    if (render->format == OUTPUT_WIDE) {
        cells[i++] = nodes_cell(result);
        cells[i++] = claims_cell(result);
    }
    cells[i++] = preemption_cell(render, result);
    cells[i++] = reasons_cell(result);
    render->ok = sheet_add_owned(&render->pods, cells, i) && render->ok;
    put_warnings(render, result);
    put_volumes(render, result);
}

static void print_sheet(const struct render *render, const struct sheet *sheet)
{
    struct sheet_style style = sheet_style(stdout);

    if (render->ok)
        (void)sheet_print(sheet, &style, stdout); /* render_finish looks for an error */
}

void render_table_finish(const struct render *render)
{
    print_sheet(render, &render->pods);
    if (render->warnings.count != 0)
        (void)puts("\nWarnings of policies:\n");
    print_sheet(render, &render->warnings);
    if (render->volumes.count != 0)
        (void)puts("\nDecisions about deferFSMount:\n");
    print_sheet(render, &render->volumes);
    (void)printf("\n%zu %s: %zu schedulable, %zu not. Checked by claimguard's policies,\n"
                 "not by the scheduler's own (resources, taints, affinity).\n",
                 render->count, render->count == 1 ? "pod" : "pods", render->schedulable,
                 render->count - render->schedulable);
    if (render->has_victims)
        (void)puts(
            "A PodDisruptionBudget may forbid an eviction: the dry run does not check them.");
    if (render->schedulable > 1)
        (void)puts("Each pod is checked alone: if several want one free claim, only one gets it.");
}

void render_table_dispose(struct render *render)
{
    sheet_dispose(&render->pods);
    sheet_dispose(&render->warnings);
    sheet_dispose(&render->volumes);
}
