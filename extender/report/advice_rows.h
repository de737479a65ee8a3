/*
 * advice_rows: the table of all commands that claimguard prints for a person to run. Nothing
 * outside it prints one: `who`, `why`, `doctor` and error messages name its rows. docs/advice.md is
 * the same table for people (a unit test compares them), and a scenario follows each row that
 * changes something on a real control plane, and goes back (tests/checks/advice-is-followed).
 *
 *     extern json_t *piece; // {"text": ...}
 *     const struct advice_words words = {.ns = SLICE("shop"), .name = SLICE("db-0")};
 *     int rc = advice_row_put(piece, ADVICE_DELETE_POD, &words);
 *
 * A command is for a shell, and is pasted as it is. Its words come from the input, which nobody has
 * checked: a command with a word that means something to a shell is left out.
 *
 * Ownership: words are borrowed. Threads: any. Errors: not 0: no memory.
 */
#ifndef EXTENDER_REPORT_ADVICE_ROWS_H
#define EXTENDER_REPORT_ADVICE_ROWS_H

#include <jansson.h>

#include "config/base/buf.h"
#include "config/base/slice.h"

#define OUT_OF_SERVICE_TAINT "node.kubernetes.io/out-of-service"

/* Commands of texts that are not put together: of rules, for example. */
#define ADVICE_TEXT_APPLY        "kubectl apply -k manifests"
#define ADVICE_TEXT_APPLY_RIGHTS "kubectl apply -f manifests/rbac.yaml"
#define ADVICE_TEXT_LOGS         "kubectl logs -n claimguard deployment/claimguard --previous"
#define ADVICE_TEXT_STATE        "kubectl describe -n claimguard deployment/claimguard"

enum advice_row {
    ADVICE_NONE,
    /* what changes something */
    ADVICE_DELETE_POD,
    ADVICE_DELETE_OLD_POD,
    ADVICE_DELETE_ENDED_POD,
    ADVICE_SUSPEND_JOB,
    ADVICE_SUSPEND_CRON_JOB,
    ADVICE_SCALE,
    ADVICE_KEEP_CLAIMS,
    ADVICE_RECREATE,
    ADVICE_OUT_OF_SERVICE,
    ADVICE_IN_SERVICE,
    ADVICE_KEEP_VOLUME,
    ADVICE_RESERVE_VOLUME,
    ADVICE_DELETE_LOST_CLAIM,
    ADVICE_FORGET_NODE,
    ADVICE_APPLY,
    ADVICE_APPLY_RIGHTS,
    /* what only shows something */
    ADVICE_SEE_OWNERS,
    ADVICE_SEE_WORKLOAD,
    ADVICE_SEE_ROLLOUT,
    ADVICE_SEE_CLAIM,
    ADVICE_SEE_VOLUME,
    ADVICE_SEE_CLAIM_OF_VOLUME,
    ADVICE_SEE_NODE,
    ADVICE_SEE_DRIVERS,
    ADVICE_SEE_ATTACHMENT,
    ADVICE_SEE_STATE,
    ADVICE_SEE_LOGS,
    ADVICE_ROW_COUNT
};

/* What stands for <ns>, <kind>, ... in a row. <what> is in no command, and may be any text. */
struct advice_words {
    struct slice ns, kind, name, claim, count, before, what;
};

/* Texts have holes such as <ns>. */
struct advice_texts {
    const char *name;
    const char *needs;   /* what has been checked before it is advised */
    const char *command; /* for a shell */
    const char *stops;   /* what it stops or destroys; NULL: nothing */
    const char *back;    /* when and how to go back; NULL: there is nothing to go back to */
    const char *undo;    /* the command that goes back; NULL: none does */
};

/* Not of ADVICE_NONE. */
const struct advice_texts *advice_texts(enum advice_row row);

/* Appends the command. False: a word is not plain, or there is no memory. */
bool advice_command_text(struct buf *out, enum advice_row row, const struct advice_words *words);

/* Adds the row to a piece of advice: "advice", "command", "warning" (what it stops), "back",
 * "undo"; not the commands, if a word of them is not plain. */
int advice_row_put(json_t *piece, enum advice_row row, const struct advice_words *words);

#endif
