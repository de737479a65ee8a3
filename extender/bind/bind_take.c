#include <stdlib.h>

#include "extender/bind/agreement_live.h"
#include "extender/bind/bind_internal.h"
#include "extender/bind/creation.h"
#include "policy/attached.h"
#include "policy/exclusive.h"

/* Whether another pod has a reservation with that UID. No API server gives two pods one UID: it
 * chooses that of each pod that is created. */
static bool is_uid_of_other(const struct cluster *cluster, const struct bind_request *request)
{
    struct object_reference pod = bind_request_pod(request);
    struct uid uid;

    return uid_find(&cluster->names, request->pod_uid, &uid) &&
           reservation_find(cluster, &uid) != NULL && reservation_of(cluster, &pod) == NULL;
}

/* Whether the pod, or what its claims are compared with, is not stored: its namespace is given up.
 * The policies say so of a pod that is stored. */
static int check_given_up(struct binding *binding, const struct pod *pod, struct error *err)
{
    struct view view = state_view(binding->call.state);
    bool may_be = binding->created == NULL ? pod == NULL : binding->created->claim_count != 0;
    struct slice reason;

    if (!may_be || !policy_has_given_up(&view, binding->call.request->pod_namespace,
                                        binding->call.arena, &reason))
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
                         SLICE_ARG(request->pod_namespace), SLICE_ARG(request->pod_name));
    if (binding->created != NULL && (pod == NULL || !uid_is(&pod->uid, request->pod_uid)))
        return 0; /* the API server lets no two pods have one name at once */
    bool is_other =
        pod != NULL && request->pod_uid.len != 0 && !uid_is(&pod->uid, request->pod_uid);
    binding->is_unknown = pod == NULL || is_other;
    if (pod == NULL)
        return error_set(err, ERROR_NOT_FOUND, "pods \"%.*s\" not found",
                         SLICE_ARG(request->pod_name));
    if (is_other)
        return error_set(err, ERROR_INVALID, "pod %.*s/%.*s has another UID than %.*s",
                         SLICE_ARG(request->pod_namespace), SLICE_ARG(request->pod_name),
                         SLICE_ARG(request->pod_uid));
    binding->uid = pod->uid;
    binding->is_bound = pod_is_assigned(pod) && slice_equal(pod_node(pod), request->node);
    if (binding->is_bound)
        return 0;
    if (pod_is_assigned(pod))
        return error_set(err, ERROR_INVALID, "pod %.*s is already assigned to node \"%.*s\"",
                         SLICE_ARG(request->pod_name), SLICE_ARG(pod_node(pod)));
    binding->is_rejected = pod->is_terminating || pod->is_terminal;
    if (binding->is_rejected)
        return error_set(err, ERROR_INVALID, "pod %.*s is %s", SLICE_ARG(request->pod_name),
                         pod->is_terminating ? "being deleted" : "finished");
    return 0;
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
        struct slice name = arena_copy(binding->call.arena, claim_name(claim));
        if (name.ptr == NULL)
            return error_no_memory(err);
        locks->claims[locks->claim_count++] = name;
    }
    qsort(locks->claims, locks->claim_count, sizeof *locks->claims, slice_order);
    for (size_t i = 0; i < locks->claim_count; i++) {
        char text[UID_TEXT_BYTES];
        const struct claim *claim = cluster_find_claim(cluster, pod->meta.ns, locks->claims[i]);
        locks->uids[i] = arena_copy(binding->call.arena, uid_text(&claim->uid, text));
        if (locks->uids[i].ptr == NULL)
            return error_no_memory(err);
    }
    return 0;
}

/* Binds a pod of a snapshot, in memory. */
static int assign(struct binding *binding, struct pod *pod, struct error *err)
{
    const struct bind_call *call = &binding->call;

    deferral_remember(call->state, pod, &binding->deferral); /* before the pod holds its claims */
    deferral_count(call->state, &binding->deferral);
    return cluster_assign(&call->state->cluster, pod, call->request->node, err);
}

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
    const struct policy *decided_by;
    struct slice reason;

    policy_prefilter(view, object, arena, verdict, &decided_by);
    binding->is_conflict = code_is_rejection(verdict->code);
    binding->is_rejected = verdict->code == CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
    binding->is_unknown = lacks_claim(verdict);
    if (binding->is_conflict)
        return error_set(err, ERROR_INVALID, "%.*s", SLICE_ARG(verdict_message(verdict, arena)));
    if (policy_filter(verdict, binding->call.request->node, arena, &reason) == NULL)
        return bind_warnings_collect(&binding->warnings, verdict, &binding->call, err);
    binding->is_rejected = verdict->is_by_nodes = true;
    if (!note_pods_in_the_way(view->cluster, verdict, arena))
        return error_no_memory(err);
    return reason.ptr == NULL ? error_no_memory(err)
                              : error_set(err, ERROR_INVALID, "%.*s", SLICE_ARG(reason));
}

static bool is_attached_there(const struct attached *attached, struct slice node)
{
    for (size_t i = 0; i < attached->node_count; i++)
        if (slice_equal(name_slice(attached->nodes[i].name), node))
            return true;
    return attached->node_count == 0;
}

/* A claim may be bound to a volume that the cache does not know yet, whose modes say whether it may
 * be on several nodes: until they are known, it is on one. */
static int check_unknown_volumes(const struct binding *binding, const struct view *view,
                                 const struct pod_object *pod, struct error *err)
{
    const struct bind_call *call = &binding->call;
    bool is_enforced = view->config->read_write_once.mode == MODE_ENFORCE;
    struct attached attached;

    for (size_t i = 0; is_enforced && call->state->api != NULL && i < pod->claim_count; i++) {
        const struct claim *claim =
            cluster_find_claim(view->cluster, pod->meta.ns, pod->claims[i].name);
        bool is_unknown = claim != NULL && claim_has_volume(claim) &&
                          cluster_find_volume(view->cluster, claim) == NULL;
        if (!is_unknown || claim->is_rwop)
            continue;
        if (!attached_find(view, pod, claim, call->arena, &attached))
            return error_no_memory(err);
        if (!is_attached_there(&attached, call->request->node))
            return error_set(err, ERROR_UNAVAILABLE,
                             "claim %.*s/%.*s is in use on node %.*s, and its volume is not known "
                             "yet",
                             SLICE_ARG(name_text(claim->ns)), SLICE_ARG(claim_name(claim)),
                             SLICE_ARG(name_slice(attached.nodes[0].name)));
    }
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

    if (is_created && creation_check_deferral(view, object, err) < 0)
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
    return binding->created == NULL ? assign(binding, pod, err)
                                    : creation_apply(binding->call.state, binding->created, err);
}

/* Takes the pod's claims, and those that are created after it. Its UID may be known only from now
 * on. */
static int take(struct binding *binding, struct pod_object *pod, struct error *err)
{
    struct state *state = binding->call.state;

    pod->node = binding->call.request->node;
    if (binding->created != NULL)
        pod->claim_count = binding->created->claim_count; /* see creation_describe */
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
        cluster_find_pod(&state->cluster, call->request->pod_namespace, call->request->pod_name);
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
            ? !creation_describe(&state->cluster, binding->created, call->arena, &object)
            : !cluster_describe_pod(pod, call->arena, &object))
        return error_no_memory(err);
    if ((binding->created != NULL &&
         creation_check_names(&state->cluster, binding->created, err) < 0) ||
        check_policies(binding, &view, &object, err) < 0 ||
        check_unknown_volumes(binding, &view, &object, err) < 0 ||
        check_agreement(binding, &object, err) < 0 ||
        bind_check_confirmed(binding, &view, &object, err) < 0 ||
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
