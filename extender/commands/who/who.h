/*
 * who: who holds a claim, who waits for it, and what would free it: the answer of `claimguard who`
 * (docs/commands.md).
 *
 * who_answer() decides, who_print() prints what was decided, who_dispose() frees it. Of a
 * long answer, what is known of a claim is kept only while it is visited: who --all of 100,000
 * claims needs the memory of some hundred.
 *
 * Threads: one.
 */
#ifndef EXTENDER_COMMANDS_WHO_WHO_H
#define EXTENDER_COMMANDS_WHO_WHO_H

#include <stdio.h>

#include "extender/commands/inquiry/inquiry.h"
#include "extender/commands/inquiry/operand.h"

/* The claims that are asked about. */
struct who_question {
    const struct operand *operands;
    size_t count;
    bool is_all;                 /* instead of operands: each claim that a pod waits for */
    struct slice ns;             /* with is_all: only of this namespace; empty: of all */
    const struct config *config; /* by which pods are judged; borrowed */
};

/* What to read of a cluster. Ownership: the question is borrowed. */
struct inquiry_wish who_wish(const struct who_question *question);

struct who_claim;

struct who_answer {
    bool is_all;
    size_t count;     /* of claims */
    struct gaps gaps; /* what the input lacks */

    /* only for who.c: */
    struct who_item *items; /* of claims: by name; with is_all, that with the longest wait first */
    const struct inquiry *inquiry;
    const struct config *config;
    struct who_index *index;
    struct arena arena; /* of all this */
};

/* found: for each operand, set if there is such a claim, or a pod names it. Ownership: who_dispose,
 * also after false: no memory. The answer points into the inquiry, and is valid until another one
 * is made. */
bool who_answer(struct who_answer *out, const struct inquiry *inquiry,
                const struct who_question *question, bool *found);
void who_dispose(struct who_answer *answer);

/* Calls visit with each claim, which is valid until visit returns. False: visit has returned that,
 * or there is no memory. */
bool who_each(const struct who_answer *answer,
              bool (*visit)(void *context, const struct who_claim *claim), void *context);

/* The same with that claim of the answer only. */
bool who_visit(const struct who_answer *answer, const struct claim *claim,
               bool (*visit)(void *context, const struct who_claim *claim), void *context);

/* Puts "claims" and "notKnown" into an object. */
void who_put(struct fields *out, const struct who_answer *answer);

/* Prints an answer: as a table, JSON or YAML. False: it could not be made, or written. */
bool who_print(const struct who_answer *answer, enum output_format format, FILE *file);

#endif
