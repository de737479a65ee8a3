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

#define REQUESTS(labels) "claimguard_apiserver_requests_total{" labels "}"
#define DURATIONS        "claimguard_apiserver_request_duration_seconds_count"

/* By what was asked for, and by what came of it. */
static void requests_to_the_api_server_are_counted(void)
{
    struct guard guard;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .node = "node-1"});
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    put_pod(&(struct test_pod){.name = "c"});
    put_pod(&(struct test_pod){.name = "d"});
    guard_start(&guard, "");
    check(!filter_passes(&guard, "b"), "b waits");
    check(guard_metric(&guard, REQUESTS("verb=\"get\",resource=\"pods\",code=\"200\"")) == 1,
          "the holder was asked about");
    check(bind_succeeds(&guard, "c", "node-1"), "c is bound");
    check(guard_metric(&guard,
                       REQUESTS("verb=\"create\",resource=\"pods/binding\",code=\"201\"")) == 1,
          "its Binding");
    check(guard_metric(&guard, DURATIONS "{verb=\"create\"}") == 1, "took a time");
    api_fault(&(struct api_fault){.method = "POST", .path = "/binding", .status = 503});
    check(!bind_succeeds(&guard, "d", "node-1"), "d is not bound");
    check(guard_metric(&guard, REQUESTS("verb=\"create\",resource=\"pods/binding\",code=\"503\"")) >
              0,
          "a refusal");
    api_heal();
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods/a", .ending = API_CLOSE});
    (void)filter_passes(&guard, "b");
    check(guard_metric(&guard, REQUESTS("verb=\"get\",resource=\"pods\",code=\"error\"")) > 0,
          "no answer");
    api_heal();
    api_cut("pods");
    AWAIT(guard_metric(&guard, REQUESTS("verb=\"watch\",resource=\"pods\",code=\"200\"")) > 0,
          "a watch ends");
    check(guard_metric(&guard, DURATIONS "{verb=\"watch\"}") == 0, "and took as long as it is to");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(slow_binds_leave_room_for_filter),
        SCENARIO(a_claim_that_cannot_be_is_not_asked_about),
        SCENARIO(requests_to_the_api_server_are_counted),
        SCENARIO(what_is_not_served_has_no_time),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
