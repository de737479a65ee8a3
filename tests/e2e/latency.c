/*
 * latency: how long after the API server has answered a change claimguard's verdict reflects it.
 *
 *     latency KUBECONFIG NAMESPACE EXTENDER-PORT TIMES
 *
 * Each time, a pod that holds the claim `data` is created on node-1, and from the API server's
 * answer on, /prefilter is asked about another pod, as fast as it answers, until that is rejected.
 * This is the way of the watch: a pod that passes is not confirmed. Prints the median and the 99th
 * percentile.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cache/client/http_client.h"
#include "config/base/clock.h"
#include "support/http.h"

static unsigned last_status;

static void on_end(void *context, const struct http_result *result)
{
    last_status = result->status;
    *(bool *)context = true;
}

static void call(struct http_client *client, const char *method, const char *path, const char *body)
{
    struct http_transfer *unused;
    struct error err = {0};
    bool is_done = false;
    struct http_request request = {.method = method,
                                   .path = path,
                                   .body = slice_of(body),
                                   .content_type = body == NULL ? NULL : "application/json",
                                   .timeout_ms = 10000,
                                   .on_end = on_end,
                                   .context = &is_done};

    if (http_client_start(client, &request, &unused, &err) < 0) {
        (void)fprintf(stderr, "latency: %s\n", err.message);
        exit(1);
    }
    while (!is_done)
        http_client_poll(client, 100);
    if (last_status / 100 != 2) {
        (void)fprintf(stderr, "latency: %s %s: %u\n", method, path, last_status);
        exit(1);
    }
}

static bool is_rejected(int socket, const char *request, size_t len)
{
    struct response response;

    if (http_send(socket, request, len) != 0)
        exit(1);
    http_receive(socket, &response);
    bool is_rejected = strstr(response.body, "\"UnschedulableAndUnresolvable\"") != NULL;
    response_free(&response);
    return is_rejected;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What is sent: to the API server, and to claimguard. */
struct texts {
    char *pods, *pod, *body, *request;
    size_t request_len;
};

static int write_texts(struct texts *out, const char *ns)
{
    char *asked = NULL;
    int len = -1;

    if (asprintf(&out->pods, "/api/v1/namespaces/%s/pods", ns) > 0 &&
        asprintf(&out->pod, "%s/holder?gracePeriodSeconds=0", out->pods) > 0 &&
        asprintf(&out->body,
                 "{\"metadata\":{\"name\":\"holder\"},\"spec\":{\"nodeName\":\"node-1\","
                 "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}],\"volumes\":[{\"name\":\"v\","
                 "\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]}}") > 0 &&
        asprintf(&asked,
                 "{\"Pod\":{\"metadata\":{\"name\":\"other\",\"namespace\":\"%s\",\"uid\":\"1\"},"
                 "\"spec\":{\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":"
                 "\"data\"}}]}}}",
                 ns) > 0)
        len = asprintf(&out->request,
                       "POST /prefilter HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s",
                       strlen(asked), asked);
    out->request_len = len < 0 ? 0 : (size_t)len;
    free(asked);
    return len < 0 ? -1 : 0;
}

static void measure(struct http_client *client, int socket, const struct texts *texts,
                    double *taken, long times)
{
    for (long i = 0; i < times; i++) {
        call(client, "POST", texts->pods, texts->body);
        uint64_t started_ns = monotonic_ns();
        while (!is_rejected(socket, texts->request, texts->request_len))
            (void)0;
        taken[i] = (double)(monotonic_ns() - started_ns) / 1e6;
        call(client, "DELETE", texts->pod, NULL);
        while (is_rejected(socket, texts->request, texts->request_len))
            (void)usleep(1000);
        (void)usleep(20000); /* the watch has sent the deletion, too */
    }
    qsort(taken, (size_t)times, sizeof *taken, compare);
    (void)printf(
        "from the API server's answer to the verdict, %ld times: median %.2f ms, p99 %.2f ms\n",
        times, taken[times / 2], taken[times * 99 / 100]);
}

int main(int argc, char **argv)
{
    struct texts texts = {.pods = NULL};
    struct kubeconfig *kubeconfig;
    struct http_client *client;
    struct error err = {0};
    long times = argc == 5 ? strtol(argv[4], NULL, 10) : 0;
    double *taken = calloc((size_t)times + 1, sizeof *taken);

    if (times <= 0 || taken == NULL || http_client_global_init(&err) < 0 ||
        kubeconfig_load(&kubeconfig, argv[1], NULL, false, &err) < 0 ||
        http_client_new(&client, kubeconfig, &err) < 0) {
        (void)fprintf(stderr, "latency: %s\n", err.message);
        return 2;
    }
    if (write_texts(&texts, argv[2]) < 0)
        return 1;
    int socket = http_connect((uint16_t)strtoul(argv[3], NULL, 10));
    measure(client, socket, &texts, taken, times);
    (void)close(socket);
    http_client_free(client);
    http_client_global_cleanup();
    kubeconfig_free(kubeconfig);
    free(taken);
    free(texts.pods);
    free(texts.pod);
    free(texts.body);
    free(texts.request);
    return 0;
}
