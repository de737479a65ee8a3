/*
 * claimguard snapshot: lists each kind of a live cluster, page by page, and writes the fields that
 * decisions need, object by object. If a list has to start again, its part of the file is
 * overwritten.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/objects/details.h"
#include "cache/objects/own_object.h"
#include "extender/cli/commands.h"
#include "extender/commands/audit/reading.h"
#include "extender/commands/inquiry/inquiry.h"

enum { OBJECT_TEXT_BYTES_MAX = 32 << 20 };

struct capture {
    struct inquiry inquiry;
    struct inquiry_wish wish;
    FILE *file;
    const char *path; /* for error messages */
    struct buf text;
    off_t start;         /* where the objects of this kind begin in the file */
    bool has_item;       /* of the kinds before */
    size_t objects;      /* of the kinds before */
    size_t kind_objects; /* of this kind */
};

static void begin_list(void *context, enum kind kind)
{
    struct capture *capture = context;

    (void)kind;
    (void)fseeko(capture->file, capture->start, SEEK_SET);
    capture->kind_objects = 0;
}

/* Between the items of the file. */
static const char *separator(const struct capture *capture)
{
    return capture->has_item || capture->kind_objects != 0 ? ",\n" : "\n";
}

/* Also says that there are no more, so that a kind without objects is no gap. */
static void end_list(void *context, enum kind kind, bool is_whole)
{
    struct capture *capture = context;

    if (is_whole)
        (void)fprintf(capture->file,
                      "%s{\"apiVersion\":\"" OWN_API_VERSION
                      "\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\"}}",
                      separator(capture), own_kind_text(OWN_LISTED_RESOURCE), kind_resource(kind));
    capture->has_item = capture->has_item || is_whole || capture->kind_objects != 0;
    capture->objects += capture->kind_objects;
    capture->kind_objects = 0;
    capture->start = ftello(capture->file);
}

/* The snapshot is of use without the kind: a command that misses it says so. Of a namespace, few
 * people may list nodes. */
static void report_missing(void *context, const struct error *err)
{
    (void)context;
    (void)fprintf(stderr, "claimguard: %s; captured without them\n", err->message);
}

static int take(void *context, const struct source_text *text, const struct object *object,
                struct error *err)
{
    struct capture *capture = context;
    const struct pull_table more = reading_table(object->kind);

    buf_reset(&capture->text, OBJECT_TEXT_BYTES_MAX);
    buf_put(&capture->text, slice_of(separator(capture)));
    if (object_project(text->text, object->kind, &more, &capture->text, err) < 0)
        return err->code;
    if (fwrite(capture->text.bytes, 1, capture->text.len, capture->file) != capture->text.len)
        return error_system(err, errno, "%s", capture->path);
    capture->kind_objects++;
    return 1;
}

static int capture_all(struct capture *capture, struct error *err)
{
    (void)fputs("{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[", capture->file);
    capture->start = ftello(capture->file);
    if (inquiry_read(&capture->inquiry, &capture->wish, err) < 0)
        return err->code;
    (void)fseeko(capture->file, capture->start, SEEK_SET);
    (void)fputs("\n]}\n", capture->file);
    if (fflush(capture->file) != 0 ||
        ftruncate(fileno(capture->file), ftello(capture->file)) != 0 || ferror(capture->file) != 0)
        return error_system(err, errno, "%s", capture->path);
    return 0;
}

/* Copies the finished file to standard output, a device or a pipe, which cannot be overwritten. */
static int copy_to(FILE *stream, const struct capture *capture, struct error *err)
{
    char piece[65536];

    rewind(capture->file);
    for (size_t count; (count = fread(piece, 1, sizeof piece, capture->file)) != 0;)
        if (fwrite(piece, 1, count, stream) != count)
            return error_system(err, errno, "%s", capture->path);
    if (ferror(capture->file))
        return error_system(err, errno, "/tmp");
    return fflush(stream) == 0 ? 0 : error_system(err, errno, "%s", capture->path);
}

/* Whether the path exists and is not a regular file. A symbolic link counts, so that it is written
 * through, not replaced: /dev/stdout is one. */
static bool is_stream(const char *path)
{
    struct stat status;

    return lstat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

static int write_stream(struct capture *capture, FILE *stream, struct error *err)
{
    capture->file = tmpfile();
    int rc = capture->file == NULL ? error_system(err, errno, "/tmp") : capture_all(capture, err);

    if (rc == 0)
        rc = copy_to(stream, capture, err);
    if (capture->file != NULL)
        (void)fclose(capture->file);
    return rc;
}

/* Writes PATH.partial, and renames it to PATH when it is complete. */
static int write_file(struct capture *capture, struct error *err)
{
    char *temporary = NULL;

    if (asprintf(&temporary, "%s.partial", capture->path) < 0)
        return error_no_memory(err);
    capture->file = fopen(temporary, "w+e");
    int rc = capture->file == NULL ? error_system(err, errno, "%s", temporary)
                                   : capture_all(capture, err);
    if (capture->file != NULL && fclose(capture->file) != 0 && rc == 0)
        rc = error_system(err, errno, "%s", capture->path);
    if (rc == 0 && rename(temporary, capture->path) != 0)
        rc = error_system(err, errno, "%s", capture->path);
    if (rc < 0)
        (void)unlink(temporary);
    free(temporary);
    return rc;
}

static int write_somewhere(struct capture *capture, const char *path, struct error *err)
{
    if (path == NULL || strcmp(path, "-") == 0)
        return write_stream(capture, stdout, err);
    if (!is_stream(path))
        return write_file(capture, err);
    FILE *stream = fopen(path, "we");
    if (stream == NULL)
        return error_system(err, errno, "%s", path);
    int rc = write_stream(capture, stream, err);
    if (fclose(stream) != 0 && rc == 0)
        rc = error_system(err, errno, "%s", path);
    return rc;
}

int command_snapshot(const struct arguments *arguments, struct error *err)
{
    const char *path = arguments->output;
    bool to_stdout = path == NULL || strcmp(path, "-") == 0;
    const struct inquiry_origin origin = {.kubeconfig = arguments->kubeconfig,
                                          .context = arguments->context};
    struct capture capture = {.path = to_stdout ? "standard output" : path,
                              .wish = {.kinds = (1U << KIND_COUNT) - 1,
                                       .ns = slice_of(arguments->ns),
                                       .text_sink = take,
                                       .context = &capture,
                                       .list_begins = begin_list,
                                       .list_ends = end_list,
                                       .list_is_forbidden = report_missing,
                                       .stores_nothing = true}};

    buf_init(&capture.text, OBJECT_TEXT_BYTES_MAX);
    int rc = inquiry_open(&capture.inquiry, &origin, err);
    if (rc == 0)
        rc = write_somewhere(&capture, path, err);
    if (rc == 0)
        (void)fprintf(stderr, "claimguard: captured %zu objects into %s\n", capture.objects,
                      capture.path);
    if (rc == 0 && capture.inquiry.left_out != 0)
        (void)fprintf(stderr, "claimguard: %llu objects could not be decoded and are left out\n",
                      (unsigned long long)capture.inquiry.left_out);
    buf_dispose(&capture.text);
    inquiry_close(&capture.inquiry);
    return rc;
}
