#include "memory/large_cluster.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/model.h"
#include "extender/cli/services.h"

enum { CHANGES = 3 }; /* at a time */

static struct state *state;
static struct model model;

typedef void put_function(const struct model *model, unsigned i, struct buf *out);

static put_function *const puts_of[KIND_COUNT] = {
    [KIND_POD] = model_put_pod, [KIND_CLAIM] = model_put_claim, [KIND_NODE] = model_put_node};

/* As the watch does: the object is there, or gone. */
static void put_text(enum kind kind, bool is_there, struct slice text)
{
    struct error err = {0};
    struct arena arena;
    struct object object;
    struct pull json;

    arena_init(&arena, 1 << 20);
    pull_init(&json, text);
    if (!object_read(&json, kind, &arena, &object))
        abort();
    object.meta.resource_version = SLICE(""); /* always news */
    if (is_there && cluster_apply(&state->cluster, &object, &err) < 0)
        abort();
    if (!is_there)
        cluster_delete(&state->cluster, &object);
    arena_dispose(&arena);
}

static void put(enum kind kind, bool is_there, unsigned i)
{
    struct buf text;

    buf_init(&text, 1 << 20);
    puts_of[kind](&model, i, &text);
    put_text(kind, is_there, buf_slice(&text));
    buf_dispose(&text);
}

/* Two pods that mount a claim themselves, by no entry of the configuration. */
static void defer(unsigned i)
{
    struct buf text;

    buf_init(&text, 1 << 20);
    buf_printf(&text, "{\"metadata\":{\"namespace\":\"vms\",\"name\":\"%u\"}}", i);
    put_text(KIND_CLAIM, true, buf_slice(&text));
    for (unsigned pod = 0; pod < 2; pod++) {
        buf_reset(&text, SIZE_MAX);
        buf_printf(&text,
                   "{\"metadata\":{\"namespace\":\"vms\",\"name\":\"%u-%u-1\"},\"spec\":{"
                   "\"nodeName\":\"of-vms\",\"runtimeClassName\":\"microvm\",\"volumes\":[{"
                   "\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"%u\","
                   "\"deferFSMount\":true}}]}}",
                   i, pod, i);
        put_text(KIND_POD, true, buf_slice(&text));
    }
    buf_dispose(&text);
}

static void reserve(unsigned i)
{
    char name[32], claim[32], uid[40];
    struct error err = {0};

    (void)snprintf(name, sizeof name, "waits-%u", i);
    (void)snprintf(claim, sizeof claim, "kept-%u", i);
    (void)snprintf(uid, sizeof uid, "00000000-0000-4000-8000-%012u", i);
    struct object made = {
        .kind = KIND_CLAIM,
        .claim = {.meta = {.ns = SLICE("kept"), .name = slice_of(claim)}, .is_rwop = true}};
    struct claim_reference use = {.name = slice_of(claim)};
    struct pod_object pod = {
        .meta = {.ns = SLICE("kept"), .name = slice_of(name), .uid = slice_of(uid)},
        .claims = &use,
        .claim_count = 1};
    if (cluster_apply(&state->cluster, &made, &err) < 0 ||
        reservation_take(&state->cluster, &pod, NULL, false, UINT64_MAX, &err) < 0)
        abort();
}

static void release(unsigned i)
{
    struct object_reference pod;
    char name[32], uid[40];

    (void)snprintf(name, sizeof name, "waits-%u", i);
    (void)snprintf(uid, sizeof uid, "00000000-0000-4000-8000-%012u", i);
    pod = (struct object_reference){KIND_POD, SLICE("kept"), slice_of(name), slice_of(uid)};
    reservation_release_absent(&state->cluster, &pod);
}

void large_cluster_fill(struct state *out)
{
    struct config *config;
    struct error err = {0};

    model = (struct model){
        .nodes = NODES, .pods = PODS, .claims = PODS, .exclusive_share = 0.5, .seed = 1};
    state = out;
    if (config_load(&config, NULL, &err) < 0 || services_init(out, config, &err) < 0)
        abort();
    config->server.debug_endpoints = true;
    for (unsigned i = 0; i < NODES; i++)
        put(KIND_NODE, true, i);
    for (unsigned i = 0; i < PODS; i++) {
        put(KIND_CLAIM, true, i);
        put(KIND_POD, true, i);
    }
    for (unsigned i = 0; i < RESERVED; i++)
        reserve(i);
    for (unsigned i = 0; i < DEFERRED; i++)
        defer(i);
}

void large_cluster_change(void)
{
    static unsigned number;

    for (int i = 0; i < CHANGES; i++) {
        unsigned any = (unsigned)(number++ * UINT64_C(2654435761) % PODS) | 1;
        put(any % 4 == 1 ? KIND_POD : KIND_CLAIM, false, any);
        if (number % 2 == 0)
            put(any % 4 == 1 ? KIND_POD : KIND_CLAIM, true, any);
    }
    put(KIND_NODE, number % 3 == 0, (number % NODES) | 1);
    unsigned odd = (number % RESERVED) | 1;
    if (number % 2 == 0)
        reserve(odd); /* maybe once more */
    else
        release(odd);
}
