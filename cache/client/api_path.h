/*
 * api_path: paths of requests to the API server.
 *
 * Threads: any.
 */
#ifndef CACHE_CLIENT_API_PATH_H
#define CACHE_CLIENT_API_PATH_H

#include "cache/client/requests.h"

/* Appends the text; characters that a path or a query must not contain become %XX. */
void api_path_escape(struct buf *path, struct slice text);

/* Appends the path of the objects of a kind: of that namespace, if it is not empty. */
void api_path_put(struct buf *path, enum kind kind, struct slice ns);

/* Appends the path of an object. path->failed is set if no object can have the name. */
void object_path(struct buf *path, enum kind kind, struct slice ns, struct slice name);

/* Appends the path of the request. */
void request_path(struct buf *path, const struct request *request);

#endif
