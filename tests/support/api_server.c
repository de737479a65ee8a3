#include "support/api_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "support/api_store.h"

enum {
    HEAD_BYTES_MAX = 16384,
    FAULTS_MAX = 64,
    RESOURCES_MAX = 16,
    DESCRIPTORS_MAX = 8192,
    WAIT_SECONDS = 60,
    TICK_MS = 20,
};

struct request {
    struct api_request_head head;
    char *body; /* "" when there is none */
};

/* A request that came, for api_count. */
struct record {
    char *method, *target, *body;
};

struct watch_cut {
    char resource[64];
    unsigned cuts;
};

static struct {
    pthread_mutex_t mutex; /* guards the rest */
    pthread_cond_t changed;
    uint16_t port;
    struct api_store store;
    struct api_fault faults[FAULTS_MAX];
    unsigned hits[FAULTS_MAX];
    size_t fault_count;
    struct record *records;
    size_t record_count;
    const char *held[RESOURCES_MAX];
    struct watch_cut cuts[RESOURCES_MAX];
    unsigned let_go; /* how often those that hang were closed */
    size_t connections, connections_max, connections_ever;
    bool is_open[DESCRIPTORS_MAX]; /* connections */
    bool is_down;                  /* nobody is to listen */
    bool is_listening;
} api = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void lock(void)
{
    (void)pthread_mutex_lock(&api.mutex);
}

static void unlock(void)
{
    (void)pthread_cond_broadcast(&api.changed);
    (void)pthread_mutex_unlock(&api.mutex);
}

static void die(const char *what)
{
    perror(what);
    abort();
}

static void pause_ms(int ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};

    if (ms > 0)
        (void)nanosleep(&time, NULL);
}

/* ---- bytes ---- */

static bool send_all(int fd, const char *bytes, size_t len)
{
    while (len != 0) {
        ssize_t count = send(fd, bytes, len, MSG_NOSIGNAL);
        if (count <= 0)
            return false;
        bytes += count;
        len -= (size_t)count;
    }
    return true;
}

static bool send_answer(int fd, unsigned status, const char *body)
{
    char head[256];
    int len = snprintf(head, sizeof head,
                       "HTTP/1.1 %u Status\r\nContent-Type: application/json\r\n"
                       "Content-Length: %zu\r\n\r\n",
                       status, strlen(body));

    return send_all(fd, head, (size_t)len) && send_all(fd, body, strlen(body));
}

static bool send_chunk(int fd, const char *line)
{
    char size[32];
    int len = snprintf(size, sizeof size, "%zx\r\n", strlen(line) + 1);

    return send_all(fd, size, (size_t)len) && send_all(fd, line, strlen(line)) &&
           send_all(fd, "\n\r\n", 3);
}

/* A header's value, or NULL. */
static const char *header(const char *head, const char *name, char *out, size_t size)
{
    const char *at = strcasestr(head, name);

    if (at == NULL)
        return NULL;
    at += strlen(name);
    at += strspn(at, " ");
    (void)snprintf(out, size, "%.*s", (int)strcspn(at, "\r\n"), at);
    return out;
}

/* False: the connection is over. Ownership: the body is the caller's. */
static bool read_request(int fd, struct request *out)
{
    static _Thread_local char head[HEAD_BYTES_MAX];
    char length[32];
    size_t len = 0;

    memset(out, 0, sizeof *out);
    memset(head, 0, sizeof head);
    while (strstr(head, "\r\n\r\n") == NULL) {
        if (len + 1 == sizeof head || recv(fd, head + len, 1, 0) != 1)
            return false;
        len++;
    }
    if (sscanf(head, "%15s %8191s", out->head.method, out->head.target) != 2)
        return false;
    (void)header(head, "\r\nContent-Type:", out->head.content_type, sizeof out->head.content_type);
    size_t body_len = header(head, "\r\nContent-Length:", length, sizeof length) == NULL
                          ? 0
                          : strtoul(length, NULL, 10);
    out->body = calloc(1, body_len + 1);
    if (out->body == NULL)
        die("no memory");
    for (size_t got = 0; got < body_len;) {
        ssize_t count = recv(fd, out->body + got, body_len - got, 0);
        if (count <= 0)
            return false;
        got += (size_t)count;
    }
    return true;
}

static bool is_closed(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static unsigned read_let_go(void)
{
    lock();
    unsigned count = api.let_go;
    unlock();
    return count;
}

static void hang(int fd, unsigned let_go_before)
{
    while (!is_closed(fd) && read_let_go() == let_go_before)
        pause_ms(TICK_MS);
}

void api_let_go(void)
{
    lock();
    api.let_go++;
    unlock();
}

/* ---- what came ---- */

static void note(const struct request *request)
{
    struct record *grown = realloc(api.records, (api.record_count + 1) * sizeof *api.records);

    if (grown == NULL)
        die("no memory");
    api.records = grown;
    api.records[api.record_count++] = (struct record){
        strdup(request->head.method), strdup(request->head.target), strdup(request->body)};
}

static bool is_such(const struct record *record, const char *method, const char *text)
{
    return strcmp(record->method, method) == 0 &&
           (strstr(record->target, text) != NULL || strstr(record->body, text) != NULL);
}

static size_t count_records(const char *method, const char *text)
{
    size_t count = 0;

    for (size_t i = 0; i < api.record_count; i++)
        count += is_such(&api.records[i], method, text);
    return count;
}

size_t api_place(const char *method, const char *text)
{
    lock();
    size_t i = 0;
    while (i < api.record_count && !is_such(&api.records[i], method, text))
        i++;
    size_t place = i == api.record_count ? SIZE_MAX : i;
    unlock();
    return place;
}

size_t api_count(const char *method, const char *text)
{
    lock();
    size_t count = count_records(method, text);
    unlock();
    return count;
}

bool api_wait(const char *method, const char *text, size_t count)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_SECONDS;
    lock();
    int rc = 0;
    while (count_records(method, text) < count && rc == 0)
        rc = pthread_cond_timedwait(&api.changed, &api.mutex, &until);
    bool came = count_records(method, text) >= count;
    unlock();
    return came;
}

size_t api_connections_max(void)
{
    lock();
    size_t most = api.connections_max;
    unlock();
    return most;
}

size_t api_connections_ever(void)
{
    lock();
    size_t count = api.connections_ever;
    unlock();
    return count;
}

/* ---- faults ---- */

static bool has(const char *text, const char *part)
{
    return part == NULL || strstr(text, part) != NULL;
}

/* The fault that hits the request. Under the mutex. False: none. */
static bool find_fault(const struct request *request, struct api_fault *out)
{
    for (size_t i = api.fault_count; i-- > 0;) {
        const struct api_fault *fault = &api.faults[i];
        bool matches =
            (fault->method == NULL || strcmp(fault->method, request->head.method) == 0) &&
            has(request->head.target, fault->path) && has(request->body, fault->body);
        if (!matches || (fault->times != 0 && api.hits[i] >= fault->skip + fault->times))
            continue;
        if (api.hits[i]++ < fault->skip)
            continue;
        *out = *fault;
        return true;
    }
    return false;
}

void api_fault(const struct api_fault *fault)
{
    lock();
    if (api.fault_count == FAULTS_MAX)
        die("too many faults");
    api.hits[api.fault_count] = 0;
    api.faults[api.fault_count++] = *fault;
    unlock();
}

void api_heal(void)
{
    lock();
    api.fault_count = 0;
    unlock();
}

/* ---- watches ---- */

static bool is_held(const char *resource)
{
    for (size_t i = 0; i < RESOURCES_MAX; i++)
        if (api.held[i] != NULL && strcmp(api.held[i], resource) == 0)
            return true;
    return false;
}

static unsigned *cuts_of(const char *resource)
{
    for (size_t i = 0; i < RESOURCES_MAX; i++) {
        struct watch_cut *cut = &api.cuts[i];
        if (cut->resource[0] == '\0')
            (void)snprintf(cut->resource, sizeof cut->resource, "%s", resource);
        if (strcmp(cut->resource, resource) == 0)
            return &cut->cuts;
    }
    die("too many resources are watched");
    return NULL;
}

struct watch {
    int fd;
    char resource[64];
    size_t next;   /* of the store's events */
    size_t opened; /* how many there were when it was opened */
    uint64_t after;
    unsigned cuts;
};

/* Sends what has happened since. Under the mutex, which is given up while bytes are sent. */
static bool send_events(struct watch *watch)
{
    bool is_open = true;

    while (is_open && watch->next < api.store.event_count && !is_held(watch->resource)) {
        const struct api_event *event = &api.store.events[watch->next++];
        bool is_late = event->is_fleeting && watch->next <= watch->opened;
        if (strcmp(event->resource, watch->resource) != 0 || event->version <= watch->after ||
            is_late)
            continue;
        const char *line = event->line; /* never freed */
        (void)pthread_mutex_unlock(&api.mutex);
        is_open = send_chunk(watch->fd, line);
        (void)pthread_mutex_lock(&api.mutex);
    }
    return is_open;
}

/* Until its time is over, it is cut, or the peer goes. */
static bool follow_events(struct watch *watch, double seconds)
{
    struct timespec until, now, tick;
    bool goes_on = true;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)seconds;
    while (goes_on) {
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        (void)clock_gettime(CLOCK_REALTIME, &tick);
        tick.tv_nsec += TICK_MS * 1000000L;
        tick.tv_sec += tick.tv_nsec / 1000000000L;
        tick.tv_nsec %= 1000000000L;
        lock();
        goes_on = send_events(watch) && watch->cuts == *cuts_of(watch->resource) &&
                  now.tv_sec < until.tv_sec;
        if (goes_on)
            (void)pthread_cond_timedwait(&api.changed, &api.mutex, &tick);
        (void)pthread_mutex_unlock(&api.mutex);
        goes_on = goes_on && !is_closed(watch->fd);
    }
    return send_all(watch->fd, "0\r\n\r\n", 5);
}

static const char expired[] =
    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
    "\"status\":\"Failure\",\"message\":\"too old resource version\",\"reason\":\"Expired\","
    "\"code\":410}}";

static const char watch_head[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                 "Transfer-Encoding: chunked\r\n\r\n";

static bool serve_watch(int fd, const struct api_path *path)
{
    char value[64];
    double seconds = strtod(api_path_value(path, "timeoutSeconds", value, sizeof value), NULL);
    bool streams =
        strcmp(api_path_value(path, "sendInitialEvents", value, sizeof value), "true") == 0;
    struct watch watch = {.fd = fd};
    char *initial = NULL;

    (void)snprintf(watch.resource, sizeof watch.resource, "%s", path->resource);
    lock();
    watch.cuts = *cuts_of(path->resource);
    watch.opened = api.store.event_count;
    watch.after = strtoull(api_path_value(path, "resourceVersion", value, sizeof value), NULL, 10);
    bool is_expired = !streams && watch.after < api.store.oldest;
    if (streams) {
        initial = api_store_stream(&api.store, path->resource);
        watch.next = api.store.event_count;
    }
    unlock();
    bool is_open = send_all(fd, watch_head, strlen(watch_head));
    for (char *line = initial, *end; is_open && line != NULL && *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        *end = '\0';
        is_open = send_chunk(fd, line);
    }
    free(initial);
    if (is_expired)
        return send_chunk(fd, expired) && send_all(fd, "0\r\n\r\n", 5);
    return is_open && follow_events(&watch, seconds == 0 ? 300 : seconds);
}

/* ---- requests ---- */

static void tell_status(char **text, unsigned code)
{
    json_t *status = api_status(code, "", "as the test wants it");

    *text = json_dumps(status, JSON_COMPACT);
    json_decref(status);
}

/* Applies the request and gives the true answer. */
static unsigned apply(const struct request *request, char **text)
{
    json_t *answer;

    lock();
    unsigned status = api_store_handle(&api.store, &request->head, request->body, &answer);
    *text = json_dumps(answer, JSON_COMPACT);
    json_decref(answer);
    unlock();
    return status;
}

static bool is_watch(const struct request *request, struct api_path *path)
{
    char value[64];

    return api_path_parse(path, request->head.target) &&
           strcmp(api_path_value(path, "watch", value, sizeof value), "1") == 0 &&
           !(api.store.serves_pages &&
             api_path_value(path, "sendInitialEvents", value, sizeof value)[0] != '\0');
}

/* False: the connection is to be closed. */
static bool answer(int fd, const struct request *request)
{
    struct api_fault fault = {.ending = API_ANSWER};
    struct api_path path;
    char *text = NULL;
    unsigned status = 0;

    lock();
    note(request);
    unsigned let_go_before = api.let_go;
    bool is_hit = find_fault(request, &fault);
    bool watches = is_watch(request, &path);
    bool refuses = !watches && api.store.serves_pages &&
                   strstr(request->head.target, "sendInitialEvents") != NULL;
    unlock();
    pause_ms(fault.delay_ms);
    if (watches && (!is_hit || (fault.ending == API_ANSWER && fault.status == 0)))
        return serve_watch(fd, &path);
    bool is_true = fault.ending == API_ANSWER && fault.status == 0;
    if (refuses)
        tell_status(&text, status = 422);
    else if (!watches && (!is_hit || is_true || fault.is_applied))
        status = apply(request, &text);
    pause_ms(fault.late_ms);
    if (is_hit && fault.status != 0 && !refuses) {
        free(text);
        status = fault.status;
        if (fault.answer != NULL)
            text = strdup(fault.answer);
        else
            tell_status(&text, status);
    }
    bool stays = fault.ending == API_ANSWER &&
                 send_answer(fd, status, is_hit && fault.answer != NULL ? fault.answer : text);
    if (fault.ending == API_HANG)
        hang(fd, let_go_before);
    free(text);
    return stays;
}

static void *serve_connection(void *context)
{
    int fd = (int)(intptr_t)context;
    struct request request;
    bool stays = true;

    lock();
    api.connections_ever++;
    if (++api.connections > api.connections_max)
        api.connections_max = api.connections;
    api.is_open[fd] = true;
    if (api.is_down)
        (void)shutdown(fd, SHUT_RDWR);
    unlock();
    while (stays && read_request(fd, &request)) {
        stays = answer(fd, &request);
        free(request.body);
        request.body = NULL;
    }
    free(request.body);
    lock();
    api.is_open[fd] = false;
    api.connections--;
    (void)close(fd);
    unlock();
    return NULL;
}

static void accept_one(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), on = 1;
    pthread_t thread;

    if (fd < 0)
        return;
    if (fd >= DESCRIPTORS_MAX)
        die("too many connections");
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (pthread_create(&thread, NULL, serve_connection, (void *)(intptr_t)fd) != 0)
        die("thread");
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
        die("a port");
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
        die("listen");
    api.port = ntohs(address.sin_port);
    return listener;
}

/* Listens, and not while it is down. */
static void *accept_connections(void *context)
{
    struct pollfd ready = {.fd = (int)(intptr_t)context, .events = POLLIN};

    for (;;) {
        lock();
        if (api.is_down == api.is_listening) {
            if (api.is_down)
                (void)close(ready.fd);
            else
                ready.fd = listen_on_port();
            api.is_listening = !api.is_down;
        }
        bool is_listening = api.is_listening;
        unlock();
        if (!is_listening)
            pause_ms(TICK_MS);
        else if (poll(&ready, 1, TICK_MS) > 0)
            accept_one(ready.fd);
    }
    return NULL;
}

/* ---- what a test says ---- */

void api_serve(void)
{
    pthread_t thread;

    api_store_init(&api.store);
    int listener = listen_on_port();
    api.is_listening = true;
    if (pthread_create(&thread, NULL, accept_connections, (void *)(intptr_t)listener) != 0)
        die("thread");
    (void)pthread_detach(thread);
}

static void set_down(bool is_down)
{
    lock();
    api.is_down = is_down;
    for (int fd = 0; fd < DESCRIPTORS_MAX && is_down; fd++)
        if (api.is_open[fd])
            (void)shutdown(fd, SHUT_RDWR);
    while (api.is_listening == is_down)
        (void)pthread_cond_wait(&api.changed, &api.mutex);
    unlock();
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

void api_put(const char *format, ...)
{
    va_list arguments;
    json_error_t error;
    char *text = NULL;

    va_start(arguments, format);
    int rc = vasprintf(&text, format, arguments);
    va_end(arguments);
    json_t *object = rc < 0 ? NULL : json_loads(text, JSON_ALLOW_NUL, &error);
    if (object == NULL) {
        (void)fprintf(stderr, "api_put: %s: %s\n", rc < 0 ? "no memory" : error.text, text);
        abort();
    }
    free(text);
    lock();
    api_store_put(&api.store, object);
    unlock();
}

void api_remove(const char *resource, const char *ns, const char *name)
{
    lock();
    bool was_there = api_store_remove(&api.store, resource, ns, name);
    unlock();
    if (!was_there)
        die("api_remove: there is none");
}

const char *api_object(const char *resource, const char *ns, const char *name)
{
    lock();
    const json_t *object = api_store_find(&api.store, resource, ns, name);
    const char *text = object == NULL ? "null" : json_dumps(object, JSON_COMPACT);
    unlock();
    return text;
}

const char *api_text(const char *resource, const char *ns, const char *name, const char *path)
{
    lock();
    const json_t *at = api_store_find(&api.store, resource, ns, name);
    char key[128];

    for (const char *p = path; *p != '\0' && at != NULL; p += *p == '.') {
        size_t len = strcspn(p, ".");
        (void)snprintf(key, sizeof key, "%.*s", (int)len, p);
        for (char *c = key; *c != '\0'; c++) /* "claimguard~io/holder": a key with dots */
            *c = *c == '~' ? '.' : *c;
        at = json_object_get(at, key);
        p += len;
    }
    const char *text = json_string_value(at);
    text = text == NULL ? "" : strdup(text);
    unlock();
    return text;
}

void api_hold(const char *resource)
{
    lock();
    for (size_t i = 0; i < RESOURCES_MAX; i++)
        if (api.held[i] == NULL) {
            api.held[i] = resource;
            break;
        }
    unlock();
}

void api_release(const char *resource)
{
    lock();
    for (size_t i = 0; i < RESOURCES_MAX; i++)
        if (api.held[i] != NULL && strcmp(api.held[i], resource) == 0)
            api.held[i] = NULL;
    unlock();
}

void api_send_line(const char *resource, const char *line)
{
    lock();
    api_store_add_line(&api.store, resource, line, true);
    unlock();
}

void api_log_line(const char *resource, const char *line)
{
    lock();
    api_store_add_line(&api.store, resource, line, false);
    unlock();
}

void api_cut(const char *resource)
{
    lock();
    ++*cuts_of(resource);
    unlock();
}

void api_compact(void)
{
    lock();
    api.store.oldest = ++api.store.version;
    unlock();
}

void api_serve_pages(void)
{
    lock();
    api.store.serves_pages = true;
    unlock();
}

void api_set_field(enum api_field field)
{
    lock();
    api.store.field = field;
    unlock();
}
