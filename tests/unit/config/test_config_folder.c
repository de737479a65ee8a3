/* A configuration that is a folder. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/config.h"

#define HEAD "apiVersion: claimguard.io/v1alpha1\nkind: ClaimguardConfiguration\n"

/* Makes a folder with the file a.yaml, and with b.yaml if there is a second text. */
static void make_folder(char path[32], const char *a, const char *b)
{
    const char *const texts[] = {a, b};

    (void)snprintf(path, 32, "/tmp/claimguard-XXXXXX");
    cr_assert_not_null(mkdtemp(path));
    for (int i = 0; i < 2; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%s/%c.yaml", path, 'a' + i);
        FILE *file = texts[i] == NULL ? NULL : fopen(name, "w");
        cr_assert(texts[i] == NULL || (file != NULL && fputs(texts[i], file) >= 0));
        if (file != NULL)
            (void)fclose(file);
    }
}

static void remove_folder(const char *path)
{
    static const char *const names[] = {"a.yaml", "b.yaml", ".hidden.yaml", "notes.txt"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%s/%s", path, names[i]);
        (void)unlink(name);
    }
    cr_assert_eq(rmdir(path), 0);
}

static int load_folder(struct config **out, const char *a, const char *b, struct error *err)
{
    char path[32];

    make_folder(path, a, b);
    int rc = config_load(out, path, err);
    remove_folder(path);
    return rc;
}

Test(config, merges_the_files_of_a_folder)
{
    struct config *config;
    struct error err = {0};

    cr_assert_eq(load_folder(&config,
                             HEAD "server:\n  listen: ':1'\n  tls: {certFile: a.pem}\n"
                                  "readWriteOncePod: {preemption: Disabled}\n",
                             HEAD "server:\n  metricsListen: ':2'\n  tls: {keyFile: b.pem}\n"
                                  "readWriteOncePod: {claimLock: Annotation}\n",
                             &err),
                 0, "%s", err.message);
    cr_expect(slice_equal(config->server.listen, SLICE(":1")));
    cr_expect(slice_equal(config->server.metrics_listen, SLICE(":2")));
    cr_expect(slice_equal(config->server.tls.cert, SLICE("a.pem")));
    cr_expect(slice_equal(config->server.tls.key, SLICE("b.pem")));
    cr_expect_eq(config->read_write_once_pod.preemption, SWITCH_DISABLED);
    cr_expect_eq(config->read_write_once_pod.claim_lock, CLAIM_LOCK_ANNOTATION);
    config_free(config);
}

Test(config, a_folder_with_an_error_names_the_file)
{
    static const struct {
        const char *a, *b, *message;
    } rows[] = {
        {HEAD "server:\n  listen: ':1'\n", HEAD "server:\n  listen: ':1'\n",
         "/b.yaml:4:3: listen: /tmp/"},
        {HEAD "server: {listen: ':1'}\n", HEAD "server: nothing\n", "/b.yaml:3:1: server: /tmp/"},
        {HEAD "deferFSMount: {entries: []}\n", HEAD "deferFSMount: {entries: []}\n",
         "/a.yaml also sets it, in line 3"},
        {HEAD, "kind: ClaimguardConfiguration\n", "/b.yaml:1:1: apiVersion is missing"},
        {HEAD, "apiVersion: claimguard.io/v1alpha1\nkind: Other\n", "/b.yaml:2:7: kind: expected"},
        {HEAD, HEAD "sever: {}\n", "/b.yaml:3:1: unknown key \"sever\"; did you mean server?"},
        {HEAD "server: {lisen: 1}\n", HEAD, "/a.yaml:3:10: unknown key \"lisen\""},
        {HEAD, HEAD "server:\n  listen: nonsense\n", "/b.yaml:4:11: listen: expected ADDRESS:PORT"},
        {HEAD, "- a\n", "/b.yaml:1:1: expected a mapping"},
        {NULL, NULL, "the folder has 0 files *.yaml: expected 1 to 8"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct config *config;
        struct error err = {0};
        cr_expect_eq(load_folder(&config, rows[i].a, rows[i].b, &err), ERROR_INVALID);
        cr_expect_not_null(strstr(err.message, rows[i].message), "%zu: %s", i, err.message);
    }
}

Test(config, of_a_folder_only_visible_yaml_files_are_read)
{
    static const char *const names[] = {".hidden.yaml", "notes.txt"};
    struct config *config;
    struct error err = {0};
    char path[32];

    make_folder(path, HEAD, NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%s/%s", path, names[i]);
        FILE *file = fopen(name, "w");
        cr_assert(file != NULL && fputs("nonsense: [", file) >= 0);
        (void)fclose(file);
    }
    cr_expect_eq(config_load(&config, path, &err), 0, "%s", err.message);
    config_free(config);
    remove_folder(path);
}
