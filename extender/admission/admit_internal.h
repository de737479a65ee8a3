/* admit_internal: what admit.c and admit_pod.c share. Only they include it. */
#ifndef EXTENDER_ADMISSION_ADMIT_INTERNAL_H
#define EXTENDER_ADMISSION_ADMIT_INTERNAL_H

#include "extender/admission/admit.h"
#include "extender/admission/review.h"
#include "extender/bind/bind_admit.h"

/* Writes the answer. Errors: ERROR_INVALID: the body is wrong; others: no decision could be made.
 */
typedef int answer_function(struct state *state, const struct admit_call *call,
                            struct scratch *scratch, enum review_result *result, struct error *err);

answer_function admit_pod;

/* When an answer is too late, of monotonic_ns. */
uint64_t admit_deadline_ns(const struct admit_call *call);

/* Errors: ERROR_UNAVAILABLE. */
int admit_check_synced(const struct state *state, struct error *err);

/* Writes the answer by the decision, and logs what is not allowed; err says why it is not. Errors:
 * ERROR_UNAVAILABLE: there is no decision. */
int admit_write(const struct review *review, const struct binding_review *binding,
                enum admission admission, struct buf *out, enum review_result *result,
                struct error *err);

#endif
