/*
 * api_path: paths of the API server.
 */
#ifndef CACHE_CLIENT_API_PATH_H
#define CACHE_CLIENT_API_PATH_H

#include "cache/client/requests.h"

/* Appends the text, with what a path or a query may not contain as %XX. */
void api_path_escape(struct buf *path, struct slice text);

/* Appends the path of an object. Of a name that no object can have, the path has failed. */
void object_path(struct buf *path, enum kind kind, struct slice ns, struct slice name);

/* Appends the path that the request goes to. */
void request_path(struct buf *path, const struct request *request);

#endif
