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

#include "cache/objects/object_project.h"
#include "cache/objects/own_object.h"
#include "cache/watch/lister.h"
#include "config/base/log.h"
#include "extender/audit/reading.h"
#include "extender/cli/commands.h"
#include "extender/doctor/installation.h"
#include "extender/state.h"

enum { OBJECT_TEXT_BYTES_MAX = 32 << 20, PROGRESS_MS = 100 };

struct capture {
    FILE *file;
    const char *path; /* for error messages */
    struct slice ns;  /* only of this namespace; empty: of all */
    struct lister lister;
    enum kind kind; /* that is being listed */
    struct buf text;
    off_t start;         /* where the objects of this kind begin in the file */
    bool has_item;       /* of the kinds before */
    bool is_whole;       /* no object of this kind is left out */
    size_t objects;      /* of the kinds before */
    size_t kind_objects; /* of this kind */
    uint64_t shown_ns;
};

static void show_progress(struct capture *capture)
{
    uint64_t now = monotonic_ns();

    if (!isatty(STDERR_FILENO) || now < capture->shown_ns + PROGRESS_MS * NS_PER_MS)
        return;
    capture->shown_ns = now;
    (void)fprintf(stderr, "\rcapturing %s: %zu (%zu objects in all)\033[K",
                  kind_resource(capture->kind), capture->kind_objects,
                  capture->objects + capture->kind_objects);
}

static void begin_list(void *context, enum kind kind, bool overrides)
{
    struct capture *capture = context;

    (void)kind;
    (void)overrides;
    (void)fseeko(capture->file, capture->start, SEEK_SET);
    capture->kind_objects = 0;
    capture->is_whole = true;
}

/* Between the items of the file. */
static const char *separator(const struct capture *capture)
{
    return capture->has_item || capture->kind_objects != 0 ? ",\n" : "\n";
}

/* Also says that there are no more, so that a kind without objects is no gap. */
static void end_list(void *context, enum kind kind, uint64_t version)
{
    struct capture *capture = context;

    (void)version;
    if (capture->is_whole)
        (void)fprintf(capture->file,
                      "%s{\"apiVersion\":\"" OWN_API_VERSION
                      "\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\"}}",
                      separator(capture), own_kind_text(OWN_LISTED_RESOURCE), kind_resource(kind));
    capture->has_item = capture->has_item || capture->is_whole || capture->kind_objects != 0;
    capture->objects += capture->kind_objects;
    capture->kind_objects = 0;
    capture->start = ftello(capture->file);
}

static int take(void *context, enum watch_change change, const struct object *object,
                struct slice text, struct error *err)
{
    struct capture *capture = context;
    const struct project_readers more = {
        {reading_table(object->kind), installation_table(object->kind)}};

    (void)change;
    buf_reset(&capture->text, OBJECT_TEXT_BYTES_MAX);
    buf_put(&capture->text, slice_of(separator(capture)));
    if (object_project(text, object->kind, &more, &capture->text, err) < 0)
        return err->code;
    if (fwrite(capture->text.bytes, 1, capture->text.len, capture->file) != capture->text.len)
        return error_system(err, errno, "%s", capture->path);
    capture->kind_objects++;
    show_progress(capture);
    return 0;
}

/* reflector_sink: an object that could not be decoded. The reflector counts it; it is left out. */
static void keep(void *context, enum kind kind, struct slice ns, struct slice name)
{
    ((struct capture *)context)->is_whole = false;
    (void)kind;
    (void)ns;
    (void)name;
}

/* reflector_sink: the capture has none of that kind. */
static void unserved(void *context, enum kind kind)
{
    (void)context;
    (void)kind;
}

/* Whether these credentials may not list the kind, but the snapshot is of use without it: a command
 * that misses it says so. Of a namespace, few people may list nodes. */
static bool is_left_out(const struct capture *capture, enum kind kind, const struct error *err)
{
    if (capture->lister.status != 403 || kind == KIND_POD || kind == KIND_CLAIM)
        return false;
    (void)fprintf(stderr, "claimguard: %s; captured without them\n", err->message);
    return true;
}

static int capture_kind(struct capture *capture, enum kind kind, struct error *err)
{
    const struct reflector_sink sink = {capture, begin_list, end_list, take, keep, unserved};

    capture->kind = kind;
    int rc = lister_list(&capture->lister, kind, capture->ns, &sink, err);
    return rc < 0 && is_left_out(capture, kind, err) ? 0 : rc;
}

static int capture_all(struct capture *capture, struct error *err)
{
    int rc = 0;

    (void)fputs("{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[", capture->file);
    capture->start = ftello(capture->file);
    for (int kind = 0; kind < KIND_COUNT && rc == 0; kind++)
        rc = capture_kind(capture, (enum kind)kind, err);
    if (isatty(STDERR_FILENO))
        (void)fputs("\r\033[K", stderr);
    if (rc < 0)
        return rc;
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

static int write_snapshot(const struct kubeconfig *kubeconfig, const struct arguments *arguments,
                          struct error *err)
{
    const char *path = arguments->output;
    bool to_stdout = path == NULL || strcmp(path, "-") == 0;
    struct capture capture = {.path = to_stdout ? "standard output" : path,
                              .ns = slice_of(arguments->ns),
                              .lister.server = kubeconfig->server};

    buf_init(&capture.text, OBJECT_TEXT_BYTES_MAX);
    int rc = http_client_new(&capture.lister.client, kubeconfig, err);
    if (rc == 0)
        rc = write_somewhere(&capture, path, err);
    if (rc == 0)
        (void)fprintf(stderr, "claimguard: captured %zu objects into %s\n", capture.objects,
                      capture.path);
    if (rc == 0 && capture.lister.left_out != 0)
        (void)fprintf(stderr, "claimguard: %llu objects could not be decoded and are left out\n",
                      (unsigned long long)capture.lister.left_out);
    buf_dispose(&capture.text);
    http_client_free(capture.lister.client);
    return rc;
}

int command_snapshot(const struct arguments *arguments)
{
    struct kubeconfig *kubeconfig = NULL;
    struct error err = {0};

    log_configure(LOG_ERROR, LOG_TEXT); /* this file reports the result itself */
    if (kubeconfig_load(&kubeconfig, arguments->kubeconfig, arguments->context, true, &err) < 0 ||
        http_client_global_init(&err) < 0) {
        kubeconfig_free(kubeconfig);
        return command_fail(&err);
    }
    int rc = write_snapshot(kubeconfig, arguments, &err);
    http_client_global_cleanup();
    kubeconfig_free(kubeconfig);
    return rc < 0 ? command_fail(&err) : EXIT_DONE;
}
