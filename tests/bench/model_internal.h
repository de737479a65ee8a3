/* model_internal: what the files model*.c share. Only they include it. */
#ifndef TESTS_BENCH_MODEL_INTERNAL_H
#define TESTS_BENCH_MODEL_INTERNAL_H

#include "model.h"

/* Members of a pod: its metadata's managedFields, and its spec without volumes. */
extern const char model_managed_fields[], model_containers[];

/* A number from 0 to 1 for each stream and index. */
double model_share(const struct model *model, uint64_t stream, unsigned i);

/* The number of the namespace that claim i is in, and the pods that name it. */
unsigned model_namespace(const struct model *model, unsigned claim);

void model_put_uid(const struct model *model, uint64_t stream, unsigned i, struct buf *out);

/* "metadata" without its end: name-i, and a UID of that stream. */
void model_put_meta(const struct model *model, const char *name, uint64_t stream, unsigned i,
                    struct buf *out);

const char *model_access_mode(const struct model *model, unsigned claim);

#endif
