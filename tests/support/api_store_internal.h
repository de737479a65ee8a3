/*
 * The parts of api_store: objects and events (api_store.c), requests (api_store_requests.c).
 */
#ifndef TESTS_SUPPORT_API_STORE_INTERNAL_H
#define TESTS_SUPPORT_API_STORE_INTERNAL_H

#include "cache/objects/objects.h"
#include "support/api_store.h"

/* Ends the test. */
void api_store_die(const char *what, const char *detail);

/* The kind of the objects of a resource; kind NULL: no kind has that resource. */
struct api_kind {
    const char *kind, *api_version;
};
struct api_kind api_kind_at(const char *resource);

/* Whether there are objects of that resource. */
bool api_is_served(const char *resource);

/* "" when there is none. */
const char *api_text_at(const json_t *object, const char *outer, const char *key);

/* A finished pod: claimguard watches pods with a selector that leaves them out. */
bool api_is_finished(const json_t *object);

#endif
