/* source_internal: what source.c, source_json.c and source_yaml.c share. Only they include it. */
#ifndef CACHE_SNAPSHOT_SOURCE_INTERNAL_H
#define CACHE_SNAPSHOT_SOURCE_INTERNAL_H

#include "cache/json/json_documents.h"
#include "cache/snapshot/input.h"
#include "cache/snapshot/source.h"

struct reading {
    const struct source *source;
    struct source_report *report;
    struct input *input;
    struct arena arena; /* of the object that is being read */
};

/* Decodes one object and passes it to the sinks. text: all but its path. */
int reading_take(struct reading *reading, struct source_text *text, struct error *err);

/* input_fill, with progress. */
int reading_fill(struct reading *reading, struct error *err);

int source_read_json(struct reading *reading, struct error *err);
int source_read_yaml(struct reading *reading, struct error *err);

#endif
