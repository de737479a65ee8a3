/* claimguard verify: in front of an API server that refuses, lies, and does not answer, it says so
 * and removes what it has made. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/process.h"
#include "support/scenario.h"

#define NAMESPACE "/api/v1/namespaces/claimguard-verify-"
#define POD(more) "{\"kind\":\"Pod\",\"metadata\":{\"uid\":\"1\"}" more "}"

static const char *kubeconfig(void)
{
    guard_user("{token: t}");
    return scenario_printf("%s/kubeconfig", scenario_folder());
}

static void answer(const char *method, const char *path, unsigned status, const char *text)
{
    api_fault(
        &(struct api_fault){.method = method, .path = path, .status = status, .answer = text});
}

/* All is made and deleted, nothing was left, and pods have no node. */
static void serve(void)
{
    answer("POST", "/", 201, POD(""));
    answer("POST", "accessreviews", 201, "{\"status\":{\"allowed\":true}}");
    answer("GET", "/events", 200,
           "{\"kind\":\"EventList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"1\"},"
           "\"items\":[]}");
    answer("GET", "/version", 200, "{\"major\":\"1\",\"minor\":\"37\"}");
    answer("GET", "/apis/storage.k8s.io/v1", 200, "{}");
    answer("GET", "?labelSelector=", 200, "{\"items\":[]}");
    answer("GET", "/pods/pod-", 200, POD(""));
    answer("DELETE", "/", 200, "{}");
}

static void expect(int status, const char *present)
{
    const char *const arguments[] = {"verify", "--kubeconfig", kubeconfig(), NULL};
    char *out, *err;
    int got = process_run(arguments, NULL, &out, &err);

    check(got == status && (strstr(out, present) != NULL || strstr(err, present) != NULL),
          "%s, status %d: %s%s", present, got, out, err);
    free(out);
    free(err);
}

static void expect_removed(void)
{
    check(api_count("DELETE", NAMESPACE) >= 1, "the namespace is not removed");
}

/* ---- lies ---- */

static void what_it_may_not_make_is_not_tried(void)
{
    serve();
    answer("POST", "/api/v1/namespaces", 403, NULL);
    expect(2, "a namespace: the API server answers with status 403");
}

/* That a request succeeded is no proof. */
static void pods_that_have_no_node_in_spite_of_201_do_not_hold(void)
{
    serve();
    expect(1, "8 of 8 claims got no pod");
    expect_removed();
}

static void two_pods_with_a_node_do_not_hold(void)
{
    serve();
    answer("POST", "/binding", 409, "{\"message\":\"denied the request\"}");
    answer("GET", "/pods/pod-", 200, POD(",\"spec\":{\"nodeName\":\"n\"}"));
    expect(1, "8 of 8 claims got two pods");
    expect_removed();
}

static void one_pod_with_a_node_holds(void)
{
    serve();
    for (int i = 0; i < 3; i++)
        answer("GET", scenario_printf("/pods/pod-%d-", i), 200, POD(""));
    for (int i = 0; i < 24; i++)
        answer("GET", scenario_printf("/pods/pod-%d-%d-0", i / 8, i % 8), 200,
               POD(",\"spec\":{\"nodeName\":\"n\"}"));
    expect(0, "8 of 8 claims got one pod");
    expect_removed();
}

static void what_is_no_object_is_an_error(void)
{
    static const char *const texts[] = {"", "[]", "{", "{\"metadata\":{\"uid\":7}}", "{}"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        api_heal();
        serve();
        answer("POST", "/pods", 201, texts[i]);
        expect(2, "no such object");
        expect_removed();
    }
    api_heal();
    serve();
    answer("GET", "/namespaces?labelSelector=", 200, "{\"items\":[7]}");
    expect(2, "the answer is no list");
}

static void what_cannot_be_removed_is_named(void)
{
    serve();
    answer("DELETE", NAMESPACE, 500, NULL);
    expect(2, "Namespace claimguard-verify-");
}

/* ---- what an earlier run has left ---- */

#define LEFT(name, more) \
    "{\"metadata\":{\"name\":\"" name \
    "\",\"annotations\":{\"claimguard.io/verify-ends\":\"1\"}" more "}}"

static void only_what_has_our_names_and_is_over_is_removed(void)
{
    static const char list[] =
        "{\"items\":[" LEFT("claimguard-verify-bbbbbbbb", "") "," LEFT("kube-system", "") "," LEFT(
            "claimguard-verify-cc/../../x",
            "") "," LEFT("claimguard-verify-dddd?ddd",
                         "") ","
                             "{\"metadata\":{\"name\":\"claimguard-verify-ffffffff\","
                             "\"annotations\":"
                             "{\"claimguard.io/verify-ends\":\"99999999999\"}}}," LEFT(
                                 "claimguard-verify-gggggggg",
                                 ",\"deletionTimestamp\":\"2026-11-22T09:30:00Z\"") "]}";

    serve();
    answer("GET", "/namespaces?labelSelector=", 200, list);
    expect(1, "claims got no pod");
    check(api_count("DELETE", NAMESPACE "bbbbbbbb") == 1, "a leftover stays");
    check(api_count("DELETE", "kube-system") == 0, "kube-system is deleted");
    check(api_count("DELETE", NAMESPACE "cc") == 0 && api_count("DELETE", NAMESPACE "dddd") == 0 &&
              api_count("DELETE", NAMESPACE "ffff") == 0 &&
              api_count("DELETE", NAMESPACE "gggg") == 0,
          "another namespace is deleted");
}

/* ---- signals ---- */

static pid_t start(void)
{
    const char *binary = getenv("CLAIMGUARD_BINARY"), *path = kubeconfig();
    pid_t pid = fork();

    check(pid >= 0 && binary != NULL, "fork");
    if (pid == 0) {
        (void)execl(binary, binary, "verify", "--kubeconfig", path, (char *)NULL);
        _exit(99);
    }
    return pid;
}

static void an_interrupted_run_removes_its_namespace(void)
{
    int status;

    serve();
    api_fault(&(struct api_fault){
        .method = "POST", .path = "/persistentvolumeclaims", .ending = API_HANG});
    pid_t pid = start();
    check(api_wait("POST", "/persistentvolumeclaims", 1), "no claim is made");
    check(kill(pid, SIGINT) == 0 && waitpid(pid, &status, 0) == pid, "it does not end");
    check(WIFEXITED(status) && WEXITSTATUS(status) == 2, "status %d", status);
    expect_removed();
}

/* That no answer came does not mean that nothing was made. */
static void a_namespace_whose_creation_was_not_answered_is_removed(void)
{
    serve();
    api_fault(
        &(struct api_fault){.method = "POST", .path = "/api/v1/namespaces", .ending = API_CLOSE});
    expect(2, "a namespace: ");
    expect_removed();
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(what_it_may_not_make_is_not_tried),
        SCENARIO(pods_that_have_no_node_in_spite_of_201_do_not_hold),
        SCENARIO(two_pods_with_a_node_do_not_hold),
        SCENARIO(one_pod_with_a_node_holds),
        SCENARIO(what_is_no_object_is_an_error),
        SCENARIO(what_cannot_be_removed_is_named),
        SCENARIO(only_what_has_our_names_and_is_over_is_removed),
        SCENARIO(an_interrupted_run_removes_its_namespace),
        SCENARIO(a_namespace_whose_creation_was_not_answered_is_removed),
    };

    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
