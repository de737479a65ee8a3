/* Calls over the server's ports, with an API server that is slow or lies. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/http.h"
#include "support/scenario.h"

enum { BINDS = 240, ROUNDS = 5, ANSWER_MS_MAX = 60000 }; /* fewer than there can be connections */

static void send_post(int fd, const char *path, const char *body)
{
    char head[256];
    int length =
        snprintf(head, sizeof head, "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n\r\n",
                 path, strlen(body));

    check(http_send(fd, head, (size_t)length) == 0 && http_send(fd, body, strlen(body)) == 0,
          "%s can be sent", path);
}

/* Binds, all at once, and which of them are answered. */
struct burst {
    struct pollfd fds[BINDS]; /* -1: answered */
    int slow, refused;
};

static const char *pod_name(int round, int i)
{
    static char name[32];

    (void)snprintf(name, sizeof name, "p-%d-%d", round, i);
    return name;
}

static void put_pods(int round)
{
    for (int i = 0; i < BINDS; i++)
        put_pod(&(struct test_pod){.name = pod_name(round, i)});
}

static void send_binds(const struct guard *guard, int round, struct burst *burst)
{
    *burst = (struct burst){.slow = 0};
    for (int i = 0; i < BINDS; i++) {
        burst->fds[i] = (struct pollfd){.fd = http_connect(guard->port), .events = POLLIN};
        send_post(burst->fds[i].fd, "/bind", bind_body(pod_name(round, i), "node-1"));
    }
}

/* Reads the answers that have arrived; if there is none, waits for the first. */
static void read_answers(struct burst *burst, int wait_ms)
{
    int count = poll(burst->fds, BINDS, wait_ms);

    check(wait_ms == 0 || count > 0, "a bind has an answer");
    for (int i = 0; i < BINDS; i++) {
        struct response response;
        if (burst->fds[i].fd < 0 || burst->fds[i].revents == 0)
            continue;
        http_receive(burst->fds[i].fd, &response);
        check(response.status == 200, "bind %d has an answer", i);
        bool is_refused = strstr(response.body, "binds are under way") != NULL;
        burst->refused += is_refused;
        burst->slow += !is_refused;
        response_free(&response);
        (void)close(burst->fds[i].fd);
        burst->fds[i].fd = -1;
    }
}

/* Whether all other calls are answered before the first of the binds that are under way: the binds
 * beyond the limit, a filter call, and a preempt call, which asks the API server. */
static bool others_overtake(const struct guard *guard, int round)
{
    static struct burst burst;

    put_pods(round);
    send_binds(guard, round, &burst);
    read_answers(&burst, ANSWER_MS_MAX);
    bool was_at_once = burst.refused > 0 && burst.slow == 0;
    check(filter_passes(guard, pod_name(round, 0)), "there is room for filter");
    char *answer = guard_call(guard, "/preempt", preempt_body("b", "node-1", "a"));
    check(strstr(answer, "node-1") == NULL, "no preemption helps: %s", answer);
    free(answer);
    double in_flight = guard_metric(guard, "claimguard_binds_in_flight");
    read_answers(&burst, 0);
    printf("%d are refused, %d bound, %g under way\n", burst.refused, burst.slow, in_flight);
    bool overtook = was_at_once && burst.slow == 0;
    check(!overtook || in_flight >= 48, "%g are under way", in_flight);
    while (burst.refused + burst.slow < BINDS)
        read_answers(&burst, ANSWER_MS_MAX);
    check(burst.slow >= 48, "%d were let in", burst.slow);
    return overtook;
}

static void slow_binds_leave_room_for_the_others(void)
{
    struct guard guard;
    bool overtook = false;

    put_pair("node-1"); /* pod a holds the claim that b waits for */
    guard_start(&guard, "");
    api_fault(&(struct api_fault){.method = "POST", .path = "/binding", .delay_ms = 3000});
    for (int round = 0; round < ROUNDS && !overtook;
         round++) /* a slow machine has several attempts */
        overtook = others_overtake(&guard, round);
    check(overtook, "the others are answered while binds are under way");
    AWAIT(guard_metric(&guard, "claimguard_binds_in_flight") == 0, "none is under way");
    api_heal();
    check(bind_succeeds(&guard, pod_name(0, BINDS - 1), "node-1"),
          "one that was refused may come again");
    guard_stop(&guard);
}

/* The API server does not check the names of claims in a pod. */
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

static void check_nothing_came_with(const char *text)
{
    static const char *const methods[] = {"GET", "POST", "PATCH", "DELETE"};

    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        check(api_count(methods[i], text) == 0, "%s with %s", methods[i], text);
}

static void call_bind(const struct guard *guard, const char *ns, const char *pod)
{
    char body[512];

    (void)snprintf(body, sizeof body,
                   "{\"PodName\":\"%s\",\"PodNamespace\":\"%s\",\"PodUID\":\"u\",\"Node\":"
                   "\"node-1\"}",
                   pod, ns);
    char *answer = guard_call(guard, "/bind", body);
    printf("%s/%s: %s\n", ns, pod, answer);
    check(strcmp(answer, "{\"Error\":\"\"}") != 0, "%s/%s is not bound", ns, pod);
    free(answer);
}

/* A bind names the pod; with claimLock: Annotation, its claims are read by their names. */
static void no_name_in_a_bind_leads_elsewhere(void)
{
    static const char *const names[] = {
        ".", "..", "../../../nodes/n", "a/b", "%2e%2e", "%2F", "a?b=%2e", "a#b", "a b"};
    struct guard guard;
    char pod[16];

    guard_start(&guard, "readWriteOncePod: {claimLock: Annotation}\n");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        call_bind(&guard, "default", names[i]);
        call_bind(&guard, names[i], "web");
        (void)snprintf(pod, sizeof pod, "p-%zu", i);
        put_pod(&(struct test_pod){.name = pod, .claim = names[i]});
        AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"pods\"}") == (double)i + 1,
              "the pod is seen");
        check(!bind_succeeds(&guard, pod, "node-1"), "a claim named %s", names[i]);
    }
    check_nothing_came_with("/..");
    check_nothing_came_with("/./");
    check_nothing_came_with("/nodes/");
    check_nothing_came_with("a/b");
    check_nothing_came_with("%2e");
    check_nothing_came_with("%2E");
    check_nothing_came_with("a?b");
    check_nothing_came_with("a#b");
    guard_stop(&guard);
}

/* No object can have this name, but escaped it is one part of a path. */
static void a_name_is_one_part_of_a_path(void)
{
    struct guard guard;

    guard_start(&guard, "");
    put_pod(&(struct test_pod){.name = "asks", .claim = "data?watch=1#x"});
    check(!filter_passes(&guard, "asks"), "there is no such claim");
    check(api_count("GET", "/persistentvolumeclaims/data%3Fwatch%3D1%23x") == 1,
          "it was asked about");
    check_nothing_came_with("/data?watch");
    guard_stop(&guard);
}

static void a_request_that_is_not_served_has_no_time(void)
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
        SCENARIO(slow_binds_leave_room_for_the_others),
        SCENARIO(a_claim_that_cannot_be_is_not_asked_about),
        SCENARIO(no_name_in_a_bind_leads_elsewhere),
        SCENARIO(a_name_is_one_part_of_a_path),
        SCENARIO(a_request_that_is_not_served_has_no_time),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
