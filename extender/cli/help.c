/* The pages of --help, and man pages in mdoc (https://man.openbsd.org/mdoc.7). */
#include <stdio.h>
#include <string.h>

#include "extender/cli/commands.h"
#include "extender/report/sheet.h"
#include "extender/version.h"

enum { COLUMNS = 100, TEXT_COLUMN = 35, MAN_COLUMNS = 78 };

/* ---- --help ---- */

void help_print(FILE *out)
{
    (void)fprintf(out, "claimguard protects PersistentVolumeClaims at scheduling time: an extender "
                       "for kube-scheduler.\n\nUsage: claimguard COMMAND [OPTIONS]\n\nCommands:\n");
    for (const struct command *command = command_table; command->name != NULL; command++)
        (void)fprintf(out, "  %-14s %s\n", command->name, command->summary);
    (void)fprintf(out, "\n\"claimguard COMMAND --help\" shows the options of a command.\n");
}

void help_print_command(const struct command *command)
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
        (void)printf("  %-*s ", TEXT_COLUMN - 3, left);
        print_wrapped(flag->help, TEXT_COLUMN, COLUMNS, stdout);
        (void)fputc('\n', stdout);
    }
}

/* ---- man pages ---- */

/* A text of a line or a part of one: a backslash, and what at the beginning of a line is a request,
 * are escaped. */
static void put_text(const char *text, size_t len)
{
    if (len != 0 && (text[0] == '.' || text[0] == '\''))
        (void)fputs("\\&", stdout);
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\\')
            (void)fputs("\\e", stdout);
        else
            (void)fputc(text[i], stdout);
    }
}

/* As a macro's arguments, of which some words would be macros of their own. */
static void put_words(const char *text)
{
    (void)fputc('"', stdout);
    for (; *text != '\0'; text++)
        if (*text == '"')
            (void)fputs("\\(dq", stdout);
        else
            put_text(text, 1);
    (void)fputs("\"\n", stdout);
}

/* Sentences begin on lines of their own, and no line is longer than MAN_COLUMNS. */
static void put_sentences(const char *text, size_t len)
{
    size_t column = 0;

    for (size_t at = 0, end; at < len; at = end + (end < len)) {
        const char *blank = memchr(text + at, ' ', len - at);
        end = blank == NULL ? len : (size_t)(blank - text);
        bool is_new_sentence = at > 1 && strchr(".:", text[at - 2]) != NULL;
        if (column != 0 && (is_new_sentence || column + 1 + end - at > MAN_COLUMNS)) {
            (void)fputc('\n', stdout);
            column = 0;
        } else if (column != 0) {
            (void)fputc(' ', stdout);
            column++;
        }
        put_text(text + at, end - at);
        column += end - at;
    }
    (void)fputc('\n', stdout);
}

/* Lines that begin with blanks are examples. */
static void put_details(const char *details, const char *end)
{
    while (details < end) {
        size_t len = strcspn(details, "\n"), blanks = strspn(details, " ");
        if (blanks != 0) {
            (void)fputs(".Dl ", stdout);
            char line[256];
            (void)snprintf(line, sizeof line, "%.*s", (int)(len - blanks), details + blanks);
            put_words(line);
        } else {
            put_sentences(details, len);
        }
        details += len + (details[len] == '\n');
    }
}

static void put_head(const char *command, const char *summary)
{
    (void)printf(".Dd %s\n.Dt CLAIMGUARD%s", CLAIMGUARD_DATE, command == NULL ? "" : "-");
    for (const char *c = command == NULL ? "" : command; *c != '\0'; c++)
        (void)fputc(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c, stdout);
    (void)printf(" 1\n.Os\n.Sh NAME\n.Nm claimguard%s%s\n.Nd ", command == NULL ? "" : "-",
                 command == NULL ? "" : command);
    put_text(summary, strlen(summary));
    (void)fputs("\n.Sh SYNOPSIS\n", stdout);
}

static void put_flag(const struct flag *flag)
{
    (void)fputs(".It Fl ", stdout);
    if (flag->letter != '\0')
        (void)printf("%c , Fl ", flag->letter);
    (void)printf("\\-%s%s%s\n", flag->name, flag->metavar == NULL ? "" : " Ar ",
                 flag->metavar == NULL ? "" : flag->metavar);
    put_sentences(flag->help, strlen(flag->help));
}

static void put_command(const struct command *command)
{
    static const char status[] = "Exit status: ";
    static const char done[] = "0: it is done; 2: bad usage, bad input or another failure.\n";
    const char *end = strstr(command->details, status);
    const char *last = command->details + strlen(command->details);

    put_head(command->name, command->summary);
    (void)printf(".Nm claimguard\n.Cm %s\n", command->name);
    put_text(command->synopsis, strlen(command->synopsis));
    (void)fputs(command->synopsis[0] == '\0' ? ".Sh DESCRIPTION\n" : "\n.Sh DESCRIPTION\n", stdout);
    put_details(command->details, end == NULL ? last : end);
    (void)fputs(command->details[0] == '\0' || end == command->details ? "" : ".Pp\n", stdout);
    (void)fputs("Options:\n.Bl -tag -width Ds\n", stdout);
    for (const struct flag *flag = command->flags; flag->name != NULL; flag++)
        put_flag(flag);
    (void)fputs(".El\n.Sh EXIT STATUS\n", stdout);
    put_details(end == NULL ? done : end + sizeof status - 1,
                end == NULL ? done + strlen(done) : last);
    (void)fputs(".Sh SEE ALSO\n.Xr claimguard 1\n", stdout);
}

/* The next name in the order of the alphabet; NULL: that was the last. */
static const char *name_behind(const char *last)
{
    const char *next = NULL;

    for (const struct command *command = command_table; command->name != NULL; command++)
        if (strcmp(command->name, last) > 0 && (next == NULL || strcmp(command->name, next) < 0))
            next = command->name;
    return next;
}

static void put_program(void)
{
    static const char begin[] = ".Nm claimguard\n"
                                ".Ar command\n"
                                ".Op Ar options\n"
                                ".Sh DESCRIPTION\n"
                                "An extender for kube-scheduler,\n"
                                "and commands that ask about a cluster or a snapshot of one.\n"
                                ".Pp\n"
                                "Commands:\n"
                                ".Bl -tag -width certificates\n";
    static const char end[] = ".El\n"
                              ".Sh ENVIRONMENT\n"
                              ".Bl -tag -width Ds\n"
                              ".It Ev KUBECONFIG\n"
                              "Kubeconfig files, with colons between them, if\n"
                              ".Fl \\-kubeconfig\n"
                              "is not given.\n"
                              ".It Ev NO_COLOR\n"
                              "If it is set, nothing is coloured.\n"
                              ".El\n"
                              ".Sh SEE ALSO\n";

    put_head(NULL, "protects PersistentVolumeClaims at scheduling time");
    (void)fputs(begin, stdout);
    for (const struct command *command = command_table; command->name != NULL; command++) {
        (void)printf(".It Cm %s\n", command->name);
        put_sentences(command->summary, strlen(command->summary));
    }
    (void)fputs(end, stdout);
    for (const char *name = name_behind(""), *next; name != NULL; name = next) {
        next = name_behind(name);
        (void)printf(".Xr claimguard-%s 1%s\n", name, next == NULL ? "" : " ,");
    }
}

int command_man(const struct arguments *arguments, struct error *err)
{
    const char *name = arguments->operand;
    const struct command *command = name == NULL ? NULL : command_find(name);

    if (name == NULL)
        put_program();
    else if (command == NULL)
        return command_unknown(name, err);
    else
        put_command(command);
    return EXIT_DONE;
}
