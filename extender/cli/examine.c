#include "extender/cli/examine.h"

#include <stdlib.h>
#include <string.h>

#include "config/base/clock.h"

#define NAMESPACE "claimguard"

enum {
    ARENA_BYTES_MAX = 256 << 20, /* each file takes over a MiB */
    TEXTS_MAX = 16,              /* more than config_load_with_tree takes */
    FINDINGS_MAX = 1000,
};

/* What is not checked without schedulers' files, or without a cluster. */
static const uint64_t rules_of_schedulers = GAP_RULES(CG501, CG520) | GAP_RULES(CG603, CG606) |
                                            GAP_RULES(CG801, CG802) | GAP_RULES(CG804, CG808) |
                                            GAP_RULES(CG903, CG905);
static const uint64_t rules_of_cluster =
    RULES_OF_GUARD | GAP_RULES(CG701, CG709) | GAP_RULES(CG801, CG807) | GAP_RULES(CG901, CG902);

/* ---- reading ---- */

static int read_schedulers(struct examination *examination, struct error *err)
{
    const struct arguments *arguments = examination->arguments;

    if (arguments->name_count == 0)
        gaps_add(&examination->findings.gaps, rules_of_schedulers,
                 "kube-scheduler's files (--scheduler-config)");
    if (arguments->name_count > EXAMINED_FILES_MAX)
        return command_misused(examination->findings.command, "--scheduler-config: too many files",
                               err);
    for (size_t i = 0; i < arguments->name_count; i++) {
        struct scheduler_file *file = &examination->schedulers[examination->scheduler_count++];
        if (scheduler_file_read(file, arguments->names[i], &examination->origin,
                                &examination->arena, err) < 0)
            return err->code;
    }
    return 0;
}

static int read_config(struct examination *examination, struct error *err)
{
    const char *path = examination->arguments->config;
    struct yaml_node *root = NULL;

    if (path == NULL)
        return 0;
    if (config_load_with_tree(&examination->config, &root, &(struct config_source){.path = path},
                              err) < 0)
        return err->code;
    examination->config_file = (struct config_file){path, examination->config, root};
    return 0;
}

/* The files of the cluster's ConfigMap. Returns how many they are. */
static size_t read_config_map(struct examination *examination, struct config_text texts[TEXTS_MAX])
{
    const struct installation *installation = &examination->installation;
    const struct config_map *map =
        installation_find(installation, KIND_CONFIG_MAP, SLICE("claimguard"));
    struct pull json;
    struct slice key;
    size_t count = 0;

    pull_init(&json, map == NULL || map->data.len == 0 ? SLICE("null") : map->data);
    if (!pull_object(&json))
        return 0;
    while (count < TEXTS_MAX && pull_key(&json, &key)) {
        struct slice path = arena_printf(&examination->arena, "ConfigMap %s/claimguard %.*s",
                                         installation->ns, SLICE_ARG(key));
        texts[count] = (struct config_text){path.ptr, SLICE("")};
        count += pull_string(&json, &examination->arena, &texts[count].text) &&
                 slice_ends_with(path, SLICE(".yaml"));
    }
    return count;
}

/* Without --config, that of the cluster. What is wrong with it is said, and the rest checked. */
static void read_cluster_config(struct examination *examination)
{
    struct config_text texts[TEXTS_MAX];
    size_t count = read_config_map(examination, texts);
    struct yaml_node *root = NULL;
    struct error err = {0};

    if (count == 0)
        return;
    examination->is_config_wrong =
        config_load_with_tree(&examination->config, &root,
                              &(struct config_source){"ConfigMap claimguard", texts, count},
                              &err) < 0;
    if (examination->is_config_wrong)
        gaps_add(&examination->findings.gaps, RULES_OF_CONFIG, "claimguard's configuration: %s",
                 err.message);
    else
        examination->config_file = (struct config_file){root->path, examination->config, root};
}

static int read_words(struct examination *examination, struct error *err)
{
    const char *level = examination->arguments->fail_on, *problem = NULL;

    if (!output_format_parse(&examination->format, examination->arguments->output,
                             examination->outputs))
        problem = (examination->outputs & OUTPUTS_OF_FINDINGS) != 0
                      ? "--output: expected table, json, yaml, sarif or junit"
                      : "--output: expected table, json or yaml";
    else if (level != NULL && !level_parse(&examination->findings.fail_on, level))
        problem = "--fail-on: expected error, warning, note or never";
    return problem == NULL ? 0 : command_misused(examination->findings.command, problem, err);
}

/* The kinds that were not read, or not whole, in one line. */
static void report_kinds(struct examination *examination, bool is_cut, const char *why)
{
    const struct installation *installation = &examination->installation;
    struct slice names = SLICE("");
    uint64_t rules = 0;

    for (int i = 0; i < INSTALLED_KINDS; i++) {
        enum kind kind = installed_kinds[i].kind;
        if (installation_knows(installation, kind) || installation->lists[kind].is_cut != is_cut ||
            (examination->arguments->snapshot != NULL &&
             (kind == KIND_EVENT || kind == KIND_CLOSER_BINDING))) /* few clusters have them */
            continue;
        rules |= installed_kinds[i].rules;
        names = arena_printf(&examination->arena, "%.*s%s%s", SLICE_ARG(names),
                             names.len == 0 ? "" : ", ", kind_plural(kind));
    }
    if (names.len != 0)
        gaps_add(&examination->findings.gaps, rules, "%.*s (%s)", SLICE_ARG(names), why);
}

static void report_unknown(struct examination *examination)
{
    report_kinds(examination, false,
                 examination->arguments->snapshot != NULL ? "the snapshot has none"
                                                          : "these credentials may not list them");
    report_kinds(examination, true, "more than are read");
}

/* As which claimguard calls the API server: by its configuration; else by its Deployment, in the
 * namespace where it is. */
static struct slice own_user(struct examination *examination, const struct config *config)
{
    const struct installation *installation = &examination->installation;
    const struct guard *deployment =
        installation_find(installation, KIND_DEPLOYMENT, SLICE("claimguard"));
    struct slice account = deployment == NULL ? SLICE("") : deployment->account;

    if (scheduler_value(scheduler_value(examination->config_file.root, "admission"), "ownUser") !=
        NULL)
        return arena_copy(&examination->arena, config->admission.own_user);
    return arena_printf(&examination->arena, "system:serviceaccount:%s:%.*s", installation->ns,
                        SLICE_ARG(account.len == 0 ? SLICE("claimguard") : account));
}

/* What claimguard's user may do, and what the API server has: by the configuration, or by the
 * defaults. */
static int read_server(struct examination *examination, struct error *err)
{
    const struct kubeconfig *kubeconfig = examination->installation.inquiry.kubeconfig;
    struct config *defaults = NULL;

    if (kubeconfig == NULL) {
        gaps_add(&examination->findings.gaps, GAP_RULES(CG901, CG902),
                 "rights, and the API server's version: a snapshot does not have them");
        return 0;
    }
    if (config_load(&defaults, NULL, err) < 0)
        return err->code;
    const struct config *config = examination->config != NULL ? examination->config : defaults;
    examination->rights.user = own_user(examination, config).ptr;
    int rc = examination->rights.user == NULL ? error_no_memory(err)
                                              : server_ask(&examination->rights, kubeconfig, config,
                                                           &examination->findings, err);
    config_free(defaults);
    return rc;
}

/* The cluster that is named; without any file, the default one. */
static int read_cluster(struct examination *examination, struct error *err)
{
    const struct arguments *arguments = examination->arguments;
    const struct inquiry_origin origin = examination->origin;

    if (!examination->needs_cluster && origin.snapshot == NULL && origin.kubeconfig == NULL &&
        origin.context == NULL &&
        (examination->scheduler_count != 0 || examination->config != NULL)) {
        gaps_add(&examination->findings.gaps, rules_of_cluster,
                 "the cluster (--snapshot or --kubeconfig)");
        return 0;
    }
    examination->has_installation = true;
    if (installation_read(&examination->installation, &origin,
                          arguments->ns != NULL ? arguments->ns : NAMESPACE, err) < 0)
        return err->code;
    report_unknown(examination);
    if (examination->config == NULL)
        read_cluster_config(examination);
    return read_server(examination, err);
}

int examination_read(struct examination *examination, struct error *err)
{
    if (read_words(examination, err) < 0 || read_schedulers(examination, err) < 0 ||
        read_config(examination, err) < 0 || read_cluster(examination, err) < 0)
        return err->code;
    if (examination->config == NULL && !examination->is_config_wrong)
        gaps_add(&examination->findings.gaps, RULES_OF_CONFIG,
                 "claimguard's configuration (--config)");
    for (size_t i = 0; i < examination->scheduler_count; i++)
        scheduler_find_own(&examination->schedulers[i], examination->config);
    for (size_t i = 0; examination->arguments->probe && i < examination->scheduler_count; i++)
        if (probe_scheduler(&examination->schedulers[i], &examination->findings, err) < 0)
            return err->code;
    return 0;
}

/* ---- the rules ---- */

int examination_check(struct examination *examination, struct error *err)
{
    static void (*const checks[])(const struct examined *, struct findings *) = {
        doctor_check_schema,       doctor_check_schedulers, doctor_check_config,
        doctor_check_certificates, doctor_check_unreviewed, doctor_check_guard,
        doctor_check_pods,         doctor_check_webhooks,
    };
    struct findings *findings = &examination->findings;
    const struct examined examined = {
        .schedulers = examination->schedulers,
        .scheduler_count = examination->scheduler_count,
        .config = examination->config == NULL ? NULL : &examination->config_file,
        .certificates = &examination->certificates,
        .installation = examination->has_installation ? &examination->installation : NULL,
        .now_s = now_ms() / 1000,
    };

    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        checks[i](&examined, findings);
    if (examination->has_installation && !guard_is_absent(&examination->installation))
        rights_check(&examination->rights, findings);
    return findings->has_failed || findings->gaps.has_failed ? error_no_memory(err) : 0;
}

int examination_open(struct examination **out, const struct arguments *arguments,
                     const char *command, struct error *err)
{
    struct examination *examination = calloc(1, sizeof *examination);

    if (examination == NULL)
        return error_no_memory(err);
    *out = examination;
    examination->arguments = arguments;
    examination->outputs = OUTPUTS_PLAIN;
    examination->origin =
        (struct inquiry_origin){arguments->snapshot, arguments->kubeconfig, arguments->context};
    arena_init(&examination->arena, ARENA_BYTES_MAX);
    findings_init(&examination->findings, doctor_rules, command, &examination->arena);
    examination->findings.most = FINDINGS_MAX;
    return 0;
}

void examination_close(struct examination *examination)
{
    if (examination->has_installation)
        installation_dispose(&examination->installation);
    certificates_read_free(&examination->certificates);
    config_free(examination->config);
    findings_dispose(&examination->findings);
    arena_dispose(&examination->arena);
    free(examination);
}
