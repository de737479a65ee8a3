/*
 * commands: the command line. One table (commands.c) has the commands and options, for the parser,
 * the help and the dispatch.
 *
 * Threads: one.
 */
#ifndef EXTENDER_CLI_COMMANDS_H
#define EXTENDER_CLI_COMMANDS_H

#include "config/base/error.h"

enum exit_status {
    EXIT_DONE = 0,  /* success; of dry-run: schedulable */
    EXIT_NO = 1,    /* of dry-run: not schedulable; of doctor: something is wrong */
    EXIT_USAGE = 2, /* bad usage, configuration or input, or another failure */
};

enum { ARGUMENT_NAMES_MAX = 1024 }; /* and operands */

/* The options of the command line; NULL or false if not given. */
struct arguments {
    const char *config, *kubeconfig, *context, *snapshot;
    const char *listen, *metrics_listen;
    const char *log_level, *log_format;
    const char *pod, *output;
    const char *operand; /* the first one */
    char **operands;     /* all of them, if the command takes several */
    int operand_count;
    const char *fail_on, *schedulers; /* of audit */
    const char *format, *ns, *life, *authority_life, *renew_before;
    const char *explain;
    const char *names[ARGUMENT_NAMES_MAX]; /* of --node, --host, --scheduler-config, --disable */
    size_t name_count;
    bool all_pending, is_dry_run;
    bool all, all_namespaces, watch;
    bool probe;
    bool help;
};

/* Runs the command that argv names. Returns the exit status. */
int commands_run(int argc, char **argv);

/* Prints "claimguard: message" to stderr. Returns EXIT_USAGE. */
int command_fail(const struct error *err);

/* The same, of a command that there is not, with the one that was probably meant. */
int command_unknown(const char *name);

/* The commands; each returns an exit status, and prints its own errors. */
int command_serve(const struct arguments *arguments);
int command_snapshot(const struct arguments *arguments);
int command_dry_run(const struct arguments *arguments);
int command_audit(const struct arguments *arguments);
int command_who(const struct arguments *arguments);
int command_why(const struct arguments *arguments);
int command_certificates(const struct arguments *arguments);
int command_doctor(const struct arguments *arguments);
int command_check_config(const struct arguments *arguments);
int command_completion(const struct arguments *arguments);
int command_man(const struct arguments *arguments);
int command_version(const struct arguments *arguments); /* NULL: without options */

#endif
