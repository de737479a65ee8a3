#include "extender/doctor/certificate_list.h"

#include <limits.h>

enum { KEY_ID_BYTES = 64, HOST_BYTES = 256 };

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
    char name[HOST_BYTES];

    if (host.len >= sizeof name)
        return false;
    memcpy(name, host.ptr, host.len);
    name[host.len] = '\0';
    return gnutls_x509_crt_check_hostname(list->items[0], name) != 0;
}
