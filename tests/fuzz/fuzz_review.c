/*
 * The calls of admission webhooks: the first byte is the path, the rest the body. What is answered
 * with 200 was JSON for jansson too (as_go.h), and every answer is JSON. A small review takes
 * little memory, of which others cannot deprive it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "as_go.h"
#include "config/base/log.h"
#include "extender/serving/admission/admit.h"
#include "fuzz.h"
#include "small_cluster.h"

enum { SMALL_BODY_BYTES = 4096 };

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
    small_cluster_start(&state);
    scratch_init(&scratch, 1 << 20, &state.review_memory);
    buf_put(&scratch.body, body);
    unsigned status = admit_answer(&state, &call, &scratch);
    json_t *answer = load_as_go(scratch.result, 0, &is_answer_limited);
    json_t *read = load_as_go(body, 0, &is_body_limited);
    if (size <= SMALL_BODY_BYTES && scratch.share.used_bytes > REVIEW_SMALL_BYTES)
        abort();
    if ((answer == NULL && !is_answer_limited) ||
        (status == 200 && read == NULL && !is_body_limited) || (status != 200 && status != 400))
        abort();
    json_decref(answer);
    json_decref(read);
    scratch_dispose(&scratch);
    services_dispose(&state);
    return 0;
}
