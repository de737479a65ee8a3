/* certificates: Secrets. Two replicas keep their certificates through years of virtual time, and
 * two real ones serve with them. */
#include <curl/curl.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/base/scope.h"
#include "config/base/text.h"
#include "extender/commands/certificates/keeper.h"
#include "support/scenario.h"
#include "support/trust.h"

enum { REPLICAS = 2, HOUR = 3600, DAY = 24 * HOUR, TRIES = 12, STEP_S = 5 };

/* ThreadSanitizer looks for races. */
#ifdef __SANITIZE_THREAD__
enum { YEARS = 1 };
#else
enum { YEARS = 8 };
#endif

static const char *const names[] = {"claimguard-ca", "claimguard-tls", "claimguard-client"};

/* ---- objects ---- */

static void put_webhooks(const char *first, const char *second)
{
    api_put("{\"kind\":\"ValidatingWebhookConfiguration\",\"metadata\":{\"name\":\"claimguard\"},"
            "\"webhooks\":[{\"name\":\"binding.claimguard.io\",\"clientConfig\":{\"caBundle\":"
            "\"%s\",\"service\":{\"namespace\":\"claimguard\",\"name\":\"claimguard\"}}},"
            "{\"name\":\"pod.claimguard.io\",\"clientConfig\":{\"caBundle\":\"%s\",\"service\":"
            "{\"namespace\":\"claimguard\",\"name\":\"claimguard\"}}}]}",
            first, second);
}

static const char *plain(const char *text64)
{
    SCOPED_ARENA(arena, 1 << 20);
    struct slice text = {NULL, 0};

    check(base64_decode(slice_of(text64), &arena, &text), "base64: %s", text64);
    return scenario_printf("%.*s", SLICE_ARG(text));
}

static const char *secret_text(int which, const char *key)
{
    return api_text("secrets", "claimguard", names[which], scenario_printf("data.%s", key));
}

/* ---- virtual time ---- */

static struct replica {
    struct keeper keeper;
    struct api api;
    int64_t now_s;
    int rc;
    struct error err;
} replicas[REPLICAS];

/* 2015: all authorities of the test end before 2050. */
static time_t shown_time = 1420000000;
static struct kubeconfig *kubeconfig;
static unsigned chance = 20261127; /* of a generator that repeats */

static time_t show_time(time_t *out)
{
    if (out != NULL)
        *out = shown_time;
    return shown_time;
}

static unsigned draw(unsigned below)
{
    chance = chance * 1103515245 + 12345;
    return (chance >> 16) % below;
}

static void *run_round(void *context)
{
    struct replica *replica = context;

    replica->err = (struct error){0};
    replica->rc = keeper_round(&replica->keeper, &replica->api, replica->now_s, &replica->err);
    return NULL;
}

static void open_api(struct replica *replica)
{
    struct error err = {0};

    replica->now_s = shown_time;
    check(api_open(&replica->api, kubeconfig, &err) == 0, "%s", err.message);
}

/* Whether the API server accepts what the replica shows, by each webhook. */
static void check_accepted(const struct replica *replica, const char *what)
{
    for (size_t i = 0; i < 2; i++)
        check(certificate_is_trusted(plain(webhook_bundle(i)), replica->keeper.shown.crt,
                                     GNUTLS_KP_TLS_WWW_SERVER, "claimguard.claimguard.svc"),
              "%s: replica %td, webhook %zu, at %lld", what, replica - replicas, i,
              (long long)shown_time);
}

/* Rounds of one, until one succeeds. */
static void keep(struct replica *replica, const char *what)
{
    for (int i = 0; i < TRIES; i++) {
        open_api(replica);
        (void)run_round(replica);
        api_close(&replica->api);
        if (replica->rc >= 0)
            return;
        shown_time++;
    }
    check(false, "%s: %s", what, replica->err.message);
}

/* Rounds of both at a time, until both have succeeded. */
static void keep_at_once(const char *what)
{
    pthread_t threads[REPLICAS];

    for (int tries = 0;; tries++) {
        check(tries < TRIES, "%s: %s %s", what, replicas[0].err.message, replicas[1].err.message);
        for (int i = 0; i < REPLICAS; i++)
            open_api(&replicas[i]);
        for (int i = 0; i < REPLICAS; i++)
            check(pthread_create(&threads[i], NULL, run_round, &replicas[i]) == 0, "a thread");
        for (int i = 0; i < REPLICAS; i++) {
            (void)pthread_join(threads[i], NULL);
            api_close(&replicas[i].api);
        }
        if (replicas[0].rc >= 0 && replicas[1].rc >= 0)
            return;
        shown_time++;
    }
}

static void remove_secret(int which)
{
    api_remove("secrets", "claimguard", names[which]);
}

/* What happens to a cluster; returns its name. */
static const char *happen(void)
{
    static const char *const events[] = {"nothing",   "a restart", "no authority", "no server",
                                         "no client", "none left", "no caBundle",  "an empty one",
                                         "a 409",     "no answer", "other texts",  "a foreign one"};
    unsigned event = draw(sizeof events / sizeof *events);
    int which = (int)draw(3);

    switch (event) {
    case 1: keeper_wipe(&replicas[draw(REPLICAS)].keeper); break;
    case 2:
    case 3:
    case 4: remove_secret((int)event - 2); break;
    case 5:
        for (int i = 0; i < 3; i++)
            remove_secret(i);
        break;
    case 6: put_webhooks(webhook_bundle(0), ""); break;
    case 7:
        api_put("{\"kind\":\"Secret\",\"metadata\":{\"name\":\"%s\",\"namespace\":"
                "\"claimguard\"}}",
                names[which]);
        break;
    case 8: api_fault(&(struct api_fault){.method = "POST", .times = 1, .status = 409}); break;
    case 9:
        api_fault(&(struct api_fault){
            .body = "tls.crt", .times = 1, .is_applied = true, .ending = API_CLOSE});
        break;
    case 10:
        api_put("{\"kind\":\"Secret\",\"metadata\":{\"name\":\"%s\",\"namespace\":"
                "\"claimguard\"},\"data\":{\"tls.crt\":\"AAAA\",\"tls.key\":\"AAAA\"}}",
                names[which]);
        break;
    case 11: /* a pair that fits, and is another one's */
        if (which != 0)
            api_put("{\"kind\":\"Secret\",\"metadata\":{\"name\":\"%s\",\"namespace\":"
                    "\"claimguard\"},\"data\":{\"tls.crt\":\"%s\",\"tls.key\":\"%s\"}}",
                    names[which], secret_text(0, "tls~crt"), secret_text(0, "tls~key"));
        break;
    default: break;
    }
    return events[event];
}

/* All that they show is accepted, in each moment; then both show the same, and write no more. */
static void settle(const char *what)
{
    bool is_broken = strcmp(what, "no caBundle") == 0; /* until one has seen it */

    for (int i = 0; i < REPLICAS; i++)
        if (!is_broken && replicas[i].keeper.shown.crt != NULL)
            check_accepted(&replicas[i], what);
    for (int round = 0; round < 6; round++) {
        if (draw(4) == 0)
            keep_at_once(what);
        else
            keep(&replicas[draw(REPLICAS)], what);
        shown_time += STEP_S;
        for (int i = 0; i < REPLICAS; i++)
            if (replicas[i].keeper.shown.crt != NULL)
                check_accepted(&replicas[i], what);
    }
    for (int i = 0; i < 2 * REPLICAS; i++) {
        keep(&replicas[i % REPLICAS], what);
        shown_time += STEP_S;
    }
    size_t written = api_count("POST", "") + api_count("PATCH", "");
    for (int i = 0; i < REPLICAS; i++)
        keep(&replicas[i], what);
    check(api_count("POST", "") + api_count("PATCH", "") == written, "%s: nothing is written",
          what);
    check(strcmp(replicas[0].keeper.shown.crt, replicas[1].keeper.shown.crt) == 0,
          "%s: both show the same", what);
}

/* Days later, the certificates are those that a change-over leaves. */
static void check_calm(void)
{
    keep(&replicas[draw(REPLICAS)], "calm");
    for (size_t i = 0; i < 2; i++)
        check(strcmp(webhook_bundle(i), secret_text(0, "tls~crt")) == 0,
              "the caBundle is the authority's, without former ones");
    check(certificate_is_trusted(plain(secret_text(1, "ca~crt")), plain(secret_text(2, "tls~crt")),
                                 GNUTLS_KP_TLS_WWW_CLIENT, NULL),
          "a scheduler's certificate is accepted");
}

static void begin_time(void)
{
    struct error err = {0};

    gnutls_global_set_time_function(show_time);
    guard_user("{token: t}");
    check(kubeconfig_load(&kubeconfig, scenario_printf("%s/kubeconfig", scenario_folder()), NULL,
                          false, &err) == 0,
          "%s", err.message);
    put_webhooks("", "bm90aGluZw==");
    for (int i = 0; i < REPLICAS; i++)
        replicas[i].keeper.ns = "claimguard";
    keep_at_once("the first round");
}

static void end_time(void)
{
    for (int i = 0; i < REPLICAS; i++)
        keeper_wipe(&replicas[i].keeper);
    kubeconfig_free(kubeconfig);
    gnutls_global_set_time_function(time);
}

static void for_years_the_api_server_accepts_what_two_replicas_show(void)
{
    begin_time();
    settle("the first day");
    for (int days = 0; days < YEARS * 365;) {
        int step = 1 + (int)draw(60);
        days += step;
        for (; step > 20; step -= 20) { /* nobody looks for so long, and still nothing ends */
            shown_time += 20 * DAY;
            keep(&replicas[draw(REPLICAS)], "a day");
            keep(&replicas[draw(REPLICAS)], "a day");
        }
        shown_time += (time_t)step * DAY;
        check_calm();
        settle(happen());
        api_heal();
    }
    end_time();
}

static void a_cluster_that_was_off_for_years_starts_again(void)
{
    for (int years = 1; years < 12; years += 5) {
        if (years == 1)
            begin_time();
        const char *key = secret_text(0, "tls~key");
        shown_time += (time_t)years * 365 * DAY;
        for (int i = 0; i < REPLICAS; i++)
            keeper_wipe(&replicas[i].keeper);
        keep_at_once("a start");
        for (int i = 0; i < REPLICAS; i++)
            check_accepted(&replicas[i], "a start");
        check(strcmp(secret_text(0, "tls~key"), key) == 0, "the authority's key stays");
        settle("a start");
    }
    end_time();
}

static void another_ones_certificates_are_left_alone(void)
{
    api_put("{\"kind\":\"Secret\",\"metadata\":{\"name\":\"claimguard-tls\",\"namespace\":"
            "\"claimguard\",\"annotations\":{\"cert-manager.io/certificate-name\":\"x\"}}}");
    const char *before = api_object("secrets", "claimguard", "claimguard-tls");
    struct error err = {0};

    guard_user("{token: t}");
    check(kubeconfig_load(&kubeconfig, scenario_printf("%s/kubeconfig", scenario_folder()), NULL,
                          false, &err) == 0,
          "%s", err.message);
    replicas[0].keeper.ns = "claimguard";
    open_api(&replicas[0]);
    (void)run_round(&replicas[0]);
    api_close(&replicas[0].api);
    check(replicas[0].rc < 0 && strstr(replicas[0].err.message, "cert-manager") != NULL, "%s",
          replicas[0].err.message);
    check(strcmp(api_object("secrets", "claimguard", "claimguard-tls"), before) == 0, "it stays");
    kubeconfig_free(kubeconfig);
}

/* ---- servers ---- */

static const char config[] = "certificates: Secrets\n"
                             "admission: {listen: \"127.0.0.1:0\"}\n"
                             "readWriteOncePod: {claimLock: Annotation}\n";

static unsigned admission_port(const struct guard *guard)
{
    static const char text[] = "admission webhooks are served address=127.0.0.1:";
    char *log = NULL;
    size_t size = 0;
    FILE *file = fopen(guard->log, "r");

    check(file != NULL && getdelim(&log, &size, '\0', file) > 0, "a log");
    (void)fclose(file);
    const char *at = strstr(log, text);
    unsigned port = at == NULL ? 0 : (unsigned)strtoul(at + sizeof text - 1, NULL, 10);
    free(log);
    return port;
}

static struct curl_blob blob(const char *text)
{
    return (struct curl_blob){(void *)(uintptr_t)text, strlen(text), CURL_BLOB_COPY};
}

static size_t drop(char *bytes, size_t size, size_t count, void *context)
{
    (void)bytes;
    (void)context;
    return size * count;
}

/* Whether a client that trusts the bundle gets an answer; crt: of the client, NULL: none. */
static bool answers(unsigned port, const char *bundle, const char *crt, const char *key)
{
    CURL *curl = curl_easy_init();
    struct curl_blob trusted = blob(bundle), own = blob(crt == NULL ? "" : crt),
                     own_key = blob(key == NULL ? "" : key);

    (void)curl_easy_setopt(curl, CURLOPT_URL, scenario_printf("https://127.0.0.1:%u/", port));
    (void)curl_easy_setopt(curl, CURLOPT_CAINFO_BLOB, &trusted);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, drop);
    (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT, 10L);
    if (crt != NULL) {
        (void)curl_easy_setopt(curl, CURLOPT_SSLCERT_BLOB, &own);
        (void)curl_easy_setopt(curl, CURLOPT_SSLKEY_BLOB, &own_key);
    }
    CURLcode rc = curl_easy_perform(curl);
    curl_easy_cleanup(curl);
    return rc == CURLE_OK;
}

static bool is_called(const struct guard *guard)
{
    const char *bundle = webhook_bundle(0);

    return bundle[0] != '\0' && answers(admission_port(guard), plain(bundle), NULL, NULL);
}

static void two_replicas_serve_with_what_they_make_and_restart_with_it(void)
{
    struct guard guards[2];

    put_webhooks("", "");
    for (int i = 0; i < 2; i++)
        guard_launch(&guards[i], config);
    for (int i = 0; i < 2; i++)
        guard_await_ready(&guards[i]);
    const char *bundle = plain(secret_text(0, "tls~crt"));
    for (int i = 0; i < 2; i++) {
        check(is_called(&guards[i]), "the API server reaches it");
        check(!answers(guards[i].port, bundle, NULL, NULL), "nobody calls without a certificate");
        check(answers(guards[i].port, bundle, plain(secret_text(2, "tls~crt")),
                      plain(secret_text(2, "tls~key"))),
              "a scheduler calls");
        check(guard_metric(&guards[i], "claimguard_certificate_not_after_timestamp_seconds") >
                  1.7e9,
              "its end is known");
    }
    check(api_count("POST", "/secrets") >= 3 && api_count("POST", "/secrets") <= 6,
          "only a race writes twice");
    const char *certificate = secret_text(1, "tls~crt");
    for (int i = 0; i < 2; i++)
        guard_stop(&guards[i]);
    guard_start(&guards[0], config);
    check(strcmp(secret_text(1, "tls~crt"), certificate) == 0 && is_called(&guards[0]),
          "it starts with what is there");
    guard_stop(&guards[0]);
}

static void deleted_secrets_are_made_again_without_a_restart(void)
{
    struct guard guard;

    put_webhooks("", "");
    guard_start(&guard, config);
    const char *old = plain(webhook_bundle(0));
    for (int i = 0; i < 3; i++)
        remove_secret(i);
    AWAIT(secret_text(2, "tls~crt")[0] != '\0', "they are there again");
    check(is_called(&guard), "by the old certificate, since the caBundle has both");
    const char *made = plain(secret_text(0, "tls~crt"));
    AWAIT(answers(admission_port(&guard), made, NULL, NULL), "the new one is shown");
    check(is_called(&guard) && !answers(admission_port(&guard), old, NULL, NULL),
          "it is from another authority");
    check(answers(guard.port, made, plain(secret_text(2, "tls~crt")),
                  plain(secret_text(2, "tls~key"))),
          "and so is a scheduler's");
    guard_stop(&guard);
}

static void without_its_secrets_it_is_not_ready_and_says_why(void)
{
    struct guard guard;

    put_webhooks("", "");
    api_fault(&(struct api_fault){.path = "/secrets", .status = 403});
    guard_launch(&guard, config);
    check(guard_logs(&guard, "the certificates cannot be kept"), "the log says why");
    check(guard_page_has(&guard, "/readyz", "[-] certificates not there") &&
              guard_page_has(&guard, "/statusz", "certificate              WAITS"),
          "it is not ready");
    check(!answers(admission_port(&guard), plain("LS0="), NULL, NULL), "and shows nothing");
    check(api_count("PATCH", "/validatingwebhook") == 0, "nor writes a caBundle");
    api_heal();
    guard_await_ready(&guard);
    check(is_called(&guard), "then it serves, without a restart");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(for_years_the_api_server_accepts_what_two_replicas_show),
        SCENARIO(a_cluster_that_was_off_for_years_starts_again),
        SCENARIO(another_ones_certificates_are_left_alone),
        SCENARIO(two_replicas_serve_with_what_they_make_and_restart_with_it),
        SCENARIO(deleted_secrets_are_made_again_without_a_restart),
        SCENARIO(without_its_secrets_it_is_not_ready_and_says_why),
    };

    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
