/*
 * deferral: which volumes of a pod are deferred (DeferFSMount, KEP-2857): decided in the cache by
 * policy/defer_fs_mount, kept for one bind, reported, and written on the pod.
 *
 * Ownership: a deferral lies in the arena of its bind.
 */
#ifndef EXTENDER_SERVING_BIND_DEFERRAL_H
#define EXTENDER_SERVING_BIND_DEFERRAL_H

#include "extender/serving/bind/bind.h"

enum { REFUSALS_MAX = 8 }; /* reported about one pod */

/* A volume that is deferred, or is to be. */
struct deferred_volume {
    struct slice name, storage_class, runtime_class;
    struct slice deferred_for; /* UID of the claim for which claimguard defers it; empty: a user
                                  does, or it has no claim */
    uint8_t source;
    bool names_its_claim;         /* that is written */
    bool has_field, is_annotated; /* where it is written, as far as is known */
    bool is_new;                  /* decided now, because of an entry of the configuration */
};

/* What is decided about a pod. */
struct deferral {
    struct deferred_volume *volumes;
    size_t volume_count;
    struct slice *withdrawn; /* volumes that were deferred for an earlier claim, and are not now */
    size_t withdrawn_count;  /* and that the pod is still annotated with */
    size_t withdrawn_total;  /* with those behind them, which are removed from the annotation */
    bool has_mounts; /* the cache has the pod's mounts, and the annotation: it might defer them */
    struct slice annotation;             /* of the pod, when it was decided */
    struct slice version;                /* of the pod, when it was decided; empty: unknown */
    struct slice refusals[REFUSALS_MAX]; /* "volume data: rule 6, ...", though an entry matches */
    size_t refusal_count;
    bool opts_out;                     /* by the annotation: nothing is written */
    struct object_reference undecided; /* a claim that is not bound to a volume, according to the
                                          cache; without a name: there is none */
    bool is_announced; /* a volume has to wait until claimguards agree on its storage class */
    bool is_stale;     /* the pod has changed: the decision has to be repeated */
};

/* Whether anything is, or is to be, on the pod. */
static inline bool deferral_has_any(const struct deferral *deferral)
{
    return deferral->volume_count + deferral->withdrawn_count != 0;
}

/* Decides about the pod's volumes. version: of the pod; 0: unknown. Under the lock. Errors:
 * ERROR_NO_MEMORY; ERROR_UNAVAILABLE: a volume cannot be decided yet, see `undecided`;
 * ERROR_INVALID: a field says that a volume is deferred, and cannot be changed back; or other
 * replicas do not know yet that its claim is for one pod: `is_announced`. */
int deferral_plan(const struct view *view, uint64_t version, const struct pod_object *object,
                  struct arena *arena, struct deferral *out, struct error *err);

/* Records in the cache that these volumes of the pod, which is bound, are deferred; and, as far as
 * the cache does not know that it is bound, that those that were removed from its annotation are
 * not. Under the lock, for writing. */
void deferral_remember(struct state *state, struct pod *pod, const struct deferral *deferral);

/* Counts the volume, if it is newly deferred. */
void deferral_count(struct state *state, const struct deferred_volume *volume);

/* Posts Events: which volumes are not deferred though an entry matches. */
void deferral_report(const struct deferral *deferral, const struct bind_call *call);

/* Counts the volumes that are deferred by entries that are not configured any more, and writes a
 * line for each of the first `most`: "NAMESPACE/POD VOLUME"; out may be NULL if `most` is 0. Under
 * the lock. */
size_t deferral_orphans(const struct view *view, size_t most, struct buf *out);

/* The same for one pod that defers. */
size_t deferral_pod_orphans(const struct view *view, const struct pod *pod, size_t most,
                            struct buf *out);

/* ---- defer_write.c: on the pod; blocks on the API server ---- */

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

/*
 * ---- the field ----
 *
 * Whether the API server supports the field deferFSMount, for deferFSMount.apply:
 * Auto (KEP-2857). Its OpenAPI document shows whether it knows the field (no released version
 * does); if not, the annotation is written. The document is read at start, after every reconnect,
 * since another server may have another version, and after a field was refused. It contains the
 * field even if the feature gate is off: only a write shows that, by a field that is dropped.
 *
 * Any thread; a function that reads the document blocks on the API server.
 */
enum defer_method { METHOD_UNKNOWN, METHOD_FIELD, METHOD_ANNOTATION };

struct defer_support {
    atomic_int method;               /* enum defer_method: what the API server supports */
    atomic_uint_fast64_t reconnects; /* how many there had been when the document was read */
    uint64_t next_tick_ns;           /* used only by the thread that ticks */
};

/* Whether the field is written, or the annotation; reads the document unless the answer is known.
 * Errors: ERROR_UNAVAILABLE and others: unknown. */
int defer_support_find(struct state *state, bool *as_field, struct error *err);

/* The field was refused: the document is read again. */
void defer_support_forget(struct state *state);

/* The field was dropped, though it is in the document: the annotation is written until the next
 * reconnect. */
void defer_support_drop(struct state *state);

/* Reads the document if it is time to. Called about once a second, by one thread. */
void defer_support_tick(struct state *state);

/* What is configured and known: "Field", "Annotation", "Disabled", "Auto: Field", ... Under the
 * lock. */
const char *defer_support_text(const struct state *state);

#endif
