/* What comes over the server's ports, with an API server behind it that is slow or lies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static void put_pods(const char *prefix, int count)
{
    char name[32];

    for (int i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "%s-%d", prefix, i);
        put_pod(&(struct test_pod){.name = name});
    }
}

/* Reads the answers to binds; returns how many say that too many were under way. */
static int count_refused(const int *fds)
{
    int refused = 0;

    for (int i = 0; i < BINDS; i++) {
        struct response response;
        http_receive(fds[i], &response);
        check(response.status == 200, "bind %d has an answer", i);
        refused += strstr(response.body, "64 binds are under way") != NULL;
        response_free(&response);
        (void)close(fds[i]);
    }
    return refused;
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
    check(filter_passes(&guard, "p-0"), "there is room for filter");
    double in_flight = guard_metric(&guard, "claimguard_binds_in_flight");
    check(in_flight > 0 && in_flight <= 64, "%g binds are under way", in_flight);
    int refused = count_refused(fds);
    check(refused > 0 && refused <= BINDS - 64, "%d were refused", refused);
    check(guard_metric(&guard, "claimguard_binds_in_flight") == 0, "none is under way");
    check(bind_succeeds(&guard, "p-299", "node-1"), "a bind that was refused may come again");
    guard_stop(&guard);
}

/* The API server does not look at how a pod names its claims. */
static void a_claim_that_cannot_be_is_not_asked_about(void)
{
    static const char *const names[] = {".", "..", "../../../../apis", "a/b", "%2e%2e", "x/../y"};
    struct guard guard;
    char pod[16];

    guard_start(&guard, "");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(pod, sizeof pod, "p-%zu", i);
        put_pod(&(struct test_pod){.name = pod, .claim = names[i]});
        char *answer = guard_call(&guard, "/filter", filter_body(pod));
        printf("%s: %s\n", names[i], answer);
        check(strstr(answer, "not found") != NULL, "%s: %s", names[i], answer);
        free(answer);
    }
    check(api_count("GET", "/api/v1/namespaces/default") == 0, "nothing of the namespace was read");
    check(guard_metric(&guard, "claimguard_confirmations_total{result=\"stands\"}") == 6,
          "each verdict is certain");
    guard_stop(&guard);
}

static void what_is_not_served_has_no_time(void)
{
    static const char *const names[] = {"claimguard_cache_last_event_timestamp_seconds",
                                        "claimguard_list_duration_seconds"};
    struct guard guard;
    char sample[128];

    api_fault(&(struct api_fault){.path = "/volumeattributesclasses", .status = 404});
    guard_start(&guard, "");
    char *text = guard_get(&guard, "/metrics", NULL);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(sample, sizeof sample, "\n%s{resource=\"volumeattributesclasses\"}",
                       names[i]);
        check(strstr(text, sample) == NULL, "there is %s", sample);
        (void)snprintf(sample, sizeof sample, "\n%s{resource=\"pods\"}", names[i]);
        check(strstr(text, sample) != NULL, "there is no %s", sample);
    }
    free(text);
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(slow_binds_leave_room_for_filter),
        SCENARIO(a_claim_that_cannot_be_is_not_asked_about),
        SCENARIO(what_is_not_served_has_no_time),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
