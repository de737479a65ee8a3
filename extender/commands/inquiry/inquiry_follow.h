/*
 * inquiry_follow: an inquiry of a live cluster that is kept equal to it: lists each kind and
 * watches it, and calls back whenever something has changed.
 *
 *     int changed(void *context, struct error *err);
 *     bool is_over(void *context);
 *     struct inquiry inquiry;
 *     struct inquiry_origin origin = {.kubeconfig = path};
 *     struct inquiry_wish wish = {.kinds = 1U << KIND_POD};
 *     struct inquiry_follower follower = {.changed = changed, .is_over = is_over};
 *     if (inquiry_open(&inquiry, &origin, err) == 0)
 *         (void)inquiry_follow(&inquiry, &wish, &follower, err);
 *     inquiry_close(&inquiry);
 *
 * What cannot be read at the beginning is an error, or a gap, as in inquiry_read. Later, requests
 * are repeated for ever; stderr says so if a kind is not answered, and when it is again.
 *
 * Threads: one.
 */
#ifndef EXTENDER_COMMANDS_INQUIRY_INQUIRY_FOLLOW_H
#define EXTENDER_COMMANDS_INQUIRY_INQUIRY_FOLLOW_H

#include "extender/commands/inquiry/inquiry.h"

enum {
    FOLLOW_LOOK_MS = 200,        /* between two calls of is_over */
    FOLLOW_PAUSE_MS = 200,       /* at least, between two calls of changed */
    FOLLOW_SHARE_OF_TIME_MAX = 5 /* one part of so many, at most, is spent in `changed` */
};

struct inquiry_follower {
    void *context;
    /* All kinds were read, or something has changed since. inquiry.now_ms is 0, because an answer
     * that depends on the time would change every second. Negative, with err set: stop. */
    int (*changed)(void *context, struct error *err);
    /* Whether to stop. */
    bool (*is_over)(void *context);
};

/* Of the wish, text_sink, list_begins and kinds that are not stored are not served. Returns 0 when
 * it is over. Errors: those of inquiry_read, and of changed. */
int inquiry_follow(struct inquiry *inquiry, const struct inquiry_wish *wish,
                   const struct inquiry_follower *follower, struct error *err);

#endif
