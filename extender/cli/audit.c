/*
 * claimguard audit: what is wrong with claims and workloads, in a cluster, in a snapshot, or in the
 * manifests of a repository.
 */
#include <errno.h>
#include <stdio.h>

#include "extender/audit/audit_checks.h"
#include "extender/audit/audit_output.h"
#include "extender/cli/audit_input.h"

struct audit {
    struct inventory inventory;
    struct audit_report report;
    struct audit_options options;
    struct config *config; /* NULL: none is given */
    enum audit_format format;
};

/* ---- arguments ---- */

static int disable_rules(struct audit_report *report, const struct arguments *arguments,
                         struct error *err)
{
    for (size_t i = 0; i < arguments->name_count; i++) {
        struct slice codes = slice_of(arguments->names[i]), code;
        while (words_next(&codes, &code)) {
            const struct rule *rule = rule_find(audit_rules, code);
            if (rule == NULL)
                return error_set(err, ERROR_INVALID,
                                 "--disable %.*s: there is no such rule (--explain all lists them)",
                                 SLICE_ARG(code));
            report->is_disabled[rule - audit_rules] = true;
        }
    }
    return 0;
}

static int check_arguments(struct audit *audit, const struct arguments *arguments,
                           struct error *err)
{
    bool is_live = arguments->kubeconfig != NULL || arguments->context != NULL;

    audit->report.fail_on = LEVEL_WARNING;
    if (arguments->output != NULL && !audit_format_parse(&audit->format, arguments->output))
        return error_set(err, ERROR_INVALID,
                         "--output %s: expected table, json, yaml, sarif or junit",
                         arguments->output);
    if (arguments->fail_on != NULL && !level_parse(&audit->report.fail_on, arguments->fail_on))
        return error_set(err, ERROR_INVALID, "--fail-on %s: expected error, warning, note or never",
                         arguments->fail_on);
    if (is_live && (arguments->operand_count != 0 || arguments->snapshot != NULL))
        return error_set(err, ERROR_INVALID,
                         "give a cluster (--kubeconfig, --context), or files; not both");
    if (arguments->ns != NULL && arguments->all_namespaces)
        return error_set(err, ERROR_INVALID,
                         "--namespace and --all-namespaces: give only one of them");
    audit->report.ns = audit->inventory.ns = slice_of(arguments->ns);
    audit->options.schedulers = slice_of(arguments->schedulers);
    return disable_rules(&audit->report, arguments, err);
}

/* ---- the command ---- */

static int run(struct audit *audit, const struct arguments *arguments, struct error *err)
{
    struct audit_input input = {&audit->inventory, &audit->report, 0};
    bool has_files = arguments->snapshot != NULL || arguments->operand_count != 0;
    int rc = check_arguments(audit, arguments, err);

    if (rc == 0 && arguments->config != NULL)
        rc = config_load(&audit->config, arguments->config, err);
    audit->options.config = audit->config;
    if (rc == 0)
        rc = has_files ? audit_read_files(&input, arguments, err)
                       : audit_read_live(&input, arguments, err);
    if (rc == 0)
        rc = inventory_link(&audit->inventory, err);
    if (rc < 0)
        return rc;
    audit_check(&audit->inventory, &audit->options, &audit->report);
    if (audit->report.has_failed)
        return error_no_memory(err);
    return audit_print(&audit->report, audit->format)
               ? 0
               : error_system(err, errno == 0 ? EIO : errno, "standard output");
}

static bool has_failed(const struct audit *audit)
{
    for (int level = (int)audit->report.fail_on; level <= LEVEL_ERROR; level++)
        if (audit->report.levels[level] != 0)
            return true;
    return false;
}

int command_audit(const struct arguments *arguments)
{
    struct audit audit = {.format = AUDIT_TABLE};
    struct error err = {0};

    if (arguments->explain != NULL)
        return rules_explain(audit_rules, arguments->explain, &err) < 0 ? command_fail(&err)
                                                                        : EXIT_DONE;
    inventory_init(&audit.inventory);
    audit_report_init(&audit.report);
    int rc = run(&audit, arguments, &err);
    bool is_bad = has_failed(&audit);
    audit_report_dispose(&audit.report);
    inventory_dispose(&audit.inventory);
    config_free(audit.config);
    if (rc < 0)
        return command_fail(&err);
    return is_bad ? EXIT_NO : EXIT_DONE;
}
