/*
 * audit_report: the findings of the audit: of objects of its inventory, which may ignore rules.
 *
 * Ownership: the report owns its texts; its records belong to the inventory, which has to stay.
 * Threads: one.
 */
#ifndef EXTENDER_COMMANDS_AUDIT_AUDIT_REPORT_H
#define EXTENDER_COMMANDS_AUDIT_AUDIT_REPORT_H

#include "extender/commands/audit/audit_rules.h"
#include "extender/commands/audit/inventory.h"
#include "extender/report/findings.h"

struct audit_report {
    struct findings findings;
    struct arena arena; /* of their texts */
    struct {
        const struct record *record;
        const struct rule *rule;
        struct slice reason;
    } last_ignore;       /* an object may have many findings of one rule, and a long annotation */
    struct slice ns;     /* only findings about objects of this namespace; empty: all */
    struct slice ignore; /* entries for all objects, of the settings */
    bool has_failed;     /* no memory */
};

/* Must not be moved. */
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

/* Whether the text is an entry of the ignore annotation that is good: codes of rules, a reason. */
bool audit_is_entry(struct slice text);

/* Reports entries of ignore annotations that are not readable: CG001. */
void audit_report_ignores(struct audit_report *report, const struct inventory *inventory);

/* Adds a word to a text, which begins empty: "a, b, c". In the report's arena. */
void audit_list(struct audit_report *report, struct slice *list, struct slice word);

/* "shop/web", or "web" of an object that does not name its namespace. In the report's arena. */
struct slice audit_name(struct audit_report *report, struct slice ns, struct slice name);

#endif
