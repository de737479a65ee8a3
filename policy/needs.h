/*
 * needs: which kinds of objects the features in force read. What none of them reads is not watched
 * (cache/watch/informer.h), so a policy that is Off costs no watch and no memory, and needs no
 * rights. docs/policies.md has this table for operators.
 *
 * Threads: any.
 */
#ifndef POLICY_NEEDS_H
#define POLICY_NEEDS_H

#include "cache/cluster/cluster.h"
#include "config/config.h"

/* Whether a verdict, a bind or a preemption may read objects of that kind. */
bool policy_needs(const struct config *config, enum kind kind);

/* The same for all kinds: bits 1 << kind. */
unsigned policy_needed_kinds(const struct config *config);

#endif
