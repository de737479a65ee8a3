/*
 * who_watch: what `claimguard who --watch` does: prints the answer again whenever it changes, until
 * SIGINT, SIGTERM, or until nobody reads standard output any more.
 *
 * On a terminal, it prints the present answer; elsewhere, a line for each claim whose state has
 * changed; as JSON, one object on a line.
 *
 * Threads: one.
 */
#ifndef EXTENDER_CLI_WHO_WATCH_H
#define EXTENDER_CLI_WHO_WATCH_H

#include "extender/commands/who/who.h"

struct who_watch {
    struct inquiry *inquiry; /* open, of a live cluster */
    const struct who_question *question;
    bool is_json;
    bool *found; /* as in who_answer, of the present answer */

    /* Called once, after the first answer. */
    void (*begin)(void *context);
    void *context;
};

/* Returns 0 when it was ended. Errors: those of inquiry_follow; ERROR_SYSTEM: standard output. */
int who_watch(const struct who_watch *watch, struct error *err);

#endif
