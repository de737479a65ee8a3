#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cache/snapshot/source.h"

const struct config plain_config;

static int keep(void *cluster, const struct object *object, struct error *err)
{
    return cluster_apply(cluster, object, err);
}

static int load(struct cluster *cluster, const char *path, struct error *err)
{
    struct source_report report;
    return source_read(&(struct source){.path = path, .sink = keep, .context = cluster}, &report,
                       err);
}

static void must(int rc, const struct error *err)
{
    if (rc < 0) {
        (void)fprintf(stderr, "%s\n", err->message);
        abort();
    }
}

void load_file(struct cluster *cluster, const char *path)
{
    struct error err = {0};
    must(load(cluster, path, &err), &err);
}

int try_load_text(struct cluster *cluster, const char *text, struct error *err)
{
    char path[] = "/tmp/claimguard-test-XXXXXX";
    int fd = mkstemp(path);

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        abort();
    (void)close(fd);
    int rc = load(cluster, path, err);
    (void)unlink(path);
    return rc;
}

void load_text(struct cluster *cluster, const char *text)
{
    struct error err = {0};
    must(try_load_text(cluster, text, &err), &err);
}

struct visit {
    void (*evaluate)(void *context, const struct pod_object *pod);
    void *context;
};

static int visit_pod(void *context, const struct object *object, struct error *err)
{
    struct visit *visit = context;

    (void)err;
    if (object->kind == KIND_POD)
        visit->evaluate(visit->context, &object->pod);
    return 0;
}

void with_pod(const char *path, void (*evaluate)(void *context, const struct pod_object *pod),
              void *context)
{
    struct visit visit = {evaluate, context};
    struct source_report report;
    struct error err = {0};

    must(source_read(&(struct source){.path = path, .sink = visit_pod, .context = &visit}, &report,
                     &err),
         &err);
}
