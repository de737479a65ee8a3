#include "extender/doctor/certificate_rules.h"

#include "config/base/base64.h"
#include "config/base/file_read.h"
#include "extender/certificates/authority.h"
#include "extender/doctor/go_text.h"

enum { NAMES_SHOWN = 5 };

/* A chain begins with the certificate that is shown; of a bundle, any one is enough. */
enum form { FORM_CHAIN, FORM_BUNDLE };

struct checking {
    int64_t now_s;
    struct findings *findings;
    struct slice absent; /* files that are not on this machine */
    size_t absent_count;
};

/* ---- one text ---- */

static void report_life(struct checking *checking, const struct certificate_list *list,
                        enum form form, struct slice what, struct location place)
{
    static const char *const texts[] = {
        [LIFE_ENDS_SOON] = "ends within two weeks",
        [LIFE_ENDED] = "has ended",
        [LIFE_NOT_BEGUN] = "is not valid yet",
    };
    const struct certificate_list shown = {list->items, form == FORM_CHAIN ? 1 : list->count};
    enum certificate_life life = certificate_list_life(&shown, checking->now_s);

    if (life == LIFE_LONG)
        return;
    struct finding *finding =
        finding_add(checking->findings, "CG609", place, "call claimguard certificates",
                    "the certificate %.*s %s", SLICE_ARG(what), texts[life]);
    if (life == LIFE_ENDS_SOON)
        finding_lower(finding, LEVEL_WARNING);
}

/* An empty list if it cannot be read, which is reported. */
static void take_text(struct checking *checking, struct certificate_list *out, enum form form,
                      struct slice pem, struct slice what, struct location place)
{
    if (certificate_list_read(out, pem))
        report_life(checking, out, form, what, place);
    else
        (void)finding_add(checking->findings, "CG609", place, "",
                          "%.*s is no certificate in PEM form", SLICE_ARG(what));
}

static void take_file(struct checking *checking, struct certificate_list *out, enum form form,
                      struct slice path, struct location place)
{
    struct arena *arena = checking->findings->arena;
    struct error err = {0};
    struct slice name = arena_copy(arena, path);
    char *text = arena_alloc(arena, PEM_BYTES_MAX);
    size_t len = 0;

    *out = (struct certificate_list){NULL, 0};
    if (path.len == 0 || name.ptr == NULL || text == NULL)
        return;
    if (file_read(name.ptr, text, PEM_BYTES_MAX, &len, &err) == 0)
        take_text(checking, out, form, (struct slice){text, len}, path, place);
    else if (++checking->absent_count <= NAMES_SHOWN)
        checking->absent = arena_printf(arena, "%.*s%s%.*s", SLICE_ARG(checking->absent),
                                        checking->absent_count == 1 ? "" : ", ", SLICE_ARG(path));
}

/* A file or data of tlsConfig. */
static void take_setting(struct checking *checking, struct certificate_list *out, enum form form,
                         const struct setting *setting)
{
    struct slice pem;

    *out = (struct certificate_list){NULL, 0};
    if (!setting->is_set)
        return;
    if (!slice_ends_with(setting->at->key, SLICE("Data")))
        take_file(checking, out, form, setting->text, finding_place(setting->at));
    else if (base64_decode(setting->text, checking->findings->arena, &pem))
        take_text(checking, out, form, pem, setting->at->key, finding_place(setting->at));
    else
        (void)finding_add(checking->findings, "CG609", finding_place(setting->at), "",
                          "%.*s is not base64", SLICE_ARG(setting->at->key));
}

/* ---- between them ---- */

static void check_server(const struct scheduler_extender *own, const struct certificate_list *ca,
                         const struct certificates_read *read, struct findings *findings)
{
    const struct yaml_node *named =
        scheduler_value(scheduler_value(own->at, "tlsConfig"), "serverName");
    struct url url;

    if (read->server.count == 0 || own->insecure.is_true ||
        !go_url(&url, own->url_prefix.text, findings->arena))
        return;
    if (ca->count != 0 && !certificate_list_signs(ca, &read->server))
        (void)finding_add(findings, "CG610", finding_place(own->ca.at),
                          "the ca.crt of the Secret claimguard-tls",
                          "this authority has not signed the certificate of server.tls");
    struct slice host = named != NULL ? named->text : url.host;
    if (!certificate_list_is_for(&read->server, host))
        (void)finding_add(findings, "CG610", finding_place(own->url_prefix.at),
                          "claimguard certificates --host NAME",
                          "the certificate of server.tls is not for %.*s", SLICE_ARG(host));
}

static void check_scheduler(struct checking *checking, const struct scheduler_extender *own,
                            struct certificates_read *read)
{
    struct certificate_list ca, cert;

    take_setting(checking, &ca, FORM_BUNDLE, &own->ca);
    take_setting(checking, &cert, FORM_CHAIN, &own->cert);
    check_server(own, &ca, read, checking->findings);
    if (cert.count != 0 && read->client_ca.count != 0 &&
        !certificate_list_signs(&read->client_ca, &cert))
        (void)finding_add(
            checking->findings, "CG610", finding_place(own->cert.at),
            "the tls.crt of the Secret claimguard-client",
            "the authority of server.tls.clientCAFile has not signed it: each call is "
            "refused");
    certificate_list_free(&cert);
    if (read->authority.count == 0 && ca.count != 0) {
        read->authority = ca;
        read->authority_place = finding_place(own->ca.at);
    } else {
        certificate_list_free(&ca);
    }
}

static void read_config(struct checking *checking, const struct config_file *file,
                        struct certificates_read *out)
{
#define PLACE(...) config_place(file, (const char *const[]){__VA_ARGS__, NULL})
    const struct config *config = file->config;
    const struct tls_files *server = &config->server.tls, *admission = &config->admission.tls;

    take_file(checking, &out->server, FORM_CHAIN, server->cert, PLACE("server", "tls", "certFile"));
    take_file(checking, &out->client_ca, FORM_BUNDLE, server->client_ca,
              PLACE("server", "tls", "clientCAFile"));
    out->is_one_pair = server->cert.len != 0 && slice_equal(server->cert, admission->cert);
    if (!out->is_one_pair)
        take_file(checking, &out->admission, FORM_CHAIN, admission->cert,
                  PLACE("admission", "tls", "certFile"));
#undef PLACE
}

void certificate_rules_check(const struct config_file *config,
                             const struct scheduler_file *schedulers, size_t scheduler_count,
                             int64_t now_s, struct certificates_read *out,
                             struct findings *findings)
{
    struct checking checking = {.now_s = now_s, .findings = findings, .absent = SLICE("")};

    *out = (struct certificates_read){.is_one_pair = false};
    if (config != NULL)
        read_config(&checking, config, out);
    for (size_t i = 0; i < scheduler_count; i++)
        if (schedulers[i].own != NULL)
            check_scheduler(&checking, schedulers[i].own, out);
    if (checking.absent_count != 0)
        finding_unread(findings, "certificates that are not on this machine: %.*s%s",
                       SLICE_ARG(checking.absent),
                       checking.absent_count > NAMES_SHOWN ? ", ..." : "");
}

void certificates_read_free(struct certificates_read *read)
{
    certificate_list_free(&read->server);
    certificate_list_free(&read->client_ca);
    certificate_list_free(&read->admission);
    certificate_list_free(&read->authority);
}
