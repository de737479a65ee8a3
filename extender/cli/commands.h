/*
 * commands: the command line. One table (command_table.c) has the commands and their options: the
 * parser (commands.c), the help and the man pages (help.c) and the completion (completion.c) are
 * made from it, so a new option is a new row.
 *
 * Threads: one; the table is constant.
 */
#ifndef EXTENDER_CLI_COMMANDS_H
#define EXTENDER_CLI_COMMANDS_H

#include <signal.h>
#include <stdio.h>

#include "config/base/error.h"

enum exit_status {
    EXIT_DONE = 0,  /* success; of dry-run: schedulable */
    EXIT_NO = 1,    /* of dry-run: not schedulable; of doctor and verify: something is wrong */
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
    const char *fail_on, *schedulers, *exclude, *baseline, *write_baseline,
        *settings; /* of audit */
    const char *format, *ns, *life, *authority_life, *renew_before;
    const char *explain;
    const char *scheduler, *timeout;       /* of verify */
    const char *names[ARGUMENT_NAMES_MAX]; /* of --node, --host, --scheduler-config, --disable */
    size_t name_count;
    bool all_pending, is_dry_run;
    bool all, all_namespaces, watch;
    bool probe, without_claimguard;
    bool help;
};

/* Runs the command that argv names. Returns the exit status. */
int commands_run(int argc, char **argv);

/* From now on, SIGINT, SIGTERM and, if that is wanted, SIGHUP end nothing: what is returned is not
 * 0 any more when one has come. And a write that nobody reads fails, without SIGPIPE. */
const volatile sig_atomic_t *command_catch_signals(bool with_hangup);

/* ---- the table ---- */

enum { COMMAND_FLAGS_MAX = 24 };

enum flag_type { FLAG_TEXT, FLAG_SWITCH, FLAG_NAMES };

struct flag {
    const char *name;
    char letter; /* '\0': none */
    enum flag_type type;
    size_t offset;       /* in struct arguments; not for FLAG_NAMES */
    const char *metavar; /* NULL for a switch */
    const char *values;  /* words with blanks between them, or one of the below; NULL: any text */
    const char *help;
};

/* Values that are not a list of words. */
#define VALUES_FILES         "<file>"
#define VALUES_FOLDERS       "<folder>"
#define VALUES_CONTEXTS      "<context>" /* of the kubeconfig */
#define VALUES_PODS          "<pod>"     /* of the snapshot or the cluster */
#define VALUES_PODS_OR_FILES "<pod or file>"
#define VALUES_NAMESPACES    "<namespace>" /* of the claims and pods there */
#define VALUES_CLAIMS        "<claim>"
#define VALUES_NODES         "<node>"
#define VALUES_COMMANDS      "<command>"
#define VALUES_AUDIT_CODES   "<code>"
#define VALUES_AUDIT_RULES   "<rule of audit>" /* their codes, and "all" */
#define VALUES_DOCTOR_RULES  "<rule>"

struct command {
    const char *name, *synopsis, *summary;
    const char *details;      /* lines; those that begin with blanks are examples */
    const struct flag *flags; /* up to one without a name */
    const char *operand; /* its name: in brackets if it may be left out, with "..." at its end if it
                            may be repeated; NULL: it has none */
    const char *values;  /* of the operand, as above */
    int (*run)(const struct arguments *arguments, struct error *err);
};

/* Up to one without a name. */
extern const struct command command_table[];

/* NULL: there is none of that name. */
const struct command *command_find(const char *name);

/* ---- from the table ---- */

/* The pages of --help. */
void help_print(FILE *out);
void help_print_command(const struct command *command);

/* Completion in a shell. words: behind the program's name, the last of them is being typed. Returns
 * an exit status. */
int complete_words(const char *const *words, size_t count);

/* ---- the commands ---- */

/* Each returns an exit status, or an error. */
int command_serve(const struct arguments *arguments, struct error *err);
int command_snapshot(const struct arguments *arguments, struct error *err);
int command_dry_run(const struct arguments *arguments, struct error *err);
int command_audit(const struct arguments *arguments, struct error *err);
int command_who(const struct arguments *arguments, struct error *err);
int command_why(const struct arguments *arguments, struct error *err);
int command_certificates(const struct arguments *arguments, struct error *err);
int command_doctor(const struct arguments *arguments, struct error *err);
int command_verify(const struct arguments *arguments, struct error *err);
int command_check_config(const struct arguments *arguments, struct error *err);
int command_completion(const struct arguments *arguments, struct error *err);
int command_man(const struct arguments *arguments, struct error *err);
int command_version(const struct arguments *arguments, struct error *err);

/* ---- for the commands ---- */

/* Fills err with "NAME: problem (see claimguard NAME --help)". */
int command_misused(const char *name, const char *problem, struct error *err);

/* Fills err because there is no such command, with the one that was probably meant. */
int command_unknown(const char *name, struct error *err);

/* 0; or if standard output could not be written, an error. */
int command_printed(bool is_written, struct error *err);

/* Prints "claimguard: message" to stderr. Returns EXIT_USAGE. */
int command_fail(const struct error *err);

#endif
