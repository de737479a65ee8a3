/*
 * deferral: DeferFSMount (KEP-2857) written on a pod before it is bound, so that no kubelet ever
 * sees the pod without it. What is written is decided by policy/defer_fs_mount.
 *
 *   Field        deferFSMount: true in the volume's source, with fieldValidation=Strict: an API
 *                server that does not know the field says so, instead of dropping it
 *   Annotation   claimguard.io/defer-fs-mount: "data,logs" on the pod, beside what is there
 *   Auto         Field where the API server knows and keeps it, else Annotation (defer_support.h)
 *
 * An API server whose feature gate is off drops the field with 200, Strict or not: only the pod
 * that it answers with says what is there.
 *
 * A write has the version that was decided on as its precondition: it fails when the pod has
 * changed since, and cannot come late, to a pod that is bound. The version that it made is the
 * Binding's precondition. Nothing is ever taken back.
 */
#ifndef EXTENDER_BIND_DEFER_WRITE_H
#define EXTENDER_BIND_DEFER_WRITE_H

#include "extender/protocol/protocol.h"
#include "extender/state.h"

enum { REFUSALS_MAX = 8 }; /* told of one pod */

/* A volume that is deferred, or is to be. */
struct deferred_volume {
    struct slice name, storage_class, runtime_class;
    uint8_t source;
    bool has_field, is_annotated; /* where it is written, as far as is known */
    bool is_new;                  /* decided now, by an entry */
};

/* What is decided about a pod. All of it lies in the arena. */
struct deferral {
    struct deferred_volume *volumes;
    size_t volume_count;
    struct slice annotation;             /* on the pod, as it was decided on */
    struct slice version;                /* of the pod; empty: unknown */
    struct slice refusals[REFUSALS_MAX]; /* "volume data: rule 6, ...", though an entry matches */
    size_t refusal_count;
    bool opts_out;                     /* by the annotation: nothing is written */
    struct object_reference undecided; /* a claim that is not bound to a volume, as far as is known;
                                          no name: there is none */
    bool is_stale;                     /* the pod has changed: decide again */
};

/* Decides about the pod's volumes. Under the lock. Errors: ERROR_NO_MEMORY; ERROR_UNAVAILABLE: one
 * cannot be decided yet, see `undecided`. */
int deferral_plan(const struct view *view, const struct pod *pod, const struct pod_object *object,
                  struct arena *arena, struct deferral *out, struct error *err);

/*
 * Writes what is not written yet, and looks whether it is there then; nothing is asked when all is.
 * *version: the pod's version as a precondition, then the one that the write made. deadline_ns: of
 * monotonic_ns. Errors: ERROR_UNAVAILABLE and others: not all is written, as far as is known.
 */
int deferral_write(struct state *state, const struct bind_request *request,
                   struct deferral *deferral, struct slice *version, uint64_t deadline_ns,
                   struct arena *arena, struct error *err);

/* The pod, which is bound, is deferred in the cache from now on. Under the lock, for writing. */
void deferral_settle(struct state *state, struct pod *pod, const struct deferral *deferral);

/* Counts what was decided anew. */
void deferral_count(struct state *state, const struct deferral *deferral);

/* Tells the pod what was refused though an entry matches. */
void deferral_tell(struct state *state, const struct bind_request *request,
                   const struct deferral *deferral, struct arena *arena);

/* How many volumes are deferred by entries that are gone; writes a line for each of the first
 * `most`: "NAMESPACE/POD VOLUME"; out may be NULL if that is 0. Under the lock. */
size_t deferral_orphans(const struct view *view, size_t most, struct buf *out);

/* The same for one pod that defers. */
size_t deferral_pod_orphans(const struct view *view, const struct pod *pod, size_t most,
                            struct buf *out);

#endif
