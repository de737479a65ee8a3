#include "support/every_metric.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "support/reviews.h"

FILE *scenario_open(const char *name)
{
    char path[256];

    (void)snprintf(path, sizeof path, "%s/%s", scenario_folder(), name);
    FILE *file = fopen(path, "we");
    check(file != NULL, "%s can be written", path);
    return file;
}

void scenario_run(const char *command)
{
    char line[512];

    (void)snprintf(line, sizeof line, "cd %s && %s", scenario_folder(), command);
    int status = system(line); /* NOLINT(cert-env33-c): a fixed command */
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: %d", command, status);
}

void scenario_write_rules(void)
{
    scenario_run("sed '1,/^spec:/d; s/^  //' " SOURCE_DIR
                 "/manifests/monitoring/prometheus-rule.yaml >rules.yaml");
}

/* Over TLS; the certificate is not checked. What it answers is seen in what it counts. */
static void call(const struct guard *guard, const char *verb, const char *body)
{
    char url[64];
    CURL *curl = curl_easy_init();

    (void)snprintf(url, sizeof url, "https://127.0.0.1:%u%s", guard->port, verb);
    (void)curl_easy_setopt(curl, CURLOPT_URL, url);
    (void)curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
    (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    CURLcode code = curl_easy_perform(curl);
    check(code == CURLE_OK, "%s: %s", verb, curl_easy_strerror(code));
    (void)putchar('\n');
    curl_easy_cleanup(curl);
}

/* From now on, GETs of pod a, which holds b's claim, are answered so. It is asked about before b is
 * rejected. */
static void get_the_holder(const struct guard *guard, struct api_fault fault, const char *sample)
{
    fault.method = "GET";
    fault.path = "/pods/a";
    api_fault(&fault);
    for (int i = 0; i < 100 && guard_metric(guard, sample) == 0; i++) {
        sleep_ms(i == 0 ? 0 : 100);
        call(guard, "/filter", filter_body("b"));
    }
    check(guard_metric(guard, sample) > 0, "%s", sample);
}

void every_metric_start(struct guard *guard)
{
    char config[512];

    api_fault(&(struct api_fault){.path = "/volumeattributesclasses", .status = 404});
    put_pair("node-1");
    put_claim("logs");
    put_pod(&(struct test_pod){
        .name = "vm", .claim = "logs", .more_spec = ",\"runtimeClassName\":\"microvm\""});
    (void)snprintf(config, sizeof config,
                   "server:\n  tls: {certFile: %s/server.crt, keyFile: %s/server.key}\n"
                   "deferFSMount:\n  apply: Annotation\n  entries:\n"
                   "  - {storageClass: fast-storage, runtimeClass: microvm}\n",
                   scenario_folder(), scenario_folder());
    admission_start(guard, config);
    call(guard, "/bind", bind_body("vm", "node-1"));
    AWAIT(guard_metric(guard, "claimguard_deferred_mounts_total{") == 1, "a deferral");
    check(!is_admitted(guard, "b", "node-1"), "its claim is a's");
    get_the_holder(guard, (struct api_fault){.status = 503}, POD_GETS("503"));
    get_the_holder(guard, (struct api_fault){.ending = API_CLOSE}, POD_GETS("error"));
    get_the_holder(guard, (struct api_fault){.ending = API_ANSWER}, POD_GETS("200"));
}

const char *page_next_line(const char *line)
{
    line += strcspn(line, "\n");
    return line[0] == '\0' || line[1] == '\0' ? NULL : line + 1;
}

int page_line_len(const char *line)
{
    return (int)strcspn(line, "\n");
}
