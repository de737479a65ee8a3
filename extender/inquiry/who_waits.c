/* What pods that do not have the claim wait for. */
#include <stdlib.h>
#include <string.h>

#include "cache/cluster/reservation.h"
#include "extender/inquiry/who_internal.h"

static struct slice node_of(const struct resource *attachment)
{
    return resource_attribute(attachment, VOLUME_ATTACHMENT_NODE);
}

/* The number of nodes that have the volume; one that is only to get it does not count, as in
 * kube-controller-manager. *is_here: that node is among them. */
static size_t count_nodes(const struct who_claim *claim, struct slice node, bool *is_here)
{
    size_t count = 0;

    *is_here = false;
    for (size_t i = 0; i < claim->attachment_count; i++) {
        if ((resource_number(claim->attachments[i]) & VOLUME_ATTACHMENT_IS_ATTACHED) == 0)
            continue;
        *is_here = *is_here || slice_equal(node_of(claim->attachments[i]), node);
        count++;
    }
    return count;
}

/* Whether a pod on another node has started with it. */
static bool is_used_elsewhere(const struct who_claim *claim, const struct pod *pod)
{
    for (size_t i = 0; i < claim->holder_count; i++)
        if (node_at(claim->holders[i].pod->node) != node_at(pod->node) &&
            !claim->holders[i].pod->is_pending)
            return true;
    return false;
}

/* Multi-Attach (1.37 says "Waiting for detach"): kube-controller-manager does not attach the volume
 * to the pod's node before it is detached from the other one. */
static bool is_blocked(const struct who_claim *claim, const struct pod *pod)
{
    bool is_for_one_node = claim->access == ACCESS_ONE_NODE || claim->access == ACCESS_ONE_POD;
    bool is_here;
    size_t nodes = count_nodes(claim, pod_node(pod), &is_here);

    if (!is_for_one_node || !pod->is_pending || pod->is_terminating || is_here)
        return false;
    return nodes != 0 || (claim->access == ACCESS_ONE_NODE && claim->attachment_count == 0 &&
                          is_used_elsewhere(claim, pod));
}

static void move_blocked(struct who_claim *claim)
{
    size_t count = claim->holder_count, kept = 0, moved = 0;

    for (size_t i = 0; i < count; i++)
        claim->holders[i].waits_for =
            is_blocked(claim, claim->holders[i].pod) ? WAITS_DETACH : WAITS_OTHER;
    for (size_t i = 0; i < count; i++)
        if (claim->holders[i].waits_for == WAITS_DETACH)
            claim->waiters[claim->waiter_count + moved++] = claim->holders[i];
        else
            claim->holders[kept++] = claim->holders[i];
    claim->holder_count = kept;
    claim->waiter_count += moved;
}

/* ---- pods without a node ---- */

/* Whether the scheduler says so of the claim: "claim NS/NAME (ReadWriteOnce) is in use ...". */
static bool is_named_in_message(const struct who_claim *claim, struct slice message)
{
    struct slice text =
        arena_printf(claim->arena, "claim %.*s/%.*s ", SLICE_ARG(name_text(claim->claim->ns)),
                     SLICE_ARG(claim_name(claim->claim)));

    return text.len != 0 && message.len != 0 &&
           memmem(message.ptr, message.len, text.ptr, text.len) != NULL;
}

static struct slice message_of(const struct who_pod *pod)
{
    const struct condition *scheduled =
        details_condition(&pod->details.conditions, SLICE("PodScheduled"));

    return scheduled == NULL || slice_equal(scheduled->status, SLICE("True")) ? SLICE("")
                                                                              : scheduled->message;
}

static bool is_unbound_in_message(struct slice message)
{
    static const char text[] = "unbound immediate PersistentVolumeClaims";

    return message.len != 0 && memmem(message.ptr, message.len, text, sizeof text - 1) != NULL;
}

/* A claim that nobody holds, and that is taken nevertheless. */
static enum waits_for find_taker(const struct who_claim *claim, const struct pod *pod)
{
    const struct reservation *reservation = reservation_at(claim->claim->reservation);
    char text[UID_TEXT_BYTES];
    struct slice uid, name;

    if (reservation != NULL && !uid_is(&pod->uid, uid_text(&reservation->uid, text)))
        return WAITS_RESERVATION;
    return who_lock(claim, &uid, &name) && !uid_is(&pod->uid, uid) ? WAITS_LOCK : WAITS_OTHER;
}

static enum waits_for find_wait(const struct who_claim *claim, const struct who_pod *waiter)
{
    const struct claim *record = claim->claim;
    struct slice message = message_of(waiter);

    if (waiter->waits_for == WAITS_DETACH)
        return WAITS_DETACH;
    if (!record->exists || record->is_deleting || claim_phase(record) == CLAIM_LOST)
        return WAITS_CLAIM;
    if (waiter->pod->is_gated)
        return WAITS_OTHER;
    if (claim->volume.len == 0 && is_unbound_in_message(message))
        return WAITS_BINDING;
    if (claim->access == ACCESS_ONE_POD)
        return claim->assigned_count != 0 ? WAITS_HOLDER : find_taker(claim, waiter->pod);
    return claim->assigned_count != 0 && claim->access != ACCESS_ANY &&
                   is_named_in_message(claim, message)
               ? WAITS_HOLDER
               : WAITS_OTHER;
}

void who_find_waits(struct who_claim *claim)
{
    claim->assigned_count = claim->holder_count;
    move_blocked(claim);
    for (size_t i = 0; i < claim->waiter_count; i++) {
        claim->waiters[i].waits_for = find_wait(claim, &claim->waiters[i]);
        claim->is_waited_for = claim->is_waited_for || claim->waiters[i].waits_for != WAITS_OTHER;
    }
}
