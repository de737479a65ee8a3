/* claimguard audit of a live cluster: what it finds, and what it does not treat as missing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/process.h"
#include "support/scenario.h"

static const char *namespace_option; /* of the next audits: "-nshop"; NULL: none */

/* Runs the audit of the API server; returns its exit status. Ownership: the caller frees *out, both
 * outputs. */
static int audit(char **out)
{
    char kubeconfig[64], *text, *err;

    guard_user("{token: t}");
    (void)snprintf(kubeconfig, sizeof kubeconfig, "%s/kubeconfig", scenario_folder());
    const char *arguments[] = {"audit", "--kubeconfig", kubeconfig, namespace_option, NULL};
    int status = process_run(arguments, NULL, &text, &err);
    check(asprintf(out, "%s%s", text, err) > 0, "no memory");
    free(text);
    free(err);
    return status;
}

static void expect(int status, const char *present, const char *absent)
{
    char *out;
    int got = audit(&out);

    check(got == status, "exit status %d: %s", got, out);
    check(strstr(out, present) != NULL, "no %s: %s", present, out);
    check(absent == NULL || strstr(out, absent) == NULL, "%s: %s", absent, out);
    free(out);
}

static void put_drivers(const char *node)
{
    api_put("{\"kind\":\"CSINode\",\"metadata\":{\"name\":\"%s\"},\"spec\":{\"drivers\":[{\"name\":"
            "\"plugin1.example.com\"},{\"name\":\"secrets.example.com\"}]}}",
            node);
}

/* A claim, and its driver on all nodes. */
static void put_world(void)
{
    put_drivers("node-1");
    put_drivers("node-2");
    put_claim("data");
}

static void put_held(const char *second_node)
{
    put_world();
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .node = "node-1"});
    put_pod(&(struct test_pod){.name = "b", .claim = "data", .node = second_node});
}

static void a_claim_that_two_pods_hold_is_found(void)
{
    put_held("node-2");
    expect(1,
           "PersistentVolumeClaim default/data  -      the claim is ReadWriteOncePod, and 2 "
           "pods hold it: a on node-1, b on node-2",
           NULL);
}

static void a_claim_that_one_pod_holds_is_fine(void)
{
    put_held(NULL);
    expect(0, "No findings", "CG101");
}

static void put_inline_pod(void)
{
    put_drivers("node-1");
    put_pod(&(struct test_pod){.name = "a",
                               .node = "node-1",
                               .more_spec = ",\"volumes\":[{\"name\":\"v\",\"csi\":{\"driver\":"
                                            "\"secrets.example.com\"}}]"});
}

/* Every CSIDriver was listed, so the driver has none, though there are no others either. */
static void a_driver_that_no_list_has_is_missing(void)
{
    put_inline_pod();
    expect(1, "there is no CSIDriver object of driver secrets.example.com", NULL);
}

static void what_may_not_be_listed_is_not_missing(void)
{
    put_inline_pod();
    api_fault(&(struct api_fault){.method = "GET", .path = "/csidrivers", .status = 403});
    expect(0, "add csidrivers", "CG201 ");
}

/* ---- workloads ---- */

/* A Deployment in that namespace whose template names the claim data. */
static void put_deployment(const char *ns, const char *name, const char *strategy,
                           const char *annotations)
{
    api_put("{\"kind\":\"Deployment\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\","
            "\"annotations\":{%s}},\"spec\":{\"replicas\":1,\"strategy\":{\"type\":\"%s\"},"
            "\"template\":{\"spec\":{\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":"
            "{\"claimName\":\"data\"}}]}}}}",
            name, ns, annotations, strategy);
}

static void a_rollout_that_never_ends_is_found(void)
{
    put_world();
    put_deployment("default", "web", "RollingUpdate", "");
    expect(1, "error  CG102  Deployment default/web  -      a rollout never ends", NULL);
}

static void a_deployment_that_is_recreated_is_fine(void)
{
    put_world();
    put_deployment("default", "web", "Recreate", "");
    expect(0, "No findings. Objects: 7 read", "CG102");
}

static void an_annotation_silences_a_live_finding(void)
{
    put_world();
    put_deployment("default", "web", "RollingUpdate",
                   "\"claimguard.io/audit-ignore\":\"CG102: by hand\"");
    expect(0, "ignored  CG102", NULL);
}

/* An API server would not store it; a proxy may invent it. */
static void an_object_that_cannot_be_decoded_is_left_out(void)
{
    put_world();
    api_put("{\"kind\":\"Deployment\",\"metadata\":{\"name\":\"bad\",\"namespace\":\"default\"},"
            "\"spec\":{\"replicas\":\"one\"}}");
    put_deployment("default", "web", "RollingUpdate", "");
    expect(1, "Note: objects that could not be decoded were left out: 1.", NULL);
}

/* One kind that may not be listed hides no other. */
static void what_may_not_be_listed_is_a_gap(void)
{
    put_world();
    put_deployment("default", "web", "RollingUpdate", "");
    api_fault(&(struct api_fault){.method = "GET", .path = "/cronjobs", .status = 403});
    expect(1, "Note: cronjobs: these credentials may not list them.", "deployments: these");
    api_fault(&(struct api_fault){.method = "GET", .path = "/deployments", .status = 403});
    expect(0, "Note: deployments: these credentials may not list them.", "CG102 ");
}

static void kinds_that_are_not_served_are_no_error(void)
{
    put_world();
    put_deployment("default", "web", "RollingUpdate", "");
    api_fault(&(struct api_fault){.method = "GET", .path = "/cronjobs", .status = 404});
    expect(1, "CG102", "cronjobs:");
}

static void only_the_namespace_that_is_asked_about_is_listed(void)
{
    put_world();
    put_deployment("default", "web", "RollingUpdate", "");
    put_deployment("shop", "cart", "RollingUpdate", "");
    namespace_option = "-ndefault";
    expect(1, "Deployment default/web", "shop/cart");
    check(api_count("GET", "/namespaces/default/deployments?") == 1, "the Deployments of default");
    check(api_count("GET", "/namespaces/default/validatingwebhookconfigurations") == 0, "webhooks");
    namespace_option = "-nshop";
    expect(0, "No findings", "CG102 ");
}

enum { DEPLOYMENTS = 501 }; /* a page has 500 */

/* CG102 of each of the 501, and CG104 of all but the first: they name one claim. */
#define MANY_ERRORS "\n1001 errors, 0 warnings"

static void put_many(void)
{
    char name[32];

    put_world();
    for (int i = 0; i < DEPLOYMENTS; i++) {
        (void)snprintf(name, sizeof name, "web-%03d", i);
        put_deployment("default", name, "RollingUpdate", "");
    }
}

static void workloads_are_read_in_pages(void)
{
    put_many();
    expect(1, MANY_ERRORS, NULL);
    check(api_count("GET", "/deployments?limit=500&continue=") == 1, "the second page");
}

/* The token of the second page has expired: the list begins again, and nothing counts twice. */
static void a_list_that_begins_again_counts_once(void)
{
    put_many();
    api_fault(&(struct api_fault){
        .method = "GET", .path = "/deployments?limit=500&continue=", .times = 1, .status = 410});
    expect(1, MANY_ERRORS, NULL);
    check(api_count("GET", "/deployments?limit=500&continue=") == 2, "the second page, twice");
}

/* A page that is lost is asked for again. */
static void a_page_that_is_lost_is_read_again(void)
{
    put_many();
    api_fault(&(struct api_fault){
        .method = "GET", .path = "/deployments?", .times = 1, .ending = API_CLOSE});
    expect(1, MANY_ERRORS, NULL);
}

static void put_guarded_pod(const char *path)
{
    put_world();
    put_pod(&(struct test_pod){
        .name = "a", .claim = "data", .more_spec = ",\"schedulerName\":\"volcano\""});
    api_put("{\"kind\":\"ValidatingWebhookConfiguration\",\"metadata\":{\"name\":\"claimguard\"},"
            "\"webhooks\":[{\"name\":\"a\",\"clientConfig\":{\"service\":{\"path\":\"%s\"}}}]}",
            path);
}

static void another_scheduler_is_fine_with_the_webhook(void)
{
    put_guarded_pod("/admit/binding");
    expect(0, "No findings", "CG401");
}

static void another_scheduler_is_found_without_the_webhook(void)
{
    put_guarded_pod("/other");
    expect(1, "CG401", NULL);
}

static void without_pods_there_is_no_answer(void)
{
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods", .status = 403});
    expect(2, "claimguard: ", "No findings");
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_claim_that_two_pods_hold_is_found),
        SCENARIO(a_claim_that_one_pod_holds_is_fine),
        SCENARIO(a_driver_that_no_list_has_is_missing),
        SCENARIO(what_may_not_be_listed_is_not_missing),
        SCENARIO(without_pods_there_is_no_answer),
        SCENARIO(a_rollout_that_never_ends_is_found),
        SCENARIO(a_deployment_that_is_recreated_is_fine),
        SCENARIO(an_annotation_silences_a_live_finding),
        SCENARIO(an_object_that_cannot_be_decoded_is_left_out),
        SCENARIO(what_may_not_be_listed_is_a_gap),
        SCENARIO(kinds_that_are_not_served_are_no_error),
        SCENARIO(only_the_namespace_that_is_asked_about_is_listed),
        SCENARIO(workloads_are_read_in_pages),
        SCENARIO(a_list_that_begins_again_counts_once),
        SCENARIO(a_page_that_is_lost_is_read_again),
        SCENARIO(another_scheduler_is_fine_with_the_webhook),
        SCENARIO(another_scheduler_is_found_without_the_webhook),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
