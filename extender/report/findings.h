/*
 * findings: what a command checks, has found, and could not check.
 *
 * - A rule (`claimguard audit`, `claimguard doctor`) is a code, a level and texts in a table. From
 *   it come the findings' titles, `--explain`, and the pages of docs/.
 * - A gap is what an input does not have, or could not be read, and would matter to an answer: a
 *   text for people, and the rules that were not checked for it.
 * - A finding is of a rule: where, what is there, and what to write instead. Findings and gaps are
 *   printed as a table, JSON, YAML, SARIF 2.1.0 or JUnit XML.
 *
 *     enum { CG102 };
 *     static const struct rule rules[] = {[CG102] = {.code = "CG102"}, {.code = NULL}};
 *     const struct location place = {.file = path, .line = 3, .column = 1};
 *     struct findings findings;
 *     findings_init(&findings, rules, "doctor", arena);
 *     finding_add(&findings, CG102, place, "type: Recreate", "the rollout cannot end");
 *     gaps_add(&findings.gaps, GAP_RULE(CG102), "the input has no ReplicaSets of %s", "shop");
 *     bool ok = findings_print(&findings, OUTPUT_SARIF);
 *     findings_dispose(&findings);
 *
 * Threads: one; rules: any. What prints writes to stdout, if it is not given a file.
 */
#ifndef EXTENDER_REPORT_FINDINGS_H
#define EXTENDER_REPORT_FINDINGS_H

#include <stdio.h>

#include "config/base/arena.h"
#include "config/base/error.h"
#include "extender/report/fields.h"

/* ---- rules ---- */

/* LEVEL_NEVER: of no finding; for --fail-on. */
enum level { LEVEL_NOTE, LEVEL_WARNING, LEVEL_ERROR, LEVEL_NEVER };

/* Texts are Markdown without headings, with lines of at most 100 columns. */
struct rule {
    const char *code;  /* "CG510": never used for another rule, also if this one goes */
    enum level level;  /* the highest one of its findings */
    const char *title; /* what is wrong, in one line without a period */
    const char *what;  /* when it fires; NULL: the title says so */
    const char *why;   /* what breaks */
    const char *mend;  /* what to change */
    const char *link;  /* to the documents of Kubernetes; NULL: none */
};

/* A table of rules is in the order of their codes, and ends with a rule whose code is NULL. */

/* In capital or small letters. NULL: there is no rule of that code. */
const struct rule *rule_find(const struct rule *rules, struct slice code);

/* "note", "warning", "error"; of LEVEL_NEVER "never". */
const char *level_text(enum level level);

/* Prints "1 error, 0 warnings, 2 notes". counts: of each level below LEVEL_NEVER. */
void level_print_counts(const size_t *counts, FILE *file);

/* Reads such a word. False for any other. */
bool level_parse(enum level *out, const char *word);

/* Prints the page of that rule; or for "all" a table of all rules, and their pages.
 * Errors: ERROR_NOT_FOUND; ERROR_SYSTEM: it could not be written. */
int rules_explain(const struct rule *rules, const char *code, struct error *err);

/* ---- gaps ---- */

/* The bit of a rule, by its index in its table; those of all from one to another. */
#define GAP_RULE(index)        (UINT64_C(1) << (index))
#define GAP_RULES(first, last) (GAP_RULE(last) * 2 - GAP_RULE(first))

struct gap {
    uint64_t rules; /* bits GAP_RULE; 0: of no rule, or of all a little */
    struct slice text;
};

/* Texts are in the arena, which is borrowed. */
struct gaps {
    struct arena *arena;
    struct gap *items;
    size_t count;
    bool has_failed; /* no memory */
};

void gaps_add(struct gaps *gaps, uint64_t rules, const char *format, ...) PRINTF_LIKE(3, 4);

/* The list of their texts, under that key. */
void gaps_put(struct fields *out, const char *key, const struct gaps *gaps);

/* Prints a line for each, with these words before and after its text. */
void gaps_print(const struct gaps *gaps, const char *before, const char *after, FILE *file);

/* ---- findings ---- */

/* Where something is: a line of a file, or an object of the cluster; perhaps both. Texts are
 * borrowed. */
struct location {
    const char *file; /* NULL: not in a file */
    uint32_t line, column;
    uint32_t kind_order;   /* among objects of one namespace */
    const char *kind;      /* "Deployment"; NULL: the name says it all */
    struct slice ns, name; /* of the object */
};

struct finding {
    const struct rule *rule;
    enum level level; /* the rule's, or a lower one */
    struct location place;
    struct slice what;    /* what is there, and what breaks */
    struct slice change;  /* the line to write instead; empty: none is known */
    struct slice subject; /* what else it is about: a claim, a driver; or the same as what */
    struct slice ignored; /* why the object ignores the rule; empty: it does not */
    bool is_known;        /* ignored because a baseline has it */
};

struct findings {
    const struct rule *rules; /* a table */
    const char *command;      /* that has found them */
    struct arena *arena;      /* borrowed; has all texts */
    struct finding *items;
    size_t count;
    size_t most;             /* findings that are kept; the others are only counted */
    size_t dropped;          /* these */
    struct gaps gaps;        /* what was not checked */
    uint64_t disabled;       /* bits GAP_RULE: rules that are not checked by wish */
    enum level fail_on;      /* the lowest level that fails */
    bool are_of_objects;     /* each one is about an object of the input, which has a column */
    bool is_incomplete;      /* an object of the input could not be read: it is an error */
    size_t objects, skipped; /* of the input, then: objects that were read, and of other kinds */
    bool has_failed;         /* no memory */
};

/* command: "audit". Ownership: findings_dispose. */
void findings_init(struct findings *findings, const struct rule *rules, const char *command,
                   struct arena *arena);
void findings_dispose(struct findings *findings);

/* Adds a finding of the rule of that index. Without memory, `has_failed` is set. Returns the
 * finding, until the next one is added; NULL if it was not added. change: borrowed; "": none.
 * finding_vadd: without a subject; else it is what is there. */
struct finding *finding_add(struct findings *findings, unsigned rule, struct location place,
                            const char *change, const char *format, ...) PRINTF_LIKE(5, 6);
struct finding *finding_vadd(struct findings *findings, unsigned rule, struct location place,
                             const char *format, va_list arguments) PRINTF_LIKE(4, 0);

/* Gives the finding another level than its rule's. NULL is ignored. */
void finding_lower(struct finding *finding, enum level level);

/* Whether it is of the level that fails, or of a higher one, and is not ignored. */
static inline bool finding_fails(const struct findings *findings, const struct finding *finding)
{
    return finding->ignored.len == 0 && finding->level >= findings->fail_on;
}

/* Whether there is one that fails. */
bool findings_fail(const struct findings *findings);

/* Sorts by file, line and column; by namespace, kind and name; by code. */
void findings_sort(struct findings *findings);

/* Prints them to standard output, each as it is made. False if something could not be made or
 * written. format: not OUTPUT_WIDE. */
bool findings_print(const struct findings *findings, enum output_format format);

/* The keys of their JSON, in an object that is open. */
void findings_put(struct fields *out, const struct findings *findings);

/* ---- only for the files findings*.c ---- */

enum { FINDING_BYTES_MAX = 16 << 20 /* nobody has checked the length of a name in a file */ };

/* One format each. False if something could not be made or written. */
bool findings_sarif(const struct findings *findings);
bool findings_junit(const struct findings *findings);

/* "Deployment shop/web"; the file, if it has no object. */
void finding_put_object(struct buf *out, const struct location *place);

/* "web.yaml:12:9"; otherwise: what an object in no file has there. */
void finding_put_place(struct buf *out, const struct location *place, struct slice otherwise);

#endif
