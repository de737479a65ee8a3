/*
 * claimguard audit: what is wrong with claims and workloads, in a cluster, in a snapshot, or in the
 * manifests of a repository. Reading shows its progress if stderr is a terminal. What was not read
 * is an error, after the findings in the rest.
 */
#include <string.h>

#include "extender/cli/commands.h"
#include "extender/commands/audit/audit_checks.h"
#include "extender/commands/audit/baseline.h"
#include "extender/commands/audit/manifests.h"
#include "extender/commands/audit/reading.h"
#include "extender/commands/audit/settings.h"
#include "extender/commands/inquiry/inquiry.h"

struct audit {
    struct inquiry inquiry; /* of files, only its cluster */
    struct inventory inventory;
    struct manifests manifests;
    struct audit_report report; /* counts the objects, and gets the kinds that are not known */
    struct audit_options options;
    struct audit_settings settings;
    struct config *config; /* NULL: none is given */
    enum output_format format;
    size_t left_out; /* objects of a live cluster that could not be decoded */
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
            report->findings.disabled |= GAP_RULE(rule - audit_rules);
        }
    }
    return 0;
}

static int check_arguments(struct audit *audit, const struct arguments *arguments,
                           struct error *err)
{
    bool is_live = arguments->kubeconfig != NULL || arguments->context != NULL;

    if (!output_format_parse(&audit->format, arguments->output,
                             OUTPUTS_PLAIN | OUTPUTS_OF_FINDINGS))
        return error_set(err, ERROR_INVALID,
                         "--output %s: expected table, json, yaml, sarif or junit",
                         arguments->output);
    if (arguments->fail_on != NULL &&
        !level_parse(&audit->report.findings.fail_on, arguments->fail_on))
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

/* ---- settings ---- */

/* Those of what is audited, or the given ones; NULL in *out: there are none. */
static int find_settings(struct audit *audit, const struct arguments *arguments, const char **out,
                         struct error *err)
{
    const char *path;

    *out = arguments->settings;
    for (int i = 0; i < arguments->operand_count && arguments->settings == NULL; i++) {
        if (settings_find(&path, arguments->operands[i], &audit->report.arena, err) < 0)
            return err->code;
        if (path == NULL)
            continue;
        if (*out != NULL && strcmp(*out, path) != 0)
            return error_set(err, ERROR_INVALID, "%s and %s: say with --settings which one counts",
                             *out, path);
        *out = path;
    }
    return 0;
}

/* Options of the command line come before those of the file; patterns of both count. */
static int read_settings(struct audit *audit, const struct arguments *arguments, struct error *err)
{
    struct audit_report *report = &audit->report;
    struct audit_settings *settings = &audit->settings;
    const char *path;

    *settings = (struct audit_settings){.exclude = SLICE(""), .fail_on = report->findings.fail_on};
    int rc = find_settings(audit, arguments, &path, err);
    if (rc == 0 && path != NULL)
        rc = settings_read(settings, path, &report->arena, err);
    if (rc < 0)
        return rc;
    if (arguments->fail_on == NULL)
        report->findings.fail_on = settings->fail_on;
    if (arguments->baseline != NULL)
        settings->baseline = arguments->baseline;
    report->ignore = settings->ignore;
    settings->exclude = arena_printf(&report->arena, "%.*s%s", SLICE_ARG(settings->exclude),
                                     arguments->exclude == NULL ? "" : arguments->exclude);
    return settings->exclude.ptr == NULL ? error_no_memory(err) : 0;
}

/* Ignores what is known, or writes it. */
static int use_baseline(struct audit *audit, const struct arguments *arguments, struct error *err)
{
    if (arguments->write_baseline != NULL)
        return baseline_write(&audit->report, arguments->write_baseline, err);
    return audit->settings.baseline == NULL
               ? 0
               : baseline_read(&audit->report, audit->settings.baseline, err);
}

/* ---- files ---- */

static int read_files(struct audit *audit, const struct arguments *arguments, struct error *err)
{
    int rc = 0;

    manifests_init(&audit->manifests, &audit->inventory, &audit->report);
    audit->manifests.settings = &audit->settings;
    if (arguments->snapshot != NULL)
        rc = manifests_read(&audit->manifests, arguments->snapshot, err);
    for (int i = 0; i < arguments->operand_count && rc == 0; i++)
        rc = manifests_read(&audit->manifests, arguments->operands[i], err);
    if (rc == 0)
        manifests_end(&audit->manifests);
    return rc;
}

/* ---- a live cluster ---- */

/* An object that cannot be decoded must not end the audit. */
static int take_text(void *context, const struct source_text *text, const struct object *object,
                     struct error *err)
{
    struct audit *audit = context;
    int used = inventory_take(&audit->inventory, text, err);

    (void)object;
    audit->report.findings.objects += used > 0;
    if (used != ERROR_INVALID && used != ERROR_TOO_BIG)
        return used;
    audit->left_out++;
    *err = (struct error){0};
    return 0;
}

static void forget_list(void *context, enum kind kind)
{
    inventory_forget(&((struct audit *)context)->inventory, kind);
}

static bool is_listed(enum kind kind)
{
    return reading_has(kind) || kind == KIND_WEBHOOKS;
}

/* Sets which kinds the inventory has in full, and adds the gaps. */
static void put_gaps(struct audit *audit)
{
    const struct inquiry *inquiry = &audit->inquiry;

    for (int i = 0; i < KIND_NAMED_COUNT; i++) {
        enum kind kind = (enum kind)i;
        if (!is_listed(kind))
            continue;
        audit->inventory.is_listed[kind] = inquiry->gaps[kind] == GAP_NONE;
        if (inquiry->gaps[kind] == GAP_FORBIDDEN)
            gaps_add(&audit->report.findings.gaps, 0, "%s: these credentials may not list them",
                     kind_resource(kind));
    }
    if (audit->left_out + inquiry->left_out != 0)
        gaps_add(&audit->report.findings.gaps, 0,
                 "objects that could not be decoded were left out: %zu",
                 audit->left_out + (size_t)inquiry->left_out);
}

/* With --namespace, only the objects of that namespace, and those without one. A kind that these
 * credentials may not list is a gap. Errors: as inquiry_read. */
static int read_live(struct audit *audit, const struct arguments *arguments, struct error *err)
{
    struct inquiry_origin origin = {.kubeconfig = arguments->kubeconfig,
                                    .context = arguments->context};
    struct inquiry_wish wish = {.ns = slice_of(arguments->ns),
                                .text_sink = take_text,
                                .context = audit,
                                .list_begins = forget_list};

    for (int kind = 0; kind < KIND_NAMED_COUNT; kind++)
        if (is_listed((enum kind)kind))
            wish.kinds |= 1U << kind;
    audit->inventory.is_stored_elsewhere = true;
    int rc = inquiry_open(&audit->inquiry, &origin, err);
    if (rc == 0)
        rc = inquiry_read(&audit->inquiry, &wish, err);
    if (rc < 0)
        return rc;
    put_gaps(audit);
    if (audit->report.findings.objects != 0)
        return 0;
    return error_set(err, ERROR_INVALID, "%s%s: there is no object that a rule reads",
                     arguments->ns == NULL ? "the cluster" : "namespace ",
                     arguments->ns == NULL ? "" : arguments->ns);
}

/* ---- the command ---- */

static int run(struct audit *audit, const struct arguments *arguments, struct error *err)
{
    bool has_files = arguments->snapshot != NULL || arguments->operand_count != 0;
    int rc = check_arguments(audit, arguments, err);

    if (rc == 0 && arguments->config != NULL)
        rc = config_load(&audit->config, arguments->config, err);
    audit->options.config = audit->config;
    if (rc == 0)
        rc = read_settings(audit, arguments, err);
    if (rc == 0)
        rc = has_files ? read_files(audit, arguments, err) : read_live(audit, arguments, err);
    if (rc < 0)
        return rc;
    audit->report.findings.is_incomplete =
        has_files && manifests_are_whole(&audit->manifests, err) < 0;
    if (audit->report.findings.objects == 0 && audit->format == OUTPUT_TABLE &&
        audit->report.findings.gaps.count <= 2)
        return err->code; /* which says it all: what was not read, or of which kinds all are */
    inventory_link(&audit->inventory);
    audit_check(&audit->inventory, &audit->options, &audit->report);
    if (use_baseline(audit, arguments, err) < 0)
        return err->code;
    if (audit->report.has_failed || audit->report.findings.has_failed ||
        audit->report.findings.gaps.has_failed)
        return error_no_memory(err);
    rc = command_printed(findings_print(&audit->report.findings, audit->format), err);
    return rc < 0 || !has_files ? rc : manifests_are_whole(&audit->manifests, err);
}

int command_audit(const struct arguments *arguments, struct error *err)
{
    struct audit audit = {.format = OUTPUT_TABLE};

    if (arguments->explain != NULL)
        return rules_explain(audit_rules, arguments->explain, err);
    cluster_init(&audit.inquiry.cluster);
    inventory_init(&audit.inventory, &audit.inquiry.cluster);
    audit_report_init(&audit.report);
    int rc = run(&audit, arguments, err);
    bool is_bad = findings_fail(&audit.report.findings);
    audit_report_dispose(&audit.report);
    inventory_dispose(&audit.inventory);
    inquiry_close(&audit.inquiry);
    config_free(audit.config);
    if (rc < 0)
        return rc;
    return is_bad ? EXIT_NO : EXIT_DONE;
}
