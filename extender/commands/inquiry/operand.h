/*
 * operand: an object as kubectl's users name it on a command line: NAME, NS/NAME, and with the kind
 * before it: pod/NAME, pvc/NAME, deploy/NS/NAME, node/NAME.
 *
 * Threads: any.
 */
#ifndef EXTENDER_COMMANDS_INQUIRY_OPERAND_H
#define EXTENDER_COMMANDS_INQUIRY_OPERAND_H

#include "cache/objects/objects.h"
#include "config/base/error.h"

struct operand {
    struct slice ns; /* empty: in any namespace */
    struct slice name;
    enum kind kind;
};

/* Reads a name; kind: of a name without one: KIND_POD, which also takes claims, nodes, and what
 * creates pods; or KIND_CLAIM. ns: the namespace of a name without one;
 * empty: any. What it says before a slash is a kind if it can be one, as in kubectl.
 * Ownership: points into text. Errors: ERROR_INVALID: another kind, or no such name is possible. */
int operand_parse(struct operand *out, const char *text, enum kind kind, struct slice ns,
                  struct error *err);

/* Whether its name is a word for a kind, as in `who pvc data`, where kubectl takes two words. */
bool operand_is_kind_word(const struct operand *operand);

/* Whether it names what creates pods, such as a Deployment. */
bool operand_is_owner(const struct operand *operand);

/* The namespace that all of them are in; empty: there are several, or one may be in any. */
struct slice operands_namespace(const struct operand *operands, size_t count);

/* Whether it has that name, of whatever kind. */
bool operand_is(const struct operand *operand, struct slice ns, struct slice name);

#endif
