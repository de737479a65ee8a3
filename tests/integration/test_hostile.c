/* Hostile and malformed requests, over a real socket: after each the server answers as before. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "config/base/buf.h"
#include "extender/http/connections.h"
#include "extender/server/server.h"
#include "support/http.h"
#include "support/process.h"

static struct daemon server;
static long base_mib;

static void setup(void)
{
    process_keep_sanitizer_small();
    cr_assert(daemon_start(
        &server, (const char *const[]){"--snapshot", TESTS_DIR "/fixtures/recorded.yaml",
                                       "--config", TESTS_DIR "/fixtures/debug-config.yaml", NULL}));
    base_mib = daemon_memory_mib(&server, "VmHWM");
}

static void expect_alive(void)
{
    struct response response;

    http_call(server.port, "POST", "/filter",
              "{\"Pod\":{\"metadata\":{\"name\":\"a\"}},\"NodeNames\":[\"n\"]}", &response);
    cr_expect_eq(response.status, 200);
    cr_expect_str_eq(response.body, "{\"Nodes\":null,\"NodeNames\":[\"n\"],\"FailedNodes\":{},"
                                    "\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}");
    response_free(&response);
}

static void teardown(void)
{
    expect_alive();
    long more_mib = daemon_memory_mib(&server, "VmHWM") - base_mib;
    cr_expect_leq(more_mib, GROWTH_MIB_MAX, "%ld MiB more than %ld MiB", more_mib, base_mib);
    cr_expect_eq(daemon_stop(&server), 0);
}

TestSuite(hostile, .init = setup, .fini = teardown);

struct row {
    const char *name;
    const char *bytes;
    int status; /* 0: closed without an answer */
    const char *error;
};

#define BODY "{\"Pod\":{\"metadata\":{\"name\":\"a\"}},\"NodeNames\":[]}" /* 48 bytes */

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
    static const char *const verbs[] = {"/filter", "/prefilter", "/preempt", "/bind"};

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
    for (size_t i = 0; i < 4; i++) {
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

Test(hostile, half_a_first_request_is_closed_after_ten_seconds, .timeout = 60)
{
    static const char whole[] = "POST /prefilter HTTP/1.1\r\nHost: h\r\nContent-Length: 33\r\n\r\n"
                                "{\"Pod\":{\"metadata\":{\"name\":\"a\"}}}";
    int half = http_connect(server.port), used = http_connect(server.port);
    struct response response;

    cr_expect_eq(http_send(used, whole, sizeof whole - 1), 0);
    http_receive(used, &response);
    cr_expect_eq(response.status, 200, "%s", response.body);
    response_free(&response);
    cr_expect_eq(http_send(half, whole, 20), 0);
    int seconds = http_seconds_until_closed(half, 20);
    cr_expect(seconds >= 8 && seconds <= 14, "%d", seconds);
    cr_expect_eq(http_seconds_until_closed(used, 3), -1, "a connection that was used stays");
    (void)close(half);
    (void)close(used);
}

/* One byte now and then keeps an inactivity timer happy for ever: the request's own deadline must
 * not be. */
Test(hostile, a_sender_that_drips_is_cut_off, .timeout = 60)
{
    static const char head[] = "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n";
    int fd = http_connect(server.port);
    int sent = 0;

    cr_assert_eq(http_send(fd, head, sizeof head - 1), 0);
    for (; sent < 60; sent++) {
        if (http_send(fd, " ", 1) != 0)
            break;
        (void)nanosleep(&(struct timespec){.tv_nsec = 500 * 1000 * 1000}, NULL);
    }
    cr_expect(sent >= 18 && sent < 40, "cut off after %d half seconds", sent);
    (void)close(fd);
}

/* Sends the beginning of a request's headers, then a byte each half second, on each of the
 * connections; seconds[i]: when it was closed, 0: not within half a minute. */
static void drip_headers(const int *fds, int count, double *seconds)
{
    static const char begun[] = "GET /livez HTTP/1.1\r\nX: ";
    int closed = 0;

    for (int i = 0; i < count; i++) {
        seconds[i] = 0;
        cr_assert_eq(http_send(fds[i], begun, sizeof begun - 1), 0);
    }
    for (double now = 0.5; now < 30 && closed < count; now += 0.5) {
        (void)usleep(500 * 1000);
        for (int i = 0; i < count; i++) {
            if (seconds[i] != 0 || http_send(fds[i], "x", 1) == 0)
                continue;
            seconds[i] = now;
            closed++;
        }
    }
}

Test(hostile, no_trickle_extends_the_deadline_of_headers, .timeout = 60)
{
    static const char whole[] =
        "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: 48\r\n\r\n" BODY;
    static const char *const names[] = {"a probe", "a first call", "a second call"};
    int fds[] = {http_connect(server.metrics_port), http_connect(server.port),
                 http_connect(server.port)};
    double seconds[3];
    struct response response;

    cr_assert_eq(http_send(fds[2], whole, sizeof whole - 1), 0);
    http_receive(fds[2], &response);
    cr_expect_eq(response.status, 200);
    response_free(&response);
    drip_headers(fds, 3, seconds);
    for (int i = 0; i < 3; i++) {
        cr_expect(seconds[i] >= 9 && seconds[i] <= 13, "%s: %g s", names[i], seconds[i]);
        (void)close(fds[i]);
    }
}

Test(hostile, a_body_that_does_not_come_is_not_waited_for, .timeout = 60)
{
    static const char head[] = "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n";
    int fd = http_connect(server.port);

    cr_assert_eq(http_send(fd, head, sizeof head - 1), 0);
    int seconds = http_seconds_until_closed(fd, 20);
    cr_expect(seconds >= 9 && seconds <= 13, "%d", seconds);
    (void)close(fd);
}

/* Whatever has come. */
static bool is_open(int fd)
{
    char bytes[4096];
    ssize_t count;

    while ((count = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
    }
    return count < 0 && errno == EAGAIN;
}

static int count_open(const int *fds, int count)
{
    int open = 0;

    for (int i = 0; i < count; i++)
        open += is_open(fds[i]);
    return open;
}

static void close_all(const int *fds, int count)
{
    for (int i = 0; i < count; i++)
        (void)close(fds[i]);
}

/* A probe is answered before any deadline makes room for it. Until the threads of those that were
 * closed have ended, it may be refused. Connections are accepted in the order in which they come:
 * by then all that came before were accepted, and those that had to make room were closed. */
static void expect_answer(uint16_t port)
{
    time_t give_up = time(NULL) + HEADER_SECONDS_MAX / 2;
    int status = 0;

    while (status != 200 && time(NULL) < give_up) {
        struct response response;
        http_call(port, "GET", "/livez", NULL, &response);
        status = response.status;
        response_free(&response);
        (void)usleep(20 * 1000);
    }
    cr_assert(status == 200 && time(NULL) <= give_up, "status %d, %ld s too late", status,
              (long)(time(NULL) - give_up));
}

/* What the scheduler's port says of the metrics port. */
static long count_probes(void)
{
    static const char name[] = "\nclaimguard_connections{port=\"metrics\"} ";
    struct response response;

    http_call(server.port, "GET", "/metrics", NULL, &response);
    const char *at = strstr(response.body, name);
    cr_assert_not_null(at, "%d %s", response.status, response.body);
    long count = strtol(at + strlen(name), NULL, 10);
    response_free(&response);
    return count;
}

enum { CROWD = 160, CROWD_ADDRESSES = 8 };

/* As one of a crowd from 127.0.0.1 to .8, which together may have more than the metrics port has.
 */
static int connect_nth(int i)
{
    char address[16];

    (void)snprintf(address, sizeof address, "127.0.0.%d", 1 + i % CROWD_ADDRESSES);
    return http_connect_from(address, server.metrics_port);
}

/* 160 connections send a byte now and then for as long as they like: each probe is answered. */
Test(hostile, trickling_connections_leave_the_probes_alone, .timeout = 60)
{
    int crowd[CROWD];

    for (int i = 0; i < CROWD; i++)
        crowd[i] = connect_nth(i);
    for (int round = 0; round < 12; round++) {
        for (int i = 0; i < CROWD; i++) { /* those that were closed come back */
            if (http_send(crowd[i], "G", 1) == 0)
                continue;
            (void)close(crowd[i]);
            crowd[i] = connect_nth(i);
        }
        expect_answer(server.metrics_port);
        long open = count_probes();
        cr_expect_leq(open, PAGE_CONNECTIONS_MAX + 1, "%ld", open); /* one may just be refused */
        (void)usleep(300 * 1000);
    }
    close_all(crowd, CROWD);
}

Test(hostile, an_address_has_a_share_of_the_metrics_port)
{
    int crowd[CROWD], other = http_connect_from("127.0.0.1", server.metrics_port);

    for (int i = 0; i < CROWD; i++)
        crowd[i] = http_connect_from("127.0.0.2", server.metrics_port);
    expect_answer(server.metrics_port);
    cr_expect_leq(count_open(crowd, CROWD), 16, "%d", count_open(crowd, CROWD));
    cr_expect(is_open(other), "it came first, from another address");
    close_all(crowd, CROWD);
    (void)close(other);
}

/* Schedulers, and replicas of them, may come from one address. */
Test(hostile, an_address_may_have_all_of_the_schedulers_port)
{
    int crowd[CROWD];

    for (int i = 0; i < CROWD; i++)
        crowd[i] = http_connect(server.port);
    expect_answer(server.port);
    cr_expect_eq(count_open(crowd, CROWD), CROWD);
    close_all(crowd, CROWD);
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

Test(hostile, a_body_that_never_comes_holds_up_nobody)
{
    static const char head[] = "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n";
    int stuck[16];

    for (int i = 0; i < 16; i++) {
        stuck[i] = http_connect(server.port);
        cr_expect_eq(http_send(stuck[i], head, sizeof head - 1), 0);
    }
    expect_alive();
    for (int i = 0; i < 16; i++)
        (void)close(stuck[i]);
}

enum { FLOOD = 300 };

/* So many clients, all of which stay: the port has as many as it may, and answers one more, which
 * takes the place of the slowest. */
static void expect_room(const int *sockets, uint16_t port, int max)
{
    expect_answer(port);
    int open = count_open(sockets, FLOOD);
    cr_expect_leq(open, max, "%d are open", open);
    expect_answer(port == server.port ? server.metrics_port : server.port);
    close_all(sockets, FLOOD);
    expect_answer(port);
}

Test(hostile, more_connections_than_allowed_leave_the_probes_alone, .timeout = 60)
{
    int sockets[FLOOD];

    for (int i = 0; i < FLOOD; i++)
        sockets[i] = http_connect(server.port);
    expect_room(sockets, server.port, VERB_CONNECTIONS_MAX);
}

Test(hostile, more_connections_than_allowed_leave_room_for_a_probe, .timeout = 60)
{
    int sockets[FLOOD];

    for (int i = 0; i < FLOOD; i++)
        sockets[i] = connect_nth(i);
    expect_room(sockets, server.metrics_port, PAGE_CONNECTIONS_MAX);
}
