/* What the command line says of a snapshot that lacks something, or has what it does not read; and
 * of real answers. The real program. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "integration/cli_run.h"

/* The text has it once. */
static void expect_one(const char *text, const char *part)
{
    const char *found = strstr(text, part);

    cr_expect(found != NULL && strstr(found + 1, part) == NULL, "%s", text);
}

Test(cli, what_a_snapshot_lacks_is_said_on_stderr)
{
    struct run run =
        run_with(TESTS_DIR "/cases/read_write_once_pod/names_a_claim_that_does_not_exist/pod.json",
                 (const char *const[]){"dry-run", "-s", "-", "-a", "-o", "json", NULL});

    cr_expect_eq(run.status, 1);
    cr_expect_str_eq(run.err,
                     "claimguard: -: the snapshot has no PersistentVolumeClaims: add pvc to "
                     "kubectl get\n"
                     "claimguard: -: the snapshot has no Nodes, so nominated pods do not count, "
                     "and no node is checked: add nodes to kubectl get\n");
    run_free(&run);
    run = RUN("dry-run", "-s", TESTS_DIR "/fixtures/no-attributes-classes.yaml", "-a");
    cr_expect_eq(run.status, 1);
    cr_expect_not_null(strstr(run.err, "claims name VolumeAttributesClasses, and the snapshot has "
                                       "none: add volumeattributesclasses to kubectl get"),
                       "%s", run.err);
    run_free(&run);
    run = RUN("dry-run", "-s", TESTS_DIR "/fixtures/other-kinds.yaml", "-a");
    cr_expect_eq(run.status, 0);
    cr_expect_not_null(strstr(run.err, "skipped 1 object of other kinds"), "%s", run.err);
    run_free(&run);
}

#define NO_DRIVERS \
    "pods have inline CSI volumes, and the snapshot has no CSIDrivers: add csidrivers to kubectl " \
    "get"

/* Of pods of the snapshot, and of a manifest; once, however many pods have such volumes. */
Test(cli, a_snapshot_without_csi_drivers_is_said_on_stderr)
{
    static const char *const manifest =
        TESTS_DIR "/cases/csi_volumes/inline_and_there_is_no_csi_driver/pod.json";
    static const char *const snapshots[] = {
        TESTS_DIR "/fixtures/no-csi-drivers.yaml",
        TESTS_DIR "/cases/csi_volumes/one_node_lists_the_driver/cluster.yaml"};
    struct run run = RUN("dry-run", "-s", snapshots[0], "-a");

    cr_expect_eq(run.status, 1);
    expect_one(run.err, NO_DRIVERS);
    run_free(&run);
    for (int i = 0; i < 2; i++) {
        run = RUN("dry-run", "-s", snapshots[i], "-p", manifest, "-o", "json");
        cr_expect_eq(run.status, 1);
        expect_one(run.err, NO_DRIVERS);
        expect_one(run.out, NO_DRIVERS);
        run_free(&run);
    }
    run = RUN("dry-run", "-s", snapshots[1], "-p",
              TESTS_DIR "/cases/csi_volumes/one_node_lists_the_driver/pod.json");
    cr_expect_str_eq(run.err, "", "no pod has an inline volume");
    run_free(&run);
}

Test(cli, a_pod_that_is_not_read_spoils_no_snapshot)
{
    char path[] = "/tmp/claimguard-test-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");

    cr_assert_not_null(file);
    (void)fputs("{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":[{\"metadata\":{\"name\":"
                "\"many\"},\"spec\":{\"volumes\":[",
                file);
    for (int i = 0; i < 5000; i++)
        (void)fprintf(file, "%s{\"persistentVolumeClaim\":{\"claimName\":\"%d\"}}",
                      i == 0 ? "" : ",", i);
    (void)fputs("]}},{\"metadata\":{\"name\":\"other\",\"annotations\":{\"x\":\"\\u0000\"}}}]}",
                file);
    cr_assert_eq(fclose(file), 0);
    struct run run = RUN("dry-run", "-s", path, "-a");
    cr_expect_eq(run.status, 0, "%s", run.err);
    cr_expect_not_null(strstr(run.out, "1 pod: 1 schedulable"), "%s", run.out);
    cr_expect_not_null(strstr(run.err, "pods with over 512 claims are left out"), "%s", run.err);
    run_free(&run);
    (void)unlink(path);
}

/* A snapshot of real answers: claims with managedFields, all volume kinds, classes. */
Test(cli, real_api_server_answers_are_a_snapshot)
{
    struct run run = RUN("dry-run", "-s", TESTS_DIR "/fixtures/apiserver", "-a", "-o", "json");

    cr_expect(run.status == 0 || run.status == 1, "%s", run.err);
    json_t *list = json_loads(run.out, 0, NULL);
    cr_expect_gt(json_array_size(list), 0);
    json_decref(list);
    run_free(&run);
}
