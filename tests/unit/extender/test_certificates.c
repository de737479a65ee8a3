/* Certificates in memory: what is made, and what is renewed. */
#include "unit/extender/certificates_bench.h"

TestSuite(certificates, .init = setup, .fini = teardown);

/* ---- what is made ---- */

Test(certificates, a_first_call_makes_a_chain_that_peers_accept)
{
    cr_assert_eq(refresh_at(NOW), 0, "%s", err.message);
    expect_actions(ACTION_CREATED, ACTION_CREATED, ACTION_CREATED);
    const char *bundle = pair(CERTIFICATE_AUTHORITY)->crt;
    cr_expect(is_good_server(bundle, "claimguard.claimguard.svc"));
    cr_expect(is_good_server(bundle, "127.0.0.1"));
    cr_expect(is_good_client(bundle));
    cr_expect(!is_good_server(bundle, "claimguard.other.svc"), "another name");
    cr_expect(!certificate_is_trusted(bundle, pair(CERTIFICATE_SERVER)->crt,
                                      GNUTLS_KP_TLS_WWW_CLIENT, NULL),
              "a server's certificate is none of a client");
    cr_expect(!certificate_is_trusted(bundle, pair(CERTIFICATE_CLIENT)->crt,
                                      GNUTLS_KP_TLS_WWW_SERVER, NULL),
              "a client's certificate is none of a server");
    shown_time = NOW - HOUR + 1;
    cr_expect(is_good_client(bundle), "for a peer whose clock is late");
    shown_time = NOW + YEAR + 1;
    cr_expect(!is_good_client(bundle), "after its end");
}

static void expect_algorithms(enum certificate which, unsigned expected_usage)
{
    gnutls_x509_crt_t crt = parse(pair(which)->crt);
    unsigned bits = 0, usage = 0;

    cr_expect_eq(gnutls_x509_crt_get_version(crt), 3);
    cr_expect_eq(gnutls_x509_crt_get_pk_algorithm(crt, &bits), GNUTLS_PK_ECDSA);
    cr_expect_eq(bits, 256);
    cr_expect_eq(gnutls_x509_crt_get_signature_algorithm(crt), GNUTLS_SIGN_ECDSA_SHA256);
    cr_expect_eq(gnutls_x509_crt_get_key_usage(crt, &usage, NULL), 0);
    cr_expect_eq(usage, expected_usage);
    cr_expect_eq(gnutls_x509_crt_get_ca_status(crt, NULL) > 0, which == CERTIFICATE_AUTHORITY);
    gnutls_x509_crt_deinit(crt);
}

static void read_serial(unsigned char serial[32], enum certificate which)
{
    gnutls_x509_crt_t crt = parse(pair(which)->crt);
    size_t size = 32;

    memset(serial, 0, size);
    cr_expect_eq(gnutls_x509_crt_get_serial(crt, serial, &size), 0);
    cr_expect_eq(size, 16);
    cr_expect_lt(serial[0], 0x80, "it is positive");
    gnutls_x509_crt_deinit(crt);
}

Test(certificates, they_have_the_keys_the_usages_and_the_serials_that_are_asked_for)
{
    unsigned char server[32], client[32], authority[32];

    cr_assert_eq(refresh_at(NOW), 0);
    expect_algorithms(CERTIFICATE_AUTHORITY, GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN);
    expect_algorithms(CERTIFICATE_SERVER, GNUTLS_KEY_DIGITAL_SIGNATURE);
    expect_algorithms(CERTIFICATE_CLIENT, GNUTLS_KEY_DIGITAL_SIGNATURE);
    read_serial(authority, CERTIFICATE_AUTHORITY);
    read_serial(server, CERTIFICATE_SERVER);
    read_serial(client, CERTIFICATE_CLIENT);
    cr_expect(memcmp(server, client, 32) != 0 && memcmp(server, authority, 32) != 0);
    for (int i = 0; i < CERTIFICATE_COUNT; i++)
        cr_expect_eq(strncmp(certificates.entries[i].pair.key, "-----BEGIN PRIVATE KEY-----", 27),
                     0);
}

Test(certificates, nothing_outlives_its_authority)
{
    terms.authority_life_s = YEAR;
    terms.life_s = YEAR;
    cr_assert_eq(refresh_at(NOW), 0);
    cr_assert_eq(refresh_at(NOW + YEAR / 2), 0);
    cr_assert_eq(hosts_add(&terms.hosts, "new", &err), 0);
    cr_assert_eq(refresh_at(NOW + YEAR / 2), 0);
    expect_actions(ACTION_KEPT, ACTION_RENEWED, ACTION_KEPT);
    cr_expect_eq(certificates.entries[CERTIFICATE_SERVER].until_s, NOW + YEAR);
}

/* ---- what is renewed ---- */

Test(certificates, a_second_call_keeps_all_and_says_until_when)
{
    cr_assert_eq(refresh_at(NOW), 0);
    char *server = strdup(pair(CERTIFICATE_SERVER)->crt);
    char *key = strdup(pair(CERTIFICATE_AUTHORITY)->key);
    cr_assert_eq(refresh_at(NOW + DAY), 0);
    expect_actions(ACTION_KEPT, ACTION_KEPT, ACTION_KEPT);
    cr_expect_str_eq(pair(CERTIFICATE_SERVER)->crt, server);
    cr_expect_str_eq(pair(CERTIFICATE_AUTHORITY)->key, key);
    cr_expect_eq(certificates.entries[CERTIFICATE_AUTHORITY].until_s, NOW + INT64_C(10) * YEAR);
    cr_expect_eq(certificates.entries[CERTIFICATE_SERVER].until_s, NOW + YEAR);
    free(server);
    free(key);
}

Test(certificates, in_the_last_third_of_its_life_a_certificate_is_renewed_and_the_authority_kept)
{
    cr_assert_eq(refresh_at(NOW), 0);
    char *bundle = strdup(pair(CERTIFICATE_AUTHORITY)->crt);
    char *key = strdup(pair(CERTIFICATE_SERVER)->key);
    cr_assert_eq(refresh_at(NOW + YEAR * 2 / 3 - DAY), 0);
    expect_actions(ACTION_KEPT, ACTION_KEPT, ACTION_KEPT);
    cr_assert_eq(refresh_at(NOW + YEAR * 2 / 3 + DAY), 0);
    expect_actions(ACTION_KEPT, ACTION_RENEWED, ACTION_RENEWED);
    cr_expect_str_eq(certificates.entries[CERTIFICATE_SERVER].reason,
                     "it would have ended on 2028-01-15");
    cr_expect_str_eq(pair(CERTIFICATE_AUTHORITY)->crt, bundle);
    cr_expect_str_neq(pair(CERTIFICATE_SERVER)->key, key, "with a new key");
    cr_expect(is_good_server(bundle, "127.0.0.1"));
    cr_expect(is_good_client(bundle));
    free(bundle);
    free(key);
}

Test(certificates, renew_before_says_when)
{
    cr_assert_eq(refresh_at(NOW), 0);
    terms.renew_before_s = 30 * DAY;
    cr_assert_eq(refresh_at(NOW + YEAR - 30 * DAY - 1), 0);
    expect_actions(ACTION_KEPT, ACTION_KEPT, ACTION_KEPT);
    cr_assert_eq(refresh_at(NOW + YEAR - 30 * DAY), 0);
    expect_actions(ACTION_KEPT, ACTION_RENEWED, ACTION_RENEWED);
}

Test(certificates, an_authority_is_renewed_with_its_key_and_the_old_one_overlaps)
{
    int64_t late = NOW + INT64_C(7) * YEAR;

    cr_assert_eq(refresh_at(NOW), 0);
    cr_assert_eq(refresh_at(late - 30 * DAY), 0); /* what it signs is fresh */
    expect_actions(ACTION_RENEWED, ACTION_RENEWED, ACTION_RENEWED);
    certificates_wipe(&certificates);

    cr_assert_eq(refresh_at(NOW), 0);
    terms.renew_before_s = DAY; /* so that the authority is kept for now */
    cr_assert_eq(refresh_at(late - 30 * DAY), 0);
    expect_actions(ACTION_KEPT, ACTION_RENEWED, ACTION_RENEWED);
    terms.renew_before_s = 0;
    char *old = strdup(pair(CERTIFICATE_AUTHORITY)->crt);
    char *key = strdup(pair(CERTIFICATE_AUTHORITY)->key);
    cr_assert_eq(refresh_at(late), 0);
    expect_actions(ACTION_RENEWED, ACTION_KEPT, ACTION_KEPT);
    const char *bundle = pair(CERTIFICATE_AUTHORITY)->crt;
    cr_expect_str_eq(pair(CERTIFICATE_AUTHORITY)->key, key);
    cr_expect_not_null(strstr(bundle, old), "the old one is in it");
    cr_expect_neq(strncmp(bundle, old, strlen(old)), 0, "behind the new one");
    cr_expect(is_good_client(bundle), "what the old one has signed is accepted");
    cr_expect(is_good_client(old));

    cr_assert_eq(hosts_add(&terms.hosts, "new.example", &err), 0);
    cr_assert_eq(refresh_at(late + DAY), 0);
    expect_actions(ACTION_KEPT, ACTION_RENEWED, ACTION_KEPT);
    cr_expect(is_good_server(old, "new.example"), "who knows only the old one accepts the new");
    cr_expect(is_good_server(bundle, "new.example"));

    /* when the old one has ended, it stays in the files until the next renewal, and does no harm */
    terms.renew_before_s = DAY;
    cr_assert_eq(refresh_at(NOW + INT64_C(11) * YEAR), 0);
    expect_actions(ACTION_KEPT, ACTION_RENEWED, ACTION_RENEWED);
    cr_expect_not_null(strstr(pair(CERTIFICATE_AUTHORITY)->crt, old));
    cr_expect(is_good_server(pair(CERTIFICATE_AUTHORITY)->crt, "new.example"));
    cr_expect(!is_good_server(old, "new.example"));
    terms.renew_before_s = INT64_C(9) * YEAR;
    cr_assert_eq(refresh_at(NOW + INT64_C(11) * YEAR), 0);
    expect_actions(ACTION_RENEWED, ACTION_RENEWED, ACTION_RENEWED);
    cr_expect_null(strstr(pair(CERTIFICATE_AUTHORITY)->crt, old), "an ended one is dropped");
    free(old);
    free(key);
}

/* From 2050 on, a certificate has its times in another form. */
Test(certificates, an_authority_is_renewed_beyond_2049)
{
    int64_t late = NOW + INT64_C(9) * YEAR;

    cr_assert_eq(refresh_at(NOW), 0);
    char *old = strdup(pair(CERTIFICATE_AUTHORITY)->crt);
    terms.authority_life_s = INT64_C(30) * YEAR;
    cr_assert_eq(refresh_at(late), 0, "%s", err.message);
    expect_actions(ACTION_RENEWED, ACTION_RENEWED, ACTION_RENEWED);
    cr_expect(is_good_server(old, "127.0.0.1"), "its name and key are the same");
    cr_expect(is_good_server(pair(CERTIFICATE_AUTHORITY)->crt, "127.0.0.1"));
    gnutls_x509_crt_t crt = parse(pair(CERTIFICATE_AUTHORITY)->crt);
    unsigned usage = 0, is_critical = 0;
    int path = -1;
    cr_expect_eq(gnutls_x509_crt_get_expiration_time(crt), late + 30 * (int64_t)YEAR);
    cr_expect_gt(gnutls_x509_crt_get_basic_constraints(crt, &is_critical, NULL, &path), 0);
    cr_expect(is_critical != 0 && path == 0);
    cr_expect_eq(gnutls_x509_crt_get_key_usage(crt, &usage, NULL), 0);
    cr_expect_eq(usage, GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN);
    gnutls_x509_crt_deinit(crt);
    terms.authority_life_s = INT64_C(10) * YEAR;
    cr_assert_eq(refresh_at(late + INT64_C(29) * YEAR), 0, "%s", err.message);
    expect_actions(ACTION_RENEWED, ACTION_RENEWED, ACTION_RENEWED);
    free(old);
}

Test(certificates, a_name_that_is_missing_is_added_and_those_that_are_there_stay)
{
    cr_assert_eq(refresh_at(NOW), 0);
    terms.hosts.count = 0;
    cr_assert_eq(hosts_add(&terms.hosts, "10.0.0.7", &err), 0);
    cr_assert_eq(refresh_at(NOW), 0);
    expect_actions(ACTION_KEPT, ACTION_RENEWED, ACTION_KEPT);
    cr_expect_str_eq(certificates.entries[CERTIFICATE_SERVER].reason, "it was not for 10.0.0.7");
    const char *bundle = pair(CERTIFICATE_AUTHORITY)->crt;
    cr_expect(is_good_server(bundle, "10.0.0.7"));
    cr_expect(is_good_server(bundle, "127.0.0.1"));
    cr_expect(is_good_server(bundle, "claimguard.claimguard.svc"));
    cr_assert_eq(refresh_at(NOW), 0);
    expect_actions(ACTION_KEPT, ACTION_KEPT, ACTION_KEPT);
}

static void swap(char **a, char **b)
{
    char *text = *a;

    *a = *b;
    *b = text;
}

Test(certificates, a_pair_that_was_written_by_half_is_made_again)
{
    cr_assert_eq(refresh_at(NOW), 0);
    swap(&pair(CERTIFICATE_SERVER)->key, &pair(CERTIFICATE_CLIENT)->key);
    cr_assert_eq(refresh_at(NOW), 0);
    expect_actions(ACTION_KEPT, ACTION_RENEWED, ACTION_RENEWED);
    cr_expect_str_eq(certificates.entries[CERTIFICATE_SERVER].reason, "it had not its key");
    free(pair(CERTIFICATE_SERVER)->key);
    pair(CERTIFICATE_SERVER)->key = NULL;
    free(pair(CERTIFICATE_CLIENT)->crt);
    pair(CERTIFICATE_CLIENT)->crt = NULL;
    cr_assert_eq(refresh_at(NOW), 0);
    expect_actions(ACTION_KEPT, ACTION_RENEWED, ACTION_CREATED);
    cr_assert_eq(refresh_at(NOW), 0);
    expect_actions(ACTION_KEPT, ACTION_KEPT, ACTION_KEPT);
}

Test(certificates, a_certificate_of_the_other_purpose_is_made_again)
{
    cr_assert_eq(refresh_at(NOW), 0);
    swap(&pair(CERTIFICATE_SERVER)->key, &pair(CERTIFICATE_CLIENT)->key);
    swap(&pair(CERTIFICATE_SERVER)->crt, &pair(CERTIFICATE_CLIENT)->crt);
    cr_assert_eq(refresh_at(NOW), 0);
    expect_actions(ACTION_KEPT, ACTION_RENEWED, ACTION_RENEWED);
    cr_expect_str_eq(certificates.entries[CERTIFICATE_SERVER].reason, "it was not for a server");
    cr_expect_str_eq(certificates.entries[CERTIFICATE_CLIENT].reason, "it was not for a client");
}
