/*
 * The extender protocol: the first byte is the verb, the rest the body. What is answered with 200
 * was JSON for jansson too (as_go.h), and every answer is JSON.
 */
#include <stdio.h>
#include <stdlib.h>

#include "as_go.h"
#include "config/base/log.h"
#include "extender/serving/verbs/verbs.h"
#include "fuzz.h"
#include "small_cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct state state;
    struct scratch scratch;

    if (size == 0)
        return 0;
    log_configure(LOG_ERROR, LOG_TEXT);
    small_cluster_start(&state);
    scratch_init(&scratch, 1 << 20, NULL);
    buf_put(&scratch.body, (struct slice){(const char *)data + 1, size - 1});
    unsigned status = verb_answer(&state, (enum verb)(data[0] % VERB_COUNT), &scratch);
    bool is_answer_limited, is_body_limited;
    json_t *answer = load_as_go(scratch.result, 0, &is_answer_limited);
    json_t *body =
        load_as_go((struct slice){(const char *)data + 1, size - 1}, 0, &is_body_limited);
    if ((answer == NULL && !is_answer_limited) ||
        (status == 200 && body == NULL && !is_body_limited) || (status != 200 && status != 400))
        abort();
    json_decref(answer);
    json_decref(body);
    scratch_dispose(&scratch);
    services_dispose(&state);
    return 0;
}
