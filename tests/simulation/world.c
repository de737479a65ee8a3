#include "simulation/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS_MAX = 1 << 20 };

struct world world;

bool is_traced;

/* ---- chance ---- */

/* splitmix64 */
static uint64_t next_random(void)
{
    uint64_t z = world.random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t below(uint64_t bound)
{
    return bound == 0 ? 0 : next_random() % bound;
}

bool one_in(unsigned n)
{
    return below(n) == 0;
}

/* ---- what happens, and when ---- */

struct event {
    uint64_t at_ns, number; /* of two at one time, the one that was planned first */
    bool counts;
    void (*run)(void *context);
    void *context;
};

static struct event heap[EVENTS_MAX];
static size_t heap_count;
static uint64_t event_count;

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->number < b->number;
}

void later(uint64_t delay_ns, bool counts, void (*run)(void *context), void *context)
{
    size_t i = heap_count++;

    if (heap_count == EVENTS_MAX)
        abort();
    heap[i] = (struct event){world.now_ns + delay_ns, event_count++, counts, run, context};
    for (size_t up; i > 0 && is_before(&heap[i], &heap[up = (i - 1) / 2]); i = up) {
        struct event moved = heap[i];
        heap[i] = heap[up];
        heap[up] = moved;
    }
}

static struct event take_first(void)
{
    struct event first = heap[0];
    size_t i = 0;

    heap[0] = heap[--heap_count];
    for (;;) {
        size_t least = i, left = 2 * i + 1;
        for (size_t child = left; child <= left + 1 && child < heap_count; child++)
            least = is_before(&heap[child], &heap[least]) ? child : least;
        if (least == i)
            return first;
        struct event moved = heap[i];
        heap[i] = heap[least];
        heap[least] = moved;
        i = least;
    }
}

/* ---- what is said ---- */

void broken(const char *format, ...)
{
    va_list args;

    if (world.failure[0] != '\0')
        return;
    va_start(args, format);
    (void)vsnprintf(world.failure, sizeof world.failure, format, args);
    va_end(args);
}

void trace(const char *format, ...)
{
    char line[1024];
    va_list args;

    va_start(args, format);
    int len = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    for (int i = 0; i < len && i < (int)sizeof line; i++)
        world.trace = (world.trace ^ (unsigned char)line[i]) * UINT64_C(1099511628211);
    if (is_traced)
        printf("%9.3f %s\n", (double)world.now_ns / 1e9, line);
}

/* ---- a world ---- */

void world_begin(uint64_t seed)
{
    memset(&world, 0, sizeof world);
    heap_count = 0;
    event_count = 0;
    world.random = seed;
    world.random = next_random(); /* else seeds that follow one another share what they draw */
    world.trace = UINT64_C(14695981039346656037);
}

void world_populate(void)
{
    server_init();
    for (unsigned i = 0; i < world.replica_count; i++) {
        world.replicas[i].index = i;
        if (i == 1 && world.moves_lock)
            later(below(30 * SECOND), true, replica_come, &world.replicas[i]);
        else
            replica_start(&world.replicas[i]);
    }
    for (unsigned i = 0; i < world.scheduler_count; i++) {
        world.schedulers[i].index = i;
        world.schedulers[i].replica = i % world.replica_count;
        scheduler_start(&world.schedulers[i]);
    }
}

static void run_first(void)
{
    struct event event = take_first();

    world.now_ns = event.at_ns;
    world.steps += event.counts;
    event.run(event.context);
}

void world_run(uint64_t until_ns, void (*check)(void))
{
    while (heap_count != 0 && heap[0].at_ns <= until_ns && world.failure[0] == '\0') {
        run_first();
        if (check != NULL)
            check();
    }
    if (world.failure[0] == '\0')
        world.now_ns = until_ns;
}

void world_end(void)
{
    world.is_over = true;
    for (unsigned i = 0; i < world.scheduler_count; i++)
        world.schedulers[i].is_up = false;
    for (unsigned i = 0; i < world.replica_count; i++)
        replica_crash(&world.replicas[i]);
    while (heap_count != 0)
        run_first(); /* everything is void, and frees what it has */
    server_dispose();
}
