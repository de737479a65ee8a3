#include "cache/cluster/nominated.h"

#include <utlist.h>

#include "config/base/clock.h"

static void stop_checking(struct cluster *cluster, struct nomination *nomination)
{
    if (!nomination->is_checked)
        return;
    DL_DELETE(cluster->nominations, nomination);
    nomination->is_checked = false;
}

/* In front, since it is due at once: the first check only begins. */
void nominated_add(struct cluster *cluster, struct pod *pod)
{
    struct nomination *nomination = nomination_at(pod->nomination);

    if (nomination == NULL || pod->use_count == 0)
        return;
    nomination->pod = pod;
    nomination->is_checked = true;
    DL_PREPEND(cluster->nominations, nomination);
}

void nominated_remove(struct cluster *cluster, struct pod *pod)
{
    struct nomination *nomination = nomination_at(pod->nomination);

    if (nomination != NULL)
        stop_checking(cluster, nomination);
}

void nominated_replace(struct cluster *cluster, struct pod *former, struct pod *pod)
{
    struct nomination *old = nomination_at(former->nomination);
    struct nomination *new = nomination_at(pod->nomination);

    if (old == NULL || new == NULL || old->node != new->node)
        return;
    if (old->has_lapsed || old->is_checked)
        stop_checking(cluster, new);
    new->has_lapsed = old->has_lapsed;
    if (!old->is_checked)
        return;
    new->free_checks = old->free_checks;
    new->due_ns = old->due_ns;
    DL_REPLACE_ELEM(cluster->nominations, old, new);
    old->is_checked = false;
    new->is_checked = true;
}

bool nominated_is_due(const struct cluster *cluster, uint64_t now_ns)
{
    return cluster->nominations != NULL && cluster->nominations->due_ns <= now_ns;
}

/* Whether other pods have one of the pod's claims that are for one pod. */
static bool is_kept_out(const struct pod *pod)
{
    for (unsigned i = 0; i < pod->use_count; i++) {
        const struct claim *claim = claim_at(pod->uses[i].claim);
        if (claim->refs != 0 && (claim->is_rwop || claim->deferred != 0))
            return true;
    }
    return false;
}

const struct pod *nominated_check(struct cluster *cluster, uint64_t now_ns)
{
    struct nomination *nomination = cluster->nominations;

    if (!nominated_is_due(cluster, now_ns))
        return NULL;
    const struct pod *pod = nomination->pod;
    bool waits = !pod_is_assigned(pod) && !pod->is_terminal && !pod->is_terminating;
    bool is_first = nomination->due_ns == 0;
    nomination->free_checks = is_first || is_kept_out(pod) ? 0 : nomination->free_checks + 1;
    nomination->has_lapsed = nomination->free_checks == NOMINATED_CHECKS;
    DL_DELETE(cluster->nominations, nomination);
    nomination->is_checked = waits && !nomination->has_lapsed;
    nomination->due_ns = now_ns + NOMINATED_CHECK_MS * NS_PER_MS;
    if (nomination->is_checked)
        DL_APPEND(cluster->nominations, nomination);
    return waits && nomination->has_lapsed ? pod : NULL;
}
