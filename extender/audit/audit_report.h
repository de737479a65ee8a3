/*
 * audit_report: what the audit has found, and what it could not check.
 *
 * Ownership: the report owns its texts; its records belong to the inventory, which has to stay.
 * Threads: one.
 */
#ifndef EXTENDER_AUDIT_AUDIT_REPORT_H
#define EXTENDER_AUDIT_AUDIT_REPORT_H

#include "extender/audit/audit_rules.h"
#include "extender/audit/inventory.h"

struct audit_finding {
    const struct rule *rule;
    enum level level;            /* the rule's, or a lower one */
    const struct record *record; /* the object */
    struct spot spot;            /* of the field, if it is known */
    struct slice subject;        /* what it is about besides the object: a claim, a driver */
    struct slice message;
    struct slice ignored; /* the reason of the object's annotation; empty: not ignored */
};

enum { AUDIT_GAPS_MAX = 32 };

struct audit_report {
    struct arena arena;
    struct audit_finding *findings;
    size_t count, capacity;
    size_t levels[LEVEL_ERROR + 1]; /* findings that are not ignored */
    size_t ignored;
    size_t objects, skipped; /* of the input: of kinds that the audit reads, and of others */
    struct slice gaps[AUDIT_GAPS_MAX];
    size_t gap_count;
    struct {
        const struct record *record;
        const struct rule *rule;
        struct slice reason;
    } last_ignore; /* an object may have many findings of one rule, and a long annotation */
    bool is_disabled[RULE_COUNT];
    struct slice ns;    /* only findings about objects of this namespace; empty: all */
    enum level fail_on; /* the lowest level that fails; in JUnit XML, the others are skipped */
    bool has_failed;    /* no memory */
};

void audit_report_init(struct audit_report *report);
void audit_report_dispose(struct audit_report *report);

/* What a finding is about. spot: NULL: the object's. */
struct audit_place {
    const struct record *record;
    struct spot spot;
    struct slice subject;
};

/* A place in the object, at a line and column; 0: not known, then the object's. */
struct audit_place audit_place(const struct record *record, uint32_t line, uint32_t column,
                               struct slice subject);

/* Adds a finding, unless its rule is disabled or its namespace is not wanted: then false. Without
 * memory, has_failed is set. */
bool audit_report_add(struct audit_report *report, enum audit_rule_index rule, enum level level,
                      struct audit_place place, const char *format, ...) PRINTF_LIKE(5, 6);

/* Adds something that could not be checked. */
void audit_report_gap(struct audit_report *report, const char *format, ...) PRINTF_LIKE(2, 3);

/* Reports entries of ignore annotations that are not readable: CG001. */
void audit_report_ignores(struct audit_report *report, const struct inventory *inventory);

/* Sorts the findings by file and line, or by namespace, kind and name; then by code. */
void audit_report_sort(struct audit_report *report);

/* "shop/web", or "web" of an object that does not name its namespace. In the report's arena. */
struct slice audit_name(struct audit_report *report, struct slice ns, struct slice name);

#endif
