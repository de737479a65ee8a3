/*
 * triage: many pods that wait, put together by what they wait for: a line for each cause, that for
 * which most pods wait first. `who --all` and `why --all` print it.
 *
 *     extern const struct triage_member *member;
 *     struct triage triage;
 *     triage_init(&triage);
 *     bool ok = triage_add(&triage, member) && triage_sort(&triage) &&
 *               triage_print(&triage, &(struct sheet_style){0}, stdout);
 *     triage_dispose(&triage);
 *
 * Ownership: texts of members are copied; subjects are borrowed. Threads: one.
 */
#ifndef EXTENDER_COMMANDS_WHO_TRIAGE_H
#define EXTENDER_COMMANDS_WHO_TRIAGE_H

#include <stdio.h>

#include "extender/commands/who/who_claim.h"

/* A pod that waits. Those with the same cause and object are of one group. */
struct triage_member {
    struct slice cause;  /* "DriverNotRegistered"; "its holder" */
    struct slice what;   /* "driver disk.example.com"; empty: not known */
    struct slice name;   /* of the subject, in a column of its own; empty: there is no column */
    const void *subject; /* what the caller can say more about */
    const struct who_pod *pod;
    bool is_last; /* its group comes after those that are not: it has nothing to do with claims */
};

struct triage_entry {
    struct slice cause, what, name, since, node;
    struct slice owner_ns, owner_kind, owner; /* a pod without one is its own */
    const void *subject;
    bool is_last;
};

/* What waits for the same: entries side by side, that with the longest wait first. */
struct triage_group {
    const struct triage_entry *entries;
    size_t pods, owners, names, nodes;
    bool is_mixed; /* its owners are of several kinds */
};

struct triage {
    struct triage_entry *entries;
    struct triage_group *groups; /* after triage_sort: in the order in which to look */
    size_t count, group_count;
    struct arena arena;
};

void triage_init(struct triage *triage);
void triage_dispose(struct triage *triage);

/* False: no memory. */
bool triage_add(struct triage *triage, const struct triage_member *member);
bool triage_sort(struct triage *triage);

/* "3 pods of Deployment shop/web wait for driver disk.example.com on 2 nodes (NotAttached), the
 * longest since 2026-11-22T09:30:00Z" */
void triage_put_heading(struct buf *line, const struct triage_group *group);

/* Puts a list of the groups under "groups" into an object. */
void triage_put(struct fields *out, const struct triage *triage);

/* Prints a line for each group. False: no memory, or it could not be written. */
bool triage_print(const struct triage *triage, const struct sheet_style *style, FILE *file);

#endif
