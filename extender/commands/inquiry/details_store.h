/*
 * details_store: the details (details.h) of objects that a command may ask about. Of an object in a
 * JSON file it stores only where the object is, in 16 bytes, and reads it again if it is asked for;
 * of any other, it stores the text. So a question about all of 150,000 pods takes no more memory,
 * and no more time, than the answer needs.
 *
 * An object that is stored again, as from two files, has the later details.
 *
 * Threads: one.
 */
#ifndef EXTENDER_COMMANDS_INQUIRY_DETAILS_STORE_H
#define EXTENDER_COMMANDS_INQUIRY_DETAILS_STORE_H

#include "cache/objects/details.h"
#include "cache/snapshot/source.h"

enum { DETAILS_BYTES_MAX = 64 * 1024 /* of one object */ };

struct details_store;

/* lost: counts the objects whose details are not known, although they were to be stored: they are
 * over DETAILS_BYTES_MAX, their file has changed, or a field is of a wrong type, of which `first`
 * names the first. Both are borrowed. Ownership: details_store_free. NULL: no memory. */
struct details_store *details_store_new(size_t *lost, struct error *first);
void details_store_free(struct details_store *store);

/* Errors: the text is not such an object, or no memory. */
int details_store_put(struct details_store *store, const struct source_text *text,
                      const struct object *object, struct error *err);

/* The object is gone: what was put is freed, unless it is in a file. */
void details_store_drop(struct details_store *store, enum kind kind, struct slice ns,
                        struct slice name);

/* The text for details.h, which can be read: without memory it cannot. Valid until
 * details_store_forget; {NULL, 0}: not known. */
struct slice details_store_find(struct details_store *store, enum kind kind, struct slice ns,
                                struct slice name);

/* Frees the texts that were read again. */
void details_store_forget(struct details_store *store);

#endif
