#include "extender/cli/help.h"

#include "extender/report/sheet.h"

enum { COLUMNS = 100, TEXT_COLUMN = 35 };

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
