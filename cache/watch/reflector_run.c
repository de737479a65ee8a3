#include "cache/watch/reflector_run.h"

#include <stdio.h>

#include "cache/client/requests.h"
#include "config/base/clock.h"

enum { PATH_BYTES_MAX = 16 * 1024 };

static void keep_refusal(struct buf *refusal, struct slice bytes)
{
    size_t room = REFUSAL_BYTES_MAX - refusal->len;

    refusal->max_bytes = REFUSAL_BYTES_MAX;
    buf_put(refusal, (struct slice){bytes.ptr, bytes.len < room ? bytes.len : room});
}

static bool on_bytes(void *context, unsigned status, struct slice bytes)
{
    struct reflector_run *run = context;

    if (status != 200)
        keep_refusal(&run->refusal, bytes);
    bool continues = reflector_take(&run->reflector, status, bytes, monotonic_ns());
    run->progressed(run->context);
    return continues;
}

static void end_transfer(struct reflector_run *run, const struct reflector_ending *ending)
{
    run->transfer = NULL;
    (void)snprintf(run->problem, sizeof run->problem, "%s",
                   ending->error == NULL ? "" : ending->error);
    reflector_end(&run->reflector, ending, monotonic_ns());
    run->progressed(run->context);
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
