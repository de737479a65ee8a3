/* inquiry_internal: what the files inquiry*.c share. Only they include it. */
#ifndef EXTENDER_INQUIRY_INQUIRY_INTERNAL_H
#define EXTENDER_INQUIRY_INQUIRY_INTERNAL_H

#include "extender/inquiry/inquiry.h"

/* Passes the text on, and keeps the details that are wanted. object: NULL: its kind is not stored.
 * Returns whether the object is used; negative: an error. */
int inquiry_take(struct inquiry *inquiry, const struct inquiry_wish *wish,
                 const struct source_text *text, const struct object *object, struct error *err);

/* Lists the kinds of the wish. */
int inquiry_read_live(struct inquiry *inquiry, const struct inquiry_wish *wish, struct error *err);

#endif
