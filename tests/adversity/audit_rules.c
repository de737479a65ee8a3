/* claimguard audit finds in a live cluster what it finds in a snapshot of it: the cases of
 * tests/commands/audit/ in which a rule fires, or nearly does, put into the API server. */
#include <ctype.h>
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cache/snapshot/source.h"
#include "support/process.h"
#include "support/scenario.h"

#define CASES TESTS_DIR "/commands/audit"

enum { PATH_BYTES = 512, OBJECTS_MAX = 256 };

/* What was put, to be removed. */
static struct put {
    char resource[64];
    const char *ns, *name;
} made[OBJECTS_MAX];
static size_t made_count;

static void resource_of(char out[static 64], const char *kind)
{
    for (int i = 0; i < KIND_COUNT; i++)
        if (strcmp(kind_text((enum kind)i), kind) == 0) {
            (void)snprintf(out, 64, "%s", kind_resource((enum kind)i));
            return;
        }
    (void)snprintf(out, 64, "%ss", kind);
    for (char *c = out; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
}

static bool has_namespace(const char *kind)
{
    static const char *const global[] = {"Node",
                                         "PersistentVolume",
                                         "StorageClass",
                                         "CSIDriver",
                                         "CSINode",
                                         "VolumeAttributesClass",
                                         "ValidatingWebhookConfiguration"};

    for (size_t i = 0; i < sizeof global / sizeof *global; i++)
        if (strcmp(global[i], kind) == 0)
            return false;
    return true;
}

/* As an API server stores it: with a namespace. */
static int put_object(void *context, const struct source_text *text, const struct object *object,
                      struct error *err)
{
    json_t *json = json_loadb(text->text.ptr, text->text.len, 0, NULL);
    json_t *meta = json_object_get(json, "metadata");
    struct put *put = &made[made_count++];

    (void)context;
    (void)object;
    (void)err;
    check(json != NULL && made_count < OBJECTS_MAX, "%s", text->path);
    if (has_namespace(text->type->kind) && json_object_get(meta, "namespace") == NULL)
        (void)json_object_set_new(meta, "namespace", json_string("default"));
    char *dumped = json_dumps(json, JSON_COMPACT);
    api_put("%s", dumped);
    resource_of(put->resource, text->type->kind);
    put->ns = has_namespace(text->type->kind)
                  ? scenario_printf("%s", json_string_value(json_object_get(meta, "namespace")))
                  : "";
    put->name = scenario_printf("%s", json_string_value(json_object_get(meta, "name")));
    free(dumped);
    json_decref(json);
    return 1;
}

static bool has_cluster(const char *folder)
{
    char path[PATH_BYTES];

    (void)snprintf(path, sizeof path, CASES "/%s/cluster.yaml", folder);
    return access(path, F_OK) == 0;
}

static void put_case(const char *folder)
{
    char path[PATH_BYTES];
    struct source_report report;
    struct error err = {0};

    (void)snprintf(path, sizeof path, CASES "/%s/cluster.yaml", folder);
    const struct source source = {.path = path, .text_sink = put_object};
    check(source_read(&source, &report, &err) == 0, "%s", err.message);
}

static void remove_case(void)
{
    while (made_count != 0) {
        const struct put *put = &made[--made_count];
        if (strcmp(api_object(put->resource, put->ns, put->name), "null") != 0) /* put twice */
            api_remove(put->resource, put->ns, put->name);
    }
}

/* The findings of that rule: LEVEL KIND NAMESPACE/NAME, a line each. Ownership: the caller. */
static char *findings_of(const json_t *answer, const char *code)
{
    char *lines = NULL;
    size_t size, i;
    FILE *out = open_memstream(&lines, &size);
    const json_t *finding;

    check(out != NULL, "no memory");
    json_array_foreach (json_object_get(answer, "findings"), i, finding) {
        const json_t *object = json_object_get(finding, "object");
        const char *kind = json_string_value(json_object_get(object, "kind"));
        const char *ns = json_string_value(json_object_get(object, "namespace"));
        if (strcasecmp(json_string_value(json_object_get(finding, "code")), code) == 0)
            (void)fprintf(out, "%s %s %s/%s\n",
                          json_string_value(json_object_get(finding, "level")), kind,
                          *ns == '\0' && has_namespace(kind) ? "default" : ns,
                          json_string_value(json_object_get(object, "name")));
    }
    (void)fclose(out);
    return lines;
}

/* are_known: these schedulers call claimguard. */
static json_t *audit_live(bool are_known)
{
    char kubeconfig[64], *text, *err;

    guard_user("{token: t}");
    (void)snprintf(kubeconfig, sizeof kubeconfig, "%s/kubeconfig", scenario_folder());
    const char *arguments[] = {"audit",    "--kubeconfig",
                               kubeconfig, "-o",
                               "json",     are_known ? "--schedulers=volcano,koordinator" : NULL,
                               NULL};
    (void)process_run(arguments, NULL, &text, &err);
    json_t *answer = json_loads(text, 0, NULL);
    check(answer != NULL, "%s%s", text, err);
    free(text);
    free(err);
    return answer;
}

/* Files have an order of their own. */
static bool have_same_lines(const char *a, const char *b)
{
    char line[256];

    if (strlen(a) != strlen(b))
        return false;
    for (size_t len; *a != '\0'; a += len) {
        len = strcspn(a, "\n") + 1;
        (void)snprintf(line, sizeof line, "%.*s", (int)len, a);
        if (strstr(b, line) == NULL)
            return false;
    }
    return true;
}

/* What differs in a live cluster. */
static const struct difference {
    const char *folder, *findings;
} differences[] = {
    /* its kinds come in another order, so another workload is the first one with the claim; and it
     * has no nodes, so a DaemonSet has no pods */
    {"cg104_fires", "error Deployment shop/web\nerror StatefulSet shop/one\n"
                    "error StatefulSet shop/set\nerror StatefulSet shop/set\n"
                    "error DaemonSet shop/ds\nerror ReplicaSet shop/rs\nerror ReplicaSet shop/rs\n"
                    "error Job shop/job\nerror Job shop/job\nerror CronJob shop/cron\n"
                    "error CronJob shop/cron\nerror HorizontalPodAutoscaler shop/one\n"},
    /* its CSIDrivers are known to be none */
    {"cg201_not", "error Deployment shop/api\n"},
    /* its PersistentVolumes are known to be none */
    {"cg305_not_known_without_volumes", "note VolumeAttributesClass /gold\n"},
    /* a pod with a node may have got it from a scheduler */
    {"cg401_fires", "warning StatefulSet shop/named\nwarning StatefulSet shop/volcano\n"},
};

static char *expected_of(const char *folder, const char *code)
{
    char path[PATH_BYTES];

    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++)
        if (strcmp(differences[i].folder, folder) == 0)
            return strdup(differences[i].findings);
    (void)snprintf(path, sizeof path, CASES "/%s/want.json", folder);
    json_t *wanted = json_load_file(path, 0, NULL);
    char *lines = findings_of(wanted, code);
    json_decref(wanted);
    return lines;
}

static void check_case(const char *folder)
{
    char code[8];

    (void)snprintf(code, sizeof code, "%.5s", folder);
    put_case(folder);
    json_t *answer = audit_live(strcmp(folder, "cg401_not") == 0);
    char *expected = expected_of(folder, code), *got = findings_of(answer, code);
    check(have_same_lines(expected, got), "%s: found\n%sexpected\n%s", folder, got, expected);
    free(expected);
    free(got);
    json_decref(answer);
    remove_case();
}

/* All cases of a rule with that ending, at least so many. */
static void check_cases(const char *part, size_t least)
{
    DIR *cases = opendir(CASES);
    size_t count = 0;

    check(cases != NULL, CASES);
    api_remove("nodes", "", "node-1");
    api_remove("nodes", "", "node-2");
    for (const struct dirent *entry; (entry = readdir(cases)) != NULL;) {
        if (strncmp(entry->d_name, "cg", 2) != 0 || strstr(entry->d_name, part) == NULL ||
            !has_cluster(entry->d_name)) /* one of a repository's folders */
            continue;
        check_case(entry->d_name);
        count++;
    }
    (void)closedir(cases);
    check(count >= least, "%zu cases", count);
}

static void each_rule_fires(void)
{
    check_cases("_fires", 17);
}

static void each_rule_nearly_fires(void)
{
    check_cases("_not", 17);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(each_rule_fires),
        SCENARIO(each_rule_nearly_fires),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
