#include "support/trust.h"

#include <gnutls/x509.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/scenario.h"

bool certificate_is_trusted(const char *bundle, const char *text, const char *purpose,
                            const char *host)
{
    gnutls_typed_vdata_st data[2] = {
        {GNUTLS_DT_KEY_PURPOSE_OID, (unsigned char *)(uintptr_t)purpose, 0},
        {GNUTLS_DT_DNS_HOSTNAME, (unsigned char *)(uintptr_t)host, 0}};
    gnutls_datum_t authority = {(unsigned char *)(uintptr_t)bundle, (unsigned)strlen(bundle)};
    gnutls_datum_t pem = {(unsigned char *)(uintptr_t)text, (unsigned)strlen(text)};
    gnutls_x509_trust_list_t list;
    gnutls_x509_crt_t crt;
    unsigned status = 0;

    if (gnutls_x509_crt_init(&crt) < 0 || gnutls_x509_trust_list_init(&list, 0) < 0)
        abort();
    int rc = gnutls_x509_crt_import(crt, &pem, GNUTLS_X509_FMT_PEM);
    if (rc == 0 && gnutls_x509_trust_list_add_trust_mem(list, &authority, NULL, GNUTLS_X509_FMT_PEM,
                                                        0, 0) <= 0)
        rc = GNUTLS_E_CERTIFICATE_ERROR;
    if (rc == 0)
        rc = gnutls_x509_trust_list_verify_crt2(list, &crt, 1, data, host == NULL ? 1 : 2, 0,
                                                &status, NULL);
    gnutls_x509_crt_deinit(crt);
    gnutls_x509_trust_list_deinit(list, 1);
    return rc == 0 && status == 0;
}

const char *webhook_bundle(size_t webhook)
{
    json_t *object =
        json_loads(api_object("validatingwebhookconfigurations", "", "claimguard"), 0, NULL);
    const char *bundle = json_string_value(json_object_get(
        json_object_get(json_array_get(json_object_get(object, "webhooks"), webhook),
                        "clientConfig"),
        "caBundle"));

    bundle = scenario_printf("%s", bundle == NULL ? "" : bundle);
    json_decref(object);
    return bundle;
}
