/* claimguard doctor: what it asks of a running kube-scheduler and of an API server. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/certificates.h"
#include "support/process.h"
#include "support/scenario.h"

/* Runs doctor with the arguments, up to NULL; returns its exit status. Ownership: the caller frees
 * *out, both outputs. */
static int run(char **out, const char *const *arguments)
{
    char *text, *err;
    int status = process_run(arguments, NULL, &text, &err);

    check(asprintf(out, "%s%s", text, err) > 0, "no memory");
    free(text);
    free(err);
    return status;
}

static const char *kubeconfig(void)
{
    guard_user("{token: t}");
    return scenario_printf("%s/kubeconfig", scenario_folder());
}

/* ---- /configz ---- */

static void expect_of_url(const char *url, int status, const char *present)
{
    char *out;

    check(setenv("KUBECONFIG", kubeconfig(), 1) == 0, "no memory");
    int got = run(&out, (const char *const[]){"doctor", "--scheduler-config", url, NULL});
    check(got == status && strstr(out, present) != NULL, "%s, status %d: %s", present, got, out);
    free(out);
}

static const char *configz_url(void)
{
    return scenario_printf("http://127.0.0.1:%u/configz", api_port());
}

static void a_running_scheduler_s_configuration_is_read(void)
{
    static char *text; /* the server's thread may read it until the end */

    text = read_file(TESTS_DIR "/commands/doctor/configz/scheduler.json");
    api_fault(
        &(struct api_fault){.method = "GET", .path = "/configz", .status = 200, .answer = text});
    expect_of_url(configz_url(), 1, "CG510");
    expect_of_url(scenario_printf("http://127.0.0.1:%u", api_port()), 1, "CG510");
}

static void a_scheduler_that_refuses_is_an_error(void)
{
    api_fault(&(struct api_fault){.method = "GET", .path = "/configz", .status = 403});
    expect_of_url(configz_url(), 2, "/configz: status 403");
}

static void what_is_no_configuration_is_an_error(void)
{
    api_fault(&(struct api_fault){
        .method = "GET", .path = "/configz", .status = 200, .answer = "{\"status\":\"ok\"}"});
    expect_of_url(configz_url(), 2, "apiVersion is missing");
    api_fault(&(struct api_fault){
        .method = "GET",
        .path = "/configz",
        .status = 200,
        .answer = "{\"componentconfig\":{\"apiVersion\":\"kubescheduler.config.k8s.io/v1\"}}"});
    expect_of_url(configz_url(), 2, "shows its configuration without a version");
    api_fault(
        &(struct api_fault){.method = "GET", .path = "/configz", .status = 200, .answer = "["});
    expect_of_url(configz_url(), 2, "/configz:");
}

static void a_token_is_not_sent_in_plain_text(void)
{
    expect_of_url("http://192.0.2.1:10259/configz", 2, "credentials are not sent in plain text");
}

/* ---- the API server's version ---- */

#define LIST(api_version, kind, items) \
    "{\"kind\":\"" kind "List\",\"apiVersion\":\"" api_version \
    "\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[" items "]}"

static void serve_version(unsigned status, const char *version, const char *resources)
{
    api_fault(&(struct api_fault){.method = "POST",
                                  .path = "accessreviews",
                                  .status = 201,
                                  .answer = "{\"status\":{\"allowed\":true}}"});
    api_fault(&(struct api_fault){
        .method = "GET", .path = "/events", .status = 200, .answer = LIST("v1", "Event", "")});
    api_fault(&(struct api_fault){
        .method = "GET", .path = "/version", .status = status, .answer = version});
    api_fault(&(struct api_fault){
        .method = "GET", .path = "/apis/storage.k8s.io/v1", .status = 200, .answer = resources});
}

static void expect_of_namespace(const char *ns, int status, const char *present, const char *absent)
{
    char *out;
    int got =
        run(&out, (const char *const[]){"doctor", "--kubeconfig", kubeconfig(), "-n", ns, NULL});

    check(got == status && strstr(out, present) != NULL, "%s, status %d: %s", present, got, out);
    check(absent == NULL || strstr(out, absent) == NULL, "%s: %s", absent, out);
    free(out);
}

static void expect_of_cluster(int status, const char *present, const char *absent)
{
    expect_of_namespace("claimguard", status, present, absent);
}

#define WITH_CLASSES    "{\"resources\":[{\"name\":\"volumeattributesclasses\"}]}"
#define WITHOUT_CLASSES "{\"resources\":[{\"name\":\"volumeattributesclasses/status\"}]}"

static void an_api_server_without_exclusive_claims_is_too_old(void)
{
    serve_version(200, "{\"major\":\"1\",\"minor\":\"26+\",\"gitVersion\":\"v1.26.5\"}",
                  WITH_CLASSES);
    expect_of_cluster(1, "CG902  the API server  v1.26.5: claims can be ReadWriteOncePod only",
                      "VolumeAttributesClasses");
}

static void an_api_server_without_classes_is_worth_a_note(void)
{
    serve_version(200, "{\"major\":\"1\",\"minor\":\"33\",\"gitVersion\":\"v1.33.1\"}",
                  WITHOUT_CLASSES);
    expect_of_cluster(0, "v1.33.1 does not serve VolumeAttributesClasses", "ReadWriteOncePod");
}

static void an_api_server_that_has_all_is_fine(void)
{
    serve_version(200, "{\"major\":\"1\",\"minor\":\"37\",\"gitVersion\":\"v1.37.1\"}",
                  WITH_CLASSES);
    expect_of_cluster(0, "0 errors, 0 warnings, 0 notes", "CG902");
}

/* What the caller may not do says nothing of claimguard's user. */
static void rights_of_the_caller_are_no_finding(void)
{
#define OURS "{\"metadata\":{\"name\":\"claimguard\",\"namespace\":\"claimguard\"}}"

    serve_version(200, "{\"major\":\"1\",\"minor\":\"37\",\"gitVersion\":\"v1.37.1\"}",
                  WITH_CLASSES);
    api_fault(&(struct api_fault){.method = "GET",
                                  .path = "/deployments",
                                  .status = 200,
                                  .answer = LIST("apps/v1", "Deployment", OURS)});
    api_fault(&(struct api_fault){.method = "GET",
                                  .path = "/services",
                                  .status = 200,
                                  .answer = LIST("v1", "Service", OURS)});
    api_fault(&(struct api_fault){.method = "POST",
                                  .path = "/selfsubjectaccessreviews",
                                  .status = 201,
                                  .answer = "{\"status\":{\"allowed\":false}}"});
    api_fault(&(struct api_fault){
        .method = "POST", .path = "/subjectaccessreviews", .status = 403, .answer = "{}"});
    expect_of_cluster(0, "these credentials may not ask about others; they may not: list pods",
                      "CG901");
}

static void answer(const char *path, const char *text)
{
    api_fault(&(struct api_fault){.method = "GET", .path = path, .status = 200, .answer = text});
}

/* Only this user may do what is asked. */
static void allow_only(const char *user)
{
    api_fault(&(struct api_fault){.method = "POST",
                                  .path = "/subjectaccessreviews",
                                  .status = 201,
                                  .answer = "{\"status\":{\"allowed\":false}}"});
    api_fault(&(struct api_fault){.method = "POST",
                                  .path = "/subjectaccessreviews",
                                  .body = scenario_printf("\"user\":\"%s\"", user),
                                  .status = 201,
                                  .answer = "{\"status\":{\"allowed\":true}}"});
}

#define NAMED "\"metadata\":{\"name\":\"claimguard\",\"namespace\":\"guards\"}"

static void serve_guards(const char *deployment)
{
    serve_version(200, "{\"major\":\"1\",\"minor\":\"37\",\"gitVersion\":\"v1.37.1\"}",
                  WITH_CLASSES);
    answer("/namespaces/guards/services", LIST("v1", "Service", "{" NAMED "}"));
    answer("/namespaces/guards/deployments", deployment);
}

/* As the chart installs it there: without admission, no file has ownUser. */
static void another_namespace_has_a_user_of_its_own(void)
{
    serve_guards(LIST("apps/v1", "Deployment", "{" NAMED "}"));
    allow_only("system:serviceaccount:guards:claimguard");
    expect_of_namespace("guards", 0, "0 errors", "CG901");
    allow_only("system:serviceaccount:claimguard:claimguard");
    expect_of_namespace("guards", 1, "helm upgrade", "apply -f manifests/rbac.yaml");
    expect_of_namespace("guards", 1, "CG901  system:serviceaccount:guards:claimguard ", NULL);
}

static void the_deployment_names_the_service_account(void)
{
    serve_guards(LIST("apps/v1", "Deployment",
                      "{" NAMED ",\"spec\":{\"template\":{\"spec\":"
                      "{\"serviceAccountName\":\"mine\"}}}}"));
    allow_only("system:serviceaccount:guards:mine");
    expect_of_namespace("guards", 0, "0 errors", "CG901");
}

#define HEAD "apiVersion: claimguard.io/v1alpha1\\nkind: ClaimguardConfiguration\\n"

static void own_user_of_the_configuration_wins(void)
{
    serve_guards(LIST("apps/v1", "Deployment", "{" NAMED "}"));
    answer("/namespaces/guards/configmaps",
           LIST("v1", "ConfigMap",
                "{" NAMED ",\"data\":{\"claimguard.yaml\":\"" HEAD
                "server: {listen: ':8888', tls: {certFile: a, keyFile: b, clientCAFile: c}}\\n\","
                "\"admission.yaml\":\"" HEAD
                "admission: {ownUser: 'system:serviceaccount:claimguard:claimguard'}\\n\"}}"));
    allow_only("system:serviceaccount:claimguard:claimguard");
    expect_of_namespace("guards", 0, "0 errors", "CG901");
    allow_only("system:serviceaccount:guards:claimguard");
    expect_of_namespace("guards", 1, "kubectl apply -f manifests/rbac.yaml", "helm upgrade");
}

static void a_version_that_is_not_told_is_not_checked(void)
{
    static const char *const answers[] = {"{\"major\":\"1\"}", "[1]", "{", "{\"minor\":26}"};

    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        serve_version(200, answers[i], WITH_CLASSES);
        expect_of_cluster(0, "Not checked: the API server's version", "CG902");
    }
    serve_version(403, NULL, "{");
    expect_of_cluster(0, "Not checked: the API server's version", "CG902");
}

/* ---- --probe ---- */

/* A scheduler's file that calls claimguard there, with this tlsConfig. */
static const char *scheduler_file(const char *url, const char *tls)
{
    const char *path = scenario_printf("%s/scheduler.yaml", scenario_folder());
    FILE *file = fopen(path, "we");

    check(file != NULL, "%s", path);
    (void)fprintf(
        file,
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "extenders:\n"
        "- {urlPrefix: \"%s\", filterVerb: filter, preemptVerb: preempt, bindVerb: bind,\n"
        "   nodeCacheCapable: true, managedResources: [{name: claimguard.io/claims,\n"
        "   ignoredByScheduler: true}]%s}\n",
        url, tls);
    check(fclose(file) == 0, "%s", path);
    return path;
}

static void expect_of_probe(const char *path, int status, const char *present, const char *absent)
{
    char *out;
    int got =
        run(&out, (const char *const[]){"doctor", "--scheduler-config", path, "--probe", NULL});

    check(got == status && strstr(out, present) != NULL, "%s, status %d: %s", present, got, out);
    check(absent == NULL || strstr(out, absent) == NULL, "%s: %s", absent, out);
    free(out);
}

static const char *plain_url(void)
{
    return scenario_printf("http://127.0.0.1:%u", api_port());
}

static void what_answers_is_reached_and_its_readiness_is_told(void)
{
    api_fault(
        &(struct api_fault){.method = "GET", .path = "/readyz", .status = 200, .answer = "ok"});
    expect_of_probe(scheduler_file(plain_url(), ""), 0, "0 errors, 0 warnings", "CG90");
    api_fault(&(struct api_fault){
        .method = "GET", .path = "/readyz", .status = 503, .answer = "pods: not synced"});
    expect_of_probe(scheduler_file(plain_url(), ""), 1, "CG905", "CG903");
    expect_of_probe(scheduler_file(plain_url(), ""), 1,
                    "/readyz answers with status 503: pods: not synced", "CG903");
}

static void nobody_is_called_without_probe(void)
{
    char *out;
    int status = run(&out, (const char *const[]){"doctor", "--scheduler-config",
                                                 scheduler_file(plain_url(), ""), NULL});

    check(status == 0 && api_count("GET", "/readyz") == 0, "%d %s", status, out);
    free(out);
}

static void where_nobody_listens_nothing_is_reached(void)
{
    const char *path = scheduler_file(plain_url(), "");

    api_go_down();
    expect_of_probe(path, 1, "CG903", "CG904");
    api_come_back();
}

enum { DAY_S = 24 * 60 * 60 };

static char folder[CERTIFICATES_FOLDER_BYTES];

static void start_with_tls(struct guard *guard)
{
    static const struct certificate all[] = {
        {.name = "ca", .is_authority = true, .begins_s = -DAY_S, .ends_s = 99 * DAY_S},
        {.name = "other", .is_authority = true, .begins_s = -DAY_S, .ends_s = 99 * DAY_S},
        {.name = "tls", .issuer = "ca", .begins_s = -DAY_S, .ends_s = 99 * DAY_S},
        {.name = "brief", .issuer = "ca", .is_for_clients = true},
        {.name = "client",
         .issuer = "ca",
         .is_for_clients = true,
         .begins_s = -DAY_S,
         .ends_s = 99 * DAY_S},
    };

    certificates_make(folder, all, sizeof all / sizeof *all);
    guard_start(guard, scenario_printf("server: {tls: {certFile: %s/tls.crt, keyFile: %s/tls.key, "
                                       "clientCAFile: %s/ca.crt}}\n",
                                       folder, folder, folder));
}

static const char *tls_file(const struct guard *guard, const char *ca, const char *client,
                            const char *more)
{
    return scheduler_file(
        scenario_printf("https://127.0.0.1:%u", guard->port),
        scenario_printf(", enableHTTPS: true, tlsConfig: {caFile: %s/%s.crt, certFile: "
                        "%s/%s.crt, keyFile: %s/%s.key%s}",
                        folder, ca, folder, client, folder, client, more));
}

static void a_certificate_is_checked_as_the_scheduler_does(void)
{
    struct guard guard;

    start_with_tls(&guard);
    expect_of_probe(tls_file(&guard, "ca", "client", ""), 0, "0 errors, 0 warnings", "CG90");
    expect_of_probe(tls_file(&guard, "other", "client", ""), 1, "CG904", "CG903");
    expect_of_probe(tls_file(&guard, "ca", "brief", ""), 1, "brief.crt ends within two weeks",
                    "error  CG");
    expect_of_probe(tls_file(&guard, "ca", "client", ", serverName: db.example.com"), 1, "CG904",
                    "CG903");
    expect_of_probe(tls_file(&guard, "ca", "other", ""), 1, "CG903", "CG904");
    expect_of_probe(tls_file(&guard, "ca", "missing", ""), 0, "missing.crt of ", "CG90");
    guard_stop(&guard);
    certificates_remove(folder);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_running_scheduler_s_configuration_is_read),
        SCENARIO(a_scheduler_that_refuses_is_an_error),
        SCENARIO(what_is_no_configuration_is_an_error),
        SCENARIO(a_token_is_not_sent_in_plain_text),
        SCENARIO(an_api_server_without_exclusive_claims_is_too_old),
        SCENARIO(an_api_server_without_classes_is_worth_a_note),
        SCENARIO(an_api_server_that_has_all_is_fine),
        SCENARIO(rights_of_the_caller_are_no_finding),
        SCENARIO(another_namespace_has_a_user_of_its_own),
        SCENARIO(the_deployment_names_the_service_account),
        SCENARIO(own_user_of_the_configuration_wins),
        SCENARIO(a_version_that_is_not_told_is_not_checked),
        SCENARIO(what_answers_is_reached_and_its_readiness_is_told),
        SCENARIO(nobody_is_called_without_probe),
        SCENARIO(where_nobody_listens_nothing_is_reached),
        SCENARIO(a_certificate_is_checked_as_the_scheduler_does),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
