/* Certificates that are there: another one's authority, what is refused; and names. */
#include "unit/extender/certificates_bench.h"

TestSuite(certificates_refused, .init = setup, .fini = teardown);

/* ---- an authority that somebody else has made ---- */

static bool has_root; /* that is not there */

static void sign_by_root(gnutls_x509_crt_t crt)
{
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t root;

    cr_assert(gnutls_x509_privkey_init(&key) == 0 && gnutls_x509_crt_init(&root) == 0);
    cr_assert_eq(gnutls_x509_privkey_generate(key, GNUTLS_PK_RSA, 2048, 0), 0);
    cr_assert_eq(gnutls_x509_crt_set_dn(root, "CN=root", NULL), 0);
    cr_assert_eq(gnutls_x509_crt_set_key(root, key), 0);
    cr_assert_eq(gnutls_x509_crt_sign2(crt, root, key, GNUTLS_DIG_SHA256, 0), 0);
    gnutls_x509_crt_deinit(root);
    gnutls_x509_privkey_deinit(key);
}

/* Puts an RSA authority without key identifiers in place, in the form that openssl writes. */
static void put_rsa_authority(bool is_authority)
{
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t crt;
    gnutls_datum_t text;

    cr_assert(gnutls_x509_privkey_init(&key) == 0 && gnutls_x509_crt_init(&crt) == 0);
    cr_assert_eq(gnutls_x509_privkey_generate(key, GNUTLS_PK_RSA, 2048, 0), 0);
    cr_assert_eq(gnutls_x509_crt_set_version(crt, 3), 0);
    cr_assert_eq(gnutls_x509_crt_set_serial(crt, "\1", 1), 0);
    cr_assert_eq(gnutls_x509_crt_set_dn(crt, "CN=ours,O=Example", NULL), 0);
    cr_assert_eq(gnutls_x509_crt_set_key(crt, key), 0);
    cr_assert_eq(gnutls_x509_crt_set_basic_constraints(crt, is_authority, -1), 0);
    cr_assert_eq(gnutls_x509_crt_set_activation_time(crt, NOW - DAY), 0);
    cr_assert_eq(gnutls_x509_crt_set_expiration_time(crt, NOW + YEAR), 0);
    if (has_root)
        sign_by_root(crt);
    else
        cr_assert_eq(gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0), 0);
    cr_assert_eq(gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &text), 0);
    pair(CERTIFICATE_AUTHORITY)->crt = strndup((char *)text.data, text.size);
    gnutls_free(text.data);
    cr_assert_eq(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &text), 0);
    pair(CERTIFICATE_AUTHORITY)->key = strndup((char *)text.data, text.size);
    gnutls_free(text.data);
    gnutls_x509_crt_deinit(crt);
    gnutls_x509_privkey_deinit(key);
}

Test(certificates_refused, an_authority_of_another_kind_is_used_and_renewed)
{
    put_rsa_authority(true);
    cr_assert_eq(refresh_at(NOW), 0, "%s", err.message);
    expect_actions(ACTION_KEPT, ACTION_CREATED, ACTION_CREATED);
    cr_expect(is_good_server(pair(CERTIFICATE_AUTHORITY)->crt, "127.0.0.1"));
    terms.renew_before_s = 2 * DAY;
    cr_assert_eq(refresh_at(NOW + YEAR - DAY), 0, "%s", err.message);
    expect_actions(ACTION_RENEWED, ACTION_RENEWED, ACTION_RENEWED);
    cr_expect(is_good_server(pair(CERTIFICATE_AUTHORITY)->crt, "127.0.0.1"));
}

/* What it signs is renewed as long as it is valid, and ends with it. */
Test(certificates_refused, an_authority_that_another_one_has_to_renew_is_kept)
{
    has_root = true;
    put_rsa_authority(true);
    terms.life_s = 30 * DAY;
    cr_assert_eq(refresh_at(NOW), 0, "%s", err.message);
    for (int days = 10; days > 0; days = days == 10 ? 2 : 0) {
        cr_assert_eq(refresh_at(NOW + YEAR - days * DAY), 0, "%s", err.message);
        expect_actions(ACTION_KEPT, ACTION_RENEWED, ACTION_RENEWED);
        cr_expect_not_null(strstr(certificates.entries[CERTIFICATE_AUTHORITY].reason,
                                  "another authority has to renew it"));
        cr_expect_eq(certificates.entries[CERTIFICATE_SERVER].until_s, NOW + YEAR);
        terms.replaces = true;
    }
    cr_expect_lt(refresh_at(NOW + YEAR), 0, "it has ended");
}

/* ---- what is refused ---- */

static void expect_refused(const char *message)
{
    cr_expect_lt(refresh_at(NOW), 0, "expected: %s", message);
    cr_expect_not_null(strstr(err.message, message), "expected %s in %s", message, err.message);
    cr_expect_null(strstr(err.message, "BEGIN"), "%s", err.message);
}

static void put(char **text, const char *other)
{
    free(*text);
    *text = other == NULL ? NULL : strdup(other);
}

Test(certificates_refused, half_an_authority_is_not_made_whole)
{
    cr_assert_eq(refresh_at(NOW), 0);
    char *key = strdup(pair(CERTIFICATE_AUTHORITY)->key);
    put(&pair(CERTIFICATE_AUTHORITY)->key, NULL);
    expect_refused("ca.crt is there without ca.key: restore that, or remove both");
    put(&pair(CERTIFICATE_AUTHORITY)->key, key);
    put(&pair(CERTIFICATE_AUTHORITY)->crt, NULL);
    expect_refused("ca.key is there without ca.crt: restore that, or remove both");
    put(&pair(CERTIFICATE_AUTHORITY)->key, NULL);
    expect_refused("tls.crt is there without its authority: restore ca.crt and ca.key");
    free(key);
}

Test(certificates_refused, an_authority_that_is_none_is_refused)
{
    put_rsa_authority(false);
    expect_refused("ca.crt: is not the certificate of an authority");
}

Test(certificates_refused, texts_that_are_something_else_are_refused_by_name)
{
    cr_assert_eq(refresh_at(NOW), 0);
    char *key = strdup(pair(CERTIFICATE_AUTHORITY)->key);
    put(&pair(CERTIFICATE_AUTHORITY)->key, pair(CERTIFICATE_CLIENT)->key);
    expect_refused("ca.key: is not the key of the first certificate in ca.crt");
    put(&pair(CERTIFICATE_AUTHORITY)->key, "nonsense");
    expect_refused("ca.key: ");
    put(&pair(CERTIFICATE_AUTHORITY)->key, key);
    put(&pair(CERTIFICATE_SERVER)->crt, key);
    expect_refused("tls.crt: ");
    put(&pair(CERTIFICATE_SERVER)->crt,
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    expect_refused("tls.crt: ");
    put(&pair(CERTIFICATE_SERVER)->crt, "");
    expect_refused("tls.crt: ");
    free(key);
}

Test(certificates_refused, a_certificate_of_another_authority_is_left_alone)
{
    cr_assert_eq(refresh_at(NOW), 0);
    put(&pair(CERTIFICATE_AUTHORITY)->crt, NULL);
    put(&pair(CERTIFICATE_AUTHORITY)->key, NULL);
    put_rsa_authority(true);
    expect_refused("tls.crt: is not from the authority in ca.crt: remove it, for a new one");
}

/* ---- names ---- */

Test(certificates_refused, names_and_addresses_have_one_spelling)
{
    static const char *const good[][2] = {
        {"claimguard", "claimguard"},
        {"A.Example.ORG", "a.example.org"},
        {"*.example.org", "*.example.org"},
        {"10.0.0.7", "10.0.0.7"},
        {"::1", "::1"},
        {"2001:DB8:0:0::1", "2001:db8::1"},
        {"x-1.y", "x-1.y"},
    };
    static const char *const bad[] = {"",    ".",   "a..b",          "a.",      "-a",
                                      "a-",  "a b", "10.0.0.7:8888", "[::1]",   "a_b",
                                      "a/b", "*",   "a.*.b",         "\xc3\xa4"};

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct hosts hosts = {.count = 0};
        cr_expect_eq(hosts_add(&hosts, good[i][0], &err), 0, "%s", good[i][0]);
        cr_expect_eq(hosts_add(&hosts, good[i][1], &err), 0);
        cr_expect_eq(hosts_add(&hosts, good[i][0], &err), 0);
        cr_expect_eq(hosts.count, 1, "%s is there already", good[i][1]);
        cr_expect_str_eq(hosts.names[0], good[i][1]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hosts hosts = {.count = 0};
        cr_expect_eq(hosts_add(&hosts, bad[i], &err), ERROR_INVALID, "%s", bad[i]);
    }
}

Test(certificates_refused, a_long_name_and_too_many_are_refused)
{
    struct hosts hosts = {.count = 0};
    char name[300];

    memset(name, 'a', sizeof name);
    for (size_t i = 63; i < sizeof name; i += 64)
        name[i] = '.';
    name[254] = '\0';
    cr_expect_eq(hosts_add(&hosts, name, &err), ERROR_INVALID);
    name[253] = '\0';
    cr_expect_eq(hosts_add(&hosts, name, &err), 0);
    memset(name, 'a', 64);
    name[64] = '\0';
    cr_expect_eq(hosts_add(&hosts, name, &err), ERROR_INVALID, "a label of 64");
    for (int i = 1; i < HOSTS_MAX; i++) {
        (void)snprintf(name, sizeof name, "n%d", i);
        cr_expect_eq(hosts_add(&hosts, name, &err), 0);
    }
    cr_expect_eq(hosts_add(&hosts, "one-more", &err), ERROR_TOO_BIG);
}
