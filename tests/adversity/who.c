/* claimguard who of a live cluster: what it reads is all there, or it says what is not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/process.h"
#include "support/scenario.h"

enum { PODS = 501 /* over a page */ };

/* Runs `COMMAND OPERAND`; returns its exit status. Ownership: the caller frees *out, both outputs.
 */
static int ask(const char *command, const char *operand, char **out)
{
    char kubeconfig[64], *text, *err;

    guard_user("{token: t}");
    (void)snprintf(kubeconfig, sizeof kubeconfig, "%s/kubeconfig", scenario_folder());
    int status =
        process_run((const char *const[]){command, operand, "--kubeconfig", kubeconfig, NULL}, NULL,
                    &text, &err);
    check(asprintf(out, "%s%s", text, err) > 0, "no memory");
    free(text);
    free(err);
    return status;
}

static void expect(int status, const char *present, const char *absent)
{
    char *out;
    int got = ask("who", "default/data", &out);

    check(got == status, "exit status %d: %s", got, out);
    check(strstr(out, present) != NULL, "no \"%s\": %s", present, out);
    check(absent == NULL || strstr(out, absent) == NULL, "\"%s\": %s", absent, out);
    free(out);
}

/* Of a live cluster, only the namespace that is named is read. */
static void a_pod_that_is_not_there_may_be_in_another_namespace(void)
{
    char *out;
    int status = ask("why", "nope", &out);

    check(status == 1 || status == 2, "exit status %d", status);
    check(strstr(out, "there is no pod default/nope ") != NULL &&
              strstr(out, "-n NAMESPACE") != NULL,
          "%s", out);
    free(out);
}

/* The last pod of the list holds the claim, and the first one waits for it. */
static void put_pages(void)
{
    put_claim("data");
    put_pod(&(struct test_pod){.name = "a", .claim = "data"});
    for (int i = 0; i < PODS; i++)
        put_pod(&(struct test_pod){.name = scenario_printf("p%03d", i), .node = "node-2"});
    put_pod(&(struct test_pod){.name = "z", .claim = "data", .node = "node-1"});
}

static void a_list_of_several_pages_is_whole(void)
{
    put_pages();
    expect(0, "held by   pod default/z on node-1", NULL);
    check(api_count("GET", "/pods?") == 2, "two pages");
    expect(0, "waiting   pod default/a\n", NULL);
}

static void a_continue_token_that_has_expired_starts_the_list_again(void)
{
    put_pages();
    api_fault(&(struct api_fault){.path = "continue=", .times = 1, .status = 410});
    expect(0, "held by   pod default/z on node-1", NULL);
    check(api_count("GET", "/pods?") == 4, "two lists of two pages, and one was refused");
}

static void a_page_that_breaks_off_is_read_again(void)
{
    static const struct api_fault faults[] = {
        {.path = "continue=", .times = 1, .ending = API_CLOSE},
        {.path = "continue=",
         .times = 1,
         .status = 200,
         .answer = "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":"
                   "\"9\"},\"items\":[{\"metadata\":{\"name\":\"z\",\"namespace\":\"def"},
        {.path = "continue=", .times = 1, .status = 500},
    };

    put_pages();
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        api_fault(&faults[i]);
        expect(0, "held by   pod default/z on node-1", NULL);
    }
}

/* Without pods or claims, there is no answer; without others, it says so. */
static void a_kind_without_rights(void)
{
    put_pair("node-1");
    api_fault(&(struct api_fault){.path = "/nodes?", .status = 403});
    expect(0, "- nodes: these credentials may not list them", "not ready");
    api_fault(&(struct api_fault){.path = "/persistentvolumeclaims?", .status = 403});
    expect(2, "persistentvolumeclaims was answered with status 403", "held by");
    api_heal();
    api_fault(&(struct api_fault){.path = "/pods?", .status = 403});
    expect(2, "pods was answered with status 403: these credentials may not list them", "held by");
}

/* A list that is none, or never ends, is no answer: nothing must look free because of it. */
static void a_list_that_lies(void)
{
    static const char *const answers[] = {
        "{\"kind\":\"NodeList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"9\"},"
        "\"items\":[]}",
        "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[]}",
        "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"9\"}}",
        "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"9\","
        "\"continue\":\"again\"},\"items\":[]}",
        "<html>proxy</html>",
        "",
    };

    put_pair("node-1");
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        api_fault(&(struct api_fault){.path = "/pods?", .status = 200, .answer = answers[i]});
        expect(2, "the answer is not such a list", "held by");
    }
}

static void a_pod_that_cannot_be_decoded_is_counted(void)
{
    put_pair("node-1");
    api_put("{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"default\",\"name\":\"odd\"},\"spec\":{"
            "\"priority\":\"high\"}}");
    expect(0, "1 objects could not be decoded; claims that they hold may look free", NULL);
}

static void an_api_server_that_is_away(void)
{
    put_pair("node-1");
    api_go_down();
    expect(2, "no answer to the list of pods", "held by");
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_list_of_several_pages_is_whole),
        SCENARIO(a_pod_that_is_not_there_may_be_in_another_namespace),
        SCENARIO(a_continue_token_that_has_expired_starts_the_list_again),
        SCENARIO(a_page_that_breaks_off_is_read_again),
        SCENARIO(a_kind_without_rights),
        SCENARIO(a_list_that_lies),
        SCENARIO(a_pod_that_cannot_be_decoded_is_counted),
        SCENARIO(an_api_server_that_is_away),
    };

    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
