/* cli_run: the real program, as a command, and what it prints. */
#ifndef TESTS_INTEGRATION_CLI_RUN_H
#define TESTS_INTEGRATION_CLI_RUN_H

#include <stdlib.h>

#include "support/process.h"

struct run {
    int status;
    char *out, *err;
};

static inline struct run run_with(const char *input, const char *const *arguments)
{
    struct run run;

    run.status = process_run(arguments, input, &run.out, &run.err);
    return run;
}

static inline void run_free(struct run *run)
{
    free(run->out);
    free(run->err);
}

#define RUN(...) run_with(NULL, (const char *const[]){__VA_ARGS__, NULL})

#endif
