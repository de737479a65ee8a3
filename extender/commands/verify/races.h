/*
 * races: whether a claim gets two pods, for each way to bind the second one: the rows of
 * docs/guarantees.md that can be tried in any cluster. Two pods name one claim. Both are bound at
 * the same moment, then each once more, one after the other; and the API server is asked which of
 * them have a node. A scheduler gets a pod whose claim another pod has.
 *
 *     extern struct trial trial;
 *     struct verify_row rows[VERIFY_ROW_COUNT] = {{.holds = HOLDS_NOT_TRIED}};
 *     if (races_run(&trial, "claimguard-scheduler", rows, err) < 0)
 *         return err->code;
 *
 * Threads: one.
 */
#ifndef EXTENDER_COMMANDS_VERIFY_RACES_H
#define EXTENDER_COMMANDS_VERIFY_RACES_H

#include "extender/commands/verify/trial.h"

enum verify_who {
    VERIFY_BINDING,   /* pods/NAME/binding */
    VERIFY_OLD_PATH,  /* bindings */
    VERIFY_NODE_NAME, /* a pod with spec.nodeName */
    VERIFY_SCHEDULER, /* one that calls claimguard */
    VERIFY_AWAY,      /* anybody, while claimguard does not answer */
    VERIFY_ROW_COUNT
};

enum verify_holds { HOLDS_NOT_TRIED, HOLDS_NO, HOLDS_YES };

struct verify_row {
    enum verify_holds holds;
    bool is_asked;     /* the exit status depends on it */
    bool has_two;      /* a claim got two pods: nobody was stopped */
    struct slice seen; /* what was seen, in words */
};

/* As in docs/guarantees.md. */
const char *verify_who_text(enum verify_who who);

/* Tries all but the last one. scheduler: its name, as pods have it; NULL: none is tried. Texts are
 * in the arena of the API. Errors: as those of the trial. */
int races_run(struct trial *trial, const char *scheduler, struct verify_row *rows,
              struct error *err);

/* ---- only for the files races*.c ---- */

/* The row VERIFY_SCHEDULER. */
int race_scheduler(struct trial *trial, const char *scheduler, struct verify_row *row,
                   struct error *err);

#endif
