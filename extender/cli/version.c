/* claimguard version: as a line, JSON or YAML. */
#include <errno.h>
#include <stdio.h>

#include "config/config.h"
#include "extender/cli/commands.h"
#include "extender/report/render.h"
#include "extender/report/value.h"
#include "extender/version.h"

static json_t *version_value(void)
{
    json_t *value = json_object();
    int rc = value_put(value, "version", json_string(CLAIMGUARD_VERSION));

    rc |= value_put(value, "revision", json_string(CLAIMGUARD_REVISION));
    rc |= value_put(value, "configuration", json_string(CONFIG_API_VERSION));
    return value_whole(value, rc);
}

int command_version(const struct arguments *arguments)
{
    const char *word = arguments == NULL ? NULL : arguments->output;
    enum output_format format = OUTPUT_TABLE;
    struct error err = {0};

    if (word != NULL && (!render_format_parse(&format, word) || format == OUTPUT_WIDE)) {
        (void)error_set(&err, ERROR_INVALID, "version: --output: expected table, json or yaml");
        return command_fail(&err);
    }
    if (format == OUTPUT_TABLE) {
        (void)printf("claimguard %s (%s)\n", CLAIMGUARD_VERSION, CLAIMGUARD_REVISION);
        return EXIT_DONE;
    }
    json_t *value = version_value();
    bool is_printed = render_value(value, format);
    json_decref(value);
    if (is_printed)
        return EXIT_DONE;
    (void)error_system(&err, errno == 0 ? EIO : errno, "standard output");
    return command_fail(&err);
}
