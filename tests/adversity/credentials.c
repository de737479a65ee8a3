/* Credential plugins that hang and fail, and rights that are missing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/scenario.h"

/* A plugin that is this shell script, which also counts its runs. */
static void use_plugin(const char *script)
{
    char path[128], text[2048], user[512];

    (void)snprintf(path, sizeof path, "%s/plugin", scenario_folder());
    (void)snprintf(text, sizeof text, "echo run >>%s/runs\n%s\n", scenario_folder(), script);
    FILE *file = fopen(path, "we");
    check(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0, "%s", path);
    (void)snprintf(user, sizeof user,
                   "{exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, args: "
                   "[\"%s\"], interactiveMode: Never}}",
                   path);
    guard_user(user);
}

static size_t plugin_runs(void)
{
    char path[128];
    size_t runs = 0;

    (void)snprintf(path, sizeof path, "%s/runs", scenario_folder());
    FILE *file = fopen(path, "re");
    for (int c; file != NULL && (c = fgetc(file)) != EOF;)
        runs += c == '\n';
    if (file != NULL)
        (void)fclose(file);
    return runs;
}

#define CREDENTIAL \
    "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\"," \
    "\"status\":{\"token\":\"t\"}}'"

static void a_plugin_that_hangs_holds_no_shutdown_up(void)
{
    struct guard guard;

    use_plugin("exec >&-; sleep 100");
    guard_launch(&guard, "");
    AWAIT(plugin_runs() == 1, "the plugin runs");
    guard_stop(&guard);
}

static void a_plugin_that_fails_runs_once_for_all(void)
{
    struct guard guard;

    use_plugin("exit 3");
    guard_launch(&guard, "");
    check(guard_logs(&guard, "failed with exit status 3"), "why is said");
    sleep_ms(2500); /* runs: at once, after 1 s, after 3 s */
    check(plugin_runs() <= 3, "it ran %zu times", plugin_runs());
    guard_stop(&guard);
}

/* A 401 makes it run again; what is under way does not notice. */
static void a_plugin_that_runs_again_stops_no_watch(void)
{
    struct guard guard;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "a", .claim = "data"});
    use_plugin("[ $(wc -l <$(dirname $0)/runs) = 1 ] || exec sleep 100\n" CREDENTIAL);
    guard_start(&guard, "");
    api_fault(&(struct api_fault){.method = "POST", .path = "/binding", .times = 1, .status = 401});
    check(!bind_succeeds(&guard, "a", "node-1"), "the API server refuses the token");
    sleep_ms(1500); /* it was fresh: the plugin has a pause */
    api_cut("nodes");
    AWAIT(plugin_runs() == 2, "the plugin runs again");
    put_pod(&(struct test_pod){.name = "c", .claim = "data", .node = "node-1"});
    AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"pods\"}") == 2,
          "the watch continues");
    guard_stop(&guard);
}

/* The log names the right that is missing. */
static void what_a_refused_list_is_answered_with_is_logged_and_warned_of(void)
{
    static const char answer[] = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                                 "\"status\":\"Failure\",\"message\":\"pods is forbidden: User "
                                 "\\\"t\\\" cannot list resource \\\"pods\\\"\"}";
    struct guard guard;

    api_fault(&(struct api_fault){
        .method = "GET", .path = "/api/v1/pods?", .status = 403, .answer = answer});
    guard_launch(&guard, "");
    check(guard_logs(&guard,
                     "reason=forbidden status=403 error=\"pods is forbidden: User \\\"t\\\" "
                     "cannot list resource"),
          "the reason");
    check(guard_logs(&guard, "WARN  a list or watch fails repeatedly resource=pods "
                             "reason=forbidden status=403 error=\"pods is forbidden"),
          "a warning");
    api_heal();
    guard_await_ready(&guard);
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_plugin_that_hangs_holds_no_shutdown_up),
        SCENARIO(a_plugin_that_fails_runs_once_for_all),
        SCENARIO(a_plugin_that_runs_again_stops_no_watch),
        SCENARIO(what_a_refused_list_is_answered_with_is_logged_and_warned_of),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
