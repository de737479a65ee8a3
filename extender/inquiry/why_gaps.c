/* What the input does not have, of what causes are found by. */
#include "extender/inquiry/why_internal.h"

enum { NOTES_BYTES_MAX = 64 * 1024 };

/* The last one matters only to claims that name such a class. */
static const enum kind kinds[] = {KIND_NODE,
                                  KIND_CLAIM,
                                  KIND_VOLUME,
                                  KIND_STORAGE_CLASS,
                                  KIND_CSI_DRIVER,
                                  KIND_CSI_NODE,
                                  KIND_VOLUME_ATTACHMENT,
                                  KIND_VOLUME_ATTRIBUTES_CLASS};

static size_t kind_count(bool names_attributes_class)
{
    return sizeof kinds / sizeof *kinds - (names_attributes_class ? 0 : 1);
}

static bool lacks_kind(const struct why_pod *pod, bool names_attributes_class)
{
    for (size_t i = 0; i < kind_count(names_attributes_class); i++)
        if (inquiry_gap(pod->inquiry, kinds[i], pod->arena).len != 0)
            return true;
    return false;
}

bool why_note(struct why_notes *notes, const struct why_pod *pod)
{
    const struct inquiry *inquiry = pod->inquiry;
    bool lacks_labels = false, lacks_pods = false, names_class = false, is_unbound = false;

    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct why_claim *claim = &pod->claims[i];
        bool has_volume = claim->volume != NULL, is_scheduling = pod->stage == WHY_SCHEDULING;
        lacks_labels = lacks_labels || (pod->node_count != 0 && !pod->has_labels && has_volume);
        lacks_pods = lacks_pods || (notes->is_of_namespace && is_scheduling);
        names_class = names_class || claim_volume_attributes_class(claim->who.claim) != NULL;
        is_unbound = is_unbound || (is_scheduling && claim->who.claim->exists && !claim->is_bound);
    }
    notes->lacks_labels = notes->lacks_labels || lacks_labels;
    notes->lacks_pods = notes->lacks_pods || lacks_pods;
    notes->names_attributes_class = notes->names_attributes_class || names_class;
    notes->has_unbound = notes->has_unbound || is_unbound;
    notes->has_starting = notes->has_starting || pod->stage == WHY_STARTING;
    return pod->claim_count == 0 || (WHY_WAITING & (unsigned)pod->stage) == 0 ||
           (!lacks_labels && !lacks_pods && !is_unbound && !lacks_kind(pod, names_class) &&
            !inquiry->report.is_of_claimguard && inquiry->without_details == 0);
}

static int list_gaps(json_t *list, const struct inquiry *inquiry, const struct why_notes *notes)
{
    struct arena arena;
    int rc = 0;

    arena_init(&arena, NOTES_BYTES_MAX);
    for (size_t i = 0; i < kind_count(notes->names_attributes_class) && rc == 0; i++) {
        struct slice gap = inquiry_gap(inquiry, kinds[i], &arena);
        if (gap.ptr == NULL || gap.len != 0)
            rc = gap.ptr == NULL ? -1 : json_array_append_new(list, value_text(gap));
    }
    arena_dispose(&arena);
    return rc;
}

json_t *why_unknown(const struct inquiry *inquiry, const struct why_notes *notes)
{
    bool is_of_claimguard = inquiry->report.is_of_claimguard;
    const struct {
        bool is_so;
        const char *text;
    } rows[] = {
        {notes->lacks_pods, "pods of other namespaces: not read, so of the volumes on a node "
                            "(AttachLimit), theirs are not counted"},
        {is_of_claimguard, "limits of drivers, binding modes, owners, labels, and messages of "
                           "schedulers: /debug/snapshot has none"},
        {notes->lacks_labels, "labels of nodes: the input has none, so where volumes can be used "
                              "is not checked"},
        {notes->has_starting, "what a node says when it mounts a volume: Events of the pod "
                              "(FailedMount)"},
        {notes->has_unbound, "room for volumes that are not made yet (CSIStorageCapacity): only "
                             "the scheduler checks it"},
        {inquiry->cluster.reservations == NULL && !is_of_claimguard,
         "reservations: only a running claimguard knows them (/debug/snapshot)"},
        {true, "room on nodes, taints, nodeSelector, and affinities of pods: only the scheduler "
               "checks them"},
    };
    json_t *list = json_array();
    int rc =
        list == NULL ? -1 : list_gaps(list, inquiry, notes) | who_list_workloads(list, inquiry);

    if (inquiry->without_details != 0)
        rc |= json_array_append_new(
            list, json_sprintf("details of %zu objects, which are too big, or have changed",
                               inquiry->without_details));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].is_so)
            rc |= json_array_append_new(list, json_string(rows[i].text));
    return value_whole(list, rc);
}
