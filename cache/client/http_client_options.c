/* The options of libcurl for a call. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>

#include "cache/client/http_client_internal.h"
#include "config/base/buf.h"

enum {
    RECEIVE_BYTES = 64 * 1024,
    KEEPALIVE_IDLE_S = 10,
    KEEPALIVE_INTERVAL_S = 5,
    HEADER_BYTES_MAX = TOKEN_BYTES_MAX + 64,
    URL_BYTES_MAX = 32 * 1024,
    READ_IDLE_S_MAX = 60,
};

/* Sets an option, unless one before it has failed. */
#define SET(rc_, easy_, option_, value_) \
    ((rc_) = (rc_) != CURLE_OK ? (rc_) : curl_easy_setopt(easy_, option_, value_))

static size_t take_bytes(char *bytes, size_t size, size_t count, void *context)
{
    struct http_transfer *call = context;
    long status = 0;

    (void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    if (call->request.on_bytes == NULL ||
        call->request.on_bytes(call->request.context, (unsigned)status,
                               (struct slice){bytes, size * count}))
        return size * count;
    return 0; /* CURLE_WRITE_ERROR */
}

/* Called before each sending, on a new or a kept connection. libcurl repeats a sending if a kept
 * connection dies before the first byte of the answer; but the first request may have been applied.
 */
static int before_sending(void *context, char *server, char *local, int server_port, int local_port)
{
    struct http_transfer *call = context;

    (void)server;
    (void)local;
    (void)server_port;
    (void)local_port;
    call->is_connecting = false;
    if (call->sendings++ == 0 || call->is_read)
        return CURL_PREREQFUNC_OK;
    return CURL_PREREQFUNC_ABORT;
}

/* The connection fails if bytes stay unsent or unacknowledged for longer. */
static int tune_socket(void *context, curl_socket_t socket, curlsocktype purpose)
{
    unsigned timeout_ms = HTTP_DEAD_PEER_MS;
    struct http_transfer *call = context;

    call->is_connecting = true;
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

static CURLcode set_authority(CURL *easy, const struct kubeconfig *kubeconfig)
{
    CURLcode rc = CURLE_OK;

    if (kubeconfig->skips_verification) {
        SET(rc, easy, CURLOPT_SSL_VERIFYPEER, 0L);
        SET(rc, easy, CURLOPT_SSL_VERIFYHOST, 0L);
    } else if (kubeconfig->ca.file != NULL || kubeconfig->ca.data.len != 0) {
        rc = curl_easy_setopt(easy, CURLOPT_CAPATH, NULL); /* this authority and no other */
        if (rc == CURLE_OK)
            rc = set_pem(easy, CURLOPT_CAINFO, CURLOPT_CAINFO_BLOB, &kubeconfig->ca);
    }
    return rc;
}

static CURLcode set_transport(struct http_transfer *call)
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
        {CURLOPT_CONNECTTIMEOUT_MS, HTTP_CONNECT_MS_MAX},
        {CURLOPT_BUFFERSIZE, RECEIVE_BYTES},
        {CURLOPT_PATH_AS_IS, 1}, /* the path is final: do not resolve ".." */
        {CURLOPT_TCP_KEEPALIVE, 1},
        {CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
        {CURLOPT_TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S},
        {CURLOPT_QUICK_EXIT, 1}, /* do not wait for a DNS lookup at the end */
        {CURLOPT_MAXAGE_CONN, call->is_read ? READ_IDLE_S_MAX : HTTP_WRITE_IDLE_S_MAX},
    };

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        SET(rc, easy, numbers[i].option, numbers[i].value);
    SET(rc, easy, CURLOPT_PROTOCOLS_STR, "http,https");
    /* audit logs contain it, and managedFields its name */
    SET(rc, easy, CURLOPT_USERAGENT, HTTP_USER_AGENT);
    SET(rc, easy, CURLOPT_SOCKOPTFUNCTION, tune_socket);
    SET(rc, easy, CURLOPT_SOCKOPTDATA, call);
    SET(rc, easy, CURLOPT_PREREQFUNCTION, before_sending);
    SET(rc, easy, CURLOPT_PREREQDATA, call);
    SET(rc, easy, CURLOPT_WRITEFUNCTION, take_bytes);
    SET(rc, easy, CURLOPT_WRITEDATA, call);
    SET(rc, easy, CURLOPT_ERRORBUFFER, call->error);
    SET(rc, easy, CURLOPT_PRIVATE, call);
    return rc;
}

static bool add_header(struct http_transfer *call, const char *header)
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

static bool add_headers(struct http_transfer *call, struct arena *arena)
{
    const struct kubeconfig *kubeconfig = call->client->kubeconfig;
    struct slice host = host_of(kubeconfig->server);
    const char *type = call->request.content_type;
    const char *content = type == NULL ? NULL : arena_printf(arena, "Content-Type: %s", type).ptr;
    const char *named = arena_printf(arena, "Host: %.*s", SLICE_ARG(host)).ptr;

    return add_header(call, "Accept: application/json") && add_header(call, "Expect:") &&
           (type == NULL || (content != NULL && add_header(call, content))) &&
           (kubeconfig->server_name == NULL || (named != NULL && add_header(call, named)));
}

/* With tls-server-name, the URL has the name that the certificate must have, and the connection
 * still goes to the server. */
static CURLcode set_url(struct http_transfer *call, struct arena *arena)
{
    const struct kubeconfig *kubeconfig = call->client->kubeconfig;
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
    if (kubeconfig->proxy_url != NULL)
        SET(rc, call->easy, CURLOPT_PROXY, kubeconfig->proxy_url);
    return rc;
}

static CURLcode set_body(struct http_transfer *call)
{
    CURLcode rc = CURLE_OK;

    if (call->request.body.len != 0) {
        SET(rc, call->easy, CURLOPT_POSTFIELDSIZE, (long)call->request.body.len);
        SET(rc, call->easy, CURLOPT_COPYPOSTFIELDS, call->request.body.ptr);
    }
    if (call->request.method != NULL)
        SET(rc, call->easy, CURLOPT_CUSTOMREQUEST, call->request.method);
    return rc;
}

CURLcode http_client_set_request(struct http_transfer *call)
{
    struct arena arena;
    const char *method = call->request.method;

    call->is_read = method == NULL || strcmp(method, "GET") == 0;
    CURLcode rc = set_transport(call);
    arena_init(&arena, URL_BYTES_MAX);
    if (rc == CURLE_OK)
        rc = set_authority(call->easy, call->client->kubeconfig);
    if (rc == CURLE_OK)
        rc = set_body(call);
    if (rc == CURLE_OK)
        rc = add_headers(call, &arena) ? set_url(call, &arena) : CURLE_OUT_OF_MEMORY;
    arena_dispose(&arena);
    return rc;
}

static bool add_token(struct http_transfer *call, struct slice token)
{
    struct buf header;

    buf_init(&header, HEADER_BYTES_MAX);
    buf_printf(&header, "Authorization: Bearer %.*s", SLICE_ARG(token));
    const char *text = buf_text(&header);
    bool is_added = text != NULL && add_header(call, text);
    buf_dispose(&header);
    return is_added;
}

CURLcode http_client_set_credentials(struct http_transfer *call,
                                     const struct credentials *credentials)
{
    CURL *easy = call->easy;
    CURLcode rc = credentials->token.len == 0 || add_token(call, credentials->token)
                      ? CURLE_OK
                      : CURLE_OUT_OF_MEMORY;

    if (rc == CURLE_OK)
        rc = set_pem(easy, CURLOPT_SSLCERT, CURLOPT_SSLCERT_BLOB, &credentials->cert);
    if (rc == CURLE_OK)
        rc = set_pem(easy, CURLOPT_SSLKEY, CURLOPT_SSLKEY_BLOB, &credentials->key);
    SET(rc, easy, CURLOPT_HTTPHEADER, call->headers);
    return rc;
}
