#include "extender/serving/http/connections.h"

#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <utlist.h>

#include "config/base/clock.h"
#include "config/base/scope.h"

enum {
    LOOK_MS = 250,
    HURRY_SECONDS_MAX = 1,
    FLOOD_MIN = 2,        /* new connections of one address */
    NEW_OF_KNOWN_MAX = 8, /* the same of one that has had a request: API servers dial several */
};

/* How long each stage may take; 0: no limit. */
static const unsigned allowed_seconds[STAGE_COUNT] = {
    [STAGE_HELLO] = HEADER_SECONDS_MAX,  [STAGE_HEADERS] = HEADER_SECONDS_MAX,
    [STAGE_BODY] = BODY_SECONDS_MAX,     [STAGE_WORK] = 0,
    [STAGE_ANSWER] = ANSWER_SECONDS_MAX, [STAGE_IDLE] = IDLE_SECONDS_MAX,
};

/* ---- addresses ---- */

/* The address that counts for the limit per address. Of an IPv6 address it is the /64, because one
 * client usually has all addresses in it. */
static struct in6_addr owner_of(const struct sockaddr *address)
{
    struct in6_addr owner = {0};

    if (address != NULL && address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)address;
        owner.s6_addr[10] = owner.s6_addr[11] = 0xff;
        memcpy(&owner.s6_addr[12], &v4->sin_addr, sizeof v4->sin_addr);
    } else if (address != NULL && address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)address;
        bool is_v4 = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
        memcpy(&owner, &v6->sin6_addr, is_v4 ? sizeof owner : sizeof owner / 2);
    }
    return owner;
}

/* How many connections of the address, and of those with the same hash, are new. FNV-1a, from a
 * start that nobody knows: an address that shares another one's limit is hard to choose. */
static uint16_t *new_of(struct connections *connections, const struct in6_addr *address)
{
    uint32_t hash = connections->seed;

    for (size_t i = 0; i < sizeof *address; i++)
        hash = (hash ^ address->s6_addr[i]) * 16777619U;
    return &connections->new_in[hash % CONNECTION_SHARES];
}

static void begin_new(struct connections *connections, struct connection_entry *entry)
{
    entry->is_new = true;
    connections->new_count++;
    connections->new_addresses += ++*new_of(connections, &entry->address) == 1;
}

/* A request has arrived, or the connection is closed. */
static void end_new(struct connections *connections, struct connection_entry *entry)
{
    if (!entry->is_new)
        return;
    entry->is_new = false;
    connections->new_count--;
    connections->new_addresses -= --*new_of(connections, &entry->address) == 0;
}

/* How many new connections one address may have. A tenant has as many addresses as pods: when there
 * are many new ones, all addresses together have half of what one has alone. */
static unsigned new_share(const struct connections *connections)
{
    unsigned max = connections->limits.new_per_address_max;

    if (connections->new_addresses <= 1 || connections->new_count < max / 2)
        return max;
    return max / 2 / connections->new_addresses < 1 ? 1 : max / 2 / connections->new_addresses;
}

/* ---- deadlines ---- */

/* The part of its time that the connection has used: 1: all of it; -1: it has no limit. */
static double used_up(const struct connections *connections, const struct connection_entry *entry,
                      uint64_t now_ns)
{
    double seconds = allowed_seconds[entry->stage];
    uint64_t since_ns = entry->since_ns;

    if (entry->is_closed || seconds == 0)
        return -1;
    if (connections->hurry_ns != UINT64_MAX) {
        seconds = HURRY_SECONDS_MAX;
        since_ns = since_ns < connections->hurry_ns ? connections->hurry_ns : since_ns;
    }
    return (double)(now_ns - since_ns) / 1e9 / seconds;
}

/* The connection's thread in libmicrohttpd then reads the end of the stream, and ends it. */
static void shut(struct connections *connections, struct connection_entry *entry)
{
    (void)shutdown(entry->socket, SHUT_RDWR);
    entry->is_closed = true;
    end_new(connections, entry);
    atomic_fetch_sub(connections->gauge, 1);
}

static void shut_overdue(struct connections *connections, uint64_t now_ns)
{
    for (struct connection_entry *entry = connections->first; entry != NULL; entry = entry->next)
        if (used_up(connections, entry, now_ns) >= 1)
            shut(connections, entry);
}

static void *run(void *context)
{
    struct connections *connections = context;

    (void)pthread_mutex_lock(&connections->lock);
    while (!connections->is_stopping) {
        uint64_t now_ns = monotonic_ns();
        struct timespec next = monotonic_timespec(now_ns + LOOK_MS * NS_PER_MS);
        shut_overdue(connections, now_ns);
        (void)pthread_cond_timedwait(&connections->stops, &connections->lock, &next);
    }
    (void)pthread_mutex_unlock(&connections->lock);
    return NULL;
}

static void dispose(struct connections *connections)
{
    (void)pthread_cond_destroy(&connections->stops);
    (void)pthread_mutex_destroy(&connections->lock);
}

int connections_start(struct connections *connections, const struct connection_limits *limits,
                      atomic_uint *gauge, struct error *err)
{
    *connections = (struct connections){.limits = *limits,
                                        .gauge = gauge,
                                        .seed = (uint32_t)monotonic_ns(),
                                        .hurry_ns = UINT64_MAX};
    (void)pthread_mutex_init(&connections->lock, NULL);
    clock_init_cond(&connections->stops);
    int rc = pthread_create(&connections->thread, NULL, run, connections);
    if (rc == 0)
        return 0;
    dispose(connections);
    return error_system(err, rc, "thread");
}

void connections_stop(struct connections *connections)
{
    (void)pthread_mutex_lock(&connections->lock);
    connections->is_stopping = true;
    (void)pthread_cond_signal(&connections->stops);
    (void)pthread_mutex_unlock(&connections->lock);
    (void)pthread_join(connections->thread, NULL);
    dispose(connections);
}

/* ---- adding and removing ---- */

/* How much the connection deserves to be closed; -1: not at all. One that began to send less than a
 * second ago counts as 0, because it probably continues. */
static double burden(const struct connections *connections, const struct connection_entry *entry,
                     uint64_t now_ns)
{
    double used = used_up(connections, entry, now_ns);

    return used > 0 && entry->stage != STAGE_IDLE && now_ns - entry->since_ns < NS_PER_SECOND
               ? 0
               : used;
}

/* The oldest new connection of the address that has most of them; NULL: none has so many that it
 * looks like a flood. */
static struct connection_entry *find_new(struct connections *connections)
{
    struct connection_entry *found = NULL;
    unsigned most = connections->limits.flood < FLOOD_MIN ? FLOOD_MIN : connections->limits.flood;

    for (struct connection_entry *entry = connections->first; entry != NULL; entry = entry->next) {
        unsigned count = entry->is_new ? *new_of(connections, &entry->address) : 0;
        if (count >= most) { /* the list begins with the newest */
            most = count;
            found = entry;
        }
    }
    return found;
}

/* If the owner (NULL: all owners together) has more than max connections, closes a new one of an
 * address that floods; else the one with the largest burden; of several, the oldest. */
static void make_room(struct connections *connections, const struct in6_addr *owner, unsigned max)
{
    struct connection_entry *last = NULL;
    uint64_t now_ns = monotonic_ns();
    double most = -1;
    unsigned count = 0;

    for (struct connection_entry *entry = connections->first; entry != NULL; entry = entry->next) {
        if (entry->is_closed ||
            (owner != NULL && memcmp(&entry->address, owner, sizeof *owner) != 0))
            continue;
        count++;
        double weight = burden(connections, entry, now_ns);
        if (weight >= 0 && weight >= most) { /* the list begins with the newest */
            most = weight;
            last = entry;
        }
    }
    if (count <= max)
        return;
    struct connection_entry *flooding = owner == NULL ? find_new(connections) : NULL;
    if (flooding != NULL)
        shut(connections, flooding);
    else if (last != NULL)
        shut(connections, last);
}

/* How many connections of the address are new. *is_known: one has had a request, as those have
 * that an API server keeps. */
static unsigned count_new(const struct connections *connections, const struct in6_addr *address,
                          bool *is_known)
{
    unsigned count = 0;

    *is_known = false;
    for (const struct connection_entry *entry = connections->first; entry != NULL;
         entry = entry->next) {
        if (entry->is_closed || memcmp(&entry->address, address, sizeof *address) != 0)
            continue;
        count += entry->is_new;
        *is_known = *is_known || !entry->is_new;
    }
    return count;
}

bool connections_may_add(struct connections *connections, const struct sockaddr *address)
{
    struct in6_addr owner = owner_of(address);
    bool is_known;

    SCOPED_LOCK(&connections->lock);
    unsigned count = count_new(connections, &owner, &is_known), share = new_share(connections);
    if (is_known && share < NEW_OF_KNOWN_MAX)
        share = NEW_OF_KNOWN_MAX;
    return connections->limits.new_per_address_max == 0 || count < share;
}

void connections_add(struct connections *connections, struct connection_entry *entry, int socket,
                     const struct sockaddr *address)
{
    entry->socket = socket;
    entry->address = owner_of(address);
    entry->stage = STAGE_HELLO;
    SCOPED_LOCK(&connections->lock);
    entry->since_ns = monotonic_ns();
    DL_PREPEND(connections->first, entry);
    begin_new(connections, entry);
    atomic_fetch_add(connections->gauge, 1);
    if (connections->limits.per_address_max != 0)
        make_room(connections, &entry->address, connections->limits.per_address_max);
    make_room(connections, NULL, connections->limits.max);
}

void connections_remove(struct connections *connections, struct connection_entry *entry)
{
    SCOPED_LOCK(&connections->lock);
    DL_DELETE(connections->first, entry);
    end_new(connections, entry);
    if (!entry->is_closed)
        atomic_fetch_sub(connections->gauge, 1);
}

void connections_enter(struct connections *connections, struct connection_entry *entry,
                       enum stage stage)
{
    SCOPED_LOCK(&connections->lock);
    entry->stage = stage;
    entry->since_ns = monotonic_ns();
    if (stage != STAGE_HELLO)
        end_new(connections, entry);
}

/* ---- a shutdown ---- */

void connections_hurry(struct connections *connections)
{
    SCOPED_LOCK(&connections->lock);
    connections->hurry_ns = monotonic_ns();
}

unsigned connections_busy(struct connections *connections)
{
    unsigned busy = 0;

    SCOPED_LOCK(&connections->lock);
    for (const struct connection_entry *entry = connections->first; entry != NULL;
         entry = entry->next)
        busy += !entry->is_closed && entry->stage != STAGE_HELLO && entry->stage != STAGE_IDLE;
    return busy;
}
