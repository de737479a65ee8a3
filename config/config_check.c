/* Checks that the tables of config_options.c cannot express: addresses, and values that depend on
 * each other. */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "config/base/quantity.h"
#include "config/config_internal.h"
#include "config/yaml_node.h"

bool config_split_address(struct slice text, struct slice *host, uint16_t *port)
{
    size_t colon = text.len;
    int64_t number;

    while (colon > 0 && text.ptr[colon - 1] != ':')
        colon--;
    if (colon == 0 || text.len - colon > 5)
        return false;
    struct slice digits = {text.ptr + colon, text.len - colon};
    *host = (struct slice){text.ptr, colon - 1};
    if (!quantity_bytes(&number, digits) || number > UINT16_MAX || digits.ptr[digits.len - 1] > '9')
        return false;
    if (host->len >= 2 && host->ptr[0] == '[' && host->ptr[host->len - 1] == ']')
        *host = (struct slice){host->ptr + 1, host->len - 2};
    else if (host->len != 0 && memchr(host->ptr, ':', host->len) != NULL)
        return false;
    *port = (uint16_t)number;
    return true;
}

/* Whether the host is an IP address, or empty, which means all addresses. */
static bool is_host(struct slice host)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST};
    struct addrinfo *found = NULL;
    char text[64];

    if (host.len == 0 || host.len >= sizeof text)
        return host.len == 0;
    (void)snprintf(text, sizeof text, "%.*s", SLICE_ARG(host));
    bool is_numeric = getaddrinfo(text, NULL, &hints, &found) == 0;
    if (found != NULL)
        freeaddrinfo(found);
    return is_numeric;
}

/* Whether two servers cannot listen on both addresses at once. */
static bool do_collide(struct slice a, struct slice b)
{
    static const struct slice all[] = {{"", 0}, {"0.0.0.0", 7}, {"::", 2}};
    struct slice a_host, b_host;
    uint16_t a_port, b_port;

    if (!config_split_address(a, &a_host, &a_port) || !config_split_address(b, &b_host, &b_port) ||
        a_port != b_port || a_port == 0)
        return false;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (slice_equal(a_host, all[i]) || slice_equal(b_host, all[i]))
            return true;
    return slice_equal(a_host, b_host);
}

/* The tree that is being checked. */
struct checked {
    const struct yaml_node *root;
    struct error *err;
};

/* The node whose place an error message names: the key in the section; without it, the section;
 * without that, the root. */
static const struct yaml_node *locate(const struct checked *checked, const char *section,
                                      const char *key)
{
    const struct yaml_node *found = yaml_value(checked->root, section);
    const struct yaml_node *value = yaml_value(found, key);

    return value != NULL ? value : found != NULL ? found : checked->root;
}

static int check_type(const struct yaml_node *root, const char *key, const char *expected,
                      struct error *err)
{
    const struct yaml_node *node = yaml_value(root, key);

    if (node == NULL)
        return yaml_fail(err, root, "%s is missing (%s)", key, expected);
    if (!slice_equal(node->text, slice_of(expected)))
        return yaml_fail(err, node, "%s: expected %s", key, expected);
    return 0;
}

static int check_address(const struct checked *checked, const char *section, const char *key,
                         struct slice address)
{
    const struct yaml_node *node = locate(checked, section, key);
    struct slice host;
    uint16_t port;

    if (!config_split_address(address, &host, &port))
        return yaml_fail(checked->err, node,
                         "%s: expected ADDRESS:PORT, such as 127.0.0.1:8888 or [::1]:8888", key);
    if (!is_host(host))
        return yaml_fail(checked->err, node,
                         "%s: %.*s is not an IP address (only :PORT: all IPv4 addresses; "
                         "[::]:PORT: all IPv6 ones)",
                         key, SLICE_ARG(host));
    return 0;
}

static int check_tls(const struct checked *checked, const char *section,
                     const struct config *config, const struct tls_files *files)
{
    const struct yaml_node *tls = locate(checked, section, "tls");
    bool has_tls = slice_equal(tls->key, SLICE("tls"));

    if (has_tls && config->certificates == CERTIFICATES_SECRETS)
        return yaml_fail(checked->err, tls,
                         "tls: contradicts certificates: Secrets, which needs no files");
    if (has_tls && (files->cert.len == 0 || files->key.len == 0))
        return yaml_fail(checked->err, tls, "tls: needs both certFile and keyFile");
    return 0;
}

static int check_server(const struct checked *checked, const struct config *config)
{
    if (check_address(checked, "server", "listen", config->server.listen) < 0 ||
        check_address(checked, "server", "metricsListen", config->server.metrics_listen) < 0)
        return checked->err->code;
    if (do_collide(config->server.listen, config->server.metrics_listen))
        return yaml_fail(checked->err, locate(checked, "server", "metricsListen"),
                         "metricsListen: the port must differ from that of listen");
    return check_tls(checked, "server", config, &config->server.tls);
}

static int check_admission(const struct checked *checked, const struct config *config)
{
    const struct yaml_node *listen = locate(checked, "admission", "listen");
    struct slice address = config->admission.listen;

    if (check_tls(checked, "admission", config, &config->admission.tls) < 0)
        return checked->err->code;
    if (address.len == 0)
        return 0;
    if (check_address(checked, "admission", "listen", address) < 0)
        return checked->err->code;
    if (do_collide(address, config->server.listen) ||
        do_collide(address, config->server.metrics_listen))
        return yaml_fail(checked->err, listen, "listen: the port must differ from those of server");
    if (!config_has_tls(config, &config->admission.tls))
        return yaml_fail(checked->err, listen,
                         "listen: needs admission.tls, or certificates: Secrets: API servers call "
                         "webhooks over TLS only");
    return 0;
}

/* With claimLock: Annotation, claimguards have to agree on them. */
static int check_exclusive(const struct checked *checked, const struct config *config)
{
    size_t count = 0;

    if (config->read_write_once_pod.claim_lock != CLAIM_LOCK_ANNOTATION)
        return 0;
    for (size_t i = 0; i < config->defer_fs_mount.entry_count; i++)
        count += config_adds_exclusive(config, i);
    return count <= EXCLUSIVE_CLASSES_MAX
               ? 0
               : yaml_fail(checked->err, locate(checked, "deferFSMount", "entries"),
                           "entries: with claimLock: Annotation, at most %d storage classes may "
                           "have nonExclusiveClaims: Exclusive, not %zu: use Refuse, or fewer "
                           "classes",
                           EXCLUSIVE_CLASSES_MAX, count);
}

int config_check_type(const struct yaml_node *root, struct error *err)
{
    if (check_type(root, "apiVersion", CONFIG_API_VERSION, err) < 0)
        return err->code;
    return check_type(root, "kind", "ClaimguardConfiguration", err);
}

int config_check(const struct yaml_node *root, const struct config *config, struct error *err)
{
    const struct checked checked = {root, err};

    if (config_check_type(root, err) < 0)
        return err->code;
    if (check_server(&checked, config) < 0 || check_admission(&checked, config) < 0)
        return err->code;
    return check_exclusive(&checked, config);
}
