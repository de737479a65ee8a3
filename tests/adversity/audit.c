/* claimguard audit of a live cluster: what it finds, and what it does not treat as missing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/process.h"
#include "support/scenario.h"

/* Runs the audit of the API server; returns its exit status. Ownership: the caller frees *out, both
 * outputs. */
static int audit(char **out)
{
    char kubeconfig[64], *text, *err;

    guard_user("{token: t}");
    (void)snprintf(kubeconfig, sizeof kubeconfig, "%s/kubeconfig", scenario_folder());
    const char *arguments[] = {"audit", "--kubeconfig", kubeconfig, NULL};
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

static void put_held(const char *second_node)
{
    put_drivers("node-1");
    put_drivers("node-2");
    put_claim("data");
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
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
