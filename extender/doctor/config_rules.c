#include "extender/doctor/config_rules.h"

#include "config/yaml_node.h"
#include "extender/doctor/go_text.h"

#define TLS_SECTION "tls: {certFile: ..., keyFile: ..., clientCAFile: ...}"
/* A file that was not named may have the section, and then a second one ends the start. */
#define ALL_FILES " (if another file has it: --config with a folder of both)"

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

struct location config_place(const struct config_file *file, const char *const *keys)
{
    const struct yaml_node *found = file->root;

    for (; *keys != NULL; keys++) {
        const struct yaml_node *child = scheduler_value(found, *keys);
        if (child == NULL)
            break;
        found = child;
    }
    return finding_place(found);
}

/* ---- addresses ---- */

static void check_port(const struct config_file *file, struct findings *findings)
{
    const struct config *config = file->config;
    struct slice host;
    uint16_t port;
    bool has_tls = config->server.tls.cert.len != 0;

    if (!config_split_address(config->server.listen, &host, &port) ||
        (host.len != 0 && go_is_loopback(host)) ||
        (has_tls && config->server.tls.client_ca.len != 0))
        return;
    (void)finding_add(findings, "CG602",
                      has_tls ? config_place(file, KEYS("server", "tls"))
                              : config_place(file, KEYS("server", "listen")),
                      has_tls ? "clientCAFile: /etc/claimguard-tls/ca.crt" : TLS_SECTION ALL_FILES,
                      "server.listen %.*s is open to other hosts, and %s",
                      SLICE_ARG(config->server.listen),
                      has_tls ? "clients need no certificate" : "without TLS");
}

/* ---- one scheduler ---- */

static void check_tls(const struct config_file *file, const struct scheduler_extender *own,
                      const struct url *url, struct findings *findings)
{
    const struct tls_files *tls = &file->config->server.tls;
    bool is_https = slice_equal(url->scheme, SLICE("https"));

    if (is_https != (tls->cert.len != 0))
        (void)finding_add(
            findings, "CG603",
            is_https ? config_place(file, KEYS("server")) : finding_place(own->url_prefix.at),
            is_https ? "server: {" TLS_SECTION "}" ALL_FILES : "urlPrefix: https://...",
            "urlPrefix %.*s of %s: %s has %s server.tls", SLICE_ARG(own->url_prefix.text),
            own->at->path, file->path, is_https ? "no" : "a");
    else if (is_https && tls->client_ca.len != 0 && !own->cert.is_set && !own->key.is_set)
        (void)finding_add(findings, "CG604", finding_place(own->url_prefix.at),
                          "tlsConfig: {certFile: /etc/kubernetes/claimguard/client.crt, "
                          "keyFile: /etc/kubernetes/claimguard/client.key}",
                          "tlsConfig has no certificate, and %s has server.tls.clientCAFile",
                          file->path);
}

static void check_address(const struct config_file *file, const struct scheduler_extender *own,
                          const struct url *url, struct findings *findings)
{
    struct slice host;
    uint16_t port;
    bool is_local = go_is_loopback(url->host);

    if (!config_split_address(file->config->server.listen, &host, &port))
        return;
    if (!is_local && host.len != 0 && go_is_loopback(host))
        (void)finding_add(findings, "CG605", config_place(file, KEYS("server", "listen")),
                          "urlPrefix: http://127.0.0.1:8888 for a scheduler on the same host; for "
                          "others, server: {listen: \":8888\"} with server.tls",
                          "server.listen is %.*s, and %s calls %.*s",
                          SLICE_ARG(file->config->server.listen), own->at->path,
                          SLICE_ARG(own->url_prefix.text));
    else if (is_local && port != 0 && url->port != port)
        (void)finding_add(findings, "CG605", finding_place(own->url_prefix.at), "",
                          "urlPrefix has port %u, and server.listen in %s is %.*s", url->port,
                          file->path, SLICE_ARG(file->config->server.listen));
}

static void check_scheduler(const struct config_file *file, const struct scheduler_file *scheduler,
                            struct findings *findings)
{
    const struct scheduler_extender *own = scheduler->own;
    struct url url;

    if (own == NULL || !go_url(&url, own->url_prefix.text, findings->arena))
        return; /* another rule says so */
    check_tls(file, own, &url, findings);
    check_address(file, own, &url, findings);
}

/* ---- all schedulers ---- */

static void check_lock(const struct config_file *file, const struct scheduler_file *schedulers,
                       size_t count, struct findings *findings)
{
    const struct scheduler_extender *first = NULL;
    struct url a, b;

    for (size_t i = 0; i < count; i++) {
        const struct scheduler_extender *own = schedulers[i].own;
        if (own == NULL || !go_url(&b, own->url_prefix.text, findings->arena))
            continue;
        if (first == NULL) {
            first = own;
            a = b;
        } else if (!slice_equal(a.host, b.host) || a.port != b.port) {
            (void)finding_add(
                findings, "CG606", config_place(file, KEYS("readWriteOncePod", "claimLock")),
                "readWriteOncePod: {claimLock: Annotation}", "%s calls %.*s, and %s calls %.*s",
                first->at->path, SLICE_ARG(first->url_prefix.text), own->at->path,
                SLICE_ARG(own->url_prefix.text));
            return;
        }
    }
}

void config_rules_check(const struct config_file *file, const struct scheduler_file *schedulers,
                        size_t scheduler_count, struct findings *findings)
{
    check_port(file, findings);
    for (size_t i = 0; i < scheduler_count; i++)
        check_scheduler(file, &schedulers[i], findings);
    if (file->config->read_write_once_pod.claim_lock == CLAIM_LOCK_LOCAL)
        check_lock(file, schedulers, scheduler_count, findings);
}
