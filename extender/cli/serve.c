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
#include <unistd.h>

#include "cache/client/http_client.h"
#include "config/base/file.h"
#include "config/base/log.h"
#include "extender/cli/commands.h"
#include "extender/cli/serve_certificates.h"
#include "extender/cli/serve_reload.h"
#include "extender/cli/services.h"
#include "extender/commands/inquiry/load.h"
#include "extender/serving/bind/agreement.h"
#include "extender/serving/bind/deferral.h"
#include "extender/serving/http/tls.h"
#include "extender/serving/live/expiry.h"
#include "extender/serving/live/handlers.h"
#include "extender/serving/live/nomination.h"
#include "extender/serving/preemption/preemption.h"
#include "extender/serving/server/server.h"

enum {
    LOOK_SECONDS = 1,
    LARGE_BYTES = 256 * 1024, /* for malloc: large bodies and answers */
    HEAPS_MAX = 4,            /* for malloc */
    FILES_NEEDED = 512, /* the connections of two ports, those to the API server, and some more */
    FILES_ADMISSION = 256, /* the connections of admission.listen */
    OWN_NAMESPACE_BYTES = 256,
};

/* Makes malloc return large blocks to the system as soon as they are freed. By default, glibc keeps
 * freed blocks of up to 32 MiB, in up to eight heaps for each core. */
static void configure_malloc(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    (void)mallopt(M_ARENA_MAX, HEAPS_MAX);
}

/* Raises the limit of open files to what is needed, if the system allows it. */
static void raise_file_limit(const struct config *config)
{
    rlim_t needed = FILES_NEEDED + (config->admission.listen.len != 0 ? FILES_ADMISSION : 0);
    struct rlimit limit = {0};
    char left[24], need[24];

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed)
        return;
    limit.rlim_cur = limit.rlim_max < needed ? limit.rlim_max : needed;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == needed)
        return;
    (void)snprintf(left, sizeof left, "%ju", (uintmax_t)limit.rlim_cur);
    (void)snprintf(need, sizeof need, "%ju", (uintmax_t)needed);
    log_warn("too few files may be open, so connections will be refused", LOG_STR("limit", left),
             LOG_STR("need", need));
}

/* One run of serve. */
struct run {
    const struct arguments *arguments;
    sigset_t signals; /* the signals that it waits for */
    struct reload reload;
};

/* tls: NULL is ignored. */
static void refresh_tls(struct tls *tls)
{
    struct error err = {0};
    bool has_changed = false;

    if (tls != NULL && tls_refresh(tls, &has_changed, &err) < 0)
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
    struct file_mark known = run->reload.read_as;
    struct error refusal = {.message = ""};

    agreement_tick(state);
    for (;;) {
        int signal = sigtimedwait(&run->signals, NULL, &(struct timespec){.tv_sec = LOOK_SECONDS});
        if (signal == SIGTERM || signal == SIGINT) {
            log_info("shutting down", LOG_STR("signal", signal == SIGTERM ? "SIGTERM" : "SIGINT"));
            return;
        }
        struct watched *watched = watchdog_begin(&state->watchdog, "main");
        expiry_tick(state);
        expiry_settle(state);
        defer_support_tick(state);
        agreement_tick(state);
        refresh_tls(state->tls);
        refresh_tls(state->admission_tls);
        struct file_mark seen = file_mark(path);
        bool is_new = signal == SIGHUP || !file_mark_equal(&seen, &known);
        if (is_new)
            refusal = (struct error){.message = ""};
        if (is_new || refusal.message[0] != '\0') /* a TLS file that it names may exist now */
            reload_run(&run->reload, state, &refusal);
        (void)reload_try_next(&run->reload, state);
        known = seen;
        watchdog_end(watched);
    }
}

static int check_arguments(const struct arguments *arguments, const struct config *config,
                           struct error *err)
{
    if (arguments->snapshot != NULL && config->certificates == CERTIFICATES_SECRETS)
        return error_set(err, ERROR_INVALID,
                         "serve: --snapshot: certificates: Secrets needs a cluster");
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

/* The servers; NULL: not started. */
struct servers {
    struct server *verbs, *admission, *pages;
};

static int start_servers(struct servers *servers, struct state *state,
                         const struct arguments *arguments, struct error *err)
{
    const struct config *config = state->config;
    struct slice listen =
        arguments->listen != NULL ? slice_of(arguments->listen) : config->server.listen;
    struct slice metrics_listen = arguments->metrics_listen != NULL
                                      ? slice_of(arguments->metrics_listen)
                                      : config->server.metrics_listen;

    int rc = server_start(&servers->verbs, state, listen, SERVER_VERBS, err);
    if (rc == 0 && state->admission_tls != NULL)
        rc = server_start(&servers->admission, state, config->admission.listen, SERVER_ADMISSION,
                          err);
    return rc < 0 ? rc : server_start(&servers->pages, state, metrics_listen, SERVER_PAGES, err);
}

static void log_addresses(const struct servers *servers)
{
    if (servers->admission != NULL)
        log_info("admission webhooks are served",
                 LOG_STR("address", server_address(servers->admission)));
    log_info("listening", LOG_STR("address", server_address(servers->verbs)),
             LOG_STR("metrics", server_address(servers->pages)));
}

/* Starts the servers, and stops them at the end. */
static int listen_until_end(struct state *state, struct run *run, struct error *err)
{
    struct servers servers = {NULL, NULL, NULL};

    int rc = start_servers(&servers, state, run->arguments, err);
    if (rc == 0) {
        log_addresses(&servers);
        wait_for_end(state, run);
        atomic_store(&state->is_draining, true);
    }
    server_stop(servers.verbs);
    server_stop(servers.admission);
    server_stop(servers.pages);
    return rc;
}

/* ---- a snapshot ---- */

static int load(struct state *state, const char *path, struct error *err)
{
    const char *warnings[LOAD_WARNINGS_MAX];
    struct load_report report;
    char objects[24], skipped[24];

    if (load_snapshot(&state->cluster, path, NULL, &report, err) < 0)
        return err->code;
    for (int kind = 0; kind < KIND_COUNT; kind++)
        if (state->cluster.counts[kind] != 0)
            atomic_store(&state->status[kind].last_event_ms, now_ms());
    (void)snprintf(state->source, sizeof state->source, "snapshot %s", path);
    (void)snprintf(objects, sizeof objects, "%zu", report.source.objects);
    (void)snprintf(skipped, sizeof skipped, "%zu", report.source.skipped);
    log_info("snapshot loaded", LOG_STR("file", path), LOG_STR("objects", objects),
             LOG_STR("skipped", skipped));
    size_t count = load_warnings(&state->cluster, &report, warnings);
    for (size_t i = 0; i < count; i++)
        log_warn(warnings[i], LOG_STR("file", path));
    return 0;
}

static void exit_at_once(int signal)
{
    (void)signal;
    _exit(EXIT_DONE);
}

/* Loads the snapshot into the state's cluster, and logs what it lacks. Until it is read, SIGTERM
 * and SIGINT end the process: a snapshot may be a pipe without an end, and nothing is served yet,
 * so nothing has to be finished. A handler, because the first process of a container ignores
 * signals without one. */
static int load_snapshot_or_exit(struct state *state, const char *path, struct error *err)
{
    struct sigaction action = {.sa_handler = exit_at_once};
    sigset_t ends;

    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGTERM);
    (void)sigaddset(&ends, SIGINT);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    (void)pthread_sigmask(SIG_UNBLOCK, &ends, NULL);
    int rc = load(state, path, err);
    (void)pthread_sigmask(SIG_BLOCK, &ends, NULL);
    return rc;
}

static int serve_snapshot(struct state *state, struct run *run, struct error *err)
{
    if (load_snapshot_or_exit(state, run->arguments->snapshot, err) < 0)
        return err->code;
    return listen_until_end(state, run, err);
}

/* ---- a live cluster ---- */

/* The namespace of claimguard's own objects. Ownership: in text, or the kubeconfig's. */
static struct slice own_namespace(const struct kubeconfig *kubeconfig,
                                  char text[OWN_NAMESPACE_BYTES])
{
    bool is_in_pod = kubeconfig->token_file != NULL &&
                     strcmp(kubeconfig->token_file, SERVICE_ACCOUNT_DIR "/token") == 0;
    struct error err = {0};
    size_t len;

    text[0] = '\0';
    if (kubeconfig->ns == NULL && is_in_pod &&
        file_read(SERVICE_ACCOUNT_DIR "/namespace", text, OWN_NAMESPACE_BYTES - 1, &len, &err) < 0)
        text[0] = '\0';
    return agreed_namespace(slice_of(kubeconfig->ns), slice_of(text));
}

static int serve_live(struct state *state, struct run *run, struct error *err)
{
    const struct arguments *arguments = run->arguments;
    struct kubeconfig *kubeconfig = NULL;
    struct handlers *handlers = NULL;
    struct certificates_thread *certificates = NULL;
    char text[OWN_NAMESPACE_BYTES];

    int rc = kubeconfig_load(&kubeconfig, arguments->kubeconfig, arguments->context, false, err);
    if (rc < 0)
        return rc;
    struct slice ns = own_namespace(kubeconfig, text);
    agreement_start(state, ns);
    rc = http_client_global_init(err);
    if (rc == 0)
        rc = handlers_start(&handlers, state, kubeconfig, err);
    if (rc == 0)
        rc = preemption_start(state, err);
    if (rc == 0)
        rc = nomination_start(state, err);
    if (rc == 0)
        rc = certificates_start(&certificates, state, ns, err);
    if (rc == 0) {
        log_info("watching the cluster", LOG_STR("server", kubeconfig->server),
                 LOG_STR("credentials", kubeconfig->origin));
        rc = listen_until_end(state, run, err);
    }
    requests_interrupt(state->api); /* ends evictions, also if no server was started */
    certificates_stop(certificates);
    preemption_stop(state);
    nomination_stop(state);
    handlers_stop(handlers);
    http_client_global_cleanup();
    kubeconfig_free(kubeconfig);
    return rc;
}

/* ---- the command ---- */

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

int command_serve(const struct arguments *arguments, struct error *err)
{
    struct config *config = NULL;
    struct state state;
    struct run run = {.arguments = arguments};
    struct file_mark read_as = file_mark(arguments->config);

    configure_malloc();
    block_signals(&run.signals);
    if (configure_log(arguments, err) < 0 || config_load(&config, arguments->config, err) < 0)
        return err->code;
    if (check_arguments(arguments, config, err) < 0 || services_init(&state, config, err) < 0) {
        config_free(config);
        return err->code;
    }
    reload_init(&run.reload, arguments, read_as, config);
    int rc = log_start(err); /* from now on, a slow reader of the log delays no call */
    raise_file_limit(config);
    if (rc == 0)
        rc = open_certificates(&state, err);
    if (rc == 0)
        rc = arguments->snapshot != NULL ? serve_snapshot(&state, &run, err)
                                         : serve_live(&state, &run, err);
    close_certificates(&state);
    services_dispose(&state);
    reload_dispose(&run.reload);
    if (rc == 0)
        log_info("stopped", LOG_NONE);
    log_stop();
    return rc;
}
