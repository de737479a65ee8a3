/* What Events say of the pods that are asked about, and of their claims: warnings, the last one of
 * each reason. */
#include <stdlib.h>
#include <string.h>

#include "cache/json/pull_fields.h"
#include "config/base/scope.h"
#include "extender/commands/why/why_internal.h"

enum {
    MESSAGE_BYTES_MAX = 1024, /* more than that is no Event of an API server */
    MESSAGE_BYTES_MIN = 16,   /* to be compared */
};

#define NAME(key_, member_) PULL_FIELD(key_, PULL_NAME, why_event, member_)
#define TEXT(key_, member_) PULL_FIELD(key_, PULL_STRING, why_event, member_)

/* Each writer of Events fills in other times. */
struct times {
    struct slice created, event, last, series;
    int64_t series_count;
};

struct event_object {
    struct why_event event;
    struct times times;
};
_Static_assert(offsetof(struct event_object, event) == 0, "the rows of both are of one struct");

#define TIME(key_, member_)  PULL_FIELD(key_, PULL_NAME, event_object, times.member_)
#define COUNT(key_, member_) PULL_FIELD(key_, PULL_INTEGER, event_object, member_)
static const struct pull_field event_fields[] = {
    PULL_IN("metadata", TIME("creationTimestamp", created)),
    PULL_IN("involvedObject", NAME("apiVersion", api_version), NAME("kind", kind),
            NAME("namespace", ns), NAME("name", name), NAME("uid", uid)),
    PULL_IN("series", TIME("lastObservedTime", series), COUNT("count", times.series_count)),
    NAME("type", type),
    PULL_FIELD("reason", PULL_BOUNDED, why_event, reason),
    TEXT("message", message),
    TIME("eventTime", event),
    TIME("lastTimestamp", last),
    COUNT("count", event.count),
};

static bool is_of_claim(const struct why_event *event)
{
    return slice_equal(event->kind, slice_of(kind_text(KIND_CLAIM)));
}

/* ---- while a cluster is read ---- */

/* Without fractions of a second, as all times are. {NULL, 0}: no memory. */
static struct slice latest(struct arena *arena, const struct times *times)
{
    const struct slice all[] = {times->event, times->last, times->series};
    struct slice out = times->created;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (slice_compare(all[i], out) > 0)
            out = all[i];
    const char *dot = out.len == 0 ? NULL : memchr(out.ptr, '.', out.len);
    size_t whole = dot == NULL ? out.len : (size_t)(dot - out.ptr);
    char *text = arena_alloc(arena, whole + 1);
    if (text == NULL)
        return (struct slice){NULL, 0};
    if (whole != 0)
        memcpy(text, out.ptr, whole);
    text[whole] = 'Z';
    return (struct slice){text, whole + (dot == NULL ? 0 : 1)};
}

/* Drivers write several lines. */
static struct slice in_one_line(struct arena *arena, struct slice message)
{
    size_t len = message.len < MESSAGE_BYTES_MAX ? message.len : MESSAGE_BYTES_MAX, out = 0;
    char *text = arena_alloc(arena, len + 1);

    for (size_t i = 0; i < len && text != NULL; i++) {
        bool is_space = (unsigned char)message.ptr[i] <= ' ';
        if (!is_space)
            text[out++] = message.ptr[i];
        else if (out != 0 && text[out - 1] != ' ')
            text[out++] = ' ';
    }
    return (struct slice){text, out};
}

/* False: no room. */
static bool keep(struct why *why, const struct event_object *read)
{
    struct pull_items *items = &why->events;
    struct arena *arena = &why->event_texts;

    items->items = arena_grow(arena, items->items, items->count, sizeof(struct why_event));
    if (items->items == NULL)
        return false;
    struct why_event *event = (struct why_event *)items->items + items->count;
    *event = read->event;
    struct slice *const texts[] = {&event->kind, &event->ns,   &event->name,
                                   &event->uid,  &event->type, &event->reason};
    bool is_whole = true;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        *texts[i] = arena_copy(arena, *texts[i]);
        is_whole = is_whole && texts[i]->ptr != NULL;
    }
    event->last = latest(arena, &read->times);
    event->message = in_one_line(arena, read->event.message);
    if (event->count < read->times.series_count)
        event->count = read->times.series_count;
    is_whole = is_whole && event->last.ptr != NULL && event->message.ptr != NULL;
    items->count += is_whole ? 1 : 0;
    return is_whole;
}

void why_take_event(struct why *why, struct slice text)
{
    struct event_object read = {.event = {.count = 0}};
    SCOPED_ARENA(arena, 1 << 20);

    why->has_events = why->has_events || !why->question->is_all;
    if (!pull_fields_of(text, event_fields, PULL_FIELD_COUNT(event_fields), &arena, &read))
        return;
    bool is_of_pod = slice_equal(read.event.kind, slice_of(kind_text(KIND_POD)));
    if (slice_equal(read.event.type, SLICE("Normal")) || !(is_of_pod || is_of_claim(&read.event)) ||
        api_group_of(read.event.api_version).len != 0 || why->question->is_all ||
        !why_asks_namespace(why, read.event.ns))
        return;
    (void)keep(why, &read);
}

/* ---- the answer ---- */

static int compare_objects(const struct why_event *a, const struct why_event *b)
{
    int kinds = slice_compare(a->kind, b->kind), names = slice_compare(a->name, b->name);

    return kinds != 0 ? kinds : names != 0 ? names : slice_compare(a->ns, b->ns);
}

/* Those of an object together, of a reason together, the last one first. */
static int compare(const void *a, const void *b)
{
    const struct why_event *x = a, *y = b;
    int objects = compare_objects(x, y), reasons = slice_compare(x->reason, y->reason);

    return objects != 0 ? objects : reasons != 0 ? reasons : slice_compare(y->last, x->last);
}

void why_sort_events(struct why *why)
{
    if (why->events.count != 0)
        qsort(why->events.items, why->events.count, sizeof(struct why_event), compare);
}

/* The first one of the object, or behind it. */
static size_t find_first(const struct pull_items *events, const struct why_event *object)
{
    const struct why_event *items = events->items;
    size_t begin = 0, end = events->count;

    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;
        if (compare_objects(&items[middle], object) < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* Whether the answer says it already, or it is about what is over. */
static bool is_needless(const struct why_pod *pod, const struct why_event *event)
{
    struct slice message = who_message(&pod->who);
    bool is_of_scheduler = slice_equal(event->reason, SLICE("FailedScheduling"));

    if (is_of_scheduler && (message.len != 0 || pod->stage != WHY_SCHEDULING))
        return true;
    if (event->message.len < MESSAGE_BYTES_MIN)
        return false; /* it may stand in any text */
    for (size_t i = 0; i < pod->cause_count; i++)
        if (slice_has(pod->causes[i].text, event->message))
            return true;
    return slice_has(message, event->message);
}

/* Keeps the last ones. */
static void show(struct why_pod *pod, const struct why_event *event)
{
    size_t at = pod->event_count;

    while (at > 0 && slice_compare(pod->events[at - 1]->last, event->last) < 0)
        at--;
    if (at == WHY_EVENTS_SHOWN_MAX)
        return;
    if (pod->event_count < WHY_EVENTS_SHOWN_MAX)
        pod->event_count++;
    for (size_t i = pod->event_count - 1; i > at; i--)
        pod->events[i] = pod->events[i - 1];
    pod->events[at] = event;
}

/* object: with the kind, names and UID. One of the same name before it had other Events. */
static void show_of(const struct pull_items *events, struct why_pod *pod,
                    const struct why_event *object)
{
    const struct why_event *items = events->items, *before = NULL;

    for (size_t i = find_first(events, object); i < events->count; i++) {
        const struct why_event *event = &items[i];
        if (compare_objects(event, object) != 0)
            return;
        if (event->uid.len != 0 && object->uid.len != 0 && !slice_equal(event->uid, object->uid))
            continue;
        bool is_last = before == NULL || !slice_equal(before->reason, event->reason);
        before = event;
        if (is_last && !is_needless(pod, event))
            show(pod, event);
    }
}

void why_find_events(const struct why *why, struct why_pod *pod)
{
    const struct pod *record = pod->pod;
    char uid[UID_TEXT_BYTES];

    if (pod->stage == WHY_FINISHED || (pod->stage == WHY_RUNNING && !record->is_terminating))
        return;
    show_of(&why->events, pod,
            &(struct why_event){.kind = slice_of(kind_text(KIND_POD)),
                                .ns = name_text(record->ns),
                                .name = pod_name(record),
                                .uid = uid_text(&record->uid, uid)});
    for (size_t i = 0; i < pod->claim_count && pod->stage != WHY_RUNNING; i++) {
        const struct claim *claim = pod->claims[i].who.claim;
        show_of(&why->events, pod,
                &(struct why_event){.kind = slice_of(kind_text(KIND_CLAIM)),
                                    .ns = name_text(claim->ns),
                                    .name = claim_name(claim),
                                    .uid = uid_text(&claim->uid, uid)});
    }
}

void why_put_events(struct fields *out, const struct why_pod *pod)
{
    if (pod->event_count == 0)
        return;
    fields_open(out, "events", '[');
    for (size_t i = 0; i < pod->event_count; i++) {
        const struct why_event *event = pod->events[i];
        fields_open(out, NULL, '{');
        fields_text(out, "kind", event->kind);
        fields_text(out, "name", event->name);
        fields_text(out, "reason", event->reason);
        fields_text(out, "message", event->message);
        fields_number(out, "count", event->count);
        fields_text_if(out, "last", event->last);
        fields_close(out);
    }
    fields_close(out);
}

/* "FailedMount 12 times, last 2026-11-22T09:30:00Z: ..." */
void why_add_events(struct block *block, const struct why_pod *pod)
{
    for (size_t i = 0; i < pod->event_count; i++) {
        const struct why_event *event = pod->events[i];
        if (is_of_claim(event))
            buf_printf(&block->line, "claim %.*s: ", SLICE_ARG(event->name));
        buf_printf(&block->line, "%.*s", SLICE_ARG(event->reason));
        if (event->count > 1)
            buf_printf(&block->line, " %lld times", (long long)event->count);
        block_put_if(block, ", last ", event->last);
        buf_printf(&block->line, ": %.*s", SLICE_ARG(event->message));
        block_row(block, i == 0 ? "  events" : " ");
    }
}
