/* Watches: the events of one resource, from a version on, until they are cut. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/api_server_internal.h"

static bool is_held(const char *resource)
{
    for (size_t i = 0; i < RESOURCES_MAX; i++)
        if (api.held[i] != NULL && strcmp(api.held[i], resource) == 0)
            return true;
    return false;
}

struct api_watched *api_watched_of(const char *resource)
{
    for (size_t i = 0; i < RESOURCES_MAX; i++) {
        struct api_watched *watched = &api.watched[i];
        if (watched->resource[0] == '\0')
            (void)snprintf(watched->resource, sizeof watched->resource, "%s", resource);
        if (strcmp(watched->resource, resource) == 0)
            return watched;
    }
    api_die("too many resources are watched");
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
        is_open = api_send_chunk(watch->fd, line);
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
        api_lock();
        goes_on = send_events(watch) && watch->cuts == api_watched_of(watch->resource)->cuts &&
                  now.tv_sec < until.tv_sec;
        if (goes_on)
            (void)pthread_cond_timedwait(&api.changed, &api.mutex, &tick);
        (void)pthread_mutex_unlock(&api.mutex);
        goes_on = goes_on && !api_is_closed(watch->fd);
    }
    return api_send_all(watch->fd, "0\r\n\r\n", 5);
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
    api_lock();
    watch.cuts = api_watched_of(path->resource)->cuts;
    api_watched_of(path->resource)->open++;
    watch.opened = api.store.event_count;
    watch.after = strtoull(api_path_value(path, "resourceVersion", value, sizeof value), NULL, 10);
    bool is_expired = !streams && watch.after < api.store.oldest;
    if (streams) {
        initial = api_store_stream(&api.store, path->resource);
        watch.next = api.store.event_count;
    }
    api_unlock();
    bool is_open = api_send_all(fd, watch_head, strlen(watch_head));
    for (char *line = initial, *end; is_open && line != NULL && *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        *end = '\0';
        is_open = api_send_chunk(fd, line);
    }
    free(initial);
    if (is_expired)
        return api_send_chunk(fd, expired) && api_send_all(fd, "0\r\n\r\n", 5);
    return is_open && follow_events(&watch, seconds == 0 ? 300 : seconds);
}

bool api_serve_watch(int fd, const struct api_path *path)
{
    bool stays_open = serve_watch(fd, path);

    api_lock();
    api_watched_of(path->resource)->open--;
    api_unlock();
    return stays_open;
}
