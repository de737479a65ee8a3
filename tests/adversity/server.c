/* What comes over the server's ports, with an API server behind it that is slow or lies. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/http.h"
#include "support/scenario.h"

enum { BINDS = 300 };

static void send_post(int fd, const char *path, const char *body)
{
    char head[256];
    int length =
        snprintf(head, sizeof head, "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n\r\n",
                 path, strlen(body));

    check(http_send(fd, head, (size_t)length) == 0 && http_send(fd, body, strlen(body)) == 0,
          "%s can be sent", path);
}

/* How many of the connections have an answer waiting to be read. */
static int count_answered(const int *fds, int count)
{
    int answered = 0;
    char byte;

    for (int i = 0; i < count; i++)
        answered += recv(fds[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
    return answered;
}

static void put_pods(const char *prefix, int count)
{
    char name[32];

    for (int i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "%s-%d", prefix, i);
        put_pod(&(struct test_pod){.name = name});
    }
}

static void slow_binds_leave_room_for_filter(void)
{
    struct guard guard;
    int fds[BINDS];
    char name[32];

    put_pods("p", BINDS);
    guard_start(&guard, "");
    api_fault(&(struct api_fault){.method = "POST", .path = "/binding", .delay_ms = 2500});
    for (int i = 0; i < BINDS; i++) {
        (void)snprintf(name, sizeof name, "p-%d", i);
        fds[i] = http_connect(guard.port);
        send_post(fds[i], "/bind", bind_body(name, "node-1"));
    }
    AWAIT(guard_metric(&guard, "claimguard_binds_in_flight") == 128, "128 binds are under way");
    int64_t started_ms = clock_ms();
    check(filter_passes(&guard, "p-0"), "there is room for filter");
    check(clock_ms() - started_ms < 1000, "filter took %d ms", (int)(clock_ms() - started_ms));
    check(count_answered(fds, BINDS) == BINDS - 128, "128 binds are under way, %d were answered",
          count_answered(fds, BINDS));
    for (int i = 0; i < BINDS; i++) {
        struct response response;
        http_receive(fds[i], &response);
        check(response.status == 200, "bind %d has an answer", i);
        response_free(&response);
        (void)close(fds[i]);
    }
    check(guard_metric(&guard, "claimguard_binds_in_flight") == 0, "none is under way");
    check(bind_succeeds(&guard, "p-299", "node-1"), "a bind that was refused may come again");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(slow_binds_leave_room_for_filter),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
