/*
 * survey: what is counted over all claims and all pods, a few at a time under the lock. It costs
 * nothing as long as no pod defers a mount.
 *
 * Threads: any.
 */
#ifndef EXTENDER_ZPAGES_SURVEY_H
#define EXTENDER_ZPAGES_SURVEY_H

#include "extender/state.h"

enum { SURVEY_ORPHANS_SHOWN_MAX = 50 };

struct survey {
    size_t violations; /* claims that other pods hold beside one that mounts them itself */
    size_t orphans;    /* volumes whose entry is gone */
};

/* shown: gets a line for each of the first orphans; may be NULL. Takes the state's lock, for
 * reading. */
struct survey survey_take(struct state *state, struct buf *shown);

#endif
