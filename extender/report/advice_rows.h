/*
 * advice_rows: the table of all commands that claimguard prints for a person to run. Nothing
 * outside it prints one: `who`, `why`, `doctor` and error messages name its rows. docs/advice.md is
 * the same table for people (a unit test compares them), and a scenario follows each row that
 * changes something on a real control plane, and goes back (tests/checks/advice-is-followed).
 *
 *     const struct advice_words words = {.ns = SLICE("shop"), .name = SLICE("db-0")};
 *     struct advice_list advice = {.arena = arena};
 *     advice_list_add(&advice, "pod %s is deleted", "shop/db-0");
 *     advice_list_row(&advice, ADVICE_DELETE_POD, &words);
 *
 * A command is for a shell, and is pasted as it is. Its words come from the input, which nobody has
 * checked: a command with a word that means something to a shell is left out.
 *
 * Ownership: words are borrowed. Threads: any.
 */
#ifndef EXTENDER_REPORT_ADVICE_ROWS_H
#define EXTENDER_REPORT_ADVICE_ROWS_H

#include "config/base/arena.h"
#include "config/base/buf.h"
#include "extender/report/fields.h"

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
    ADVICE_END_OLD,
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
    ADVICE_SEE_POD,
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

/* ---- lists ---- */

/* A piece of advice: what to do, and perhaps a row's texts with their words. Empty: there is none.
 */
struct advice_piece {
    struct slice text;
    const char *row; /* its name; NULL: no row */
    struct slice command, warning, back, undo;
    bool has_stops; /* the warning begins with what the row says */
};

/* Texts are in the arena, which is borrowed. */
struct advice_list {
    struct arena *arena;
    struct advice_piece *items;
    size_t count;
    bool is_left_out; /* the last piece */
    bool is_else;     /* the next piece is what to do instead of those before: it says so */
    bool has_failed;  /* no memory */
};

/* Begins a piece. */
void advice_list_add(struct advice_list *list, const char *format, ...) PRINTF_LIKE(2, 3);
void advice_list_vadd(struct advice_list *list, const char *format, va_list arguments)
    PRINTF_LIKE(2, 0);

/* The last piece is of that row. If an earlier piece has its command, the last one is left out. */
void advice_list_row(struct advice_list *list, enum advice_row row,
                     const struct advice_words *words);

/* The last piece is for good: it does not say how to go back. */
void advice_list_stay(struct advice_list *list);

/* What else the last piece destroys or stops; it is added to what its row says. */
void advice_list_warn(struct advice_list *list, const char *format, ...) PRINTF_LIKE(2, 3);

/* Leaves out pieces that are the same as an earlier one. */
void advice_list_leave_out_repeated(struct advice_list *list);

/* Leaves out what stands behind the first piece with a command: what to do first. */
struct advice_list advice_list_first(const struct advice_list *list);

/* Adds all pieces of `more`, whose texts live as long. */
void advice_list_append(struct advice_list *list, const struct advice_list *more);

/* A list of objects, under that key. */
void advice_list_put(struct fields *out, const char *key, const struct advice_list *list);

#endif
