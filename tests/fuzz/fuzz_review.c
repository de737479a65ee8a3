/*
 * The calls of admission webhooks: the first byte is the path, the rest the body. What is answered
 * with 200 was JSON for jansson too (as_go.h), and every answer is JSON.
 */
#include <stdio.h>
#include <stdlib.h>

#include "as_go.h"
#include "config/base/log.h"
#include "extender/admission/admit.h"
#include "extender/cli/services.h"
#include "fuzz.h"

static const char *const objects[][2] = {
    {"c", "{\"metadata\":{\"name\":\"data\"},\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"]}}"},
    {"c", "{\"metadata\":{\"name\":\"free\"},\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"]}}"},
    {"p", "{\"metadata\":{\"name\":\"h\",\"uid\":\"u\"},\"spec\":{\"nodeName\":\"n\",\"volumes\":[{"
          "\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]}}"},
    {"p", "{\"metadata\":{\"name\":\"w\",\"uid\":\"v\"},\"spec\":{\"volumes\":[{"
          "\"persistentVolumeClaim\":{\"claimName\":\"free\"}}]}}"},
    {"p", "{\"metadata\":{\"name\":\"x\",\"uid\":\"x\"},\"spec\":{\"volumes\":[{"
          "\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]}}"},
};

static void fill(struct state *state)
{
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct state state;
    struct scratch scratch;
    bool is_answer_limited, is_body_limited;

    if (size == 0)
        return 0;
    const struct admit_call call = {.path = (enum admit_path)(data[0] % ADMIT_COUNT),
                                    .started_ns = monotonic_ns()};
    const struct slice body = {(const char *)data + 1, size - 1};
    log_configure(LOG_ERROR, LOG_TEXT);
    fill(&state);
    scratch_init(&scratch, 1 << 20, NULL);
    buf_put(&scratch.body, body);
    unsigned status = admit_answer(&state, &call, &scratch);
    json_t *answer = load_as_go(scratch.result, 0, &is_answer_limited);
    json_t *read = load_as_go(body, 0, &is_body_limited);
    if ((answer == NULL && !is_answer_limited) ||
        (status == 200 && read == NULL && !is_body_limited) || (status != 200 && status != 400))
        abort();
    json_decref(answer);
    json_decref(read);
    scratch_dispose(&scratch);
    services_dispose(&state);
    return 0;
}
