/*
 * defer_support: whether the API server supports the field deferFSMount, for deferFSMount.apply:
 * Auto (KEP-2857). Its OpenAPI document shows whether it knows the field (no released version
 * does); if not, the annotation is written. The document is read at start, after every reconnect,
 * since another server may have another version, and after a field was refused. It contains the
 * field even if the feature gate is off: only a write shows that, by a field that is dropped.
 *
 * Threads: any; a function that reads the document blocks on the API server.
 */
#ifndef EXTENDER_BIND_DEFER_SUPPORT_H
#define EXTENDER_BIND_DEFER_SUPPORT_H

#include "extender/state.h"

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
