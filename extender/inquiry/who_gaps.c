/* What the input does not have, of what matters to an answer. */
#include <string.h>

#include "extender/inquiry/who_internal.h"

enum { NOTES_BYTES_MAX = 64 * 1024, WORKLOADS_NAMED_MAX = 5 };

/* What the answer would have to be read from. */
struct needs {
    bool kinds[KIND_COUNT];
    bool reservations, owners;
};

static bool is_running(const json_t *holder)
{
    return strcmp(value_string(holder, "state"), "Running") == 0;
}

/* An attachment only says something if no pod runs with the volume. */
static void add_needs(struct needs *needs, const json_t *claim)
{
    const json_t *holders = json_object_get(claim, "heldBy");
    const char *use = value_string(claim, "usableBy");
    bool is_held = json_array_size(holders) != 0, is_bound = *value_string(claim, "volume") != '\0';
    bool is_shared = strcmp(use, "Any") == 0, is_unknown = strcmp(use, "Unknown") == 0;

    if (is_bound && (is_unknown || json_is_true(json_object_get(claim, "deleting"))))
        needs->kinds[KIND_VOLUME] = true;
    if (is_shared)
        return;
    if (is_bound && !is_running(json_array_get(holders, 0)))
        needs->kinds[KIND_VOLUME_ATTACHMENT] = true;
    if (is_held || json_array_size(json_object_get(claim, "attachments")) != 0)
        needs->kinds[KIND_NODE] = true;
    if (is_held) {
        needs->kinds[KIND_POD_DISRUPTION_BUDGET] = true;
        needs->owners = true;
    } else if (json_array_size(json_object_get(claim, "waiting")) != 0) {
        needs->reservations = needs->reservations || strcmp(use, "OnePod") == 0;
    }
}

static int list_kinds(json_t *list, const struct inquiry *inquiry, const struct needs *needs)
{
    struct arena arena;
    int rc = 0;

    arena_init(&arena, NOTES_BYTES_MAX);
    for (int kind = 0; kind < KIND_COUNT && rc == 0; kind++) {
        if (!needs->kinds[kind])
            continue;
        struct slice gap = inquiry_gap(inquiry, (enum kind)kind, &arena);
        if (gap.ptr == NULL || gap.len != 0)
            rc = gap.ptr == NULL ? -1 : json_array_append_new(list, value_text(gap));
    }
    arena_dispose(&arena);
    return rc;
}

/* ---- workloads ---- */

struct naming_workloads {
    json_t *list;
    size_t count;
};

static bool name_workload(void *context, struct slice key, enum workload_state state)
{
    static const char *const reasons[] = {
        [WORKLOAD_NOT_THERE] = "the snapshot does not have it",
        [WORKLOAD_FORBIDDEN] = "these credentials may not read it",
        [WORKLOAD_UNREADABLE] = "it was not read",
    };
    static const char *const list_reasons[] = {
        [WORKLOAD_NOT_THERE] = "the snapshot has none",
        [WORKLOAD_FORBIDDEN] = "these credentials may not list them",
        [WORKLOAD_UNREADABLE] = "they were not read",
    };
    struct naming_workloads *naming = context;
    const char *space = memchr(key.ptr, ' ', key.len);
    int kind_len = (int)(space - key.ptr), ns_len = (int)key.len - kind_len - 2;
    bool is_list = key.ptr[key.len - 1] == '/'; /* of a namespace, without a name */

    if (naming->count++ >= WORKLOADS_NAMED_MAX)
        return true;
    return json_array_append_new(
               naming->list, is_list
                                 ? json_sprintf("%.*ss of namespace %.*s: %s", kind_len, key.ptr,
                                                ns_len, space + 1, list_reasons[state])
                                 : json_sprintf("%.*s: %s", SLICE_ARG(key), reasons[state])) == 0;
}

int who_list_workloads(json_t *list, const struct inquiry *inquiry)
{
    struct naming_workloads naming = {.list = list};
    bool ok = workloads_unknown(inquiry->workloads, name_workload, &naming);

    if (ok && naming.count > WORKLOADS_NAMED_MAX)
        ok = json_array_append_new(list, json_sprintf("%zu more such objects",
                                                      naming.count - WORKLOADS_NAMED_MAX)) == 0;
    return ok ? 0 : -1;
}

json_t *who_gaps(const struct inquiry *inquiry, const json_t *claims)
{
    json_t *list = json_array(), *claim;
    struct needs needs = {.owners = false};
    size_t i;

    json_array_foreach (claims, i, claim)
        add_needs(&needs, claim);
    int rc =
        list == NULL ? -1 : list_kinds(list, inquiry, &needs) | who_list_workloads(list, inquiry);
    if (inquiry->without_details != 0)
        rc |= json_array_append_new(
            list, json_sprintf("details of %zu objects, which are too big, or have changed",
                               inquiry->without_details));
    if (needs.owners && inquiry->report.is_of_claimguard)
        rc |= json_array_append_new(
            list, json_string("owners, states and times of pods: /debug/snapshot has none"));
    if (needs.reservations && !inquiry->report.is_of_claimguard &&
        inquiry->cluster.reservations == NULL)
        rc |= json_array_append_new(
            list,
            json_string("reservations: only a running claimguard knows them (/debug/snapshot)"));
    return value_whole(list, rc);
}
