/* claimguard certificates in front of an API server: Secrets and the caBundle that it writes, those
 * that it leaves alone, and what it says when a request fails. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/base/text.h"
#include "support/process.h"
#include "support/scenario.h"
#include "support/trust.h"

#define SECRETS "/api/v1/namespaces/claimguard/secrets"

struct outcome {
    int status;
    char *out, *err;
};

static struct outcome run(const char *option, const char *value)
{
    char kubeconfig[96];
    const char *arguments[] = {"certificates", "--kubeconfig", kubeconfig, option, value, NULL};
    struct outcome outcome;

    guard_user("{token: t}");
    (void)snprintf(kubeconfig, sizeof kubeconfig, "%s/kubeconfig", scenario_folder());
    outcome.status = process_run(arguments, NULL, &outcome.out, &outcome.err);
    for (int i = 0; i < 2; i++) {
        const char *text = i == 0 ? outcome.out : outcome.err;
        check(strstr(text, "PRIVATE") == NULL && strstr(text, "LS0tLS1CRUdJTiBQUklW") == NULL,
              "no key is shown: %s", text);
    }
    return outcome;
}

static void outcome_free(struct outcome *outcome)
{
    free(outcome->out);
    free(outcome->err);
}

static void expect_done(const char *option, const char *value)
{
    struct outcome outcome = run(option, value);

    check(outcome.status == 0, "it is done: %d %s", outcome.status, outcome.err);
    outcome_free(&outcome);
}

static void expect_failure(const char *text)
{
    struct outcome outcome = run(NULL, NULL);

    check(outcome.status == 2 && strstr(outcome.err, text) != NULL, "expected %s in %s", text,
          outcome.err);
    check(outcome.out[0] == '\0', "nothing is on standard output: %s", outcome.out);
    outcome_free(&outcome);
}

/* The action of a line of the JSON; the reason must have the text. */
static void expect_action(const char *json, const char *name, const char *action,
                          const char *reason)
{
    json_t *lines = json_loads(json, 0, NULL), *line;
    bool is_found = false;
    size_t i;

    check(json_array_size(lines) == 4, "four lines: %s", json);
    json_array_foreach (lines, i, line)
        is_found |= strcmp(json_string_value(json_object_get(line, "name")), name) == 0 &&
                    strcmp(json_string_value(json_object_get(line, "action")), action) == 0 &&
                    strstr(json_string_value(json_object_get(line, "reason")), reason) != NULL;
    check(is_found, "%s is %s (%s) in %s", name, action, reason, json);
    json_decref(lines);
}

static void expect_actions(const char *option, const char *value, const char *const *actions)
{
    static const char *const names[] = {"authority", "server", "client", "webhook"};
    char kubeconfig[96];
    const char *arguments[] = {"certificates", "--kubeconfig", kubeconfig, "--format",
                               "json",         option,         value,      NULL};
    char *out, *err;

    guard_user("{token: t}");
    (void)snprintf(kubeconfig, sizeof kubeconfig, "%s/kubeconfig", scenario_folder());
    int status = process_run(arguments, NULL, &out, &err);
    check(status == 0, "%d %s", status, err);
    for (int i = 0; i < 4; i++)
        expect_action(out, names[i], actions[i], "");
    free(out);
    free(err);
}

#define ACTIONS(...) ((const char *const[]){__VA_ARGS__})

static const char *value_of(const char *secret, const char *key)
{
    char path[64];

    (void)snprintf(path, sizeof path, "data.%s", key);
    return api_text("secrets", "claimguard", secret, path);
}

static void put_webhooks(const char *first, const char *second)
{
    api_put("{\"kind\":\"ValidatingWebhookConfiguration\",\"metadata\":{\"name\":\"claimguard\"},"
            "\"webhooks\":[{\"name\":\"bindings.claimguard.io\",\"failurePolicy\":\"Ignore\","
            "\"clientConfig\":{\"caBundle\":\"%s\",\"service\":{\"namespace\":\"claimguard\","
            "\"name\":\"door\",\"port\":8890}}},"
            "{\"name\":\"pods.claimguard.io\",\"clientConfig\":{\"caBundle\":\"%s\","
            "\"url\":\"https://127.0.0.1:8890/admit/pod\"}}]}",
            first, second);
}

static void a_first_call_makes_the_secrets_and_a_second_one_keeps_them(void)
{
    expect_actions(NULL, NULL, ACTIONS("created", "created", "created", "missing"));
    check(api_count("POST", SECRETS "?") == 3, "three are created");
    check(strcmp(api_text("secrets", "claimguard", "claimguard-tls", "type"),
                 "kubernetes.io/tls") == 0,
          "of the type that has tls.crt and tls.key");
    check(value_of("claimguard-tls", "tls~crt")[0] != '\0' &&
              value_of("claimguard-client", "tls~key")[0] != '\0',
          "with certificate and key");
    check(strcmp(value_of("claimguard-tls", "ca~crt"), value_of("claimguard-ca", "tls~crt")) == 0,
          "beside the authority's certificate");
    check(value_of("claimguard-tls", "ca~key")[0] == '\0', "and not beside its key");
    const char *key = value_of("claimguard-ca", "tls~key");
    expect_actions(NULL, NULL, ACTIONS("kept", "kept", "kept", "missing"));
    check(api_count("POST", "") == 3 && api_count("PATCH", "") == 0, "nothing more is written");
    check(strcmp(value_of("claimguard-ca", "tls~key"), key) == 0, "the authority stays");
}

static void a_name_or_a_shorter_rest_renews_what_the_authority_has_signed(void)
{
    expect_done(NULL, NULL);
    const char *authority = api_object("secrets", "claimguard", "claimguard-ca");
    expect_actions("--host", "10.0.0.7", ACTIONS("kept", "renewed", "kept", "missing"));
    check(api_count("PATCH", "/secrets/claimguard-tls") == 1 && api_count("PATCH", "") == 1,
          "one is patched");
    check(api_count("PATCH", "\"resourceVersion\":\"") == 1, "in the version that was read");
    expect_actions("--renew-before", "8760h", ACTIONS("kept", "renewed", "renewed", "missing"));
    check(strcmp(api_object("secrets", "claimguard", "claimguard-ca"), authority) == 0,
          "the authority's Secret is not written");
    expect_actions("--renew-before", "87599h", ACTIONS("kept", "renewed", "renewed", "missing"));
}

static void a_wrong_ca_bundle_is_replaced_and_its_service_is_a_name(void)
{
    put_webhooks("", "d3Jvbmc=");
    expect_actions(NULL, NULL, ACTIONS("created", "created", "created", "updated"));
    const char *bundle = value_of("claimguard-ca", "tls~crt");
    check(strcmp(webhook_bundle(0), bundle) == 0 && strcmp(webhook_bundle(1), bundle) == 0,
          "both have the authority's");
    check(strstr(api_object("validatingwebhookconfigurations", "", "claimguard"),
                 "\"failurePolicy\": \"Ignore\"") != NULL ||
              strstr(api_object("validatingwebhookconfigurations", "", "claimguard"),
                     "\"failurePolicy\":\"Ignore\"") != NULL,
          "and all else");
    expect_actions(NULL, NULL, ACTIONS("kept", "kept", "kept", "kept"));
    check(api_count("PATCH", "") == 1, "once");
    put_webhooks(bundle, "d3Jvbmc=");
    expect_actions(NULL, NULL, ACTIONS("kept", "kept", "kept", "updated"));
    check(strcmp(webhook_bundle(1), bundle) == 0, "the second one again");
    /* the Service's name was in the certificate from the start */
    expect_actions("--host", "door.claimguard.svc", ACTIONS("kept", "kept", "kept", "kept"));
    expect_actions("--host", "window.claimguard.svc", ACTIONS("kept", "renewed", "kept", "kept"));
}

static void an_old_ca_crt_is_updated_beside_a_certificate_that_stays(void)
{
    expect_done(NULL, NULL);
    const char *certificate = value_of("claimguard-tls", "tls~crt");
    api_put("{\"kind\":\"Secret\",\"type\":\"kubernetes.io/tls\",\"metadata\":{\"name\":"
            "\"claimguard-tls\",\"namespace\":\"claimguard\",\"labels\":{\"mine\":\"1\"}},"
            "\"data\":{\"tls.crt\":\"%s\",\"tls.key\":\"%s\",\"ca.crt\":\"%s\"}}",
            certificate, value_of("claimguard-tls", "tls~key"), certificate);
    expect_actions(NULL, NULL, ACTIONS("kept", "updated", "kept", "missing"));
    check(strcmp(value_of("claimguard-tls", "tls~crt"), certificate) == 0, "it stays");
    check(strcmp(value_of("claimguard-tls", "ca~crt"), value_of("claimguard-ca", "tls~crt")) == 0,
          "beside the authority's");
    check(strcmp(api_text("secrets", "claimguard", "claimguard-tls", "metadata.labels.mine"),
                 "1") == 0,
          "labels stay");
}

static void a_dry_run_writes_nothing(void)
{
    put_webhooks("", "");
    struct outcome outcome = run("--dry-run", NULL);
    check(outcome.status == 0 && strstr(outcome.out, "authority  created") != NULL &&
              strstr(outcome.out, "webhook    updated") != NULL,
          "%d %s %s", outcome.status, outcome.out, outcome.err);
    check(strstr(outcome.err, "nothing was written") != NULL, "%s", outcome.err);
    check(api_count("POST", "") == 0 && api_count("PATCH", "") == 0, "only GETs are sent");
    outcome_free(&outcome);
}

static void secrets_of_somebody_else_are_left_alone(void)
{
    expect_done(NULL, NULL);
    const char *tls = api_object("secrets", "claimguard", "claimguard-tls");
    api_remove("secrets", "claimguard", "claimguard-ca");
    expect_failure("Secret claimguard/claimguard-tls: tls.crt is there without its authority");
    check(strcmp(api_object("secrets", "claimguard", "claimguard-tls"), tls) == 0, "it stays");
    api_put("{\"kind\":\"Secret\",\"metadata\":{\"name\":\"claimguard-ca\",\"namespace\":"
            "\"claimguard\"},\"data\":{\"tls.crt\":\"%s\",\"tls.key\":\"%s\"}}",
            value_of("claimguard-tls", "tls~crt"), value_of("claimguard-tls", "tls~key"));
    expect_failure("Secret claimguard/claimguard-ca: tls.crt: is not the certificate of an "
                   "authority");
    api_put("{\"kind\":\"Secret\",\"metadata\":{\"name\":\"claimguard-ca\",\"namespace\":"
            "\"claimguard\"},\"data\":{\"tls.crt\":\"%%%%\"}}");
    expect_failure("Secret claimguard/claimguard-ca: tls.crt: is not base64");
    api_put("{\"kind\":\"Secret\",\"metadata\":{\"name\":\"claimguard-ca\",\"namespace\":"
            "\"claimguard\",\"annotations\":{\"cert-manager.io/certificate-name\":\"x\"}}}");
    expect_failure("Secret claimguard/claimguard-ca: cert-manager makes and renews it");
    check(api_count("POST", "") == 3 && api_count("PATCH", "") == 0, "nothing more is written");
}

static void a_refused_request_is_named_and_nothing_else_is_written(void)
{
    api_fault(
        &(struct api_fault){.method = "GET", .path = "/secrets/claimguard-tls", .status = 403});
    expect_failure("Secret claimguard/claimguard-tls: the API server answers with status 403");
    check(api_count("POST", "") == 0, "nothing is written");
    api_heal();
    api_fault(&(struct api_fault){.method = "POST", .skip = 1, .times = 1, .status = 403});
    expect_failure("Secret claimguard/claimguard-tls: the API server answers with status 403");
    api_heal();
    expect_actions(NULL, NULL, ACTIONS("kept", "created", "created", "missing"));
    api_fault(&(struct api_fault){.method = "PATCH", .times = 1, .status = 409});
    struct outcome outcome = run("--renew-before", "8760h");
    check(outcome.status == 2 && strstr(outcome.err, "status 409") != NULL, "%s", outcome.err);
    outcome_free(&outcome);
    api_heal();
    api_fault(&(struct api_fault){.method = "GET", .status = 200, .answer = "{\"kind\":\"List\"}"});
    expect_failure("the answer is no such object");
}

static void a_lost_answer_is_an_error_and_the_next_call_continues(void)
{
    api_fault(
        &(struct api_fault){.method = "POST", .times = 1, .is_applied = true, .ending = API_CLOSE});
    expect_failure("Secret claimguard/claimguard-ca: ");
    check(api_count("POST", "") == 1, "the others were not tried");
    const char *key = value_of("claimguard-ca", "tls~key");
    expect_actions(NULL, NULL, ACTIONS("kept", "created", "created", "missing"));
    check(strcmp(value_of("claimguard-ca", "tls~key"), key) == 0,
          "with the authority that is there");
}

static void without_the_right_to_read_the_webhook_it_is_skipped_and_that_is_said(void)
{
    put_webhooks("", "");
    api_fault(&(struct api_fault){.path = "/validatingwebhookconfigurations", .status = 403});
    expect_actions(NULL, NULL, ACTIONS("created", "created", "created", "skipped"));
    check(webhook_bundle(0)[0] == '\0', "it is not written");
    api_heal();
    expect_actions(NULL, NULL, ACTIONS("kept", "renewed", "kept", "updated"));
}

static void another_namespace_has_its_own(void)
{
    expect_done("--namespace", "guard-2");
    check(strcmp(api_text("secrets", "guard-2", "claimguard-tls", "type"), "kubernetes.io/tls") ==
              0,
          "they are there");
    check(api_count("", "/namespaces/claimguard/") == 0, "and not elsewhere");
    struct outcome outcome = run("--namespace", "a/b");
    check(outcome.status == 2 && strstr(outcome.err, "--namespace: claimguard.a/b.svc") != NULL,
          "%s", outcome.err);
    outcome_free(&outcome);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_first_call_makes_the_secrets_and_a_second_one_keeps_them),
        SCENARIO(a_name_or_a_shorter_rest_renews_what_the_authority_has_signed),
        SCENARIO(a_wrong_ca_bundle_is_replaced_and_its_service_is_a_name),
        SCENARIO(an_old_ca_crt_is_updated_beside_a_certificate_that_stays),
        SCENARIO(a_dry_run_writes_nothing),
        SCENARIO(secrets_of_somebody_else_are_left_alone),
        SCENARIO(a_refused_request_is_named_and_nothing_else_is_written),
        SCENARIO(a_lost_answer_is_an_error_and_the_next_call_continues),
        SCENARIO(without_the_right_to_read_the_webhook_it_is_skipped_and_that_is_said),
        SCENARIO(another_namespace_has_its_own),
    };

    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
