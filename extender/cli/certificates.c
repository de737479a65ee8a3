/*
 * claimguard certificates: an authority, a server's and a client's certificate, as files of a
 * folder or as Secrets of a cluster. A later call renews what ends soon.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cache/client/http_client.h"
#include "config/base/clock.h"
#include "config/base/log.h"
#include "config/base/quantity.h"
#include "extender/cli/commands.h"
#include "extender/commands/certificates/folder.h"
#include "extender/commands/certificates/upkeep.h"
#include "extender/report/fields.h"
#include "extender/report/sheet.h"

#define LIFE           "8760h"
#define AUTHORITY_LIFE "87600h"
#define NAMESPACE      "claimguard"

enum { LIFE_HOURS_MAX = 876000, MS_PER_HOUR = 3600 * 1000, LINES_MAX = CERTIFICATE_COUNT + 1 };

/* What was done about one thing. The texts are borrowed, or static. */
struct line {
    const char *name, *action, *where, *reason;
    char until[32]; /* "": it has no end */
};

struct run {
    const struct arguments *arguments;
    enum output_format format;
    struct certificate_terms terms;
    struct certificates certificates;
    struct line lines[LINES_MAX];
    size_t line_count;
    char webhook_reason[ERROR_MESSAGE_BYTES];
};

/* ---- the command line ---- */

static int read_hours(int64_t *out_s, const char *name, const char *text, struct error *err)
{
    int64_t ms;

    if (!quantity_duration_ms(&ms, slice_of(text)) || ms < MS_PER_HOUR ||
        ms / MS_PER_HOUR > LIFE_HOURS_MAX)
        return error_set(err, ERROR_INVALID,
                         "certificates: %s %s: expected a duration from 1h to %dh, such as 720h",
                         name, text, LIFE_HOURS_MAX);
    *out_s = ms / 1000;
    return 0;
}

static int read_times(struct certificate_terms *terms, const struct arguments *arguments,
                      struct error *err)
{
    const char *life = arguments->life != NULL ? arguments->life : LIFE;
    const char *authority_life =
        arguments->authority_life != NULL ? arguments->authority_life : AUTHORITY_LIFE;

    terms->now_s = now_ms() / 1000;
    if (read_hours(&terms->life_s, "--life", life, err) < 0 ||
        read_hours(&terms->authority_life_s, "--authority-life", authority_life, err) < 0 ||
        (arguments->renew_before != NULL &&
         read_hours(&terms->renew_before_s, "--renew-before", arguments->renew_before, err) < 0))
        return err->code;
    if (terms->life_s > terms->authority_life_s || terms->renew_before_s >= terms->authority_life_s)
        return error_set(err, ERROR_INVALID,
                         "certificates: --life and --renew-before have to be below "
                         "--authority-life %s",
                         authority_life);
    return 0;
}

static int read_hosts(struct hosts *out, const struct arguments *arguments, const char *ns,
                      struct error *err)
{
    if (service_hosts(out, ns, err) < 0)
        return error_wrap(err, "--namespace");
    for (size_t i = 0; i < arguments->name_count; i++)
        if (hosts_add(out, arguments->names[i], err) < 0)
            return error_wrap(err, "--host");
    return 0;
}

static int read_arguments(struct run *run, struct error *err)
{
    const struct arguments *arguments = run->arguments;
    const char *problem = NULL;

    if (arguments->output != NULL && (arguments->kubeconfig != NULL || arguments->context != NULL))
        problem = "--output and --kubeconfig: give only one of them";
    else if (!output_format_parse(&run->format, arguments->format, OUTPUTS_PLAIN))
        problem = "--format: expected table, json or yaml";
    if (problem != NULL)
        return command_misused("certificates", problem, err);
    if (read_times(&run->terms, arguments, err) < 0)
        return err->code;
    return read_hosts(&run->terms.hosts, arguments,
                      arguments->ns != NULL ? arguments->ns : NAMESPACE, err);
}

/* ---- what was done ---- */

static struct line *add_line(struct run *run, const char *name, const char *action,
                             const char *where, const char *reason)
{
    struct line *line = &run->lines[run->line_count++];

    *line = (struct line){.name = name, .action = action, .where = where, .reason = reason};
    return line;
}

static void add_certificates(struct run *run, const struct secrets *secrets)
{
    for (int i = 0; i < CERTIFICATE_COUNT; i++) {
        const struct certificate_entry *entry = &run->certificates.entries[i];
        const char *reason =
            entry->action == ACTION_UPDATED ? "its ca.crt was another one" : entry->reason;
        struct line *line = add_line(
            run, certificate_text((enum certificate)i), action_text(entry->action),
            secrets != NULL ? secrets->items[i].names[0].ptr : entry->pair.crt_name, reason);
        struct buf until;
        buf_init(&until, sizeof line->until);
        buf_time(&until, entry->until_s * 1000, false);
        const char *text = buf_text(&until);
        (void)snprintf(line->until, sizeof line->until, "%s", text == NULL ? "" : text);
        buf_dispose(&until);
    }
}

static void add_webhook(struct run *run, const struct webhook_configuration *webhook)
{
    const char *action = webhook->wrong_count != 0    ? action_text(ACTION_UPDATED)
                         : webhook->refusal.code != 0 ? "skipped"
                         : webhook->uid.len == 0      ? "missing"
                                                      : action_text(ACTION_KEPT);

    if (webhook->wrong_count != 0)
        (void)snprintf(run->webhook_reason, sizeof run->webhook_reason,
                       "the caBundle of %zu of %zu was another one", webhook->wrong_count,
                       webhook->webhooks.count);
    else if (webhook->refusal.code != 0)
        (void)snprintf(run->webhook_reason, sizeof run->webhook_reason, "%s",
                       webhook->refusal.message);
    (void)add_line(run, "webhook", action, WEBHOOK_NAME, run->webhook_reason);
}

static const char *or_dash(const char *text)
{
    return text[0] == '\0' ? "-" : text;
}

static bool print_table(const struct run *run)
{
    static const char *const headings[] = {"NAME", "ACTION", "UNTIL", "WHERE", "REASON", NULL};
    struct sheet_style style = sheet_style(stdout);
    struct sheet sheet = {0};
    bool ok = sheet_add(&sheet, headings);

    for (size_t i = 0; i < run->line_count && ok; i++) {
        const struct line *line = &run->lines[i];
        const char *const texts[] = {line->name,  line->action,          or_dash(line->until),
                                     line->where, or_dash(line->reason), NULL};
        ok = sheet_add(&sheet, texts);
    }
    ok = ok && sheet_print(&sheet, &style, stdout);
    sheet_dispose(&sheet);
    return ok;
}

static bool print_values(const struct run *run)
{
    struct fields out;

    fields_begin(&out, run->format, stdout);
    fields_open_results(&out);
    for (size_t i = 0; i < run->line_count; i++) {
        const struct line *line = &run->lines[i];
        fields_open(&out, NULL, '{');
        fields_text(&out, "name", slice_of(line->name));
        fields_text(&out, "action", slice_of(line->action));
        fields_text(&out, "notAfter", slice_of(line->until));
        fields_text(&out, "where", slice_of(line->where));
        fields_text(&out, "reason", slice_of(line->reason));
        fields_close(&out);
    }
    return fields_end(&out);
}

static int print_lines(struct run *run, struct error *err)
{
    if (!(run->format == OUTPUT_TABLE ? print_table(run) : print_values(run)))
        return error_set(err, ERROR_SYSTEM, "the result could not be written");
    if (run->arguments->is_dry_run)
        (void)fprintf(stderr, "claimguard: dry run: nothing was written\n");
    return 0;
}

/* ---- into a folder ---- */

static int refresh_folder(struct run *run, struct error *err)
{
    struct folder folder;
    bool is_dry_run = run->arguments->is_dry_run;

    if (folder_open(&folder, run->arguments->output, is_dry_run, err) < 0)
        return err->code;
    int rc = folder_read(&folder, &run->certificates, err);
    if (rc == 0)
        rc = certificates_refresh(&run->certificates, &run->terms, err);
    if (rc == 0 && !is_dry_run)
        rc = folder_write(&folder, &run->certificates, err);
    if (rc == 0) {
        add_certificates(run, NULL);
        rc = print_lines(run, err);
    }
    folder_close(&folder);
    return rc;
}

/* ---- into a cluster ---- */

static int refresh_secrets(struct run *run, struct api *api, struct error *err)
{
    const char *ns = run->arguments->ns != NULL ? run->arguments->ns : NAMESPACE;
    struct upkeep upkeep = {.certificates = &run->certificates};

    if (upkeep_run(&upkeep, ns, &run->terms, run->arguments->is_dry_run, api, err) < 0)
        return err->code;
    add_certificates(run, &upkeep.secrets);
    add_webhook(run, &upkeep.webhook);
    return print_lines(run, err);
}

static int refresh_cluster(struct run *run, struct error *err)
{
    struct kubeconfig *kubeconfig = NULL;
    struct api api;

    log_configure(LOG_ERROR, LOG_TEXT); /* this file reports the result itself */
    if (kubeconfig_load(&kubeconfig, run->arguments->kubeconfig, run->arguments->context, true,
                        err) < 0)
        return err->code;
    int rc = api_open(&api, kubeconfig, err);
    if (rc == 0)
        rc = refresh_secrets(run, &api, err);
    api_close(&api);
    kubeconfig_free(kubeconfig);
    return rc;
}

int command_certificates(const struct arguments *arguments, struct error *err)
{
    struct run *run = calloc(1, sizeof *run);

    if (run == NULL)
        return error_no_memory(err);
    run->arguments = arguments;
    int rc = read_arguments(run, err);
    if (rc == 0)
        rc = arguments->output != NULL ? refresh_folder(run, err) : refresh_cluster(run, err);
    certificates_wipe(&run->certificates);
    free(run);
    return rc;
}
