/*
 * claimguard audit: what is wrong with claims and workloads, in a cluster, in a snapshot, or in the
 * manifests of a repository.
 */
#include <errno.h>
#include <stdio.h>

#include "cache/snapshot/source.h"
#include "extender/audit/audit_checks.h"
#include "extender/audit/audit_output.h"
#include "extender/cli/commands.h"
#include "extender/inquiry/inquiry.h"

enum { PAGE_BYTES_MAX = 256 * 1024, FAIL_NEVER = LEVEL_ERROR + 1 };

struct audit {
    struct inventory inventory;
    struct audit_report report;
    struct audit_options options;
    enum audit_format format;
    int fail_on; /* the lowest level that fails; FAIL_NEVER: none does */
};

/* ---- arguments ---- */

static bool parse_fail_on(int *out, const char *word)
{
    for (int level = LEVEL_NOTE; level <= LEVEL_ERROR; level++)
        if (strcmp(word, audit_level_text((enum audit_level)level)) == 0) {
            *out = level;
            return true;
        }
    *out = FAIL_NEVER;
    return strcmp(word, "never") == 0;
}

static int disable_rules(struct audit_report *report, const struct arguments *arguments,
                         struct error *err)
{
    for (size_t i = 0; i < arguments->name_count; i++) {
        const struct audit_rule *rule = audit_rule_find(slice_of(arguments->names[i]));
        if (rule == NULL)
            return error_set(err, ERROR_INVALID, "--disable %s: there is no such rule",
                             arguments->names[i]);
        report->is_disabled[rule - audit_rules] = true;
    }
    return 0;
}

static int check_arguments(struct audit *audit, const struct arguments *arguments,
                           struct error *err)
{
    bool is_live = arguments->kubeconfig != NULL || arguments->context != NULL;

    audit->fail_on = LEVEL_NOTE;
    if (arguments->output != NULL && !audit_format_parse(&audit->format, arguments->output))
        return error_set(err, ERROR_INVALID,
                         "--output %s: expected table, json, yaml, sarif or junit",
                         arguments->output);
    if (arguments->fail_on != NULL && !parse_fail_on(&audit->fail_on, arguments->fail_on))
        return error_set(err, ERROR_INVALID, "--fail-on %s: expected error, warning, note or never",
                         arguments->fail_on);
    if (is_live && (arguments->operand_count != 0 || arguments->snapshot != NULL))
        return error_set(err, ERROR_INVALID,
                         "give a cluster (--kubeconfig, --context), or files; not both");
    audit->report.ns = slice_of(arguments->ns);
    audit->options.schedulers = slice_of(arguments->schedulers);
    return disable_rules(&audit->report, arguments, err);
}

/* ---- input ---- */

static int take_text(void *context, const struct source_text *text, const struct object *object,
                     struct error *err)
{
    struct audit *audit = context;
    int used = inventory_take(&audit->inventory, text, err);

    (void)object;
    audit->report.objects += used > 0;
    return used;
}

static int read_path(struct audit *audit, const char *path, struct error *err)
{
    struct source source = {.path = path,
                            .text_sink = take_text,
                            .context = audit,
                            .wants_places = true,
                            .skips_foreign = true};
    struct source_report report;

    if (source_read(&source, &report, err) < 0)
        return err->code;
    audit->report.skipped += report.skipped;
    if (report.objects != 0 || report.skipped != 0)
        return 0;
    return error_set(err, ERROR_INVALID, "%s: contains no Kubernetes object",
                     strcmp(path, "-") == 0 ? "<stdin>" : path);
}

static int read_files(struct audit *audit, const struct arguments *arguments, struct error *err)
{
    int rc = 0;

    if (arguments->snapshot != NULL)
        rc = read_path(audit, arguments->snapshot, err);
    for (int i = 0; i < arguments->operand_count && rc == 0; i++)
        rc = read_path(audit, arguments->operands[i], err);
    return rc;
}

/* The kinds that an inquiry can list of a live cluster. */
static const struct live_kind {
    enum kind kind;
    enum record_kind record;
} live_kinds[] = {
    {KIND_POD, RECORD_POD},
    {KIND_NODE, RECORD_NODE},
    {KIND_CLAIM, RECORD_CLAIM},
    {KIND_VOLUME, RECORD_VOLUME},
    {KIND_STORAGE_CLASS, RECORD_STORAGE_CLASS},
    {KIND_CSI_DRIVER, RECORD_CSI_DRIVER},
    {KIND_CSI_NODE, RECORD_CSI_NODE},
    {KIND_VOLUME_ATTRIBUTES_CLASS, RECORD_ATTRIBUTES_CLASS},
};
enum { LIVE_KINDS = sizeof live_kinds / sizeof *live_kinds };

static int read_live(struct audit *audit, const struct arguments *arguments, struct error *err)
{
    struct inquiry_origin origin = {.kubeconfig = arguments->kubeconfig,
                                    .context = arguments->context};
    struct inquiry_wish wish = {.text_sink = take_text, .context = audit};
    struct inquiry inquiry;

    for (size_t i = 0; i < LIVE_KINDS; i++)
        wish.kinds |= 1U << live_kinds[i].kind;
    int rc = inquiry_open(&inquiry, &origin, err);
    if (rc == 0)
        rc = inquiry_read(&inquiry, &wish, err);
    for (size_t i = 0; i < LIVE_KINDS && rc == 0; i++)
        audit->inventory.is_listed[live_kinds[i].record] =
            inquiry.gaps[live_kinds[i].kind] == GAP_NONE;
    inquiry_close(&inquiry);
    return rc;
}

/* ---- the command ---- */

static int print_page(const char *code, struct error *err)
{
    const struct audit_rule *rule = audit_rule_find(slice_of(code));
    struct buf page;

    if (rule == NULL && strcmp(code, "all") != 0)
        return error_set(err, ERROR_NOT_FOUND, "--explain %s: there is no such rule", code);
    buf_init(&page, PAGE_BYTES_MAX);
    if (rule == NULL)
        audit_rules_put(&page);
    else
        audit_rule_put(rule, &page);
    bool ok = !page.failed && fwrite(page.bytes, 1, page.len, stdout) == page.len;
    buf_dispose(&page);
    return ok ? 0 : error_system(err, errno == 0 ? EIO : errno, "standard output");
}

static int run(struct audit *audit, const struct arguments *arguments, struct error *err)
{
    bool has_files = arguments->snapshot != NULL || arguments->operand_count != 0;
    int rc = check_arguments(audit, arguments, err);

    if (rc == 0)
        rc = has_files ? read_files(audit, arguments, err) : read_live(audit, arguments, err);
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
    for (int level = audit->fail_on; level <= LEVEL_ERROR; level++)
        if (audit->report.levels[level] != 0)
            return true;
    return false;
}

int command_audit(const struct arguments *arguments)
{
    struct audit audit = {.format = AUDIT_TABLE};
    struct error err = {0};

    if (arguments->explain != NULL)
        return print_page(arguments->explain, &err) < 0 ? command_fail(&err) : EXIT_DONE;
    inventory_init(&audit.inventory);
    audit_report_init(&audit.report);
    int rc = run(&audit, arguments, &err);
    bool is_bad = has_failed(&audit);
    audit_report_dispose(&audit.report);
    inventory_dispose(&audit.inventory);
    if (rc < 0)
        return command_fail(&err);
    return is_bad ? EXIT_NO : EXIT_DONE;
}
