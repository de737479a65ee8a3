/*
 * A cluster for fuzzers of calls: the ReadWriteOncePod claims "data", which pod h holds on node n,
 * and "free"; and the pods w and x, which want free and data.
 */
#ifndef TESTS_FUZZ_SMALL_CLUSTER_H
#define TESTS_FUZZ_SMALL_CLUSTER_H

#include <stdlib.h>

#include "extender/cli/services.h"

/* Starts the state with the cluster in it; services_dispose ends it. */
static inline void small_cluster_start(struct state *state)
{
    static const char *const objects[][2] = {
        {"c",
         "{\"metadata\":{\"name\":\"data\"},\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"]}}"},
        {"c",
         "{\"metadata\":{\"name\":\"free\"},\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"]}}"},
        {"p",
         "{\"metadata\":{\"name\":\"h\",\"uid\":\"u\"},\"spec\":{\"nodeName\":\"n\",\"volumes\":[{"
         "\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]}}"},
        {"p", "{\"metadata\":{\"name\":\"w\",\"uid\":\"v\"},\"spec\":{\"volumes\":[{"
              "\"persistentVolumeClaim\":{\"claimName\":\"free\"}}]}}"},
        {"p", "{\"metadata\":{\"name\":\"x\",\"uid\":\"x\"},\"spec\":{\"volumes\":[{"
              "\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]}}"},
    };
    struct config *config;
    struct error err = {0};
    struct arena arena;

    if (config_load(&config, NULL, &err) < 0 || services_init(state, config, &err) < 0)
        abort();
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        struct object object;
        struct pull json;
        pull_init(&json, slice_of(objects[i][1]));
        if (!object_read(&json, *objects[i][0] == 'c' ? KIND_CLAIM : KIND_POD, &arena, &object) ||
            cluster_apply(&state->cluster, &object, &err) < 0)
            abort();
    }
    arena_dispose(&arena);
}

#endif
