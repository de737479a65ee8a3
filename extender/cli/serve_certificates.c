#include "extender/cli/serve_certificates.h"

#include <stdio.h>
#include <stdlib.h>

#include "config/base/log.h"
#include "extender/cli/serve_reload.h"
#include "extender/commands/certificates/keeper.h"
#include "extender/serving/http/tls.h"

enum {
    ROUND_MS = 20000,
    SOON_MS = 5000, /* longer than an API server takes to know a new caBundle */
    RETRY_MS = 1000,
};

struct certificates_thread {
    pthread_t thread;
    struct state *state;
    struct keeper keeper;
    struct error problem; /* of the last round */
    bool is_reported;
    bool is_given; /* the ports have what the keeper shows */
    int retry_ms;
    char ns[256];
    pthread_mutex_t lock; /* guards is_ending */
    pthread_cond_t ended;
    bool is_ending;
};

/* ---- the ports ---- */

int open_certificates(struct state *state, struct error *err)
{
    const struct config *config = state->config;

    if (config->certificates == CERTIFICATES_FILES)
        return tls_open(&state->tls, &config->server.tls, "server.tls", err) < 0
                   ? err->code
                   : reload_open_admission(&state->admission_tls, config, err);
    if (tls_open_empty(&state->tls, "Secret claimguard-tls", err) < 0)
        return err->code;
    return config->admission.listen.len == 0
               ? 0
               : tls_open_empty(&state->admission_tls, "Secret claimguard-tls", err);
}

void close_certificates(struct state *state)
{
    tls_close(state->tls);
    tls_close(state->admission_tls);
}

static int give(const struct certificates_thread *thread, struct error *err)
{
    const struct keeper_texts *shown = &thread->keeper.shown;
    struct tls_texts texts = {slice_of(shown->crt), slice_of(shown->key), slice_of(shown->clients)};

    if (tls_give(thread->state->tls, &texts, err) < 0)
        return err->code;
    texts.client_ca = (struct slice){NULL, 0};
    if (thread->state->admission_tls != NULL &&
        tls_give(thread->state->admission_tls, &texts, err) < 0)
        return err->code;
    log_info("certificate reloaded", LOG_NONE);
    return 0;
}

/* ---- the thread ---- */

/* One failure is normal: another replica was faster. */
static void report(struct certificates_thread *thread, const struct error *err)
{
    bool is_again = thread->problem.code != 0;
    bool is_same = strcmp(thread->problem.message, err->message) == 0;

    if (is_again && !(is_same && thread->is_reported))
        log_warn("the certificates cannot be kept", LOG_STR("error", err->message));
    thread->is_reported = is_again;
    thread->problem = *err;
}

/* Returns how long to wait for the next one. */
static int run_round(struct certificates_thread *thread)
{
    struct error err = {0};
    struct api api;

    api_open_on(&api, thread->state->api);
    int rc = keeper_round(&thread->keeper, &api, now_ms() / 1000, &err);
    api_close(&api);
    thread->is_given = thread->is_given && rc != KEEPER_SHOW;
    if (rc >= 0 && !thread->is_given && thread->keeper.shown.crt != NULL) {
        int given = give(thread, &err);
        thread->is_given = given == 0;
        rc = given < 0 ? given : rc;
    }
    if (rc < 0) {
        report(thread, &err);
        int wait_ms = thread->retry_ms;
        thread->retry_ms = wait_ms * 2 < ROUND_MS ? wait_ms * 2 : ROUND_MS;
        return wait_ms;
    }
    thread->problem = (struct error){0};
    thread->retry_ms = RETRY_MS;
    return rc == KEEPER_SOON ? SOON_MS : ROUND_MS;
}

/* False: it is time to end. */
static bool wait_for(struct certificates_thread *thread, int ms)
{
    struct timespec until = monotonic_timespec(monotonic_ns() + (uint64_t)ms * NS_PER_MS);

    SCOPED_LOCK(&thread->lock);
    int rc = 0;
    while (!thread->is_ending && rc == 0)
        rc = pthread_cond_timedwait(&thread->ended, &thread->lock, &until);
    return !thread->is_ending;
}

static void *keep(void *context)
{
    struct certificates_thread *thread = context;

    while (wait_for(thread, run_round(thread)))
        ;
    return NULL;
}

int certificates_start(struct certificates_thread **out, struct state *state, struct slice ns,
                       struct error *err)
{
    struct certificates_thread *thread;

    *out = NULL;
    if (state->config->certificates == CERTIFICATES_FILES)
        return 0;
    thread = calloc(1, sizeof *thread);
    if (thread == NULL)
        return error_no_memory(err);
    thread->state = state;
    thread->retry_ms = RETRY_MS;
    (void)snprintf(thread->ns, sizeof thread->ns, "%.*s", SLICE_ARG(ns));
    thread->keeper.ns = thread->ns;
    (void)pthread_mutex_init(&thread->lock, NULL);
    clock_init_cond(&thread->ended);
    int rc = pthread_create(&thread->thread, NULL, keep, thread);
    if (rc != 0) {
        free(thread);
        return error_system(err, rc, "a thread for certificates");
    }
    *out = thread;
    return 0;
}

void certificates_stop(struct certificates_thread *thread)
{
    if (thread == NULL)
        return;
    (void)pthread_mutex_lock(&thread->lock);
    thread->is_ending = true;
    (void)pthread_cond_signal(&thread->ended);
    (void)pthread_mutex_unlock(&thread->lock);
    (void)pthread_join(thread->thread, NULL);
    keeper_wipe(&thread->keeper);
    (void)pthread_cond_destroy(&thread->ended);
    (void)pthread_mutex_destroy(&thread->lock);
    free(thread);
}
