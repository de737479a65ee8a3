/* Claims that pods use, in a cluster. */
#include <stdlib.h>

#include "extender/audit/audit_checks_internal.h"

enum { HOLDERS_NAMED_MAX = 5 };

/* The pods that hold a claim: assigned and not finished, each once, by node and name. */
struct holders {
    const struct pod_record **pods;
    size_t count;
    size_t nodes;   /* different ones */
    size_t staying; /* nodes with a pod that is not being deleted */
};

static int compare_pods(const void *a, const void *b)
{
    const struct pod_record *const *x = a, *const *y = b;
    int order = slice_compare((*x)->spec.node, (*y)->spec.node);

    return order != 0 ? order : slice_compare((*x)->record.name, (*y)->record.name);
}

static bool is_holder(const struct pod_record *pod)
{
    return pod->spec.node.len != 0 && !pod->is_finished;
}

static void count_nodes(struct holders *holders)
{
    bool stays = false;

    for (size_t i = 0; i < holders->count; i++) {
        const struct pod_record *pod = holders->pods[i];
        if (i == 0 || !slice_equal(pod->spec.node, holders->pods[i - 1]->spec.node)) {
            holders->nodes++;
            stays = false;
        }
        if (!pod->is_terminating && !stays) {
            stays = true;
            holders->staying++;
        }
    }
}

/* False: no memory. Ownership: free(out->pods). */
static bool find_holders(const struct claim_record *claim, struct holders *out)
{
    size_t most = 0;

    *out = (struct holders){.pods = NULL};
    for (const struct claim_user *user = claim->users; user != NULL; user = user->next)
        most += is_holder(user->pod);
    if (most < 2)
        return true;
    out->pods = calloc(most, sizeof *out->pods);
    if (out->pods == NULL)
        return false;
    size_t count = 0;
    for (const struct claim_user *user = claim->users; user != NULL; user = user->next)
        if (is_holder(user->pod))
            out->pods[count++] = user->pod;
    qsort((void *)out->pods, count, sizeof *out->pods, compare_pods);
    out->count = count;
    count_nodes(out);
    return true;
}

/* "a on node-1, b on node-2 (terminating), and 3 more" */
static struct slice name_holders(struct audit_report *report, const struct holders *holders)
{
    struct slice text = SLICE("");
    size_t named = holders->count < HOLDERS_NAMED_MAX ? holders->count : HOLDERS_NAMED_MAX;

    for (size_t i = 0; i < named; i++) {
        const struct pod_record *pod = holders->pods[i];
        text = arena_printf(&report->arena, "%.*s%s%.*s on %.*s%s", SLICE_ARG(text),
                            i == 0 ? "" : ", ", SLICE_ARG(pod->record.name),
                            SLICE_ARG(pod->spec.node), pod->is_terminating ? " (terminating)" : "");
    }
    if (holders->count > named)
        text = arena_printf(&report->arena, "%.*s, and %zu more", SLICE_ARG(text),
                            holders->count - named);
    report->has_failed |= text.ptr == NULL;
    return text;
}

static void report_pod_claim(struct audit_check *check, const struct claim_record *claim,
                             const struct holders *holders)
{
    struct slice names;

    if (holders->count < 2)
        return;
    names = name_holders(check->report, holders);
    audit_report_add(check->report, RULE_SHARED_POD_CLAIM, LEVEL_ERROR,
                     audit_place(&claim->record, 0, 0, SLICE("")),
                     "the claim is ReadWriteOncePod, and %zu pods hold it: %.*s", holders->count,
                     SLICE_ARG(names));
}

static void report_node_claim(struct audit_check *check, const struct claim_record *claim,
                              const struct holders *holders)
{
    static const char *const ends[] = {
        [ATTACHMENT_UNKNOWN] = "; whether its volume is attached is not known",
        [ATTACHMENT_NO] = "; its volume is not attached, so all of them may write to it",
        [ATTACHMENT_YES] = ", and its volume is attached to one node only",
    };
    enum attachment attachment = claim_attachment(check->inventory, claim);
    bool is_error = attachment == ATTACHMENT_YES && holders->staying > 1;

    if (holders->nodes < 2)
        return;
    struct slice names = name_holders(check->report, holders);
    bool is_added =
        audit_report_add(check->report, RULE_NODE_CLAIM_NODES, is_error ? LEVEL_ERROR : LEVEL_NOTE,
                         audit_place(&claim->record, 0, 0, SLICE("")),
                         "the claim is ReadWriteOnce, and pods on %zu nodes use it: %.*s%s",
                         holders->nodes, SLICE_ARG(names), ends[attachment]);
    check->unknown_attachment += is_added && attachment == ATTACHMENT_UNKNOWN;
}

void audit_check_claims(struct audit_check *check)
{
    const struct inventory *inventory = check->inventory;

    for (const struct record *at = inventory->first[RECORD_CLAIM]; at != NULL; at = at->next) {
        const struct claim_record *claim = (const struct claim_record *)at;
        struct holders holders;
        if (claim->users == NULL || claim->users->next == NULL || claim->is_ambiguous)
            continue;
        if (!find_holders(claim, &holders)) {
            check->report->has_failed = true;
            return;
        }
        if (claim_is_for_one_pod(claim))
            report_pod_claim(check, claim, &holders);
        else if (claim_is_for_one_node(inventory, claim))
            report_node_claim(check, claim, &holders);
        free((void *)holders.pods);
    }
}
