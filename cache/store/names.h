/*
 * names: strings that many objects share (namespaces, node names, storage classes, label sets).
 * Each is stored once, with a count of references. Two names of one `names` are equal if and only
 * if their pointers are equal.
 *
 * Threads: many readers (names_find) or one writer.
 */
#ifndef CACHE_STORE_NAMES_H
#define CACHE_STORE_NAMES_H

#include "cache/store/table.h"

struct name {
    struct table_record record;
    uint32_t refs;
    uint32_t len;
    char bytes[];
};

SPACE_REF(name);

struct names {
    struct table table;
};

/* The name for s. Ownership: the caller owns one reference. NULL: s is empty, or there is no
 * memory, then *failed is set. */
struct name *names_take(struct names *names, struct slice s, bool *failed);

/* Releases a reference; NULL is ignored. */
void names_release(struct names *names, struct name *name);

/* The name for s, without a new reference; NULL: it is not stored. */
struct name *names_find(const struct names *names, struct slice s);

void names_dispose(struct names *names);

/* name_hash of the name for s, whether it is stored or not. */
uint32_t names_hash(struct slice s);

static inline struct slice name_slice(const struct name *name)
{
    return name == NULL ? (struct slice){"", 0} : (struct slice){name->bytes, name->len};
}

static inline struct slice name_text(struct name_ref ref)
{
    return name_slice(name_at(ref));
}

static inline uint32_t name_hash(const struct name *name)
{
    return name == NULL ? 0 : name->record.hash;
}

/* ---- UIDs ---- */

/*
 * An object's UID in 16 bytes. The API server assigns lower-case UUIDs, which fit. Any other text
 * (in a hand-written snapshot) is stored as a name, marked by eight leading zero bytes. A UID owns
 * its name: uid_release.
 */

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
