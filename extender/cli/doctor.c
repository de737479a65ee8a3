/* The command `doctor`: reads what it is given, applies the rules of extender/doctor, and prints
 * what they find. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/base/clock.h"
#include "extender/cli/commands.h"
#include "extender/doctor/certificate_rules.h"
#include "extender/doctor/config_rules.h"
#include "extender/doctor/guard_rules.h"
#include "extender/doctor/probe.h"
#include "extender/doctor/report.h"
#include "extender/doctor/rights.h"
#include "extender/doctor/running_rules.h"
#include "extender/doctor/scheduler_rules.h"
#include "extender/doctor/scheduler_schema.h"
#include "extender/doctor/scheduler_url.h"
#include "extender/doctor/versions.h"
#include "extender/doctor/webhook_rules.h"

#define NAMESPACE "claimguard"

enum {
    ARENA_BYTES_MAX = 256 << 20, /* each file takes over a MiB */
    FILES_MAX = 64,
    TEXTS_MAX = 16, /* more than config_load_texts takes */
};

/* What is read. All is in the arena, but the configuration. */
struct doctor {
    const struct arguments *arguments;
    enum output_format format;
    enum level fail_on;
    struct inquiry_origin origin;
    struct arena arena;
    struct scheduler_file schedulers[FILES_MAX];
    size_t scheduler_count;
    struct config *config;
    bool is_config_wrong; /* that of the cluster */
    struct config_file config_file;
    struct installation installation;
    bool has_installation;
    struct certificates_read certificates;
    struct rights rights; /* of a live cluster */
    struct findings findings;
};

static int usage_fail(struct error *err, const char *what)
{
    return error_set(err, ERROR_INVALID, "doctor: %s (see claimguard doctor --help)", what);
}

/* ---- reading ---- */

static int read_schedulers(struct doctor *doctor, struct error *err)
{
    const struct arguments *arguments = doctor->arguments;

    if (arguments->name_count == 0)
        finding_unread(&doctor->findings, "kube-scheduler's files (--scheduler-config)");
    if (arguments->name_count > FILES_MAX)
        return usage_fail(err, "--scheduler-config: too many files");
    for (size_t i = 0; i < arguments->name_count; i++) {
        const char *name = arguments->names[i];
        struct scheduler_file *file = &doctor->schedulers[doctor->scheduler_count++];
        int rc = scheduler_url_is(name)
                     ? scheduler_url_read(file, name, &doctor->origin, &doctor->arena, err)
                     : scheduler_file_read(file, name, &doctor->arena, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_config(struct doctor *doctor, struct error *err)
{
    const char *path = doctor->arguments->config;
    struct yaml_node *root = NULL;

    if (path == NULL)
        return 0;
    if (config_load_with_tree(&doctor->config, &root, path, err) < 0)
        return err->code;
    doctor->config_file = (struct config_file){path, doctor->config, root};
    return 0;
}

/* Without --config, that of the cluster. What is wrong with it is said, and the rest checked. */
static void read_config_map(struct doctor *doctor)
{
    const struct installation *installation = &doctor->installation;
    const json_t *map =
        installation_find(installation, INSTALLED_CONFIG_MAP, installation->ns, "claimguard");
    struct config_text texts[TEXTS_MAX];
    struct yaml_node *root = NULL;
    struct error err = {0};
    const char *key;
    json_t *text;
    size_t count = 0;

    json_object_foreach (json_object_get(map, "data"), key, text) {
        struct slice path =
            arena_printf(&doctor->arena, "ConfigMap %s/claimguard %s", installation->ns, key);
        if (slice_ends_with(slice_of(key), SLICE(".yaml")) && json_is_string(text) &&
            path.ptr != NULL && count < TEXTS_MAX)
            texts[count++] =
                (struct config_text){path.ptr, {json_string_value(text), json_string_length(text)}};
    }
    if (count == 0)
        return;
    doctor->is_config_wrong =
        config_load_texts(&doctor->config, &root, "ConfigMap claimguard", texts, count, &err) < 0;
    if (doctor->is_config_wrong)
        finding_unread(&doctor->findings, "claimguard's configuration: %s", err.message);
    else
        doctor->config_file = (struct config_file){root->path, doctor->config, root};
}

static int read_words(struct doctor *doctor, struct error *err)
{
    const char *word = doctor->arguments->output, *level = doctor->arguments->fail_on;

    if (word != NULL &&
        (!render_format_parse(&doctor->format, word) || doctor->format == OUTPUT_WIDE))
        return usage_fail(err, "--output: expected table, json or yaml");
    if (level != NULL && !level_parse(&doctor->fail_on, level))
        return usage_fail(err, "--fail-on: expected error, warning, note or never");
    return 0;
}

/* The kinds that were not read, or not whole, in one line. */
static void report_kinds(struct doctor *doctor, bool is_cut, const char *why)
{
    const struct installation *installation = &doctor->installation;
    struct slice names = SLICE("");

    for (int kind = 0; kind < INSTALLED_COUNT; kind++)
        if (!installation->is_known[kind] && installation->is_cut[kind] == is_cut &&
            (kind != INSTALLED_EVENT || doctor->arguments->snapshot == NULL))
            names = arena_printf(&doctor->arena, "%.*s%s%s", SLICE_ARG(names),
                                 names.len == 0 ? "" : ", ", installed_text((enum installed)kind));
    if (names.len != 0)
        finding_unread(&doctor->findings, "%.*s (%s)", SLICE_ARG(names), why);
}

static void report_unknown(struct doctor *doctor)
{
    report_kinds(doctor, false,
                 doctor->arguments->snapshot != NULL ? "the snapshot has none"
                                                     : "these credentials may not list them");
    report_kinds(doctor, true, "more than are read");
}

/* As which claimguard calls the API server: by its configuration; else by its Deployment, in the
 * namespace where it is. */
static struct slice own_user(struct doctor *doctor, const struct config *config)
{
    const struct installation *installation = &doctor->installation;
    const json_t *deployment =
        installation_find(installation, INSTALLED_DEPLOYMENT, installation->ns, "claimguard");
    const char *account =
        installed_string(deployment, "spec", "template", "spec", "serviceAccountName", NULL);

    if (scheduler_value(scheduler_value(doctor->config_file.root, "admission"), "ownUser") != NULL)
        return arena_copy(&doctor->arena, config->admission.own_user);
    return arena_printf(&doctor->arena, "system:serviceaccount:%s:%s", installation->ns,
                        *account == '\0' ? "claimguard" : account);
}

/* What claimguard's user may do, and what the API server has. */
static int ask_server(struct doctor *doctor, const struct config *config, struct error *err)
{
    const struct kubeconfig *kubeconfig = doctor->installation.inquiry.kubeconfig;
    struct slice user = own_user(doctor, config);
    struct server_version version;

    doctor->rights.user = user.ptr;
    if (user.ptr == NULL)
        return error_no_memory(err);
    if (rights_ask(&doctor->rights, config, kubeconfig, &doctor->arena, err) < 0 ||
        versions_ask(&version, kubeconfig, &doctor->arena, err) < 0)
        return err->code;
    versions_check(&version, config, &doctor->findings);
    return 0;
}

/* By the configuration, or by the defaults. */
static int read_server(struct doctor *doctor, struct error *err)
{
    struct config *defaults = NULL;

    if (doctor->installation.inquiry.kubeconfig == NULL) {
        finding_unread(&doctor->findings,
                       "rights, and the API server's version: a snapshot does not have them");
        return 0;
    }
    if (config_load(&defaults, NULL, err) < 0)
        return err->code;
    int rc = ask_server(doctor, doctor->config != NULL ? doctor->config : defaults, err);
    config_free(defaults);
    return rc;
}

/* The cluster that is named; without any file, the default one. */
static int read_cluster(struct doctor *doctor, struct error *err)
{
    const struct arguments *arguments = doctor->arguments;
    const struct inquiry_origin origin = doctor->origin;

    if (origin.snapshot == NULL && origin.kubeconfig == NULL && origin.context == NULL &&
        (doctor->scheduler_count != 0 || doctor->config != NULL)) {
        finding_unread(&doctor->findings, "the cluster (--snapshot or --kubeconfig)");
        return 0;
    }
    doctor->has_installation = true;
    if (installation_read(&doctor->installation, &origin,
                          arguments->ns != NULL ? arguments->ns : NAMESPACE, err) < 0)
        return err->code;
    report_unknown(doctor);
    if (doctor->config == NULL)
        read_config_map(doctor);
    return read_server(doctor, err);
}

static int read_all(struct doctor *doctor, struct error *err)
{
    if (read_words(doctor, err) < 0 || read_schedulers(doctor, err) < 0 ||
        read_config(doctor, err) < 0 || read_cluster(doctor, err) < 0)
        return err->code;
    if (doctor->config == NULL && !doctor->is_config_wrong)
        finding_unread(&doctor->findings, "claimguard's configuration (--config)");
    for (size_t i = 0; i < doctor->scheduler_count; i++)
        scheduler_find_own(&doctor->schedulers[i], doctor->config, &doctor->arena);
    for (size_t i = 0; doctor->arguments->probe && i < doctor->scheduler_count; i++)
        if (probe_scheduler(&doctor->schedulers[i], &doctor->findings, err) < 0)
            return err->code;
    return 0;
}

/* ---- the rules ---- */

static int check(struct doctor *doctor, struct error *err)
{
    struct findings *findings = &doctor->findings;

    for (size_t i = 0; i < doctor->scheduler_count; i++) {
        scheduler_schema_check(&doctor->schedulers[i], findings);
        scheduler_rules_check(&doctor->schedulers[i],
                              doctor->has_installation ? &doctor->installation : NULL, findings);
    }
    if (doctor->config != NULL)
        config_rules_check(&doctor->config_file, doctor->schedulers, doctor->scheduler_count,
                           findings);
    const struct config_file *config = doctor->config == NULL ? NULL : &doctor->config_file;
    certificate_rules_check(config, doctor->schedulers, doctor->scheduler_count, now_ms() / 1000,
                            &doctor->certificates, findings);
    const struct examined examined = {doctor->schedulers, doctor->scheduler_count, config,
                                      &doctor->certificates,
                                      doctor->has_installation ? &doctor->installation : NULL};
    webhook_rules_check_marks(&examined, findings);
    if (doctor->has_installation) {
        guard_rules_check(&examined, findings);
        running_rules_check(&examined, findings);
        installation_rules_check(&examined, findings);
        webhook_rules_check(&examined, now_ms() / 1000, findings);
        if (!running_is_absent(&doctor->installation))
            rights_check(&doctor->rights, findings);
    }
    findings_sort(findings);
    if (findings->has_failed)
        return error_no_memory(err);
    if (!doctor_report(findings, doctor->format))
        return error_set(err, ERROR_SYSTEM, "the result could not be written");
    return 0;
}

int command_doctor(const struct arguments *arguments)
{
    struct doctor *doctor = calloc(1, sizeof *doctor);
    struct error err = {0};
    int status = EXIT_DONE;

    if (doctor == NULL)
        (void)error_no_memory(&err);
    else if (arguments->explain != NULL)
        (void)rules_explain(doctor_rules, arguments->explain, &err);
    else {
        doctor->arguments = arguments;
        doctor->fail_on = LEVEL_WARNING;
        doctor->origin =
            (struct inquiry_origin){arguments->snapshot, arguments->kubeconfig, arguments->context};
        arena_init(&doctor->arena, ARENA_BYTES_MAX);
        doctor->findings.arena = &doctor->arena;
        if (read_all(doctor, &err) == 0 && check(doctor, &err) == 0)
            status = findings_reach(&doctor->findings, doctor->fail_on) ? EXIT_NO : EXIT_DONE;
        if (doctor->has_installation)
            installation_dispose(&doctor->installation);
        certificates_read_free(&doctor->certificates);
        config_free(doctor->config);
        arena_dispose(&doctor->arena);
    }
    free(doctor);
    return err.code == 0 ? status : command_fail(&err);
}
