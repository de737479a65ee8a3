#include "cache/snapshot/source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/json/json_text.h"
#include "cache/snapshot/source_internal.h"
#include "cache/snapshot/yaml_json.h"

enum {
    OBJECT_ARENA_BYTES_MAX = 32 * 1024 * 1024,
    FORMAT_BYTES = 64 * 1024, /* of a file, which decide its format */
};

/* ---- the window over a file ---- */

/* Opens path, or standard input for "-". Ownership: input_close, on success. */
static int input_open(struct input *input, const char *path, struct error *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    struct stat status;

    *input = (struct input){.path = is_stdin ? "<stdin>" : path, .place = {1, 1}};
    input->fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (input->fd < 0)
        return error_system(err, errno, "%s", input->path);
    input->window = malloc(INPUT_WINDOW_BYTES);
    if (input->window == NULL) {
        (void)close(input->fd);
        return error_no_memory(err);
    }
    input->capacity = INPUT_WINDOW_BYTES;
    if (fstat(input->fd, &status) == 0 && S_ISREG(status.st_mode)) {
        input->bytes_total = (size_t)status.st_size;
        input->is_file = !is_stdin;
    }
    return 0;
}

static void input_close(struct input *input)
{
    free(input->window);
    (void)close(input->fd); /* read only: nothing is lost */
}

/* Makes room after the bytes: moves them to the front, or enlarges the window. */
static int make_room(struct input *input, struct error *err)
{
    size_t kept = input->end - input->begin;

    if (input->begin != 0) {
        memmove(input->window, input->window + input->begin, kept);
        input->begin = 0;
        input->end = kept;
    }
    if (kept < input->capacity / 2)
        return 0;
    if (input->capacity >= INPUT_OBJECT_BYTES_MAX)
        return error_set(err, ERROR_TOO_BIG, "%s:%zu:%zu: one object is over %d MiB", input->path,
                         input->place.line, input->place.column, INPUT_OBJECT_BYTES_MAX >> 20);
    char *larger = realloc(input->window, input->capacity * 2);
    if (larger == NULL)
        return error_no_memory(err);
    input->window = larger;
    input->capacity *= 2;
    return 0;
}

/* As reading_fill. */
static int input_fill(struct input *input, struct error *err)
{
    ssize_t count;

    if (input->at_eof)
        return 0;
    if (make_room(input, err) < 0)
        return err->code;
    do
        count = read(input->fd, input->window + input->end, input->capacity - input->end);
    while (count < 0 && errno == EINTR);
    if (count < 0)
        return error_system(err, errno, "%s", input->path);
    input->at_eof = count == 0;
    input->end += (size_t)count;
    input->bytes_read += (size_t)count;
    return count > 0;
}

/* Where in the file a byte of the window is. */
static uint64_t input_offset(const struct input *input, const char *byte)
{
    return input->bytes_read - (uint64_t)(input->window + input->end - byte);
}

/* Consumes count bytes. */
static void input_consume(struct input *input, size_t count)
{
    const char *start = input->window + input->begin;

    input->place = place_of(start, start + count, input->place);
    input->begin += count;
}

int reading_fill(struct reading *reading, struct error *err)
{
    int rc = input_fill(reading->input, err);

    reading->report->bytes_read = reading->input->bytes_read;
    if (reading->source->progress != NULL)
        reading->source->progress(reading->source->progress_context, reading->report);
    return rc;
}

/* ---- objects ---- */

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

/* An object without kind. */
static int take_foreign(struct reading *reading, const struct source_text *text, struct error *err)
{
    if (!reading->source->skips_foreign)
        return error_set(err, ERROR_INVALID,
                         "%s:%zu:%zu: an object without kind (in a list whose kind comes later, "
                         "each item must say its own)",
                         text->path, text->place.line, text->place.column);
    reading->report->skipped++;
    return 0;
}

/* document_step has read what stands in the file to its end; what was made of YAML nobody has. */
static void start_object(struct pull *json, const struct source_text *text)
{
    if (text->is_made)
        pull_init(json, text->text);
    else
        pull_init_checked(json, text->text);
}

/* An object of one of claimguard's own kinds. */
static int take_own(struct reading *reading, enum own_kind kind, const struct source_text *text,
                    struct error *err)
{
    const struct source *source = reading->source;
    struct own_object object;
    struct pull json;

    arena_reset(&reading->arena);
    start_object(&json, text);
    if (own_object_read(&json, kind, &reading->arena, &object))
        return source->own_sink(source->context, &object, err);
    if (text->is_made)
        json.at = json.start; /* as in take_object */
    return pull_fail(&json, text->path, text->place, err);
}

static int take_object(struct reading *reading, enum kind kind, const struct source_text *text,
                       struct error *err)
{
    struct object object;
    struct pull json;

    arena_reset(&reading->arena);
    start_object(&json, text);
    if (!object_read(&json, kind, &reading->arena, &object)) {
        if (json.problem ==
            pod_has_too_many_claims) { /* one pod must not make a snapshot unusable */
            reading->report->unreadable++;
            return 0;
        }
        if (text->is_made)
            json.at =
                json.start; /* the file has no place inside generated text: name the object's */
        return pull_fail(&json, text->path, text->place, err);
    }
    reading->report->objects++;
    if (take_text(reading, text, &object, err) < 0)
        return err->code;
    return reading->source->sink(reading->source->context, &object, err);
}

int reading_take(struct reading *reading, struct source_text *text, struct error *err)
{
    enum kind kind = kind_of(slice_of(text->type->api_version), slice_of(text->type->kind));
    enum own_kind own = own_kind_of(slice_of(text->type->api_version), slice_of(text->type->kind));

    text->path = reading->input->path;
    if (text->type->kind[0] == '\0')
        return take_foreign(reading, text, err);
    if (own != OWN_NONE && reading->source->own_sink != NULL)
        return take_own(reading, own, text, err);
    return kind == KIND_OTHER || reading->source->sink == NULL
               ? take_other(reading, text, err)
               : take_object(reading, kind, text, err);
}

/* ---- JSON documents, one after the other ---- */

/* Runs a step on the window; repeats it with more bytes if the window ended inside the piece. */
static int run_step(struct reading *reading, struct document *document, struct error *err)
{
    struct input *input = reading->input;
    struct pull json;

    for (;;) {
        arena_reset(&reading->arena);
        if (document_step(document, &json, input_slice(input), &reading->arena))
            break;
        int rc = json.is_truncated ? reading_fill(reading, err) : 0;
        if (rc < 0)
            return rc;
        if (rc == 0)
            return pull_fail(&json, input->path, input->place, err);
    }
    int rc = 0;
    if (document->has_value) {
        struct type type = type_of_item(&document->item, &document->type);
        struct source_text text = {.type = &type,
                                   .text = document->extent,
                                   .place =
                                       place_of(json.start, document->extent.ptr, input->place),
                                   .is_in_file = input->is_file,
                                   .offset = input_offset(input, document->extent.ptr)};
        rc = reading_take(reading, &text, err);
    }
    input_consume(input, (size_t)(json.at - json.start));
    return rc;
}

/* Whether more than white space is left. */
static int has_more(struct reading *reading, struct error *err)
{
    for (;;) {
        struct slice left = input_slice(reading->input);
        const char *first = json_text_space(left.ptr, left.ptr + left.len);
        input_consume(reading->input, (size_t)(first - left.ptr));
        if (first != left.ptr + left.len)
            return 1;
        int rc = reading_fill(reading, err);
        if (rc <= 0)
            return rc;
    }
}

static int read_json(struct reading *reading, struct error *err)
{
    struct document document = {0};
    int rc;

    while ((rc = has_more(reading, err)) > 0) {
        do
            rc = run_step(reading, &document, err);
        while (rc == 0 && document.depth != 0);
        if (rc < 0)
            return rc;
    }
    return rc;
}

/* ---- files ---- */

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
        bool is_foreign = first != end && *first == '[' && reading->source->skips_foreign;
        if (first != end && (is_foreign || (*first != '{' && *first != '[')))
            return source_read_yaml(reading, err); /* which skips a list of anything */
        if (first != end && (is_named_json || input->at_eof || seen.len >= FORMAT_BYTES))
            return is_named_json || begins_as_json(seen) ? read_json(reading, err)
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
    if (source->name != NULL)
        input.path = source->name;
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

bool source_has_name(const char *name)
{
    struct slice text = slice_of(name);

    return name[0] != '.' &&
           (slice_ends_with(text, SLICE(".json")) || slice_ends_with(text, SLICE(".yaml")) ||
            slice_ends_with(text, SLICE(".yml")));
}

static int is_snapshot_file(const struct dirent *entry)
{
    return source_has_name(entry->d_name);
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
        rc = error_set(err, ERROR_INVALID,
                       "%s: no *.json, *.yaml or *.yml file in it (folders in it are not read)",
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

/* ---- places ---- */

/* The last mark at or before the offset. */
static struct place place_of_mark(const struct source_text *text, size_t offset)
{
    size_t low = 0, high = text->mark_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (text->marks[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? text->place : text->marks[low - 1].place;
}

struct place source_text_place(const struct source_text *text, struct slice part)
{
    const char *start = text->text.ptr;

    if (part.ptr == NULL || part.ptr < start || part.ptr > start + text->text.len)
        return text->place;
    return text->is_made ? place_of_mark(text, (size_t)(part.ptr - start))
                         : place_of(start, part.ptr, text->place);
}

size_t source_text_last_line(const struct source_text *text)
{
    return text->mark_count == 0 ? text->place.line : text->marks[text->mark_count - 1].place.line;
}
