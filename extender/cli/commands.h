/*
 * commands: the command line. One table (commands.c) feeds the parser, the help and the dispatch.
 */
#ifndef EXTENDER_CLI_COMMANDS_H
#define EXTENDER_CLI_COMMANDS_H

#include "config/base/error.h"

enum exit_status {
    EXIT_DONE = 0,  /* done; dry-run: schedulable */
    EXIT_NO = 1,    /* the answer is no */
    EXIT_USAGE = 2, /* bad usage, configuration or input */
};

enum { ARGUMENT_NODES_MAX = 1024 };

/* What was given on the command line; NULL or false what was not. */
struct arguments {
    const char *config, *kubeconfig, *context, *snapshot;
    const char *listen, *metrics_listen;
    const char *log_level, *log_format;
    const char *pod, *output;
    const char *operand;
    const char *nodes[ARGUMENT_NODES_MAX];
    size_t node_count;
    bool all_pending;
    bool help;
};

/* Runs the command that argv names. Returns the exit status. */
int commands_run(int argc, char **argv);

/* "claimguard: message" on stderr; returns EXIT_USAGE. */
int command_fail(const struct error *err);

/* Each command; in a file of its own. */
int command_serve(const struct arguments *arguments);
int command_snapshot(const struct arguments *arguments);
int command_dry_run(const struct arguments *arguments);
int command_check_config(const struct arguments *arguments);

#endif
