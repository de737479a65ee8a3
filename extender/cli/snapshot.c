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

#include "cache/client/http_client.h"
#include "cache/watch/reflector.h"
#include "config/base/log.h"
#include "extender/cli/commands.h"
#include "extender/state.h"

enum {
    OBJECT_TEXT_BYTES_MAX = 32 << 20,
    PATH_BYTES_MAX = 16 * 1024,
    FAILURES_MAX = 3,
    PROGRESS_MS = 100
};

struct capture {
    FILE *file;
    const char *path, *server; /* for error messages */
    struct http_client *client;
    struct reflector reflector;
    struct resource_status status;
    struct http_transfer *call;
    struct http_result result; /* of the last request */
    struct buf text;
    off_t start;         /* where the objects of this kind begin in the file */
    size_t objects;      /* of the kinds before */
    size_t kind_objects; /* of this kind */
    uint64_t left_out;   /* objects that could not be decoded */
    uint64_t shown_ns;
    struct error error; /* of writing */
};

static void show_progress(struct capture *capture)
{
    uint64_t now = monotonic_ns();

    if (!isatty(STDERR_FILENO) || now < capture->shown_ns + PROGRESS_MS * NS_PER_MS)
        return;
    capture->shown_ns = now;
    (void)fprintf(stderr, "\rcapturing %s: %zu (%zu objects in all)\033[K",
                  kind_resource(capture->reflector.kind), capture->kind_objects,
                  capture->objects + capture->kind_objects);
}

static void begin_list(void *context, enum kind kind, bool overrides)
{
    struct capture *capture = context;

    (void)kind;
    (void)overrides;
    (void)fseeko(capture->file, capture->start, SEEK_SET);
    capture->kind_objects = 0;
}

static void end_list(void *context, enum kind kind, uint64_t version)
{
    struct capture *capture = context;

    (void)kind;
    (void)version;
    capture->objects += capture->kind_objects;
    capture->kind_objects = 0;
    capture->start = ftello(capture->file);
}

static int take(void *context, enum watch_change change, const struct object *object,
                struct slice text, struct error *err)
{
    struct capture *capture = context;

    (void)change;
    buf_reset(&capture->text, OBJECT_TEXT_BYTES_MAX);
    buf_put(&capture->text,
            capture->objects + capture->kind_objects == 0 ? SLICE("\n") : SLICE(",\n"));
    if (object_project(text, object->kind, &capture->text, err) < 0)
        return err->code;
    if (fwrite(capture->text.bytes, 1, capture->text.len, capture->file) != capture->text.len)
        return error_system(&capture->error, errno, "%s", capture->path);
    capture->kind_objects++;
    show_progress(capture);
    return 0;
}

/* reflector_sink: an object that could not be decoded. The reflector counts it; it is left out. */
static void keep(void *context, enum kind kind, struct slice ns, struct slice name)
{
    (void)context;
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

static bool on_bytes(void *context, unsigned status, struct slice bytes)
{
    struct capture *capture = context;
    return reflector_take(&capture->reflector, status, bytes, monotonic_ns());
}

static void on_end(void *context, const struct http_result *result)
{
    struct capture *capture = context;

    capture->call = NULL;
    capture->result = *result;
}

/* Sends the next request of the list, and waits for the end of its answer. */
static int request_page(struct capture *capture, struct error *err)
{
    struct reflector *reflector = &capture->reflector;
    struct reflector_ending ending = {0};
    struct buf path;

    buf_init(&path, PATH_BYTES_MAX);
    reflector_request(reflector, monotonic_ns(), &path);
    const char *text = buf_text(&path);
    int rc = text == NULL ? error_no_memory(err)
                          : http_client_start(capture->client,
                                              &(struct http_request){.path = text,
                                                                     .class = HTTP_WATCH,
                                                                     .on_bytes = on_bytes,
                                                                     .on_end = on_end,
                                                                     .context = capture},
                                              &capture->call, err);
    buf_dispose(&path);
    if (rc < 0)
        return rc;
    while (capture->call != NULL && monotonic_ns() < reflector->deadline_ns)
        http_client_poll(capture->client, PROGRESS_MS);
    if (capture->call != NULL) {
        http_client_cancel(capture->client, capture->call);
        capture->call = NULL;
        ending = (struct reflector_ending){.status = 200, .is_silent = true};
    } else {
        ending = (struct reflector_ending){capture->result.status, capture->result.is_cut, false,
                                           capture->result.retry_after_ms, capture->result.error};
    }
    reflector_end(reflector, &ending, monotonic_ns());
    return 0;
}

static void wait_until(uint64_t due_ns)
{
    while (monotonic_ns() < due_ns)
        (void)usleep(10000);
}

/* Reports that the API server refuses the list, or does not answer. */
static int fail(const struct capture *capture, struct error *err)
{
    const char *resource = kind_resource(capture->reflector.kind);
    const struct http_result *result = &capture->result;

    if (result->status == 0)
        return error_set(err, ERROR_UNAVAILABLE, "%s: no answer to the list of %s: %s",
                         capture->server, resource,
                         result->error[0] == '\0' ? "timeout" : result->error);
    return error_set(err, ERROR_UNAVAILABLE, "%s: the list of %s was answered with status %u%s",
                     capture->server, resource, result->status,
                     result->status == 401   ? ": these credentials are not accepted"
                     : result->status == 403 ? ": these credentials may not list them"
                     : result->status == 200 ? ", but the answer is not such a list"
                                             : "");
}

/* Whether these credentials may not list the kind, but the snapshot is good without it: only the
 * dry run of a manifest, or a person, needs it. */
static bool is_left_out(const struct capture *capture, enum kind kind)
{
    struct error refusal = {0};

    if (capture->result.status != 403 || kind < KIND_WATCHED_COUNT)
        return false;
    (void)fail(capture, &refusal);
    (void)fprintf(stderr, "claimguard: %s; captured without them\n", refusal.message);
    return true;
}

static int capture_kind(struct capture *capture, enum kind kind, struct error *err)
{
    struct reflector_sink sink = {capture, begin_list, end_list, take, keep, unserved};
    struct reflector *reflector = &capture->reflector;
    int rc = 0;

    capture->status = (struct resource_status){0};
    reflector_init(reflector, kind, &sink, &capture->status, 1);
    reflector->phase = PHASE_PAGES;
    reflector->can_stream = false;
    reflector->is_list_only = true;
    for (bool is_done = false; rc == 0 && !is_done; is_done = reflector->is_done) {
        wait_until(reflector->due_ns);
        rc = request_page(capture, err);
        if (rc == 0 && is_left_out(capture, kind))
            break;
        unsigned status = capture->result.status;
        if (capture->error.code != 0)
            rc = error_set(err, capture->error.code, "%s", capture->error.message);
        else if (rc == 0 && (status == 401 || status == 403 || reflector->failures > FAILURES_MAX))
            rc = fail(capture, err);
    }
    capture->left_out += atomic_load(&capture->status.skipped);
    reflector_dispose(reflector);
    return rc;
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

static int write_snapshot(const struct kubeconfig *kubeconfig, const char *path, struct error *err)
{
    bool to_stdout = path == NULL || strcmp(path, "-") == 0;
    struct capture capture = {.path = to_stdout ? "standard output" : path,
                              .server = kubeconfig->server};

    buf_init(&capture.text, OBJECT_TEXT_BYTES_MAX);
    int rc = http_client_new(&capture.client, kubeconfig, err);
    if (rc == 0)
        rc = write_somewhere(&capture, path, err);
    if (rc == 0)
        (void)fprintf(stderr, "claimguard: captured %zu objects into %s\n", capture.objects,
                      capture.path);
    if (rc == 0 && capture.left_out != 0)
        (void)fprintf(stderr, "claimguard: %llu objects could not be decoded and are left out\n",
                      (unsigned long long)capture.left_out);
    buf_dispose(&capture.text);
    http_client_free(capture.client);
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
    int rc = write_snapshot(kubeconfig, arguments->output, &err);
    http_client_global_cleanup();
    kubeconfig_free(kubeconfig);
    return rc < 0 ? command_fail(&err) : EXIT_DONE;
}
