#include "extender/load.h"

#include <stdio.h>
#include <unistd.h>

#include "config/base/clock.h"

enum { PROGRESS_MS = 100 };

struct progress {
    uint64_t started_ns;
    long shown_ms; /* when the line was last drawn, since the start; 0: never */
};

static long elapsed_ms(const struct progress *progress)
{
    return (long)((monotonic_ns() - progress->started_ns) / 1000000);
}

static void show_progress(void *context, const struct source_report *report)
{
    struct progress *progress = context;
    long ms = elapsed_ms(progress);
    double mib = (double)report->bytes_read / (1024 * 1024);

    if (ms < progress->shown_ms + PROGRESS_MS)
        return;
    progress->shown_ms = ms;
    (void)fprintf(stderr, "\rloading %s: %.0f MiB", report->path, mib);
    if (report->bytes_total != 0)
        (void)fprintf(stderr, " (%.0f %%)",
                      100 * (double)report->bytes_read / (double)report->bytes_total);
    (void)fprintf(stderr, ", %zu objects, %.0f MiB/s \033[K", report->objects,
                  mib * 1000 / (double)ms);
}

static int keep(void *cluster, const struct object *object, struct error *err)
{
    return cluster_apply(cluster, object, err);
}

int load_snapshot(struct cluster *cluster, const char *path, struct source_report *report,
                  struct error *err)
{
    struct progress progress = {.started_ns = monotonic_ns()};
    struct source source = {.path = path,
                            .sink = keep,
                            .context = cluster,
                            .progress = isatty(STDERR_FILENO) ? show_progress : NULL,
                            .progress_context = &progress};

    int rc = source_read(&source, report, err);
    if (progress.shown_ms != 0)
        (void)fprintf(stderr, "\r\033[K");
    return rc;
}

const char *load_warning(const struct cluster *cluster)
{
    /* pods name claims, and there is not one: more likely left out than missing */
    if (cluster->counts[KIND_CLAIM] == 0 && cluster->claims.count != 0)
        return "the snapshot has no PersistentVolumeClaims: add pvc to kubectl get";
    return NULL;
}
