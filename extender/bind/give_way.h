/*
 * give_way: a pod whose Bindings are let pass again and again, and never applied: another webhook
 * or a policy denies each of them, or a webhook cannot be called (status 500, which may also be the
 * answer to a Binding that is applied later). Each one may be applied until BINDING_DEAD_MS, so its
 * claims are kept until then; and the next one begins that time again. If another pod waits for one
 * of these claims, this is not to last: after GIVES_WAY_AFTER_MS (extender/live/seen_locks.h), the
 * pod is refused, what is kept for it runs out, and for some time the others are not in its way.
 *
 * A pod waits that is pending and has no scheduling gate. Whether it could run is not known here.
 *
 * Threads: any; it takes the state's lock.
 */
#ifndef EXTENDER_BIND_GIVE_WAY_H
#define EXTENDER_BIND_GIVE_WAY_H

#include "extender/bind/bind_call.h"

/* Before a bind or a review of the pod takes anything. Errors: ERROR_INVALID: the pod has to give
 * way, and, but for a dry run, what only a filter call has reserved for it is free;
 * ERROR_NO_MEMORY.
 */
int give_way_check(const struct bind_call *call, bool is_dry_run, struct error *err);

#endif
