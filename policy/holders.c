#include "policy/holders.h"

const char *hold_text(enum hold hold)
{
    static const char *const words[] = {"", "Bound", "Terminating", "Nominated", "Reserved"};

    return words[hold];
}

int holder_compare(const void *a, const void *b)
{
    const struct pod *const *x = a, *const *y = b;

    return slice_compare(pod_name(*x), pod_name(*y));
}

/* By UID. Where nobody has one (a hand-written snapshot), by the name: it is unique there, and both
 * are in the namespace of their claim. */
static bool is_itself(const struct pod *holder, const struct pod_object *pod)
{
    char uid[UID_TEXT_BYTES];

    if (pod->meta.uid.len != 0)
        return uid_is(&holder->uid, pod->meta.uid);
    return uid_text(&holder->uid, uid).len == 0 && slice_equal(pod_name(holder), pod->meta.name);
}

const struct pod *holder_cached(const struct cluster *cluster, const struct pod_object *pod)
{
    const struct pod *cached = cluster_find_pod(cluster, pod->meta.ns, pod->meta.name);

    return cached != NULL && is_itself(cached, pod) ? cached : NULL;
}

/* A nomination to a node that does not exist, or that takes no pods, is none. */
static bool is_nominated(const struct cluster *cluster, struct slice node)
{
    return node.len != 0 && node_is_usable(cluster_find_node(cluster, node));
}

static bool has_nomination(const struct cluster *cluster, const struct pod *pod)
{
    return pod_is_nominated(pod) && !nomination_at(pod->nomination)->has_lapsed &&
           is_nominated(cluster, pod_nominated_node(pod));
}

/* Whether the scheduler tries a nominated holder before the pod, which has the same priority: it is
 * older. kube-scheduler's queue uses the time at which it queued a pod, which only it knows; the
 * time of creation is the nearest to it. The UID decides between pods of one second, so that of two
 * pods exactly one is first. A pod of unknown age is a manifest, and the youngest. */
static bool is_tried_first(const struct pod *holder, const struct pod_object *pod,
                           struct slice pod_created_at)
{
    struct slice created = pod_created(holder);
    char uid[UID_TEXT_BYTES];

    if (created.len != pod_created_at.len)
        return created.len != 0;
    int order = slice_compare(created, pod_created_at);
    if (order == 0)
        order = slice_compare(uid_text(&holder->uid, uid), pod->meta.uid);
    return (order == 0 ? slice_compare(pod_name(holder), pod->meta.name) : order) < 0;
}

/* Two nominated pods never wait for each other: one that is nominated itself waits only for those
 * that are tried before it. */
static bool nomination_holds(const struct cluster *cluster, const struct pod *holder,
                             const struct pod_object *pod)
{
    if (holder->is_terminating || holder->priority < pod->priority ||
        !has_nomination(cluster, holder))
        return false;
    if (holder->priority > pod->priority)
        return true;
    const struct pod *cached = holder_cached(cluster, pod);
    struct slice created = cached == NULL ? SLICE("") : pod_created(cached);
    if (pod->created.len == CREATED_BYTES)
        created = pod->created;
    bool is_rival = is_nominated(cluster, pod->nominated_node) ||
                    (cached != NULL && has_nomination(cluster, cached));
    return !is_rival || is_tried_first(holder, pod, created);
}

enum hold hold_against(const struct cluster *cluster, const struct pod *holder,
                       const struct pod_object *pod)
{
    if (holder->is_terminal || is_itself(holder, pod))
        return HOLD_NONE;
    if (pod_is_assigned(holder))
        return holder->is_terminating ? HOLD_TERMINATING : HOLD_BOUND;
    return nomination_holds(cluster, holder, pod) ? HOLD_NOMINATED : HOLD_NONE;
}
