/* config-keys: prints each key of the configuration file with its type, words, limits and default,
 * a line each: for tests/checks/stable-holds. */
#include <stdio.h>
#include <string.h>

#include "config/config_internal.h"

static const char *const types[] = {
    [OPTION_STRING] = "string",
    [OPTION_BOOLEAN] = "boolean",
    [OPTION_BYTES] = "bytes",
    [OPTION_DURATION] = "milliseconds",
    [OPTION_WORD] = "word",
    [OPTION_WORDS] = "words",
    [OPTION_STRINGS] = "strings",
    [OPTION_SECTION] = "mapping",
    [OPTION_ENTRIES] = "list of mappings",
};

static void print_option(const char *path, const struct option *option)
{
    printf("%s: %s", path, types[option->type]);
    if (option->least != 0 || option->most != 0)
        printf(" %lld..%lld", (long long)option->least, (long long)option->most);
    printf("%s%s\n", option->preset == NULL ? "" : ", default ",
           option->preset == NULL ? "" : option->preset);
    for (const char *const *word = option->words; word != NULL && *word != NULL; word++)
        printf("%s=%s: a word\n", path, *word);
}

/* At most three deep: deferFSMount.entries[].postMountConfig. */
static void print_options(const char *above,
                          const struct option *options) /* NOLINT(misc-no-recursion) */
{
    char path[128];

    for (; options->key != NULL; options++) {
        (void)snprintf(path, sizeof path, "%s%s%s", above, options->key,
                       options->type == OPTION_ENTRIES ? "[]" : "");
        print_option(path, options);
        (void)snprintf(path + strlen(path), sizeof path - strlen(path), ".");
        if (options->members != NULL)
            print_options(path, options->members);
    }
}

int main(void)
{
    print_options("", file_options);
    return 0;
}
