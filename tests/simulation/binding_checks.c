/* What a Binding must never do: the checks of each pod that has just been bound. */
#include "simulation/world.h"

static const struct server *const server = &world.server;

/* Whether a replica has read all pods from an API server that does not know the field, and shows it
 * of none: nobody can know then that a user has set it. */
static bool is_hidden(void)
{
    bool is_hidden = false;

    for (unsigned i = 0; i < world.replica_count; i++)
        is_hidden = is_hidden || world.replicas[i].pods_listed_ns >= world.field_since_ns;
    return is_hidden && world.field == FIELD_ABSENT;
}

/* The pod's claims for whose class there is an entry; and those of any class that were there, as
 * they are now, when its bind looked at them. */
static unsigned claims_with_entry(const struct sim_pod *pod, unsigned *known)
{
    unsigned with_entry = 0;

    *known = 0;
    for (unsigned c = 0; c < CLAIMS; c++) {
        with_entry |= (unsigned)!server->claims[c].is_slow << c;
        *known |= (unsigned)(server->claims[c].created_ns <= pod->looked_ns) << c;
    }
    return with_entry & pod->claims;
}

/* A pod without its decision, or with one that nobody may have made. known: its fields before the
 * Binding. Two things nobody can help: a bind under way writes the field, and an older API server
 * takes the Binding; and another client's Binding, which has no version as its precondition, comes
 * after somebody has removed the annotation, or has written the pod by that API server. */
static void check_decision(const struct sim_pod *pod, unsigned known)
{
    unsigned decided, with_entry = claims_with_entry(pod, &decided);
    unsigned wanted = (pod->is_vm ? with_entry : 0) | (is_hidden() ? 0 : known & pod->own_fields);
    unsigned there = server_deferred_claims(pod);
    bool is_lost =
        world.field_since_ns > pod->looked_ns && (known != pod->fields || pod->is_bound_by_other);

    if (world.agrees) /* who is asked may not have the entry */
        return;
    if (!world.defers || world.apply == DEFER_DISABLED || is_lost ||
        (pod->is_bound_by_other && pod->edited_ns != 0))
        return;
    wanted = pod->opts_out ? 0 : wanted;
    if ((decided & wanted & ~there) != 0 || (decided & there & ~(wanted | pod->own_fields)) != 0)
        broken("%s (%s) is bound with mounts %u deferred, and not %u", pod->name, pod->uid + 24,
               there, wanted);
}

/* Whether the claim was another one when the bind of the pod looked at it. One thing nobody can
 * help: it is deleted, and created again or to be so, while Bindings are under way. Where all binds
 * are one claimguard's, it knows of the first when it looks for the second. */
static bool is_created_again(const struct sim_claim *claim, const struct sim_pod *one,
                             const struct sim_pod *other)
{
    uint64_t changed_ns = claim->is_absent ? claim->removed_ns : claim->created_ns;
    bool one_is_late = changed_ns > one->looked_ns && claim->owner != one;
    bool other_is_late = changed_ns > other->looked_ns && claim->owner != other;

    return (claim->lives > 1 || claim->is_absent) &&
           (world.is_annotation ? one_is_late || other_is_late : one_is_late && other_is_late);
}

/* A kubelet starts no pod with the ephemeral claim of another one. */
static bool uses(const struct sim_pod *pod, unsigned c)
{
    const struct sim_claim *claim = &server->claims[c];
    bool is_of_other = (pod->ephemeral >> c & 1) != 0 && !claim->is_absent && claim->owner != pod;

    return (pod->claims >> c & 1) != 0 && !is_of_other;
}

/* Two pods on a claim that is exclusive, or that is mounted by the VM of one of them: what must
 * never be. */
static void check_exclusive(const struct sim_pod *bound)
{
    for (size_t i = 0; i < server->pod_count; i++) {
        const struct sim_pod *pod = &server->pods[i];
        if (pod == bound || !pod_is_there(pod) || pod->node < 0 || pod->is_unreviewed)
            continue;
        for (unsigned c = 0; c < CLAIMS; c++)
            if ((server->claims[c].is_rwop ||
                 ((server_deferred_claims(pod) | server_deferred_claims(bound)) >> c & 1) != 0) &&
                uses(pod, c) && uses(bound, c) && !is_created_again(&server->claims[c], pod, bound))
                broken("claim %s has two pods: %s (%s) and now %s (%s)", server->claims[c].name,
                       pod->name, pod->uid + 24, bound->name, bound->uid + 24);
    }
}

/* Whether the volume of the claim may be on one node alone, and one replica knows of all binds: of
 * several, none knows what the others do (docs/policies.md). A pod that nobody has reviewed may
 * have put it on a second node, and then others may go to both. */
static bool is_for_one_node(const struct sim_claim *claim)
{
    return world.is_for_one_node && world.read_write_once == MODE_ENFORCE && !world.is_annotation &&
           !world.fails_open && !claim->is_rwop;
}

/* Two pods on different nodes that share a claim whose volume can be on one. */
static void check_one_node(const struct sim_pod *bound)
{
    for (size_t i = 0; i < server->pod_count; i++) {
        const struct sim_pod *pod = &server->pods[i];
        if (pod == bound || !pod_is_there(pod) || pod->node < 0 || pod->node == bound->node)
            continue;
        for (unsigned c = 0; c < CLAIMS; c++)
            if (is_for_one_node(&server->claims[c]) &&
                ((pod->claims & bound->claims) >> c & 1) != 0 &&
                !is_created_again(&server->claims[c], pod, bound))
                broken("claim %s is on two nodes: %d, of %s (%s), and now %d, of %s (%s)",
                       server->claims[c].name, pod->node, pod->name, pod->uid + 24, bound->node,
                       bound->name, bound->uid + 24);
    }
}

/* Whether the scheduler asked about another pod that may take one of its claims from the one that
 * waits, since others were freed for it: it cannot run then, and nothing is kept for it. */
static bool has_rival(const struct sim_pod *waiting, uint64_t since_ns)
{
    for (size_t i = 0; i < server->pod_count; i++) {
        const struct sim_pod *pod = &server->pods[i];
        if (pod != waiting && pod->priority >= waiting->priority &&
            (pod->claims & waiting->claims) != 0 &&
            (pod->asked_ns >= since_ns || pod->reviewed_ns >= since_ns))
            return true;
    }
    return false;
}

/* Whether one of its claims was missing for a while. */
static bool lacked_claim(const struct sim_pod *waiting, uint64_t since_ns)
{
    for (unsigned c = 0; c < CLAIMS; c++)
        if ((waiting->claims >> c & 1) != 0 &&
            (server->claims[c].is_absent || server->claims[c].created_ns > since_ns))
            return true;
    return false;
}

/* Whether the pod wants several volumes for one node, which others may keep on different nodes: it
 * cannot run then, and nothing is kept for it. */
static bool may_suit_no_node(const struct sim_pod *waiting)
{
    unsigned count = 0;

    for (unsigned c = 0; c < CLAIMS; c++)
        count += (waiting->claims >> c & 1) != 0 && !server->claims[c].is_rwop;
    return world.is_for_one_node && count > 1;
}

/* A claim that was freed for one pod, and goes to one of lower priority: it is reserved for the
 * first while that waits, and for 30 s after its holder went, unless a bind fails. Another replica
 * may not know; and a Binding that was admitted before the eviction may be stored after it. */
static void check_preemptors(const struct sim_pod *bound)
{
    for (size_t i = 0; i < server->pod_count; i++) {
        const struct sim_pod *victim = &server->pods[i];
        bool is_known = victim->preemption != 0 && victim->evicted_for >= 0 &&
                        world.replica_count == 1 &&
                        victim->evicted_by == world.replicas[0].incarnation;
        bool is_earlier = bound->is_bound_by_other && bound->looked_ns < victim->evicted_ns;
        if (!is_known || is_earlier ||
            (victim->gone_ns != 0 && world.now_ns - victim->gone_ns > 20 * SECOND))
            continue;
        const struct sim_pod *waiting = &server->pods[victim->evicted_for];
        unsigned claims = waiting->claims & bound->claims & victim->claims;
        for (unsigned c = 0; c < CLAIMS; c++)
            claims &= server->claims[c].is_rwop ? ~0U : ~(1U << c);
        if (claims != 0 && waiting != bound && pod_is_there(waiting) && waiting->node < 0 &&
            waiting->priority > bound->priority && waiting->bind_ns < victim->evicted_ns &&
            !has_rival(waiting, victim->eviction_sent_ns) && !may_suit_no_node(waiting) &&
            !lacked_claim(waiting, victim->evicted_ns))
            broken("%s (%s) gets a claim that was freed for %s (%s)", bound->name, bound->uid + 24,
                   waiting->name, waiting->uid + 24);
    }
}

void check_binding(const struct sim_pod *pod, unsigned known)
{
    check_exclusive(pod);
    check_one_node(pod);
    check_preemptors(pod);
    check_decision(pod, known);
}
