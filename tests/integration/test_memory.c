/* What a client can make the server keep in memory. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/base/buf.h"
#include "config/base/clock.h"
#include "extender/serving/http/connections.h"
#include "support/http.h"
#include "support/process.h"

enum { IDLE_MIB = 40, ANSWER_MIB = 32, PAGE_MIB = 20, LARGE = 64 << 20 };

static struct daemon server;
static long base_mib;

static void setup(void)
{
    process_keep_sanitizer_small();
    cr_assert(daemon_start(
        &server,
        (const char *const[]){"--snapshot", SOURCE_DIR "/docs/example/snapshot.yaml", NULL}));
    base_mib = daemon_memory_mib(&server, "VmHWM");
}

static void teardown(void)
{
    cr_expect_eq(daemon_stop(&server), 0);
}

static void expect_small(void)
{
    long peak_mib = daemon_memory_mib(&server, "VmHWM");

    cr_expect_leq(peak_mib - base_mib, GROWTH_MIB_MAX, "%ld MiB more than %ld MiB",
                  peak_mib - base_mib, base_mib);
}

TestSuite(memory, .init = setup, .fini = teardown, .timeout = 120);

/* A pod that is rejected: db-0 has the claim. */
#define REJECTED_POD \
    "{\"Pod\":{\"metadata\":{\"name\":\"db-1\",\"namespace\":\"default\",\"uid\":\"u\"},\"spec\":" \
    "{" \
    "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"db-data\"}}]}},"

/* A filter call of a pod that is rejected, on so many nodes with names of `bytes` bytes. Of whole
 * objects, the answer is not written in pieces. */
static void put_rejected(struct buf *out, unsigned nodes, int bytes, bool are_objects)
{
    buf_init(out, LARGE);
    buf_put(out, SLICE(REJECTED_POD));
    buf_put(out, are_objects ? SLICE("\"Nodes\":{\"items\":[") : SLICE("\"NodeNames\":["));
    for (unsigned i = 0; i < nodes; i++)
        buf_printf(out, "%s%s\"%0*u\"%s", i == 0 ? "" : ",",
                   are_objects ? "{\"metadata\":{\"name\":" : "", bytes, i % 10,
                   are_objects ? "}}" : "");
    buf_put(out, are_objects ? SLICE("]}}") : SLICE("]}"));
    cr_assert_not_null(buf_text(out));
}

Test(memory, an_answer_is_bounded)
{
    struct response response;
    struct buf body;

    put_rejected(&body, 1000000, 1, false); /* 3.9 MiB */
    http_call(server.port, "POST", "/filter", buf_text(&body), &response);
    cr_expect_eq(response.status, 200);
    cr_expect_leq(response.body_len, ANSWER_MIB << 20, "%zu MiB", response.body_len >> 20);
    cr_expect_not_null(strstr(response.body, "\"Error\":\"the answer is over 32 MiB"), "%.200s",
                       response.body);
    response_free(&response);
    buf_dispose(&body);
    expect_small();
}

Test(memory, a_rejection_on_65000_nodes_is_answered)
{
    struct response response;
    struct buf body;

    put_rejected(&body, 65000, 60, false);
    http_call(server.port, "POST", "/filter", buf_text(&body), &response);
    cr_expect_eq(response.status, 200);
    cr_expect_geq(response.body_len, 7 << 20);
    json_t *answer = json_loadb(response.body, response.body_len, 0, NULL); /* in many pieces */
    cr_expect_not_null(answer);
    json_decref(answer);
    response_free(&response);
    buf_dispose(&body);
    expect_small();
}

static int post(const char *path, const struct buf *body)
{
    int fd = http_connect(server.port);
    char head[256];
    int length =
        snprintf(head, sizeof head, "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n\r\n",
                 path, body->len);

    cr_assert_eq(http_send(fd, head, (size_t)length), 0);
    (void)http_send(fd, body->bytes, body->len); /* may be refused before its end */
    return fd;
}

Test(memory, what_was_sent_is_given_back)
{
    struct response response;
    struct buf body;
    int fds[3];

    put_rejected(&body, 200000, 60, false);
    for (int i = 0; i < 3; i++) {
        fds[i] = post("/filter", &body);
        http_receive(fds[i], &response);
        cr_expect_eq(response.status, 200);
        response_free(&response);
    }
    long more_mib = LONG_MAX;
    for (int i = 0; i < 100 && more_mib > IDLE_MIB; i++) {
        (void)usleep(100 * 1000);
        more_mib = daemon_memory_mib(&server, "VmRSS") - base_mib;
    }
    cr_expect_leq(more_mib, IDLE_MIB, "%ld MiB for three idle connections", more_mib);
    for (int i = 0; i < 3; i++)
        (void)close(fds[i]);
    buf_dispose(&body);
    expect_small();
}

/* Bodies without their end, which claimguard waits for. */
Test(memory, bodies_have_a_bound_in_all)
{
    struct response response;
    struct buf body;
    int fds[8];

    buf_init(&body, LARGE);
    cr_assert(buf_reserve(&body, 60 << 20));
    memset(body.bytes, ' ', 60 << 20);
    body.len = 60 << 20;
    for (int i = 0; i < 8; i++) {
        char head[] = "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: 67000000\r\n\r\n";
        fds[i] = http_connect(server.port);
        cr_assert_eq(http_send(fds[i], head, sizeof head - 1), 0);
        (void)http_send(fds[i], body.bytes, body.len);
    }
    http_call(server.port, "GET", "/livez", NULL, &response);
    cr_expect_eq(response.status, 200);
    response_free(&response);
    for (int i = 0; i < 8; i++)
        (void)close(fds[i]);
    buf_dispose(&body);
    expect_small();
}

/* Their memory is taken when they come. */
Test(memory, bodies_that_are_only_announced_take_little)
{
    enum { CLIENTS = 200 };
    struct response response;
    struct buf call;
    int fds[CLIENTS];

    put_rejected(&call, 5000, 200, false);
    for (int i = 0; i < CLIENTS; i++) {
        char head[] = "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: 67000000\r\n\r\n{";
        fds[i] = http_connect(server.port);
        cr_assert_eq(http_send(fds[i], head, sizeof head - 1), 0);
    }
    http_call(server.port, "POST", "/filter", call.bytes, &response);
    cr_expect_eq(response.status, 200, "%.100s", response.body);
    response_free(&response);
    for (int i = 0; i < CLIENTS; i++)
        (void)close(fds[i]);
    buf_dispose(&call);
}

/* Reads an answer to its end; whether it says that there was no memory for it. One that is taken
 * too late is cut off. */
static bool hears_of_memory(int fd, int64_t late_ms)
{
    struct response response;

    http_receive(fd, &response);
    bool is_refused = strstr(response.body, "other requests take too much memory") != NULL ||
                      strcmp(response.body, "{\"Error\":\"out of memory\"}") == 0; /* for neither */
    bool is_whole = response.status == 200 || (response.status == 503 && is_refused);
    cr_expect(is_whole || now_ms() > late_ms, "%d %s, then %zu bytes", response.status,
              response.head, response.body_len);
    cr_expect(!is_whole || is_refused || strstr(response.body, "\"Error\":\"\"") != NULL, "%.80s",
              response.body);
    response_free(&response);
    return is_refused;
}

/* Answers that nobody reads for a while, from as many connections as there are. */
Test(memory, answers_have_a_bound_in_all)
{
    enum { CALLS = 32 };
    struct response response;
    struct buf body;
    int fds[CALLS], refused = 0;
    int64_t late_ms = now_ms() + ANSWER_SECONDS_MAX * INT64_C(1000);

    put_rejected(&body, 65000, 60, true);
    for (int i = 0; i < CALLS; i++)
        fds[i] = post("/filter", &body);
    (void)usleep(500 * 1000);
    http_call(server.port, "GET", "/livez", NULL, &response);
    cr_expect_eq(response.status, 200);
    response_free(&response);
    for (int i = 0; i < CALLS; i++) {
        refused += hears_of_memory(fds[i], late_ms);
        (void)close(fds[i]);
    }
    cr_expect(refused > 0 && refused < CALLS, "%d were refused", refused);
    buf_dispose(&body);
    expect_small();
}

/* A snapshot of so many pods, each with a claim, on one of a hundred nodes. */
static void write_pods(const char *path, unsigned pods)
{
    FILE *file = fopen(path, "we");

    cr_assert_not_null(file);
    (void)fprintf(file, "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[");
    for (unsigned i = 0; i < pods; i++)
        (void)fprintf(
            file,
            "%s{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{"
            "\"name\":\"data-%u\",\"namespace\":\"shop\"},\"spec\":{}},\n"
            "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"web-%u\","
            "\"namespace\":\"shop\",\"uid\":\"uid-%u\"},\"spec\":{\"nodeName\":\"node-%u\","
            "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":"
            "\"data-%u\"}}]}}",
            i == 0 ? "" : ",\n", i, i, i, i % 100, i);
    cr_assert(fprintf(file, "]}\n") > 0 && fclose(file) == 0);
}

Test(memory, pages_take_no_more_with_more_pods)
{
    static const char *const paths[] = {"/debug/cache", "/debug/snapshot", "/metrics", "/statusz"};
    char path[] = "/tmp/claimguard-XXXXXX";
    int fd = mkstemp(path);

    cr_assert_geq(fd, 0);
    (void)close(fd);
    write_pods(path, 20000);
    cr_assert_eq(daemon_stop(&server), 0);
    cr_assert(daemon_start(&server,
                           (const char *const[]){"--snapshot", path, "--config",
                                                 TESTS_DIR "/fixtures/debug-config.yaml", NULL}));
    (void)unlink(path);
    base_mib = daemon_memory_mib(&server, "VmHWM");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct response response;
        http_call(server.metrics_port, "GET", paths[i], NULL, &response);
        cr_expect_eq(response.status, 200, "%s", paths[i]);
        cr_expect(i > 1 || response.body_len > 2 << 20, "%zu bytes", response.body_len);
        response_free(&response);
        long more_mib = daemon_memory_mib(&server, "VmHWM") - base_mib;
        cr_expect_leq(more_mib, PAGE_MIB, "%s: %ld MiB", paths[i], more_mib);
    }
}

/* ---- what is explained ---- */

enum { SHARED_CLAIMS = 32 };

/* The volumes of a pod that uses each of the claims. */
static void put_volumes(struct buf *out)
{
    buf_put(out, SLICE("\"spec\":{\"nodeName\":\"n\",\"volumes\":["));
    for (int i = 0; i < SHARED_CLAIMS; i++)
        buf_printf(out,
                   "%s{\"name\":\"v-%d\",\"persistentVolumeClaim\":{\"claimName\":\"shared-%d\"}}",
                   i == 0 ? "" : ",", i, i);
    buf_put(out, SLICE("]}"));
}

/* Claims, and pods that share them. */
static void write_sharers(const char *path, int count)
{
    FILE *file = fopen(path, "we");
    struct buf volumes;

    cr_assert_not_null(file);
    buf_init(&volumes, 8192);
    put_volumes(&volumes);
    (void)fprintf(file, "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[");
    for (int i = 0; i < SHARED_CLAIMS; i++)
        (void)fprintf(file,
                      "{\"kind\":\"PersistentVolumeClaim\",\"apiVersion\":\"v1\",\"metadata\":"
                      "{\"name\":\"shared-%d\"},\"spec\":{\"accessModes\":[\"ReadWriteMany\"]}},",
                      i);
    for (int i = 0; i < count; i++)
        (void)fprintf(
            file,
            "%s{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"p-%05d\"},"
            "%s}",
            i == 0 ? "" : ",", i, buf_text(&volumes));
    cr_assert(fprintf(file, "]}\n") > 0 && fclose(file) == 0);
    buf_dispose(&volumes);
}

/* As trees of jansson's they are in no quota: one at a time, and of a claim a hundred holders. */
Test(memory, explanations_of_claims_with_many_pods_are_small)
{
    enum { CALLS = 100, SHARERS = 1000 };
    char path[] = "/tmp/claimguard-XXXXXX";
    int fd = mkstemp(path), fds[CALLS];
    struct response response;
    struct buf body;

    cr_assert_geq(fd, 0);
    (void)close(fd);
    write_sharers(path, SHARERS);
    cr_assert_eq(daemon_stop(&server), 0);
    cr_assert(daemon_start(&server, (const char *const[]){"--snapshot", path, NULL}));
    (void)unlink(path);
    base_mib = daemon_memory_mib(&server, "VmHWM");
    buf_init(&body, 8192);
    buf_put(&body, SLICE("{\"Pod\":{\"metadata\":{\"name\":\"me\",\"uid\":\"u\"},"));
    put_volumes(&body);
    buf_put(&body, SLICE("}}"));
    cr_assert_eq(kill(server.pid, SIGSTOP), 0); /* so that all calls are there at once */
    for (int i = 0; i < CALLS; i++)
        fds[i] = post("/prefilter", &body);
    cr_assert_eq(kill(server.pid, SIGCONT), 0);
    for (int i = 0; i < CALLS; i++) {
        http_receive(fds[i], &response);
        cr_expect_eq(response.status, 200);
        cr_expect_not_null(strstr(response.body, "\"heldByMore\":900"), "%.300s", response.body);
        response_free(&response);
        (void)close(fds[i]);
    }
    buf_dispose(&body);
    expect_small();
}

/* ---- what is remembered ---- */

static long metric(const char *name)
{
    struct response response;

    http_call(server.metrics_port, "GET", "/metrics", NULL, &response);
    char *line = strstr(response.body, name);
    long value = line == NULL ? -1 : strtol(line + strlen(name), NULL, 10);
    response_free(&response);
    return value;
}

/* Calls of pods that do not exist, on one connection: pod i takes the claim "free-data" over from
 * pod i - 1, which had a lower priority. */
static void forge(int count)
{
    static char padding[200];
    int fd = http_connect(server.port);

    memset(padding, 'x', sizeof padding - 1);
    for (int i = 0; i < count; i++) {
        char body[1024], request[1200];
        struct response response;
        int length = snprintf(
            body, sizeof body,
            "{\"Pod\":{\"metadata\":{\"name\":\"f-%s-%d\",\"namespace\":\"default\",\"uid\":"
            "\"00000000-0000-0000-0000-%012d\"},\"spec\":{\"priority\":%d,\"volumes\":[{\"name\":"
            "\"v\",\"persistentVolumeClaim\":{\"claimName\":\"web-data\"}}]}},\"NodeNames\":[\"n\"]"
            "}",
            padding, i, i, i);
        length = snprintf(request, sizeof request,
                          "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s",
                          length, body);
        cr_assert_eq(http_send(fd, request, (size_t)length), 0);
        http_receive(fd, &response);
        cr_assert_eq(response.status, 200);
        cr_assert_not_null(strstr(response.body, "\"NodeNames\":[\"n\"]"), "%s", response.body);
        response_free(&response);
    }
    (void)close(fd);
}

Test(memory, a_reservation_that_lost_its_claims_ends)
{
    forge(20000);
    cr_expect_eq(metric("\nclaimguard_reservations "), 1, "%ld",
                 metric("\nclaimguard_reservations "));
    expect_small();
}
