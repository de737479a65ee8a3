#include "extender/commands/doctor/doctor.h"

#include <limits.h>

#include "config/base/file.h"
#include "config/base/text.h"
#include "extender/commands/certificates/authority.h"

/* ---- a list ---- */

enum { KEY_ID_BYTES = 64, HOST_NAME_BYTES = 256 };

bool certificate_list_read(struct certificate_list *out, struct slice pem)
{
    gnutls_datum_t text = {(unsigned char *)(uintptr_t)pem.ptr, (unsigned)pem.len};

    *out = (struct certificate_list){NULL, 0};
    if (pem.len > UINT_MAX ||
        gnutls_x509_crt_list_import2(&out->items, &out->count, &text, GNUTLS_X509_FMT_PEM, 0) < 0)
        *out = (struct certificate_list){NULL, 0};
    return out->count != 0;
}

void certificate_list_free(struct certificate_list *list)
{
    for (unsigned i = 0; i < list->count; i++)
        gnutls_x509_crt_deinit(list->items[i]);
    gnutls_free(list->items);
    *list = (struct certificate_list){NULL, 0};
}

static enum certificate_life life_of(gnutls_x509_crt_t certificate, int64_t now_s)
{
    int64_t end_s = gnutls_x509_crt_get_expiration_time(certificate);

    if (end_s <= now_s)
        return LIFE_ENDED;
    if (gnutls_x509_crt_get_activation_time(certificate) > now_s)
        return LIFE_NOT_BEGUN;
    return end_s - now_s < CERTIFICATE_SOON_S ? LIFE_ENDS_SOON : LIFE_LONG;
}

enum certificate_life certificate_list_life(const struct certificate_list *list, int64_t now_s)
{
    enum certificate_life best = LIFE_NOT_BEGUN;

    for (unsigned i = 0; i < list->count; i++) {
        enum certificate_life life = life_of(list->items[i], now_s);
        best = life < best ? life : best;
    }
    return best;
}

bool certificate_list_signs(const struct certificate_list *authorities,
                            const struct certificate_list *chain)
{
    unsigned problems = 0;

    return chain->count != 0 &&
           gnutls_x509_crt_list_verify(
               chain->items, chain->count, authorities->items, authorities->count, NULL, 0,
               GNUTLS_VERIFY_DISABLE_TIME_CHECKS | GNUTLS_VERIFY_DISABLE_TRUSTED_TIME_CHECKS,
               &problems) == 0 &&
           problems == 0;
}

bool certificate_list_shares_key(const struct certificate_list *a, const struct certificate_list *b)
{
    for (unsigned i = 0; i < a->count; i++)
        for (unsigned j = 0; j < b->count; j++) {
            unsigned char x[KEY_ID_BYTES], y[KEY_ID_BYTES];
            size_t x_len = sizeof x, y_len = sizeof y;
            if (gnutls_x509_crt_get_key_id(a->items[i], GNUTLS_KEYID_USE_SHA256, x, &x_len) == 0 &&
                gnutls_x509_crt_get_key_id(b->items[j], GNUTLS_KEYID_USE_SHA256, y, &y_len) == 0 &&
                x_len == y_len && memcmp(x, y, x_len) == 0)
                return true;
        }
    return false;
}

bool certificate_list_is_for(const struct certificate_list *list, struct slice host)
{
    char name[HOST_NAME_BYTES];

    if (host.len >= sizeof name)
        return false;
    memcpy(name, host.ptr, host.len);
    name[host.len] = '\0';
    return gnutls_x509_crt_check_hostname(list->items[0], name) != 0;
}

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
        finding_add(checking->findings, CG609, place, "call claimguard certificates",
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
        finding_add(checking->findings, CG609, place, "", "%.*s is no certificate in PEM form",
                    SLICE_ARG(what));
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
        finding_add(checking->findings, CG609, finding_place(setting->at), "", "%.*s is not base64",
                    SLICE_ARG(setting->at->key));
}

/* ---- between them ---- */

static void check_server(const struct scheduler_extender *own, const struct certificate_list *ca,
                         const struct certificates_read *read, struct findings *findings)
{
    if (read->server.count == 0 || own->insecure.is_true || !own->has_url)
        return;
    if (ca->count != 0 && !certificate_list_signs(ca, &read->server))
        finding_add(findings, CG610, finding_place(own->ca.at),
                    "the ca.crt of the Secret claimguard-tls",
                    "this authority has not signed the certificate of server.tls");
    struct slice host = own->server_name.is_set ? own->server_name.text : own->url.host;
    if (!certificate_list_is_for(&read->server, host))
        finding_add(findings, CG610, finding_place(own->url_prefix.at),
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
        finding_add(checking->findings, CG610, finding_place(own->cert.at),
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
    const struct config *config = file->config;
    const struct tls_files *server = &config->server.tls, *admission = &config->admission.tls;

    take_file(checking, &out->server, FORM_CHAIN, server->cert,
              CONFIG_PLACE(file, "server", "tls", "certFile"));
    take_file(checking, &out->client_ca, FORM_BUNDLE, server->client_ca,
              CONFIG_PLACE(file, "server", "tls", "clientCAFile"));
    out->is_one_pair = server->cert.len != 0 && slice_equal(server->cert, admission->cert);
    if (!out->is_one_pair)
        take_file(checking, &out->admission, FORM_CHAIN, admission->cert,
                  CONFIG_PLACE(file, "admission", "tls", "certFile"));
}

void doctor_check_certificates(const struct examined *examined, struct findings *findings)
{
    struct checking checking = {
        .now_s = examined->now_s, .findings = findings, .absent = SLICE("")};

    *examined->certificates = (struct certificates_read){.is_one_pair = false};
    if (examined->config != NULL)
        read_config(&checking, examined->config, examined->certificates);
    for (const struct scheduler_file *file = NULL; (file = examined_next(examined, file)) != NULL;)
        check_scheduler(&checking, file->own, examined->certificates);
    if (checking.absent_count != 0)
        gaps_add(&findings->gaps, GAP_RULES(CG609, CG610),
                 "certificates that are not on this machine: %.*s%s", SLICE_ARG(checking.absent),
                 checking.absent_count > NAMES_SHOWN ? ", ..." : "");
}

void certificates_read_free(struct certificates_read *read)
{
    certificate_list_free(&read->server);
    certificate_list_free(&read->client_ca);
    certificate_list_free(&read->admission);
    certificate_list_free(&read->authority);
}
