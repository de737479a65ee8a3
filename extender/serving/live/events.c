#include "extender/serving/live/events.h"

#include <unistd.h>

#include "config/base/clock.h"
#include "config/base/scope.h"

enum { EVENT_BYTES_MAX = 64 * 1024, PATH_BYTES_MAX = 1024 };

static const char *const reasons[EVENT_REASONS - 1] = {
    "ExclusiveClaimViolated", "Preempted",          "Preempting",    "PreemptionFailed",
    "DeferFSMountRefused",    "DeferFSMountFailed", "VolumeWarning", "ClaimInUse",
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
    size_t used = EVENTS_BURST - (size_t)rate_left(rate, now_ns);
    if (share_is_over(*posted, used, 1, EVENTS_BURST, 1) || !rate_take(rate, now_ns))
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
    SCOPED_LOCK(&events->lock);
    bool may = may_post(events, i, share_of(ns));
    *number = events->posted;
    events->posted += may;
    return may;
}

static void put_text(struct buf *out, const char *key, struct slice value)
{
    buf_printf(out, ",\"%s\":", key);
    buf_json(out, value);
}

static void put_event(struct buf *out, const struct object_reference *pod,
                      const struct event_note *note, const char *host, unsigned number)
{
    int64_t now = now_ms();

    buf_printf(out,
               "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"type\":\"%s\",\"reason\":\"%s\","
               "\"count\":1,\"firstTimestamp\":\"",
               note->type, note->reason);
    buf_time(out, now, false);
    buf_put(out, SLICE("\",\"lastTimestamp\":\""));
    buf_time(out, now, false);
    buf_printf(out, "\",\"source\":{\"component\":\"claimguard\"},\"reportingComponent\":"
                    "\"claimguard\",\"metadata\":{\"name\":\"claimguard.");
    if (note->name != NULL)
        buf_printf(out, "%s\"", note->name);
    else
        buf_printf(out, "%llx.%x\"", (unsigned long long)now, number);
    put_text(out, "namespace", pod->ns);
    buf_put(out, SLICE("},\"involvedObject\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\""));
    put_text(out, "namespace", pod->ns);
    put_text(out, "name", pod->name);
    put_text(out, "uid", pod->uid);
    buf_put(out, SLICE("}"));
    put_text(out, "message", note->message);
    put_text(out, "reportingInstance", slice_of(host));
    buf_put(out, SLICE("}"));
}

/* False: it is dropped. */
static bool post(struct events *events, struct requests *requests,
                 const struct object_reference *pod, const struct event_note *note)
{
    SCOPED_BUF(body, EVENT_BYTES_MAX);
    SCOPED_BUF(path, PATH_BYTES_MAX);
    unsigned number;

    if (note->message.ptr == NULL || !take_number(events, pod->ns, note->reason, &number))
        return false;
    put_event(&body, pod, note, events->host, number);
    buf_printf(&path, "/api/v1/namespaces/%.*s/events", SLICE_ARG(pod->ns));
    path.failed = path.failed || !object_reference_is_possible(pod);
    const char *text = buf_text(&path);
    return text != NULL && !body.failed &&
           requests_send(requests, &(struct request){.method = "POST",
                                                     .path = text,
                                                     .ns = pod->ns,
                                                     .content_type = "application/json",
                                                     .body = buf_slice(&body),
                                                     .may_exist = note->name != NULL});
}

bool events_post_once(struct events *events, struct requests *requests,
                      const struct object_reference *pod, const struct event_note *note)
{
    bool is_posted = requests == NULL || post(events, requests, pod, note);

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
