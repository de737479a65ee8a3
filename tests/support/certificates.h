/* certificates: made when a test needs them, so that none in the tree can expire. */
#ifndef TESTS_SUPPORT_CERTIFICATES_H
#define TESTS_SUPPORT_CERTIFICATES_H

#include <stdbool.h>

struct certificate {
    const char *name;     /* its common name; its files are FOLDER/NAME.crt and FOLDER/NAME.key */
    const char *issuer;   /* whose files are there already; NULL: itself */
    bool is_authority;    /* may sign others */
    bool is_for_clients;  /* else, for servers; authorities: for all */
    int begins_s, ends_s; /* from now on; both 0: a day around now */
};

/* For 127.0.0.1. Aborts when it cannot be made. */
void certificate_make(const char *folder, const struct certificate *certificate);

#endif
