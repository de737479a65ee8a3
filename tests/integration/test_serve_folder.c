/* A configuration that is a folder, as the kubelet mounts a ConfigMap with two keys. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/http.h"
#include "support/process.h"

static struct daemon server;

#define HEAD "apiVersion: claimguard.io/v1alpha1\nkind: ClaimguardConfiguration\n"

static char mounted[] = "/tmp/claimguard-XXXXXX";

/* Calls the function with the path of a name in the folder. */
static void in_folder(const char *name, const char *text,
                      void (*act)(const char *path, const char *text))
{
    char path[96];

    (void)snprintf(path, sizeof path, "%s/%s", mounted, name);
    act(path, text);
}

static void put_folder(const char *path, const char *text)
{
    (void)text;
    cr_assert_eq(mkdir(path, 0700), 0);
}

static void put_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    cr_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void put_link(const char *path, const char *text)
{
    char next[104];

    (void)snprintf(next, sizeof next, "%s_tmp", path);
    cr_assert_eq(symlink(text, next), 0);
    cr_assert_eq(rename(next, path), 0);
}

static void drop(const char *path, const char *text)
{
    (void)text;
    cr_assert_eq(remove(path), 0, "%s", path);
}

Test(folder, of_a_config_map_is_read_as_one_file_and_reloaded)
{
    static const char *const all[] = {"a.yaml",     "b.yaml",     "..data",
                                      "..1/a.yaml", "..1/b.yaml", "..2/a.yaml",
                                      "..2/b.yaml", "..1",        "..2"};

    cr_assert_not_null(mkdtemp(mounted));
    in_folder("..1", NULL, put_folder);
    in_folder("..1/a.yaml", HEAD "server: {maxRequestBytes: 1Mi}\n", put_text);
    in_folder("..1/b.yaml", HEAD "readWriteOncePod: {claimLock: Annotation}\n", put_text);
    in_folder("..data", "..1", put_link);
    in_folder("a.yaml", "..data/a.yaml", put_link);
    in_folder("b.yaml", "..data/b.yaml", put_link);
    cr_assert(daemon_start(&server, (const char *const[]){"--snapshot",
                                                          SOURCE_DIR "/docs/example/snapshot.yaml",
                                                          "--config", mounted, NULL}));
    cr_expect_eq(http_get_status(server.port, "/debug/cache"), 404);
    in_folder("..2", NULL, put_folder);
    in_folder("..2/a.yaml", HEAD "server: {maxRequestBytes: 1Mi}\n", put_text);
    in_folder("..2/b.yaml", HEAD "server: {debugEndpoints: true}\n", put_text);
    in_folder("..data", "..2", put_link);
    cr_expect(daemon_wait_for(&server, "configuration reloaded"));
    cr_expect_eq(http_get_status(server.port, "/debug/cache"), 200);
    cr_expect_eq(daemon_stop(&server), 0);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        in_folder(all[i], NULL, drop);
    cr_assert_eq(rmdir(mounted), 0);
}
