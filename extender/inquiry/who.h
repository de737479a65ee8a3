/*
 * who: who holds a claim, who waits for it, and what would free it: the answer of `claimguard who`
 * as JSON (docs/commands.md), and that JSON as text for people.
 *
 * Threads: one.
 */
#ifndef EXTENDER_INQUIRY_WHO_H
#define EXTENDER_INQUIRY_WHO_H

#include <jansson.h>
#include <stdio.h>

#include "extender/inquiry/inquiry.h"
#include "extender/inquiry/operand.h"

/* The claims that are asked about. */
struct who_question {
    const struct operand *operands;
    size_t count;
    bool is_all;     /* instead of operands: each claim that a pod waits for */
    struct slice ns; /* with is_all: only of this namespace; empty: of all */
};

/* What to read of a cluster. Ownership: the question is borrowed. */
struct inquiry_wish who_wish(const struct who_question *question);

/* {"claims", "notKnown"}. found: for each operand, whether there is such a claim, or a pod names
 * it. NULL: no memory. */
json_t *who_answer(const struct inquiry *inquiry, const struct who_question *question, bool *found);

/* Adds "NS/NAME, ...": claims of the same name in other namespaces, a few. */
void who_similar(const struct inquiry *inquiry, const struct operand *operand, struct buf *out);

/* Prints an answer for people. is_all: a row for each claim. False: it could not be written. */
bool who_print(const json_t *answer, bool is_all, FILE *file);

#endif
