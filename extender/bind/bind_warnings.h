/*
 * bind_warnings: what policies warn of, about a pod that is being bound: of the pod, and of the
 * node. Collected when the bind decides, reported once the pod is bound. A pod that was bound
 * already, or by another call, is not reported again.
 *
 * Ownership: the texts lie in the arena of the bind.
 */
#ifndef EXTENDER_BIND_BIND_WARNINGS_H
#define EXTENDER_BIND_BIND_WARNINGS_H

#include "extender/bind/bind_call.h"

struct bind_warnings {
    struct warning items[WARNINGS_MAX]; /* each policy's texts, each once */
    size_t count;
};

/* Collects the verdict's warnings, and those about the node of the request; more than WARNINGS_MAX
 * are left out. Under the lock. Errors: ERROR_NO_MEMORY. */
int bind_warnings_collect(struct bind_warnings *out, const struct verdict *verdict,
                          const struct bind_call *call, struct error *err);

/* Counts each warning, and posts an Event of it. */
void bind_warnings_report(const struct bind_warnings *warnings, const struct bind_call *call);

#endif
