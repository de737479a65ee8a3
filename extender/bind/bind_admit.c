#include "extender/bind/bind_admit.h"

#include "extender/bind/bind_internal.h"
#include "extender/bind/defer_write.h"
#include "extender/bind/give_way.h"

static atomic_uint *reviews_in(struct state *state, struct slice ns)
{
    return &state->reviews_waiting_in[share_of(ns)];
}

/* A Binding without UID is for the pod that has the name when it is applied, which may be another
 * than the one that is judged now. The old path (bindings) has none: API servers remove it there. A
 * dry run is not applied. */
static int check_uid(const struct binding_review *review, struct error *err)
{
    const struct bind_request *request = &review->request;

    return request->pod_uid.len != 0 || review->is_dry_run
               ? 0
               : error_set(err, ERROR_INVALID,
                           "the Binding of pod %.*s/%.*s has no UID, so it might bind a later pod "
                           "of that name: set its metadata.uid to the pod's UID, and post it to "
                           "pods/%.*s/binding (bindings drops the UID)",
                           SLICE_ARG(request->pod_namespace), SLICE_ARG(request->pod_name),
                           SLICE_ARG(request->pod_name));
}

/* Behind what was written for the deferral: the pod has another version then, and perhaps another
 * annotation than the client has seen. */
static int check_annotation(const struct binding *binding, struct error *err)
{
    const struct deferral *deferral = &binding->deferral;
    bool is_written =
        deferral_has_any(deferral) && !slice_equal(binding->version, deferral->version);
    bool is_the_pods = deferral->has_mounts
                           ? slice_equal(binding->annotation, deferral->annotation)
                           : slice_equal(binding->annotation, SLICE(DEFER_FS_MOUNT_OPT_OUT));

    return binding->annotation.ptr == NULL || (is_the_pods && !is_written)
               ? 0
               : error_set(err, ERROR_INVALID,
                           "the Binding of pod %.*s sets the annotation " DEFER_FS_MOUNT_ANNOTATION
                           " to another value than the pod has: leave it out",
                           SLICE_ARG(binding->call.request->pod_name));
}

/* Locks the claims, and writes what is deferred. */
static int prepare(struct binding *binding, struct error *err)
{
    bool asks = binding->locks.claim_count != 0 || deferral_has_any(&binding->deferral);

    if (asks && !bind_may_wait(binding))
        return bind_too_many(err);
    int rc = claim_locks_take(&binding->locks, err);
    if (rc == ERROR_INVALID)
        atomic_fetch_add(&binding->call.state->metrics.bind_conflicts, 1);
    if (rc == 0 && !binding->locks.is_bound)
        rc = binding->created == NULL ? bind_write_deferral(binding, err)
                                      : defer_check(&binding->call, &binding->deferral, err);
    if (rc == 0 && !binding->locks.is_bound)
        rc = check_annotation(binding, err);
    return rc;
}

static enum phase admit(struct binding *binding, struct error *err)
{
    int rc = prepare(binding, err);

    if (rc < 0 && bind_is_refusal(err))
        bind_free_claims(binding);
    else
        bind_doubt_claims(binding, false); /* perhaps there is no other decision in time */
    return rc < 0 && bind_is_stale(binding) ? bind_try_again(binding) : PHASE_END;
}

static void report(struct binding *binding, struct binding_review *review)
{
    bool is_reported = binding->call.state->api == NULL; /* by the take, in a snapshot */

    review->warnings = binding->warnings;
    if (review->is_dry_run || binding->is_bound || is_reported)
        return;
    deferral_report(&binding->deferral, &binding->call);
    bind_warnings_report(&binding->warnings, &binding->call);
}

enum admission bind_admit(struct state *state, struct binding_review *review, struct arena *arena,
                          struct error *err)
{
    struct binding binding = {.call = {.state = state,
                                       .request = &review->request,
                                       .arena = arena,
                                       .deadline_ns = review->deadline_ns},
                              .created = review->created,
                              .annotation = review->annotation,
                              .is_dry_run = review->is_dry_run,
                              .waiting = &state->metrics.reviews_waiting,
                              .waiting_in = reviews_in(state, review->request.pod_namespace)};

    /* a dry run is answered from the cache: anyone who may create pods may ask for thousands */
    binding.is_refreshed = binding.is_claims_confirmed = binding.is_owners_confirmed =
        review->is_dry_run;
    binding.locks.is_review = true;
    binding.locks.is_creation = review->created != NULL;
    if (check_uid(review, err) == 0 && give_way_check(&binding.call, review->is_dry_run, err) == 0)
        bind_run(&binding, admit, err);
    if (err->code == 0 && review->is_dry_run && review->created != NULL && bind_may_wait(&binding))
        (void)defer_check(&binding.call, &binding.deferral, err);
    bind_done_waiting(&binding);
    if (err->code == 0) {
        report(&binding, review);
        return ADMISSION_ALLOWED;
    }
    /* a claim that is not bound to a volume: of pods in general, that may pass; of a Binding, not
     */
    bool is_undecided = binding.deferral.undecided.name.len != 0;
    return binding.verdict.code != CODE_ERROR && (bind_is_refusal(err) || is_undecided)
               ? ADMISSION_DENIED
               : ADMISSION_FAILED;
}
