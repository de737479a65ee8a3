/* claimguard doctor: what it asks of a running kube-scheduler and of an API server. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    char *text = read_file(TESTS_DIR "/commands/doctor/configz/scheduler.json");

    api_fault(
        &(struct api_fault){.method = "GET", .path = "/configz", .status = 200, .answer = text});
    expect_of_url(configz_url(), 1, "CG510");
    expect_of_url(scenario_printf("http://127.0.0.1:%u", api_port()), 1, "CG510");
    free(text);
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
    api_fault(
        &(struct api_fault){.method = "GET", .path = "/configz", .status = 200, .answer = "["});
    expect_of_url(configz_url(), 2, "/configz:");
}

static void a_token_is_not_sent_in_plain_text(void)
{
    expect_of_url("http://192.0.2.1:10259/configz", 2, "credentials are not sent in plain text");
}

/* ---- the API server's version ---- */

static void serve_version(unsigned status, const char *version, const char *resources)
{
    api_fault(&(struct api_fault){.method = "POST",
                                  .path = "accessreviews",
                                  .status = 201,
                                  .answer = "{\"status\":{\"allowed\":true}}"});
    api_fault(&(struct api_fault){
        .method = "GET", .path = "/version", .status = status, .answer = version});
    api_fault(&(struct api_fault){
        .method = "GET", .path = "/apis/storage.k8s.io/v1", .status = 200, .answer = resources});
}

static void expect_of_cluster(int status, const char *present, const char *absent)
{
    char *out;
    int got = run(&out, (const char *const[]){"doctor", "--kubeconfig", kubeconfig(), "-n",
                                              "claimguard", NULL});

    check(got == status && strstr(out, present) != NULL, "%s, status %d: %s", present, got, out);
    check(absent == NULL || strstr(out, absent) == NULL, "%s: %s", absent, out);
    free(out);
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
        SCENARIO(a_version_that_is_not_told_is_not_checked),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
