/*
 * api_store: the objects of api_server.h, and what requests do to them; no sockets, no threads.
 */
#ifndef TESTS_SUPPORT_API_STORE_H
#define TESTS_SUPPORT_API_STORE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/api_server.h"

/* What a watch sends. */
struct api_event {
    char resource[64];
    uint64_t version;
    bool is_fleeting; /* for those that watch now, not for those that resume */
    char *line;
};

struct api_store {
    json_t *objects; /* "pods/default/a" -> the object */
    uint64_t version, oldest;
    uint64_t last_uid;
    struct api_event *events; /* in order */
    size_t event_count;
    enum api_field field;
    bool serves_pages;
};

struct api_request_head {
    char method[16], target[8192], content_type[128];
};

/* A request's path in its parts. */
struct api_path {
    char resource[64], ns[256], name[256], sub[32];
    char query[4096];
};

bool api_path_parse(struct api_path *out, const char *target);

/* The query's value of that key, decoded; "" when there is none. */
const char *api_path_value(const struct api_path *path, const char *key, char *out, size_t size);

void api_store_init(struct api_store *store);

/* Ownership: takes the object. */
void api_store_put(struct api_store *store, json_t *object);
bool api_store_remove(struct api_store *store, const char *resource, const char *ns,
                      const char *name);

/* Borrowed; NULL: there is none. */
json_t *api_store_find(const struct api_store *store, const char *resource, const char *ns,
                       const char *name);

/* Any line, as an event: see api_send_line and api_log_line. */
void api_store_add_line(struct api_store *store, const char *resource, const char *line,
                        bool is_fleeting);

/* A request that is no watch; returns the status. Ownership: *answer is the caller's. */
unsigned api_store_handle(struct api_store *store, const struct api_request_head *head,
                          const char *body, json_t **answer);

/* The lines of a streamed list, up to the bookmark that ends it. Ownership: the caller's. */
char *api_store_stream(const struct api_store *store, const char *resource);

/* A metav1.Status. */
json_t *api_status(unsigned code, const char *reason, const char *message);

#endif
