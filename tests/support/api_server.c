/* Connections, and how each request is answered. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "support/api_server_internal.h"

struct api_state api = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

void api_lock(void)
{
    (void)pthread_mutex_lock(&api.mutex);
}

void api_unlock(void)
{
    (void)pthread_cond_broadcast(&api.changed);
    (void)pthread_mutex_unlock(&api.mutex);
}

void api_die(const char *what)
{
    perror(what);
    abort();
}

void api_pause_ms(int ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};

    if (ms > 0)
        (void)nanosleep(&time, NULL);
}

static unsigned read_let_go(void)
{
    api_lock();
    unsigned count = api.let_go;
    api_unlock();
    return count;
}

static void hang(int fd, unsigned let_go_before)
{
    while (!api_is_closed(fd) && read_let_go() == let_go_before)
        api_pause_ms(TICK_MS);
}

static void tell_status(char **text, unsigned code)
{
    json_t *status = api_status(code, "", "as the test wants it");

    *text = json_dumps(status, JSON_COMPACT);
    json_decref(status);
}

/* Applies the request and gives the true answer. */
static unsigned apply(const struct api_request_seen *request, char **text)
{
    json_t *answer;

    api_lock();
    unsigned status = api_store_handle(&api.store, &request->head, request->body, &answer);
    *text = json_dumps(answer, JSON_COMPACT);
    json_decref(answer);
    api_unlock();
    return status;
}

static bool is_watch(const struct api_request_seen *request, struct api_path *path)
{
    char value[64];

    return api_path_parse(path, request->head.target) &&
           strcmp(api_path_value(path, "watch", value, sizeof value), "1") == 0 &&
           !(api.store.serves_pages &&
             api_path_value(path, "sendInitialEvents", value, sizeof value)[0] != '\0');
}

/* False: the connection is to be closed. */
static bool answer(int fd, const struct api_request_seen *request)
{
    struct api_fault fault = {.ending = API_ANSWER};
    struct api_path path;
    char *text = NULL;
    unsigned status = 0;

    api_lock();
    api_note(request);
    unsigned let_go_before = api.let_go;
    bool is_hit = api_find_fault(request, &fault);
    bool watches = is_watch(request, &path);
    bool refuses = !watches && api.store.serves_pages &&
                   strstr(request->head.target, "sendInitialEvents") != NULL;
    api_unlock();
    api_pause_ms(fault.delay_ms);
    if (watches && (!is_hit || (fault.ending == API_ANSWER && fault.status == 0)))
        return api_serve_watch(fd, &path);
    bool is_true = fault.ending == API_ANSWER && fault.status == 0;
    if (refuses)
        tell_status(&text, status = 422);
    else if (!watches && (!is_hit || is_true || fault.is_applied))
        status = apply(request, &text);
    api_pause_ms(fault.late_ms);
    if (is_hit && fault.status != 0 && !refuses) {
        free(text);
        status = fault.status;
        if (fault.answer != NULL)
            text = strdup(fault.answer);
        else
            tell_status(&text, status);
    }
    bool stays = fault.ending == API_ANSWER &&
                 api_send_answer(fd, status, is_hit && fault.answer != NULL ? fault.answer : text);
    if (fault.ending == API_HANG)
        hang(fd, let_go_before);
    free(text);
    return stays;
}

static void *serve_connection(void *context)
{
    int fd = (int)(intptr_t)context;
    struct api_request_seen request;
    bool stays = true;

    api_lock();
    api.connections_ever++;
    if (++api.connections > api.connections_max)
        api.connections_max = api.connections;
    api.is_open[fd] = true;
    if (api.is_down)
        (void)shutdown(fd, SHUT_RDWR);
    api_unlock();
    while (stays && api_read_request(fd, &request)) {
        stays = answer(fd, &request);
        free(request.body);
        request.body = NULL;
    }
    free(request.body);
    api_lock();
    api.is_open[fd] = false;
    api.connections--;
    (void)close(fd);
    api_unlock();
    return NULL;
}

static void accept_one(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), on = 1;
    pthread_t thread;

    if (fd < 0)
        return;
    if (fd >= DESCRIPTORS_MAX)
        api_die("too many connections");
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (pthread_create(&thread, NULL, serve_connection, (void *)(intptr_t)fd) != 0)
        api_die("thread");
    (void)pthread_detach(thread);
}

/* A free port, which nobody else gets while we are down: a socket that never listens stays on it.
 */
static void keep_port(struct sockaddr_in *address)
{
    int kept = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    socklen_t size = sizeof *address;

    (void)setsockopt(kept, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (kept < 0 || bind(kept, (const struct sockaddr *)address, size) != 0 ||
        getsockname(kept, (struct sockaddr *)address, &size) != 0)
        api_die("a port");
}

/* A socket on api.port; on a free one, which becomes api.port, if that is 0. */
static int listen_on_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(api.port)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (api.port == 0)
        keep_port(&address);
    (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (listener < 0 || bind(listener, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 1024) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        api_die("listen");
    api.port = ntohs(address.sin_port);
    return listener;
}

/* Listens, and not while it is down. */
static void *accept_connections(void *context)
{
    struct pollfd ready = {.fd = (int)(intptr_t)context, .events = POLLIN};

    for (;;) {
        api_lock();
        if (api.is_down == api.is_listening) {
            if (api.is_down)
                (void)close(ready.fd);
            else
                ready.fd = listen_on_port();
            api.is_listening = !api.is_down;
        }
        bool is_listening = api.is_listening;
        api_unlock();
        if (!is_listening)
            api_pause_ms(TICK_MS);
        else if (poll(&ready, 1, TICK_MS) > 0)
            accept_one(ready.fd);
    }
    return NULL;
}

void api_serve(void)
{
    pthread_t thread;

    api_store_init(&api.store);
    int listener = listen_on_port();
    api.is_listening = true;
    if (pthread_create(&thread, NULL, accept_connections, (void *)(intptr_t)listener) != 0)
        api_die("thread");
    (void)pthread_detach(thread);
}

static void set_down(bool is_down)
{
    api_lock();
    api.is_down = is_down;
    for (int fd = 0; fd < DESCRIPTORS_MAX && is_down; fd++)
        if (api.is_open[fd])
            (void)shutdown(fd, SHUT_RDWR);
    while (api.is_listening == is_down)
        (void)pthread_cond_wait(&api.changed, &api.mutex);
    api_unlock();
}

void api_go_down(void)
{
    set_down(true);
}

void api_come_back(void)
{
    set_down(false);
}

uint16_t api_port(void)
{
    return api.port;
}
