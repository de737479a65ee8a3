/* The results of a dry run: as JSON or YAML; or as a table of pods, one of warnings, and one of the
 * decisions about deferFSMount, if there are any. */
#include "extender/report/explain.h"

#include <stdio.h>
#include <stdlib.h>

#include "cache/cluster/reservation.h"
#include "extender/report/sheet.h"

struct render {
    enum output_format format;
    bool is_list;       /* of pods that wait, which have names */
    bool ok;            /* no error so far */
    size_t count;       /* results */
    size_t schedulable; /* of them */
    bool has_victims;   /* of any */
    struct sheet pods;
    struct sheet warnings; /* of policies */
    struct sheet volumes;  /* the decisions about deferFSMount */
    struct fields fields;  /* of JSON and YAML */
};

/* ---- nodes ---- */

/* How many of the nodes have a text. */
struct tally {
    struct slice text;
    size_t count;
};

/* Those of all texts, in the order in which they come. */
struct tallies {
    struct tally *items;
    size_t count;
    struct arena *arena;
    bool has_failed; /* no memory */
};

static void count_text(struct tallies *tallies, struct slice text)
{
    for (size_t i = 0; i < tallies->count; i++)
        if (slice_equal(tallies->items[i].text, text)) {
            tallies->items[i].count++;
            return;
        }
    struct tally *grown = arena_grow(tallies->arena, tallies->items, tallies->count, sizeof *grown);
    tallies->has_failed = tallies->has_failed || grown == NULL || text.ptr == NULL;
    if (tallies->has_failed)
        return;
    tallies->items = grown;
    grown[tallies->count++] = (struct tally){text, 1};
}

/* Why nodes are rejected for themselves. */
static struct tallies count_rejections(const struct explained *explained)
{
    struct tallies tallies = {.arena = explained->arena};

    for (size_t i = 0; i < explained->node_count; i++)
        if (explained->rejections[i].len != 0 &&
            !slice_is_among(explained->rejections[i], explained->verdict.reasons,
                            explained->verdict.reason_count))
            count_text(&tallies, explained->rejections[i]);
    return tallies;
}

/* What policies that only warn say of nodes. */
static struct tallies count_warnings(const struct explained *explained)
{
    struct tallies tallies = {.arena = explained->arena};
    struct slice reason;

    for (size_t i = 0; i < explained->node_count; i++)
        for (const struct node_filter *filter = NULL;
             (filter = policy_warn(&explained->verdict, filter, explained->nodes[i],
                                   explained->arena, &reason)) != NULL;)
            count_text(&tallies, reason);
    return tallies;
}

static size_t passing_nodes(const struct explained *explained)
{
    size_t count = 0;

    for (size_t i = 0; i < explained->node_count; i++)
        count += explained_code(explained, i) == CODE_SUCCESS;
    return count;
}

/* ---- the cells of a pod ---- */

/* "a; the node is odd (on 2 of 5 nodes)" */
static void put_reasons(struct render *render, struct buf *cell, const struct explained *explained)
{
    const struct tallies tallies = count_rejections(explained);

    for (size_t i = 0; i < explained->verdict.reason_count; i++)
        buf_printf(cell, "%s%.*s", i == 0 ? "" : "; ", SLICE_ARG(explained->verdict.reasons[i]));
    for (size_t i = 0; i < tallies.count; i++)
        buf_printf(cell, "%s%.*s (on %zu of %zu nodes)", cell->len == 0 ? "" : "; ",
                   SLICE_ARG(tallies.items[i].text), tallies.items[i].count, explained->node_count);
    render->ok = render->ok && !tallies.has_failed;
}

/* The verdict on the pod; if it passes by that, and on no node, the verdict on those. */
static struct slice verdict_of(const struct explained *explained)
{
    bool is_of_nodes = explained->node_count != 0 && !explained_is_schedulable(explained);

    return slice_of(
        code_text(is_of_nodes ? explained_code(explained, 0) : explained->verdict.code));
}

/* "evict db-0", "no help", or "-" for a pod that needs none. */
static void put_preemption(struct render *render, struct buf *cell,
                           const struct explained *explained)
{
    const struct verdict *verdict = &explained->on_nodes;

    if (explained_is_schedulable(explained))
        return;
    if (verdict->victim_count == 0) {
        buf_put(cell, SLICE("no help"));
        return;
    }
    render->has_victims = true;
    for (size_t i = 0; i < verdict->victim_count; i++)
        buf_printf(cell, "%s%.*s", i == 0 ? "evict " : ", ",
                   SLICE_ARG(pod_name(verdict->victims[i])));
}

/* " (missing)", " (exclusive, free)", " (exclusive, held by db-0 and db-1)", or nothing. */
static void put_claim_state(struct buf *cell, const struct explained_claim *claim)
{
    static const char *const before[] = {" (exclusive, held by ", " and "};
    size_t count = claim->holder_count;

    if (!claim->is_found)
        buf_put(cell, SLICE(" (missing)"));
    if (!claim->is_exclusive)
        return;
    for (size_t i = 0; i < count; i++)
        buf_printf(cell, "%s%.*s", before[i != 0], SLICE_ARG(pod_name(claim->holders[i])));
    if (claim->reservation != NULL)
        buf_printf(cell, "%s%.*s", before[count != 0],
                   SLICE_ARG(name_slice(claim->reservation->name)));
    buf_put(cell,
            count == 0 && claim->reservation == NULL ? SLICE(" (exclusive, free)") : SLICE(")"));
}

/* "data (exclusive, held by db-0), logs" */
static void put_claims(struct buf *cell, const struct explained *explained)
{
    for (size_t i = 0; i < explained->pod->claim_count; i++) {
        buf_put(cell, i == 0 ? SLICE("") : SLICE(", "));
        buf_put(cell, explained->claims[i].name);
        put_claim_state(cell, &explained->claims[i]);
    }
}

/* A row that begins with the names of the pod. */
static struct row begin_row(const struct explained *explained)
{
    struct row row = {.count = 0};

    row_text(&row, explained->pod->meta.ns);
    row_text(&row, explained->pod->meta.name);
    return row;
}

static void add_pod(struct render *render, const struct explained *explained)
{
    struct row row = begin_row(explained);

    row_text(&row, explained_is_schedulable(explained) ? SLICE("yes") : SLICE("no"));
    row_text(&row, verdict_of(explained));
    if (render->format == OUTPUT_WIDE) {
        buf_printf(row_cell(&row), "%zu/%zu", passing_nodes(explained), explained->node_count);
        put_claims(row_cell(&row), explained);
    }
    put_preemption(render, row_cell(&row), explained);
    put_reasons(render, row_cell(&row), explained);
    render->ok = row_end(&row, &render->pods) && render->ok;
}

/* ---- the other tables ---- */

static void add_headings(struct render *render, struct sheet *sheet, const char *const *texts)
{
    render->ok = (sheet->count != 0 || sheet_add(sheet, texts)) && render->ok;
}

/* A row for each decision about a volume of the pod. */
static void add_volumes(struct render *render, const struct explained *explained)
{
    static const char *const headings[] = {"NAMESPACE", "POD",    "VOLUME", "DEFER",
                                           "ENTRY",     "REASON", NULL};

    for (size_t i = 0; i < explained->volume_count; i++) {
        const struct explained_volume *volume = &explained->volumes[i];
        struct row row = begin_row(explained);
        add_headings(render, &render->volumes, headings);
        row_text(&row, volume->name);
        row_text(&row, volume->is_deferred ? SLICE("yes") : SLICE("no"));
        row_text(&row, volume->entry);
        row_text(&row, volume->reason);
        render->ok = row_end(&row, &render->volumes) && render->ok;
    }
}

/* count: of nodes that have the warning; 0: all, for it is about the pod. */
static void add_warning(struct render *render, const struct explained *explained, size_t count,
                        struct slice warning)
{
    static const char *const headings[] = {"NAMESPACE", "POD", "NODES", "WARNING", NULL};
    struct row row = begin_row(explained);

    add_headings(render, &render->warnings, headings);
    if (count == 0)
        row_text(&row, SLICE("all"));
    else
        buf_printf(row_cell(&row), "%zu of %zu", count, explained->node_count);
    row_text(&row, warning);
    render->ok = row_end(&row, &render->warnings) && render->ok;
}

/* A row for each warning about the pod, and for each that some nodes have: "2 of 5". */
static void add_warnings(struct render *render, const struct explained *explained)
{
    const struct tallies tallies = count_warnings(explained);

    for (size_t i = 0; i < explained->verdict.warning_count; i++)
        add_warning(render, explained, 0, explained->verdict.warnings[i].text);
    for (size_t i = 0; i < tallies.count; i++)
        add_warning(render, explained, tallies.items[i].count, tallies.items[i].text);
    render->ok = render->ok && !tallies.has_failed;
}

/* ---- all tables ---- */

static void begin_tables(struct render *render)
{
    static const char *const headings[] = {"NAMESPACE",  "POD",    "SCHEDULABLE", "VERDICT",
                                           "PREEMPTION", "REASON", NULL};
    static const char *const wide_headings[] = {"NAMESPACE",  "POD",    "SCHEDULABLE",
                                                "VERDICT",    "NODES",  "CLAIMS",
                                                "PREEMPTION", "REASON", NULL};

    add_headings(render, &render->pods, render->format == OUTPUT_WIDE ? wide_headings : headings);
}

static void print_sheet(const struct render *render, const struct sheet *sheet)
{
    struct sheet_style style = sheet_style(stdout);

    if (render->ok)
        (void)sheet_print(sheet, &style, stdout); /* render_finish looks for an error */
}

static void print_tables(const struct render *render)
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
    if (render->is_list && render->schedulable != render->count)
        (void)puts("\"claimguard why POD\" says which node lacks what, and what helps.");
    if (render->has_victims)
        (void)puts(
            "A PodDisruptionBudget may forbid an eviction: the dry run does not check them.");
    if (render->schedulable > 1)
        (void)puts("Each pod is checked alone: if several want one free claim, only one gets it.");
}

static void dispose_tables(struct render *render)
{
    sheet_dispose(&render->pods);
    sheet_dispose(&render->warnings);
    sheet_dispose(&render->volumes);
}

/* ---- all formats ---- */

static bool is_data(enum output_format format)
{
    return format == OUTPUT_JSON || format == OUTPUT_YAML;
}

struct render *render_new(enum output_format format, bool is_list)
{
    struct render *render = calloc(1, sizeof *render);

    if (render == NULL)
        return NULL;
    render->format = format;
    render->is_list = is_list;
    render->ok = true;
    if (!is_data(format)) {
        begin_tables(render);
        return render;
    }
    fields_begin(&render->fields, format, stdout);
    if (is_list)
        fields_open_results(&render->fields);
    return render;
}

bool render_put(struct render *render, const struct explained *explained)
{
    if (is_data(render->format)) {
        explained_put(&render->fields, explained);
        render->ok = !render->fields.has_failed;
    } else {
        add_pod(render, explained);
        add_warnings(render, explained);
        add_volumes(render, explained);
    }
    render->count++;
    render->schedulable += explained_is_schedulable(explained);
    return render->ok;
}

bool render_finish(struct render *render)
{
    bool ok = render->ok;

    if (is_data(render->format))
        ok = fields_end(&render->fields) && ok;
    else
        print_tables(render);
    ok = ok && fflush(stdout) == 0 && !ferror(stdout);
    render_discard(render);
    return ok;
}

void render_discard(struct render *render)
{
    dispose_tables(render);
    if (is_data(render->format))
        fields_discard(&render->fields);
    free(render);
}
