#include "extender/commands/who/triage.h"

#include <stdlib.h>

enum { TRIAGE_BYTES_MAX = 1 << 30 };

void triage_init(struct triage *triage)
{
    *triage = (struct triage){.count = 0};
    arena_init(&triage->arena, TRIAGE_BYTES_MAX);
}

void triage_dispose(struct triage *triage)
{
    arena_dispose(&triage->arena);
}

/* ---- members ---- */

static bool copy(struct triage *triage, struct slice *text)
{
    *text = arena_copy(&triage->arena, *text);
    return text->ptr != NULL;
}

bool triage_add(struct triage *triage, const struct triage_member *member)
{
    struct triage_entry *grown =
        arena_grow(&triage->arena, triage->entries, triage->count, sizeof *grown);
    const struct who_pod *pod = member->pod;
    bool is_alone = pod->owner.name.len == 0;

    if (grown == NULL)
        return false;
    triage->entries = grown;
    struct triage_entry *entry = &grown[triage->count++];
    *entry = (struct triage_entry){
        .cause = member->cause,
        .what = member->what,
        .name = member->name,
        .since = pod->deleted.len != 0 ? pod->deleted : pod->since,
        .node = pod_node(pod->pod),
        .owner_ns = name_text(pod->pod->ns),
        .owner_kind = is_alone ? SLICE("pod") : pod->owner.kind,
        .owner = is_alone ? pod_name(pod->pod) : pod->owner.name,
        .subject = member->subject,
        .is_last = member->is_last,
    };
    return copy(triage, &entry->cause) && copy(triage, &entry->what) &&
           copy(triage, &entry->name) && copy(triage, &entry->since) &&
           copy(triage, &entry->node) && copy(triage, &entry->owner_ns) &&
           copy(triage, &entry->owner_kind) && copy(triage, &entry->owner);
}

/* ---- groups ---- */

static bool is_of_node(const struct triage_entry *entry)
{
    return entry->what.len > 5 && memcmp(entry->what.ptr, "node ", 5) == 0;
}

/* Whatever pods wait for on a node that is lost, it is the node. */
static int by_group(const struct triage_entry *a, const struct triage_entry *b)
{
    int order =
        slice_compare(is_of_node(a) ? SLICE("") : a->cause, is_of_node(b) ? SLICE("") : b->cause);

    return order != 0 ? order : slice_compare(a->what, b->what);
}

static int by_owner(const void *a, const void *b)
{
    const struct triage_entry *x = a, *y = b;
    int order = by_group(x, y);

    order = order != 0 ? order : slice_compare(x->owner_kind, y->owner_kind);
    order = order != 0 ? order : slice_compare(x->owner_ns, y->owner_ns);
    return order != 0 ? order : slice_compare(x->owner, y->owner);
}

static int by_node(const void *a, const void *b)
{
    int order = by_group(a, b);

    return order != 0 ? order
                      : slice_compare(((const struct triage_entry *)a)->node,
                                      ((const struct triage_entry *)b)->node);
}

static int by_name(const void *a, const void *b)
{
    int order = by_group(a, b);

    return order != 0 ? order
                      : slice_compare(((const struct triage_entry *)a)->name,
                                      ((const struct triage_entry *)b)->name);
}

/* The longest wait first; a time that is not known last. */
static int compare_waits(struct slice x, struct slice y)
{
    if ((x.len == 0) != (y.len == 0))
        return x.len == 0 ? 1 : -1;
    return slice_compare(x, y);
}

static int by_wait(const void *a, const void *b)
{
    const struct triage_entry *x = a, *y = b;
    int order = by_group(x, y);

    order = order != 0 ? order : compare_waits(x->since, y->since);
    return order != 0 ? order : by_owner(x, y);
}

/* How many different ones there are in each group, by an order that puts the same side by side. */
static void count_different(struct triage *triage, int (*order)(const void *, const void *),
                            size_t offset)
{
    const struct triage_entry *last = NULL;
    size_t group = 0;

    qsort(triage->entries, triage->count, sizeof *triage->entries, order);
    for (size_t i = 0; i < triage->count; i++) {
        const struct triage_entry *entry = &triage->entries[i];
        bool is_new = last != NULL && by_group(last, entry) != 0;
        group += is_new ? 1 : 0;
        if (last == NULL || order(last, entry) != 0)
            ++*(size_t *)((char *)&triage->groups[group] + offset);
        last = entry;
    }
}

static void mark_mixed(struct triage_group *group)
{
    for (size_t i = 1; i < group->pods; i++)
        if (!slice_equal(group->entries[i].owner_kind, group->entries[0].owner_kind))
            group->is_mixed = true;
}

/* The most pods first; then the longest wait. */
static int compare_groups(const void *a, const void *b)
{
    const struct triage_group *x = a, *y = b;

    if (x->entries->is_last != y->entries->is_last)
        return x->entries->is_last ? 1 : -1;
    if (x->pods != y->pods)
        return x->pods > y->pods ? -1 : 1;
    int order = compare_waits(x->entries->since, y->entries->since);
    return order != 0 ? order : by_group(x->entries, y->entries);
}

bool triage_sort(struct triage *triage)
{
    triage->groups = arena_alloc(&triage->arena, (triage->count + 1) * sizeof *triage->groups);
    if (triage->groups == NULL)
        return false;
    memset(triage->groups, 0, (triage->count + 1) * sizeof *triage->groups);
    if (triage->count == 0)
        return true;
    count_different(triage, by_owner, offsetof(struct triage_group, owners));
    count_different(triage, by_node, offsetof(struct triage_group, nodes));
    count_different(triage, by_name, offsetof(struct triage_group, names));
    qsort(triage->entries, triage->count, sizeof *triage->entries, by_wait);
    for (size_t i = 0; i < triage->count; i++) {
        if (i == 0 || by_group(&triage->entries[i - 1], &triage->entries[i]) != 0)
            triage->groups[triage->group_count++].entries = &triage->entries[i];
        triage->groups[triage->group_count - 1].pods++;
    }
    for (size_t i = 0; i < triage->group_count; i++)
        mark_mixed(&triage->groups[i]);
    qsort(triage->groups, triage->group_count, sizeof *triage->groups, compare_groups);
    return true;
}

/* ---- for programs and people ---- */

/* "Deployment shop/web"; "12 Deployments, such as shop/web" */
static void put_owners(struct buf *line, const struct triage_group *group)
{
    const struct triage_entry *first = group->entries;

    if (group->owners == 1)
        buf_printf(line, "%.*s ", SLICE_ARG(first->owner_kind));
    else if (group->is_mixed)
        buf_printf(line, "%zu workloads, such as %.*s ", group->owners,
                   SLICE_ARG(first->owner_kind));
    else
        buf_printf(line, "%zu %.*ss, such as ", group->owners, SLICE_ARG(first->owner_kind));
    buf_printf(line, "%.*s/%.*s", SLICE_ARG(first->owner_ns), SLICE_ARG(first->owner));
}

/* "driver disk.example.com on 3 nodes"; only of pods that have nodes is it said on how many. */
static void put_what(struct buf *line, const struct triage_group *group)
{
    buf_put(line, group->entries->what);
    if (group->nodes > 1 && !slice_has(group->entries->what, SLICE("node ")))
        buf_printf(line, "%son %zu nodes", line->len == 0 ? "" : " ", group->nodes);
}

void triage_put_heading(struct buf *line, const struct triage_group *group)
{
    const struct triage_entry *first = group->entries;
    bool are_alone = !group->is_mixed && slice_equal(first->owner_kind, SLICE("pod"));

    if (!are_alone)
        buf_printf(line, "%zu pod%s of ", group->pods, group->pods == 1 ? "" : "s");
    put_owners(line, group);
    buf_printf(line, "%s wait%s", group->owners == 1 ? "" : ",", group->pods == 1 ? "s" : "");
    if (first->what.len != 0) {
        buf_put(line, SLICE(" for "));
        put_what(line, group);
    }
    buf_printf(line, " (%.*s)", SLICE_ARG(first->cause));
    if (first->since.len != 0)
        buf_printf(line, "%s since %.*s", group->pods == 1 ? "" : ", the longest",
                   SLICE_ARG(first->since));
}

void triage_put(struct fields *out, const struct triage *triage)
{
    fields_open(out, "groups", '[');
    for (size_t i = 0; i < triage->group_count; i++) {
        const struct triage_group *group = &triage->groups[i];
        fields_open(out, NULL, '{');
        fields_text(out, "cause", group->entries->cause);
        fields_text(out, "what", group->entries->what);
        fields_number(out, "pods", (int64_t)group->pods);
        fields_number(out, "owners", (int64_t)group->owners);
        fields_text_if(out, "since", group->entries->since);
        fields_close(out);
    }
    fields_close(out);
}

static bool add_group(struct sheet *sheet, const struct triage_group *group)
{
    const struct triage_entry *first = group->entries;
    struct row row = {.count = 0};

    buf_printf(row_cell(&row), "%zu", group->pods);
    row_text(&row, first->since);
    row_text(&row, first->cause);
    put_what(row_cell(&row), group);
    if (first->name.len != 0) {
        struct buf *cell = row_cell(&row);
        buf_put(cell, first->name);
        if (group->names > 1)
            buf_printf(cell, " and %zu more", group->names - 1);
    }
    put_owners(row_cell(&row), group);
    return row_end(&row, sheet);
}

bool triage_print(const struct triage *triage, const struct sheet_style *style, FILE *file)
{
    static const char *const plain[] = {"PODS", "SINCE", "CAUSE", "WHAT", "OF", NULL};
    static const char *const named[] = {"PODS", "SINCE", "CAUSE", "WHAT", "CLAIM", "OF", NULL};
    struct sheet sheet = {NULL, 0};
    bool has_names = triage->count != 0 && triage->entries->name.len != 0;
    bool ok = sheet_add(&sheet, has_names ? named : plain);

    for (size_t i = 0; i < triage->group_count && ok; i++)
        ok = add_group(&sheet, &triage->groups[i]);
    ok = ok && sheet_print(&sheet, style, file);
    sheet_dispose(&sheet);
    return ok;
}
