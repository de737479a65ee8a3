/*
 * defer_write: writes a deferral on a pod before the pod is bound, so that no kubelet ever sees the
 * pod without it. deferFSMount.apply says how:
 *
 *   Field        deferFSMount: true in the volume's source (KEP-2857), with
 *                fieldValidation=Strict: an API server that does not know the field reports an
 *                error, instead of dropping the field
 *   Annotation   claimguard.io/defer-fs-mount: "data,logs" on the pod, added to what it has
 *   Auto         Field if the API server knows and keeps the field, else Annotation
 *                (defer_support.h)
 *
 * Beside either, claimguard.io/deferred-for says for which claims claimguard has decided it, by
 * their UIDs: "data=8c7f3f0e-...". A deferral of claimguard's own is removed if it is for an
 * earlier claim, and the present one is not deferred (deferral.h, `withdrawn`). It is removed from
 * both annotations; a field is never removed, and such a pod is refused.
 *
 * An API server whose feature gate is off drops the field and answers 200, in spite of Strict. So
 * only the pod in its answer shows what was written.
 *
 * The precondition of a write is the version of the pod that was decided on. So it fails if the pod
 * has changed since, and it cannot arrive late, at a pod that is bound. The version that the write
 * has made is the Binding's precondition.
 *
 * Threads: any; it blocks on the API server.
 */
#ifndef EXTENDER_BIND_DEFER_WRITE_H
#define EXTENDER_BIND_DEFER_WRITE_H

#include "extender/bind/deferral.h"

/*
 * Writes what is not written yet, and checks the pod in the answer. If all is written, it sends
 * nothing. *version: the pod's version, the precondition; afterwards, the version that the write
 * has made. A failure is logged, and posted as an Event, unless the deferral is stale.
 * Errors: ERROR_UNAVAILABLE and others: not everything is written, as far as is known.
 */
int defer_write(const struct bind_call *call, struct deferral *deferral, struct slice *version,
                struct error *err);

/* For a pod that is being created with its node, and cannot be changed: whether all is on it that
 * defer_write would write. Errors: ERROR_INVALID: a volume is not; others: it is not known in which
 * form it has to be. */
int defer_check(const struct bind_call *call, const struct deferral *deferral, struct error *err);

#endif
