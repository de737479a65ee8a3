/* The command `doctor`: reads what it is given, applies the rules of extender/commands/doctor, and
 * prints what they find. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/base/clock.h"
#include "extender/cli/commands.h"
#include "extender/commands/doctor/doctor.h"

#define NAMESPACE "claimguard"

enum {
    ARENA_BYTES_MAX = 256 << 20, /* each file takes over a MiB */
    FILES_MAX = 64,
    TEXTS_MAX = 16, /* more than config_load_with_tree takes */
    FINDINGS_MAX = 1000,
};

/* What is read. All is in the arena, but the configuration. */
struct doctor {
    const struct arguments *arguments;
    enum output_format format;
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

/* What is not checked without schedulers' files, or without a cluster. */
static const uint64_t rules_of_schedulers = GAP_RULES(CG501, CG520) | GAP_RULES(CG603, CG606) |
                                            GAP_RULES(CG801, CG802) | GAP_RULES(CG804, CG808) |
                                            GAP_RULES(CG903, CG905);
static const uint64_t rules_of_cluster =
    RULES_OF_GUARD | GAP_RULES(CG701, CG709) | GAP_RULES(CG801, CG807) | GAP_RULES(CG901, CG902);

/* ---- reading ---- */

static int read_schedulers(struct doctor *doctor, struct error *err)
{
    const struct arguments *arguments = doctor->arguments;

    if (arguments->name_count == 0)
        gaps_add(&doctor->findings.gaps, rules_of_schedulers,
                 "kube-scheduler's files (--scheduler-config)");
    if (arguments->name_count > FILES_MAX)
        return command_misused("doctor", "--scheduler-config: too many files", err);
    for (size_t i = 0; i < arguments->name_count; i++) {
        struct scheduler_file *file = &doctor->schedulers[doctor->scheduler_count++];
        if (scheduler_file_read(file, arguments->names[i], &doctor->origin, &doctor->arena, err) <
            0)
            return err->code;
    }
    return 0;
}

static int read_config(struct doctor *doctor, struct error *err)
{
    const char *path = doctor->arguments->config;
    struct yaml_node *root = NULL;

    if (path == NULL)
        return 0;
    if (config_load_with_tree(&doctor->config, &root, &(struct config_source){.path = path}, err) <
        0)
        return err->code;
    doctor->config_file = (struct config_file){path, doctor->config, root};
    return 0;
}

/* The files of the cluster's ConfigMap. Returns how many they are. */
static size_t read_config_map(struct doctor *doctor, struct config_text texts[TEXTS_MAX])
{
    const struct installation *installation = &doctor->installation;
    const struct config_map *map =
        installation_find(installation, KIND_CONFIG_MAP, SLICE("claimguard"));
    struct pull json;
    struct slice key;
    size_t count = 0;

    pull_init(&json, map == NULL || map->data.len == 0 ? SLICE("null") : map->data);
    if (!pull_object(&json))
        return 0;
    while (count < TEXTS_MAX && pull_key(&json, &key)) {
        struct slice path = arena_printf(&doctor->arena, "ConfigMap %s/claimguard %.*s",
                                         installation->ns, SLICE_ARG(key));
        texts[count] = (struct config_text){path.ptr, SLICE("")};
        count += pull_string(&json, &doctor->arena, &texts[count].text) &&
                 slice_ends_with(path, SLICE(".yaml"));
    }
    return count;
}

/* Without --config, that of the cluster. What is wrong with it is said, and the rest checked. */
static void read_cluster_config(struct doctor *doctor)
{
    struct config_text texts[TEXTS_MAX];
    size_t count = read_config_map(doctor, texts);
    struct yaml_node *root = NULL;
    struct error err = {0};

    if (count == 0)
        return;
    doctor->is_config_wrong =
        config_load_with_tree(&doctor->config, &root,
                              &(struct config_source){"ConfigMap claimguard", texts, count},
                              &err) < 0;
    if (doctor->is_config_wrong)
        gaps_add(&doctor->findings.gaps, RULES_OF_CONFIG, "claimguard's configuration: %s",
                 err.message);
    else
        doctor->config_file = (struct config_file){root->path, doctor->config, root};
}

static int read_words(struct doctor *doctor, struct error *err)
{
    const char *level = doctor->arguments->fail_on, *problem = NULL;

    if (!output_format_parse(&doctor->format, doctor->arguments->output,
                             OUTPUTS_PLAIN | OUTPUTS_OF_FINDINGS))
        problem = "--output: expected table, json, yaml, sarif or junit";
    else if (level != NULL && !level_parse(&doctor->findings.fail_on, level))
        problem = "--fail-on: expected error, warning, note or never";
    return problem == NULL ? 0 : command_misused("doctor", problem, err);
}

/* The kinds that were not read, or not whole, in one line. */
static void report_kinds(struct doctor *doctor, bool is_cut, const char *why)
{
    const struct installation *installation = &doctor->installation;
    struct slice names = SLICE("");
    uint64_t rules = 0;

    for (int i = 0; i < INSTALLED_KINDS; i++) {
        enum kind kind = installed_kinds[i].kind;
        if (installation_knows(installation, kind) || installation->lists[kind].is_cut != is_cut ||
            (kind == KIND_EVENT && doctor->arguments->snapshot != NULL))
            continue;
        rules |= installed_kinds[i].rules;
        names = arena_printf(&doctor->arena, "%.*s%s%s", SLICE_ARG(names),
                             names.len == 0 ? "" : ", ", kind_plural(kind));
    }
    if (names.len != 0)
        gaps_add(&doctor->findings.gaps, rules, "%.*s (%s)", SLICE_ARG(names), why);
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
    const struct guard *deployment =
        installation_find(installation, KIND_DEPLOYMENT, SLICE("claimguard"));
    struct slice account = deployment == NULL ? SLICE("") : deployment->account;

    if (scheduler_value(scheduler_value(doctor->config_file.root, "admission"), "ownUser") != NULL)
        return arena_copy(&doctor->arena, config->admission.own_user);
    return arena_printf(&doctor->arena, "system:serviceaccount:%s:%.*s", installation->ns,
                        SLICE_ARG(account.len == 0 ? SLICE("claimguard") : account));
}

/* What claimguard's user may do, and what the API server has: by the configuration, or by the
 * defaults. */
static int read_server(struct doctor *doctor, struct error *err)
{
    const struct kubeconfig *kubeconfig = doctor->installation.inquiry.kubeconfig;
    struct config *defaults = NULL;

    if (kubeconfig == NULL) {
        gaps_add(&doctor->findings.gaps, GAP_RULES(CG901, CG902),
                 "rights, and the API server's version: a snapshot does not have them");
        return 0;
    }
    if (config_load(&defaults, NULL, err) < 0)
        return err->code;
    const struct config *config = doctor->config != NULL ? doctor->config : defaults;
    doctor->rights.user = own_user(doctor, config).ptr;
    int rc = doctor->rights.user == NULL
                 ? error_no_memory(err)
                 : server_ask(&doctor->rights, kubeconfig, config, &doctor->findings, err);
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
        gaps_add(&doctor->findings.gaps, rules_of_cluster,
                 "the cluster (--snapshot or --kubeconfig)");
        return 0;
    }
    doctor->has_installation = true;
    if (installation_read(&doctor->installation, &origin,
                          arguments->ns != NULL ? arguments->ns : NAMESPACE, err) < 0)
        return err->code;
    report_unknown(doctor);
    if (doctor->config == NULL)
        read_cluster_config(doctor);
    return read_server(doctor, err);
}

static int read_all(struct doctor *doctor, struct error *err)
{
    if (read_words(doctor, err) < 0 || read_schedulers(doctor, err) < 0 ||
        read_config(doctor, err) < 0 || read_cluster(doctor, err) < 0)
        return err->code;
    if (doctor->config == NULL && !doctor->is_config_wrong)
        gaps_add(&doctor->findings.gaps, RULES_OF_CONFIG, "claimguard's configuration (--config)");
    for (size_t i = 0; i < doctor->scheduler_count; i++)
        scheduler_find_own(&doctor->schedulers[i], doctor->config);
    for (size_t i = 0; doctor->arguments->probe && i < doctor->scheduler_count; i++)
        if (probe_scheduler(&doctor->schedulers[i], &doctor->findings, err) < 0)
            return err->code;
    return 0;
}

/* ---- the rules ---- */

static int check(struct doctor *doctor, struct error *err)
{
    static void (*const checks[])(const struct examined *, struct findings *) = {
        doctor_check_schema,       doctor_check_schedulers, doctor_check_config,
        doctor_check_certificates, doctor_check_unreviewed, doctor_check_guard,
        doctor_check_pods,         doctor_check_webhooks,
    };
    struct findings *findings = &doctor->findings;
    const struct examined examined = {
        .schedulers = doctor->schedulers,
        .scheduler_count = doctor->scheduler_count,
        .config = doctor->config == NULL ? NULL : &doctor->config_file,
        .certificates = &doctor->certificates,
        .installation = doctor->has_installation ? &doctor->installation : NULL,
        .now_s = now_ms() / 1000,
    };

    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        checks[i](&examined, findings);
    if (doctor->has_installation && !guard_is_absent(&doctor->installation))
        rights_check(&doctor->rights, findings);
    findings_sort(findings);
    if (findings->has_failed || findings->gaps.has_failed)
        return error_no_memory(err);
    if (!findings_print(findings, doctor->format))
        return error_set(err, ERROR_SYSTEM, "the result could not be written");
    return 0;
}

int command_doctor(const struct arguments *arguments, struct error *err)
{
    if (arguments->explain != NULL)
        return rules_explain(doctor_rules, arguments->explain, err);
    struct doctor *doctor = calloc(1, sizeof *doctor);
    if (doctor == NULL)
        return error_no_memory(err);
    doctor->arguments = arguments;
    doctor->origin =
        (struct inquiry_origin){arguments->snapshot, arguments->kubeconfig, arguments->context};
    arena_init(&doctor->arena, ARENA_BYTES_MAX);
    findings_init(&doctor->findings, doctor_rules, "doctor", &doctor->arena);
    doctor->findings.most = FINDINGS_MAX;
    doctor->findings.disabled = arguments->probe ? 0 : GAP_RULES(CG903, CG905);
    int rc = read_all(doctor, err);
    if (rc == 0)
        rc = check(doctor, err);
    if (rc == 0)
        rc = findings_fail(&doctor->findings) ? EXIT_NO : EXIT_DONE;
    if (doctor->has_installation)
        installation_dispose(&doctor->installation);
    certificates_read_free(&doctor->certificates);
    config_free(doctor->config);
    findings_dispose(&doctor->findings);
    arena_dispose(&doctor->arena);
    free(doctor);
    return rc;
}
