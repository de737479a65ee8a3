#include "extender/cli/commands.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>

#include "config/base/log.h"
#include "config/base/printable.h"
#include "config/config.h"
#include "extender/version.h"

enum { CONFIG_TEXT_BYTES_MAX = 4 << 20 };

enum flag_type { FLAG_TEXT, FLAG_SWITCH, FLAG_NAMES };

struct flag {
    const char *name;
    char letter; /* '\0': none */
    enum flag_type type;
    size_t offset;       /* in struct arguments; not for FLAG_NAMES */
    const char *metavar; /* NULL for a switch */
    const char *help;
};

#define AT(member) offsetof(struct arguments, member)
#define HELP_FLAG  "help", 'h', FLAG_SWITCH, offsetof(struct arguments, help), NULL, "show this help"
#define CONFIG_FLAG \
    "config", 'c', FLAG_TEXT, offsetof(struct arguments, config), "FILE|FOLDER", \
        "configuration file, or a folder of them (without it: the defaults)"
#define SNAPSHOT_FLAG \
    "snapshot", 's', FLAG_TEXT, offsetof(struct arguments, snapshot), "FILE", \
        "cluster snapshot in JSON or YAML: a file, a directory, or - for standard input"
#define KUBECONFIG_FLAG \
    "kubeconfig", 'k', FLAG_TEXT, offsetof(struct arguments, kubeconfig), "FILE", \
        "kubeconfig of the cluster (without it: $KUBECONFIG, or the pod's service account)"
#define SNAPSHOT_KUBECONFIG_FLAG \
    "kubeconfig", 'k', FLAG_TEXT, offsetof(struct arguments, kubeconfig), "FILE", \
        "kubeconfig of the cluster (without it: see above)"
#define CONTEXT_FLAG \
    "context", '\0', FLAG_TEXT, offsetof(struct arguments, context), "NAME", \
        "context of the kubeconfig, instead of its current one"

static const struct flag serve_flags[] = {
    {CONFIG_FLAG},
    {SNAPSHOT_FLAG},
    {KUBECONFIG_FLAG},
    {CONTEXT_FLAG},
    {"listen", 'l', FLAG_TEXT, AT(listen), "ADDR:PORT",
     "address for the scheduler, instead of server.listen; port 0: any free port"},
    {"metrics-listen", 'm', FLAG_TEXT, AT(metrics_listen), "ADDR:PORT",
     "address for probes and Prometheus, instead of server.metricsListen"},
    {"log-level", '\0', FLAG_TEXT, AT(log_level), "LEVEL", "debug, info (default), warn or error"},
    {"log-format", '\0', FLAG_TEXT, AT(log_format), "FORMAT", "text (default) or json"},
    {HELP_FLAG},
    {NULL, 0, 0, 0, NULL, NULL},
};
static const struct flag dry_run_flags[] = {
    {SNAPSHOT_FLAG},
    {"pod", 'p', FLAG_TEXT, AT(pod), "NS/NAME|FILE",
     "pod to check: a pod of the snapshot, or a manifest (- for standard input)"},
    {"all-pending", 'a', FLAG_SWITCH, AT(all_pending), NULL,
     "check each pod of the snapshot that is not assigned to a node"},
    {"node", 'n', FLAG_NAMES, 0, "NAME", "check this node only; may be repeated"},
    {"output", 'o', FLAG_TEXT, AT(output), "FORMAT", "table (default), wide, json or yaml"},
    {CONFIG_FLAG},
    {HELP_FLAG},
    {NULL, 0, 0, 0, NULL, NULL},
};
static const struct flag snapshot_flags[] = {
    {SNAPSHOT_KUBECONFIG_FLAG},
    {CONTEXT_FLAG},
    {"output", 'o', FLAG_TEXT, AT(output), "FILE", "file to write; - (default): standard output"},
    {HELP_FLAG},
    {NULL, 0, 0, 0, NULL, NULL},
};
static const struct flag certificates_flags[] = {
    {"output", 'o', FLAG_TEXT, AT(output), "FOLDER",
     "write PEM files into this folder, and ask no cluster"},
    {SNAPSHOT_KUBECONFIG_FLAG},
    {CONTEXT_FLAG},
    {"namespace", 'n', FLAG_TEXT, AT(ns), "NAME", "claimguard's namespace (default: claimguard)"},
    {"host", '\0', FLAG_NAMES, 0, "NAME",
     "one more DNS name or IP address of the server; may be repeated"},
    {"life", '\0', FLAG_TEXT, AT(life), "DURATION",
     "of new certificates of server and client (default: 8760h)"},
    {"authority-life", '\0', FLAG_TEXT, AT(authority_life), "DURATION",
     "of a new certificate of the authority (default: 87600h)"},
    {"renew-before", '\0', FLAG_TEXT, AT(renew_before), "DURATION",
     "renew what ends within that time (default: a third of its life)"},
    {"dry-run", '\0', FLAG_SWITCH, AT(is_dry_run), NULL, "only show what would be done"},
    {"format", 'f', FLAG_TEXT, AT(format), "FORMAT", "table (default), json or yaml"},
    {HELP_FLAG},
    {NULL, 0, 0, 0, NULL, NULL},
};
static const struct flag plain_flags[] = {{HELP_FLAG}, {NULL, 0, 0, 0, NULL, NULL}};

/* Flushes standard output, because an error such as a full disk may appear only then. */
static int finish(int status)
{
    struct error err = {0};

    if (status == EXIT_USAGE || (fflush(stdout) == 0 && !ferror(stdout)))
        return status;
    (void)error_system(&err, errno, "standard output");
    return command_fail(&err);
}

static int command_version(const struct arguments *arguments)
{
    (void)arguments;
    (void)printf("claimguard %s (%s)\n", CLAIMGUARD_VERSION, CLAIMGUARD_REVISION);
    return EXIT_DONE;
}

struct command {
    const char *name, *synopsis, *summary, *details;
    const struct flag *flags;
    const char *operand; /* name of its operand; NULL: it has none */
    int (*run)(const struct arguments *arguments);
};

static const struct command commands[] = {
    {"serve", "[--kubeconfig FILE | --snapshot FILE] [--config FILE|FOLDER] ...",
     "answer the extender calls of kube-scheduler",
     "Answers POST /filter, /prefilter, /preempt and /bind, and GET /livez, /healthz, /readyz,\n"
     "/metrics, /statusz and /debug/cache; and, with admission.listen in the configuration, POST\n"
     "/admit/binding and /admit/pod on a port of its own. The objects come from a live cluster,\n"
     "by list and watch, or from a snapshot. With a snapshot, a bind changes only claimguard's\n"
     "memory. SIGHUP or a change of the configuration file reloads it. After SIGTERM, claimguard\n"
     "answers the requests that it has accepted, for five seconds at most, and exits.\n",
     serve_flags, NULL, command_serve},
    {"snapshot", "[--kubeconfig FILE] [--context NAME] [-o FILE]",
     "write a snapshot of a live cluster to a file, for dry-run",
     "Lists the objects that claimguard needs for its decisions, and writes only the fields that\n"
     "it reads: no environment variables, no annotations except claimguard's own, no secrets.\n"
     "Without --kubeconfig, the cluster is that of $KUBECONFIG, of the pod's service account, or\n"
     "of ~/.kube/config.\n",
     snapshot_flags, NULL, command_snapshot},
    {"dry-run", "--snapshot FILE (--pod NS/NAME|FILE | --all-pending) [--node NAME]... [-o FORMAT]",
     "check pods of a cluster snapshot",
     "Shows whether claimguard would let the pod pass, which pods hold its claims, and whether\n"
     "preemption would help. \"claimguard snapshot\" writes a snapshot; so does\n"
     "    kubectl get -A -o json pods,pvc,pv,nodes,pdb,storageclasses,csidrivers,csinodes,"
     "priorityclasses\n"
     "Exit status: 0: schedulable; 1: not schedulable (with --all-pending: not all pods are);\n"
     "2: no verdict, because of bad usage, bad input or another failure.\n",
     dry_run_flags, NULL, command_dry_run},
    {"certificates", "[-o FOLDER | --kubeconfig FILE] [--host NAME]... [--dry-run] ...",
     "make and renew the certificates for TLS",
     "Makes an authority, and a certificate of it for claimguard and for a scheduler. A later "
     "call\n"
     "renews what ends soon, or lacks a name; the authority keeps its key, and is never replaced.\n"
     "With --output, they are files: ca.crt, ca.key, tls.crt, tls.key (of claimguard), "
     "client.crt,\n"
     "client.key. Otherwise they are the Secrets claimguard-ca, claimguard-tls and\n"
     "claimguard-client, and a ValidatingWebhookConfiguration claimguard gets its caBundle.\n"
     "Without --kubeconfig, the cluster is that of $KUBECONFIG, of the pod's service account, or\n"
     "of ~/.kube/config.\n",
     certificates_flags, NULL, command_certificates},
    {"check-config", "FILE|FOLDER", "check a configuration, and print it with its defaults",
     "Exit status: 0: it is good; 2: it has an error, which is printed as FILE:LINE:COL.\n",
     plain_flags, "FILE|FOLDER", command_check_config},
    {"version", "", "print the version", "", plain_flags, NULL, command_version},
};

enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

static void print_usage(FILE *out)
{
    (void)fprintf(out, "claimguard protects PersistentVolumeClaims at scheduling time: an extender "
                       "for kube-scheduler.\n\nUsage: claimguard COMMAND [OPTIONS]\n\nCommands:\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        (void)fprintf(out, "  %-14s %s\n", commands[i].name, commands[i].summary);
    (void)fprintf(out, "\n\"claimguard COMMAND --help\" shows the options of a command.\n");
}

static void print_command_help(const struct command *command)
{
    (void)printf("Usage: claimguard %s%s%s\n\n%s%sOptions:\n", command->name,
                 command->synopsis[0] == '\0' ? "" : " ", command->synopsis, command->details,
                 command->details[0] == '\0' ? "" : "\n");
    for (const struct flag *flag = command->flags; flag->name != NULL; flag++) {
        char left[64];
        char letter[8] = "    ";
        if (flag->letter != '\0')
            (void)snprintf(letter, sizeof letter, "-%c, ", flag->letter);
        (void)snprintf(left, sizeof left, "%s--%s%s%s", letter, flag->name,
                       flag->metavar == NULL ? "" : " ",
                       flag->metavar == NULL ? "" : flag->metavar);
        (void)printf("  %-32s %s\n", left, flag->help);
    }
}

int command_fail(const struct error *err)
{
    struct error shown = *err;

    make_printable(shown.message);
    (void)fprintf(stderr, "claimguard: %s\n", shown.message);
    return EXIT_USAGE;
}

static int usage_error(const struct command *command, const char *what, const char *which)
{
    struct error err;

    (void)error_set(&err, ERROR_INVALID, "%s: %s%s (see claimguard %s --help)", command->name, what,
                    which, command->name);
    return command_fail(&err);
}

static bool take_flag(const struct flag *flag, const char *value, struct arguments *arguments)
{
    void *at = (char *)arguments + flag->offset;

    switch (flag->type) {
    case FLAG_SWITCH: *(bool *)at = true; return true;
    case FLAG_TEXT: *(const char **)at = value; return true;
    case FLAG_NAMES:
        if (arguments->name_count == ARGUMENT_NAMES_MAX)
            return false;
        arguments->names[arguments->name_count++] = value;
        return true;
    }
    return false;
}

/* Makes getopt's tables from that of the command. */
static void getopt_tables(const struct command *command, struct option *longs, char *shorts)
{
    int count = 0;

    *shorts++ = ':'; /* getopt returns ':' for a missing value, and '?' for an unknown flag */
    for (const struct flag *flag = command->flags; flag->name != NULL; flag++, count++) {
        longs[count] =
            (struct option){flag->name, flag->type == FLAG_SWITCH ? no_argument : required_argument,
                            NULL, 0x100 + count};
        if (flag->letter == '\0')
            continue;
        *shorts++ = flag->letter;
        if (flag->type != FLAG_SWITCH)
            *shorts++ = ':';
    }
    *shorts = '\0';
}

static const struct flag *flag_of(const struct command *command, int chosen)
{
    const struct flag *flag = command->flags;

    if (chosen >= 0x100)
        return flag + (chosen - 0x100);
    while (flag->name != NULL && flag->letter != chosen)
        flag++;
    return flag;
}

static int run_command(const struct command *command, int argc, char **argv)
{
    struct arguments arguments = {0};
    struct option longs[16] = {{NULL, 0, NULL, 0}};
    char shorts[40];
    int chosen;

    getopt_tables(command, longs, shorts);
    opterr = 0;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread */
    while ((chosen = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        if (chosen == '?' || chosen == ':')
            return usage_error(command, chosen == '?' ? "unknown option " : "no value for ",
                               argv[optind - 1]);
        const struct flag *flag = flag_of(command, chosen);
        if (!take_flag(flag, optarg, &arguments))
            return usage_error(command, "too many --", flag->name);
    }
    if (arguments.help) {
        print_command_help(command);
        return finish(EXIT_DONE);
    }
    if (optind < argc && command->operand != NULL)
        arguments.operand = argv[optind++];
    if (optind < argc)
        return usage_error(command, "unexpected argument ", argv[optind]);
    if (command->operand != NULL && arguments.operand == NULL)
        return usage_error(command, "missing argument ", command->operand);
    return finish(command->run(&arguments));
}

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    return NULL;
}

static int unknown_command(const char *name)
{
    struct error err;

    (void)error_set(&err, ERROR_INVALID, "unknown command %s (see claimguard --help)", name);
    return command_fail(&err);
}

static int help_with(const char *name)
{
    const struct command *command = find_command(name);

    if (command == NULL)
        return unknown_command(name);
    print_command_help(command);
    return finish(EXIT_DONE);
}

static bool asks_for_help(const char *name)
{
    return strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0;
}

int commands_run(int argc, char **argv)
{
    const char *name = argc < 2 ? "" : argv[1];
    const struct command *command = find_command(name);

    if (command != NULL)
        return run_command(command, argc - 1, argv + 1);
    if (strcmp(name, "help") == 0 && argc > 2 && !asks_for_help(argv[2]))
        return help_with(argv[2]);
    if (asks_for_help(name)) {
        print_usage(stdout);
        return finish(EXIT_DONE);
    }
    if (strcmp(name, "--version") == 0)
        return finish(command_version(NULL));
    if (argc < 2) {
        print_usage(stderr);
        return EXIT_USAGE;
    }
    return unknown_command(name);
}

int command_check_config(const struct arguments *arguments)
{
    struct config *config;
    struct error err = {0};
    struct buf out;

    if (config_load(&config, arguments->operand, &err) < 0)
        return command_fail(&err);
    buf_init(&out, CONFIG_TEXT_BYTES_MAX);
    config_print(config, &out);
    (void)fwrite(out.bytes, 1, out.len, stdout);
    buf_dispose(&out);
    config_free(config);
    return EXIT_DONE;
}
