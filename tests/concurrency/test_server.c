/*
 * Many clients on a real server in this process while it is reloaded and then stopped: for TSan.
 * Exits with 1 when an accepted request was not answered, or a probe waits for the cluster's lock.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/base/log.h"
#include "extender/cli/services.h"
#include "extender/serving/server/server.h"
#include "support/http.h"
#include "support/load.h"

enum { CLIENTS = 8, REQUESTS = 150 };

static struct state state;
static struct server *server;
static uint16_t port;
static atomic_int answered, wrong, bound;

static const char filter[] = "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: 51\r\n\r\n"
                             "{\"Pod\":{\"metadata\":{\"name\":\"a\"}},\"NodeNames\":[\"n\"]}";

static void *call_always(void *argument)
{
    int fd = http_connect(port);

    (void)argument;
    for (int i = 0; i < REQUESTS; i++) {
        struct response response;
        if (http_send(fd, filter, sizeof filter - 1) != 0)
            break;
        http_receive(fd, &response);
        atomic_fetch_add(response.status == 200 ? &answered : &wrong, 1);
        response_free(&response);
    }
    (void)close(fd);
    return NULL;
}

/* All clients bind a pod of their own to one exclusive claim: one may succeed. */
static void *bind_once(void *argument)
{
    char body[256];
    struct response response;

    (void)snprintf(body, sizeof body,
                   "{\"PodName\":\"p%d\",\"PodNamespace\":\"default\",\"PodUID\":\"uid-%d\","
                   "\"Node\":\"n1\"}",
                   *(const int *)argument, *(const int *)argument);
    http_call(port, "POST", "/bind", body, &response);
    atomic_fetch_add(&bound, strcmp(response.body, "{\"Error\":\"\"}") == 0);
    response_free(&response);
    return NULL;
}

static void run(void *(*function)(void *), bool reloads)
{
    pthread_t threads[CLIENTS];
    int numbers[CLIENTS];

    for (int i = 0; i < CLIENTS; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, function, &numbers[i]) != 0)
            abort();
    }
    for (int i = 0; i < 20 && reloads; i++) {
        struct config *config;
        struct error err = {0};
        if (config_load(&config, NULL, &err) == 0 && !state_reload(&state, config))
            abort();
        (void)usleep(2000);
    }
    for (int i = 0; i < CLIENTS; i++)
        (void)pthread_join(threads[i], NULL);
}

static void load_pods(void)
{
    load_text(&state.cluster,
              "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":"
              "{\"name\":\"data\"},\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"]}}");
    for (int i = 0; i < CLIENTS; i++) {
        char text[256];
        (void)snprintf(
            text, sizeof text,
            "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p%d\",\"uid\":"
            "\"uid-%d\"},\"spec\":{\"volumes\":[{\"persistentVolumeClaim\":{\"claimName\":"
            "\"data\"}}]}}",
            i, i);
        load_text(&state.cluster, text);
    }
}

static int livez(const struct server *of, char *text, size_t size)
{
    struct response response;

    http_call((uint16_t)strtoul(strchr(server_address(of), ':') + 1, NULL, 10), "GET", "/livez",
              NULL, &response);
    (void)snprintf(text, size, "%s", response.body);
    response_free(&response);
    return response.status;
}

static void *call_once(void *context)
{
    struct response response;

    (void)context;
    http_raw(port, filter, sizeof filter - 1, &response);
    response_free(&response);
    return NULL;
}

/* What a call has said that it is at; waits for it. */
static struct watched *watched_call(void)
{
    for (;;) {
        for (int i = 0; i < WATCHDOG_SLOTS; i++) {
            struct watched *slot = &state.watchdog.slots[i];
            const char *what = atomic_load(&slot->what);
            if (atomic_load(&slot->since_ns) != 0 && what != NULL && strcmp(what, "filter") == 0)
                return slot;
        }
        (void)usleep(10000);
    }
}

/* A thread holds the lock, and a call does not come to an end. */
static bool probes_report_a_deadlock(const struct server *pages)
{
    pthread_t thread;
    char text[128];
    bool is_good = true;

    (void)pthread_rwlock_wrlock(&state.lock);
    if (pthread_create(&thread, NULL, call_once, NULL) != 0)
        abort();
    struct watched *watched = watched_call();
    is_good = is_good && livez(server, text, sizeof text) == 200;
    is_good = is_good && livez(pages, text, sizeof text) == 200;
    atomic_fetch_sub(&watched->since_ns, WATCHDOG_SECONDS * UINT64_C(1000000000));
    is_good = is_good && livez(pages, text, sizeof text) == 500;
    is_good = is_good && strncmp(text, "[-] filter has worked on one task for ", 38) == 0;
    (void)pthread_rwlock_unlock(&state.lock);
    (void)pthread_join(thread, NULL);
    return is_good && livez(pages, text, sizeof text) == 200;
}

int main(void)
{
    struct server *pages;
    struct config *config;
    struct error err = {0};

    log_configure(LOG_ERROR, LOG_TEXT);
    if (config_load(&config, NULL, &err) < 0 || services_init(&state, config, &err) < 0)
        return 1;
    load_pods();
    if (server_start(&server, &state, SLICE("127.0.0.1:0"), SERVER_VERBS, &err) < 0)
        return 1;
    if (server_start(&pages, &state, SLICE("127.0.0.1:0"), SERVER_PAGES, &err) < 0)
        return 1;
    port = (uint16_t)strtoul(strchr(server_address(server), ':') + 1, NULL, 10);
    run(bind_once, false);
    run(call_always, true);
    bool is_reported = probes_report_a_deadlock(pages);
    server_stop(server);
    server_stop(pages);
    services_dispose(&state);
    (void)printf("%d answered, %d wrong, %d of %d binds won, probes %s\n", atomic_load(&answered),
                 atomic_load(&wrong), atomic_load(&bound), CLIENTS, is_reported ? "fine" : "wrong");
    return atomic_load(&wrong) == 0 && atomic_load(&answered) == CLIENTS * REQUESTS &&
                   atomic_load(&bound) == 1 && is_reported
               ? 0
               : 1;
}
