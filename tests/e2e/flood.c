/*
 * flood: many requests to the API server at once, over claimguard's own client.
 *
 *     flood KUBECONFIG CONCURRENCY [STATUS] < LINES
 *
 * A line is a method, a path and a JSON body, which may be missing: "POST /api/v1/nodes {...}".
 * Requests of one line come after one another only with CONCURRENCY 1. Prints how many requests
 * ended with which status and how long all of it took; exit status 1 when STATUS (such as 2, for
 * all 2xx) is given and a request ended with another one.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cache/client/http_client.h"
#include "config/base/clock.h"

enum { LINE_BYTES_MAX = 4 << 20, STATUSES = 600 };

static struct {
    size_t running, done;
    size_t by_status[STATUSES];
} flood;

static void on_end(void *context, const struct http_result *result)
{
    (void)context;
    flood.running--;
    flood.done++;
    flood.by_status[result->status < STATUSES ? result->status : 0]++;
}

/* Splits "METHOD PATH BODY" in place. */
static struct http_request parse(char *line)
{
    char *path = strchr(line, ' ');
    char *body = path == NULL ? NULL : strchr(path + 1, ' ');

    if (path == NULL) {
        (void)fprintf(stderr, "flood: not METHOD PATH [BODY]: %s", line);
        exit(2);
    }
    *path++ = '\0';
    path[strcspn(path, " \n")] = '\0';
    if (body != NULL)
        body[1 + strcspn(body + 1, "\n")] = '\0';
    bool is_patch = strcmp(line, "PATCH") == 0;
    return (struct http_request){
        .method = line,
        .path = path,
        .body = body == NULL ? (struct slice){NULL, 0} : slice_of(body + 1),
        .content_type = body == NULL ? NULL
                        : is_patch   ? "application/merge-patch+json"
                                     : "application/json",
        .timeout_ms = 60000,
        .class = HTTP_WATCH, /* as many at once as the caller says */
        .on_end = on_end,
    };
}

int main(int argc, char **argv)
{
    struct kubeconfig *kubeconfig;
    struct http_client *client;
    struct error err = {0};
    size_t limit = argc > 2 ? strtoul(argv[2], NULL, 10) : 0, wrong = 0;
    char *line = malloc(LINE_BYTES_MAX);
    uint64_t started_ns = monotonic_ns();

    if (limit == 0 || line == NULL || http_client_global_init(&err) < 0 ||
        kubeconfig_load(&kubeconfig, argv[1], NULL, false, &err) < 0 ||
        http_client_new(&client, kubeconfig, &err) < 0) {
        (void)fprintf(stderr, "flood: %s\n", err.message);
        return 2;
    }
    for (bool has_more = true; has_more || flood.running != 0;) {
        while (has_more && flood.running < limit) {
            struct http_transfer *call;
            has_more = fgets(line, LINE_BYTES_MAX, stdin) != NULL;
            if (!has_more)
                break;
            struct http_request request = parse(line);
            /* the path is copied by libcurl, the body by the client */
            if (http_client_start(client, &request, &call, &err) < 0) {
                (void)fprintf(stderr, "flood: %s\n", err.message);
                return 2;
            }
            flood.running++;
        }
        http_client_poll(client, 1000);
    }
    for (unsigned status = 0; status < STATUSES; status++) {
        if (flood.by_status[status] == 0)
            continue;
        (void)printf("%u: %zu  ", status, flood.by_status[status]);
        if (argc > 3 && (unsigned)(argv[3][0] - '0') != status / 100)
            wrong += flood.by_status[status];
    }
    (void)printf("in %.2f s\n", (double)(monotonic_ns() - started_ns) / 1e9);
    http_client_free(client);
    http_client_global_cleanup();
    kubeconfig_free(kubeconfig);
    free(line);
    return wrong != 0;
}
