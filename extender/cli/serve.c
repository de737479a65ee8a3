/*
 * claimguard serve: starts the servers, then waits for signals, and checks every second whether the
 * configuration file or a certificate has changed.
 */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "cache/client/http_client.h"
#include "config/base/file_mark.h"
#include "config/base/log.h"
#include "extender/bind/defer_support.h"
#include "extender/cli/commands.h"
#include "extender/cli/serve_load.h"
#include "extender/cli/services.h"
#include "extender/http/tls.h"
#include "extender/live/expiry.h"
#include "extender/live/handlers.h"
#include "extender/live/nomination.h"
#include "extender/live/requeue.h"
#include "extender/preemption/preemption.h"
#include "extender/server/server.h"

enum {
    LOOK_SECONDS = 1,
    LARGE_BYTES = 256 * 1024, /* for malloc: large bodies and answers */
    HEAPS_MAX = 4,            /* for malloc */
    FILES_NEEDED = 512, /* the connections of both ports, those to the API server, and some more */
};

/* Makes malloc return large blocks to the system as soon as they are freed. By default, glibc keeps
 * freed blocks of up to 32 MiB, in up to eight heaps for each core. */
static void configure_malloc(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    (void)mallopt(M_ARENA_MAX, HEAPS_MAX);
}

/* Raises the limit of open files to FILES_NEEDED, if the system allows it. */
static void raise_file_limit(void)
{
    struct rlimit limit = {0};
    char left[24], need[24];

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= FILES_NEEDED)
        return;
    limit.rlim_cur = limit.rlim_max < FILES_NEEDED ? limit.rlim_max : FILES_NEEDED;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == FILES_NEEDED)
        return;
    (void)snprintf(left, sizeof left, "%ju", (uintmax_t)limit.rlim_cur);
    (void)snprintf(need, sizeof need, "%d", FILES_NEEDED);
    log_warn("too few files may be open, so connections will be refused", LOG_STR("limit", left),
             LOG_STR("need", need));
}

/* One run of serve. */
struct run {
    const struct arguments *arguments;
    sigset_t signals;          /* the signals that it waits for */
    struct file_mark read_as;  /* the configuration file just before it was read */
    struct buf addresses, tls; /* of the configuration at the start: put_addresses, put_tls */
    struct config *next;       /* was read, and waits for what it needs; NULL: none */
};

enum { STARTED_WITH_BYTES_MAX = 64 * 1024 };

/* Writes the values of a configuration that take effect only at a start, to compare them. */
typedef void put_function(struct buf *out, const struct arguments *arguments,
                          const struct config *config);

static void put_addresses(struct buf *out, const struct arguments *arguments,
                          const struct config *config)
{
    const char *listen = arguments->listen, *metrics_listen = arguments->metrics_listen;

    buf_put(out, listen != NULL ? slice_of(listen) : config->server.listen);
    buf_put(out, SLICE("\n"));
    buf_put(out, metrics_listen != NULL ? slice_of(metrics_listen) : config->server.metrics_listen);
}

static void put_tls(struct buf *out, const struct arguments *arguments, const struct config *config)
{
    (void)arguments;
    buf_put(out, config->server.cert_file);
    buf_put(out, SLICE("\n"));
    buf_put(out, config->server.key_file);
    buf_put(out, SLICE("\n"));
    buf_put(out, config->server.client_ca_file);
}

/* Whether the values differ from those at the start. */
static bool is_other(const struct run *run, const struct config *config, put_function *put,
                     const struct buf *started_with)
{
    struct buf now;

    buf_init(&now, STARTED_WITH_BYTES_MAX);
    put(&now, run->arguments, config);
    bool differs = !slice_equal(buf_slice(&now), buf_slice(started_with));
    buf_dispose(&now);
    return differs;
}

static bool has_other_addresses(const struct run *run, const struct config *config)
{
    return is_other(run, config, put_addresses, &run->addresses);
}

static bool has_other_tls(const struct run *run, const struct config *config)
{
    return is_other(run, config, put_tls, &run->tls);
}

/* Reads the configuration file. Fails if claimguard could not start with it, so this also reads a
 * changed server.tls. */
static int load_config(struct config **out, const struct run *run, struct error *err)
{
    struct tls *tls = NULL;

    if (config_load(out, run->arguments->config, err) < 0)
        return err->code;
    if (!has_other_tls(run, *out))
        return 0;
    int rc = tls_open(&tls, *out, err);
    tls_close(tls);
    if (rc < 0)
        config_free(*out);
    return rc;
}

/* Puts the configuration that was read in force, once what it needs is synced. */
static bool try_next(struct state *state, struct run *run)
{
    if (run->next == NULL || !state_reload(state, run->next))
        return false;
    run->next = NULL;
    requeue_all(state->requeue, state->api);
    log_info("configuration reloaded", LOG_STR("file", run->arguments->config));
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

/* Reads the configuration file, and puts it in force if it is good. Otherwise the old configuration
 * stays, and the error is logged, but not twice in a row. *refusal: the error of the last reload,
 * or an empty message; it becomes that of this reload. */
static void reload(struct state *state, struct run *run, struct error *refusal)
{
    const char *path = run->arguments->config;
    struct config *config;
    struct error err = {0};

    if (path == NULL)
        return;
    int rc = load_config(&config, run, &err);
    metrics_note_config(&state->metrics, rc == 0);
    bool is_news = strcmp(err.message, refusal->message) != 0;
    *refusal = err;
    if (rc < 0) {
        if (is_news)
            log_error("the configuration is not reloaded; the old one stays in force",
                      LOG_STR("error", err.message));
        return;
    }
    if (has_other_addresses(run, config))
        log_warn("a new server.listen or server.metricsListen takes effect only after a restart",
                 LOG_STR("file", path));
    if (has_other_tls(run, config))
        log_warn("a new server.tls takes effect only after a restart", LOG_STR("file", path));
    config_free(run->next);
    run->next = config;
    if (!try_next(state, run))
        log_waiting(state);
}

static void refresh_tls(struct state *state)
{
    struct error err = {0};
    bool has_changed = false;

    if (state->tls != NULL && tls_refresh(state->tls, &has_changed, &err) < 0)
        log_error("the certificate is not reloaded; the old one stays in force",
                  LOG_STR("error", err.message));
    else if (has_changed)
        log_info("certificate reloaded", LOG_NONE);
}

/* Waits for SIGTERM or SIGINT. Once a second, and at SIGHUP, it does the work that needs no thread
 * of its own. */
static void wait_for_end(struct state *state, struct run *run)
{
    const char *path = run->arguments->config;
    struct file_mark known = run->read_as;
    struct error refusal = {.message = ""};

    for (;;) {
        int signal = sigtimedwait(&run->signals, NULL, &(struct timespec){.tv_sec = LOOK_SECONDS});
        if (signal == SIGTERM || signal == SIGINT) {
            log_info("shutting down", LOG_STR("signal", signal == SIGTERM ? "SIGTERM" : "SIGINT"));
            return;
        }
        struct watched *watched = watchdog_begin(&state->watchdog, "main");
        expiry_tick(state);
        nomination_tick(state);
        defer_support_tick(state);
        refresh_tls(state);
        struct file_mark seen = file_mark(path);
        bool is_new = signal == SIGHUP || !file_mark_equal(&seen, &known);
        if (is_new)
            refusal = (struct error){.message = ""};
        if (is_new || refusal.message[0] != '\0') /* a TLS file that it names may exist now */
            reload(state, run, &refusal);
        (void)try_next(state, run);
        known = seen;
        watchdog_end(watched);
    }
}

static int check_arguments(const struct arguments *arguments, struct error *err)
{
    if (arguments->kubeconfig != NULL && arguments->snapshot != NULL)
        return error_set(err, ERROR_INVALID,
                         "serve: --kubeconfig and --snapshot: give only one of them");
    if (arguments->context != NULL && arguments->snapshot != NULL)
        return error_set(err, ERROR_INVALID,
                         "serve: --context and --snapshot: a snapshot has no contexts");
    return 0;
}

static int configure_log(const struct arguments *arguments, struct error *err)
{
    enum log_level level = LOG_INFO;
    enum log_format format = LOG_TEXT;

    if (arguments->log_level != NULL && !log_level_parse(&level, arguments->log_level))
        return error_set(err, ERROR_INVALID, "--log-level %s: expected debug, info, warn or error",
                         arguments->log_level);
    if (arguments->log_format != NULL && !log_format_parse(&format, arguments->log_format))
        return error_set(err, ERROR_INVALID, "--log-format %s: expected text or json",
                         arguments->log_format);
    log_configure(level, format);
    return 0;
}

/* Starts both servers, and stops them at the end. */
static int listen_until_end(struct state *state, struct run *run, struct error *err)
{
    const struct arguments *arguments = run->arguments;
    const struct config *config = state->config;
    struct slice listen =
        arguments->listen != NULL ? slice_of(arguments->listen) : config->server.listen;
    struct slice metrics_listen = arguments->metrics_listen != NULL
                                      ? slice_of(arguments->metrics_listen)
                                      : config->server.metrics_listen;
    struct server *verbs = NULL, *pages = NULL;

    int rc = server_start(&verbs, state, listen, SERVER_VERBS, err);
    if (rc == 0)
        rc = server_start(&pages, state, metrics_listen, SERVER_PAGES, err);
    if (rc == 0) {
        log_info("listening", LOG_STR("address", server_address(verbs)),
                 LOG_STR("metrics", server_address(pages)));
        wait_for_end(state, run);
        atomic_store(&state->is_draining, true);
    }
    server_stop(verbs);
    server_stop(pages);
    return rc;
}

static int serve_snapshot(struct state *state, struct run *run, struct error *err)
{
    if (serve_load(state, run->arguments->snapshot, err) < 0)
        return err->code;
    return listen_until_end(state, run, err);
}

static int serve_live(struct state *state, struct run *run, struct error *err)
{
    const struct arguments *arguments = run->arguments;
    struct kubeconfig *kubeconfig = NULL;
    struct handlers *handlers = NULL;

    int rc = kubeconfig_load(&kubeconfig, arguments->kubeconfig, arguments->context, false, err);
    if (rc < 0)
        return rc;
    rc = http_client_global_init(err);
    if (rc == 0)
        rc = handlers_start(&handlers, state, kubeconfig, err);
    if (rc == 0)
        rc = preemption_start(state, err);
    if (rc == 0) {
        log_info("watching the cluster", LOG_STR("server", kubeconfig->server),
                 LOG_STR("credentials", kubeconfig->origin));
        rc = listen_until_end(state, run, err);
    }
    requests_interrupt(state->api); /* ends evictions, also if no server was started */
    preemption_stop(state);
    handlers_stop(handlers);
    http_client_global_cleanup();
    kubeconfig_free(kubeconfig);
    return rc;
}

/* Called before any other thread starts, so that all threads block these signals, and only the main
 * thread gets them (sigtimedwait). */
static void block_signals(sigset_t *signals)
{
    (void)sigemptyset(signals);
    (void)sigaddset(signals, SIGTERM);
    (void)sigaddset(signals, SIGINT);
    (void)sigaddset(signals, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, signals, NULL);
    (void)signal(SIGPIPE, SIG_IGN); /* if a peer closes a connection, the write fails */
}

int command_serve(const struct arguments *arguments)
{
    struct config *config = NULL;
    struct state state;
    struct run run = {.arguments = arguments, .read_as = file_mark(arguments->config)};
    struct error err = {0};

    configure_malloc();
    block_signals(&run.signals);
    if (configure_log(arguments, &err) < 0 || config_load(&config, arguments->config, &err) < 0)
        return command_fail(&err);
    if (check_arguments(arguments, &err) < 0 || services_init(&state, config, &err) < 0) {
        config_free(config);
        return command_fail(&err);
    }
    buf_init(&run.addresses, STARTED_WITH_BYTES_MAX);
    put_addresses(&run.addresses, arguments, config);
    buf_init(&run.tls, STARTED_WITH_BYTES_MAX);
    put_tls(&run.tls, arguments, config);
    int rc = log_start(&err); /* from now on, a slow reader of the log delays no call */
    raise_file_limit();
    if (rc == 0)
        rc = tls_open(&state.tls, config, &err);
    if (rc == 0)
        rc = arguments->snapshot != NULL ? serve_snapshot(&state, &run, &err)
                                         : serve_live(&state, &run, &err);
    tls_close(state.tls);
    services_dispose(&state);
    config_free(run.next);
    buf_dispose(&run.addresses);
    buf_dispose(&run.tls);
    if (rc == 0)
        log_info("stopped", LOG_NONE);
    log_stop();
    return rc < 0 ? command_fail(&err) : EXIT_DONE;
}
