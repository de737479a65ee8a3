#include "support/reviews.h"

#include <curl/curl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/certificates.h"
#include "support/every_metric.h"
#include "support/process.h"
#include "support/received.h"

enum { DAY_SECONDS = 86400, CONFIG_BYTES = 8192 };

void scenario_certificate(void)
{
    static const struct certificate server = {
        .name = "server", .begins_s = -DAY_SECONDS, .ends_s = 30 * DAY_SECONDS};
    char folder[CERTIFICATES_FOLDER_BYTES], command[128];

    certificates_make(folder, &server, 1);
    (void)snprintf(command, sizeof command, "mv %s/server.* .", folder);
    scenario_run(command);
    certificates_remove(folder);
}

void admission_launch(struct guard *guard, const char *config)
{
    char text[CONFIG_BYTES];

    scenario_certificate();
    (void)snprintf(text, sizeof text,
                   "admission:\n  listen: 127.0.0.1:0\n"
                   "  tls: {certFile: %s/server.crt, keyFile: %s/server.key}\n%s",
                   scenario_folder(), scenario_folder(), config);
    guard_launch(guard, text);
}

void admission_start(struct guard *guard, const char *config)
{
    admission_launch(guard, config);
    guard_await_ready(guard);
}

/* ---- a review ---- */

static const char *body_of(const struct test_review *review, const char *uid)
{
    const char *ns = review->ns == NULL ? "default" : review->ns;
    const char *stored = api_text("pods", ns, review->pod, "metadata.uid");
    const char *pod_uid = review->has_no_uid    ? ""
                          : review->uid != NULL ? review->uid
                          : stored[0] == '\0'   ? "00000000-0000-4000-8000-000000000000"
                                                : stored;
    const char *resource = review->is_old_path ? "\"bindings\"},\"name\":\"\""
                                               : "\"pods\"},\"subResource\":\"binding\",\"name\":";
    const char *name = review->is_old_path ? "" : scenario_printf("\"%s\"", review->pod);
    const char *annotations =
        review->annotation == NULL
            ? ""
            : scenario_printf(",\"annotations\":{\"claimguard.io/defer-fs-mount\":\"%s\"}",
                              review->annotation);

    return scenario_printf(
        "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{"
        "\"uid\":\"%s\",\"kind\":{\"group\":\"\",\"version\":\"v1\",\"kind\":\"Binding\"},"
        "\"resource\":{\"group\":\"\",\"version\":\"v1\",\"resource\":%s%s,"
        "\"namespace\":\"%s\",\"operation\":\"CREATE\",\"userInfo\":{\"username\":\"%s\"},"
        "\"object\":{\"kind\":\"Binding\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\","
        "\"namespace\":\"%s\"%s%s%s%s},\"target\":{\"kind\":\"Node\",\"name\":\"%s\"}},"
        "\"oldObject\":null,\"dryRun\":%s,\"options\":null}}",
        uid, resource, name, ns, review->user == NULL ? "system:kube-scheduler" : review->user,
        review->pod, ns, pod_uid[0] == '\0' ? "" : ",\"uid\":\"", pod_uid,
        pod_uid[0] == '\0' ? "" : "\"", annotations, review->node,
        review->is_dry_run ? "true" : "false");
}

uint16_t admission_port(const struct guard *guard)
{
    char *log = read_file(guard->log);
    const char *line = strstr(log, "admission webhooks are served");
    const char *address = line == NULL ? NULL : strstr(line, "address=127.0.0.1:");
    unsigned port = address == NULL ? 0 : (unsigned)strtoul(strchr(address, ':') + 1, NULL, 10);

    free(log);
    check(port != 0, "a port for admission");
    return (uint16_t)port;
}

/* The HTTP status; 0: there was no answer. The certificate is not checked. */
static long call(CURL *curl, const struct guard *guard, const char *path_and_query,
                 struct received *received)
{
    long status = 0;
    char url[128];

    (void)snprintf(url, sizeof url, "https://127.0.0.1:%u%s", admission_port(guard),
                   path_and_query);
    (void)curl_easy_setopt(curl, CURLOPT_URL, url);
    (void)curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
    (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 30000L);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, received_take);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, received);
    if (curl_easy_perform(curl) == CURLE_OK)
        (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

void *review_connect(const struct guard *guard)
{
    struct received received = {.len = 0};
    CURL *curl = curl_easy_init();

    check(call(curl, guard, "/", &received) != 0, "a connection");
    return curl;
}

/* Ends the connection; NULL: one of its own. */
static long post(void *connection, const struct guard *guard, const char *path, const char *timeout,
                 const char *body, struct received *received)
{
    CURL *curl = connection != NULL ? connection : curl_easy_init();
    char path_and_query[64];

    (void)snprintf(path_and_query, sizeof path_and_query, "%s?timeout=%s", path,
                   timeout == NULL ? "10s" : timeout);
    (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    long status = call(curl, guard, path_and_query, received);
    curl_easy_cleanup(curl);
    return status;
}

static const char *describe(json_t *response)
{
    const char *text = "allowed", *message = "", *reason = "";
    json_t *warning;
    size_t i;
    int code = 0;

    if (!json_is_true(json_object_get(response, "allowed"))) {
        check(json_is_false(json_object_get(response, "allowed")), "allowed: true or false");
        check(json_unpack(response, "{s:{s:i,s:s,s:s}}", "status", "code", &code, "reason", &reason,
                          "message", &message) == 0,
              "a status");
        bool is_conflict = strcmp(reason, "Conflict") == 0;
        text = scenario_printf("denied: %d %s%s%s", code, is_conflict ? "" : reason,
                               is_conflict ? "" : ": ", message);
    }
    json_array_foreach (json_object_get(response, "warnings"), i, warning)
        text = scenario_printf("%s; %s", text, json_string_value(warning));
    return text;
}

static const char *new_uid(void)
{
    static atomic_uint counter;

    return scenario_printf("review-%u", atomic_fetch_add(&counter, 1));
}

/* Sends a review with that UID. */
static const char *send_review(void *connection, const struct guard *guard, const char *path,
                               const char *timeout, const char *uid, const char *body)
{
    const char *version = "", *kind = "", *of = "";
    struct received received = {.len = 0};
    json_t *response = NULL;

    long status = post(connection, guard, path, timeout, body, &received);
    if (status != 200)
        return scenario_printf("failed: %ld %s", status, received.bytes);
    json_t *answer = json_loads(received.bytes, JSON_REJECT_DUPLICATES, NULL);
    check(answer != NULL, "JSON: %s", received.bytes);
    check(json_unpack(answer, "{s:s,s:s,s:o}", "apiVersion", &version, "kind", &kind, "response",
                      &response) == 0 &&
              strcmp(version, "admission.k8s.io/v1") == 0 && strcmp(kind, "AdmissionReview") == 0,
          "an AdmissionReview: %s", received.bytes);
    check(json_unpack(response, "{s:s}", "uid", &of) == 0 && strcmp(of, uid) == 0, "its UID");
    const char *text = describe(response);
    json_decref(answer);
    return text;
}

const char *admit(const struct guard *guard, const struct test_review *review)
{
    const char *uid = new_uid();

    return send_review(review->connection, guard, "/admit/binding", review->timeout, uid,
                       body_of(review, uid));
}

/* ---- a pod that is being created ---- */

static const char *text_of(const struct test_creation *creation)
{
    json_t *pod = json_loads(pod_text(&creation->pod), 0, NULL);
    unsigned hash = 0;

    for (const char *at = creation->pod.name; *at != '\0'; at++)
        hash = hash * 31 + (unsigned char)*at;
    const char *uid = creation->uid != NULL
                          ? creation->uid
                          : scenario_printf("00000000-0000-4000-8000-%012x", hash);
    (void)json_object_set_new(json_object_get(pod, "metadata"), "uid", json_string(uid));
    char *text = json_dumps(pod, JSON_COMPACT);
    const char *out = scenario_printf("%s", text);
    free(text);
    json_decref(pod);
    return out;
}

const char *admit_creation(const struct guard *guard, const struct test_creation *creation)
{
    const char *uid = new_uid();
    const char *body = scenario_printf(
        "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{"
        "\"uid\":\"%s\",\"kind\":{\"group\":\"\",\"version\":\"v1\",\"kind\":\"Pod\"},"
        "\"resource\":{\"group\":\"\",\"version\":\"v1\",\"resource\":\"pods\"},\"name\":\"%s\","
        "\"namespace\":\"default\",\"operation\":\"CREATE\",\"userInfo\":{\"username\":\"me\"},"
        "\"object\":%s,\"oldObject\":null,\"dryRun\":%s,\"options\":null}}",
        uid, creation->pod.name, text_of(creation), creation->is_dry_run ? "true" : "false");

    return send_review(NULL, guard, "/admit/pod", creation->timeout, uid, body);
}

void create(const struct test_creation *creation)
{
    api_put("%s", text_of(creation));
}

bool is_admitted(const struct guard *guard, const char *pod, const char *node)
{
    const char *answer = admit(guard, &(struct test_review){.pod = pod, .node = node});

    return strcmp(answer, "allowed") == 0;
}

bool starts_with(const char *answer, const char *text)
{
    if (strncmp(answer, text, strlen(text)) == 0)
        return true;
    (void)fprintf(stderr, "%s\n", answer);
    return false;
}

static void *run(void *context)
{
    struct review_beside *beside = context;

    beside->answer = admit(beside->guard, &beside->review);
    return NULL;
}

void review_begin(struct review_beside *beside, const struct guard *guard,
                  struct test_review review)
{
    *beside = (struct review_beside){.guard = guard, .review = review};
    check(pthread_create(&beside->thread, NULL, run, beside) == 0, "a thread");
}

const char *review_end(struct review_beside *beside)
{
    (void)pthread_join(beside->thread, NULL);
    return beside->answer;
}
