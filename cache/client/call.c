#include "cache/client/call.h"

enum { POLL_MS = 1000 };

struct exchange {
    struct http_transfer *transfer;
    struct buf body;
    struct http_result result;
    bool has_ended;
};

int api_open(struct api *out, const struct kubeconfig *kubeconfig, struct error *err)
{
    *out = (struct api){.server = kubeconfig->server};
    arena_init(&out->arena, API_ARENA_BYTES_MAX);
    if (http_client_global_init(err) < 0)
        return err->code;
    out->is_started = true;
    return http_client_new(&out->client, kubeconfig, err);
}

void api_open_on(struct api *out, struct requests *requests)
{
    *out = (struct api){.requests = requests, .server = "the API server"};
    arena_init(&out->arena, API_ARENA_BYTES_MAX);
}

void api_close(struct api *api)
{
    http_client_free(api->client);
    if (api->is_started)
        http_client_global_cleanup();
    arena_wipe(&api->arena); /* Secrets may have been read */
}

static bool on_bytes(void *context, unsigned status, struct slice bytes)
{
    struct exchange *exchange = context;

    (void)status;
    buf_put(&exchange->body, bytes);
    return !exchange->body.failed;
}

static void on_end(void *context, const struct http_result *result)
{
    struct exchange *exchange = context;

    exchange->result = *result;
    exchange->has_ended = true;
}

static int take_answer(struct api *api, const struct exchange *exchange, struct request_answer *out,
                       struct error *err)
{
    if (exchange->body.failed)
        return error_set(err, ERROR_TOO_BIG, "%s: the answer is over %d MiB", api->server,
                         API_ANSWER_BYTES_MAX >> 20);
    if (exchange->result.is_cut)
        return error_set(err, ERROR_UNAVAILABLE, "%s: %s", api->server, exchange->result.error);
    out->status = exchange->result.status;
    out->body = arena_copy(&api->arena, buf_slice(&exchange->body));
    if (out->body.ptr == NULL)
        return error_no_memory(err);
    out->message = request_status_message(out->body, &api->arena);
    return 0;
}

static int call_shared(struct api *api, const struct request *request, struct request_answer *out,
                       struct error *err)
{
    struct request sent = *request;

    sent.timeout_ms = API_SHARED_MS;
    if (requests_call(api->requests, &sent, &api->arena, out, err) < 0)
        return err->code;
    return out->status != 0
               ? 0
               : error_set(err, ERROR_UNAVAILABLE, "%s: no complete answer", api->server);
}

static int start(struct api *api, const struct request *request, struct exchange *exchange,
                 struct error *err)
{
    const struct http_request sent = {
        .method = request->method,
        .path = request->path,
        .body = request->body,
        .content_type = request->content_type,
        .timeout_ms = API_CALL_MS,
        .class = strcmp(request->method, "GET") == 0 ? HTTP_READ : HTTP_WRITE,
        .on_bytes = on_bytes,
        .on_end = on_end,
        .context = exchange,
    };

    *exchange = (struct exchange){.has_ended = false};
    buf_init(&exchange->body, API_ANSWER_BYTES_MAX);
    return http_client_start(api->client, &sent, &exchange->transfer, err);
}

static bool have_ended(const struct exchange *exchanges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!exchanges[i].has_ended)
            return false;
    return true;
}

static int wait_for_all(struct api *api, const struct exchange *exchanges, size_t count,
                        struct error *err)
{
    while (!have_ended(exchanges, count)) {
        if (api->interrupt != NULL && *api->interrupt != 0)
            return error_set(err, ERROR_UNAVAILABLE, "interrupted");
        http_client_poll(api->client, POLL_MS);
    }
    return 0;
}

int api_call_all(struct api *api, const struct request *requests, size_t count,
                 struct request_answer *out, struct error *err)
{
    struct exchange exchanges[API_CALLS_AT_ONCE_MAX];
    size_t started = 0;
    int rc = 0;

    for (; started < count && rc == 0; started++)
        rc = start(api, &requests[started], &exchanges[started], err);
    if (rc == 0)
        rc = wait_for_all(api, exchanges, started, err);
    for (size_t i = 0; i < started; i++) {
        out[i] = (struct request_answer){.status = 0};
        if (rc == 0)
            rc = take_answer(api, &exchanges[i], &out[i], err);
        else if (!exchanges[i].has_ended && exchanges[i].transfer != NULL)
            http_client_cancel(api->client, exchanges[i].transfer);
        buf_wipe(&exchanges[i].body);
    }
    return rc;
}

int api_call(struct api *api, const struct request *request, struct request_answer *out,
             struct error *err)
{
    return api->client == NULL ? call_shared(api, request, out, err)
                               : api_call_all(api, request, 1, out, err);
}

int api_get(struct api *api, const char *path, struct request_answer *out, struct error *err)
{
    return api_call(api, &(struct request){.method = "GET", .path = path}, out, err);
}

int api_refused(const struct request_answer *answer, const char *what, struct error *err)
{
    return error_set(err, ERROR_UNAVAILABLE, "%s: the API server answers with status %u%s%.*s",
                     what, answer->status, answer->message.len == 0 ? "" : ": ",
                     SLICE_ARG(answer->message));
}
