/* certificates_bench: certificates in memory, at a time that the test chooses. */
#ifndef TESTS_UNIT_EXTENDER_CERTIFICATES_BENCH_H
#define TESTS_UNIT_EXTENDER_CERTIFICATES_BENCH_H

#include <criterion/criterion.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "extender/commands/certificates/refresh.h"
#include "support/trust.h"

enum { HOUR = 3600, DAY = 24 * HOUR, YEAR = 365 * DAY };
enum { NOW = 1800000000 };

static time_t shown_time = NOW;

static inline time_t show_time(time_t *out)
{
    if (out != NULL)
        *out = shown_time;
    return shown_time;
}

static struct certificates certificates;
static struct certificate_terms terms;
static struct error err;

static inline struct pem_pair *pair(enum certificate which)
{
    return &certificates.entries[which].pair;
}

static inline void name_pairs(void)
{
    static const char *const names[CERTIFICATE_COUNT][2] = {
        {"ca.crt", "ca.key"}, {"tls.crt", "tls.key"}, {"client.crt", "client.key"}};

    for (int i = 0; i < CERTIFICATE_COUNT; i++) {
        certificates.entries[i].pair.crt_name = names[i][0];
        certificates.entries[i].pair.key_name = names[i][1];
    }
}

static inline void setup(void)
{
    gnutls_global_set_time_function(show_time);
    certificates = (struct certificates){.entries = {{.until_s = 0}}};
    name_pairs();
    terms = (struct certificate_terms){
        .now_s = NOW, .life_s = YEAR, .authority_life_s = INT64_C(10) * YEAR};
    err = (struct error){0};
    cr_assert_eq(hosts_add(&terms.hosts, "claimguard.claimguard.svc", &err), 0);
    cr_assert_eq(hosts_add(&terms.hosts, "127.0.0.1", &err), 0);
}

static inline void teardown(void)
{
    certificates_wipe(&certificates);
}

/* As a later call reads them. */
static inline int refresh_at(int64_t now_s)
{
    for (int i = 0; i < CERTIFICATE_COUNT; i++)
        certificates.entries[i].reason[0] = '\0';
    shown_time = (time_t)now_s;
    terms.now_s = now_s;
    return certificates_refresh(&certificates, &terms, &err);
}

static inline void expect_actions(enum action authority, enum action server, enum action client)
{
    const enum action expected[] = {authority, server, client};

    for (int i = 0; i < CERTIFICATE_COUNT; i++)
        cr_expect_eq(certificates.entries[i].action, expected[i], "%s is %s: %s",
                     certificate_text((enum certificate)i),
                     action_text(certificates.entries[i].action), certificates.entries[i].reason);
}

static inline gnutls_datum_t datum(const char *text)
{
    return (gnutls_datum_t){(unsigned char *)(uintptr_t)text, (unsigned)strlen(text)};
}

static inline gnutls_x509_crt_t parse(const char *text)
{
    gnutls_datum_t pem = datum(text);
    gnutls_x509_crt_t crt;

    cr_assert_eq(gnutls_x509_crt_init(&crt), 0);
    cr_assert_eq(gnutls_x509_crt_import(crt, &pem, GNUTLS_X509_FMT_PEM), 0);
    return crt;
}

static inline bool is_good_server(const char *bundle, const char *host)
{
    return certificate_is_trusted(bundle, pair(CERTIFICATE_SERVER)->crt, GNUTLS_KP_TLS_WWW_SERVER,
                                  host);
}

static inline bool is_good_client(const char *bundle)
{
    return certificate_is_trusted(bundle, pair(CERTIFICATE_CLIENT)->crt, GNUTLS_KP_TLS_WWW_CLIENT,
                                  NULL);
}

#endif
