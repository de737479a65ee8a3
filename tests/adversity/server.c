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

static void check_nothing_came_with(const char *text)
{
    static const char *const methods[] = {"GET", "POST", "PATCH", "DELETE"};

    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        check(api_count(methods[i], text) == 0, "%s with %s", methods[i], text);
}

static void call_bind(const struct guard *guard, const char *namespace, const char *pod)
{
    char body[512];

    (void)snprintf(body, sizeof body,
                   "{\"PodName\":\"%s\",\"PodNamespace\":\"%s\",\"PodUID\":\"u\",\"Node\":"
                   "\"node-1\"}",
                   pod, namespace);
    char *answer = guard_call(guard, "/bind", body);
    printf("%s/%s: %s\n", namespace, pod, answer);
    check(strcmp(answer, "{\"Error\":\"\"}") != 0, "%s/%s is not bound", namespace, pod);
    free(answer);
}

/* A bind says which pod; with claimLock: Annotation, its claims are read by their names. */
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

/* What no object can be called, but is one part of a path when it is escaped. */
static void a_name_is_one_part_of_a_path(void)
{
    struct guard guard;

    guard_start(&guard, "");
    put_pod(&(struct test_pod){.name = "asks", .claim = "data?watch=1#x y"});
    check(!filter_passes(&guard, "asks"), "there is no such claim");
    check(api_count("GET", "/persistentvolumeclaims/data%3Fwatch%3D1%23x%20y") == 1,
          "it was asked about");
    check_nothing_came_with("/data?watch");
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
        SCENARIO(no_name_in_a_bind_leads_elsewhere),
        SCENARIO(a_name_is_one_part_of_a_path),
        SCENARIO(what_is_not_served_has_no_time),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
