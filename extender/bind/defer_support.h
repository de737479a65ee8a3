/*
 * defer_method: deferFSMount.apply: Auto. Whether the API server knows the field, by its OpenAPI
 * document (no released one does); else the annotation is written. Asked at start, after every
 * reconnect, since another server may be another version, and after a field was refused. One that
 * has the field's feature gate off has it in the document all the same: what it drops tells.
 *
 * Threads: any; what asks blocks on the API server.
 */
#ifndef EXTENDER_BIND_DEFER_SUPPORT_H
#define EXTENDER_BIND_DEFER_SUPPORT_H

#include "extender/state.h"

enum defer_method { METHOD_UNKNOWN, METHOD_FIELD, METHOD_ANNOTATION };

struct defer_support {
    atomic_int method;               /* enum defer_method: what the API server can take */
    atomic_uint_fast64_t reconnects; /* how many there had been when it was asked */
    uint64_t next_tick_ns;           /* of the thread that ticks, alone */
};

/* Whether the field is written, or the annotation; asks unless it is known. Errors: it cannot be
 * told. */
int defer_support_find(struct state *state, bool *as_field, struct error *err);

/* The field was refused: ask again. */
void defer_support_forget(struct state *state);

/* The field was dropped, though the document has it: the annotation is written until a reconnect.
 */
void defer_support_drop(struct state *state);

/* Asks, if it is time to; called once a second or so, by one thread. */
void defer_support_tick(struct state *state);

/* "Field", "Annotation", "Disabled", "Auto: Field" and so on, as it is configured and known. Under
 * the lock. */
const char *defer_support_text(const struct state *state);

#endif
