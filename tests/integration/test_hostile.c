/* Hostile and malformed requests, over a real socket: after each the server answers as before. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/base/buf.h"
#include "integration/hostile.h"

TestSuite(hostile, .init = setup, .fini = teardown);

struct row {
    const char *name;
    const char *bytes;
    int status; /* 0: closed without an answer */
    const char *error;
};

/* The rows of what libmicrohttpd 0.9.75 lets through, and what of it reaches a client here. */
static const struct row http_rows[] = {
    {"Content-Length and Transfer-Encoding",
     "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: "
     "chunked\r\n\r\n0\r\n\r\n",
     400, "both Content-Length and Transfer-Encoding"},
    {"two Content-Length",
     "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: 48\r\nContent-Length: 5\r\n\r\n" BODY,
     400, "appears twice"},
    {"the same Content-Length twice",
     "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: 48\r\nContent-Length: 48\r\n\r\n" BODY,
     400, "appears twice"},
    {"two Host", "POST /filter HTTP/1.1\r\nHost: h\r\nHost: g\r\nContent-Length: 48\r\n\r\n" BODY,
     400, "appears twice"},
    {"a space before the colon",
     "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length : 48\r\n\r\n" BODY, 411,
     "neither Content-Length nor Transfer-Encoding"},
    {"no length", "POST /filter HTTP/1.1\r\nHost: h\r\n\r\n", 411,
     "neither Content-Length nor Transfer-Encoding"},
    {"gzip, chunked",
     "POST /filter HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501,
     "Transfer-Encoding is not chunked"},
    {"no Host", "POST /filter HTTP/1.1\r\nContent-Length: 48\r\n\r\n" BODY, 400, NULL},
    {"1 GB", "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000\r\n\r\n", 413,
     "over server.maxRequestBytes"},
    {"2^63-1", "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: 9223372036854775807\r\n\r\n",
     413, "over server.maxRequestBytes"},
    {"a negative length", "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: -5\r\n\r\n", 400,
     NULL},
    {"a signed length", "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: +5\r\n\r\n", 400,
     NULL},
    {"a length with letters", "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: 5x\r\n\r\n", 400,
     NULL},
    {"a length of 10^23",
     "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000000000000000000\r\n\r\n", 413,
     NULL},
    {"a huge chunk",
     "POST /filter HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
     413, NULL},
    {"a negative chunk",
     "POST /filter HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", 400, NULL},
    {"an unknown path", "GET /nothing HTTP/1.1\r\nHost: h\r\n\r\n", 404, "no such path: /nothing"},
    {"a path with more behind it",
     "POST /filter/x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", 404, "no such path"},
    {"a path in another case", "POST /Filter HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", 404,
     "no such path"},
    {"a path that is not UTF-8", "GET /%ff HTTP/1.1\r\nHost: h\r\n\r\n", 404,
     "no such path: /\\ufffd"},
    {"a path with a NUL behind it",
     "POST /filter%00x HTTP/1.1\r\nHost: h\r\nContent-Length: 48\r\n\r\n" BODY, 404,
     "no such path: /filter%00x"},
    {"a page with a NUL behind it", "GET /livez%00 HTTP/1.1\r\nHost: h\r\n\r\n", 404,
     "no such path: /livez%00"},
    {"GET of a verb", "GET /filter HTTP/1.1\r\nHost: h\r\n\r\n", 405, "only POST"},
    {"DELETE of a verb", "DELETE /bind HTTP/1.1\r\nHost: h\r\n\r\n", 405, "only POST"},
    {"GET of Volcano's verb", "GET /volcano/predicate HTTP/1.1\r\nHost: h\r\n\r\n", 405,
     "only POST"},
    {"Volcano's path without its verb",
     "POST /volcano HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", 404, "no such path"},
    {"the verb's name in the metrics as a path",
     "POST /volcano_predicate HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", 404,
     "no such path"},
    {"POST of a page", "POST /metrics HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", 405,
     "only GET and HEAD"},
};

static void expect_row(const struct row *row, const struct response *response)
{
    cr_expect_eq(response->status, row->status, "%s: %d %s", row->name, response->status,
                 response->body);
    if (row->error == NULL)
        return;
    cr_expect_not_null(strstr(response->body, row->error), "%s: %s", row->name, response->body);
    cr_expect_eq(strncmp(response->body, "{\"error\":\"", 10), 0, "%s: %s", row->name,
                 response->body);
    cr_expect_not_null(strcasestr(response->head, "Connection: close"), "%s", row->name);
}

Test(hostile, http_that_could_smuggle_is_refused)
{
    for (size_t i = 0; i < sizeof http_rows / sizeof *http_rows; i++) {
        struct response response;
        http_raw(server.port, http_rows[i].bytes, strlen(http_rows[i].bytes), &response);
        expect_row(&http_rows[i], &response);
        response_free(&response);
    }
}

Test(hostile, a_nul_byte_in_a_header_or_path_does_no_harm)
{
    static const char header[] = "GET /livez HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n";
    static const char path[] = "GET /live\0z HTTP/1.1\r\nHost: h\r\n\r\n";
    struct response response;

    http_raw(server.port, header, sizeof header - 1, &response);
    response_free(&response);
    http_raw(server.port, path, sizeof path - 1, &response);
    cr_expect_neq(response.status, 200);
    response_free(&response);
}

Test(hostile, bare_line_feeds_are_a_request_or_nothing)
{
    static const char text[] = "GET /livez HTTP/1.1\nHost: h\n\n";
    struct response response;

    http_raw(server.port, text, sizeof text - 1, &response);
    cr_expect(response.status == 200 || response.status == 400 || response.status == 0);
    response_free(&response);
}

static const struct row bodies[] = {
    {"nothing", "", 400, "unexpected end of the text"},
    {"not JSON", "hello", 400, "body:1:1: expected an object"},
    {"an array", "[]", 400, "expected an object"},
    {"Pod missing", "{\"NodeNames\":[\"n\"]}", 400, "Pod is missing"},
    {"Pod of a wrong type", "{\"Pod\":7,\"NodeNames\":[]}", 400, "Pod: expected an object"},
    {"NodeNames of a wrong type", "{\"Pod\":{\"metadata\":{\"name\":\"a\"}},\"NodeNames\":{}}", 400,
     "NodeNames: expected an array"},
    {"an empty name", "{\"Pod\":{\"metadata\":{\"name\":\"a\"}},\"NodeNames\":[\"\"]}", 400,
     "an empty name"},
    {"a node that is null",
     "{\"Pod\":{\"metadata\":{\"name\":\"a\"}},\"Nodes\":{\"items\":[null]}}", 400,
     "a node without a name"},
    {"no nodes", "{\"Pod\":{\"metadata\":{\"name\":\"a\"}}}", 400, "both missing"},
    {"duplicate keys", "{\"Pod\":{\"metadata\":{\"name\":\"a\",\"name\":\"b\"}},\"NodeNames\":[]}",
     400, "Pod.metadata.name: this key appears twice"},
    {"invalid UTF-8 in a node's name",
     "{\"Pod\":{\"metadata\":{\"name\":\"a\"}},\"NodeNames\":[\"\xff\"]}", 400, "invalid UTF-8"},
    {"an escaped NUL in the pod",
     "{\"Pod\":{\"metadata\":{\"name\":\"a\",\"annotations\":{\"claimguard.io/defer-fs-mount\":"
     "\"x\\u0000y\"}},\"spec\":{\"containers\":[{\"args\":[\"\\u0000\"],\"env\":[{\"value\":"
     "\"\\u0000\"}"
     "]}]}},\"NodeNames\":[\"n\"]}",
     200, NULL},
    {"half a pair of surrogates, and invalid UTF-8",
     "{\"Pod\":{\"metadata\":{\"name\":\"a\",\"annotations\":{\"x\":\"\\ud800\",\"y\":\"\xff\"}}},"
     "\"NodeNames\":[\"n\"]}",
     200, NULL},
    {"a byte order mark", "\xef\xbb\xbf{}", 400, "expected an object"},
    {"keys in lower case", "{\"pod\":{\"metadata\":{\"name\":\"a\"}},\"nodenames\":[\"n\"]}", 200,
     NULL},
    {"keys in upper case", "{\"POD\":{\"metadata\":{\"name\":\"a\"}},\"NODENAMES\":[\"n\"]}", 200,
     NULL},
};

Test(hostile, malformed_bodies_are_refused_with_the_reason)
{
    static const char *const verbs[] = {"/filter", "/prefilter", "/preempt", "/bind",
                                        "/volcano/predicate"};

    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct response response;
        http_call(server.port, "POST", "/filter", bodies[i].bytes, &response);
        cr_expect_eq(response.status, bodies[i].status, "%s: %d %s", bodies[i].name,
                     response.status, response.body);
        if (bodies[i].error != NULL)
            cr_expect_not_null(strstr(response.body, bodies[i].error), "%s: %s", bodies[i].name,
                               response.body);
        response_free(&response);
    }
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        struct response response;
        http_call(server.port, "POST", verbs[i], "{\"x\":}", &response);
        cr_expect_eq(response.status, 400, "%s", verbs[i]);
        response_free(&response);
    }
}

Test(hostile, a_nul_byte_in_a_body_is_refused)
{
    static const char text[] =
        "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n{\0}\n";
    struct response response;

    http_raw(server.port, text, sizeof text - 1, &response);
    cr_expect_eq(response.status, 400);
    response_free(&response);
}

Test(hostile, every_cut_of_a_recorded_request_is_refused)
{
    char *body = read_file(TESTS_DIR "/fixtures/scheduler/filter-nodenames-conflict-request.json");
    size_t length = strlen(body);

    while (length > 0 && body[length - 1] != '}')
        length--; /* the line feed behind it is no cut */
    for (size_t cut = 0; cut < length; cut += 7) {
        struct response response;
        char *part = strndup(body, cut);
        http_call(server.port, "POST", "/filter", part, &response);
        cr_expect_eq(response.status, 400, "cut at %zu: %d", cut, response.status);
        response_free(&response);
        free(part);
    }
    free(body);
}

Test(hostile, more_brackets_than_go_takes_are_refused)
{
    static char body[40000];
    struct response response;

    (void)strcpy(body, "{\"Pod\":{\"metadata\":{\"name\":\"a\"},\"x\":"); /* NOLINT: fits */
    memset(body + strlen(body), '[', 11000);
    http_call(server.port, "POST", "/filter", body, &response);
    cr_expect_eq(response.status, 400);
    cr_expect_not_null(strstr(response.body, "nested too deep"), "%s", response.body);
    response_free(&response);
}

Test(hostile, a_node_of_brackets_in_volcanos_body_is_refused)
{
    static char body[40000];
    struct response response;

    (void)strcpy(body, "{\"task\":{\"Pod\":{\"metadata\":{\"name\":\"a\"}}},\"node\":{\"Name\":"
                       "\"n\",\"Tasks\":"); /* NOLINT: fits */
    memset(body + strlen(body), '[', 11000);
    http_call(server.port, "POST", "/volcano/predicate", body, &response);
    cr_expect_eq(response.status, 400);
    cr_expect_not_null(strstr(response.body, "nested too deep"), "%s", response.body);
    response_free(&response);
}

Test(hostile, a_pod_with_too_many_claims_is_refused)
{
    struct buf body;
    struct response response;

    buf_init(&body, 1 << 20);
    buf_put(
        &body,
        SLICE("{\"NodeNames\":[],\"Pod\":{\"metadata\":{\"name\":\"a\"},\"spec\":{\"volumes\":["));
    for (int i = 0; i < 5000; i++)
        buf_printf(&body, "%s{\"persistentVolumeClaim\":{\"claimName\":\"%d\"}}", i == 0 ? "" : ",",
                   i);
    buf_put(&body, SLICE("]}}}\0"));
    http_call(server.port, "POST", "/filter", body.bytes, &response);
    cr_expect_eq(response.status, 400, "%d", response.status);
    response_free(&response);
    buf_dispose(&body);
}

Test(hostile, a_chunked_body_over_the_limit_is_refused)
{
    struct buf request;
    struct response response;

    buf_init(&request, 8 << 20);
    buf_put(&request,
            SLICE("POST /filter HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"));
    for (int i = 0; i < 300; i++) {
        buf_put(&request, SLICE("2000\r\n"));
        for (int j = 0; j < 0x2000 / 16; j++)
            buf_put(&request, SLICE("                "));
        buf_put(&request, SLICE("\r\n"));
    }
    buf_put(&request, SLICE("0\r\n\r\n"));
    http_raw(server.port, request.bytes, request.len, &response);
    cr_expect_eq(response.status, 413);
    response_free(&response);
    buf_dispose(&request);
}

Test(hostile, a_chunked_body_in_pieces_is_answered)
{
    static const char text[] =
        "POST /filter HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        "8\r\n{\"Pod\":{\r\n19\r\n\"metadata\":{\"name\":\"a\"}},\r\n"
        "10\r\n\"NodeNames\":[ ]}\r\n0\r\n\r\n";
    struct response response;

    http_raw(server.port, text, sizeof text - 1, &response);
    cr_expect_eq(response.status, 200, "%s", response.body);
    response_free(&response);
}

Test(hostile, bad_input_never_changes_the_state)
{
    struct response before, after, response;

    http_call(server.port, "GET", "/debug/cache", NULL, &before);
    http_call(server.port, "POST", "/bind",
              "{\"PodName\":\"a-low\",\"PodNamespace\":\"default\",\"PodUID\":\"8233afb8-19e2-4262-"
              "8666-fd543e24857d\",\"Node\":\"node-2\"}}",
              &response);
    cr_expect_eq(response.status, 400);
    http_call(server.port, "GET", "/debug/cache", NULL, &after);
    cr_expect_str_eq(after.body, before.body);
    response_free(&before);
    response_free(&after);
    response_free(&response);
}
