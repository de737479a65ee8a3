/*
 * uid: an object's UID in 16 bytes. The API server assigns lower-case UUIDs, which fit. Any other
 * text (in a hand-written snapshot) is stored as a name, marked by eight leading zero bytes.
 *
 * Ownership: a UID owns its name; uid_release. Threads: as names.
 */
#ifndef CACHE_STORE_UID_H
#define CACHE_STORE_UID_H

#include "cache/store/names.h"

enum { UID_TEXT_BYTES = 36 };

struct uid {
    unsigned char bytes[16]; /* all zero: no UID */
};

/* The UID of that text, if it needs no name. False: it is no UUID as the API server writes them. */
bool uid_parse(struct uid *out, struct slice text);

/* The UID of that text; empty: no UID. Without memory *failed is set. */
struct uid uid_take(struct names *names, struct slice text, bool *failed);

/* The same without a reference, valid as long as an object has that UID. False: none has it. */
bool uid_find(const struct names *names, struct slice text, struct uid *out);

void uid_release(struct names *names, struct uid uid);

/* Whether uid has that text. No UID equals nothing, not even no UID: two unidentified objects must
 * not count as the same. */
bool uid_is(const struct uid *uid, struct slice text);

/* The text, in buffer or in the name; empty for no UID. */
struct slice uid_text(const struct uid *uid, char buffer[UID_TEXT_BYTES]);

#endif
