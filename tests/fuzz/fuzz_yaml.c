/* The YAML readers: snapshots (streamed, made JSON), the configuration and kubeconfig files. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cache/client/kubeconfig.h"
#include "cache/json/json_text.h"
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

/* The text of each object is JSON, and each part of it has a place. */
static int check_text(void *context, const struct source_text *text, const struct object *object,
                      struct error *err)
{
    struct pull json;

    (void)context;
    (void)object;
    (void)err;
    pull_init(&json, text->text);
    if ((!pull_skip(&json) || !pull_finish(&json)) && json.problem != json_text_too_deep)
        abort();
    for (size_t i = 0; i < text->text.len; i += 1 + text->text.len / 16)
        if (source_text_place(text, (struct slice){text->text.ptr + i, 1}).line == 0)
            abort();
    return 1;
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
    (void)source_read(
        &(struct source){
            .path = path, .text_sink = check_text, .wants_places = true, .skips_foreign = true},
        &report, &err);
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
