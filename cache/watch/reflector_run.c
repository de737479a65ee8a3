#include "cache/watch/reflector_run.h"

#include <stdio.h>

#include "cache/client/requests.h"
#include "config/base/clock.h"

enum {
    PATH_BYTES_MAX = 16 * 1024,
    LIST_FAILURES_MAX = 3,
    POLL_MS_MAX = 100, /* while a list is read */
};

static void keep_refusal(struct buf *refusal, struct slice bytes)
{
    size_t room = REFUSAL_BYTES_MAX - refusal->len;

    refusal->max_bytes = REFUSAL_BYTES_MAX;
    buf_put(refusal, (struct slice){bytes.ptr, bytes.len < room ? bytes.len : room});
}

static void note_progress(const struct reflector_run *run)
{
    if (run->progressed != NULL)
        run->progressed(run->context);
}

static bool on_bytes(void *context, unsigned status, struct slice bytes)
{
    struct reflector_run *run = context;

    if (status != 200)
        keep_refusal(&run->refusal, bytes);
    bool continues = reflector_take(&run->reflector, status, bytes, monotonic_ns());
    note_progress(run);
    return continues;
}

static void end_transfer(struct reflector_run *run, const struct reflector_ending *ending)
{
    run->transfer = NULL;
    run->status = ending->is_silent ? 0 : ending->status;
    (void)snprintf(run->problem, sizeof run->problem, "%s",
                   ending->error == NULL ? "" : ending->error);
    reflector_end(&run->reflector, ending, monotonic_ns());
    note_progress(run);
}

static void on_end(void *context, const struct http_result *result)
{
    struct reflector_run *run = context;
    struct arena arena;

    arena_init(&arena, (size_t)2 * REFUSAL_BYTES_MAX);
    struct slice said = request_status_message(buf_slice(&run->refusal), &arena);
    struct slice text = arena_copy(&arena, said);
    end_transfer(run,
                 &(struct reflector_ending){.status = result->status,
                                            .is_cut = result->is_cut,
                                            .retry_after_ms = result->retry_after_ms,
                                            .error = text.len != 0 ? text.ptr : result->error});
    arena_dispose(&arena);
}

static void start_transfer(struct reflector_run *run, uint64_t now_ns)
{
    struct error err = {0};
    struct buf path;

    buf_reset(&run->refusal, 0);
    buf_init(&path, PATH_BYTES_MAX);
    reflector_request(&run->reflector, now_ns, &path);
    const char *text = buf_text(&path);
    int rc = text == NULL ? error_no_memory(&err)
                          : http_client_start(run->client,
                                              &(struct http_request){.path = text,
                                                                     .class = HTTP_WATCH,
                                                                     .on_bytes = on_bytes,
                                                                     .on_end = on_end,
                                                                     .context = run},
                                              &run->transfer, &err);
    buf_dispose(&path);
    if (rc < 0)
        end_transfer(run, &(struct reflector_ending){.error = err.message});
}

uint64_t reflector_run_step(struct reflector_run *run, uint64_t now_ns)
{
    const struct reflector *reflector = &run->reflector;

    if (run->transfer != NULL && now_ns >= reflector->deadline_ns) {
        http_client_cancel(run->client, run->transfer);
        end_transfer(run, &(struct reflector_ending){.status = 200, .is_silent = true});
    }
    if (run->transfer == NULL && now_ns >= reflector->due_ns)
        start_transfer(run, now_ns);
    return run->transfer != NULL ? reflector->deadline_ns : reflector->due_ns;
}

void reflector_run_relist(struct reflector_run *run)
{
    if (run->transfer == NULL)
        return; /* a request comes anyway */
    http_client_cancel(run->client, run->transfer);
    end_transfer(run, &(struct reflector_ending){.status = 410, .error = "a new list is needed"});
}

void reflector_run_stop(struct reflector_run *run)
{
    if (run->transfer != NULL)
        http_client_cancel(run->client, run->transfer);
    run->transfer = NULL;
    buf_dispose(&run->refusal);
}

/* ---- one list ---- */

/* The API server refuses the list, or does not answer. */
static int fail(const struct lister *lister, const struct reflector_run *run, struct error *err)
{
    const char *resource = reflector_resource(&run->reflector);
    unsigned status = run->status;

    if (status == 0)
        return error_set(err, ERROR_UNAVAILABLE, "%s: no answer to the list of %s: %s",
                         lister->server, resource,
                         run->problem[0] == '\0' ? "timeout" : run->problem);
    return error_set(err, ERROR_UNAVAILABLE, "%s: the list of %s was answered with status %u%s",
                     lister->server, resource, status,
                     status == 401   ? ": these credentials are not accepted"
                     : status == 403 ? ": these credentials may not list them"
                     : status == 200 ? ", but the answer is not such a list"
                                     : "");
}

/* Requests pages until the list is complete. */
static int request_all(const struct lister *lister, struct reflector_run *run, struct error *err)
{
    const struct reflector *reflector = &run->reflector;

    while (!reflector->is_done && reflector->sink_error.code == 0) {
        if (run->status == 401 || run->status == 403 || reflector->failures > LIST_FAILURES_MAX)
            return fail(lister, run, err);
        uint64_t now_ns = monotonic_ns(), next_ns = reflector_run_step(run, now_ns);
        uint64_t wait_ms = next_ns > now_ns ? (next_ns - now_ns) / NS_PER_MS + 1 : 0;
        http_client_poll(lister->client, wait_ms < POLL_MS_MAX ? (int)wait_ms : POLL_MS_MAX);
    }
    if (reflector->sink_error.code != 0)
        *err = reflector->sink_error;
    return reflector->sink_error.code;
}

int lister_list(struct lister *lister, enum kind kind, struct slice ns,
                const struct reflector_sink *sink, struct error *err)
{
    struct reflector_run run = {.client = lister->client};
    struct resource_status status = {0};

    reflector_init(&run.reflector, kind, sink, &status, 1);
    run.reflector.ns = ns;
    run.reflector.phase = PHASE_PAGES;
    run.reflector.can_stream = false;
    run.reflector.is_list_only = true;
    run.reflector.reads_finished = lister->reads_finished;
    int rc = request_all(lister, &run, err);
    lister->status = run.status;
    lister->left_out += atomic_load(&status.skipped);
    reflector_run_stop(&run);
    reflector_dispose(&run.reflector);
    return rc;
}
