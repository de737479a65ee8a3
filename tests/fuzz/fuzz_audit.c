/* What `claimguard audit` reads of a repository: comments of manifests, settings, a baseline, and
 * the manifests themselves. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "extender/commands/audit/audit_checks.h"
#include "extender/commands/audit/baseline.h"
#include "extender/commands/audit/manifests.h"
#include "fuzz.h"

enum { ARENA_BYTES_MAX = 64 << 20, PATH_BYTES = 64 };

/* Each entry is one line, and is of a line of the file. */
static void read_comments(const char *path, size_t size, struct arena *arena)
{
    struct comments comments;
    struct error err;

    if (comments_read(&comments, path, arena, &err) < 0)
        return;
    struct slice all = comments_between(&comments, 1, size + 1, arena);
    size_t lines = 0;
    for (size_t i = 0; i < all.len; i++)
        lines += all.ptr[i] == '\n';
    if (all.ptr != NULL && lines != comments.count)
        abort();
}

static void read_settings(const char *path, struct arena *arena)
{
    struct audit_settings settings = {.exclude = SLICE(""), .fail_on = LEVEL_WARNING};
    struct error err;

    if (settings_read(&settings, path, arena, &err) == 0)
        (void)settings_exclude(&settings, "deploy/", "old/web.yaml");
}

/* The audit of the file, and the same text as its baseline: that ignores findings, and adds none.
 */
static void audit(const char *path, struct error *err)
{
    const struct audit_settings settings = {.exclude = SLICE("")};
    struct cluster cluster;
    struct inventory inventory;
    struct audit_report report;
    struct manifests manifests;

    cluster_init(&cluster);
    inventory_init(&inventory, &cluster);
    audit_report_init(&report);
    manifests_init(&manifests, &inventory, &report);
    manifests.settings = &settings;
    if (manifests_read(&manifests, path, err) == 0) {
        manifests_end(&manifests);
        inventory_link(&inventory);
        audit_check(&inventory, &(struct audit_options){.schedulers = SLICE("")}, &report);
        size_t count = report.findings.count;
        (void)baseline_read(&report, path, err);
        if (report.findings.count != count)
            abort();
    }
    audit_report_dispose(&report);
    inventory_dispose(&inventory);
    cluster_dispose(&cluster);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[PATH_BYTES];
    struct error err = {0};
    struct arena arena;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    arena_init(&arena, ARENA_BYTES_MAX);
    read_comments(path, size, &arena);
    read_settings(path, &arena);
    arena_dispose(&arena);
    audit(path, &err);
    (void)close(fd);
    return 0;
}
