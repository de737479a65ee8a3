/* Clients that are slow, silent, or very many: none takes the server from the others. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "extender/serving/http/connections.h"
#include "extender/serving/server/server.h"
#include "integration/hostile.h"

TestSuite(connections, .init = setup, .fini = teardown);

Test(connections, half_a_first_request_is_closed_after_ten_seconds, .timeout = 60)
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
Test(connections, a_sender_that_drips_is_cut_off, .timeout = 60)
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

Test(connections, no_trickle_extends_the_deadline_of_headers, .timeout = 60)
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

Test(connections, a_body_that_does_not_come_is_not_waited_for, .timeout = 60)
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
Test(connections, trickling_connections_leave_the_probes_alone, .timeout = 60)
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

Test(connections, an_address_has_a_share_of_the_metrics_port)
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
Test(connections, an_address_may_have_all_of_the_schedulers_port)
{
    int crowd[CROWD];

    for (int i = 0; i < CROWD; i++)
        crowd[i] = http_connect(server.port);
    expect_answer(server.port);
    cr_expect_eq(count_open(crowd, CROWD), CROWD);
    close_all(crowd, CROWD);
}

Test(connections, a_body_that_never_comes_holds_up_nobody)
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

Test(connections, more_connections_than_allowed_leave_the_probes_alone, .timeout = 60)
{
    int sockets[FLOOD];

    for (int i = 0; i < FLOOD; i++)
        sockets[i] = http_connect(server.port);
    expect_room(sockets, server.port, VERB_CONNECTIONS_MAX);
}

Test(connections, more_connections_than_allowed_leave_room_for_a_probe, .timeout = 60)
{
    int sockets[FLOOD];

    for (int i = 0; i < FLOOD; i++)
        sockets[i] = connect_nth(i);
    expect_room(sockets, server.metrics_port, PAGE_CONNECTIONS_MAX);
}
