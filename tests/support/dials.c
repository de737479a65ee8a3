#include "support/dials.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/scenario.h"

enum { BATCH = 40 /* dials at a time */ };

/* Does not wait until it is accepted. */
static int dial_once(uint16_t port, unsigned address)
{
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in own = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + address);
    (void)bind(fd, (const struct sockaddr *)&own, sizeof own);
    (void)connect(fd, (const struct sockaddr *)&server, sizeof server);
    return fd;
}

static void *dial(void *context)
{
    struct dials *dials = context;
    int kept[DIALS_KEPT_MAX];

    for (unsigned i = 0; i < dials->kept; i++)
        kept[i] = -1;
    while (!atomic_load(&dials->is_over)) {
        for (int i = 0; i < BATCH; i++) {
            unsigned number = atomic_fetch_add(&dials->count, 1);
            int *slot = &kept[number % dials->kept];
            if (*slot >= 0)
                (void)close(*slot);
            *slot = dial_once(dials->port, dials->addresses == 0 ? 0 : number % dials->addresses);
        }
        sleep_ms((int)(1000 * BATCH / dials->per_second));
    }
    for (unsigned i = 0; i < dials->kept; i++)
        if (kept[i] >= 0)
            (void)close(kept[i]);
    return NULL;
}

void dials_begin(struct dials *dials)
{
    check(dials->kept <= DIALS_KEPT_MAX, "so many are not kept");
    check(pthread_create(&dials->thread, NULL, dial, dials) == 0, "thread");
}

void dials_end(struct dials *dials)
{
    atomic_store(&dials->is_over, true);
    (void)pthread_join(dials->thread, NULL);
}
