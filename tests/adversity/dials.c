/* Who opens thousands of connections a second to the port for reviews, and never finishes a TLS
 * handshake, is a tenant with a pod: the reviews of API servers still have answers. */
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/reviews.h"

enum {
    DIALS_PER_SECOND = 4000,
    BATCH = 40,   /* dials at a time */
    KEPT = 1000,  /* of the last ones, so many stay open */
    REVIEWS = 60, /* each with a connection of its own */
};

struct flood {
    uint16_t port;
    pthread_t thread;
    atomic_bool is_over;
    unsigned dials;
};

/* Does not wait until it is accepted. */
static int dial_once(uint16_t port)
{
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in own = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    (void)bind(fd, (const struct sockaddr *)&own, sizeof own);
    (void)connect(fd, (const struct sockaddr *)&server, sizeof server);
    return fd;
}

static void *dial(void *context)
{
    struct flood *flood = context;
    int kept[KEPT];

    for (int i = 0; i < KEPT; i++)
        kept[i] = -1;
    while (!atomic_load(&flood->is_over)) {
        for (int i = 0; i < BATCH; i++) {
            int *slot = &kept[flood->dials++ % KEPT];
            if (*slot >= 0)
                (void)close(*slot);
            *slot = dial_once(flood->port);
        }
        sleep_ms(1000 * BATCH / DIALS_PER_SECOND);
    }
    for (int i = 0; i < KEPT; i++)
        if (kept[i] >= 0)
            (void)close(kept[i]);
    return NULL;
}

static void dials_that_never_finish_stop_no_review(void)
{
    struct flood flood = {.dials = 0};
    struct guard guard;
    int failed = 0;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "a", .claim = "data"});
    admission_start(&guard, "");
    flood.port = admission_port(&guard);
    check(pthread_create(&flood.thread, NULL, dial, &flood) == 0, "thread");
    int64_t started_ms = clock_ms(), longest_ms = 0;
    for (int i = 0; i < REVIEWS; i++) {
        int64_t before_ms = clock_ms();
        failed += strcmp(admit(&guard, &(struct test_review){.pod = "a", .node = "node-1"}),
                         "allowed") != 0;
        int64_t took_ms = clock_ms() - before_ms;
        longest_ms = took_ms > longest_ms ? took_ms : longest_ms;
        sleep_ms(50);
    }
    int64_t took_ms = clock_ms() - started_ms;
    atomic_store(&flood.is_over, true);
    (void)pthread_join(flood.thread, NULL);
    printf("%u dials in %lld ms, %d of %d reviews failed, the longest took %lld ms\n", flood.dials,
           (long long)took_ms, failed, REVIEWS, (long long)longest_ms);
    check(failed == 0, "%d failed", failed);
    check(flood.dials > DIALS_PER_SECOND / 2, "%u dials are no flood", flood.dials);
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {SCENARIO(dials_that_never_finish_stop_no_review)};
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
