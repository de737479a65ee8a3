/* What Events say of the pods that are asked about, and of their claims: warnings, the last one of
 * each reason. */
#include <stdlib.h>
#include <string.h>

#include "cache/objects/details.h"
#include "config/base/text.h"
#include "extender/commands/why/why_internal.h"

enum {
    MESSAGE_BYTES_MAX = 1024, /* more than that is no Event of an API server */
    MESSAGE_BYTES_MIN = 16,   /* to be compared */
    EVENT_BYTES_MAX = 1 << 20,
};

static bool is_of_claim(const struct why_event *event)
{
    return slice_equal(event->kind, slice_of(kind_text(KIND_CLAIM)));
}

/* ---- while a cluster is read ---- */

/* When it was seen last, without fractions of a second, as all times are. {NULL, 0}: no memory. */
static struct slice latest(struct arena *arena, const struct event_details *read)
{
    const struct slice all[] = {read->event_time, read->last_timestamp, read->last_observed};
    struct slice out = read->created;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (slice_compare(all[i], out) > 0)
            out = all[i];
    const char *dot = out.len == 0 ? NULL : memchr(out.ptr, '.', out.len);
    return dot == NULL ? arena_copy(arena, out)
                       : arena_printf(arena, "%.*sZ", (int)(dot - out.ptr), out.ptr);
}

/* Drivers write several lines. */
static struct slice in_one_line(struct arena *arena, struct slice message)
{
    size_t most = message.len < MESSAGE_BYTES_MAX ? message.len : MESSAGE_BYTES_MAX;
    size_t len = utf8_whole((struct slice){message.ptr, most}).len, out = 0;
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

/* Without room, it is left out. */
static void keep(struct why *why, const struct event_details *read)
{
    struct arena *arena = &why->event_texts;
    struct pull_items *items = &why->events;
    struct why_event *grown = arena_grow(arena, items->items, items->count, sizeof *grown);
    struct why_event event = {.kind = arena_copy(arena, read->kind),
                              .ns = arena_copy(arena, read->ns),
                              .name = arena_copy(arena, read->name),
                              .uid = arena_copy(arena, read->uid),
                              .reason = arena_copy(arena, read->reason),
                              .last = latest(arena, read),
                              .message = in_one_line(arena, read->message),
                              .count = read->count > read->series_count ? read->count
                                                                        : read->series_count};

    if (grown == NULL)
        return;
    items->items = grown;
    if (event.kind.ptr == NULL || event.ns.ptr == NULL || event.name.ptr == NULL ||
        event.uid.ptr == NULL || event.reason.ptr == NULL || event.last.ptr == NULL ||
        event.message.ptr == NULL)
        return;
    grown[items->count++] = event;
}

void why_take_event(struct why *why, struct slice text)
{
    struct event_details read;
    struct arena arena;

    if (why->question->is_all)
        return; /* as of a live cluster */
    arena_init(&arena, EVENT_BYTES_MAX);
    bool is_read = event_details_read(text, &arena, &read);
    bool is_about = is_read && (slice_equal(read.kind, slice_of(kind_text(KIND_POD))) ||
                                slice_equal(read.kind, slice_of(kind_text(KIND_CLAIM))));
    is_about =
        is_about && api_group_of(read.api_version).len == 0 && why_asks_namespace(why, read.ns);
    why->has_events = why->has_events || is_about;
    if (is_about && !slice_equal(read.type, SLICE("Normal")))
        keep(why, &read);
    arena_dispose(&arena);
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
