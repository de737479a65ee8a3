#include "cache/snapshot/source.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cache/json/json_text.h"
#include "cache/snapshot/source_internal.h"

enum {
    OBJECT_ARENA_BYTES_MAX = 32 * 1024 * 1024,
    FORMAT_BYTES = 64 * 1024, /* of a file, which decide its format */
};

/* Passes on the text. object: NULL: its kind is not stored. */
static int take_text(struct reading *reading, const struct source_text *text,
                     const struct object *object, struct error *err)
{
    const struct source *source = reading->source;

    return source->text_sink == NULL ? 0 : source->text_sink(source->context, text, object, err);
}

/* An object of a kind that is not stored. */
static int take_other(struct reading *reading, const struct source_text *text, struct error *err)
{
    int rc = take_text(reading, text, NULL, err);

    reading->report->objects += rc > 0;
    reading->report->skipped += rc == 0;
    return rc < 0 ? rc : 0;
}

/* An object of one of claimguard's own kinds. is_source_text: as for reading_take. */
static int take_own(struct reading *reading, enum own_kind kind, const struct source_text *text,
                    bool is_source_text, struct error *err)
{
    const struct source *source = reading->source;
    struct own_object object;
    struct pull json;

    arena_reset(&reading->arena);
    pull_init(&json, text->text);
    if (own_object_read(&json, kind, &reading->arena, &object))
        return source->own_sink(source->context, &object, err);
    if (!is_source_text)
        json.at = json.start; /* as in reading_take */
    return pull_fail(&json, text->path, text->place, err);
}

int reading_take(struct reading *reading, const struct type *type, struct slice text,
                 struct place place, bool is_source_text, struct error *err)
{
    enum kind kind = kind_of(slice_of(type->api_version), slice_of(type->kind));
    enum own_kind own = own_kind_of(slice_of(type->api_version), slice_of(type->kind));
    const struct source_text source_text = {type, text, reading->input->path, place};
    struct object object;
    struct pull json;

    if (type->kind[0] == '\0')
        return error_set(err, ERROR_INVALID,
                         "%s:%zu:%zu: an object without kind (in a list whose kind comes later, "
                         "each item must say its own)",
                         reading->input->path, place.line, place.column);
    if (own != OWN_NONE && reading->source->own_sink != NULL)
        return take_own(reading, own, &source_text, is_source_text, err);
    if (kind == KIND_OTHER)
        return take_other(reading, &source_text, err);
    arena_reset(&reading->arena);
    pull_init(&json, text);
    if (!object_read(&json, kind, &reading->arena, &object)) {
        if (json.problem ==
            pod_has_too_many_claims) { /* one pod must not make a snapshot unusable */
            reading->report->unreadable++;
            return 0;
        }
        if (!is_source_text)
            json.at =
                json.start; /* the file has no place inside generated text: name the object's */
        return pull_fail(&json, reading->input->path, place, err);
    }
    reading->report->objects++;
    if (take_text(reading, &source_text, &object, err) < 0)
        return err->code;
    return reading->source->sink(reading->source->context, &object, err);
}

int reading_fill(struct reading *reading, struct error *err)
{
    int rc = input_fill(reading->input, err);

    reading->report->bytes_read = reading->input->bytes_read;
    if (reading->source->progress != NULL)
        reading->source->progress(reading->source->progress_context, reading->report);
    return rc;
}

/* Whether the text begins with JSON documents. */
static bool begins_as_json(struct slice seen)
{
    const char *p = seen.ptr;
    const char *end = p + (seen.len < FORMAT_BYTES ? seen.len : FORMAT_BYTES);

    while ((p = json_text_space(p, end)) != end) {
        if (*p != '{' && *p != '[')
            return false;
        struct json_scan scan = json_text_value(p, end, JSON_LEVELS_MAX);
        if (scan.problem != NULL)
            return scan.problem == json_text_ended || scan.problem == json_text_too_deep;
        p = scan.at;
    }
    return true;
}

/* JSON starts with a bracket, after white space; but so does YAML in flow style. A pipe cannot be
 * read twice, so the beginning decides, unless the name of the file does. */
static int read_opened(struct reading *reading, struct error *err)
{
    struct input *input = reading->input;
    bool is_named_json = slice_ends_with(slice_of(input->path), SLICE(".json"));

    for (;;) {
        struct slice seen = input_slice(input);
        const char *end = seen.ptr + seen.len;
        const char *first = json_text_space(seen.ptr, end);
        if (first != end && *first != '{' && *first != '[')
            return source_read_yaml(reading, err);
        if (first != end && (is_named_json || input->at_eof || seen.len >= FORMAT_BYTES))
            return is_named_json || begins_as_json(seen) ? source_read_json(reading, err)
                                                         : source_read_yaml(reading, err);
        int rc = reading_fill(reading, err);
        if (rc < 0 || (rc == 0 && first == end))
            return rc;
    }
}

static int read_file(const struct source *source, const char *path, struct source_report *report,
                     struct error *err)
{
    struct input input;

    if (input_open(&input, path, err) < 0)
        return err->code;
    struct reading reading = {source, report, &input, {0}};
    report->path = input.path;
    report->bytes_read = 0;
    report->bytes_total = input.bytes_total;
    arena_init(&reading.arena, OBJECT_ARENA_BYTES_MAX);
    int rc = read_opened(&reading, err);
    arena_dispose(&reading.arena);
    input_close(&input);
    report->path = NULL;
    return rc;
}

static int is_snapshot_file(const struct dirent *entry)
{
    struct slice name = slice_of(entry->d_name);

    return entry->d_name[0] != '.' &&
           (slice_ends_with(name, SLICE(".json")) || slice_ends_with(name, SLICE(".yaml")) ||
            slice_ends_with(name, SLICE(".yml")));
}

static int read_directory(const struct source *source, struct source_report *report,
                          struct error *err)
{
    struct dirent **entries = NULL;
    int rc = 0;
    int count = scandir(source->path, &entries, is_snapshot_file, alphasort);

    if (count < 0)
        return error_system(err, errno, "%s", source->path);
    if (count == 0)
        rc = error_set(err, ERROR_INVALID, "%s: no *.json, *.yaml or *.yml file in it",
                       source->path);
    for (int i = 0; i < count; i++) {
        char *path = NULL;
        if (rc == 0 && asprintf(&path, "%s/%s", source->path, entries[i]->d_name) < 0)
            rc = error_no_memory(err);
        if (rc == 0)
            rc = read_file(source, path, report, err);
        free(path);
        free(entries[i]);
    }
    free((void *)entries);
    return rc;
}

int source_read(const struct source *source, struct source_report *report, struct error *err)
{
    struct stat status;

    *report = (struct source_report){0};
    if (strcmp(source->path, "-") != 0 && stat(source->path, &status) == 0 &&
        S_ISDIR(status.st_mode))
        return read_directory(source, report, err);
    return read_file(source, source->path, report, err);
}
