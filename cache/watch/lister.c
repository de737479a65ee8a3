#include "cache/watch/lister.h"

#include <unistd.h>

#include "config/base/clock.h"

enum { PATH_BYTES_MAX = 16 * 1024, FAILURES_MAX = 3, POLL_MS = 100 };

/* One list. */
struct listing_run {
    struct lister *lister;
    const struct reflector_sink *sink; /* the caller's */
    struct error *err;                 /* of the sink: its code is not 0 */
    struct reflector reflector;
    struct resource_status status;
    struct http_transfer *call;
    struct http_result result; /* of the last request */
};

static void begin(void *context, enum kind kind, bool overrides)
{
    const struct listing_run *run = context;
    run->sink->begin(run->sink->context, kind, overrides);
}

static void end(void *context, enum kind kind, uint64_t version)
{
    const struct listing_run *run = context;
    run->sink->end(run->sink->context, kind, version);
}

/* Keeps the sink's error: the reflector would try again. */
static int take(void *context, enum watch_change change, const struct object *object,
                struct slice text, struct error *err)
{
    const struct listing_run *run = context;
    int rc = run->sink->take(run->sink->context, change, object, text, run->err);

    return rc < 0 ? error_set(err, rc, "%s", run->err->message) : rc;
}

static void keep(void *context, enum kind kind, struct slice ns, struct slice name)
{
    const struct listing_run *run = context;
    run->sink->keep(run->sink->context, kind, ns, name);
}

static void unserved(void *context, enum kind kind)
{
    const struct listing_run *run = context;
    run->sink->unserved(run->sink->context, kind);
}

static bool on_bytes(void *context, unsigned status, struct slice bytes)
{
    struct listing_run *run = context;
    return reflector_take(&run->reflector, status, bytes, monotonic_ns());
}

static void on_end(void *context, const struct http_result *result)
{
    struct listing_run *run = context;

    run->call = NULL;
    run->result = *result;
}

/* Sends the next request of the list, and waits for the end of its answer. */
static int request_page(struct listing_run *run, struct error *err)
{
    struct reflector *reflector = &run->reflector;
    struct reflector_ending ending = {.status = 200, .is_silent = true};
    struct buf path;

    run->result = (struct http_result){0};
    buf_init(&path, PATH_BYTES_MAX);
    reflector_request(reflector, monotonic_ns(), &path);
    const char *text = buf_text(&path);
    int rc = text == NULL ? error_no_memory(err)
                          : http_client_start(run->lister->client,
                                              &(struct http_request){.path = text,
                                                                     .class = HTTP_WATCH,
                                                                     .on_bytes = on_bytes,
                                                                     .on_end = on_end,
                                                                     .context = run},
                                              &run->call, err);
    buf_dispose(&path);
    if (rc < 0)
        return rc;
    while (run->call != NULL && monotonic_ns() < reflector->deadline_ns)
        http_client_poll(run->lister->client, POLL_MS);
    if (run->call != NULL) {
        http_client_cancel(run->lister->client, run->call);
        run->call = NULL;
    } else {
        ending = (struct reflector_ending){run->result.status, run->result.is_cut, false,
                                           run->result.retry_after_ms, run->result.error};
    }
    reflector_end(reflector, &ending, monotonic_ns());
    return 0;
}

/* The API server refuses the list, or does not answer. */
static int fail(const struct listing_run *run, struct error *err)
{
    const char *resource = reflector_resource(&run->reflector);
    const struct http_result *result = &run->result;

    if (result->status == 0)
        return error_set(err, ERROR_UNAVAILABLE, "%s: no answer to the list of %s: %s",
                         run->lister->server, resource,
                         result->error[0] == '\0' ? "timeout" : result->error);
    return error_set(err, ERROR_UNAVAILABLE, "%s: the list of %s was answered with status %u%s",
                     run->lister->server, resource, result->status,
                     result->status == 401   ? ": these credentials are not accepted"
                     : result->status == 403 ? ": these credentials may not list them"
                     : result->status == 200 ? ", but the answer is not such a list"
                                             : "");
}

/* Requests pages until the list is complete. */
static int request_all(struct listing_run *run, struct error *err)
{
    struct reflector *reflector = &run->reflector;

    while (!reflector->is_done) {
        while (monotonic_ns() < reflector->due_ns)
            (void)usleep(10000);
        if (request_page(run, err) < 0 || run->err->code != 0)
            return err->code;
        unsigned status = run->result.status;
        if (status == 401 || status == 403 || reflector->failures > FAILURES_MAX)
            return fail(run, err);
    }
    return 0;
}

/* What is listed. */
struct listed {
    enum kind kind;
    const struct text_resource *texts; /* of KIND_OTHER */
    struct slice ns;
};

static int list(struct lister *lister, const struct listed *listed,
                const struct reflector_sink *sink, struct error *err)
{
    struct listing_run run = {.lister = lister, .sink = sink, .err = err};
    const struct reflector_sink mine = {&run, begin, end, take, keep, unserved};

    err->code = 0;
    reflector_init(&run.reflector, listed->kind, &mine, &run.status, 1);
    run.reflector.texts = listed->texts;
    run.reflector.ns = listed->ns;
    run.reflector.phase = PHASE_PAGES;
    run.reflector.can_stream = false;
    run.reflector.is_list_only = true;
    run.reflector.reads_finished = lister->reads_finished;
    int rc = request_all(&run, err);
    lister->status = run.result.status;
    lister->left_out += atomic_load(&run.status.skipped);
    reflector_dispose(&run.reflector);
    return rc;
}

int lister_list(struct lister *lister, enum kind kind, struct slice ns,
                const struct reflector_sink *sink, struct error *err)
{
    return list(lister, &(struct listed){kind, NULL, ns}, sink, err);
}

int lister_list_texts(struct lister *lister, const struct text_resource *texts, struct slice ns,
                      const struct reflector_sink *sink, struct error *err)
{
    return list(lister, &(struct listed){KIND_OTHER, texts, ns}, sink, err);
}
