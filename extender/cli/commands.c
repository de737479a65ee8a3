#include "extender/cli/commands.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>

#include "config/base/log.h"
#include "config/base/text.h"
#include "config/config.h"
#include "extender/report/fields.h"
#include "extender/version.h"

enum { CONFIG_TEXT_BYTES_MAX = 4 << 20 };

/* ---- errors ---- */

int command_fail(const struct error *err)
{
    struct error shown = *err;

    make_printable(shown.message);
    (void)fprintf(stderr, "claimguard: %s\n", shown.message);
    return EXIT_USAGE;
}

int command_misused(const char *name, const char *problem, struct error *err)
{
    return error_set(err, ERROR_INVALID, "%s: %s (see claimguard %s --help)", name, problem, name);
}

int command_unknown(const char *name, struct error *err)
{
    struct nearest nearest = {.typed = name};
    char hint[NEAREST_HINT_BYTES];

    for (const struct command *command = command_table; command->name != NULL; command++)
        nearest_offer(&nearest, command->name);
    return error_set(err, ERROR_INVALID, "unknown command %s%s (see claimguard --help)", name,
                     nearest_hint(&nearest, "", hint));
}

int command_printed(bool is_written, struct error *err)
{
    return is_written ? 0 : error_system(err, errno == 0 ? EIO : errno, "standard output");
}

static int usage_error(const struct command *command, const char *what, const char *which,
                       const char *hint, struct error *err)
{
    return error_set(err, ERROR_INVALID, "%s: %s%s%s (see claimguard %s --help)", command->name,
                     what, which, hint, command->name);
}

static int unknown_flag(const struct command *command, const char *typed, struct error *err)
{
    char name[NEAREST_BYTES_MAX + 1], hint[NEAREST_HINT_BYTES];
    struct nearest nearest = {.typed = name};

    (void)snprintf(name, sizeof name, "%s", typed + strspn(typed, "-"));
    name[strcspn(name, "=")] = '\0';
    for (const struct flag *flag = command->flags; flag->name != NULL; flag++)
        nearest_offer(&nearest, flag->name);
    return usage_error(command, "unknown option ", typed, nearest_hint(&nearest, "--", hint), err);
}

/* ---- one command ---- */

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

/* What is left of the command line. */
static int take_operands(const struct command *command, int count, char **operands,
                         struct arguments *arguments, struct error *err)
{
    struct slice name = slice_of(command->operand);
    int most = slice_ends_with(name, SLICE("...")) || slice_ends_with(name, SLICE("...]"))
                   ? ARGUMENT_NAMES_MAX
                   : command->operand != NULL;

    if (count > most)
        return usage_error(command, "unexpected argument ", operands[most], "", err);
    if (count == 0 && command->operand != NULL && command->operand[0] != '[')
        return usage_error(command, "missing argument ", command->operand, "", err);
    arguments->operand = count == 0 ? NULL : operands[0];
    arguments->operands = operands;
    arguments->operand_count = count;
    return 0;
}

/* kubectl's -o is always a format: private keys in a new folder "json" surprise. */
static bool is_format_for_path(const struct flag *flag, const char *value)
{
    return flag->type == FLAG_TEXT && strcmp(flag->name, "output") == 0 && flag->values[0] == '<' &&
           (strcmp(value, "json") == 0 || strcmp(value, "yaml") == 0 ||
            strcmp(value, "table") == 0);
}

static int take_flags(const struct command *command, int argc, char **argv,
                      struct arguments *arguments, struct error *err)
{
    struct option longs[COMMAND_FLAGS_MAX + 1] = {{NULL, 0, NULL, 0}};
    char shorts[2 * COMMAND_FLAGS_MAX + 2];
    int chosen;

    getopt_tables(command, longs, shorts);
    opterr = 0;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread */
    while ((chosen = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        if (chosen == '?')
            return unknown_flag(command, argv[optind - 1], err);
        if (chosen == ':')
            return usage_error(command, "no value for ", argv[optind - 1], "", err);
        const struct flag *flag = flag_of(command, chosen);
        if (is_format_for_path(flag, optarg))
            return usage_error(command, "--output is a path, no format; a path of that name: ./",
                               optarg, "", err);
        if (!take_flag(flag, optarg, arguments))
            return usage_error(command, "too many --", flag->name, "", err);
    }
    return 0;
}

static int run_command(const struct command *command, int argc, char **argv, struct error *err)
{
    struct arguments arguments = {0};

    if (take_flags(command, argc, argv, &arguments, err) < 0)
        return err->code;
    if (arguments.help) {
        help_print_command(command);
        return EXIT_DONE;
    }
    if (take_operands(command, argc - optind, argv + optind, &arguments, err) < 0)
        return err->code;
    return command->run(&arguments, err);
}

/* ---- the command line ---- */

/* kubectl takes options in front of its commands. */
static int option_first(int argc, char **argv, struct error *err)
{
    const struct command *command = NULL;

    for (int i = 2; i < argc && command == NULL; i++)
        command = command_find(argv[i]);
    return error_set(err, ERROR_INVALID,
                     "the command comes first: claimguard %s %s ... (see claimguard --help)",
                     command == NULL ? "COMMAND" : command->name, argv[1]);
}

static int help_with(const char *name, struct error *err)
{
    const struct command *command = command_find(name);

    if (command == NULL)
        return command_unknown(name, err);
    help_print_command(command);
    return EXIT_DONE;
}

static bool asks_for_help(const char *name)
{
    return strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0;
}

/* Returns an exit status, or an error. */
static int run(int argc, char **argv, struct error *err)
{
    const char *name = argc < 2 ? "" : argv[1];
    const struct command *command = command_find(name);
    static const struct arguments none;

    if (command != NULL)
        return run_command(command, argc - 1, argv + 1, err);
    if (strcmp(name, "__complete") == 0)
        return complete_words((const char *const *)argv + 2, (size_t)argc - 2);
    if (strcmp(name, "help") == 0 && argc > 2 && !asks_for_help(argv[2]))
        return help_with(argv[2], err);
    if (strcmp(name, "--version") == 0)
        return command_version(&none, err);
    if (argc < 2 || asks_for_help(name)) {
        help_print(argc < 2 ? stderr : stdout);
        return argc < 2 ? EXIT_USAGE : EXIT_DONE;
    }
    return name[0] == '-' ? option_first(argc, argv, err) : command_unknown(name, err);
}

/* Flushes standard output, because an error such as a full disk may appear only then. */
int commands_run(int argc, char **argv)
{
    struct error err = {0};
    int rc = run(argc, argv, &err);

    if (rc >= 0 && rc != EXIT_USAGE && (fflush(stdout) != 0 || ferror(stdout)))
        rc = error_system(&err, errno, "standard output");
    return rc < 0 ? command_fail(&err) : rc;
}

/* ---- small commands ---- */

int command_check_config(const struct arguments *arguments, struct error *err)
{
    struct config *config;
    struct buf out;

    if (config_load(&config, arguments->operand, err) < 0)
        return err->code;
    buf_init(&out, CONFIG_TEXT_BYTES_MAX);
    config_print(config, &out);
    (void)fwrite(out.bytes, 1, out.len, stdout);
    buf_dispose(&out);
    config_free(config);
    return EXIT_DONE;
}

static volatile sig_atomic_t is_interrupted;

static void interrupt(int signal)
{
    (void)signal;
    is_interrupted = 1;
}

const volatile sig_atomic_t *command_catch_signals(bool with_hangup)
{
    struct sigaction action = {.sa_handler = interrupt};

    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    if (with_hangup)
        (void)sigaction(SIGHUP, &action, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    return &is_interrupted;
}

int command_version(const struct arguments *arguments, struct error *err)
{
    enum output_format format;
    struct fields out;

    if (!output_format_parse(&format, arguments->output, OUTPUTS_PLAIN))
        return error_set(err, ERROR_INVALID, "version: --output: expected table, json or yaml");
    if (format == OUTPUT_TABLE) {
        (void)printf("claimguard %s (%s)\n", CLAIMGUARD_VERSION, CLAIMGUARD_REVISION);
        return EXIT_DONE;
    }
    fields_begin(&out, format, stdout);
    fields_open(&out, NULL, '{');
    fields_text(&out, "version", SLICE(CLAIMGUARD_VERSION));
    fields_text(&out, "revision", SLICE(CLAIMGUARD_REVISION));
    fields_text(&out, "configuration", SLICE(CONFIG_API_VERSION));
    return command_printed(fields_end(&out), err);
}
