#include "cache/api.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/credentials.h"
#include "config/base/clock.h"

enum {
    RECEIVE_BYTES = 64 * 1024,
    KEEPALIVE_IDLE_S = 10,
    KEEPALIVE_INTERVAL_S = 5,
    CONNECTIONS_KEPT = 64,
    HEADER_BYTES_MAX = TOKEN_BYTES_MAX + 64,
};

struct api {
    const struct kubeconfig *kubeconfig;
    struct credentials credentials;
    CURLM *multi;
    struct api_call *calls;
};

struct api_call {
    struct api_call *next, **link; /* among the API's */
    struct api_request request;
    CURL *easy;
    struct curl_slist *headers;
    struct curl_slist *connect_to;
    char error[CURL_ERROR_SIZE];
};

int api_global_init(struct error *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        return 0;
    return error_set(err, ERROR_SYSTEM, "libcurl cannot be initialised");
}

void api_global_cleanup(void)
{
    curl_global_cleanup();
}

int api_new(struct api **out, const struct kubeconfig *kubeconfig, struct error *err)
{
    struct api *api = calloc(1, sizeof *api);

    if (api == NULL)
        return error_no_memory(err);
    api->kubeconfig = kubeconfig;
    api->multi = curl_multi_init();
    if (api->multi == NULL) {
        free(api);
        return error_no_memory(err);
    }
    (void)curl_multi_setopt(api->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_KEPT);
    credentials_init(&api->credentials, kubeconfig);
    *out = api;
    return 0;
}

static void call_free(struct api *api, struct api_call *call)
{
    *call->link = call->next;
    if (call->next != NULL)
        call->next->link = call->link;
    (void)curl_multi_remove_handle(api->multi, call->easy);
    curl_easy_cleanup(call->easy);
    curl_slist_free_all(call->headers);
    curl_slist_free_all(call->connect_to);
    free(call);
}

void api_free(struct api *api)
{
    if (api == NULL)
        return;
    while (api->calls != NULL)
        call_free(api, api->calls);
    (void)curl_multi_cleanup(api->multi);
    credentials_dispose(&api->credentials);
    free(api);
}

/* ---- a call's options ---- */

static size_t take_bytes(char *bytes, size_t size, size_t count, void *context)
{
    struct api_call *call = context;
    long status = 0;

    (void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    if (call->request.on_bytes == NULL ||
        call->request.on_bytes(call->request.context, (unsigned)status,
                               (struct slice){bytes, size * count}))
        return size * count;
    return 0; /* CURLE_WRITE_ERROR */
}

/* Unsent and unacknowledged bytes do not wait longer than this for a peer that is gone. */
static int tune_socket(void *context, curl_socket_t socket, curlsocktype purpose)
{
    unsigned timeout_ms = API_DEAD_PEER_MS;

    (void)context;
    (void)purpose;
    (void)setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
    return CURL_SOCKOPT_OK;
}

static CURLcode set_pem(CURL *easy, CURLoption file_option, CURLoption blob_option,
                        const struct pem *pem)
{
    struct curl_blob blob = {(void *)(uintptr_t)pem->data.ptr, pem->data.len, CURL_BLOB_COPY};

    if (pem->file != NULL)
        return curl_easy_setopt(easy, file_option, pem->file);
    return pem->data.len == 0 ? CURLE_OK : curl_easy_setopt(easy, blob_option, &blob);
}

static CURLcode set_tls(CURL *easy, const struct api *api)
{
    const struct kubeconfig *kubeconfig = api->kubeconfig;
    CURLcode rc = CURLE_OK;

    if (kubeconfig->skips_verification) {
        rc = curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        if (rc == CURLE_OK)
            rc = curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    } else if (kubeconfig->ca.file != NULL || kubeconfig->ca.data.len != 0) {
        rc = curl_easy_setopt(easy, CURLOPT_CAPATH, NULL); /* this authority and no other */
        if (rc == CURLE_OK)
            rc = set_pem(easy, CURLOPT_CAINFO, CURLOPT_CAINFO_BLOB, &kubeconfig->ca);
    }
    if (rc == CURLE_OK)
        rc = set_pem(easy, CURLOPT_SSLCERT, CURLOPT_SSLCERT_BLOB, &api->credentials.cert);
    if (rc == CURLE_OK)
        rc = set_pem(easy, CURLOPT_SSLKEY, CURLOPT_SSLKEY_BLOB, &api->credentials.key);
    return rc;
}

static CURLcode set_transport(struct api_call *call)
{
    CURL *easy = call->easy;
    CURLcode rc = CURLE_OK;
    const struct {
        CURLoption option;
        long value;
    } numbers[] = {
        {CURLOPT_NOSIGNAL, 1},
        {CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1},
        {CURLOPT_FOLLOWLOCATION, 0},
        {CURLOPT_CONNECTTIMEOUT_MS, API_CONNECT_MS_MAX},
        {CURLOPT_TIMEOUT_MS, (long)call->request.timeout_ms},
        {CURLOPT_BUFFERSIZE, RECEIVE_BYTES},
        {CURLOPT_TCP_KEEPALIVE, 1},
        {CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
        {CURLOPT_TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S},
    };

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && rc == CURLE_OK; i++)
        rc = curl_easy_setopt(easy, numbers[i].option, numbers[i].value);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    if (rc == CURLE_OK) /* audit logs have it, and managedFields its name */
        rc = curl_easy_setopt(easy, CURLOPT_USERAGENT, API_USER_AGENT);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, tune_socket);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_bytes);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->error);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    return rc;
}

static bool add_header(struct api_call *call, const char *header)
{
    struct curl_slist *grown = curl_slist_append(call->headers, header);

    if (grown != NULL)
        call->headers = grown;
    return grown != NULL;
}

/* The host of a URL, with its port if it has one. */
static struct slice host_of(const char *server)
{
    const char *host = strstr(server, "://") + 3;
    return (struct slice){host, strcspn(host, "/")};
}

static bool add_headers(struct api_call *call, const struct api *api, struct arena *arena)
{
    const struct credentials *credentials = &api->credentials;
    struct slice host = host_of(api->kubeconfig->server);
    const char *authorization =
        credentials->token.len == 0
            ? NULL
            : arena_printf(arena, "Authorization: Bearer %.*s", SLICE_ARG(credentials->token)).ptr;
    const char *type = call->request.content_type;
    const char *content = type == NULL ? NULL : arena_printf(arena, "Content-Type: %s", type).ptr;
    const char *named = arena_printf(arena, "Host: %.*s", SLICE_ARG(host)).ptr;

    return add_header(call, "Accept: application/json") && add_header(call, "Expect:") &&
           (credentials->token.len == 0 ||
            (authorization != NULL && add_header(call, authorization))) &&
           (type == NULL || (content != NULL && add_header(call, content))) &&
           (api->kubeconfig->server_name == NULL || (named != NULL && add_header(call, named)));
}

/* With tls-server-name, the URL has the name that the certificate must have, and the connection
 * goes to the server all the same. */
static CURLcode set_url(struct api_call *call, const struct api *api, struct arena *arena)
{
    const struct kubeconfig *kubeconfig = api->kubeconfig;
    struct slice host = host_of(kubeconfig->server);
    const char *rest = host.ptr + host.len;
    const char *url = kubeconfig->server_name == NULL
                          ? arena_printf(arena, "%s%s", kubeconfig->server, call->request.path).ptr
                          : arena_printf(arena, "https://%s%s%s", kubeconfig->server_name, rest,
                                         call->request.path)
                                .ptr;
    CURLcode rc =
        url == NULL ? CURLE_OUT_OF_MEMORY : curl_easy_setopt(call->easy, CURLOPT_URL, url);

    if (rc == CURLE_OK && kubeconfig->server_name != NULL) {
        bool has_port = memchr(host.ptr, ':', host.len) != NULL && host.ptr[host.len - 1] != ']';
        const char *target =
            arena_printf(arena, "::%.*s%s", SLICE_ARG(host), has_port ? "" : ":443").ptr;
        call->connect_to = target == NULL ? NULL : curl_slist_append(NULL, target);
        rc = call->connect_to == NULL
                 ? CURLE_OUT_OF_MEMORY
                 : curl_easy_setopt(call->easy, CURLOPT_CONNECT_TO, call->connect_to);
    }
    if (rc == CURLE_OK && kubeconfig->proxy_url != NULL)
        rc = curl_easy_setopt(call->easy, CURLOPT_PROXY, kubeconfig->proxy_url);
    return rc;
}

static CURLcode set_body(struct api_call *call)
{
    CURLcode rc = CURLE_OK;

    if (call->request.body.len != 0) {
        rc = curl_easy_setopt(call->easy, CURLOPT_POSTFIELDSIZE, (long)call->request.body.len);
        if (rc == CURLE_OK)
            rc = curl_easy_setopt(call->easy, CURLOPT_COPYPOSTFIELDS, call->request.body.ptr);
    }
    if (rc == CURLE_OK && call->request.method != NULL)
        rc = curl_easy_setopt(call->easy, CURLOPT_CUSTOMREQUEST, call->request.method);
    return rc;
}

static CURLcode set_options(struct api_call *call, const struct api *api, struct arena *arena)
{
    CURLcode rc = set_transport(call);

    if (rc == CURLE_OK)
        rc = set_tls(call->easy, api);
    if (rc == CURLE_OK)
        rc = set_body(call);
    if (rc == CURLE_OK)
        rc = add_headers(call, api, arena) ? set_url(call, api, arena) : CURLE_OUT_OF_MEMORY;
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
    return rc;
}

/* ---- calls ---- */

int api_start(struct api *api, const struct api_request *request, struct api_call **out,
              struct error *err)
{
    struct arena arena;

    if (credentials_refresh(&api->credentials, now_ms(), err) < 0)
        return err->code;
    struct api_call *call = calloc(1, sizeof *call);
    if (call == NULL)
        return error_no_memory(err);
    call->request = *request;
    call->next = api->calls;
    call->link = &api->calls;
    if (call->next != NULL)
        call->next->link = &call->next;
    api->calls = call;
    call->easy = curl_easy_init();
    arena_init(&arena, 2 * HEADER_BYTES_MAX + API_ERROR_BYTES * 64);
    CURLcode rc = call->easy == NULL ? CURLE_OUT_OF_MEMORY : set_options(call, api, &arena);
    arena_dispose(&arena);
    if (rc != CURLE_OK || curl_multi_add_handle(api->multi, call->easy) != CURLM_OK) {
        call_free(api, call);
        return error_set(err, ERROR_UNAVAILABLE, "%s: %s", api->kubeconfig->server,
                         curl_easy_strerror(rc));
    }
    *out = call;
    return 0;
}

void api_cancel(struct api *api, struct api_call *call)
{
    call_free(api, call);
}

static void finish(struct api *api, CURL *easy, CURLcode code)
{
    struct api_call *call = NULL;
    struct api_result result = {0};
    curl_off_t retry_after_s = 0;
    long status = 0;

    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &call);
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    result.status = (unsigned)status;
    result.is_cut = code != CURLE_OK;
    result.retry_after_ms = (int64_t)retry_after_s * 1000;
    if (code != CURLE_OK)
        (void)snprintf(result.error, sizeof result.error, "%s",
                       call->error[0] == '\0' ? curl_easy_strerror(code) : call->error);
    if (status == 401)
        credentials_reject(&api->credentials);
    struct api_request request = call->request;
    call_free(api, call);
    if (request.on_end != NULL)
        request.on_end(request.context, &result);
}

void api_poll(struct api *api, int timeout_ms)
{
    int running = 0, left = 0;

    (void)curl_multi_perform(api->multi, &running);
    for (CURLMsg *message; (message = curl_multi_info_read(api->multi, &left)) != NULL;) {
        if (message->msg != CURLMSG_DONE)
            continue;
        finish(api, message->easy_handle, message->data.result);
        timeout_ms = 0; /* there may be more to start */
    }
    (void)curl_multi_poll(api->multi, NULL, 0, timeout_ms, NULL);
}

void api_wake(struct api *api)
{
    (void)curl_multi_wakeup(api->multi);
}
