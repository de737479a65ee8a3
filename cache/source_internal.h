/* What source.c shares with its two formats; nobody else includes this. */
#ifndef CACHE_SOURCE_INTERNAL_H
#define CACHE_SOURCE_INTERNAL_H

#include "cache/input.h"
#include "cache/source.h"

struct reading {
    const struct source *source;
    struct source_report *report;
    struct input *input;
    struct arena arena; /* of the object that is being read */
};

/* apiVersion and kind of an object or of a list, copied, since the window moves on. Longer ones
 * than fit are of no kind that we keep. */
struct type {
    char api_version[64];
    char kind[64];
};

/* Puts a value into one of the two; too long a one as "?". */
void type_put(char field[64], struct slice value);

/* "List", "PodList", ...: its objects are its items. */
bool type_is_list(const struct type *type);

/* The type of an item: its own, else what its list says ("PodList" -> Pod). */
struct type type_of_item(const struct type *item, const struct type *list);

/* Decodes one object and gives it to the sink. place: where text starts; is_source_text: text is a
 * piece of the file, so that places in it can be told, and not made from YAML. */
int reading_take(struct reading *reading, const struct type *type, struct slice text,
                 struct place place, bool is_source_text, struct error *err);

/* input_fill, with progress. */
int reading_fill(struct reading *reading, struct error *err);

int source_read_json(struct reading *reading, struct error *err);
int source_read_yaml(struct reading *reading, struct error *err);

#endif
