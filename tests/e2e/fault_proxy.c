/*
 * fault-proxy: stands between claimguard and an API server (plain HTTP, such as `kubectl proxy`
 * offers) and does what networks and servers do: cuts streams at any byte, delays, answers 410, 429
 * and 500, falls silent, and swaps in another server.
 *
 *     fault-proxy LISTEN-PORT UPSTREAM-PORT SEED
 *
 * It takes orders from standard input, a line each:
 *     faults PERCENT   so many of the requests and streams meet a fault
 *     delay MS         what a watch brings comes so much later
 *     upstream PORT    from now on; connections that are open are closed
 *     stall            connections that are open now fall silent, without closing
 *     cut              connections that are open now are closed
 *
 * Which request meets which fault follows from the seed and the order of requests. A thread a
 * connection.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_BYTES_MAX = 16384, PIECE_BYTES = 16384, QUEUE_MAX = 65536 };
enum { LOOK_MS = 250 }; /* how soon a connection that rests notices a cut */

static struct {
    atomic_int upstream, percent, delay_ms;
    atomic_uint cuts, stalls; /* how many of these orders it has had */
    atomic_uint requests;
    uint32_t seed;
} proxy;

/* Bytes on their way to the client, not before their time. */
struct piece {
    int64_t due_ms;
    size_t len;
    char bytes[PIECE_BYTES];
};

struct connection {
    int client, server;
    unsigned cuts, stalls; /* as it was opened */
    uint32_t random;
    bool is_watch;
    bool is_slow;      /* small pieces, with pauses */
    int64_t cut_after; /* bytes of the answer; -1: none */
    struct piece **queue;
    size_t first, last; /* of the queue, modulo QUEUE_MAX */
    bool has_ended; /* the server has closed: the client's side is closed when the queue is empty */
};

static int64_t clock_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static uint32_t next_random(struct connection *connection)
{
    connection->random ^= connection->random << 13;
    connection->random ^= connection->random >> 17;
    connection->random ^= connection->random << 5;
    return connection->random;
}

static int connect_to(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static bool send_all(int fd, const char *bytes, size_t len)
{
    for (size_t sent = 0; sent < len;) {
        ssize_t count = send(fd, bytes + sent, len - sent, MSG_NOSIGNAL);
        if (count <= 0)
            return false;
        sent += (size_t)count;
    }
    return true;
}

/* Answers in the API server's stead. */
static bool answer(struct connection *connection, unsigned fault)
{
    static const struct {
        int code;
        const char *text, *headers, *reason;
    } answers[] = {
        {410, "Gone", "", "Expired"},
        {429, "Too Many Requests", "Retry-After: 1\r\n", "TooManyRequests"},
        {500, "Internal Server Error", "", "InternalError"},
        {401, "Unauthorized", "", "Unauthorized"},
        {503, "Service Unavailable", "", "ServiceUnavailable"},
    };
    char body[256], head[512];
    unsigned i = fault % (sizeof answers / sizeof *answers);

    int body_len = snprintf(
        body, sizeof body,
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
        "\"message\":\"injected\",\"reason\":\"%s\",\"code\":%d}",
        answers[i].reason, answers[i].code);
    int head_len =
        snprintf(head, sizeof head,
                 "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n",
                 answers[i].code, answers[i].text, answers[i].headers, body_len);
    return send_all(connection->client, head, (size_t)head_len) &&
           send_all(connection->client, body, (size_t)body_len);
}

/* A new request: decides what it meets. False: the connection is over. */
static bool begin_request(struct connection *connection, const char *head, size_t len)
{
    unsigned number = atomic_fetch_add(&proxy.requests, 1);
    bool has_fault;

    connection->random = (proxy.seed + number) * 2654435761U | 1;
    (void)next_random(connection);
    has_fault = next_random(connection) % 100 < (unsigned)atomic_load(&proxy.percent);
    connection->is_watch = memmem(head, len, "watch=1", 7) != NULL;
    connection->cut_after = -1;
    connection->is_slow = false;
    if (!has_fault)
        return send_all(connection->server, head, len);
    switch (next_random(connection) % 6) {
    case 0:
    case 1: return answer(connection, next_random(connection));
    case 2: return false; /* closed before there is an answer */
    case 3: connection->is_slow = true; break;
    case 4: connection->cut_after = next_random(connection) % 2000; break;
    default: connection->cut_after = next_random(connection) % 60000; break;
    }
    return send_all(connection->server, head, len);
}

static bool take_from_client(struct connection *connection)
{
    char head[HEAD_BYTES_MAX];
    ssize_t count = recv(connection->client, head, sizeof head, 0);

    return count > 0 && begin_request(connection, head, (size_t)count);
}

/* Queues what the server sent. False: too much. */
static bool take_from_server(struct connection *connection)
{
    size_t at = connection->last % QUEUE_MAX;
    struct piece *piece = malloc(sizeof *piece);

    if (piece == NULL || connection->last - connection->first == QUEUE_MAX)
        return false;
    ssize_t count = recv(connection->server, piece->bytes,
                         connection->is_slow ? 1 + next_random(connection) % 300 : PIECE_BYTES, 0);
    if (count <= 0) {
        free(piece);
        connection->has_ended = true;
        return true;
    }
    piece->len = (size_t)count;
    piece->due_ms = clock_ms() + (connection->is_watch ? atomic_load(&proxy.delay_ms) : 0) +
                    (connection->is_slow ? next_random(connection) % 3 : 0);
    connection->queue[at] = piece;
    connection->last++;
    return true;
}

/* Sends what is due. False: the connection is over. */
static bool give_to_client(struct connection *connection)
{
    while (connection->first != connection->last) {
        struct piece *piece = connection->queue[connection->first % QUEUE_MAX];
        if (piece->due_ms > clock_ms())
            return true;
        size_t len = piece->len;
        bool is_cut = connection->cut_after >= 0 && (size_t)connection->cut_after < len;
        if (is_cut)
            len = (size_t)connection->cut_after;
        else if (connection->cut_after >= 0)
            connection->cut_after -= (int64_t)len;
        bool was_sent = send_all(connection->client, piece->bytes, len);
        free(piece);
        connection->first++;
        if (!was_sent || is_cut)
            return false;
    }
    return !connection->has_ended;
}

static int wait_ms(const struct connection *connection)
{
    if (connection->first == connection->last)
        return LOOK_MS;
    int64_t left = connection->queue[connection->first % QUEUE_MAX]->due_ms - clock_ms();
    return left < 0 ? 0 : left > LOOK_MS ? LOOK_MS : (int)left;
}

static void relay(struct connection *connection)
{
    while (connection->cuts == atomic_load(&proxy.cuts)) {
        bool is_stalled = connection->stalls != atomic_load(&proxy.stalls);
        struct pollfd ready[2] = {
            {.fd = is_stalled ? -1 : connection->client, .events = POLLIN},
            {.fd = is_stalled || connection->has_ended ? -1 : connection->server,
             .events = POLLIN}};
        (void)poll(ready, 2, wait_ms(connection));
        if (is_stalled)
            continue;
        if (ready[0].revents != 0 && !take_from_client(connection))
            return;
        if (ready[1].revents != 0 && !take_from_server(connection))
            return;
        if (!give_to_client(connection))
            return;
    }
}

static void *serve(void *context)
{
    struct connection *connection = context;

    connection->cuts = atomic_load(&proxy.cuts);
    connection->stalls = atomic_load(&proxy.stalls);
    connection->server = connect_to(atomic_load(&proxy.upstream));
    connection->queue = calloc(QUEUE_MAX, sizeof *connection->queue);
    if (connection->server >= 0 && connection->queue != NULL)
        relay(connection);
    for (; connection->first != connection->last; connection->first++)
        free(connection->queue[connection->first % QUEUE_MAX]);
    if (connection->server >= 0)
        (void)close(connection->server);
    (void)close(connection->client);
    free(connection->queue);
    free(connection);
    return NULL;
}

static void *accept_all(void *context)
{
    int listener = *(const int *)context;

    for (;;) {
        struct connection *connection = calloc(1, sizeof *connection);
        pthread_t thread;
        int on = 1;
        if (connection == NULL)
            return NULL;
        connection->client = accept(listener, NULL, NULL);
        (void)setsockopt(connection->client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (connection->client < 0 || pthread_create(&thread, NULL, serve, connection) != 0) {
            free(connection);
            continue;
        }
        (void)pthread_detach(thread);
    }
}

static void obey(const char *line)
{
    int number = 0;

    if (sscanf(line, "faults %d", &number) ==
        1) { /* NOLINT(cert-err34-c): our own tests write it */
        atomic_store(&proxy.percent, number);
    } else if (sscanf(line, "delay %d", &number) == 1) { /* NOLINT(cert-err34-c) */
        atomic_store(&proxy.delay_ms, number);
    } else if (sscanf(line, "upstream %d", &number) == 1) { /* NOLINT(cert-err34-c) */
        atomic_store(&proxy.upstream, number);
        atomic_fetch_add(&proxy.cuts, 1);
    } else if (strcmp(line, "stall\n") == 0) {
        atomic_fetch_add(&proxy.stalls, 1);
    } else if (strcmp(line, "cut\n") == 0) {
        atomic_fetch_add(&proxy.cuts, 1);
    } else {
        (void)fprintf(stderr, "fault-proxy: what is: %s", line);
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    pthread_t thread;
    char line[256];

    if (argc != 4) {
        (void)fprintf(stderr, "usage: fault-proxy LISTEN-PORT UPSTREAM-PORT SEED\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    atomic_store(&proxy.upstream, (int)strtol(argv[2], NULL, 10));
    proxy.seed = (uint32_t)strtoul(argv[3], NULL, 10);
    address.sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 64) != 0 || pthread_create(&thread, NULL, accept_all, &listener) != 0) {
        perror("fault-proxy");
        return 1;
    }
    while (fgets(line, sizeof line, stdin) != NULL)
        obey(line);
    return 0;
}
