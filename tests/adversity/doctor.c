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

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_running_scheduler_s_configuration_is_read),
        SCENARIO(a_scheduler_that_refuses_is_an_error),
        SCENARIO(what_is_no_configuration_is_an_error),
        SCENARIO(a_token_is_not_sent_in_plain_text),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
