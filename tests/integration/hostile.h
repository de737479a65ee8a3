/*
 * A server that is asked badly: it answers at the end as before, and has not grown. Included by the
 * tests of hostile requests and of hostile connections.
 */
#ifndef TESTS_INTEGRATION_HOSTILE_H
#define TESTS_INTEGRATION_HOSTILE_H

#include <criterion/criterion.h>

#include "support/http.h"
#include "support/process.h"

#define BODY "{\"Pod\":{\"metadata\":{\"name\":\"a\"}},\"NodeNames\":[]}" /* 48 bytes */

static struct daemon server;
static long base_mib;

static inline void setup(void)
{
    process_keep_sanitizer_small();
    cr_assert(daemon_start(
        &server, (const char *const[]){"--snapshot", TESTS_DIR "/fixtures/recorded.yaml",
                                       "--config", TESTS_DIR "/fixtures/debug-config.yaml", NULL}));
    base_mib = daemon_memory_mib(&server, "VmHWM");
}

static inline void expect_alive(void)
{
    struct response response;

    http_call(server.port, "POST", "/filter",
              "{\"Pod\":{\"metadata\":{\"name\":\"a\"}},\"NodeNames\":[\"n\"]}", &response);
    cr_expect_eq(response.status, 200);
    cr_expect_str_eq(response.body, "{\"Nodes\":null,\"NodeNames\":[\"n\"],\"FailedNodes\":{},"
                                    "\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}");
    response_free(&response);
}

static inline void teardown(void)
{
    expect_alive();
    long more_mib = daemon_memory_mib(&server, "VmHWM") - base_mib;
    cr_expect_leq(more_mib, GROWTH_MIB_MAX, "%ld MiB more than %ld MiB", more_mib, base_mib);
    cr_expect_eq(daemon_stop(&server), 0);
}

#endif
