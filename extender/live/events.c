#include "extender/live/events.h"

#include <unistd.h>

#include "config/base/clock.h"

enum { EVENT_BYTES_MAX = 64 * 1024, PATH_BYTES_MAX = 1024 };

static const char *const reasons[EVENT_REASONS - 1] = {
    "ExclusiveClaimViolated", "Preempted",          "Preempting",    "PreemptionFailed",
    "DeferFSMountRefused",    "DeferFSMountFailed", "VolumeWarning", "ClaimInUse",
};

struct event {
    const struct object_reference *pod;
    const struct event_note *note;
    unsigned number;
};

void events_init(struct events *events)
{
    *events = (struct events){.posted = 0};
    for (int i = 0; i < EVENT_REASONS; i++)
        rate_init(&events->rates[i], EVENTS_PER_MINUTE / 60.0, EVENTS_BURST, monotonic_ns());
    (void)gethostname(events->host, sizeof events->host - 1);
    (void)pthread_mutex_init(&events->lock, NULL);
}

void events_dispose(struct events *events)
{
    (void)pthread_mutex_destroy(&events->lock);
}

/* Whether an Event of the reason may be posted now, by the share. */
static bool may_post(struct events *events, int reason, unsigned share)
{
    struct rate *rate = &events->rates[reason];
    uint8_t *posted = &events->posted_in[reason][share];
    uint64_t now_ns = monotonic_ns();

    if (now_ns - events->minute_ns >= 60 * NS_PER_SECOND) {
        events->minute_ns = now_ns;
        memset(events->posted_in, 0, sizeof events->posted_in);
    }
    if (*posted == EVENTS_LEFT && rate_left(rate, now_ns) < EVENTS_LEFT + 1)
        return false;
    if (!rate_take(rate, now_ns))
        return false;
    if (*posted < EVENTS_LEFT)
        ++*posted;
    return true;
}

/* Whether one more Event may be posted in the namespace; *number: its number. */
static bool take_number(struct events *events, struct slice ns, const char *reason,
                        unsigned *number)
{
    int i = 0;

    while (i < EVENT_REASONS - 1 && strcmp(reasons[i], reason) != 0)
        i++;
    (void)pthread_mutex_lock(&events->lock);
    bool may = may_post(events, i, share_of(ns));
    *number = events->posted;
    events->posted += may;
    (void)pthread_mutex_unlock(&events->lock);
    return may;
}

static void put_text(struct buf *out, const char *key, struct slice value)
{
    buf_printf(out, ",\"%s\":", key);
    buf_json(out, value);
}

static void put_event(struct buf *out, const struct event *event, const char *host)
{
    const struct object_reference *pod = event->pod;
    int64_t now = now_ms();

    buf_printf(out,
               "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"type\":\"%s\",\"reason\":\"%s\","
               "\"count\":1,\"firstTimestamp\":\"",
               event->note->type, event->note->reason);
    buf_time(out, now, false);
    buf_put(out, SLICE("\",\"lastTimestamp\":\""));
    buf_time(out, now, false);
    buf_printf(out, "\",\"source\":{\"component\":\"claimguard\"},\"reportingComponent\":"
                    "\"claimguard\",\"metadata\":{\"name\":\"claimguard.");
    if (event->note->name != NULL)
        buf_printf(out, "%s\"", event->note->name);
    else
        buf_printf(out, "%llx.%x\"", (unsigned long long)now, event->number);
    put_text(out, "namespace", pod->ns);
    buf_put(out, SLICE("},\"involvedObject\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\""));
    put_text(out, "namespace", pod->ns);
    put_text(out, "name", pod->name);
    put_text(out, "uid", pod->uid);
    buf_put(out, SLICE("}"));
    put_text(out, "message", event->note->message);
    put_text(out, "reportingInstance", slice_of(host));
    buf_put(out, SLICE("}"));
}

/* False: it is dropped. */
static bool post(struct events *events, struct requests *requests, struct event *event)
{
    const struct object_reference *pod = event->pod;
    struct buf body, path;

    if (event->note->message.ptr == NULL ||
        !take_number(events, pod->ns, event->note->reason, &event->number))
        return false;
    buf_init(&body, EVENT_BYTES_MAX);
    buf_init(&path, PATH_BYTES_MAX);
    put_event(&body, event, events->host);
    buf_printf(&path, "/api/v1/namespaces/%.*s/events", SLICE_ARG(pod->ns));
    path.failed = path.failed || !object_reference_is_possible(pod);
    const char *text = buf_text(&path);
    bool is_posted =
        text != NULL && !body.failed &&
        requests_send(requests, &(struct request){.method = "POST",
                                                  .path = text,
                                                  .ns = pod->ns,
                                                  .content_type = "application/json",
                                                  .body = buf_slice(&body),
                                                  .may_exist = event->note->name != NULL});
    buf_dispose(&body);
    buf_dispose(&path);
    return is_posted;
}

bool events_post_once(struct events *events, struct requests *requests,
                      const struct object_reference *pod, const struct event_note *note)
{
    struct event event = {.pod = pod, .note = note};
    bool is_posted = requests == NULL || post(events, requests, &event);

    atomic_fetch_add(&events->dropped, !is_posted);
    return is_posted;
}

void events_post(struct events *events, struct requests *requests,
                 const struct object_reference *pod, const char *type, const char *reason,
                 struct slice message)
{
    const struct event_note note = {.type = type, .reason = reason, .message = message};

    (void)events_post_once(events, requests, pod, &note);
}
