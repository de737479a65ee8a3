/*
 * help: the pages of --help, from the table of commands.
 *
 * Threads: one.
 */
#ifndef EXTENDER_CLI_HELP_H
#define EXTENDER_CLI_HELP_H

#include <stdio.h>

#include "extender/cli/command_table.h"

void help_print(FILE *out);
void help_print_command(const struct command *command);

#endif
