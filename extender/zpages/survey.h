/*
 * survey: counts over all claims and all pods, a few at a time under the lock. It does nothing
 * while no pod defers a mount.
 *
 * Threads: any.
 */
#ifndef EXTENDER_ZPAGES_SURVEY_H
#define EXTENDER_ZPAGES_SURVEY_H

#include "extender/state.h"

enum { SURVEY_ORPHANS_SHOWN_MAX = 50 };

struct survey {
    size_t violations; /* claims of a deferred mount that another pod also holds */
    size_t orphans;    /* deferred volumes whose entry is not in the configuration any more */
};

/* Appends a line to `shown` for each of the first SURVEY_ORPHANS_SHOWN_MAX orphans; shown may be
 * NULL. Takes the state's lock for reading. */
struct survey survey_take(struct state *state, struct buf *shown);

#endif
