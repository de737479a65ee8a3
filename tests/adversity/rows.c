/* Snapshots, and lists that do not end. Only the dry run uses PriorityClasses: they are captured,
 * but never watched, and nothing fails without the right to read them. */
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/process.h"
#include "support/scenario.h"

static void put_class(void)
{
    api_put("{\"kind\":\"PriorityClass\",\"metadata\":{\"name\":\"high\"},\"value\":1000,"
            "\"preemptionPolicy\":\"Never\",\"description\":\"for those in a hurry\"}");
}

/* `claimguard snapshot` of the API server; returns its exit status. Ownership: the caller frees
 * *err, its stderr. */
static int take_snapshot(const char *file, char **err)
{
    char kubeconfig[64], *out;

    guard_user("{token: t}");
    (void)snprintf(kubeconfig, sizeof kubeconfig, "%s/kubeconfig", scenario_folder());
    const char *arguments[] = {"snapshot", "--kubeconfig", kubeconfig, "-o", file, NULL};
    int status = process_run(arguments, NULL, &out, err);
    free(out);
    return status;
}

static void capture_into(const char *file, char **err)
{
    int status = take_snapshot(file, err);

    check(status == 0, "exit status %d: %s", status, *err);
}

/* The same; returns the file's text. Ownership: the caller frees it, and *err. */
static char *capture(char **err)
{
    char file[64];

    (void)snprintf(file, sizeof file, "%s/snapshot.json", scenario_folder());
    capture_into(file, err);
    return read_file(file);
}

/* A file of that name would replace /dev/null, for root. */
static void a_snapshot_goes_into_a_pipe_and_leaves_it_one(void)
{
    char file[64], text[65536] = "", *err;
    struct stat status;

    put_claim("data");
    (void)snprintf(file, sizeof file, "%s/pipe", scenario_folder());
    check(mkfifo(file, 0600) == 0, "mkfifo");
    int fd = open(file, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    capture_into(file, &err);
    check(read(fd, text, sizeof text - 1) > 0 && strstr(text, "PersistentVolumeClaim") != NULL,
          "%s", text);
    check(stat(file, &status) == 0 && S_ISFIFO(status.st_mode), "it is no pipe any more");
    (void)close(fd);
    free(err);
}

static void a_snapshot_has_the_priority_classes(void)
{
    char *err, *text;

    put_class();
    put_claim("data");
    text = capture(&err);
    check(strstr(text, "\"kind\":\"PriorityClass\"") != NULL, "%s", text);
    check(strstr(text, "\"value\":1000,\"preemptionPolicy\":\"Never\"") != NULL, "%s", text);
    check(strstr(text, "hurry") == NULL, "what nobody asks about is not captured: %s", text);
    check(strstr(text, "PersistentVolumeClaim") != NULL, "%s", text);
    free(text);
    free(err);
}

/* However many there are of each kind. */
static void a_snapshot_is_json(void)
{
    char *err;

    for (int i = 0; i < 5; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "data-%d", i);
        put_claim(name);
        if (i < 2)
            put_pod(&(struct test_pod){.name = name, .claim = name, .node = "node-1"});
    }
    char *text = capture(&err);
    json_t *list = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    check(list != NULL, "%s", text);
    check(json_array_size(json_object_get(list, "items")) >= 7, "%s", text);
    json_decref(list);
    free(text);
    free(err);
}

static void a_snapshot_without_the_right_to_priority_classes_says_so(void)
{
    char *err, *text;

    put_class();
    put_claim("data");
    api_fault(&(struct api_fault){.path = "/priorityclasses", .status = 403});
    text = capture(&err);
    check(strstr(err, "priorityclasses was answered with status 403") != NULL, "%s", err);
    check(strstr(text, "PriorityClass") == NULL, "%s", text);
    check(strstr(text, "PersistentVolumeClaim") != NULL, "%s", text);
    check(strcmp(text + strlen(text) - 4, "\n]}\n") == 0, "it is whole: %s", text);
    free(text);
    free(err);
}

static void a_snapshot_without_the_right_to_nodes_says_so(void)
{
    char *err, *text;

    put_claim("data");
    api_fault(&(struct api_fault){.path = "/nodes", .status = 403});
    text = capture(&err);
    check(strstr(err, "nodes was answered with status 403") != NULL, "%s", err);
    check(strstr(err, "captured without them") != NULL, "%s", err);
    check(strstr(text, "PersistentVolumeClaim") != NULL, "%s", text);
    free(text);
    free(err);
}

/* Claims would look free. */
static void there_is_no_snapshot_without_the_right_to_pods_or_claims(void)
{
    static const char *const paths[] = {"/persistentvolumeclaims", "/pods"};
    char *err, file[64];

    (void)snprintf(file, sizeof file, "%s/snapshot.json", scenario_folder());
    for (int i = 0; i < 2; i++) {
        api_fault(&(struct api_fault){.path = paths[i], .status = 403});
        check(take_snapshot(file, &err) == 2, "%s", err);
        check(strstr(err, paths[i] + 1) != NULL, "%s", err);
        check(access(file, F_OK) != 0, "there is no file");
        free(err);
    }
}

static void priority_classes_are_not_watched(void)
{
    struct guard guard;
    int status;

    put_class();
    guard_start(&guard, "");
    char *ready = guard_get(&guard, "/readyz?verbose", &status);
    check(status == 200 && strstr(ready, "priorityclasses") == NULL, "%s", ready);
    check(api_count("GET", "priorityclasses") == 0, "nobody asks for them");
    check(guard_metric(&guard, "claimguard_cache_objects{resource=\"priorityclasses\"") == 0,
          "or counts them");
    free(ready);
    guard_stop(&guard);
}

/* A cache in between ignores the query. */
static void serve_one_page(void)
{
    api_fault(&(struct api_fault){
        .method = "GET",
        .path = "/pods?",
        .status = 200,
        .answer = "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":"
                  "\"100000\",\"continue\":\"again\"},\"items\":[]}"});
}

static void a_snapshot_of_a_list_without_an_end_fails(void)
{
    char *err;

    serve_one_page();
    check(take_snapshot("/dev/null", &err) == 2, "it fails");
    check(strstr(err, "the list of pods was answered with status 200") != NULL, "%s", err);
    check(api_count("GET", "/pods?") < 20, "it gives up soon");
    free(err);
}

static void a_list_without_an_end_is_no_progress(void)
{
    struct guard guard;
    int status;

    api_serve_pages();
    guard_start(&guard, "");
    serve_one_page();
    api_compact();
    api_cut("pods");
    AWAIT(guard_metric(&guard, "claimguard_cache_stalled{resource=\"pods\"}") == 1, "it stalls");
    check(api_count("GET", "/pods?") < 60, "it backs off");
    check(guard_logs(&guard, "a resource does not advance"), "the log says so");
    free(guard_get(&guard, "/readyz", &status));
    check(status == 503, "it is not ready");
    api_heal();
    AWAIT(guard_metric(&guard, "claimguard_cache_stalled{resource=\"pods\"}") == 0, "it recovers");
    guard_stop(&guard);
}

/* /dev/stdout is a link. */
static void a_snapshot_is_written_through_a_link(void)
{
    char file[64], link[64], *err;
    struct stat status;

    put_claim("data");
    (void)snprintf(file, sizeof file, "%s/file", scenario_folder());
    (void)snprintf(link, sizeof link, "%s/link", scenario_folder());
    check(symlink(file, link) == 0, "symlink");
    capture_into(link, &err);
    check(lstat(link, &status) == 0 && S_ISLNK(status.st_mode), "it is no link any more");
    char *text = read_file(file);
    check(strstr(text, "PersistentVolumeClaim") != NULL, "%s", text);
    free(text);
    free(err);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_snapshot_is_json),
        SCENARIO(a_snapshot_has_the_priority_classes),
        SCENARIO(a_snapshot_without_the_right_to_priority_classes_says_so),
        SCENARIO(a_snapshot_without_the_right_to_nodes_says_so),
        SCENARIO(there_is_no_snapshot_without_the_right_to_pods_or_claims),
        SCENARIO(a_snapshot_goes_into_a_pipe_and_leaves_it_one),
        SCENARIO(a_snapshot_is_written_through_a_link),
        SCENARIO(priority_classes_are_not_watched),
        SCENARIO(a_snapshot_of_a_list_without_an_end_fails),
        SCENARIO(a_list_without_an_end_is_no_progress),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
