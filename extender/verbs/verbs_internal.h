/* What the files of this folder share. */
#ifndef EXTENDER_VERBS_VERBS_INTERNAL_H
#define EXTENDER_VERBS_VERBS_INTERNAL_H

#include "extender/verbs/verbs.h"

/* A verb writes its answer. Errors: ERROR_INVALID: the request is wrong; others: as answer_failure
 * of verbs.c has them. */
typedef int answer_function(struct state *state, struct scratch *scratch, enum call_result *result,
                            struct error *err);

answer_function answer_volcano_predicate;

#endif
