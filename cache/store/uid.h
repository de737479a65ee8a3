/*
 * uid: an object's UID in 16 bytes. The API server hands out lower-case UUIDs, which fit; any other
 * text (a hand-written snapshot) is kept as a name instead, and marked by eight leading zero bytes.
 */
#ifndef CACHE_STORE_UID_H
#define CACHE_STORE_UID_H

#include "cache/store/names.h"

enum { UID_TEXT_BYTES = 36 };

struct uid {
    unsigned char bytes[16]; /* all zero: no UID */
};

/* The UID that text says; empty text is no UID. Sets *failed when there is no memory. */
struct uid uid_take(struct names *names, struct slice text, bool *failed);
void uid_release(struct names *names, struct uid uid);

/* Whether uid is the one that text says. No UID is equal to nothing, not even to no UID: two
 * objects of which we do not know who they are must not be taken for one. */
bool uid_is(const struct uid *uid, struct slice text);

/* The text, in buffer or in the names; empty for no UID. */
struct slice uid_text(const struct uid *uid, char buffer[UID_TEXT_BYTES]);

#endif
