/* The decision in the cache: the pod, the policies, what the API server has to confirm first. */
#include <stdlib.h>

#include "extender/serving/bind/agreement.h"
#include "extender/serving/bind/bind_internal.h"
#include "policy/defer_fs_mount.h"
#include "policy/exclusive.h"
#include "policy/policy.h"

/* ---- the pod ---- */

/* Whether another pod has a reservation with that UID. No API server gives two pods one UID: it
 * chooses that of each pod that is created. */
static bool is_uid_of_other(const struct cluster *cluster, const struct bind_request *request)
{
    const struct object_reference *pod = &request->pod;
    struct uid uid;

    return uid_find(&cluster->names, request->pod.uid, &uid) &&
           reservation_find(cluster, &uid) != NULL && reservation_of(cluster, pod) == NULL;
}

/* Whether the pod, or what its claims are compared with, is not stored: its namespace is given up.
 * The policies say so of a pod that is stored. */
static int check_given_up(struct binding *binding, const struct pod *pod, struct error *err)
{
    struct view view = state_view(binding->call.state);
    bool may_be = binding->created == NULL ? pod == NULL : binding->created->claim_count != 0;
    struct slice reason;

    if (!may_be ||
        !policy_has_given_up(&view, binding->call.request->pod.ns, binding->call.arena, &reason))
        return 0;
    binding->has_to_wait = true; /* no look would change it */
    return error_set(err, ERROR_INVALID, "%.*s", SLICE_ARG(reason));
}

/* Whether the record is that of the requested pod, and the pod is bound or can be. */
static int check_pod(struct binding *binding, const struct pod *pod, struct error *err)
{
    const struct bind_request *request = binding->call.request;

    if (binding->created != NULL && is_uid_of_other(&binding->call.state->cluster, request))
        return error_set(err, ERROR_INVALID, "pod %.*s/%.*s has the UID of another pod",
                         SLICE_ARG(request->pod.ns), SLICE_ARG(request->pod.name));
    if (binding->created != NULL && (pod == NULL || !uid_is(&pod->uid, request->pod.uid)))
        return 0; /* the API server lets no two pods have one name at once */
    bool is_other =
        pod != NULL && request->pod.uid.len != 0 && !uid_is(&pod->uid, request->pod.uid);
    binding->is_unknown = pod == NULL || is_other;
    if (pod == NULL)
        return error_set(err, ERROR_NOT_FOUND, "pods \"%.*s\" not found",
                         SLICE_ARG(request->pod.name));
    if (is_other)
        return error_set(err, ERROR_INVALID, "pod %.*s/%.*s has another UID than %.*s",
                         SLICE_ARG(request->pod.ns), SLICE_ARG(request->pod.name),
                         SLICE_ARG(request->pod.uid));
    binding->uid = pod->uid;
    binding->is_bound = pod_is_assigned(pod) && slice_equal(pod_node(pod), request->node);
    if (binding->is_bound)
        return 0;
    if (pod_is_assigned(pod))
        return error_set(err, ERROR_INVALID, "pod %.*s is already assigned to node \"%.*s\"",
                         SLICE_ARG(request->pod.name), SLICE_ARG(pod_node(pod)));
    binding->is_rejected = pod->is_terminating || pod->is_terminal;
    if (binding->is_rejected)
        return error_set(err, ERROR_INVALID, "pod %.*s is %s", SLICE_ARG(request->pod.name),
                         pod->is_terminating ? "being deleted" : "finished");
    return 0;
}

/* ---- a pod that is created with its node: it is not stored yet, so it cannot be changed ---- */

bool bind_describe_created(const struct cluster *cluster, const struct pod_object *created,
                           struct arena *arena, struct pod_object *out)
{
    size_t absent = created->claim_count;

    *out = *created;
    out->claim_count = 0;
    out->claims = arena_alloc(arena, created->claim_count * sizeof *out->claims);
    if (out->claims == NULL)
        return false;
    for (size_t i = 0; i < created->claim_count; i++) {
        bool is_there =
            !created->claims[i].is_ephemeral ||
            cluster_find_claim(cluster, created->meta.ns, created->claims[i].name) != NULL;
        out->claims[is_there ? out->claim_count++ : --absent] = created->claims[i];
    }
    return true;
}

/* A pod may have been bound to a claim of that name that is gone: it uses the new one, too, if it
 * still waits for its volumes. Errors: ERROR_INVALID: another pod holds a claim that is to be
 * created for this one. */
static int check_names(const struct cluster *cluster, const struct pod_object *created,
                       struct error *err)
{
    for (size_t i = 0; i < created->claim_count; i++) {
        struct slice name = created->claims[i].name;
        const struct claim *claim = cluster_find_named_claim(cluster, created->meta.ns, name);
        if (created->claims[i].is_ephemeral && claim != NULL && !claim->exists &&
            (claim->refs != 0 || claim_is_reserved(claim)))
            return error_set(err, ERROR_INVALID,
                             "claim %.*s/%.*s, which is to be created for this pod, is in use by "
                             "another pod",
                             SLICE_ARG(created->meta.ns), SLICE_ARG(name));
    }
    return 0;
}

/* Errors: ERROR_INVALID: whether a volume is deferred depends on a claim that is created after the
 * pod. */
static int check_created_deferral(const struct view *view, const struct pod_object *pod,
                                  struct error *err)
{
    for (uint32_t i = 0; pod->mounts != NULL && i < pod->mounts->volume_count; i++)
        if (defer_needs_claim(view, pod, &pod->mounts->volumes[i]))
            return error_set(err, ERROR_INVALID,
                             "whether volume %.*s is deferred depends on its claim, which does not "
                             "exist before the pod: leave spec.nodeName to a scheduler, or set "
                             "the annotation " DEFER_FS_MOUNT_ANNOTATION,
                             SLICE_ARG(pod->mounts->volumes[i].name));
    return 0;
}

/* ---- the policies ---- */

/* The pods that are in the way on this node are causes of the refusal: the API server is asked
 * about them before it is final. False: no memory. */
static bool note_pods_in_the_way(const struct cluster *cluster, struct verdict *verdict,
                                 struct arena *arena)
{
    for (size_t i = 0; i < verdict->awaited_count; i++) {
        const struct object_reference *pod = &verdict->awaited[i];
        const struct reservation *reservation =
            pod->kind == KIND_POD ? reservation_of(cluster, pod) : NULL;
        if (pod->kind == KIND_POD &&
            (reservation == NULL || reservation_may_be_asked(reservation)) &&
            !verdict_keep_cause(verdict, arena, pod))
            return false;
    }
    return true;
}

/* Whether the pod is refused for a claim that the cache does not have. */
static bool lacks_claim(const struct verdict *verdict)
{
    for (size_t i = 0; i < verdict->cause_count; i++)
        if (verdict->causes[i].kind == KIND_CLAIM && verdict->causes[i].uid.len == 0)
            return true;
    return false;
}

/* Checks the policies, on the pod and on the node: either may have changed since filter passed. */
static int check_policies(struct binding *binding, const struct view *view,
                          const struct pod_object *object, struct error *err)
{
    struct verdict *verdict = &binding->verdict;
    struct arena *arena = binding->call.arena;
    struct slice reason;

    policy_prefilter(view, object, arena, verdict);
    binding->is_conflict = code_is_rejection(verdict->code);
    binding->is_rejected = verdict->code == CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
    binding->is_unknown = lacks_claim(verdict);
    if (binding->is_conflict)
        return error_set(err, ERROR_INVALID, "%.*s", SLICE_ARG(verdict_message(verdict, arena)));
    if (policy_filter(verdict, binding->call.request->node, arena, &reason) == NULL)
        return bind_collect_warnings(&binding->warnings, verdict, &binding->call, err);
    binding->is_rejected = verdict->is_by_nodes = true;
    if (!note_pods_in_the_way(view->cluster, verdict, arena))
        return error_no_memory(err);
    return reason.ptr == NULL ? error_no_memory(err)
                              : error_set(err, ERROR_INVALID, "%.*s", SLICE_ARG(reason));
}

/* A claim may be bound to a volume that the cache does not know yet, whose modes say whether it may
 * be on several nodes: until they are known, it is on one. */
static int check_unknown_volumes(const struct binding *binding, const struct view *view,
                                 const struct pod_object *pod, struct error *err)
{
    const struct bind_call *call = &binding->call;
    bool is_enforced = view->config->read_write_once.mode == MODE_ENFORCE;
    struct slice node;

    for (size_t i = 0; is_enforced && call->state->api != NULL && i < pod->claim_count; i++) {
        const struct claim *claim =
            cluster_find_claim(view->cluster, pod->meta.ns, pod->claims[i].name);
        bool is_unknown = claim != NULL && claim_has_volume(claim) &&
                          cluster_find_volume(view->cluster, claim) == NULL;
        if (!is_unknown || claim->is_rwop)
            continue;
        if (!read_write_once_elsewhere(view, pod, claim, call->arena, &node))
            return error_no_memory(err);
        if (node.len != 0)
            return error_set(err, ERROR_UNAVAILABLE,
                             "claim %.*s/%.*s is in use on node %.*s, and its volume is not known "
                             "yet",
                             SLICE_ARG(name_text(claim->ns)), SLICE_ARG(claim_name(claim)),
                             SLICE_ARG(node));
    }
    return 0;
}

/* ---- what the API server confirms first, because the watch may be late ---- */

/*
 * Whether the cache alone is not enough to let the pod share the claim. Access modes never change,
 * but the claim may have been deleted and created again as ReadWriteOncePod while its watch is
 * late. With one replica, that does harm only if another pod has the claim, and the cache knows
 * such a pod. Replicas do not know each other's pods, so with claimLock each claim is confirmed.
 */
static bool sharing_needs_confirmation(const struct binding *binding, const struct claim *claim)
{
    return binding->call.state->config->read_write_once_pod.claim_lock == CLAIM_LOCK_ANNOTATION ||
           claim->refs != 0 || claim->sharers != 0 || claim_is_reserved(claim);
}

/*
 * Lists the claims that the pod shares, if one of them has to be confirmed: then all of them, since
 * another pod may get one claim while the API server is asked about the others. Of a pod that may
 * be deferred, lists all: a deferral is decided by the storage class of a claim, and another claim
 * may have come under its name.
 */
static int list_claims(struct binding *binding, const struct view *view,
                       const struct pod_object *pod, struct error *err)
{
    bool may_defer = defer_may_match(view, pod), is_needed = may_defer;
    const bool *exclusive = binding->verdict.exclusive;
    struct kept_reference *claims = NULL;
    char text[UID_TEXT_BYTES];

    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct claim *claim =
            cluster_find_claim(view->cluster, pod->meta.ns, pod->claims[i].name);
        bool is_shared = exclusive == NULL || !exclusive[i];
        if (claim == NULL || !(is_shared || may_defer))
            continue;
        struct object_reference reference = {KIND_CLAIM, name_text(claim->ns), claim_name(claim),
                                             uid_text(&claim->uid, text)};
        is_needed = is_needed || sharing_needs_confirmation(binding, claim);
        if (!object_reference_keep(&claims, &reference, binding->call.arena))
            return error_no_memory(err);
    }
    binding->to_confirm = is_needed ? claims : NULL;
    return 0;
}

/*
 * Whether a pod that the cache does not have may hold the claim, because it owns it. The claim of a
 * generic ephemeral volume is created after its pod. A pod that is created with its node holds it
 * from that moment, so nobody can reserve or lock it for the pod, but for the replica that has
 * reviewed the pod. The watch of pods may be late.
 */
static bool may_be_held_by_owner(const struct cluster *cluster, const struct pod_object *pod,
                                 const struct claim *claim)
{
    struct slice uid = name_slice(claim_owner_uid(claim));
    const struct pod *owner =
        cluster_find_pod(cluster, name_text(claim->ns), name_slice(claim_owner_name(claim)));

    return uid.len != 0 && !slice_equal(uid, pod->meta.uid) &&
           (owner == NULL || !uid_is(&owner->uid, uid));
}

/* Lists the pods that may hold claims so. Not by their UIDs, which anyone may have written into a
 * claim: that there is no such pod would be reported as the end of the pod with that UID. */
static int list_owners(struct binding *binding, const struct pod_object *pod, struct error *err)
{
    const struct cluster *cluster = &binding->call.state->cluster;

    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct claim *claim = cluster_find_claim(cluster, pod->meta.ns, pod->claims[i].name);
        if (claim == NULL || !may_be_held_by_owner(cluster, pod, claim))
            continue;
        struct object_reference owner = {KIND_POD, name_text(claim->ns),
                                         name_slice(claim_owner_name(claim)), SLICE("")};
        if (!object_reference_keep(&binding->to_confirm, &owner, binding->call.arena))
            return error_no_memory(err);
    }
    return 0;
}

/* Errors: something has to be confirmed first (binding->to_confirm), or there is no memory. */
static int check_confirmed(struct binding *binding, const struct view *view,
                           const struct pod_object *pod, struct error *err)
{
    binding->is_of_owners = false;
    if (binding->call.state->api == NULL)
        return 0;
    if (!binding->is_claims_confirmed && list_claims(binding, view, pod, err) < 0)
        return err->code;
    if (binding->to_confirm == NULL && !binding->is_owners_confirmed) {
        binding->is_of_owners = true;
        if (list_owners(binding, pod, err) < 0)
            return err->code;
    }
    return binding->to_confirm == NULL
               ? 0
               : error_set(err, ERROR_UNAVAILABLE,
                           "the claims of pod %.*s have to be confirmed with the API server",
                           SLICE_ARG(pod->meta.name));
}

/* ---- the decision ---- */

/* When the Bindings of locks that were before are dead. */
static uint64_t listed_since(void)
{
    uint64_t now_ns = monotonic_ns(), window_ns = LISTED_MS * (uint64_t)NS_PER_MS;

    return now_ns > window_ns ? now_ns - window_ns : 0;
}

/* Lists the claims to lock: the pod's exclusive ones, sorted, so that all binds lock in the same
 * order. */
static int list_locks(struct binding *binding, const struct pod_object *pod, struct error *err)
{
    const struct cluster *cluster = &binding->call.state->cluster;
    struct claim_locks *locks = &binding->locks;
    const bool *exclusive = binding->verdict.exclusive;

    locks->claim_count = 0;
    if (binding->call.state->config->read_write_once_pod.claim_lock != CLAIM_LOCK_ANNOTATION ||
        exclusive == NULL)
        return 0;
    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct claim *claim = cluster_find_claim(cluster, pod->meta.ns, pod->claims[i].name);
        if (claim == NULL || !exclusive[i])
            continue;
        if (locks->claim_count == LOCKED_CLAIMS_MAX)
            return error_set(err, ERROR_TOO_BIG, "pod %.*s has over %d exclusive claims",
                             SLICE_ARG(pod->meta.name), LOCKED_CLAIMS_MAX);
        char uid[UID_TEXT_BYTES];
        struct locked_claim *locked = &locks->claims[locks->claim_count++];
        locked->is_ahead = claim->is_ahead;
        locked->may_have_former =
            claim_may_have_former(cluster, claim, &binding->call.request->pod, listed_since());
        locked->name = arena_copy(binding->call.arena, claim_name(claim));
        locked->uid = arena_copy(binding->call.arena, uid_text(&claim->uid, uid));
        if (locked->name.ptr == NULL || locked->uid.ptr == NULL)
            return error_no_memory(err);
    }
    qsort(locks->claims, locks->claim_count, sizeof *locks->claims, slice_order);
    return 0;
}

/* Whether the replicas agree that this one may bind the pod. */
static int check_agreement(struct binding *binding, const struct pod_object *pod, struct error *err)
{
    int rc = pod->claim_count == 0 ? 0 : agreement_permits(binding->call.state, err);

    binding->has_to_wait = rc == ERROR_INVALID;
    return rc;
}

/* Decides which volumes are deferred. */
static int plan_deferral(struct binding *binding, const struct view *view, const struct pod *pod,
                         const struct pod_object *object, struct error *err)
{
    bool is_created = binding->created != NULL;

    if (is_created && check_created_deferral(view, object, err) < 0)
        return err->code;
    int rc = deferral_plan(view, is_created ? 0 : pod->version, object, binding->call.arena,
                           &binding->deferral, err);
    binding->has_to_wait = binding->deferral.is_announced;
    binding->is_rejected = /* another pod, or another configuration has to come first */
        rc == ERROR_INVALID && !binding->has_to_wait;
    return rc;
}

/* In a snapshot, in memory: binds the pod, or creates it. */
static int settle(struct binding *binding, struct pod *pod, struct error *err)
{
    struct state *state = binding->call.state;

    if (binding->created != NULL) {
        const struct object object = {.kind = KIND_POD, .pod = *binding->created};
        return cluster_apply(&state->cluster, &object, err);
    }
    deferral_remember(state, pod, &binding->deferral); /* before the pod holds its claims */
    for (size_t i = 0; i < binding->deferral.volume_count; i++)
        deferral_count(state, &binding->deferral.volumes[i]);
    return cluster_assign(&state->cluster, pod, binding->call.request->node, err);
}

/* Takes the pod's claims, and those that are created after it. Its UID may be known only from now
 * on. */
static int take(struct binding *binding, struct pod_object *pod, struct error *err)
{
    struct state *state = binding->call.state;

    pod->node = binding->call.request->node;
    if (binding->created != NULL)
        pod->claim_count = binding->created->claim_count; /* see bind_describe_created */
    int rc = reservation_take(&state->cluster, pod, binding->verdict.exclusive, true,
                              state_reservation_end(state, true), err);
    if (rc == 0)
        (void)uid_find(&state->cluster.names, pod->meta.uid, &binding->uid);
    return rc;
}

int bind_take_claims(struct binding *binding, struct error *err)
{
    const struct bind_call *call = &binding->call;
    struct state *state = call->state;
    struct pod *pod =
        cluster_find_pod(&state->cluster, call->request->pod.ns, call->request->pod.name);
    struct view view = state_view(state);
    struct pod_object object;

    view.node = call->request->node;
    binding->is_conflict = binding->is_rejected = binding->is_unknown = false;
    binding->has_to_wait = false;
    binding->to_confirm = NULL;
    binding->verdict = (struct verdict){.code = CODE_SKIP};
    binding->warnings.count = 0;
    binding->deferral = (struct deferral){.volumes = NULL};
    if (check_given_up(binding, pod, err) < 0 || check_pod(binding, pod, err) < 0)
        return err->code;
    if (binding->is_bound)
        return 0;
    if (binding->created != NULL
            ? !bind_describe_created(&state->cluster, binding->created, call->arena, &object)
            : !cluster_describe_pod(pod, call->arena, &object))
        return error_no_memory(err);
    if ((binding->created != NULL && check_names(&state->cluster, binding->created, err) < 0) ||
        check_policies(binding, &view, &object, err) < 0 ||
        check_unknown_volumes(binding, &view, &object, err) < 0 ||
        check_agreement(binding, &object, err) < 0 ||
        check_confirmed(binding, &view, &object, err) < 0 ||
        plan_deferral(binding, &view, pod, &object, err) < 0)
        return err->code;
    if (binding->is_dry_run)
        return 0;
    if (state->api == NULL)
        return settle(binding, pod, err);
    if (list_locks(binding, &object, err) < 0)
        return err->code;
    return take(binding, &object, err);
}
