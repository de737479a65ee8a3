/*
 * findings: what `claimguard doctor` has found: a rule, a place, what is there, and the
 * line to change.
 *
 * Threads: one.
 */
#ifndef EXTENDER_DOCTOR_FINDINGS_H
#define EXTENDER_DOCTOR_FINDINGS_H

#include "config/base/arena.h"
#include "extender/doctor/doctor_rules.h"

enum { FINDINGS_MAX = 1000 };

struct yaml_node;

/* Where something is: a line of a file, or an object of the cluster, in `name`. */
struct location {
    const char *file; /* NULL: not in a file */
    size_t line, column;
    struct slice name; /* "Deployment claimguard/claimguard"; of a file: empty */
};

struct finding {
    const struct rule *rule;
    enum level level; /* the rule's, or a lower one */
    struct location place;
    struct slice what;   /* what is there, and what breaks */
    struct slice change; /* the line to write instead */
};

struct findings {
    struct arena *arena; /* borrowed; has all texts */
    struct finding *items;
    size_t count;
    size_t dropped;       /* beyond FINDINGS_MAX */
    struct slice *unread; /* what was not looked at, and why */
    size_t unread_count;
    bool has_failed; /* no memory */
};

/* The line of a value's key, or of an item of a list. */
struct location finding_place(const struct yaml_node *node);

/* An object of the cluster. */
struct location finding_object(struct findings *findings, const char *kind, struct slice ns,
                               struct slice name);

/* Adds a finding of the rule with that code. Without memory, `has_failed` is set. Returns the
 * finding, for finding_lower; NULL if it was not added. change: borrowed. */
struct finding *finding_add(struct findings *findings, const char *code, struct location place,
                            const char *change, const char *format, ...) PRINTF_LIKE(5, 6);

/* Gives the finding another level than its rule's. NULL is ignored. */
void finding_lower(struct finding *finding, enum level level);

/* Notes that something was not looked at. */
void finding_unread(struct findings *findings, const char *format, ...) PRINTF_LIKE(2, 3);

/* Whether there is a finding of that level, or of a higher one. */
bool findings_reach(const struct findings *findings, enum level level);

/* Sorts by file, line and column, by name, and by code. */
void findings_sort(struct findings *findings);

#endif
