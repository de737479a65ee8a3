/*
 * why: why a pod waits: every cause that has to do with its claims and volumes, in the order in
 * which one should look, and what would help: the answer of `claimguard why` (docs/commands.md).
 *
 * why_wish() says what inquiry_read() has to read; why_answer() decides, why_print() prints what
 * was decided, why_free() frees it.
 *
 * Threads: one.
 */
#ifndef EXTENDER_COMMANDS_WHY_WHY_H
#define EXTENDER_COMMANDS_WHY_WHY_H

#include <stdio.h>

#include "extender/commands/inquiry/inquiry.h"
#include "extender/commands/inquiry/operand.h"

struct config;

/* The pods that are asked about. Of a claim, a node, or what creates pods: those that wait. */
struct why_question {
    const struct operand *operands;
    size_t count;
    bool is_all;     /* instead of operands: each pod that waits */
    struct slice ns; /* with is_all: only of this namespace; empty: of all */
};

struct why;

/* Ownership: the question is borrowed; why_free, which accepts NULL. NULL: no memory. */
struct why *why_new(const struct why_question *question);
void why_free(struct why *why);

/* What to read of a cluster. It remembers in *why what is read of pods, and Events. */
struct inquiry_wish why_wish(struct why *why);

/* Finds the answer, which *why keeps, until the next one is made; it points into the inquiry.
 * found: for each operand, whether there is such an object. False: no memory. */
bool why_answer(struct why *why, const struct inquiry *inquiry, const struct config *config,
                bool *found);

/* Prints the answer: as a table, JSON or YAML. False: it could not be made, or written. */
bool why_print(const struct why *why, enum output_format format, FILE *file);

#endif
