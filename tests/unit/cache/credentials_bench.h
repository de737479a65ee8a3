/*
 * Credential plugins that are shell scripts, in a folder of the test's own. Included by the tests
 * of credentials and of credential plugins.
 */
#ifndef TESTS_UNIT_CACHE_CREDENTIALS_BENCH_H
#define TESTS_UNIT_CACHE_CREDENTIALS_BENCH_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cache/client/credentials.h"

static char folder[64];

static inline void setup(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/credentials-test-XXXXXX");
    cr_assert(mkdtemp(folder) != NULL);
}

static inline void teardown(void)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    cr_expect_eq(system(command), 0);
}

static inline const char *write_file(const char *name, const char *text, mode_t mode)
{
    static char path[128];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    cr_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0 &&
              chmod(path, mode) == 0);
    return path;
}

#define V1      "client.authentication.k8s.io/v1"
#define V1BETA1 "client.authentication.k8s.io/v1beta1"

/* A plugin that answers so, and counts its runs in a file. */
static inline struct kubeconfig plugin(const char *script, const char **argv)
{
    static const char *const none[] = {NULL};
    char text[2048];

    (void)snprintf(text, sizeof text, "#!/bin/sh\necho run >>%s/runs\n%s\n", folder, script);
    argv[0] = write_file("plugin", text, 0700);
    argv[1] = NULL;
    return (struct kubeconfig){
        .server = "https://x",
        .exec = {.argv = argv, .env = (const char **)(uintptr_t)none, .api_version = V1}};
}

static inline size_t runs(void)
{
    char path[128], line[16];
    size_t count = 0;

    (void)snprintf(path, sizeof path, "%s/runs", folder);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        count++;
    if (file != NULL)
        (void)fclose(file);
    return count;
}

#define ANSWER_AS(version_, status_) \
    "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" version_ "\",\"status\":" status_ "}'"
#define ANSWER(status_) ANSWER_AS(V1, status_)

/* Times of the tests: from the start, on both clocks. */
static const int64_t start_ms = INT64_C(1795168800000); /* 2026-11-20T10:00:00Z */

static const uint64_t second_ns = UINT64_C(1000000000);

static inline uint64_t at_ns(unsigned second)
{
    return (1000000 + second) * second_ns; /* up for some days */
}

/* As credentials_get, so many seconds after the start, once no plugin runs any more. */
static inline int get(struct credentials *credentials, unsigned second, struct error *err)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    int rc = 0;

    *err = (struct error){.code = 0};
    do {
        rc = credentials_get(credentials, at_ns(second), start_ms + second * 1000, err);
        (void)nanosleep(&pause, NULL);
    } while (credentials_are_coming(credentials));
    return rc == CREDENTIALS_COME
               ? credentials_get(credentials, at_ns(second), start_ms + second * 1000, err)
               : rc;
}

#endif
