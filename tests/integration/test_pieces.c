/* Rejections that the server writes while it sends them: more than ANSWER_WHOLE_BYTES_MAX. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/base/buf.h"
#include "support/http.h"
#include "support/process.h"

enum { NODES = 65000, LARGE = 64 << 20 };

static const char in_use[] = "is in use by pod default/db-0";

static struct daemon server;

static void setup(void)
{
    cr_assert(daemon_start(
        &server,
        (const char *const[]){"--snapshot", SOURCE_DIR "/docs/example/snapshot.yaml", NULL}));
}

static void teardown(void)
{
    cr_expect_eq(daemon_stop(&server), 0);
}

TestSuite(pieces, .init = setup, .fini = teardown, .timeout = 120);

/* A filter call of a pod with that claim, on NODES nodes: db-0 has the claim db-data. */
static void put_call(struct buf *out, const char *claim)
{
    struct buf body;

    buf_init(&body, LARGE);
    buf_printf(&body,
               "{\"Pod\":{\"metadata\":{\"name\":\"db-1\",\"namespace\":\"default\",\"uid\":\"u\"},"
               "\"spec\":{\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":"
               "\"%s\"}}]}},\"NodeNames\":[",
               claim);
    for (unsigned i = 0; i < NODES; i++)
        buf_printf(&body, "%s\"node-%u\"", i == 0 ? "" : ",", i);
    buf_put(&body, SLICE("]}"));
    buf_init(out, LARGE);
    buf_printf(out, "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n\r\n", body.len);
    buf_put(out, buf_slice(&body));
    cr_assert_not_null(buf_text(out));
    buf_dispose(&body);
}

/* One call on the connection, and what its answer has to have. */
static void expect_answer(int fd, const struct buf *call, const char *text)
{
    struct response response;

    cr_assert_eq(http_send(fd, call->bytes, call->len), 0);
    http_receive(fd, &response);
    cr_expect_eq(response.status, 200);
    cr_expect_not_null(strstr(response.body, text), "%.200s", response.body);
    cr_expect_str_eq(response.body + response.body_len - 11, "\"Error\":\"\"}");
    response_free(&response);
}

Test(pieces, what_follows_on_the_connection_is_answered_anew)
{
    struct buf rejected, other;
    int fd = http_connect(server.port);

    put_call(&rejected, "db-data");
    put_call(&other, "vm-data");
    for (int i = 0; i < 3; i++) {
        expect_answer(fd, &rejected, in_use);
        expect_answer(fd, &other, "\"FailedNodes\":{}");
    }
    (void)close(fd);
    buf_dispose(&rejected);
    buf_dispose(&other);
}

/* Together, they are larger than the memory of all calls. */
Test(pieces, answers_that_nobody_reads_take_little_more_than_their_calls)
{
    enum { CALLS = 32 };
    struct buf call;
    int fds[CALLS];

    put_call(&call, "db-data");
    for (int i = 0; i < CALLS; i++) {
        fds[i] = http_connect(server.port);
        cr_assert_eq(http_send(fds[i], call.bytes, call.len), 0);
    }
    (void)usleep(1000 * 1000);
    for (int i = 0; i < CALLS; i++) {
        struct response response;
        http_receive(fds[i], &response);
        cr_expect_not_null(strstr(response.body, in_use), "%d: %.200s", i, response.body);
        response_free(&response);
        (void)close(fds[i]);
    }
    buf_dispose(&call);
}
