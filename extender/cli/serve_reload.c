#include "extender/cli/serve_reload.h"

#include <stdio.h>
#include <string.h>

#include "config/base/log.h"
#include "extender/serving/http/tls.h"
#include "extender/serving/live/requeue.h"

enum { FIXED_BYTES_MAX = 64 * 1024 };

static const char *const fixed_warnings[FIXED_COUNT] = {
    [FIXED_ADDRESSES] =
        "a new server.listen or server.metricsListen takes effect only after a restart",
    [FIXED_TLS] = "a new server.tls takes effect only after a restart",
    [FIXED_ADMISSION] = "a new admission.listen or admission.tls takes effect only after a restart",
};

static void put_lines(struct buf *out, struct slice a, struct slice b)
{
    buf_printf(out, "%.*s\n%.*s\n", SLICE_ARG(a), SLICE_ARG(b));
}

static void put_files(struct buf *out, const struct tls_files *files)
{
    put_lines(out, files->cert, files->key);
    buf_put(out, files->client_ca);
}

/* Writes values of a configuration that take effect only at a start, to compare them. */
static void put_fixed(struct buf *out, enum fixed_value value, const struct arguments *arguments,
                      const struct config *config)
{
    const char *listen = arguments->listen, *metrics_listen = arguments->metrics_listen;

    buf_init(out, FIXED_BYTES_MAX);
    if (value == FIXED_ADDRESSES)
        put_lines(out, listen != NULL ? slice_of(listen) : config->server.listen,
                  metrics_listen != NULL ? slice_of(metrics_listen)
                                         : config->server.metrics_listen);
    else if (value == FIXED_TLS) {
        buf_printf(out, "%d\n", config->certificates);
        put_files(out, &config->server.tls);
    } else if (config->admission.listen.len != 0) {
        put_files(out, &config->admission.tls);
        buf_put(out, config->admission.listen);
    }
}

/* Whether the value differs from that at the start. */
static bool has_other(const struct reload *reload, const struct config *config,
                      enum fixed_value value)
{
    struct buf now;

    put_fixed(&now, value, reload->arguments, config);
    bool differs = !slice_equal(buf_slice(&now), buf_slice(&reload->started_with[value]));
    buf_dispose(&now);
    return differs;
}

int reload_open_admission(struct tls **out, const struct config *config, struct error *err)
{
    *out = NULL;
    return config->admission.listen.len == 0
               ? 0
               : tls_open(out, &config->admission.tls, "admission.tls", err);
}

/* Reads the TLS files that the configuration names, if they are others than at the start. */
static int check_files(const struct reload *reload, const struct config *config, struct error *err)
{
    struct tls *tls = NULL, *admission = NULL;
    int rc = 0;

    if (has_other(reload, config, FIXED_TLS))
        rc = tls_open(&tls, &config->server.tls, "server.tls", err);
    if (rc == 0 && has_other(reload, config, FIXED_ADMISSION))
        rc = reload_open_admission(&admission, config, err);
    tls_close(tls);
    tls_close(admission);
    return rc;
}

/* Reads the configuration file. Fails if claimguard could not start with it, so this also reads
 * files of TLS that it did not name before. */
static int load_config(struct config **out, const struct reload *reload, struct error *err)
{
    if (config_load(out, reload->arguments->config, err) < 0)
        return err->code;
    int rc = check_files(reload, *out, err);
    if (rc < 0)
        config_free(*out);
    return rc;
}

bool reload_try_next(struct reload *reload, struct state *state)
{
    if (reload->next == NULL || !state_reload(state, reload->next))
        return false;
    reload->next = NULL;
    requeue_all(state->requeue, state->api);
    if (state->api != NULL)
        requeue_wake_all(state);
    log_info("configuration reloaded", LOG_STR("file", reload->arguments->config));
    return true;
}

/* Logs what the configuration that was read waits for. */
static void log_waiting(const struct state *state)
{
    char text[256];
    size_t len = 0;

    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        if (state_watches(state, (enum kind)kind) && !atomic_load(&state->status[kind].is_synced) &&
            len < sizeof text)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", len == 0 ? "" : ",",
                                    kind_resource((enum kind)kind));
    if (len != 0)
        log_info("the new configuration takes effect once what it needs is synced",
                 LOG_STR("resources", text));
}

void reload_run(struct reload *reload, struct state *state, struct error *refusal)
{
    const char *path = reload->arguments->config;
    struct config *config;
    struct error err = {0};

    if (path == NULL)
        return;
    int rc = load_config(&config, reload, &err);
    metrics_note_config(&state->metrics, rc == 0);
    bool is_news = strcmp(err.message, refusal->message) != 0;
    *refusal = err;
    if (rc < 0) {
        if (is_news)
            log_error("the configuration is not reloaded; the old one stays in force",
                      LOG_STR("error", err.message));
        return;
    }
    for (int value = 0; value < FIXED_COUNT; value++)
        if (has_other(reload, config, (enum fixed_value)value))
            log_warn(fixed_warnings[value], LOG_STR("file", path));
    config_free(reload->next);
    reload->next = config;
    if (!reload_try_next(reload, state))
        log_waiting(state);
}

void reload_init(struct reload *reload, const struct arguments *arguments, struct file_mark read_as,
                 const struct config *config)
{
    *reload = (struct reload){.arguments = arguments, .read_as = read_as};
    for (int value = 0; value < FIXED_COUNT; value++)
        put_fixed(&reload->started_with[value], (enum fixed_value)value, arguments, config);
}

void reload_dispose(struct reload *reload)
{
    config_free(reload->next);
    for (int value = 0; value < FIXED_COUNT; value++)
        buf_dispose(&reload->started_with[value]);
}
