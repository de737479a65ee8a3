/*
 * why: why a pod waits: every cause that has to do with its claims and volumes, in the order in
 * which one should look, and what would help: the answer of `claimguard why` as JSON
 * (docs/commands.md), and that JSON as text for people.
 *
 * A call of why_new, then inquiry_read with its why_wish, then why_answer.
 *
 * Threads: one.
 */
#ifndef EXTENDER_INQUIRY_WHY_H
#define EXTENDER_INQUIRY_WHY_H

#include <jansson.h>
#include <stdio.h>

#include "extender/inquiry/inquiry.h"
#include "extender/inquiry/operand.h"

struct config;

/* The pods that are asked about. */
struct why_question {
    const struct operand *operands;
    size_t count;
};

struct why;

/* Ownership: the question is borrowed; why_free, which accepts NULL. NULL: no memory. */
struct why *why_new(const struct why_question *question);
void why_free(struct why *why);

/* What to read of a cluster. It remembers in *why which pods it sees. */
struct inquiry_wish why_wish(struct why *why);

/* {"pods", "notKnown"}. found: for each operand, whether there is such a pod. NULL: no memory. */
json_t *why_answer(struct why *why, const struct inquiry *inquiry, const struct config *config,
                   bool *found);

/* Prints an answer for people. False: it could not be written. */
bool why_print(const json_t *answer, FILE *file);

#endif
