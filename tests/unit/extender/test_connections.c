/*
 * How long each stage of a connection may take, and which connection makes room for another. The
 * clock moves only when a test moves it; the thread that checks the deadlines checks all the time.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/base/clock.h"
#include "extender/serving/http/connections.h"

#define SECOND UINT64_C(1000000000)

static struct connections connections;
static atomic_uint gauge;
static uint64_t time_ns; /* these two: guarded by the lock of connections */
static unsigned looks;

uint64_t __wrap_monotonic_ns(void);
uint64_t __wrap_monotonic_ns(void)
{
    return time_ns;
}

int __real_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    struct timespec soon;

    (void)until; /* the clock stands still */
    looks++;
    (void)clock_gettime(CLOCK_MONOTONIC, &soon);
    soon = monotonic_timespec((uint64_t)soon.tv_sec * SECOND + (uint64_t)soon.tv_nsec + NS_PER_MS);
    return __real_pthread_cond_timedwait(condition, mutex, &soon);
}

static unsigned looks_so_far(void)
{
    (void)pthread_mutex_lock(&connections.lock);
    unsigned so_far = looks;
    (void)pthread_mutex_unlock(&connections.lock);
    return so_far;
}

/* Time passes, and the deadlines were checked since. */
static void pass(double seconds)
{
    (void)pthread_mutex_lock(&connections.lock);
    time_ns += (uint64_t)(seconds * 1e9 + 0.5);
    unsigned before = looks;
    (void)pthread_mutex_unlock(&connections.lock);
    while (looks_so_far() == before)
        (void)usleep(500);
}

static void start(unsigned max, unsigned per_address_max)
{
    const struct connection_limits limits = {max, per_address_max, max / 2, max / 2};
    struct error err;

    time_ns = 1000 * SECOND;
    cr_assert_eq(connections_start(&connections, &limits, &gauge, &err), 0);
}

/* ---- clients ---- */

struct client {
    struct connection_entry entry;
    int ends[2]; /* the server's end, and the client's */
};

static void come_from(struct client *client, const struct sockaddr *address)
{
    *client = (struct client){.ends = {-1, -1}};
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, client->ends), 0);
    connections_add(&connections, &client->entry, client->ends[0], address);
}

static void come(struct client *client)
{
    come_from(client, NULL);
}

static void enter(struct client *client, enum stage stage)
{
    connections_enter(&connections, &client->entry, stage);
}

static void come_in(struct client *client, enum stage stage)
{
    come(client);
    enter(client, stage);
}

/* As the client sees it. */
static bool is_open(const struct client *client)
{
    char byte;

    return recv(client->ends[1], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static void leave(struct client *client)
{
    connections_remove(&connections, &client->entry);
    (void)close(client->ends[0]);
    (void)close(client->ends[1]);
}

/* Waits until all connections are gone. */
static void stop(void)
{
    cr_expect_eq(atomic_load(&gauge), 0, "%u", atomic_load(&gauge));
    connections_stop(&connections);
}

static void leave_all(struct client *clients, int count)
{
    for (int i = 0; i < count; i++)
        leave(&clients[i]);
    stop();
}

/* ---- how long ---- */

Test(connections, each_stage_has_its_time)
{
    static const double seconds[] = {
        [STAGE_HELLO] = 10,  [STAGE_HEADERS] = 10, [STAGE_BODY] = 10,
        [STAGE_ANSWER] = 30, [STAGE_IDLE] = 120,
    };
    struct client client;

    start(10, 0);
    for (int stage = 0; stage < STAGE_COUNT; stage++) {
        if (stage == STAGE_WORK)
            continue;
        come(&client);
        pass(5);
        enter(&client, (enum stage)stage); /* its time starts here */
        pass(seconds[stage] - 0.001);
        cr_expect(is_open(&client), "stage %d: too soon", stage);
        cr_expect_eq(atomic_load(&gauge), 1);
        pass(0.001);
        cr_expect(!is_open(&client), "stage %d: too late", stage);
        cr_expect_eq(atomic_load(&gauge), 0);
        leave(&client);
    }
    stop();
}

Test(connections, the_time_of_the_first_headers_begins_with_the_connection)
{
    struct client client;

    start(10, 0);
    come(&client);
    pass(9.999);
    cr_expect(is_open(&client));
    pass(0.001);
    cr_expect(!is_open(&client));
    leave_all(&client, 1);
}

Test(connections, our_own_work_takes_as_long_as_it_takes)
{
    struct client client;

    start(10, 0);
    come_in(&client, STAGE_WORK);
    pass(100000);
    cr_expect(is_open(&client));
    connections_hurry(&connections);
    pass(100000);
    cr_expect(is_open(&client));
    leave_all(&client, 1);
}

Test(connections, in_a_hurry_each_stage_has_a_second)
{
    struct client clients[STAGE_COUNT], late;

    start(10, 0);
    for (int i = 0; i < STAGE_COUNT; i++)
        come_in(&clients[i], (enum stage)i);
    pass(9); /* the time before does not count */
    connections_hurry(&connections);
    pass(0.5);
    come(&late);
    pass(0.499);
    for (int i = 0; i < STAGE_COUNT; i++)
        cr_expect(is_open(&clients[i]), "stage %d: too soon", i);
    pass(0.001);
    for (int i = 0; i < STAGE_COUNT; i++)
        cr_expect_eq(is_open(&clients[i]), i == STAGE_WORK, "stage %d", i);
    cr_expect(is_open(&late), "it has come later");
    pass(0.5);
    cr_expect(!is_open(&late));
    leave(&late);
    leave_all(clients, STAGE_COUNT);
}

/* ---- which connection makes room ---- */

/* Two connections, each for some seconds in its stage; for a third one, one of them makes room. */
static void expect_to_go(enum stage first, double first_seconds, enum stage second,
                         double second_seconds, int who)
{
    struct client clients[3];
    double head_start = first_seconds - second_seconds;

    start(2, 0);
    come_in(&clients[0], head_start < 0 ? STAGE_WORK : first);
    come_in(&clients[1], head_start < 0 ? second : STAGE_WORK);
    pass(head_start < 0 ? -head_start : head_start);
    enter(&clients[head_start >= 0], head_start < 0 ? first : second); /* it starts later */
    pass(head_start < 0 ? first_seconds : second_seconds);
    come(&clients[2]);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(is_open(&clients[i]), i != who, "%d %g s, %d %g s: %d", (int)first,
                     first_seconds, (int)second, second_seconds, i);
    cr_expect_eq(atomic_load(&gauge), 2);
    leave_all(clients, 3);
}

Test(connections, the_one_that_has_used_up_most_of_its_time_makes_room)
{
    expect_to_go(STAGE_BODY, 6, STAGE_IDLE, 60, 0);
    expect_to_go(STAGE_BODY, 4, STAGE_IDLE, 60, 1);
    expect_to_go(STAGE_HEADERS, 5, STAGE_ANSWER, 12, 0);
    expect_to_go(STAGE_HEADERS, 5, STAGE_ANSWER, 18, 1);
    expect_to_go(STAGE_HELLO, 3, STAGE_HELLO, 2, 0);
    expect_to_go(STAGE_IDLE, 2, STAGE_IDLE, 3, 1);
}

Test(connections, the_one_that_has_just_begun_makes_no_room)
{
    expect_to_go(STAGE_HEADERS, 0.999, STAGE_IDLE, 0.5, 1);
    expect_to_go(STAGE_HEADERS, 1, STAGE_IDLE, 0.5, 0);
    expect_to_go(STAGE_BODY, 0.999, STAGE_ANSWER, 2, 1);
}

Test(connections, of_several_that_have_just_begun_the_oldest_makes_room)
{
    expect_to_go(STAGE_HEADERS, 0.2, STAGE_BODY, 0.5, 0);
    expect_to_go(STAGE_HELLO, 0, STAGE_HELLO, 0, 0);
}

Test(connections, a_connection_that_waits_for_us_makes_no_room)
{
    expect_to_go(STAGE_WORK, 1000, STAGE_IDLE, 1, 1);
    expect_to_go(STAGE_IDLE, 1, STAGE_WORK, 1000, 0);
    expect_to_go(STAGE_WORK, 1000, STAGE_WORK, 1000, 2); /* the new one itself */
}

Test(connections, the_one_that_was_closed_leaves_its_place)
{
    struct client clients[4];

    start(2, 0);
    come(&clients[0]);
    come(&clients[1]);
    pass(10); /* both are overdue */
    come(&clients[2]);
    come(&clients[3]);
    cr_expect(!is_open(&clients[0]) && !is_open(&clients[1]));
    cr_expect(is_open(&clients[2]) && is_open(&clients[3]));
    leave_all(clients, 4);
}

Test(connections, the_ones_in_the_middle_of_a_request_are_busy)
{
    struct client clients[STAGE_COUNT];

    start(STAGE_COUNT, 0);
    for (int i = 0; i < STAGE_COUNT; i++)
        come_in(&clients[i], (enum stage)i);
    cr_expect_eq(connections_busy(&connections), 4); /* of hello and idle, nothing has come */
    pass(10);
    cr_expect_eq(connections_busy(&connections), 2); /* work, answer */
    leave_all(clients, STAGE_COUNT);
}

/* ---- owners ---- */

static struct sockaddr_storage address_of(const char *text)
{
    struct sockaddr_storage address = {.ss_family = strchr(text, ':') ? AF_INET6 : AF_INET};
    void *bytes = address.ss_family == AF_INET
                      ? (void *)&((struct sockaddr_in *)(void *)&address)->sin_addr
                      : (void *)&((struct sockaddr_in6 *)(void *)&address)->sin6_addr;

    cr_assert_eq(inet_pton(address.ss_family, text, bytes), 1, "%s", text);
    return address;
}

/* An owner may have one connection: the first makes room if the second has the same owner. */
static void expect_owner(const char *first, const char *second, bool is_same)
{
    struct sockaddr_storage addresses[] = {address_of(first), address_of(second)};
    struct client clients[2];

    start(10, 1);
    for (int i = 0; i < 2; i++)
        come_from(&clients[i], (const struct sockaddr *)&addresses[i]);
    cr_expect_eq(is_open(&clients[0]), !is_same, "%s, %s", first, second);
    cr_expect(is_open(&clients[1]), "%s, %s", first, second);
    leave_all(clients, 2);
}

Test(connections, an_ipv4_address_is_an_owner)
{
    expect_owner("192.0.2.1", "192.0.2.1", true);
    expect_owner("192.0.2.1", "192.0.2.2", false);
    expect_owner("192.0.2.1", "193.0.2.1", false);
}

Test(connections, all_of_an_ipv6_64_is_an_owner)
{
    expect_owner("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true);
    expect_owner("2001:db8:1:2::1", "2001:db8:1:2:8000::1", true);
    expect_owner("2001:db8:1:2::1", "2001:db8:1:3::1", false);
    expect_owner("2001:db8:1:2::1", "2002:db8:1:2::1", false);
}

Test(connections, an_ipv4_address_in_ipv6_is_that_ipv4_address)
{
    expect_owner("::ffff:192.0.2.1", "192.0.2.1", true);
    expect_owner("::ffff:192.0.2.1", "::ffff:192.0.2.2", false);
    expect_owner("::ffff:192.0.2.1", "::1", false);
}

Test(connections, in_the_share_of_an_owner_the_others_do_not_count)
{
    struct sockaddr_storage one = address_of("192.0.2.1"), other = address_of("192.0.2.2");
    struct client clients[4];

    start(10, 2);
    come_from(&clients[0], (const struct sockaddr *)&other);
    pass(5); /* it has used up most of its time */
    for (int i = 1; i < 4; i++)
        come_from(&clients[i], (const struct sockaddr *)&one);
    for (int i = 0; i < 4; i++)
        cr_expect_eq(is_open(&clients[i]), i != 1, "%d", i);
    leave_all(clients, 4);
}

/* ---- floods ---- */

static bool may_come_from(const struct sockaddr_storage *address)
{
    return connections_may_add(&connections, (const struct sockaddr *)address);
}

Test(connections, who_never_sends_a_request_closes_only_their_own)
{
    enum { MAX = 8, FLOOD = 30 };
    struct sockaddr_storage api = address_of("192.0.2.1"), other = address_of("192.0.2.2");
    struct client idle, dials, flood[FLOOD];

    start(MAX, 0);
    come_from(&idle, (const struct sockaddr *)&api);
    enter(&idle, STAGE_IDLE);
    pass(100); /* it has used up most of its time */
    for (int i = 0; i < FLOOD; i++) {
        come_from(&flood[i], (const struct sockaddr *)&other);
        if (i == FLOOD / 2)
            come_from(&dials, (const struct sockaddr *)&api);
    }
    cr_expect(is_open(&idle), "an API server's");
    cr_expect(is_open(&dials), "it dials in the middle of the flood, and its handshake takes time");
    for (int i = 0; i < FLOOD; i++)
        cr_expect_eq(is_open(&flood[i]), i >= FLOOD - (MAX - 2), "%d", i);
    leave(&idle);
    leave(&dials);
    leave_all(flood, FLOOD);
}

/* The first has no request yet, either: it dials in the middle of the flood. One that has had a
 * request may dial several times at once, as an API server does. */
Test(connections, many_addresses_without_a_request_leave_room_for_another)
{
    enum { MAX = 32, ADDRESSES = 4, EACH = 20, KNOWN = 8 };
    struct sockaddr_storage other = address_of("192.0.2.99"), api = address_of("192.0.2.98");
    struct client clients[ADDRESSES * EACH], dials, idle, more[KNOWN];
    char text[32];
    int count = 0;

    start(MAX, 0);
    come_from(&idle, (const struct sockaddr *)&api);
    enter(&idle, STAGE_IDLE);
    for (int i = 0; i < ADDRESSES * EACH; i++) {
        (void)snprintf(text, sizeof text, "192.0.2.%d", 1 + i % ADDRESSES);
        struct sockaddr_storage address = address_of(text);
        if (may_come_from(&address))
            come_from(&clients[count++], (const struct sockaddr *)&address);
    }
    cr_expect_leq(count, MAX / 2, "%d", count);
    cr_assert(may_come_from(&other));
    come_from(&dials, (const struct sockaddr *)&other);
    cr_expect(is_open(&dials) && is_open(&clients[0]));
    for (int i = 0; i < KNOWN; i++) {
        cr_expect(may_come_from(&api), "%d", i);
        come_from(&more[i], (const struct sockaddr *)&api);
    }
    cr_expect_not(may_come_from(&api));
    for (int i = 0; i < KNOWN; i++)
        leave(&more[i]);
    leave(&idle);
    leave(&dials);
    leave_all(clients, count);
}

Test(connections, one_address_has_half_of_all_without_a_request)
{
    enum { MAX = 8 };
    struct sockaddr_storage one = address_of("192.0.2.1"), other = address_of("192.0.2.2");
    struct client clients[MAX / 2];

    start(MAX, 0);
    for (int i = 0; i < MAX / 2; i++) {
        cr_expect(may_come_from(&one), "%d", i);
        come_from(&clients[i], (const struct sockaddr *)&one);
    }
    cr_expect_not(may_come_from(&one));
    cr_expect(may_come_from(&other));
    enter(&clients[0], STAGE_HEADERS);
    cr_expect(may_come_from(&one), "a request has arrived on one");
    pass(10);
    for (int i = 0; i < MAX / 2; i++)
        cr_expect(may_come_from(&one), "those that were too slow are closed");
    leave_all(clients, MAX / 2);
}
