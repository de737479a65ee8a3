/* The YAML readers: snapshots (streamed, made JSON), the configuration and kubeconfig files. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cache/client/kubeconfig.h"
#include "cache/snapshot/source.h"
#include "config/config.h"
#include "fuzz.h"

static int drop(void *context, const struct object *object, struct error *err)
{
    (void)context;
    (void)object;
    (void)err;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct source_report report;
    struct error err = {0};
    struct config *config;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    (void)source_read(&(struct source){.path = path, .sink = drop}, &report, &err);
    if (config_load(&config, path, &err) == 0) {
        struct buf printed;
        buf_init(&printed, 1 << 22);
        config_print(config, &printed);
        buf_dispose(&printed);
        config_free(config);
    }
    struct kubeconfig *kubeconfig;
    if (kubeconfig_load(&kubeconfig, path, NULL, false, &err) == 0)
        kubeconfig_free(kubeconfig);
    (void)close(fd);
    return 0;
}
