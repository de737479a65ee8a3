#include "extender/admission/admit_internal.h"
#include "extender/bind/creation.h"
#include "policy/csi_volumes.h"

static int read_pod(const struct admit_call *call, struct scratch *scratch, struct review *review,
                    struct pod_object *pod, struct binding_review *binding, struct error *err)
{
    struct slice body = buf_slice(&scratch->body);

    if (review_read(review, body, &scratch->arena, err) < 0)
        return err->code;
    if (!review_is_of_pod(review))
        return error_set(err, ERROR_INVALID, "body: expected the CREATE of pods");
    int rc = review_read_pod(pod, review, body, &scratch->arena, err);
    if (rc < 0 && rc != ERROR_TOO_BIG)
        return rc;
    *binding = (struct binding_review){.request = {.pod_namespace = review->ns,
                                                   .pod_name = pod->meta.name,
                                                   .pod_uid = pod->meta.uid,
                                                   .node = pod->node},
                                       .created = pod,
                                       .is_dry_run = review->is_dry_run,
                                       .deadline_ns = admit_deadline_ns(call)};
    return rc;
}

/* A pod over a limit: nobody can judge it, so it must not be bound. One that names no node may be
 * stored: its Binding is denied. */
static enum admission decide_too_big(const struct pod_object *pod, struct bind_warnings *warnings,
                                     struct error *err)
{
    bool may_name_node = pod->node.len != 0 || pod->meta.name.len == 0; /* it was not read */

    (void)error_wrap(err, "claimguard cannot judge this pod");
    warnings->items[warnings->count++].text = slice_of(err->message);
    return may_name_node ? ADMISSION_DENIED : ADMISSION_ALLOWED;
}

/* The kubelet runs a static pod, whatever its mirror pod is answered. */
static bool is_judged(const struct review *review, const struct pod_object *pod,
                      struct arena *arena)
{
    bool has_inline = pod->mounts != NULL && mounts_have_inline(pod->mounts);

    return pod->claim_count != 0 || (has_inline && !review_is_of_mirror_pod(review, arena));
}

/* What keeps the pod from running now is a warning. */
static void collect_warnings(const struct verdict *verdict, struct bind_warnings *out)
{
    for (size_t i = 0; i < verdict->reason_count && out->count < WARNINGS_MAX; i++)
        out->items[out->count++].text = verdict->reasons[i];
    for (size_t i = 0; i < verdict->warning_count && out->count < WARNINGS_MAX; i++)
        out->items[out->count++] = verdict->warnings[i];
}

/* Decides about a pod for which a scheduler will choose the node. Under the lock. */
static enum admission decide(const struct view *view, const struct pod_object *created,
                             struct arena *arena, struct bind_warnings *warnings, struct error *err)
{
    const struct policy *decided_by;
    struct verdict verdict;
    struct pod_object pod;
    struct slice reason;

    if (csi_volumes_refuse_inline(view, created, arena, &reason)) {
        (void)error_set(err, ERROR_INVALID, "%.*s", SLICE_ARG(reason));
        return reason.ptr == NULL ? ADMISSION_FAILED : ADMISSION_DENIED;
    }
    if (creation_describe(view->cluster, created, arena, &pod))
        policy_prefilter(view, &pod, arena, &verdict, &decided_by);
    else
        verdict_out_of_memory(&verdict);
    if (verdict.code == CODE_ERROR) {
        (void)error_no_memory(err);
        return ADMISSION_FAILED;
    }
    collect_warnings(&verdict, warnings);
    return ADMISSION_ALLOWED;
}

/* Whether the denial is only that the pod is created once more. Its creator, such as kubectl,
 * expects the API server's own answer then. */
static bool is_there(struct state *state, const struct pod_object *created, struct error *err)
{
    (void)pthread_rwlock_rdlock(&state->lock);
    const struct pod *pod = cluster_find_pod(&state->cluster, created->meta.ns, created->meta.name);
    bool is_there = pod != NULL && !uid_is(&pod->uid, created->meta.uid);
    (void)pthread_rwlock_unlock(&state->lock);
    if (is_there)
        (void)error_set(err, ERROR_INVALID, "pods \"%.*s\" already exists",
                        SLICE_ARG(created->meta.name));
    return is_there;
}

/* Decides about a pod that is to be judged. */
static enum admission decide_pod(struct state *state, struct binding_review *binding,
                                 struct arena *arena, struct error *err)
{
    const struct pod_object *pod = binding->created;

    if (pod->node.len != 0)
        return bind_admit(state, binding, arena, err);
    (void)pthread_rwlock_rdlock(&state->lock);
    struct view view = state_view(state);
    enum admission admission = decide(&view, pod, arena, &binding->warnings, err);
    (void)pthread_rwlock_unlock(&state->lock);
    return admission;
}

int admit_pod(struct state *state, const struct admit_call *call, struct scratch *scratch,
              enum review_result *result, struct error *err)
{
    struct binding_review binding = {.created = NULL};
    struct review review;
    struct pod_object pod = {.claims = NULL};
    enum admission admission = ADMISSION_ALLOWED;

    int rc = read_pod(call, scratch, &review, &pod, &binding, err);
    if (rc < 0 && rc != ERROR_TOO_BIG)
        return rc;
    if (rc < 0) {
        admission = decide_too_big(&pod, &binding.warnings, err);
    } else if (is_judged(&review, &pod, &scratch->arena)) {
        if (admit_check_synced(state, err) < 0)
            return err->code;
        admission = decide_pod(state, &binding, &scratch->arena, err);
    }
    if (admission == ADMISSION_DENIED && is_there(state, &pod, err))
        binding.status_reason = "AlreadyExists";
    return admit_write(&review, &binding, admission, &scratch->answer, result, err);
}
